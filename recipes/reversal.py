"""Reverse strings of growing length, with and without attention: `python -m recipes.reversal` (about 18 CPU-minutes).

Chapters 04 and 05. Three seeds each, one card with what came of them; a recipe that was killed goes on with the runs
that are missing.
"""

import time
from pathlib import Path

import torch
from torch import nn

from recipes.cards import Runs, options
from recipes.language_model import warm_up_then_down
from recipes.reversal_task import ReversalTask
from transformer_lib.decoding import greedy_all
from transformer_lib.models import Seq2Seq
from transformer_lib.models.trained import PARTS
from transformer_lib.training import fit, padded, translation_loss

D_X, BATCH, LEARNING_RATE, CLIP = 32, 64, 3e-3, 1.0
WIDTHS = {"Decoder": 94, "AttentionDecoder": 64}  # about the same number of parameters
TRAINED = (2, 24)  # lengths of the strings it is trained on, drawn evenly
LENGTHS = (4, 8, 12, 16, 20, 24, 28, 32)
STEPS, COUNT, SEEDS = 3000, 500, (0, 1, 2)


@torch.no_grad()
def measure(model: nn.Module, task: ReversalTask, length: int) -> dict:
    """Greedy decoding of strings never drawn in training: share of strings right, and share of their letters."""
    pairs = task.pairs(length, COUNT, seed=(99, length))
    written = greedy_all(model, [source for source, _ in pairs], length + 4, COUNT)
    wanted = [target[1:-1] for _, target in pairs]
    right = sum(a == b for w, t in zip(written, wanted, strict=True) for a, b in zip(w, t, strict=False))
    return {
        "strings": sum(w == t for w, t in zip(written, wanted, strict=True)) / COUNT,
        "letters": round(right / (COUNT * length), 5),
    }


def train_one(task: ReversalTask, decoder: str, seed: int, steps: int) -> dict:
    """One model from its seed, trained and measured."""
    torch.manual_seed(seed)
    model = Seq2Seq(task.vocab_size, D_X, WIDTHS[decoder], PARTS["decoder"][decoder])
    clock = time.process_time()

    def batches(step: int) -> tuple:
        pairs = task.pairs(TRAINED, BATCH, seed=(seed, step))
        return tuple(padded([pair[side] for pair in pairs], task.PAD) for side in (0, 1))

    history = fit(
        model,
        batches,
        steps,
        torch.optim.Adam(model.parameters(), LEARNING_RATE),
        translation_loss,
        warm_up_then_down(steps, min(200, steps // 2)),
        CLIP,
    )
    return {
        "decoder": decoder,
        "seed": seed,
        "d_h": WIDTHS[decoder],
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "cpu_seconds": round(time.process_time() - clock, 1),
        "loss_every_200_steps": [round(sum(history.loss[i : i + 200]) / 200, 4) for i in range(0, steps - 199, 200)],
        "by_length": [{"length": length} | measure(model, task, length) for length in LENGTHS],
    }


def main(folder: Path, steps: int) -> None:
    """Do the runs that are not done yet, then write reversal.json."""
    torch.set_num_threads(1)
    task = ReversalTask()
    runs = Runs("reversal", folder)
    for seed in SEEDS:
        for decoder in WIDTHS:
            runs.once(f"{decoder} / {seed} / {steps}", lambda of=(task, decoder, seed, steps): train_one(*of))
    card = {
        "task": f"strings of the letters {task.letters}, drawn evenly, to be written backwards",
        "training": {
            "lengths": list(TRAINED),
            "d_x": D_X,
            "batch_size": BATCH,
            "steps": steps,
            "optimizer": "Adam",
            "learning_rate": LEARNING_RATE,
            "schedule": "200 steps up, then a straight line to 0",
            "clip": CLIP,
        },
        "measured_on": f"{COUNT} strings of each length, greedy decoding",
        "runs": list(runs.done.values()),
    }
    runs.finish(card)


if __name__ == "__main__":
    chosen = options(__doc__.splitlines()[0], STEPS)
    main(chosen.folder, chosen.steps)
