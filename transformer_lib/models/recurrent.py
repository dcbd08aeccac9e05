"""A language model around a recurrent cell: embedding, cells, linear layer, softmax.

Chapters 02 and 03: the same model with an RNN, an LSTM or a GRU cell.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from ..checks import as_ids, require
from ..parts.recurrent import LSTMCell, State, unroll
from ..protocols import LanguageModel


class RecurrentLanguageModel(nn.Module, LanguageModel):
    r"""$P(w_{t+1} \mid w_1, \dots, w_t) = \text{softmax}(W h_t + b)$, with $h_t$ from a recurrent cell.

    vocab_size: number of tokens; d_x: width of the embedding; d_h: width of the hidden state; cell: makes a cell of
    (d_x, d_h), such as RNNCell, LSTMCell, GRUCell; layers: how many cells stand on one another; dropout: share of the
    embedding and of each layer's output that training sets to 0. The state is the list of the cells' states.
    Source: Mikolov et al., Recurrent Neural Network Based Language Model (2010); the textbook's 7.3.
    """

    def __init__(
        self,
        vocab_size: int,
        d_x: int,
        d_h: int,
        cell: Callable[[int, int], nn.Module] = LSTMCell,
        layers: int = 1,
        dropout: float = 0.0,
    ):
        super().__init__()
        require(vocab_size >= 1, f"vocab_size: expected at least 1, got {vocab_size}")
        require(d_x >= 1 and d_h >= 1, f"expected d_x and d_h of at least 1, got d_x={d_x}, d_h={d_h}")
        require(layers >= 1, f"layers: expected at least 1, got {layers}")
        self.vocab_size = vocab_size
        self.embedding = nn.Embedding(vocab_size, d_x)
        self.cells = nn.ModuleList(cell(d_x if layer == 0 else d_h, d_h) for layer in range(layers))
        self.dropout = nn.Dropout(dropout)
        self.output = nn.Linear(d_h, vocab_size)

    def hidden_states(self, ids: Tensor, state: list[State] | None = None) -> tuple[Tensor, list[State]]:
        """The last layer's h after each of the ids, (..., n, d_h), and the state of every layer."""
        ids = as_ids(ids, self.vocab_size)
        require(ids.shape[-1] > 0, "ids: expected at least one token, got none")
        state = [None] * len(self.cells) if state is None else state
        require(
            len(state) == len(self.cells),
            f"state: expected one for each of the {len(self.cells)} layers, got {len(state)}",
        )
        H, states = self.dropout(self.embedding(ids)), []
        for cell, before in zip(self.cells, state, strict=True):
            H, after = unroll(cell, H, before)
            H = self.dropout(H)
            states.append(after)
        return H, states

    def step(self, ids: Tensor, state: list[State] | None = None) -> tuple[Tensor, list[State]]:
        """Log probabilities after each of the ids, (..., n, vocab_size), and the new state."""
        H, state = self.hidden_states(ids, state)
        return torch.log_softmax(self.output(H), dim=-1), state
