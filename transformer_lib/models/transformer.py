"""The Transformer: an encoder that sees the whole source, a decoder that looks back and across.

Chapter 09 takes it apart, chapter 10 trains it to translate.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ..checks import as_batch, require, require_specials
from ..parts.attention import MultiHeadAttention
from ..parts.cache import KeyValueCache, own_caches
from ..parts.layers import DecoderLayer, EncoderLayer, FeedForward, LayerNorm, PostNorm, PreNorm
from ..parts.masks import causal_mask, padding_mask
from ..parts.positions import SinusoidalPositions
from ..protocols import SequenceToSequenceModel


@dataclass(frozen=True)
class EncodedSource:
    """H, one row for each source token (batch, m, d_model); the mask (batch, m); each decoder layer's K and V of H."""

    H: Tensor
    mask: Tensor
    keys_values: list[KeyValueCache]


class Transformer(nn.Module, SequenceToSequenceModel):
    r"""$P(y_t \mid y_{<t}, x)$ with attention alone: $X_0 = \sqrt{d_{model}} E_x + PE$, N encoder layers give H;
    $Y_0 = \sqrt{d_{model}} E_y + PE$, N decoder layers look at H; $\text{softmax}(Y_N E^\top)$.

    vocab_size: of both languages; layers: N; longest: how many positions `positions` is made for; dropout: of each
    sub-layer's output and of $X_0$, $Y_0$, as in the paper; wrap: PostNorm (the paper) or PreNorm, which needs a norm
    at the end of both stacks and gets it; specials: padding, start and end of the target; source_pad_id: the source's
    padding, if it is another. One matrix E is source embedding, target embedding and output layer.
    The state is one KeyValueCache a decoder layer. nn.Transformer has the norm at the end in PostNorm too.
    Source: Vaswani et al., Attention Is All You Need (2017).
    """

    def __init__(
        self,
        vocab_size: int,
        d_model: int = 512,
        heads: int = 8,
        layers: int = 6,
        d_ff: int = 2048,
        dropout: float = 0.1,
        longest: int = 512,
        positions: Callable[[int, int], nn.Module] = SinusoidalPositions,
        wrap: Callable[..., nn.Module] = PostNorm,
        specials: tuple[int, int, int] = (0, 1, 2),
        source_pad_id: int | None = None,
    ):
        super().__init__()
        require(layers >= 1, f"layers: expected at least 1, got {layers}")
        require_specials(specials, vocab_size)
        self.vocab_size, self.d_model = vocab_size, d_model
        self.pad_id, self.start_id, self.end_id = specials
        self.source_pad_id = self.pad_id if source_pad_id is None else source_pad_id

        def attention() -> MultiHeadAttention:
            return MultiHeadAttention(d_model, heads)

        def feed_forward() -> FeedForward:
            return FeedForward(d_model, d_ff)

        self.source_embedding = nn.Embedding(vocab_size, d_model)
        self.target_embedding = self.source_embedding
        self.positions = positions(longest, d_model)
        self.dropout = nn.Dropout(dropout)
        self.encoder = nn.ModuleList(EncoderLayer(attention(), feed_forward(), wrap, dropout) for _ in range(layers))
        self.decoder = nn.ModuleList(
            DecoderLayer(attention(), attention(), feed_forward(), wrap, dropout) for _ in range(layers)
        )
        pre = isinstance(self.encoder[0].attention, PreNorm)
        self.encoder_norm, self.decoder_norm = (LayerNorm(d_model) if pre else nn.Identity() for _ in range(2))
        self.output = nn.Linear(d_model, vocab_size, bias=False)
        self.apply(_start)
        self.output.weight = self.source_embedding.weight

    def embed(self, embedding: nn.Embedding, ids: Tensor, start: int = 0) -> Tensor:
        """Where a stack begins: embeddings times the root of d_model, plus positions from `start`, with dropout."""
        return self.dropout(embedding(ids) * self.d_model**0.5 + self.positions(ids.shape[-1], start))

    def encode(self, source: Tensor) -> EncodedSource:
        """Read the source ids (batch, m), padded with source_pad_id."""
        source = as_batch(source, self.vocab_size, "source")
        mask = padding_mask(source, self.source_pad_id)
        require(bool(mask.any(-1).all()), "source: expected at least one token in every row, got one of padding alone")
        X = self.embed(self.source_embedding, source)
        for layer in self.encoder:
            X = layer(X, mask[:, None])
        H = self.encoder_norm(X)
        return EncodedSource(H, mask, [layer.source_attention.sublayer.keys_values(H) for layer in self.decoder])

    def step(
        self, ids: Tensor, memory: EncodedSource, state: list[KeyValueCache] | None = None
    ) -> tuple[Tensor, list[KeyValueCache]]:
        """Log probabilities after each of the target's ids (batch, n, vocab_size), and the new state."""
        ids = as_batch(ids, self.vocab_size, "ids", len(memory.H))
        state = own_caches(state, len(self.decoder))
        n, before = ids.shape[-1], len(state[0])
        Y, mask = self.embed(self.target_embedding, ids, before), causal_mask(n, before)
        for layer, keys_values, cache in zip(self.decoder, memory.keys_values, state, strict=True):
            Y = layer(Y, keys_values, mask, memory.mask[:, None], cache)
        return torch.log_softmax(self.output(self.decoder_norm(Y)), dim=-1), state

    def choose(
        self, rows: Tensor, memory: EncodedSource, state: list[KeyValueCache]
    ) -> tuple[EncodedSource, list[KeyValueCache]]:
        """Memory and state of some rows of the batch, in this order."""
        kept = [keys_values.choose(rows) for keys_values in memory.keys_values]
        return EncodedSource(memory.H[rows], memory.mask[rows], kept), [cache.choose(rows) for cache in state]


def _start(part: nn.Module) -> None:
    """Xavier's start for the matrices, 0 for the biases; embeddings that the root of d_model brings to size 1."""
    if isinstance(part, nn.Linear):
        nn.init.xavier_uniform_(part.weight)
        if part.bias is not None:
            nn.init.zeros_(part.bias)
    if isinstance(part, nn.Embedding):
        nn.init.normal_(part.weight, std=part.embedding_dim**-0.5)
