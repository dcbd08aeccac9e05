"""What the recipes for language models share: train, measure on held-out text, write weights and card.

Chapters 02 and 03. A recipe that was killed goes on from its last checkpoint when it is started again.
"""

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from recipes.cards import options
from recipes.one_model import curve, train_and_keep
from transformer_lib.evaluation import bits_per_token
from transformer_lib.text import Tokenizer
from transformer_lib.training import History, windows


def warm_up_then_down(steps: int, warm_up: int = 100) -> Callable[[int], float]:
    """The learning rate's factor: up to 1 in the first steps, then in a straight line down to 0."""
    warm_up = max(warm_up, 1)
    return lambda step: min((step + 1) / warm_up, (steps - step) / max(steps - warm_up, 1))


def train(
    name: str,
    arguments: dict,
    make: Callable[..., nn.Module],
    tokenizer: Tokenizer,
    train_ids: Tensor,
    validation_ids: Tensor | Sequence[Sequence[int]],
    test_ids: Tensor | Sequence[Sequence[int]],
    about: dict,
    steps: int,
    learning_rate: float,
    length: int,
    batch_size: int,
    weight_decay: float = 0.0,
    every: int = 500,
    seed: int = 0,
) -> None:
    """Train one model by the settings, measure it, and write data/models/NAME.*.

    Measured on the whole test text and on the first 100,000 tokens (or texts) of the validation text.
    """
    chosen = options(f"Train {name}; goes on from its checkpoint if there is one.", steps)
    steps = chosen.steps
    torch.set_num_threads(1)  # so that CPU-seconds compare
    torch.manual_seed(seed)
    model = make()
    settings = {"steps": steps, "learning_rate": learning_rate, "length": length, "batch_size": batch_size,
                "weight_decay": weight_decay, "clip": 1.0, "seed": seed}  # fmt: skip
    settings |= {"optimizer": "AdamW", "schedule": "100 steps up, then a straight line to 0"}
    part = validation_ids[:20_000]

    def measure(model: nn.Module, history: History) -> dict:
        test_bits = bits_per_token(model, test_ids)
        figures = {
            "validation_bits": bits_per_token(model, validation_ids[:100_000]),
            "test_bits": test_bits,
            "test_nats": test_bits * math.log(2),
            "test_perplexity": 2**test_bits,
        }
        what = "validation bits a token on the first 20,000 tokens (or texts)"
        return {
            "figures": {key: round(value, 5) for key, value in figures.items()},
            "curve": curve(history, what, "bits"),
        }

    train_and_keep(
        name,
        chosen,
        model,
        tokenizer,
        {"arguments": arguments, **about, "training": settings},
        windows(train_ids, length, batch_size, seed),
        torch.optim.AdamW(model.parameters(), learning_rate, weight_decay=weight_decay),
        warm_up_then_down(steps, min(100, steps // 2)),
        lambda model: bits_per_token(model, part),
        every,
        measure,
        number_format=torch.float32,
    )
