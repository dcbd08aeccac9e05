"""A task with one length: a string of random letters, to be written backwards.

Chapters 04 and 05. Nothing can be guessed from the letters around: what is not carried over is lost.
"""

from collections.abc import Sequence

import numpy as np

from transformer_lib.checks import require

__all__ = ["ReversalTask"]


class ReversalTask:
    """Draws pairs of ids: `c a b` as the source, `<s> b a c </s>` as the target.

    letters: what the strings are made of, drawn evenly. Ids 0, 1 and 2 are padding, start and end, as in every
    translation model; the letters follow. A string reversed asks as much of the memory as it has letters:
    length x log2(letters) bits. After Sutskever et al. (2014), who reverse their sources for the sake of short ways.
    """

    PAD, START, END = 0, 1, 2

    def __init__(self, letters: str = "abcdefghijklmnopqrst"):
        require(
            len(letters) >= 1 and len(set(letters)) == len(letters), f"letters: expected each once, got {letters!r}"
        )
        self.letters = letters
        self.vocab_size = 3 + len(letters)

    def pairs(self, length: int | tuple[int, int], count: int, seed: int | Sequence[int]) -> list[tuple]:
        """So many pairs (source, target) of lists of ids; length: one for all, or (shortest, longest) drawn evenly.

        The seed (one number or several) alone decides.
        """
        shortest, longest = (length, length) if isinstance(length, int) else length
        require(
            1 <= shortest <= longest and count >= 1,
            f"expected length from 1, the shorter first, and count from 1, got {length}, {count}",
        )
        random = np.random.default_rng(seed)
        lengths = random.integers(shortest, longest + 1, size=count)
        sources = [random.integers(3, self.vocab_size, size=n).tolist() for n in lengths]
        return [(source, [self.START, *reversed(source), self.END]) for source in sources]

    def encode(self, text: str) -> list[int]:
        """The ids of a string of the task's letters."""
        require(set(text) <= set(self.letters), f"text: expected letters of {self.letters!r}, got {text!r}")
        return [3 + self.letters.index(letter) for letter in text]

    def decode(self, ids: Sequence[int]) -> str:
        """The string again, without start, end and padding."""
        return "".join(self.letters[i - 3] for i in ids if i >= 3)
