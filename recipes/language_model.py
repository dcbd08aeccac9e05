"""What the recipes for language models share: train, measure on held-out text, write weights and card.

Chapters 02 and 03. A recipe that was killed goes on from its last checkpoint when it is started again.
"""

import math
import time
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from recipes.cards import machine, options
from transformer_lib.evaluation import bits_per_token
from transformer_lib.models.trained import save_trained
from transformer_lib.text import Tokenizer
from transformer_lib.training import fit, windows
from transformer_lib.training.processes import process_rank


def warm_up_then_down(steps: int, warm_up: int = 100) -> Callable[[int], float]:
    """The learning rate's factor: up to 1 in the first steps, then in a straight line down to 0."""
    return lambda step: min((step + 1) / warm_up, (steps - step) / (steps - warm_up))


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
    folder, steps = chosen.folder, chosen.steps
    torch.set_num_threads(1)  # so that CPU-seconds compare
    torch.manual_seed(seed)
    model = make()
    settings = {"steps": steps, "learning_rate": learning_rate, "length": length, "batch_size": batch_size,
                "weight_decay": weight_decay, "clip": 1.0, "seed": seed}  # fmt: skip
    optimizer = torch.optim.AdamW(model.parameters(), learning_rate, weight_decay=weight_decay)
    part = validation_ids[:20_000]
    checkpoint = folder / f"{name}.checkpoint.safetensors"
    history = fit(
        model,
        windows(train_ids, length, batch_size, seed),
        steps,
        optimizer,
        schedule=warm_up_then_down(steps, min(100, steps // 2)),
        clip=1.0,
        evaluate=lambda model: bits_per_token(model, part),
        every=every,
        checkpoint=checkpoint,
    )
    if process_rank() > 0:
        return
    clock = time.process_time()
    test_bits = bits_per_token(model, test_ids)
    figures = {
        "validation_bits": bits_per_token(model, validation_ids[:100_000]),
        "test_bits": test_bits,
        "test_nats": test_bits * math.log(2),
        "test_perplexity": 2**test_bits,
    }
    card = {
        "arguments": arguments,
        **about,
        "training": settings | {"optimizer": "AdamW", "schedule": "100 steps up, then a straight line to 0"},
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "training_cpu_seconds": round(history.cpu_seconds, 1),
        "evaluation_cpu_seconds": round(time.process_time() - clock, 1),
        "machine": machine(),
        "figures": {key: round(value, 5) for key, value in figures.items()},
        "curve": {
            "what": "validation bits a token on the first 20,000 tokens (or texts)",
            "step": [step for step, _ in history.evaluations],
            "bits": [round(bits, 5) for _, bits in history.evaluations],
        },
        "loss_every_50_steps": [round(sum(history.loss[i : i + 50]) / 50, 4) for i in range(0, steps - 49, 50)],
    }
    save_trained(name, model, tokenizer, card, folder)
    checkpoint.unlink()
    print(f"{name}: {card['parameters']} parameters, {card['training_cpu_seconds']} CPU-seconds, {card['figures']}")
