"""Training on pairs of sequences: batches of similar length, padded, and a loss that padding does not enter.

Chapters 04, 05 and 10.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor, nn

from ..checks import require
from ..protocols import SequenceToSequenceModel
from .processes import average

Pair = tuple[Sequence[int], Sequence[int]]


def padded(rows: Sequence[Sequence[int]], pad_id: int) -> Tensor:
    """Rows of ids of unequal length as one LongTensor (batch, longest), filled up with pad_id on the right."""
    require(len(rows) > 0, "rows: expected at least one row of ids, got none")
    ids = torch.full((len(rows), max(map(len, rows))), pad_id, dtype=torch.long)
    for i, row in enumerate(rows):
        ids[i, : len(row)] = torch.as_tensor(row, dtype=torch.long)
    return ids


def batches_by_length(
    pairs: Sequence[Pair], batch_size: int, pad_id: int, seed: int = 0, source_pad_id: int | None = None
) -> Callable[[int], tuple[Tensor, Tensor]]:
    """Batches of pairs of similar length: a function from the step's number to (source, target), both padded.

    pad_id: for both, unless the source has a source_pad_id of its own.

    Every epoch reads every pair once, in an order that depends on (seed, epoch) alone, so that a resumed run sees what
    an unbroken one would have. Sorted by length only within pools of 50 batches: some chance stays in what goes
    together.
    """
    require(len(pairs) > 0, "pairs: expected at least one pair, got none")
    require(batch_size >= 1, f"batch_size: expected at least 1, got {batch_size}")
    pads = (pad_id if source_pad_id is None else source_pad_id, pad_id)
    per_epoch = -(-len(pairs) // batch_size)

    @lru_cache(maxsize=2)
    def order(epoch: int) -> list[np.ndarray]:
        chance = np.random.default_rng((seed, epoch))
        shuffled = chance.permutation(len(pairs))
        batches = []
        for start in range(0, len(shuffled), 50 * batch_size):
            pool = shuffled[start : start + 50 * batch_size]
            pool = pool[np.lexsort([[len(pairs[i][side]) for i in pool] for side in (0, 1)])]
            batches += [pool[i : i + batch_size] for i in range(0, len(pool), batch_size)]
        return [batches[i] for i in chance.permutation(len(batches))]

    def batch(step: int) -> tuple[Tensor, Tensor]:
        chosen = order(step // per_epoch)[step % per_epoch]
        return tuple(padded([pairs[i][side] for i in chosen], pads[side]) for side in (0, 1))

    return batch


def translation_loss(
    model: SequenceToSequenceModel,
    batch: tuple[Tensor, Tensor],
    token_loss: Callable[..., Tensor] = nn.functional.nll_loss,
) -> Tensor:
    r"""$-\frac{1}{n} \sum_t \log P(y_{t+1} \mid y_{\le t}, x)$ over the n target tokens that are no padding, in nats.

    Teacher forcing: the model reads the true target so far, not what it would have written itself. Where several
    processes share a batch, each weighs its part by its n: the mean of their losses is the loss of the whole batch.
    token_loss: what is averaged over the tokens, as here or `label_smoothed_cross_entropy`.
    """
    source, target = batch
    given, wanted = target[:, :-1], target[:, 1:].flatten()
    n = (wanted != model.pad_id).sum()
    require(bool(n > 0), "target: expected a token after the start token in some row of the batch, got padding alone")
    loss = token_loss(model.log_probs(source, given).flatten(0, 1), wanted, ignore_index=model.pad_id)
    # Without gradients it is no training step but an evaluation, in which each process reads the whole batch.
    return loss * (n / average(n.to(loss.dtype))) if torch.is_grad_enabled() else loss
