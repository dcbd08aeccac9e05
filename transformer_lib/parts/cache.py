"""Keys and values of the tokens read so far, so that no token is projected twice.

Chapter 13. Decoding one token at a time needs its query alone, but the keys and values of all before it.
"""

from collections.abc import Sequence

from jaxtyping import Float
from torch import Tensor, cat

from ..checks import require


class KeyValueCache:
    """K and V (..., kv_heads, m, d_k) of one attention layer; m grows. Nothing it was given is ever changed."""

    def __init__(self, K: Tensor | None = None, V: Tensor | None = None):
        require((K is None) == (V is None), "cache: expected both keys and values, or neither, got one of them")
        self.K, self.V = K, V

    def __len__(self) -> int:
        """m: so many tokens are kept."""
        return 0 if self.K is None else self.K.shape[-2]

    def append(
        self, K: Float[Tensor, "*batch n d_k"], V: Float[Tensor, "*batch n d_v"]
    ) -> tuple[Float[Tensor, "*batch m d_k"], Float[Tensor, "*batch m d_v"]]:
        """Add those of n new tokens; return all, the new ones last. What does not fit is refused, and nothing kept."""
        require(
            K.shape[:-1] == V.shape[:-1],
            f"cache: expected a value for every key, got K {tuple(K.shape)}, V {tuple(V.shape)}",
        )
        if self.K is not None:
            for old, new in ((self.K, K), (self.V, V)):
                require(
                    (*new.shape[:-2], new.shape[-1]) == (*old.shape[:-2], old.shape[-1]),
                    f"cache: expected more tokens for what is kept, {tuple(old.shape)}, got {tuple(new.shape)}; "
                    "another batch or another layer needs a cache of its own",
                )
            K, V = cat([self.K, K], dim=-2), cat([self.V, V], dim=-2)
        self.K, self.V = K, V
        return K, V

    def copy(self) -> "KeyValueCache":
        """A cache that grows on its own from here; the tensors are shared, which is safe: none is changed."""
        return KeyValueCache(self.K, self.V)

    def choose(self, rows: Tensor) -> "KeyValueCache":
        """Those of some rows of the batch, in this order."""
        if self.K is None:
            return KeyValueCache()
        require(
            self.K.dim() >= 4,
            f"cache: expected a batch of texts, (batch, kv_heads, m, d_k), got one text, {tuple(self.K.shape)}",
        )
        return KeyValueCache(self.K[rows], self.V[rows])


def own_caches(state: Sequence[KeyValueCache] | None, layers: int) -> list[KeyValueCache]:
    """One cache a layer for a model to fill: empty ones, or a copy of its state, once that was found to fit."""
    if state is None:
        return [KeyValueCache() for _ in range(layers)]
    require(
        isinstance(state, Sequence) and all(isinstance(cache, KeyValueCache) for cache in state),
        f"state: expected None or what `step` returned, got a {type(state).__name__} of something else",
    )
    lengths = [len(cache) for cache in state]
    require(
        len(lengths) == layers and len(set(lengths)) == 1,
        f"state: expected {layers} caches, one a layer, of one length, got lengths {lengths}",
    )
    return [cache.copy() for cache in state]
