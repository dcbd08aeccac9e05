"""Attention: score, normalise, collect.

Chapter 05: Bahdanau's additive score. Chapter 06 adds the scaled dot product.
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from ..checks import require, require_width


def masked_softmax(S: Float[Tensor, "*batch m"], mask: Bool[Tensor, "*batch m"] | None) -> Float[Tensor, "*batch m"]:
    r"""$\text{softmax}(S)$ over the last axis among the places that may be looked at; all others get exactly 0.

    A row without any such place gets 0 everywhere instead of 0/0.
    """
    if mask is None:
        return torch.softmax(S, dim=-1)
    require(mask.dtype == torch.bool, f"mask: expected True and False, got {mask.dtype}")
    require(
        mask.shape[-1] == S.shape[-1],
        f"mask: expected one entry for each of {S.shape[-1]} keys, got {tuple(mask.shape)}",
    )
    weights = torch.softmax(S.masked_fill(~mask, torch.finfo(S.dtype).min), dim=-1)
    return weights.masked_fill(~mask, 0)


class AdditiveAttention(nn.Module):
    r"""Bahdanau's attention: $e_{t,i} = v^\top \tanh(W s_{t-1} + U h_i)$, $a_t = \text{softmax}(e_t)$,
    $c_t = \sum_i a_{t,i} h_i$.

    Shapes: query s (..., d_s); memory H (..., m, d_h); W (d_a, d_s), U (d_a, d_h), v (d_a). $U h_i$ does not depend on
    the query: `keys` computes it once for a whole sentence.
    Source: Bahdanau et al., Neural Machine Translation by Jointly Learning to Align and Translate (2015), A.1.2.
    """

    def __init__(self, d_s: int, d_h: int, d_a: int):
        super().__init__()
        require(min(d_s, d_h, d_a) >= 1, f"expected widths of at least 1, got d_s={d_s}, d_h={d_h}, d_a={d_a}")
        self.d_s, self.d_h = d_s, d_h
        self.W = nn.Parameter(torch.empty(d_a, d_s).uniform_(-(d_s**-0.5), d_s**-0.5))
        self.U = nn.Parameter(torch.empty(d_a, d_h).uniform_(-(d_h**-0.5), d_h**-0.5))
        self.v = nn.Parameter(torch.empty(d_a).uniform_(-(d_a**-0.5), d_a**-0.5))

    def keys(self, H: Float[Tensor, "*batch m d_h"]) -> Float[Tensor, "*batch m d_a"]:
        """$U h_i$ for every place of the source."""
        require_width("H", H, self.d_h)
        return H @ self.U.T

    def score(self, s: Float[Tensor, "*batch d_s"], keys: Float[Tensor, "*batch m d_a"]) -> Float[Tensor, "*batch m"]:
        """The scores $e_{t,i}$ before normalising."""
        require_width("s", s, self.d_s)
        return torch.tanh((s @ self.W.T).unsqueeze(-2) + keys) @ self.v

    def forward(
        self,
        s: Float[Tensor, "*batch d_s"],
        H: Float[Tensor, "*batch m d_h"],
        mask: Bool[Tensor, "*batch m"] | None = None,
        keys: Float[Tensor, "*batch m d_a"] | None = None,
    ) -> tuple[Float[Tensor, "*batch d_h"], Float[Tensor, "*batch m"]]:
        """The context c and the weights a."""
        a = masked_softmax(self.score(s, self.keys(H) if keys is None else keys), mask)
        return torch.einsum("...m,...md->...d", a, H), a
