"""What the recipes that train one model to keep share: train, round, measure, write weights, tokenizer and card.

A recipe that was killed goes on from its last checkpoint when it is started again. Of the processes that torchrun
starts, the first one measures and writes.
"""

import argparse
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from recipes.cards import machine
from transformer_lib.models.trained import save_trained
from transformer_lib.text import Tokenizer
from transformer_lib.training import History, fit, next_token_loss
from transformer_lib.training.processes import process_rank


def train_and_keep(
    name: str,
    chosen: argparse.Namespace,
    model: nn.Module,
    tokenizer: Tokenizer,
    about: dict[str, Any],
    batches: Callable[[int], Any],
    optimizer: torch.optim.Optimizer,
    schedule: Callable[[int], float],
    evaluate: Callable[[nn.Module], float | dict[str, float]],
    every: int,
    measure: Callable[[nn.Module, History], dict[str, Any]],
    loss: Callable[[nn.Module, Any], Tensor] = next_token_loss,
    number_format: torch.dtype = torch.float16,
) -> None:
    """Write data/models/NAME.*: the model after chosen.steps steps, rounded as it is kept before it is measured.

    about: how the card begins, with "arguments" and "training"; measure: what else it says, "figures" among it.
    """
    checkpoint = chosen.folder / f"{name}.checkpoint.safetensors"
    history = fit(
        model,
        batches,
        chosen.steps,
        optimizer,
        loss,
        schedule,
        clip=1.0,
        evaluate=evaluate,
        every=every,
        checkpoint=checkpoint,
    )
    if process_rank() > 0:
        return
    model.to(number_format).float()
    clock = time.process_time()
    measured = measure(model, history)
    card = {
        **about,
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "training_cpu_seconds": round(history.cpu_seconds, 1),
        "evaluation_cpu_seconds": round(time.process_time() - clock, 1),
        "machine": machine(),
        **measured,
        "loss_every_50_steps": [
            round(sum(history.loss[i : i + 50]) / 50, 4) for i in range(0, len(history.loss) - 49, 50)
        ],
    }
    save_trained(name, model, tokenizer, card, chosen.folder, number_format)
    checkpoint.unlink()
    print(f"{name}: {card['parameters']} parameters, {card['training_cpu_seconds']} CPU-seconds, {card['figures']}")


def curve(history: History, what: str, name: str = "loss") -> dict[str, Any]:
    """What was measured on the way, by its names; a single number under this name."""
    said = [one if isinstance(one, dict) else {name: one} for _, one in history.evaluations]
    columns = {key: [round(one[key], 5) for one in said] for key in said[0]}
    return {"what": what, "step": [step for step, _ in history.evaluations], **columns}
