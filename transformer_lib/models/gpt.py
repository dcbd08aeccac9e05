"""GPT: a language model of attention alone; embedding, positions, layers that look back, softmax.

Chapter 13 builds on it; chapters 07 and 08 train small ones to look into.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from ..checks import as_ids, require
from ..parts.attention import MultiHeadAttention
from ..parts.cache import KeyValueCache, own_caches
from ..parts.layers import EncoderLayer, FeedForward, LayerNorm, PreNorm
from ..parts.masks import causal_mask
from ..parts.positions import LearnedPositions
from ..protocols import LanguageModel
from .starts import start_small


class GPT(nn.Module, LanguageModel):
    r"""$h_0 = U W_e + W_p$, $h_l = \text{layer}(h_{l-1})$, $P(u) = \text{softmax}(h_N W_e^\top)$.

    vocab_size; longest: so many tokens at most, where positions are learned; d_model, heads, layers: widths and depth,
    d_ff = 4 d_model; dropout; positions: makes the part that gives a row a position, of (longest, d_model), or None for
    none at all; wrap: PreNorm (GPT-2) or PostNorm (GPT-1); attention, f: what else the layers are made of. The output
    layer is the embedding matrix again. The state is one KeyValueCache a layer. Source: Radford et al. (2018, 2019).
    """

    def __init__(
        self,
        vocab_size: int,
        longest: int,
        d_model: int,
        heads: int,
        layers: int,
        dropout: float = 0.0,
        positions: Callable[[int, int], nn.Module] | None = LearnedPositions,
        wrap: Callable[..., nn.Module] = PreNorm,
        attention: Callable[..., MultiHeadAttention] = MultiHeadAttention,
        f: Callable[[Tensor], Tensor] = nn.functional.gelu,
    ):
        super().__init__()
        require(vocab_size >= 1 and layers >= 1, f"expected at least 1, got vocab_size={vocab_size}, layers={layers}")
        self.vocab_size = vocab_size
        self.embedding = nn.Embedding(vocab_size, d_model)
        self.positions = None if positions is None else positions(longest, d_model)
        self.dropout = nn.Dropout(dropout)
        self.layers = nn.ModuleList(
            EncoderLayer(
                attention(d_model, heads, dropout=dropout), FeedForward(d_model, 4 * d_model, f), wrap, dropout
            )
            for _ in range(layers)
        )
        self.norm = LayerNorm(d_model) if isinstance(self.layers[0].attention, PreNorm) else nn.Identity()
        self.apply(start_small)
        for layer in self.layers:  # what is added to the detour starts smaller, the more layers add to it
            for W in (layer.attention.sublayer.W_O, layer.feed_forward.sublayer.W_2):
                nn.init.normal_(W.weight, std=0.02 / (2 * layers) ** 0.5)

    def hidden_states(
        self, ids: Tensor, state: list[KeyValueCache] | None = None
    ) -> tuple[Tensor, list[KeyValueCache]]:
        """The last layer's output after each of the ids, (..., n, d_model), and the new state."""
        ids = as_ids(ids, self.vocab_size)
        n = ids.shape[-1]
        require(n > 0, "ids: expected at least one token, got none")
        state = own_caches(state, len(self.layers))
        before = len(state[0])
        X = self.embedding(ids)
        if self.positions is not None:
            X = X + self.positions(n, before)
        X, mask = self.dropout(X), causal_mask(n, before)
        for layer, cache in zip(self.layers, state, strict=True):
            X = layer(X, mask, cache)
        return self.norm(X), state

    def step(self, ids: Tensor, state: list[KeyValueCache] | None = None) -> tuple[Tensor, list[KeyValueCache]]:
        """Log probabilities after each of the ids, (..., n, vocab_size), and the new state."""
        X, state = self.hidden_states(ids, state)
        return torch.log_softmax(X @ self.embedding.weight.T, dim=-1), state
