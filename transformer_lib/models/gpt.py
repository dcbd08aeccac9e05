"""GPT: a language model of attention alone; embedding, positions, layers that look back, softmax.

Chapter 13 builds on it; chapters 07 and 08 train small ones to look into.
"""

from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor, nn

from ..checks import as_batch, as_ids, require
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

    @classmethod
    def from_pretrained(cls, source: str | Path) -> "GPT":
        """GPT-2's weights: a folder, or a name such as "gpt2" at the Hugging Face hub; see `load_gpt2`."""
        from .pretrained import load_gpt2  # here: that module needs this class

        return load_gpt2(source)


class GPTClassifier(nn.Module):
    r"""Fine-tuning a GPT: $P(y \mid x) = \text{softmax}(h W_y)$, h the last layer's row at the end of the text.

    Trained on $L_3 = L_2 + \lambda L_1$: L_2 the labels' cross-entropy, L_1 that of the next tokens. extract_id: the
    token that ends each text, once in every row; padding may follow it. Source: Radford et al. (2018), 3.2.
    """

    def __init__(self, gpt: GPT, classes: int, extract_id: int, dropout: float = 0.1):
        super().__init__()
        require(classes >= 1, f"classes: expected at least 1, got {classes}")
        self.gpt, self.extract_id, self.dropout = gpt, extract_id, nn.Dropout(dropout)
        self.output = nn.Linear(gpt.embedding.embedding_dim, classes)
        start_small(self.output)

    def forward(self, ids: Tensor) -> tuple[Tensor, Tensor]:
        """Scores (batch, classes) before any softmax, and log P of the next tokens (batch, n, vocab_size)."""
        ids = as_batch(ids, self.gpt.vocab_size, "ids")
        ends = ids == self.extract_id
        require(bool((ends.sum(dim=1) == 1).all()), f"ids: expected the token {self.extract_id} once in every row")
        H, _ = self.gpt.hidden_states(ids)
        return self.output(self.dropout(H[ends])), torch.log_softmax(H @ self.gpt.embedding.weight.T, dim=-1)
