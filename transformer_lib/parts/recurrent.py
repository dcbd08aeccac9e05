"""Recurrent cells: RNN, LSTM, GRU, and `unroll`, which carries one over a sequence.

Chapters 02 and 03. The part of a step that does not wait for the step before (`project`) is done for all steps at once.
"""

from collections.abc import Callable

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from ..checks import require, require_width

State = Tensor | tuple[Tensor, Tensor]


class RNNCell(nn.Module):
    r"""$h_t = f(W_h h_{t-1} + W_x x_t + b)$: the old memo and the new token make the new memo.

    Shapes: $x_t$ (..., d_x), $h_t$ (..., d_h), $W_x$ (d_h, d_x), $W_h$ (d_h, d_h), b (d_h). f: any function of a
    tensor, torch.tanh unless said otherwise. The state is h. Equal to torch.nn.RNNCell, whose two biases are one here.
    Source: Elman, Finding Structure in Time (1990); the textbook's 7.3.1.
    """

    def __init__(self, d_x: int, d_h: int, f: Callable[[Tensor], Tensor] = torch.tanh):
        super().__init__()
        self.d_x, self.d_h, self.f = _sizes(d_x, d_h), d_h, f
        self.W_x, self.W_h, self.b = _matrix(d_h, d_x, d_h), _matrix(d_h, d_h, d_h), _vector(d_h, d_h)

    def forward(
        self, x: Float[Tensor, "*batch d_x"], h: Float[Tensor, "*batch d_h"] | None = None
    ) -> Float[Tensor, "*batch d_h"]:
        """One step. No state given: h is 0."""
        return _forward(self, x, h)

    def initial_state(self, batch: tuple[int, ...]) -> Float[Tensor, "*batch d_h"]:
        """A blank memo, h = 0."""
        return self.b.new_zeros(*batch, self.d_h)

    def project(self, x: Float[Tensor, "*any d_x"]) -> Float[Tensor, "*any d_h"]:
        """$W_x x + b$, what does not wait for the step before."""
        return x @ self.W_x.T + self.b

    def step(
        self, projected: Float[Tensor, "*batch d_h"], h: Float[Tensor, "*batch d_h"]
    ) -> Float[Tensor, "*batch d_h"]:
        """The rest of the step, what does wait."""
        return self.f(projected + h @ self.W_h.T)


class LSTMCell(nn.Module):
    r"""Gates between 0 and 1 decide what the cell state c forgets, takes in and shows.

    $i, f, o = \sigma(W_h h_{t-1} + W_x x_t + b)$, each with its own rows of the matrices; candidate
    $\tilde c = \tanh(\dots)$; $c_t = f \odot c_{t-1} + i \odot \tilde c$; $h_t = o \odot \tanh(c_t)$.
    Shapes: $x_t$ (..., d_x), $h_t$ and $c_t$ (..., d_h), $W_x$ (4 d_h, d_x), $W_h$ (4 d_h, d_h), b (4 d_h), rows in the
    order i, f, c~, o. The state is (h, c). Equal to torch.nn.LSTMCell, whose two biases are one here.
    Source: Hochreiter and Schmidhuber (1997), with the forget gate of Gers et al. (2000); the textbook's 7.5.1.
    """

    def __init__(self, d_x: int, d_h: int):
        super().__init__()
        self.d_x, self.d_h = _sizes(d_x, d_h), d_h
        self.W_x, self.W_h, self.b = _matrix(4 * d_h, d_x, d_h), _matrix(4 * d_h, d_h, d_h), _vector(4 * d_h, d_h)

    def forward(
        self, x: Float[Tensor, "*batch d_x"], state: tuple[Tensor, Tensor] | None = None
    ) -> tuple[Tensor, Tensor]:
        """One step. No state given: h and c are 0."""
        return _forward(self, x, state)

    def initial_state(self, batch: tuple[int, ...]) -> tuple[Tensor, Tensor]:
        """h = 0 and c = 0."""
        return self.b.new_zeros(*batch, self.d_h), self.b.new_zeros(*batch, self.d_h)

    def project(self, x: Float[Tensor, "*any d_x"]) -> Float[Tensor, "*any d_gates"]:
        """$W_x x + b$ for the three gates and the candidate."""
        return x @ self.W_x.T + self.b

    def gates(self, projected: Tensor, h: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """The input gate i, the forget gate f, the candidate c~ and the output gate o."""
        i, f, candidate, o = (projected + h @ self.W_h.T).chunk(4, dim=-1)
        return torch.sigmoid(i), torch.sigmoid(f), torch.tanh(candidate), torch.sigmoid(o)

    def step(self, projected: Tensor, state: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        """The rest of the step: gates, then the cell state, then what is shown of it."""
        h, c = state
        i, f, candidate, o = self.gates(projected, h)
        c = f * c + i * candidate
        return o * torch.tanh(c), c


class GRUCell(nn.Module):
    r"""The LSTM's simpler relative: two gates, no separate cell state.

    $r, z = \sigma(W_h h_{t-1} + W_x x_t + b)$; candidate $\tilde h = \tanh(W_x x_t + b + r \odot (W_h h_{t-1} + b_h))$;
    $h_t = (1 - z) \odot \tilde h + z \odot h_{t-1}$.
    Shapes: $x_t$ (..., d_x), $h_t$ (..., d_h), $W_x$ (3 d_h, d_x), $W_h$ (3 d_h, d_h), b (3 d_h), rows in the order
    r, z, h~; $b_h$ (d_h) stands inside the reset, so it cannot be merged with b. The state is h.
    Equal to torch.nn.GRUCell. Source: Cho et al. (2014), in the form of torch and cuDNN.
    """

    def __init__(self, d_x: int, d_h: int):
        super().__init__()
        self.d_x, self.d_h = _sizes(d_x, d_h), d_h
        self.W_x, self.W_h, self.b = _matrix(3 * d_h, d_x, d_h), _matrix(3 * d_h, d_h, d_h), _vector(3 * d_h, d_h)
        self.b_h = _vector(d_h, d_h)

    def forward(
        self, x: Float[Tensor, "*batch d_x"], h: Float[Tensor, "*batch d_h"] | None = None
    ) -> Float[Tensor, "*batch d_h"]:
        """One step. No state given: h is 0."""
        return _forward(self, x, h)

    def initial_state(self, batch: tuple[int, ...]) -> Float[Tensor, "*batch d_h"]:
        """h = 0."""
        return self.b.new_zeros(*batch, self.d_h)

    def project(self, x: Float[Tensor, "*any d_x"]) -> Float[Tensor, "*any d_gates"]:
        """$W_x x + b$ for the two gates and the candidate."""
        return x @ self.W_x.T + self.b

    def gates(self, projected: Tensor, h: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The reset gate r, the update gate z and the candidate h~."""
        x_r, x_z, x_candidate = projected.chunk(3, dim=-1)
        h_r, h_z, h_candidate = (h @ self.W_h.T).chunk(3, dim=-1)
        r, z = torch.sigmoid(x_r + h_r), torch.sigmoid(x_z + h_z)
        return r, z, torch.tanh(x_candidate + r * (h_candidate + self.b_h))

    def step(self, projected: Tensor, h: Tensor) -> Tensor:
        """The rest of the step: z = 1 keeps the old memo whole."""
        r, z, candidate = self.gates(projected, h)
        return (1 - z) * candidate + z * h


def unroll(
    cell: nn.Module, X: Float[Tensor, "*batch n d_x"], state: State | None = None
) -> tuple[Float[Tensor, "*batch n d_h"], State]:
    """Carry one cell over a sequence: all hidden states H, one a step, and the last state.

    The same cell, with the same matrices, at every step; n steps one after the other, whatever the hardware.
    """
    require(X.dim() >= 2, f"X: expected shape (..., n, {cell.d_x}), got {tuple(X.shape)}")
    require_width("X", X, cell.d_x)
    state = _state_or_blank(cell, state, X.shape[:-2])
    H = []
    for projected in cell.project(X).unbind(dim=-2):
        state = cell.step(projected, state)
        H.append(hidden(state))
    require(len(H) > 0, f"X: expected at least one step, got shape {tuple(X.shape)}")
    return torch.stack(H, dim=-2), state


def unroll_masked(
    cell: nn.Module, X: Float[Tensor, "*batch n d_x"], mask: Bool[Tensor, "*batch n"]
) -> tuple[Float[Tensor, "*batch n d_h"], State]:
    """As `unroll`, but where the mask is False (padding) nothing is read: the state stays as it was."""
    require_width("X", X, cell.d_x)
    require(mask.shape == X.shape[:-1], f"mask: expected shape {tuple(X.shape[:-1])}, got {tuple(mask.shape)}")
    state = cell.initial_state(X.shape[:-2])
    H = []
    for projected, read in zip(cell.project(X).unbind(dim=-2), mask.unsqueeze(-1).unbind(dim=-2), strict=True):
        after = cell.step(projected, state)
        if isinstance(after, tuple):
            state = tuple(torch.where(read, new, old) for new, old in zip(after, state, strict=True))
        else:
            state = torch.where(read, after, state)
        H.append(hidden(state))
    return torch.stack(H, dim=-2), state


def hidden(state: State) -> Tensor:
    """h of a state, which is h or (h, c)."""
    return state[0] if isinstance(state, tuple) else state


def _forward(cell: nn.Module, x: Tensor, state: State | None) -> State:
    require_width("x", x, cell.d_x)
    return cell.step(cell.project(x), _state_or_blank(cell, state, x.shape[:-1]))


def _state_or_blank(cell: nn.Module, state: State | None, batch: tuple[int, ...]) -> State:
    """The state, once its shape was found right: broadcast, or unpacked along its batch, it would be silently wrong."""
    blank = cell.initial_state(batch)
    require(
        state is None or _shape(state) == _shape(blank),
        f"state: expected shape {_shape(blank)}, h or (h, c) as the {type(cell).__name__} has it, got {_shape(state)}",
    )
    return blank if state is None else state


def _shape(state: State | None) -> tuple:
    return tuple(map(_shape, state)) if isinstance(state, tuple | list) else tuple(getattr(state, "shape", ()))


def _sizes(d_x: int, d_h: int) -> int:
    require(d_x >= 1 and d_h >= 1, f"expected d_x and d_h of at least 1, got d_x={d_x}, d_h={d_h}")
    return d_x


def _matrix(rows: int, columns: int, d_h: int) -> nn.Parameter:
    """Start values, uniform within ±1/sqrt(d_h), as torch's cells have them."""
    return nn.Parameter(torch.empty(rows, columns).uniform_(-(d_h**-0.5), d_h**-0.5))


def _vector(size: int, d_h: int) -> nn.Parameter:
    return nn.Parameter(torch.empty(size).uniform_(-(d_h**-0.5), d_h**-0.5))
