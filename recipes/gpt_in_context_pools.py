"""How many different tasks must training hold, so that a GPT learns to learn? `python -m recipes.gpt_in_context_pools`.

Chapter 14, about 3 CPU-minutes. Lookups alone; training draws them from a pool of 16, 64, 256, or always anew.
"""

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from recipes.cards import Runs, options
from recipes.gpt_in_context import LETTERS, SIZE, TOKENIZER, accuracy, answer_loss, drawn, row
from recipes.gpt_shakespeare import make_gpt, muon
from recipes.language_model import warm_up_then_down
from transformer_lib.training import fit

POOLS, BATCH, STEPS = (16, 64, 256, None), 32, 600
Draw = Callable[[np.random.Generator], list[int]]


def from_pool(pool: list[list[int]] | None) -> Draw:
    """One of these mappings; without a pool always a new one, never one of those kept for the test."""
    if pool is None:
        return lambda chance: drawn("lookup", False, chance)
    return lambda chance: pool[int(chance.integers(len(pool)))]


def texts(draw: Draw, count: int, chance: np.random.Generator, few: bool) -> Tensor:
    """Rows of lookups without a description; few: about 2 to 10 letters, as in training."""
    letters = [int(chance.integers(2, len(LETTERS) + 1)) if few else len(LETTERS) for _ in range(count)]
    return torch.tensor([row("lookup", draw(chance), chance, False, some) for some in letters])


def by_pool(size: int | None, steps: int) -> dict:
    """One GPT trained on lookups of a pool: its answers for these, and for mappings that it never met."""
    torch.manual_seed(0)
    clock, chance = time.process_time(), np.random.default_rng(5)
    draw = from_pool(None if size is None else [drawn("lookup", False, chance) for _ in range(size)])
    model = make_gpt({"vocab_size": TOKENIZER.vocab_size, **SIZE}, zero_outputs=True)
    schedule = warm_up_then_down(steps, min(20, steps // 2))
    batches = lambda step: texts(draw, BATCH, np.random.default_rng((0, step)), few=True)  # noqa: E731
    fit(model, batches, steps, muon(model), answer_loss, schedule, clip=1.0)
    chance = np.random.default_rng(6)
    return {
        "mappings": size,
        "trained_on": accuracy(model, texts(draw, 1000, chance, few=False)),
        "never_trained_on": accuracy(model, texts(lambda c: drawn("lookup", True, c), 1000, chance, few=False)),
        "cpu_seconds": round(time.process_time() - clock, 1),
    }


def main(folder: Path, steps: int) -> None:
    """Do the runs that are not done yet, then write gpt-in-context-pools.json."""
    torch.set_num_threads(1)
    runs = Runs("gpt-in-context-pools", folder)
    results = [runs.once(f"{size} / {steps}", partial(by_pool, size, steps)) for size in POOLS]
    runs.finish(
        {
            "task": f"lookups of {len(LETTERS)} letters; share of right answers after 0, 1, 2, ... examples",
            "training": f"{steps} steps of {BATCH} rows, Muon 0.02 and AdamW 0.005, seed 0",
            "arguments": SIZE,
            "runs": [{name: value for name, value in one.items() if name != "cpu_seconds"} for one in results],
        }
    )


if __name__ == "__main__":
    chosen = options("Train on pools of several sizes; goes on where it was killed.", STEPS)
    main(chosen.folder, chosen.steps)
