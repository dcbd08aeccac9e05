"""Counts of all n-grams of a text up to n, as sorted arrays.

Chapter 01. An n-gram is the number of its first n - 1 tokens (its context) together with its last token.
"""

from collections.abc import Sequence

import numpy as np

UNSEEN, NOT_YET = -1, -2  # in place of a run's number: never counted; too few tokens have gone before


class NGramCounts:
    """Every run of 1 to n tokens of the texts, numbered within its order, with its count.

    For order j: `key[j]` (sorted) = context number * V + last token, `counts[j]`, `context[j]`, `last[j]`,
    `suffix[j]` (the number of the run without its first token) and `begins[j]` (how often it opens a text).
    The context of order 1 is the empty run, number 0.
    """

    def __init__(self, texts: Sequence[np.ndarray], n: int, vocab_size: int):
        self.n, self.vocab_size = n, vocab_size
        tokens = np.concatenate(texts).astype(np.int64)
        place = np.concatenate([np.arange(len(text)) for text in texts])  # within its own text
        self.key, self.counts, self.context, self.last, self.suffix, self.begins = ({} for _ in range(6))
        before = np.zeros(len(tokens), dtype=np.int64)  # the run of order j - 1 that ends here
        for j in range(1, n + 1):
            here = np.flatnonzero(place >= j - 1)
            context = before[here - 1]  # for order 1 the empty run, number 0, wherever it stands
            self.key[j], first, run, self.counts[j] = np.unique(
                context * vocab_size + tokens[here], return_index=True, return_inverse=True, return_counts=True
            )
            self.context[j], self.last[j] = self.key[j] // vocab_size, self.key[j] % vocab_size
            self.suffix[j] = before[here[first]]
            self.begins[j] = np.bincount(run[place[here] == j - 1], minlength=len(self.key[j]))
            before = np.full(len(tokens), -1, dtype=np.int64)
            before[here] = run

    def contexts(self, order: int) -> int:
        """How many contexts an order has: the runs of one token less (the one at a text's end has nothing after it)."""
        return 1 if order == 1 else len(self.key[order - 1])

    def continuation_counts(self, order: int) -> np.ndarray:
        r"""For each run, how many different tokens came before it: $N_{1+}(\bullet\, w_1 \dots w_j)$.

        A run of two or more that opens a text has no token before it; there its occurrences count. A single token that
        opens a text is given, never predicted: else a start token would be the likeliest of all after any new context.
        """
        counts = np.bincount(self.suffix[order + 1], minlength=len(self.key[order]))
        return counts if order == 1 else counts + self.begins[order]

    def find(self, order: int, context: np.ndarray, token: np.ndarray) -> np.ndarray:
        """The number of each run (context, token) of this order, or UNSEEN."""
        key = context * self.vocab_size + token
        if len(self.key[order]) == 0:
            return np.full(key.shape, UNSEEN)
        found = np.minimum(np.searchsorted(self.key[order], key), len(self.key[order]) - 1)
        return np.where((context >= 0) & (self.key[order][found] == key), found, UNSEEN)

    def of(self, tokens: np.ndarray) -> int:
        """The count of one run of tokens."""
        number = np.zeros(1, dtype=np.int64)
        for order, token in enumerate(tokens[:, None], start=1):
            number = self.find(order, number, token)
        return int(self.counts[len(tokens)][number[0]]) if number[0] >= 0 else 0

    def walk(self, history: np.ndarray, longest: int) -> list[np.ndarray]:
        """For order 0 .. longest: the number of the run of that many tokens ending at each place of (batch, length).

        UNSEEN where the run was never counted, NOT_YET where so many tokens have not gone before.
        """
        nodes = [np.zeros(history.shape, dtype=np.int64)]
        for order in range(1, longest + 1):
            context = nodes[-1] if order == 1 else nodes[-1][:, order - 2 : -1]
            node = np.full(history.shape, NOT_YET, dtype=np.int64)
            node[:, order - 1 :] = self.find(order, context, history[:, order - 1 :])
            nodes.append(node)
        return nodes

    def continuations(self, order: int, context: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """All runs of this order that begin with each context: pairs (index into context, number of the run)."""
        low = np.searchsorted(self.key[order], context * self.vocab_size)
        high = np.searchsorted(self.key[order], (context + 1) * self.vocab_size)
        many = np.where(context >= 0, high - low, 0)
        row = np.repeat(np.arange(len(context)), many)
        start = np.repeat(low - (np.cumsum(many) - many), many)
        return row, start + np.arange(len(row))
