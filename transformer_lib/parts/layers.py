"""Layers: normalisation, feed-forward network, and the encoder and decoder layers they make with attention.

Chapter 09 takes them apart; chapters 07 and 08 train with them.
"""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ..checks import require, require_width
from .attention import MultiHeadAttention
from .cache import KeyValueCache


def layer_norm(
    x: Float[Tensor, "*batch d_model"],
    gamma: Float[Tensor, " d_model"],
    beta: Float[Tensor, " d_model"],
    epsilon: float = 1e-5,
) -> Float[Tensor, "*batch d_model"]:
    r"""$\gamma \odot \frac{x - \mu}{\sqrt{\sigma^2 + \epsilon}} + \beta$, $\mu$ and $\sigma^2$ of x alone.

    Shapes: x (..., d_model), $\gamma$ and $\beta$ (d_model). $\sigma^2$ divides by d_model, not by d_model - 1.
    Source: Ba, Kiros and Hinton, Layer Normalization (2016).
    """
    mean = x.mean(dim=-1, keepdim=True)
    variance = ((x - mean) ** 2).mean(dim=-1, keepdim=True)
    return gamma * (x - mean) / torch.sqrt(variance + epsilon) + beta


class LayerNorm(nn.Module):
    r"""`layer_norm` with $\gamma$ (1 at the start) and $\beta$ (0) to be learned.

    Each vector on its own: no other token, no other sentence enters, in training or later. torch's fused function does
    the work without writing anything down in between and normalises half precision in float32.
    Equal to torch.nn.LayerNorm.
    """

    def __init__(self, d_model: int, epsilon: float = 1e-5):
        super().__init__()
        require(d_model >= 1, f"d_model: expected at least 1, got {d_model}")
        self.epsilon = epsilon
        self.gamma, self.beta = nn.Parameter(torch.ones(d_model)), nn.Parameter(torch.zeros(d_model))

    def forward(self, x: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch d_model"]:
        """Each vector on its own."""
        require_width("x", x, len(self.gamma))
        return nn.functional.layer_norm(
            x, self.gamma.shape, self.gamma.to(x.dtype), self.beta.to(x.dtype), self.epsilon
        )


def squared_relu(x: Tensor) -> Tensor:
    r"""$\max(0, x)^2$, in place of GELU. Source: So et al., Primer (2021)."""
    return torch.relu(x) ** 2


class FeedForward(nn.Module):
    r"""$\text{FFN}(x) = f(x W_1 + b_1) W_2 + b_2$, the same for every position, each on its own.

    Shapes: x (..., d_model), inside d_ff wide. f: torch.relu in the paper, GELU in BERT and GPT.
    Source: Vaswani et al. (2017), 3.3.
    """

    def __init__(
        self,
        d_model: int,
        d_ff: int,
        f: Callable[[Tensor], Tensor] = torch.relu,
        bias: bool = True,
        dropout: float = 0.0,
    ):
        super().__init__()
        require(min(d_model, d_ff) >= 1, f"expected widths of at least 1, got d_model={d_model}, d_ff={d_ff}")
        self.f, self.W_1, self.W_2 = f, nn.Linear(d_model, d_ff, bias), nn.Linear(d_ff, d_model, bias)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch d_model"]:
        """Wider, f, narrow again."""
        require_width("x", x, self.W_1.in_features)
        return self.W_2(self.dropout(self.f(self.W_1(x))))


class PostNorm(nn.Module):
    r"""$\text{LayerNorm}(x + \text{sublayer}(x))$: a sub-layer, its detour and its own norm, as in the paper."""

    def __init__(self, sublayer: nn.Module, norm: nn.Module, dropout: float = 0.0):
        super().__init__()
        self.sublayer, self.norm, self.dropout = sublayer, norm, nn.Dropout(dropout)

    def forward(self, x: Tensor, *others, **named) -> Tensor:
        """What else the sub-layer reads (memory, mask, cache) is handed through."""
        return self.norm(x + self.dropout(self.sublayer(x, *others, **named)))


class PreNorm(PostNorm):
    r"""$x + \text{sublayer}(\text{LayerNorm}(x))$: the detour stays free from end to end, as in GPT-2."""

    def forward(self, x: Tensor, *others, **named) -> Tensor:
        """What else the sub-layer reads is handed through; the norm is for x alone."""
        return x + self.dropout(self.sublayer(self.norm(x), *others, **named))


class EncoderLayer(nn.Module):
    """Self-attention, then the feed-forward network, each wrapped by `wrap`: PostNorm (the paper) or PreNorm.

    With a causal mask it is the layer of a GPT as well. Source: Vaswani et al. (2017), 3.1.
    """

    def __init__(
        self,
        attention: MultiHeadAttention,
        feed_forward: FeedForward,
        wrap: Callable[..., nn.Module] = PostNorm,
        dropout: float = 0.0,
    ):
        super().__init__()
        d_model = attention.W_Q.in_features
        self.attention = wrap(attention, LayerNorm(d_model), dropout)
        self.feed_forward = wrap(feed_forward, LayerNorm(d_model), dropout)

    def forward(
        self, X: Float[Tensor, "*batch n d_model"], mask: Tensor | None = None, cache: KeyValueCache | None = None
    ) -> Float[Tensor, "*batch n d_model"]:
        """X (..., n, d_model) -> the same shape; mask and cache as in MultiHeadAttention."""
        return self.feed_forward(self.attention(X, mask=mask, cache=cache))


class DecoderLayer(EncoderLayer):
    """Masked self-attention, source-target attention into the memory, feed-forward network, each wrapped by `wrap`.

    Source: Vaswani et al. (2017), 3.1.
    """

    def __init__(
        self,
        attention: MultiHeadAttention,
        source_attention: MultiHeadAttention,
        feed_forward: FeedForward,
        wrap: Callable[..., nn.Module] = PostNorm,
        dropout: float = 0.0,
    ):
        super().__init__(attention, feed_forward, wrap, dropout)
        self.source_attention = wrap(source_attention, LayerNorm(attention.W_Q.in_features), dropout)

    def forward(
        self,
        Y: Float[Tensor, "*batch n d_model"],
        memory: Float[Tensor, "*batch m d_model"] | KeyValueCache,
        mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        cache: KeyValueCache | None = None,
    ) -> Float[Tensor, "*batch n d_model"]:
        """Y (..., n, d_model) -> the same shape; memory, masks and cache as in MultiHeadAttention."""
        Y = self.attention(Y, mask=mask, cache=cache)
        Y = self.source_attention(Y, memory, memory_mask)
        return self.feed_forward(Y)
