"""Losses: cross-entropy against targets that are not quite certain.

Chapter 10.
"""

from jaxtyping import Float, Int
from torch import Tensor

from ..checks import as_ids, require


def label_smoothed_cross_entropy(
    log_probs: Float[Tensor, "*batch v"], targets: Int[Tensor, "*batch"], ignore_index: int = -100, epsilon: float = 0.1
) -> Float[Tensor, ""]:
    r"""$-\frac{1}{n} \sum_t \sum_w q_t(w) \log P_t(w)$ in nats, $q_t(w) = (1 - \epsilon) [w = y_t] + \epsilon / v$.

    Shapes: log_probs (..., v), targets y (...); the mean is over the n targets that are not `ignore_index`: padding
    counts neither above nor below. Epsilon 0 is plain cross-entropy. Equal to torch's cross_entropy of the same scores
    with label_smoothing = epsilon. Source: Szegedy et al. (2016), 7; Vaswani et al. (2017), 5.4.
    """
    require(0 <= epsilon < 1, f"epsilon: expected a share from 0 to below 1, got {epsilon}")
    require(
        log_probs.dim() >= 1 and log_probs.shape[:-1] == targets.shape,
        f"targets: expected one a distribution, {tuple(log_probs.shape[:-1])}, got {tuple(targets.shape)}",
    )
    counts = targets != ignore_index
    n = counts.sum()
    require(bool(n > 0), f"targets: expected at least one that counts, got only {ignore_index}, which is ignored")
    log_probs, y = log_probs[counts], as_ids(targets[counts], log_probs.shape[-1], "targets")
    of_y = log_probs.gather(-1, y.unsqueeze(-1)).sum()
    return -((1 - epsilon) * of_y + epsilon * log_probs.mean(-1).sum()) / n
