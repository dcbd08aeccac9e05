"""The training loop: batches in, a trained model and its history out; it goes on after a kill as if nothing had been.

Chapter 02 shows it; all later models are trained by it.
"""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from tqdm.auto import tqdm

from ..checks import as_ids, require
from ..protocols import LanguageModel
from .checkpoints import load_checkpoint, save_checkpoint
from .processes import average, average_gradients, own_share, process_rank, share_start, wait_for_all


@dataclass
class History:
    """What a training run saw: a loss (nats a token) and a gradient norm (before clipping) a step; evaluations."""

    loss: list[float] = field(default_factory=list)
    gradient_norm: list[float] = field(default_factory=list)
    evaluations: list[tuple[int, Any]] = field(default_factory=list)  # (step, what `evaluate` said)
    cpu_seconds: float = 0.0


def next_token_loss(model: LanguageModel, batch: Tensor) -> Tensor:
    r"""Cross-entropy $-\frac{1}{n} \sum_t \log P(w_{t+1} \mid w_{\le t})$ of windows (batch, n + 1), in nats."""
    log_probs = model.log_probs(batch[:, :-1])
    return nn.functional.nll_loss(log_probs.flatten(0, 1), batch[:, 1:].flatten())


def windows(ids: Tensor, length: int, batch_size: int, seed: int = 0) -> Callable[[int], Tensor]:
    """Random windows of a text: a function from the step's number to a batch (batch_size, length + 1) of ids.

    The batch of a step depends on (seed, step) alone, so that a resumed run sees what an unbroken one would have.
    """
    ids = as_ids(ids, 2**62)
    require(
        length >= 1 and batch_size >= 1, f"expected length and batch_size of at least 1, got {length}, {batch_size}"
    )
    require(
        ids.dim() == 1 and len(ids) > length,
        f"ids: expected a text of more than {length} tokens (one window and its last target), got {tuple(ids.shape)}",
    )
    view = ids.unfold(0, length + 1, 1)
    return lambda step: view[np.random.default_rng((seed, step)).integers(len(view), size=batch_size)]


def fit(
    model: nn.Module,
    batches: Callable[[int], Tensor],
    steps: int,
    optimizer: torch.optim.Optimizer,
    loss: Callable[[nn.Module, Tensor], Tensor] = next_token_loss,
    schedule: Callable[[int], float] | None = None,
    clip: float | None = None,
    evaluate: Callable[[nn.Module], float | dict[str, float]] | None = None,
    every: int = 1000,
    checkpoint: str | Path | None = None,
) -> History:
    r"""Train: for each step, loss of its batch, gradients, clipping, one step of the optimizer.

    batches: from the step's number to its batch; loss: from (model, batch) to a scalar; schedule: from the step's
    number to a factor on the learning rate; clip: gradients g with norm above it become $g \cdot clip / \|g\|$;
    evaluate: a number, or several by their names, asked for every `every` steps and at the end, in evaluation mode.
    checkpoint: a file written at the same
    times; where it exists already, training goes on from it, with the same result as if it had never stopped. It is
    written before the first step too: a folder that cannot be written to shows at once, not after an hour.
    Started by torchrun, each process takes its share of every batch and the gradients are averaged.
    """
    require(steps >= 1 and every >= 1, f"expected steps and every of at least 1, got {steps}, {every}")
    require(clip is None or clip > 0, f"clip: expected a number above 0 or None, got {clip}")
    start, history = 0, History()
    wait_for_all()  # all must find the same checkpoint, or none
    if checkpoint is not None and Path(checkpoint).exists():
        start, stored = load_checkpoint(checkpoint, model, optimizer)
        stored["evaluations"] = [(step, value) for step, value in stored["evaluations"]]  # JSON knows no tuples
        history = History(**stored)
    share_start(model)
    rates = [group.setdefault("initial_lr", group["lr"]) for group in optimizer.param_groups]
    if checkpoint is not None and process_rank() == 0:
        save_checkpoint(checkpoint, model, optimizer, start, vars(history))
    spent, clock = history.cpu_seconds, time.process_time()
    show = os.environ.get("TRANSFORMER_LIB_PROGRESS", "1") != "0" and process_rank() == 0
    with tqdm(total=steps, initial=start, disable=not show, desc="training", unit="step") as bar:
        for step in range(start, steps):
            model.train()
            for group, rate in zip(optimizer.param_groups, rates, strict=True):
                group["lr"] = rate * (schedule(step) if schedule else 1.0)
            optimizer.zero_grad(set_to_none=True)
            value = loss(model, own_share(batches(step)))
            value.backward()
            average_gradients(model)
            norm = nn.utils.clip_grad_norm_(model.parameters(), clip if clip is not None else float("inf"))
            optimizer.step()
            history.loss.append(float(average(value.detach())))
            history.gradient_norm.append(float(norm))
            bar.update()
            if (step + 1) % every == 0 or step + 1 == steps:
                bar.set_postfix(loss=f"{history.loss[-1]:.3f}")
                if evaluate is not None:
                    model.eval()
                    with torch.no_grad():
                        said = evaluate(model)
                        history.evaluations.append((step + 1, said if isinstance(said, dict) else float(said)))
                history.cpu_seconds = spent + time.process_time() - clock
                if checkpoint is not None and process_rank() == 0:
                    save_checkpoint(checkpoint, model, optimizer, step + 1, vars(history))
    for group in optimizer.param_groups:  # the learning rate as it came, for whatever trains next
        group["lr"] = group.pop("initial_lr")
    model.eval()
    return history
