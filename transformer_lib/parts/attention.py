"""Attention: score, normalise, collect.

Chapter 05: Bahdanau's additive score. Chapter 06: the scaled dot product. Chapter 07: many heads. Chapter 13: rotary.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import zip_longest

import torch
from einops import rearrange
from jaxtyping import Bool, Float
from torch import Tensor, nn

from ..checks import require, require_width
from .cache import KeyValueCache
from .positions import rotate


def masked_softmax(
    S: Float[Tensor, "*batch m"], mask: Bool[Tensor, "*some m"] | Float[Tensor, "*some m"] | None
) -> Float[Tensor, "*batch m"]:
    r"""$\text{softmax}(S + M)$ over the last axis; a place that may not be looked at gets exactly 0.

    mask: boolean, True = may be looked at, or the textbook's M, which is added: 0, or $-\infty$ where nobody may look.
    It may lack axes that it would only repeat. A row that may look nowhere gets 0 everywhere instead of 0/0.
    """
    if mask is None:
        return torch.softmax(S, dim=-1)
    allowed = as_allowed(mask, S.shape)
    if mask.is_floating_point():
        S = S + mask.to(S.dtype).masked_fill(~allowed, 0)
    weights = torch.softmax(S.masked_fill(~allowed, torch.finfo(S.dtype).min), dim=-1)
    return weights.masked_fill(~allowed, 0)


def as_allowed(mask: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Where a mask, boolean or added, allows to look; an error unless it stretches to the scores' shape."""
    require(
        mask.dtype == torch.bool or mask.is_floating_point(),
        f"mask: expected True and False, or numbers to add to the scores, got {mask.dtype}",
    )
    fits = mask.dim() <= len(shape) and all(k in (1, n) for k, n in zip(mask.shape[::-1], shape[::-1], strict=False))
    require(
        fits, f"mask: expected a shape that stretches to that of the scores {tuple(shape)}, got {tuple(mask.shape)}"
    )
    return mask if mask.dtype == torch.bool else mask != -torch.inf  # NaN is no prohibition: it has to show


def scaled_dot_product_attention(
    Q: Float[Tensor, "*batch n d_k"],
    K: Float[Tensor, "*batch m d_k"],
    V: Float[Tensor, "*batch m d_v"],
    mask: Bool[Tensor, "*some m"] | Float[Tensor, "*some m"] | None = None,
    scale: float | None = None,
) -> tuple[Float[Tensor, "*batch n d_v"], Float[Tensor, "*batch n m"]]:
    r"""$S = \frac{Q K^\top}{\sqrt{d_k}}$, $A = \text{softmax}(S + M)$, $Z = A V$; returns Z and A.

    Shapes: Q (..., n, d_k), K (..., m, d_k), V (..., m, d_v), S and A (..., n, m), Z (..., n, d_v). Row i of A says how
    query i divides its attention among the m keys; it sums to 1, or is 0 where nothing may be looked at.
    mask: see masked_softmax; scale: what S is multiplied by instead of $1 / \sqrt{d_k}$.
    Equal to torch's function of the same name, that row of zeros included.
    Source: Vaswani et al., Attention Is All You Need (2017), 3.2.1.
    """
    check_queries_keys_values(Q, K, V)
    S = Q @ K.transpose(-2, -1) * (Q.shape[-1] ** -0.5 if scale is None else scale)
    A = masked_softmax(S, mask)
    return A @ V, A


def check_queries_keys_values(Q: Tensor, K: Tensor, V: Tensor) -> None:
    """One line of error unless the three fit together."""
    shapes = f"got Q {tuple(Q.shape)}, K {tuple(K.shape)}, V {tuple(V.shape)}"
    require(
        min(Q.dim(), K.dim(), V.dim()) >= 2, f"expected Q (..., n, d_k), K (..., m, d_k), V (..., m, d_v), {shapes}"
    )
    require(Q.shape[-1] == K.shape[-1] > 0, f"expected queries and keys of one width d_k, {shapes}")
    require(K.shape[-2] == V.shape[-2], f"expected a value for every key, {shapes}")
    require(stretch(Q.shape[:-2], K.shape[:-2], V.shape[:-2]), f"expected one batch for all three, {shapes}")
    require(
        Q.is_floating_point() and Q.dtype == K.dtype == V.dtype,
        f"expected floating-point numbers of one format, got Q {Q.dtype}, K {K.dtype}, V {V.dtype}; convert with .to()",
    )


def check_memory(X: Tensor, memory: Tensor | KeyValueCache, kept: KeyValueCache, heads: int, width: int) -> None:
    """One line of error unless X may look into the memory, whose keys and values are `kept`."""
    require(len(kept) > 0, "memory: expected keys and values of at least one token, got an empty cache")
    got = tuple(kept.K.shape if isinstance(memory, KeyValueCache) else memory.shape)
    require(stretch(X.shape[:-2], kept.K.shape[:-3]), f"memory: expected the batch of X {tuple(X.shape)}, got {got}")
    require(
        (kept.K.shape[-3], kept.K.shape[-1]) == (heads, width),
        f"memory: expected keys of {heads} heads, each {width} wide, got {got}; made by another module?",
    )


def stretch(*shapes: tuple[int, ...]) -> bool:
    """Whether shapes agree but for axes that are missing in front or have length 1."""
    axes = zip_longest(*(reversed(shape) for shape in shapes), fillvalue=1)
    return all(len({length for length in axis if length != 1}) <= 1 for axis in axes)


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
        keys = self.keys(H) if keys is None else keys
        fits = keys.shape == (*H.shape[:-1], len(self.v))
        require(fits, f"keys: expected those of H {tuple(H.shape)}, got {tuple(keys.shape)}")
        require(
            s.dim() < H.dim() or H.dim() == 2,
            f"s: expected a query for each memory H {tuple(H.shape)}, got {tuple(s.shape)}; "
            "for several queries each, give the memory an axis more",
        )
        a = masked_softmax(self.score(s, keys), mask)
        return torch.einsum("...m,...md->...d", a, H), a


class MultiHeadAttention(nn.Module):
    r"""$\text{head}_i = \text{Attention}(X W_i^Q, Y W_i^K, Y W_i^V)$ with Y the memory,
    $Z = \text{Concat}(\text{head}_1, \dots, \text{head}_h) W^O$.

    d_model: width of what comes in and goes out; heads: h, each of width $d_k = d_v = d_{model} / h$; kv_heads: so many
    heads of keys and values, each shared by h / kv_heads heads of queries (None: each its own); bias: whether each
    projection adds a vector; dropout: share of A that training sets to 0. The h matrices $W_i^Q$ stand side by side in
    one, `W_Q`, and so on. What X and the memory are makes the three kinds of attention: self-attention, both the same;
    masked self-attention, with a causal mask as well; source-target attention, X from the decoder and the memory from
    the encoder.
    Equal to torch.nn.MultiheadAttention, whose boolean mask says the opposite: True = may *not* be looked at.
    Source: Vaswani et al. (2017), 3.2.2; shared keys and values: Ainslie et al. (2023).
    """

    def __init__(self, d_model: int, heads: int, kv_heads: int | None = None, bias: bool = True, dropout: float = 0.0):
        super().__init__()
        kv_heads = heads if kv_heads is None else kv_heads
        require(min(d_model, heads, kv_heads) >= 1, f"expected at least 1, got {d_model=}, {heads=}, {kv_heads=}")
        require(d_model % heads == 0, f"d_model: expected a multiple of heads={heads}, got {d_model}")
        require(heads % kv_heads == 0, f"kv_heads: expected a divisor of heads={heads}, got {kv_heads}")
        require(0 <= dropout < 1, f"dropout: expected a share from 0 to below 1, got {dropout}")
        self.heads, self.kv_heads, self.d_k, self.dropout = heads, kv_heads, d_model // heads, dropout
        self.record: list[Tensor] | None = None  # where A is kept, if anybody asks; see record_attention
        self.W_Q = nn.Linear(d_model, d_model, bias)
        self.W_K = nn.Linear(d_model, kv_heads * self.d_k, bias)
        self.W_V = nn.Linear(d_model, kv_heads * self.d_k, bias)
        self.W_O = nn.Linear(d_model, d_model, bias)

    def project(
        self, X: Float[Tensor, "*batch n d_model"], memory: Float[Tensor, "*batch m d_model"] | KeyValueCache
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Q (..., h, n, d_k) from X; K and V (..., kv_heads, m, d_k) from the memory, or as `keys_values` made them."""
        Q = self._split("X", X, self.W_Q)
        kept = memory if isinstance(memory, KeyValueCache) else self.keys_values(memory)
        check_memory(X, memory, kept, self.kv_heads, self.d_k)
        return Q, kept.K, kept.V

    def keys_values(self, memory: Float[Tensor, "*batch m d_model"]) -> KeyValueCache:
        """K and V of a memory that many queries will look into: projected once, and given in its place."""
        return KeyValueCache(self._split("memory", memory, self.W_K), self._split("memory", memory, self.W_V))

    def _split(self, name: str, x: Tensor, W: nn.Linear) -> Float[Tensor, "*batch h n d_k"]:
        require(x.dim() >= 2, f"{name}: expected shape (..., n, d_model), got {tuple(x.shape)}")
        require_width(name, x, W.in_features)
        return rearrange(W(x), "... n (h d_k) -> ... h n d_k", d_k=self.d_k)

    def forward(
        self,
        X: Float[Tensor, "*batch n d_model"],
        memory: Float[Tensor, "*batch m d_model"] | KeyValueCache | None = None,
        mask: Tensor | None = None,
        cache: KeyValueCache | None = None,
    ) -> Float[Tensor, "*batch n d_model"]:
        """Z (..., n, d_model); memory None: X itself; or what `keys_values` made of it.

        mask: as in masked_softmax, (n, m) for all alike, (batch, n, m), or (batch, h, n, m) for each head; two axes
        are always (n, m), and a padding mask (batch, m) has to become (batch, 1, m): mask[:, None].
        cache: keys and values of the tokens before X; those of X join them, unless there is an error. Unless A is
        recorded, torch's fused function does the work: it never writes A down.
        """
        Q, K, V = self.project(X, X if memory is None else memory)
        if mask is not None and mask.dim() == X.dim() > 2:
            mask = mask.unsqueeze(-3)  # the same for every head
        if mask is not None:  # before the cache grows, so that a mask refused can be mended and tried again
            as_allowed(mask, (*Q.shape[:-1], K.shape[-2] + (0 if cache is None else len(cache))))
            mask = mask if mask.dtype == torch.bool else mask.to(Q.dtype)
        if cache is not None:
            K, V = cache.append(K, V)
        rate, shared = self.dropout if self.training else 0.0, self.heads != self.kv_heads
        if self.record is None:
            Z = nn.functional.scaled_dot_product_attention(Q, K, V, mask, rate, enable_gqa=shared)
        else:
            K, V = (x.repeat_interleave(self.heads // self.kv_heads, dim=-3) for x in (K, V))
            Z, A = scaled_dot_product_attention(Q, K, V, mask)
            if rate > 0:
                A = nn.functional.dropout(A, rate)
                Z = A @ V
            self.record.append(A)
        return self.W_O(rearrange(Z, "... h n d_k -> ... n (h d_k)"))

    def with_weights(
        self, X: Tensor, memory: Tensor | KeyValueCache | None = None, mask: Tensor | None = None
    ) -> tuple[Float[Tensor, "*batch n d_model"], Float[Tensor, "*batch h n m"]]:
        """Z, and the weights A of every head that made it."""
        with record_attention(self) as maps:
            Z = self(X, memory, mask)
        return Z, maps[0][0]


class RotaryAttention(MultiHeadAttention):
    r"""`MultiHeadAttention` over a text itself whose queries and keys are brought to one length and then turned.

    $q_s \leftarrow R_s \, q_s / \text{rms}(q_s)$, the keys likewise: a score depends on directions and on the distance
    s - t, and no position has to be added to the embeddings. d_model / heads must be even.
    Source: Su et al., RoFormer (2021); normalised queries and keys: Henry et al. (2020).
    """

    start = 0  # the position of the first row of X; forward sets it

    def forward(
        self, X: Tensor, memory: None = None, mask: Tensor | None = None, cache: KeyValueCache | None = None
    ) -> Float[Tensor, "*batch n d_model"]:
        """As in MultiHeadAttention; a memory of its own has no positions that could be compared."""
        require(memory is None, "memory: expected None, attention to the text itself, got another text")
        self.start = 0 if cache is None else len(cache)
        return super().forward(X, None, mask, cache)

    def project(self, X: Tensor, memory: Tensor | KeyValueCache) -> tuple[Tensor, Tensor, Tensor]:
        """As in MultiHeadAttention, Q and K turned."""
        Q, K, V = super().project(X, memory)
        Q, K = (rotate(nn.functional.rms_norm(x, (self.d_k,)), self.start) for x in (Q, K))
        return Q, K, V


@contextmanager
def record_attention(model: nn.Module) -> Iterator[list[list[Tensor]]]:
    """While it is open, every MultiHeadAttention inside the model keeps its A (..., h, n, m): one list a module.

    The modules come in the order in which the model holds them; each adds one A a call. What is recorded is what the
    model computes with, not a second computation beside it.
    """
    modules = [module for module in model.modules() if isinstance(module, MultiHeadAttention)]
    require(len(modules) > 0, f"model: expected one with MultiHeadAttention inside, got {type(model).__name__}")
    before, maps = [module.record for module in modules], [[] for _ in modules]
    try:
        for module, record in zip(modules, maps, strict=True):
            module.record = record
        yield maps
    finally:
        for module, record in zip(modules, before, strict=True):
            module.record = record
