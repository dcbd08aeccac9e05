"""WordPiece: words, and pieces that continue a word, the longest known one first.

Chapters 11 and 12: BERT reads text this way.
"""

import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Self

import regex

from ..checks import require
from .byte_pair import Merging
from .tokenizers import Tokenizer

PAD, UNKNOWN, CLS, SEP, MASK = "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"
SPECIALS = (PAD, UNKNOWN, CLS, SEP, MASK)
CONTINUES = "##"
LONGEST_WORD = 100  # characters; a longer one is unknown

# Chinese characters stand alone, as every mark does, also the ASCII marks that Unicode calls symbols.
_CHINESE = (
    r"\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0002a6df\U0002a700-\U0002b73f\U0002b740-\U0002b81f"
    r"\U0002b820-\U0002ceaf\U0002f800-\U0002fa1f"
)
_MARKS = r"\p{P}$+<=>^`|~"
_WORDS = regex.compile(rf"[{_MARKS}{_CHINESE}]|[^\s{_MARKS}{_CHINESE}]+")
_NO_TEXT = regex.compile(r"[^\P{C}\t\n\r]|\ufffd")
_KEPT_WHOLE = regex.compile("(" + "|".join(map(regex.escape, SPECIALS)) + ")")


class WordPieceTokenizer(Tokenizer):
    """Frequent words are one token; others begin with a token and go on with tokens that start with ##.

    tokens: the five special tokens among them. lowercase: whether case and accents are taken away first ("uncased").
    A word is cut from the left, always the longest token that fits; one that cannot be cut to its end is [UNK].
    Special tokens written in a text, such as [MASK], are read as such.
    Source: Schuster and Nakajima (2012); Devlin et al., BERT (2019).
    """

    kind = "wordpiece"
    pad, unknown, start, end, mask = PAD, UNKNOWN, CLS, SEP, MASK

    def __init__(self, tokens: Sequence[str], lowercase: bool = True):
        super().__init__(tokens)
        missing = [special for special in SPECIALS if special not in self.ids]
        require(len(missing) == 0, f"tokens: expected {', '.join(SPECIALS)} among them, got none of {missing}")
        self.lowercase = lowercase
        self.special_ids = [self.ids[special] for special in SPECIALS]
        self._cut: dict[str, list[str]] = {}

    @classmethod
    def train(
        cls,
        texts: str | Iterable[str],
        vocab_size: int | None = None,
        specials: Sequence[str] = SPECIALS,
        lowercase: bool = True,
    ) -> Self:
        """Single characters first, then the most frequent pair of neighbours becomes a token, again and again.

        vocab_size: specials and characters included; fewer come out where no pair is left that occurs twice. As the
        tokenizers library does; the first WordPiece chose the pair that raised the text's probability most.
        """
        splitter = cls(specials, lowercase)
        texts = [texts] if isinstance(texts, str) else texts
        words = Counter(word for text in texts for word in splitter.words(text) if word not in SPECIALS)
        require(len(words) > 0, "texts: expected at least one word to learn from, got empty text")
        begun = {(word[0], *(CONTINUES + c for c in word[1:])): count for word, count in words.items()}
        alphabet = sorted({token for word in begun for token in word})
        smallest = len(specials) + len(alphabet)
        require(
            vocab_size is not None and vocab_size >= smallest,
            f"vocab_size: expected at least {smallest} (the specials and the text's characters), got {vocab_size}",
        )
        learned = Merging(begun, alphabet, _union).run(vocab_size - smallest, forbidden=set(specials))
        tokens = dict.fromkeys([*specials, *alphabet, *(_union(*pair) for pair in learned)])
        return cls(list(tokens), lowercase)

    @classmethod
    def from_vocabulary(cls, path: str | Path, lowercase: bool = True) -> Self:
        """The tokenizer of a vocabulary file as BERT's authors publish it: one token a line, its number the line's."""
        path = Path(path)
        try:
            lines = path.read_text(encoding="utf-8").removesuffix("\n").split("\n")
        except UnicodeDecodeError as error:
            raise ValueError(
                f"{path.name}: expected a vocabulary in UTF-8, one token a line, got other bytes"
            ) from error
        tokens = [line.rstrip("\r") for line in lines]
        require(all(tokens), f"{path.name}: expected one token a line, got an empty line; fetch the file again")
        try:
            return cls(tokens, lowercase)
        except ValueError as error:
            raise ValueError(f"{path.name}: {error}") from error

    def options(self) -> dict:
        """Whether case counts."""
        return {"lowercase": self.lowercase}

    def words(self, text: str) -> list[str]:
        """Words, single marks, single Chinese characters and special tokens; what is no text is left out."""
        found = []
        for part in _KEPT_WHOLE.split(text):
            if part in SPECIALS:
                found.append(part)
                continue
            part = _NO_TEXT.sub("", part)
            if self.lowercase:
                part = "".join(c for c in unicodedata.normalize("NFD", part) if unicodedata.category(c) != "Mn").lower()
            found += _WORDS.findall(part)
        return found

    def split(self, text: str) -> list[str]:
        """The words, each cut into known pieces."""
        return [token for word in self.words(text) for token in self._pieces(word)]

    def join(self, tokens: Sequence[str]) -> str:
        """Words with a blank between them; no blank before . , ? and !."""
        text = ""
        for token in tokens:
            if token.startswith(CONTINUES) and text:
                text += token.removeprefix(CONTINUES)
            else:
                text += token if not text or token in (".", ",", "?", "!") else " " + token
        return text

    def encode_pair(
        self, first: str, second: str | None = None, longest: int | None = None
    ) -> tuple[list[int], list[int]]:
        """BERT's input: ids of [CLS] first [SEP] second [SEP], and the segment, 0 or 1, of each.

        longest: at most so many ids; the longer of the two texts loses its last tokens until they fit.
        """
        parts = [self.encode(text) for text in (first, second) if text is not None]
        marks = 1 + len(parts)
        require(
            longest is None or longest > marks, f"longest: expected more than the {marks} special tokens, got {longest}"
        )
        while longest is not None and marks + sum(map(len, parts)) > longest:
            max(parts, key=len).pop()
        cls, sep = self.ids[CLS], self.ids[SEP]
        ids, segments = [cls], [0]
        for segment, part in enumerate(parts):
            ids += [*part, sep]
            segments += [segment] * (len(part) + 1)
        return ids, segments

    def _pieces(self, word: str) -> list[str]:
        if word not in self._cut:
            if len(self._cut) >= 100_000:  # bounds the memory that long texts would take
                self._cut.clear()
            self._cut[word] = self._longest_first(word)
        return self._cut[word]

    def _longest_first(self, word: str) -> list[str]:
        if word in SPECIALS or len(word) > LONGEST_WORD:
            return [word if word in SPECIALS else UNKNOWN]
        pieces, start = [], 0
        while start < len(word):
            before = CONTINUES if start else ""
            ends = (end for end in range(len(word), start, -1) if before + word[start:end] in self.ids)
            end = next(ends, None)
            if end is None:
                return [UNKNOWN]
            pieces.append(before + word[start:end])
            start = end
        return pieces


def _union(one: str, other: str) -> str:
    return one + other.removeprefix(CONTINUES)
