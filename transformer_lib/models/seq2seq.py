"""Sequence to sequence: an encoder reads the source, a decoder writes the target.

Chapter 04: everything passes through one vector c. Chapter 05: the decoder looks back with attention.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from ..checks import as_batch, require, require_specials
from ..parts.attention import AdditiveAttention
from ..parts.masks import padding_mask
from ..parts.recurrent import GRUCell, State, hidden, unroll, unroll_masked
from ..protocols import SequenceToSequenceModel


@dataclass(frozen=True)
class Memory:
    """What the encoder leaves: H, one memo for each source token (batch, m, d_h); the mask; c, the last memo."""

    H: Tensor
    mask: Tensor
    c: State
    keys: Tensor | None = None  # what attention computes once for a whole source


class Encoder(nn.Module):
    """Reads the source forwards and backwards, each with a cell of half the width; padding is not read.

    c is what both end with, side by side: the forward cell at the last token, the backward one at the first.
    """

    def __init__(self, d_x: int, d_h: int, cell: Callable[[int, int], nn.Module], dropout: float):
        super().__init__()
        require(d_h % 2 == 0, f"d_h: expected an even width, half for each direction, got {d_h}")
        self.dropout = nn.Dropout(dropout)
        self.forwards = cell(d_x, d_h // 2)
        self.backwards = cell(d_x, d_h // 2)

    def forward(self, X: Tensor, mask: Tensor) -> Memory:
        """The source's embeddings (batch, m, d_x) and mask (batch, m) -> Memory."""
        X = self.dropout(X)
        H_right, c_right = unroll_masked(self.forwards, X, mask)
        H_left, c_left = unroll_masked(self.backwards, X.flip(1), mask.flip(1))
        H = torch.cat([H_right, H_left.flip(1)], dim=-1)
        return Memory(self.dropout(H), mask, _side_by_side(c_right, c_left))


class Decoder(nn.Module):
    """c is the initial state, and all that the decoder ever hears of the source (the textbook's 7.6.1)."""

    def __init__(self, d_x: int, d_h: int, cell: Callable[[int, int], nn.Module], dropout: float):
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.cell = cell(d_x, d_h)

    def prepare(self, memory: Memory) -> Memory:
        """Nothing to compute beforehand."""
        return memory

    def forward(self, Y: Tensor, memory: Memory, state: State | None) -> tuple[Tensor, Tensor | None, State]:
        """Target embeddings (batch, n, d_x) -> what the output layer reads (batch, n, d_h), weights, state."""
        S, state = unroll(self.cell, self.dropout(Y), memory.c if state is None else state)
        return S, None, state


class ContextDecoder(Decoder):
    """The variant: c is the initial state and comes with every input too, [y_t; c]."""

    def __init__(self, d_x: int, d_h: int, cell: Callable[[int, int], nn.Module], dropout: float):
        super().__init__(d_x, d_h, cell, dropout)
        self.cell = cell(d_x + d_h, d_h)

    def forward(self, Y: Tensor, memory: Memory, state: State | None) -> tuple[Tensor, Tensor | None, State]:
        """As Decoder."""
        Y = self.dropout(Y)
        c = hidden(memory.c).unsqueeze(1).expand(-1, Y.shape[1], -1)
        S, state = unroll(self.cell, torch.cat([Y, c], dim=-1), memory.c if state is None else state)
        return S, None, state


class AttentionDecoder(Decoder):
    """Looks at the whole source at each step: c_t from s_{t-1} comes with the input, [y_t; c_t].

    What the output layer reads is tanh of a linear layer over [s_t; c_t].
    """

    def __init__(self, d_x: int, d_h: int, cell: Callable[[int, int], nn.Module], dropout: float):
        super().__init__(d_x, d_h, cell, dropout)
        self.attention = AdditiveAttention(d_h, d_h, d_h)
        self.cell = cell(d_x + d_h, d_h)
        self.readout = nn.Linear(2 * d_h, d_h)

    def prepare(self, memory: Memory) -> Memory:
        """U h_i, once for the whole source."""
        return replace(memory, keys=self.attention.keys(memory.H))

    def forward(self, Y: Tensor, memory: Memory, state: State | None) -> tuple[Tensor, Tensor | None, State]:
        """As Decoder; the weights are (batch, n, m)."""
        state = memory.c if state is None else state
        S, A = [], []
        for y in self.dropout(Y).unbind(dim=1):
            c, a = self.attention(hidden(state), memory.H, memory.mask, memory.keys)
            state = self.cell(torch.cat([y, c], dim=-1), state)
            S.append(torch.cat([hidden(state), c], dim=-1))
            A.append(a)
        return torch.tanh(self.readout(torch.stack(S, dim=1))), torch.stack(A, dim=1), state


class Seq2Seq(nn.Module, SequenceToSequenceModel):
    r"""$P(y_1, \dots, y_n \mid x_1, \dots, x_m) = \prod_t P(y_t \mid y_{<t}, c)$, or $c_t$ with attention.

    One vocabulary and one embedding matrix serve both languages. decoder: Decoder, ContextDecoder or AttentionDecoder.
    Source: Sutskever et al. (2014), Cho et al. (2014), Bahdanau et al. (2015); the textbook's 7.6 and 7.7.
    """

    def __init__(
        self,
        vocab_size: int,
        d_x: int,
        d_h: int,
        decoder: Callable[..., Decoder] = AttentionDecoder,
        cell: Callable[[int, int], nn.Module] = GRUCell,
        dropout: float = 0.0,
        specials: tuple[int, int, int] = (0, 1, 2),
    ):
        super().__init__()
        self.vocab_size = vocab_size
        require_specials(specials, vocab_size)
        self.pad_id, self.start_id, self.end_id = specials
        self.source_pad_id = self.pad_id
        self.embedding = nn.Embedding(vocab_size, d_x)
        self.encoder = Encoder(d_x, d_h, cell, dropout)
        self.decoder = decoder(d_x, d_h, cell, dropout)
        self.dropout = nn.Dropout(dropout)
        self.output = nn.Linear(d_h, vocab_size)

    def encode(self, source: Tensor) -> Memory:
        """Read the source ids (batch, m), padded with pad_id."""
        source = as_batch(source, self.vocab_size, "source")
        mask = padding_mask(source, self.pad_id)
        require(bool(mask.any(-1).all()), "source: expected at least one token in every row, got one of padding alone")
        return self.decoder.prepare(self.encoder(self.embedding(source), mask))

    def step(self, ids: Tensor, memory: Memory, state: State | None = None) -> tuple[Tensor, State]:
        """Log probabilities after each of the target's ids (batch, n, vocab_size), and the new state."""
        ids = as_batch(ids, self.vocab_size, "ids", len(memory.H))
        S, _, state = self.decoder(self.embedding(ids), memory, state)
        return torch.log_softmax(self.output(self.dropout(S)), dim=-1), state

    def choose(self, rows: Tensor, memory: Memory, state: State) -> tuple[Memory, State]:
        """Memory and state of some rows of the batch, in this order."""
        keys = None if memory.keys is None else memory.keys[rows]
        return Memory(memory.H[rows], memory.mask[rows], _rows(memory.c, rows), keys), _rows(state, rows)

    def weights(self, source: Tensor, target: Tensor) -> Tensor:
        """The attention weights (batch, n, m) with which each of the target's ids looks at the source."""
        memory = self.encode(source)
        target = as_batch(target, self.vocab_size, "target", len(memory.H))
        A = self.decoder(self.embedding(target), memory, None)[1]
        require(A is not None, f"model: expected one with attention, got a {type(self.decoder).__name__}")
        return A


def _side_by_side(one: State, other: State) -> State:
    if isinstance(one, tuple):
        return torch.cat([one[0], other[0]], dim=-1), torch.cat([one[1], other[1]], dim=-1)
    return torch.cat([one, other], dim=-1)


def _rows(state: State, rows: Tensor) -> State:
    return (state[0][rows], state[1][rows]) if isinstance(state, tuple) else state[rows]
