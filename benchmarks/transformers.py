"""The Transformer's training step against nn.Transformer's, and beam search for many sentences at a time."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from benchmarks.measure import Row, ratio
from tests.parts.pytorchs import as_pytorchs
from transformer_lib.decoding import beam_search_all
from transformer_lib.models import Transformer
from transformer_lib.parts.layers import PostNorm, PreNorm
from transformer_lib.parts.positions import SinusoidalPositions
from transformer_lib.training import translation_loss

SIZE = {"vocab_size": 4000, "d_model": 256, "heads": 4, "layers": 3, "d_ff": 512}


class OnTorch(nn.Module):
    """The same model as `ours`, its weights copied into nn.Transformer; embeddings, positions and output around it."""

    def __init__(self, ours: Transformer):
        super().__init__()
        self.pad_id, self.stacks = ours.pad_id, as_pytorchs(ours)
        self.embedding = nn.Embedding.from_pretrained(ours.source_embedding.weight.detach().clone(), freeze=False)
        self.positions, self.root = SinusoidalPositions(512, ours.d_model), ours.d_model**0.5

    def log_probs(self, source: Tensor, target: Tensor) -> Tensor:
        """As Transformer's."""
        X, Y = (self.embedding(ids) * self.root + self.positions(ids.shape[1]) for ids in (source, target))
        padding, n = source == self.pad_id, target.shape[1]
        later = torch.ones(n, n, dtype=torch.bool).triu(1)
        Z = self.stacks(
            X,
            Y,
            tgt_mask=later,
            src_key_padding_mask=padding,
            memory_key_padding_mask=padding,
            tgt_is_causal=True,
        )
        return torch.log_softmax(Z @ self.embedding.weight.T, dim=-1)


def against_pytorch(batch: int = 64, m: int = 12, n: int = 12, rounds: int = 9) -> list[Row]:
    """One training step, loss to gradients, no dropout; both give the same loss, which is asserted."""
    chance = torch.Generator().manual_seed(0)
    source = torch.randint(3, SIZE["vocab_size"], (batch, m), generator=chance)
    target = torch.randint(3, SIZE["vocab_size"], (batch, n), generator=chance)
    source[: batch // 4, -3:] = 0
    rows = []
    for wrap in (PostNorm, PreNorm):
        torch.manual_seed(0)
        ours = Transformer(**SIZE, dropout=0.0, wrap=wrap)
        theirs = OnTorch(ours)
        losses = [translation_loss(model, (source, target)) for model in (ours, theirs)]
        assert torch.allclose(*losses, atol=1e-4), losses

        def step(model: nn.Module) -> Callable[[], None]:
            def work() -> None:
                for _ in range(2):
                    model.zero_grad()
                    translation_loss(model, (source, target)).backward()

            return work

        times, seconds, seconds_theirs = ratio(step(ours), step(theirs), rounds)
        details = f"batch {batch}, m {m}, n {n}, d_model 256, d_ff 512, 3 and 3 layers, vocabulary 4000; "
        details += f"{500 * seconds:.3g} ms and {500 * seconds_theirs:.3g} ms a step"
        rows.append(Row(f"Transformer, {wrap.__name__} / on nn.Transformer", times, 1.05, False, "times", details))
    return rows


def batched_beam(count: int = 60, beam: int = 4, length: int = 15, rounds: int = 3) -> list[Row]:
    """Beam search one sentence at a time or thirty: the same hypotheses, less work."""
    torch.manual_seed(0)
    model = Transformer(**SIZE, dropout=0.0).double().eval()
    chance = torch.Generator().manual_seed(0)
    sources = [torch.randint(3, 4000, (5 + i % 10,), generator=chance).tolist() for i in range(count)]

    def search(batch_size: int) -> list[list[list[int]]]:
        return [[h.ids for h in found] for found in beam_search_all(model, sources, beam, length, 1.0, batch_size)]

    assert search(30) == search(1)
    times, seconds, seconds_batched = ratio(lambda: search(1), lambda: search(30), rounds)
    details = f"{count} sentences, beam {beam}, up to {length} tokens; {1e3 * seconds / count:.3g} ms and "
    details += f"{1e3 * seconds_batched / count:.3g} ms a sentence"
    return [Row("Beam search, one at a time / 30 at a time", times, 2, True, "times", details)]
