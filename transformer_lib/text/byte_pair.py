"""Byte-pair encoding: frequent pairs of neighbours become tokens, until the vocabulary is full.

Chapters 04, 05, 10 and 14. It works on bytes, so that no text is unknown and every text comes back as it was.
"""

import heapq
import json
import operator
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Self

import regex

from ..checks import require
from .tokenizers import Tokenizer

# GPT-2's way to cut a text before any pair is merged: a word with the blank before it, a number, marks, white space.
GPT2_PIECES = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
# Japanese is written without blanks: here a piece also ends where the script changes (kanji, hiragana, katakana).
JAPANESE_PIECES = (
    r"'(?:[sdmt]|ll|ve|re)| ?\p{Han}+| ?\p{Hiragana}+| ?[\p{Katakana}ー]+"
    r"| ?[^\P{L}\p{Han}\p{Hiragana}\p{Katakana}ー]+| ?\p{N}+| ?[^\s\p{L}\p{N}ー]+|\s+(?!\S)|\s+"
)


@lru_cache
def byte_characters() -> dict[int, str]:
    """A visible character for each of the 256 bytes, so that a token can be printed and saved (GPT-2's table)."""
    visible = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    hidden = [byte for byte in range(256) if byte not in visible]
    return {byte: chr(byte) for byte in visible} | {byte: chr(256 + i) for i, byte in enumerate(hidden)}


def compiled(pattern: str) -> regex.Pattern:
    """The pattern, ready to cut; an error of one line if it is none."""
    try:
        return regex.compile(pattern)
    except regex.error as error:
        raise ValueError(f"pattern: expected a regular expression, got {pattern!r} ({error})") from error


def pieces(pattern: regex.Pattern, text: str) -> list[str]:
    """The whole of the text, cut by the pattern; an error if the pattern leaves anything out."""
    found = [match.group() for match in pattern.finditer(text)]
    require(
        sum(map(len, found)) == len(text),
        f"pattern: expected one that leaves nothing of the text out, got {pattern.pattern!r}; add |\\s+|. for the rest",
    )
    return found


class BytePairTokenizer(Tokenizer):
    """Bytes, and what arose from them by merging: frequent words are one token, rare ones a few.

    tokens: special tokens, the 256 bytes, then one token for each merge; merges: pairs of tokens in the order learned;
    pattern: how a text is cut into pieces that no merge reaches across.
    Source: Sennrich et al., Neural Machine Translation of Rare Words with Subword Units (2016); on bytes: GPT-2 (2019).
    """

    kind = "byte-pair"

    def __init__(self, tokens: Sequence[str], merges: Sequence[Sequence[str]] = (), pattern: str = JAPANESE_PIECES):
        super().__init__(tokens)
        missing = sum(character not in self.ids for character in byte_characters().values())
        require(missing == 0, f"tokens: expected the 256 bytes among them, got {missing} too few; train a tokenizer")
        self.merges = [tuple(pair) for pair in merges]
        self.pattern = pattern
        self.pieces = compiled(pattern)
        self.rank = {pair: rank for rank, pair in enumerate(self.merges)}
        for pair in self.merges:
            require(
                len(pair) == 2 and pair[0] + pair[1] in self.ids,
                f"merges: expected pairs of tokens whose union is a token, got {pair}",
            )
        self._merged: dict[str, list[str]] = {}
        self._bytes = {character: byte for byte, character in byte_characters().items()}
        self._from_bytes = {*self._bytes, *(one + other for one, other in self.merges)}

    @classmethod
    def train(
        cls,
        texts: str | Iterable[str],
        vocab_size: int | None = None,
        specials: Sequence[str] = (),
        pattern: str = JAPANESE_PIECES,
    ) -> Self:
        """Merge the most frequent pair of neighbours, again and again; ties go to the pair learned first.

        vocab_size: specials and the 256 bytes included, so at least that many; fewer come out where no pair is left
        that occurs twice.
        """
        smallest = len(specials) + 256
        require(
            vocab_size is not None and vocab_size >= smallest,
            f"vocab_size: expected at least {smallest} (the specials and 256 bytes), got {vocab_size}",
        )
        cut = compiled(pattern)
        texts = [texts] if isinstance(texts, str) else texts
        words = Counter(piece for text in texts for piece in pieces(cut, text))
        require(len(words) > 0, "texts: expected at least one token to learn from, got empty text")
        alphabet = sorted(byte_characters().values())
        learned = Merging({tuple(_as_characters(word)): count for word, count in words.items()}, alphabet)
        merges = learned.run(vocab_size - smallest, forbidden=set(specials))
        return cls([*specials, *alphabet, *(a + b for a, b in merges)], merges, pattern)

    @classmethod
    def from_vocabulary(cls, encoder: str | Path, merges: str | Path, pattern: str = GPT2_PIECES) -> Self:
        """The tokenizer of a vocabulary as GPT-2's authors publish it: token -> id as JSON, and a merge a line."""
        try:
            ids = json.loads(Path(encoder).read_text(encoding="utf-8"))
            lines = Path(merges).read_text(encoding="utf-8").splitlines()
            tokens, last = sorted(ids, key=ids.get), len(ids) - 1
            require([ids[token] for token in tokens] == list(range(len(ids))), f"ids: expected 0 to {last}, each once")
            return cls(tokens, [line.split(" ") for line in lines if line and not line.startswith("#version")], pattern)
        except (ValueError, AttributeError, TypeError) as error:
            raise ValueError(
                f"{Path(encoder).name}, {Path(merges).name}: expected tokens with their ids in JSON and merges in "
                f"UTF-8, got something else ({error}); fetch both again"
            ) from error

    def options(self) -> dict:
        """The merges and the pattern."""
        return {"merges": self.merges, "pattern": self.pattern}

    def split(self, text: str) -> list[str]:
        """Cut into pieces, then merge within each piece, the pair learned first coming first."""
        return [token for piece in pieces(self.pieces, text) for token in self._merge(piece)]

    def join(self, tokens: Sequence[str]) -> str:
        """The bytes of the tokens, read as UTF-8 (what is no UTF-8, such as half a character, becomes U+FFFD)."""
        return b"".join(map(self._as_bytes, tokens)).decode("utf-8", errors="replace")

    def _as_bytes(self, token: str) -> bytes:
        if token not in self._from_bytes:  # a special token such as <空白>: it is no text, and stands for itself
            return token.encode("utf-8")
        return bytes(self._bytes[character] for character in token)

    def _merge(self, piece: str) -> list[str]:
        if piece not in self._merged:
            tokens = _as_characters(piece)
            while len(tokens) > 1:
                pair = min(zip(tokens, tokens[1:]), key=lambda pair: self.rank.get(pair, len(self.rank)))
                if pair not in self.rank:
                    break
                tokens = _merge_pair(tokens, pair)
            if len(self._merged) >= 100_000:  # bounds the memory that long texts would take
                self._merged.clear()
            self._merged[piece] = tokens
        return self._merged[piece]


def _as_characters(piece: str) -> list[str]:
    table = byte_characters()
    try:
        return [table[byte] for byte in piece.encode("utf-8")]
    except UnicodeEncodeError as error:
        raise ValueError(
            f"text: expected characters that UTF-8 can write, got {piece[error.start]!a}, half a character of UTF-16; "
            'decode the text with errors="replace"'
        ) from error


def _merge_pair(tokens: list[str], pair: tuple[str, str]) -> list[str]:
    """The tokens with every occurrence of the pair, from left to right, replaced by its union."""
    merged, i = [], 0
    while i < len(tokens):
        both = i + 1 < len(tokens) and (tokens[i], tokens[i + 1]) == pair
        merged.append(pair[0] + pair[1] if both else tokens[i])
        i += 2 if both else 1
    return merged


class Merging:
    """All different pieces laid end to end as one chain; a merge touches only the places where its pair stands.

    words: how often each piece occurs, as the tokens that it begins with; union: the name of two tokens made one.
    """

    def __init__(
        self,
        words: Mapping[tuple[str, ...], int],
        alphabet: Sequence[str],
        union: Callable[[str, str], str] = operator.add,
    ):
        self.names, self.union = list(alphabet), union
        number = {name: i for i, name in enumerate(self.names)}
        self.token, self.weight, self.before, self.after = [], [], [], []
        self.count: Counter[tuple[int, int]] = Counter()
        self.places: dict[tuple[int, int], set[int]] = defaultdict(set)
        for word, weight in words.items():
            tokens = [number[name] for name in word]
            first = len(self.token)
            self.token += tokens
            self.weight += [weight] * len(tokens)
            self.before += [-1, *range(first, first + len(tokens) - 1)]
            self.after += [*range(first + 1, first + len(tokens)), -1]
            for i, pair in enumerate(zip(tokens, tokens[1:]), start=first):
                self.count[pair] += weight
                self.places[pair].add(i)
        self.queue = [(-count, pair) for pair, count in self.count.items()]
        heapq.heapify(self.queue)

    def run(self, merges: int, forbidden: set[str]) -> list[tuple[str, str]]:
        """Up to so many merges, as pairs of names."""
        learned = []
        while len(learned) < merges and self.queue:
            count, pair = heapq.heappop(self.queue)
            now = self.count[pair]
            if now != -count:  # an old entry: the count has changed since; the pair waits again at its new place
                if now > 0:
                    heapq.heappush(self.queue, (-now, pair))
                continue
            names = self.names[pair[0]], self.names[pair[1]]
            if now < 2:
                break
            if self.union(*names) in forbidden:
                continue
            learned.append(names)
            self._apply(pair)
        return learned

    def _apply(self, pair: tuple[int, int]) -> None:
        union = len(self.names)
        self.names.append(self.union(self.names[pair[0]], self.names[pair[1]]))
        changed = set()
        for i in sorted(self.places.pop(pair)):
            j = self.after[i]
            if self.token[i] != pair[0] or j < 0 or self.token[j] != pair[1]:
                continue  # overlapped by the merge just before, as in "aaa"
            weight, left, right = self.weight[i], self.before[i], self.after[j]
            for at, old, new in (
                (left, (self.token[left], pair[0]), (self.token[left], union)),
                (i if right >= 0 else -1, (pair[1], self.token[right]), (union, self.token[right])),
            ):
                if at >= 0:
                    self.count[old] -= weight
                    self.places[old].discard(at if at == left else j)
                    self.count[new] += weight
                    self.places[new].add(at)
                    changed.add(new)
            self.token[i], self.token[j] = union, -1
            self.after[i] = right
            if right >= 0:
                self.before[right] = i
        del self.count[pair]
        for new in changed:
            if self.count[new] > 0:
                heapq.heappush(self.queue, (-self.count[new], new))
