"""What the recipes of chapter 13 share: GPTs on the ladder's text, the usual way to train them and a faster one."""

from collections.abc import Callable

import torch
from torch import nn

from recipes.muon import MuonAndAdamW
from transformer_lib.models import GPT, Windowed
from transformer_lib.models.trained import PARTS
from transformer_lib.text import CharTokenizer, load_corpus

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
    parts = {part: kinds[arguments[part]] for part, kinds in PARTS.items() if part in arguments}
    model = GPT(**arguments | parts)
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


def windowed(model: GPT, window: int) -> Windowed:
    """The model on a text of any length."""
    return Windowed(model, window)
