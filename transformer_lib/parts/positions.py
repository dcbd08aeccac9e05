"""Positions: what tells attention the order of its tokens, which by itself it cannot see.

Chapter 08: kinds that give one row a position, to be added to the embeddings. Chapter 13: queries and keys turned.
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ..checks import require


def sinusoidal_positions(length: int, d_model: int, start: int = 0) -> Float[Tensor, "length d_model"]:
    r"""$PE_{pos, 2i} = \sin(pos / 10000^{2i / d_{model}})$, $PE_{pos, 2i+1} = \cos(pos / 10000^{2i / d_{model}})$.

    Rows for the positions start, start + 1, ...; the pair i turns by $\omega_i = 10000^{-2i / d_{model}}$ radians a
    position, wavelength $2 \pi / \omega_i$. d_model must be even. Computed in float64, given in torch's
    default number format.
    Source: Vaswani et al. (2017), 3.5.
    """
    require(length >= 0 and start >= 0, f"expected length and start from 0, got length={length}, start={start}")
    require(start + length <= 2**53, f"start: expected positions that float64 tells apart, got {start}")
    require(d_model >= 2 and d_model % 2 == 0, f"d_model: expected an even width, a sine and a cosine, got {d_model}")
    pos = torch.arange(start, start + length, dtype=torch.float64).unsqueeze(1)
    omega = 10_000.0 ** (-torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)
    PE = torch.stack([torch.sin(pos * omega), torch.cos(pos * omega)], dim=-1).flatten(1)
    return PE.to(torch.get_default_dtype())


class SinusoidalPositions(nn.Module):
    """`sinusoidal_positions` as a part: rows for n positions from `start`; nothing to learn, no longest position.

    longest: so many rows are computed beforehand; every kind of positions is made alike, of (longest, d_model).
    scale: what the rows are multiplied by. Sines have the size of embeddings times the root of d_model, as the paper
    adds them; beside embeddings that start at 0.02, as GPT's do, sines of full size leave little to be seen of a token.
    """

    def __init__(self, longest: int, d_model: int, scale: float = 1.0):
        super().__init__()
        self.d_model, self.scale = d_model, scale
        self.register_buffer("rows", scale * sinusoidal_positions(longest, d_model), persistent=False)

    def forward(self, n: int, start: int = 0) -> Float[Tensor, "n d_model"]:
        """The rows of the positions start .. start + n - 1."""
        require(n >= 0 and start >= 0, f"expected n and start from 0, got n={n}, start={start}")
        if start + n <= len(self.rows):
            return self.rows[start : start + n].clone()  # theirs to change: the table stays as it is
        return self.scale * sinusoidal_positions(n, self.d_model, start).to(self.rows)


class LearnedPositions(nn.Module):
    """One learned row for each position from 0 to longest - 1; beyond them there is nothing, and an error says so.

    Source: Gehring et al. (2017); used by BERT and GPT.
    """

    def __init__(self, longest: int, d_model: int):
        super().__init__()
        require(longest >= 1 and d_model >= 1, f"expected at least 1, got longest={longest}, d_model={d_model}")
        self.rows = nn.Parameter(0.02 * torch.randn(longest, d_model))

    def forward(self, n: int, start: int = 0) -> Float[Tensor, "n d_model"]:
        """The rows of the positions start .. start + n - 1."""
        longest = len(self.rows)
        require(n >= 0 and start >= 0, f"expected n and start from 0, got n={n}, start={start}")
        require(
            start + n <= longest,
            f"positions: learned for {longest} tokens, got {start + n}; shorten the text or make more positions",
        )
        return self.rows[start : start + n]


def rotate(x: Float[Tensor, "*batch n d_k"], start: int = 0) -> Float[Tensor, "*batch n d_k"]:
    r"""Pair i of the vector at position t, $(x_{2i}, x_{2i+1})$, turned by the angle $t\,\omega_i$ (rotary positions).

    As complex numbers: $(x_{2i} + j x_{2i+1}) \, e^{j t \omega_i}$, $\omega_i = 10000^{-2i / d_k}$. So $q_s \cdot k_t$
    depends on the distance s - t alone. Shapes: x (..., n, d_k), its rows at the positions start, start + 1, ...; d_k
    even. Source: Su et al., RoFormer (2021).
    """
    turn = sinusoidal_positions(x.shape[-2], x.shape[-1], start).to(x)
    pairs = torch.view_as_complex(x.unflatten(-1, (-1, 2)).contiguous())
    return torch.view_as_real(pairs * torch.complex(turn[:, 1::2], turn[:, 0::2])).flatten(-2)
