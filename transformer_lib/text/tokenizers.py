"""Tokenizers: text -> token ids and back. Characters and words here.

Chapters 00 and 01; byte-pair and WordPiece tokenizers join them in later chapters.
"""

import json
import operator
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Self

from ..checks import require
from ..files import whole_file

PAD, UNKNOWN, START, END = "<pad>", "<unk>", "<s>", "</s>"


class Tokenizer:
    """A list of tokens, numbered from 0. A subclass says how a text is split into tokens and joined again."""

    kind = "tokenizer"
    pad, unknown, start, end = PAD, UNKNOWN, START, END  # what marks what; another kind may have other marks

    def __init__(self, tokens: Sequence[str]):
        self.tokens = list(tokens)
        self.ids = {token: i for i, token in enumerate(self.tokens)}
        require(len(self.ids) == len(self.tokens), "tokens: expected each token once, got one twice")

    @classmethod
    def train(
        cls, texts: str | Iterable[str], vocab_size: int | None = None, specials: Sequence[str] = (), **options
    ) -> Self:
        """The special tokens, then the most frequent tokens of the texts (ties in order of code points).

        texts: one text or several. vocab_size: how many tokens in all, specials included; None takes every token.
        """
        texts = [texts] if isinstance(texts, str) else texts
        splitter = cls(specials, **options)
        counts = Counter(token for text in texts for token in splitter.split(text))
        require(len(counts) > 0, "texts: expected at least one token to learn from, got empty text")
        if vocab_size is not None:
            require(
                vocab_size > len(specials),
                f"vocab_size: expected more than the {len(specials)} special tokens, got {vocab_size}",
            )
            vocab_size -= len(specials)
        for special in specials:
            counts.pop(special, None)
        ranked = sorted(counts, key=lambda token: (-counts[token], token))
        return cls([*specials, *ranked[:vocab_size]], **options)

    @property
    def vocab_size(self) -> int:
        """How many different tokens there are."""
        return len(self.tokens)

    def split(self, text: str) -> list[str]:
        """The text as tokens."""
        raise NotImplementedError

    def join(self, tokens: Sequence[str]) -> str:
        """Tokens as a text."""
        raise NotImplementedError

    def encode(self, text: str, start: bool = False, end: bool = False) -> list[int]:
        """The ids of the text's tokens, with the start and end token around them if asked for.

        A token outside the vocabulary becomes <unk>; ValueError where the vocabulary has no <unk>.
        """
        before, after = [self.start] * start, [self.end] * end
        for special in before + after:
            require(
                special in self.ids,
                f"text: expected {special} in the vocabulary, to mark the text's border, got none; "
                f"train with specials=({special!r},)",
            )
        tokens = before + self.split(text) + after
        unknown = self.ids.get(self.unknown)
        ids = [self.ids.get(token, unknown) for token in tokens]
        if None in ids:
            token = tokens[ids.index(None)]
            raise ValueError(
                f"text: expected only tokens of the vocabulary ({self.vocab_size}), got {token!r}; "
                f"train on text that has it, or with specials=({self.unknown!r},)"
            )
        return ids

    def decode(self, ids: Iterable[int]) -> str:
        """The text of the ids. Start, end and padding are left out."""
        tokens = []
        for i in ids:
            try:
                i = operator.index(i)
            except TypeError as error:
                raise ValueError(
                    f"ids: expected one text's token ids, whole numbers, got a {type(i).__name__}"
                ) from error
            require(0 <= i < self.vocab_size, f"ids: expected 0 to {self.vocab_size - 1}, got {i}")
            if self.tokens[i] not in (self.pad, self.start, self.end):
                tokens.append(self.tokens[i])
        return self.join(tokens)

    def options(self) -> dict:
        """What besides the tokens makes this tokenizer: the arguments of its constructor."""
        return {}

    def save(self, path: str | Path) -> None:
        """Write the tokenizer as JSON. The old file, if any, stays whole until the new one is."""
        content = json.dumps(
            {"kind": self.kind, "options": self.options(), "tokens": self.tokens}, ensure_ascii=False, indent=0
        )
        with whole_file(path) as partial:
            partial.write_text(content + "\n", encoding="utf-8", newline="\n")

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a tokenizer that `save` wrote; `Tokenizer.load` reads one of any kind."""
        path = Path(path)
        if not path.is_file():
            raise FileNotFoundError(f"{path.name}: expected a saved tokenizer, found no such file")
        damaged = f"{path.name}: expected a tokenizer saved as JSON, got something else or a part of it; save it again"
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            kind, options, tokens = content["kind"], content["options"], content["tokens"]
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(damaged) from error
        kinds = {tokenizer.kind: tokenizer for tokenizer in (cls, *cls.__subclasses__()) if tokenizer is not Tokenizer}
        require(
            str(kind) in kinds, f"{path.name}: expected a {' or '.join(kinds)} tokenizer, got a {kind!s:.40} tokenizer"
        )
        require(isinstance(tokens, list) and all(isinstance(token, str) for token in tokens), damaged)
        try:
            return kinds[kind](tokens, **options)
        except TypeError as error:
            raise ValueError(damaged) from error


class CharTokenizer(Tokenizer):
    """Every character is a token: the smallest vocabulary, the longest sequences."""

    kind = "character"

    def split(self, text: str) -> list[str]:
        """The characters of the text."""
        return list(text)

    def join(self, tokens: Sequence[str]) -> str:
        """The characters, one after the other."""
        return "".join(tokens)


class WordTokenizer(Tokenizer):
    r"""Every word and every punctuation mark is a token.

    pattern: a regular expression that finds the tokens. The default suits English; for text that is already
    separated by blanks, as Japanese has to be, use `WordTokenizer.BLANKS`.
    """

    kind = "word"
    WORDS = r"\w+(?:['’]\w+)*|[^\w\s]"
    BLANKS = r"\S+"

    def __init__(self, tokens: Sequence[str], pattern: str = WORDS):
        super().__init__(tokens)
        self.pattern = pattern

    def options(self) -> dict:
        """The pattern."""
        return {"pattern": self.pattern}

    def split(self, text: str) -> list[str]:
        """What the pattern finds in the text, from left to right."""
        return [found.group() for found in re.finditer(self.pattern, text)]

    def join(self, tokens: Sequence[str]) -> str:
        """The tokens with a blank between them."""
        return " ".join(tokens)
