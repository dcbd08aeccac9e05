"""What the recipes of chapter 13 share: GPTs on the ladder's text, the usual way to train them and a faster one."""

import time
from collections.abc import Callable

import torch
from torch import Tensor, nn

from recipes.muon import MuonAndAdamW
from transformer_lib.models import GPT
from transformer_lib.models.trained import with_parts
from transformer_lib.text import CharTokenizer, load_corpus
from transformer_lib.training import next_token_loss

USUAL = {"positions": "LearnedPositions", "attention": "MultiHeadAttention", "f": "gelu"}
ROTARY = {"positions": None, "attention": "RotaryAttention"}


def shakespeare() -> tuple[CharTokenizer, dict[str, torch.Tensor]]:
    """The tokenizer of the ladder, and the ids of the three parts."""
    corpus = load_corpus("shakespeare")
    tokenizer = CharTokenizer.train(corpus.train)
    return tokenizer, {
        part: torch.tensor(tokenizer.encode(getattr(corpus, part))) for part in ("train", "validation", "test")
    }


def make_gpt(arguments: dict, zero_outputs: bool = False) -> GPT:
    """A GPT by a card's arguments. zero_outputs: every sub-layer adds nothing at first."""
    model = GPT(**with_parts(arguments))
    if zero_outputs:
        for layer in model.layers:
            nn.init.zeros_(layer.attention.sublayer.W_O.weight)
            nn.init.zeros_(layer.feed_forward.sublayer.W_2.weight)
    return model


def adamw(model: nn.Module, rate: float = 1e-3) -> torch.optim.Optimizer:
    """The usual optimizer of a GPT; decay for the matrices alone."""
    matrices = [p for p in model.parameters() if p.dim() >= 2]
    others = [p for p in model.parameters() if p.dim() < 2]
    groups = [{"params": matrices, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, rate, betas=(0.9, 0.99))


def muon(model: nn.Module, muon_rate: float = 0.02, adam_rate: float = 5e-3) -> torch.optim.Optimizer:
    """Muon for the matrices of the layers, AdamW with a larger rate for the rest."""
    return MuonAndAdamW(model, muon_rate, adam_rate)


def cosine(steps: int, warm_up: int = 100, least: float = 0.1) -> Callable[[int], float]:
    """Up in a line, down in half a cosine to a tenth."""

    def factor(step: int) -> float:
        if step < warm_up:
            return (step + 1) / warm_up
        turn = torch.tensor(torch.pi * (step - warm_up) / (steps - warm_up))
        return float(least + (1 - least) * 0.5 * (1 + torch.cos(turn)))

    return factor


@torch.no_grad()
def held_out_loss(model: GPT, ids: Tensor, length: int, count: int) -> float:
    """Nats a token on so many windows, spread evenly over a text that was not trained on."""
    starts = torch.linspace(0, len(ids) - length - 1, count).long()
    rows = torch.stack([ids[i : i + length + 1] for i in starts.tolist()])
    return sum(float(next_token_loss(model, some)) * len(some) for some in rows.split(100)) / count


class Measured:
    """What `fit` asks now and then: the loss on a fixed part of the validation text, and the CPU-seconds of training.

    windows: so many stretches of `length` characters, each read from a fresh start. The time that measuring takes is
    not counted as training.
    """

    def __init__(self, ids: Tensor, length: int, windows: int = 1000):
        self.batches = ids[: windows * (length + 1)].view(windows, length + 1).split(100)
        self.begun, self.spent = time.process_time(), 0.0

    def __call__(self, model: GPT) -> dict[str, float]:
        """In nats a character."""
        clock = time.process_time()
        loss = sum(float(next_token_loss(model, batch)) * len(batch) for batch in self.batches)
        self.spent += time.process_time() - clock
        seconds = time.process_time() - self.begun - self.spent
        return {"loss": loss / sum(map(len, self.batches)), "cpu_seconds": round(seconds, 1)}
