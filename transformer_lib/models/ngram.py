"""The n-gram model: count, divide, and smooth.

Chapter 01. Counting is done for whole texts at once, so that a million characters take seconds.
"""

import math
from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

from ..checks import are_several, as_ids, require
from ..protocols import LanguageModel
from .ngram_counts import NOT_YET, UNSEEN, NGramCounts

SMOOTHINGS = ("none", "add-k", "kneser-ney", "modified-kneser-ney")


def discounts(counts: np.ndarray, modified: bool) -> np.ndarray:
    r"""What Kneser-Ney takes off a count of 0, 1, 2, and 3 or more, estimated from how many counts are 1, 2, 3, 4.

    $Y = n_1 / (n_1 + 2 n_2)$; plain: $D = Y$ for all. Modified: $D_j = j - (j + 1) Y n_{j+1} / n_j$ for j = 1, 2, 3.
    Where a text is too small for the estimate (some $n_j = 0$, or some $D_j \le 0$, which would leave nothing to tokens
    never seen): 0.5, or 0.5, 1 and 1.5.
    Source: Chen and Goodman, An Empirical Study of Smoothing Techniques for Language Modeling (1999), section 3.
    """
    n = np.array([(counts == j).sum() for j in range(5)], dtype=float)
    enough = (n[1:] > 0).all() if modified else (n[1:3] > 0).all()
    too_small = np.array([0, 0.5, 1.0, 1.5]) if modified else np.array([0, 0.5, 0.5, 0.5])
    if not enough:
        return too_small
    y = n[1] / (n[1] + 2 * n[2])
    if not modified:
        return np.array([0, y, y, y])
    j = np.array([1, 2, 3])
    off = j - (j + 1) * y * n[j + 1] / n[j]
    return np.array([0, *off]) if (off > 0).all() else too_small


def smooth(
    smoothing: str,
    counts: np.ndarray,
    context: np.ndarray,
    contexts: int,
    vocab_size: int,
    k: float,
    discount: float | None,
) -> tuple[np.ndarray, np.ndarray]:
    r"""The two pieces of $P(w \mid c) = \text{share}(c, w) + \text{rest}(c)\,P_{\text{lower}}(w)$, for one order.

    counts: of each n-gram seen, context: the number of its context c (0 .. contexts - 1). Returns the share of each
    n-gram and the rest of each context; what a context's shares leave over is spread as the lower order says.

    none: $\text{count}(c, w) / \text{count}(c)$, and no rest.
    add-k: $(\text{count}(c, w) + k) / (\text{count}(c) + k V)$; the lower distribution is uniform, 1 / V.
    kneser-ney: $(\text{count}(c, w) - D) / \text{count}(c)$; what was taken off is the rest.
    """
    total = np.bincount(context, counts, minlength=contexts)
    total = np.where(total > 0, total, np.inf)  # a context at the text's very end: followed by nothing, never "seen"
    if smoothing == "none":
        return counts / total[context], np.zeros(contexts)
    if smoothing == "add-k":
        spread = k * vocab_size / (np.where(total < np.inf, total, 0) + k * vocab_size)
        return counts / (total + k * vocab_size)[context], spread
    off = discounts(counts, smoothing.startswith("modified"))
    if discount is not None:
        off[1:] = discount
    taken = off[np.minimum(counts, 3)]
    rest = np.bincount(context, taken, minlength=contexts) / total
    return (counts - taken) / total[context], np.where(total < np.inf, rest, 1)


class NGramModel(LanguageModel):
    r"""$P(w_t \mid w_1, \dots, w_{t-1}) \approx P(w_t \mid w_{t-n+1}, \dots, w_{t-1})$: the last n - 1 tokens decide.

    n: the order, 1 or more (1 looks at nothing, 2 at one token back, ...).
    smoothing: "none" (maximum likelihood: count and divide; what was never seen gets 0), "add-k", "kneser-ney"
    (interpolated, one discount) or "modified-kneser-ney" (three discounts). k and discount belong to these.
    Near the start of a text, where fewer than n - 1 tokens have gone before, the order falls to what there is.
    A longer prefix is cut to its last n - 1 tokens; that is the model.
    Source: Chen and Goodman (1999); the textbook's 7.2.
    """

    def __init__(
        self,
        n: int,
        vocab_size: int,
        smoothing: str = "modified-kneser-ney",
        k: float = 1.0,
        discount: float | None = None,
    ):
        require(isinstance(n, int) and n >= 1, f"n: expected a whole number from 1, got {n!r}")
        require(smoothing in SMOOTHINGS, f"smoothing: expected one of {', '.join(SMOOTHINGS)}, got {smoothing!r}")
        require(k > 0, f"k: expected a number above 0, got {k}; for no smoothing say smoothing='none'")
        require(discount is None or 0 < discount < 1, f"discount: expected a number between 0 and 1, got {discount}")
        self.n, self.vocab_size, self.smoothing, self.k, self.discount = n, vocab_size, smoothing, k, discount
        self.counts: NGramCounts | None = None

    def fit(self, ids: Tensor | Sequence[int] | Sequence[Sequence[int] | Tensor]) -> "NGramModel":
        """Count the n-grams of a text (n,), or of several texts; none reaches across the border of two."""
        self.counts = NGramCounts(self._texts(ids), self.n, self.vocab_size)
        self._weigh()
        return self

    def using(self, n: int | None = None, **changes) -> "NGramModel":
        """The same counts under another smoothing, or a smaller n: nothing is counted again."""
        settings = {"smoothing": self.smoothing, "k": self.k, "discount": self.discount} | changes
        other = type(self)(self.n if n is None else n, self.vocab_size, **settings)
        self._require_counts(other.n)
        other.counts = self.counts
        other._weigh()
        return other

    def count(self, tokens: Sequence[int]) -> int:
        """How often this run of 1 to n tokens was counted."""
        self._require_counts(len(tokens))
        require(len(tokens) > 0, "tokens: expected at least one, got none")
        return self.counts.of(np.asarray(as_ids(tokens, self.vocab_size, "tokens")))

    def unseen_shares(self, ids: Tensor | Sequence[int] | Sequence[Sequence[int] | Tensor]) -> list[float]:
        """For j = 1 .. n, the share of the runs of j tokens in a text, or in several, that were never counted.

        Every place in the text counts, so a run that occurs twice counts twice; nan where there is no run of j tokens.
        """
        self._require_counts(self.n)
        walks = [self.counts.walk(text[None], self.n) for text in self._texts(ids)]
        runs = [np.concatenate([walk[j].ravel() for walk in walks]) for j in range(1, self.n + 1)]
        return [float(np.mean(run[run != NOT_YET] == UNSEEN)) if (run != NOT_YET).any() else math.nan for run in runs]

    def step(self, ids: Tensor, state: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Log probabilities after each of the ids, (..., n, vocab_size); the state is the last n - 1 tokens."""
        nodes, state, shape = self._read(ids, state)
        p = np.full((nodes[0].size, self.vocab_size), 1 / self.vocab_size)
        for order, context, used in self._orders(nodes):
            p[used] *= self.rest[order][context[used], None]
            row, run = self.counts.continuations(order, np.where(used, context, -1))
            p[row, self.counts.last[order][run]] += self.share[order][run]
        with np.errstate(divide="ignore"):
            return torch.from_numpy(np.log(p)).reshape(*shape, self.vocab_size), state

    def score(self, ids: Tensor, targets: Tensor, state: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Log probability of each target, without building whole distributions: what makes perplexity fast."""
        nodes, state, shape = self._read(ids, state)
        targets = as_ids(targets, self.vocab_size, "targets")
        require(
            targets.shape == shape,
            f"targets: expected the shape of ids {tuple(shape)}, got {tuple(targets.shape)}",
        )
        target = targets.numpy().ravel()
        p = np.full(target.size, 1 / self.vocab_size)
        for order, context, used in self._orders(nodes):
            p[used] *= self.rest[order][context[used]]
            run = self.counts.find(order, np.where(used, context, -1), target)
            p[run >= 0] += self.share[order][run[run >= 0]]
        with np.errstate(divide="ignore"):
            return torch.from_numpy(np.log(p)).reshape(shape), state

    def _texts(self, ids: Tensor | Sequence[int] | Sequence[Sequence[int] | Tensor]) -> list[np.ndarray]:
        texts = [np.asarray(as_ids(text, self.vocab_size, "text")) for text in (ids if are_several(ids) else [ids])]
        require(all(text.ndim == 1 for text in texts), "ids: expected texts of token ids, got texts of texts")
        require(sum(map(len, texts)) > 0, "ids: expected a text of at least one token, got an empty one")
        return texts

    def _require_counts(self, length: int) -> None:
        require(
            self.counts is not None, "model: expected one that has counted a text, got none counted; call fit first"
        )
        require(length <= self.counts.n, f"expected at most {self.counts.n} tokens (the n counted), got {length}")

    def _weigh(self) -> None:
        """Share and rest of every order. Below the highest order Kneser-Ney counts how many tokens came before."""
        self.share, self.rest = {}, {}
        unseen = 0.0 if self.smoothing == "none" else 1.0  # nothing counted: no estimate at all, or all from below
        for order in range(1, self.n + 1):
            counts = self.counts.counts[order]
            if self.smoothing.endswith("kneser-ney") and order < self.n:
                counts = self.counts.continuation_counts(order)
            self.share[order], rest = smooth(
                self.smoothing,
                counts,
                self.counts.context[order],
                self.counts.contexts(order),
                self.vocab_size,
                self.k,
                self.discount,
            )
            self.rest[order] = np.append(rest, unseen)  # found at [-1], the number of an unseen context

    def _read(self, ids: Tensor, state: Tensor | None) -> tuple[list[np.ndarray], Tensor, torch.Size]:
        """For 0 .. n - 1 tokens back from each place: the number of that run; the new state; the shape of ids."""
        self._require_counts(self.n)
        ids = as_ids(ids, self.vocab_size)
        require(ids.numel() > 0, "ids: expected at least one token, got none")
        rows = ids.reshape(-1, ids.shape[-1])
        if state is not None:
            state = as_ids(state, self.vocab_size, "state")
            require(
                state.dim() == 2 and len(state) == len(rows),
                f"state: expected the last tokens of {len(rows)} texts, got shape {tuple(state.shape)}",
            )
        history = rows if state is None else torch.cat([state, rows], dim=1)
        nodes = [node[:, -rows.shape[1] :].ravel() for node in self.counts.walk(history.numpy(), self.n - 1)]
        return nodes, history[:, max(0, history.shape[1] - (self.n - 1)) :], ids.shape

    def _orders(self, nodes: list[np.ndarray]) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
        """The orders to mix, lowest first: (order, number of the context at each place, the places that use it).

        Kneser-Ney mixes all orders; the others use the highest one for which enough tokens have gone before.
        """
        for order, context in enumerate(nodes, start=1):
            used = context != NOT_YET
            if not self.smoothing.endswith("kneser-ney") and order < self.n:
                used &= nodes[order] == NOT_YET
            yield order, context, used
