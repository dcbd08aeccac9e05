"""GPT against nn.TransformerEncoder, causal, with the same weights; decoding with the cache against without."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from benchmarks.measure import Row, ratio
from tests.parts.pytorchs import copy_encoder_layer, copy_norm
from transformer_lib.decoding import generate
from transformer_lib.models import GPT
from transformer_lib.training import next_token_loss

SIZE = {"vocab_size": 256, "longest": 640, "d_model": 128, "heads": 4, "layers": 4}


class OnTorch(nn.Module):
    """The same model as `ours`, its layers in nn.TransformerEncoder; embeddings, positions and output around it."""

    def __init__(self, ours: GPT):
        super().__init__()
        d_model, heads, layers = (SIZE[key] for key in ("d_model", "heads", "layers"))
        layer = nn.TransformerEncoderLayer(
            d_model, heads, 4 * d_model, 0.0, nn.functional.gelu, batch_first=True, norm_first=True
        )
        self.stack = nn.TransformerEncoder(layer, layers, nn.LayerNorm(d_model), enable_nested_tensor=False)
        for mine, theirs in zip(ours.layers, self.stack.layers, strict=True):
            copy_encoder_layer(mine, theirs)
        copy_norm(ours.norm, self.stack.norm)
        self.embedding = nn.Embedding.from_pretrained(ours.embedding.weight.detach().clone(), freeze=False)
        self.rows = nn.Parameter(ours.positions.rows.detach().clone())

    def log_probs(self, ids: Tensor) -> Tensor:
        """As GPT's."""
        n = ids.shape[1]
        mask = torch.ones(n, n, dtype=torch.bool).triu(1)
        X = self.stack(self.embedding(ids) + self.rows[:n], mask=mask, is_causal=True)
        return torch.log_softmax(X @ self.embedding.weight.T, dim=-1)


def against_pytorch(batch: int = 12, n: int = 64, rounds: int = 15) -> list[Row]:
    """One training step, loss to gradients, no dropout; both give the same loss, which is asserted."""
    torch.manual_seed(0)
    ours = GPT(**SIZE)
    theirs = OnTorch(ours)
    ids = torch.randint(SIZE["vocab_size"], (batch, n + 1), generator=torch.Generator().manual_seed(0))
    losses = [next_token_loss(model, ids) for model in (ours, theirs)]
    assert torch.allclose(*losses, atol=1e-4), losses

    def step(model: nn.Module) -> Callable[[], None]:
        def work() -> None:
            for _ in range(2):
                model.zero_grad()
                next_token_loss(model, ids).backward()

        return work

    times, seconds, seconds_theirs = ratio(step(ours), step(theirs), rounds)
    details = f"batch {batch}, n {n}, d_model 128, 4 layers; {500 * seconds:.3g} ms and {500 * seconds_theirs:.3g} ms"
    return [Row("GPT / on nn.TransformerEncoder, training step", times, 1.0, False, "times", f"{details} a step")]


def cached(context: int = 512, more: int = 8, rounds: int = 3) -> list[Row]:
    """Some tokens more after a prefix: with the cache each reads one token, without it the whole text again."""
    torch.manual_seed(0)
    model = GPT(**SIZE).double().eval()
    prefix = torch.randint(SIZE["vocab_size"], (context,), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        state = model.step(prefix[:-1])[1]

    def with_cache() -> list[int]:
        new, after, ids = prefix[-1:], state, prefix.tolist()
        with torch.no_grad():
            for _ in range(more):
                log_probs, after = model.step(new, after)
                new = log_probs[-1].argmax(keepdim=True)
                ids.append(int(new))
        return ids

    def without() -> list[int]:
        ids = prefix.tolist()
        with torch.no_grad():
            for _ in range(more):
                ids.append(int(model.log_probs(torch.tensor(ids))[-1].argmax()))
        return ids

    assert with_cache() == without() == generate(model, prefix, more, temperature=0)
    times, seconds, seconds_cached = ratio(without, with_cache, rounds)
    details = f"{more} tokens after {context}; {1e3 * seconds / more:.3g} ms and {1e3 * seconds_cached / more:.3g} ms"
    return [Row("GPT, a token without / with the cache", times, 8, True, "times", f"{details} a token")]
