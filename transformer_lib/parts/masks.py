"""Masks: boolean, True = may be looked at.

Chapters 04 and 05 (padding), 06 (causal).
"""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from ..checks import require


def padding_mask(ids: Int[Tensor, "*batch m"], pad_id: int) -> Bool[Tensor, "*batch m"]:
    """True at every token but padding."""
    return ids != pad_id


def causal_mask(n: int, before: int = 0) -> Bool[Tensor, "n m"]:
    """True on and below the diagonal: query t may look at key j where j <= t.

    before: so many keys stand before the n queries, and all may look at them: the rows for what is new.
    """
    require(n >= 1, f"n: expected at least 1 position, got {n}")
    require(before >= 0, f"before: expected 0 or more keys, got {before}")
    return torch.ones(n, before + n, dtype=torch.bool).tril(before)


def additive(mask: Bool[Tensor, "*any"]) -> Float[Tensor, "*any"]:
    r"""The textbook's M: 0 where looking is allowed, $-\infty$ where it is not; it is added to the scores."""
    return torch.zeros(mask.shape, device=mask.device).masked_fill(~mask, -torch.inf)
