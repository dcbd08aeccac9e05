"""Learning rates that change while a model is trained.

Chapter 10.
"""

from collections.abc import Callable

from ..checks import require


def warmup_inverse_sqrt(d_model: int, warmup_steps: int) -> Callable[[int], float]:
    r"""$\eta(t) = d_{model}^{-1/2} \min(t^{-1/2},\; t \, T_w^{-3/2})$: up in a straight line to step $T_w$, then down.

    The rate of step t = 1, 2, ...; the peak is $(d_{model} T_w)^{-1/2}$ at $t = T_w$. A loop that counts from 0, as
    `fit` does, gets at 0 what step 1 has. Source: Vaswani et al. (2017), 5.3.
    """
    require(
        d_model >= 1 and warmup_steps >= 1, f"expected at least 1, got d_model={d_model}, warmup_steps={warmup_steps}"
    )

    def rate(t: int) -> float:
        require(t >= 0, f"t: expected a step from 0, got {t}")
        t = max(t, 1)
        return d_model**-0.5 * min(t**-0.5, t * warmup_steps**-1.5)

    return rate
