"""A task with one distance: the last word, likes or like, must agree with the first, a singular or a plural subject.

Chapter 03. The words in between run through a real text, so that the distance is the only thing made up.
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from transformer_lib.checks import require
from transformer_lib.text import WordTokenizer

__all__ = ["AgreementTask"]

NOUNS = ("cat", "dog", "boy", "girl", "bird", "horse", "king", "friend")


class AgreementTask:
    """Draws sentences "cats (words of a text) like": to say like and not likes, the first word must be remembered.

    text: where the words in between come from; fit on one part of a corpus, measure on another.
    tokenizer: of the task whose training text it was, so that both speak of the same words; by default it is made here:
    the 16 subjects, the two verbs, then the `frequent` most frequent words of the text. Words outside the vocabulary,
    and the task's own, are left out of the text. After Linzen, Dupoux and Goldberg (2016), who ask for the verb's
    number in sentences of Wikipedia.
    """

    SUBJECTS = tuple(word for noun in NOUNS for word in (noun, noun + "s"))
    VERBS = ("likes", "like")
    WORDS = r"[a-z]+(?:['’][a-z]+)*"

    def __init__(self, text: str, tokenizer: WordTokenizer | None = None, frequent: int = 1000):
        own = self.SUBJECTS + self.VERBS
        self.tokenizer = tokenizer or WordTokenizer.train(
            text.lower(), vocab_size=len(own) + frequent, specials=own, pattern=self.WORDS
        )
        require(
            tuple(self.tokenizer.tokens[: len(own)]) == own,
            f"tokenizer: expected that of an AgreementTask, beginning with {own[0]}, {own[1]}, ...; "
            f"got one beginning with {', '.join(self.tokenizer.tokens[:2])}",
        )
        ids = (self.tokenizer.ids.get(word, 0) for word in self.tokenizer.split(text.lower()))
        self.words = np.array([i for i in ids if i >= len(own)], dtype=np.int64)

    @property
    def verbs(self) -> tuple[int, int]:
        """The ids of the two verb forms: after a singular, after a plural."""
        return len(self.SUBJECTS), len(self.SUBJECTS) + 1

    def sentences(self, distance: int, count: int, seed: int | Sequence[int]) -> Tensor:
        """So many sentences, (count, distance + 2): a subject, `distance` words of the text, the right verb.

        Subjects and places in the text are drawn evenly, by the seed (one number or several) alone.
        """
        require(distance >= 0 and count >= 1, f"expected distance from 0 and count from 1, got {distance}, {count}")
        require(
            len(self.words) >= distance,
            f"distance: expected at most the {len(self.words)} words that the text gives, got {distance}",
        )
        random = np.random.default_rng(seed)
        subjects = random.integers(len(self.SUBJECTS), size=count)
        starts = random.integers(len(self.words) - distance + 1, size=count)
        between = self.words[starts[:, None] + np.arange(distance)]
        verbs = self.verbs[0] + subjects % 2
        return torch.from_numpy(np.concatenate([subjects[:, None], between, verbs[:, None]], axis=1))
