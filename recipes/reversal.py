"""Reverse strings of growing length, with and without attention: `python -m recipes.reversal` (about 18 CPU-minutes).

Chapters 04 and 05. Three seeds each, one card with what came of them; a recipe that was killed goes on with the runs
that are missing.
"""

import argparse
import json
import time
from pathlib import Path

import torch
from torch import nn

from recipes.cards import machine
from recipes.language_model import warm_up_then_down
from transformer_lib.decoding import greedy
from transformer_lib.files import whole_file
from transformer_lib.models import Seq2Seq
from transformer_lib.models.trained import DECODERS
from transformer_lib.paths import DATA
from transformer_lib.text import ReversalTask
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
    written = greedy(model, padded([source for source, _ in pairs], model.pad_id), length + 4)
    wanted = [target[1:-1] for _, target in pairs]
    right = sum(a == b for w, t in zip(written, wanted, strict=True) for a, b in zip(w, t, strict=False))
    return {
        "strings": sum(w == t for w, t in zip(written, wanted, strict=True)) / COUNT,
        "letters": round(right / (COUNT * length), 5),
    }


def main(folder: Path, steps: int) -> None:
    """Do the runs that are not done yet, then write reversal.json."""
    torch.set_num_threads(1)
    task = ReversalTask()
    progress = folder / "reversal.checkpoint.json"
    runs = json.loads(progress.read_text(encoding="utf-8")) if progress.is_file() else {}
    for seed in SEEDS:
        for decoder, width in WIDTHS.items():
            key = f"{decoder} / {seed} / {steps}"
            if key in runs:
                continue
            torch.manual_seed(seed)
            model = Seq2Seq(task.vocab_size, D_X, width, DECODERS[decoder])
            clock = time.process_time()

            def batches(step: int, seed: int = seed) -> tuple:
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
            runs[key] = {
                "decoder": decoder,
                "seed": seed,
                "d_h": width,
                "parameters": sum(parameter.numel() for parameter in model.parameters()),
                "cpu_seconds": round(time.process_time() - clock, 1),
                "loss_every_200_steps": [
                    round(sum(history.loss[i : i + 200]) / 200, 4) for i in range(0, steps - 199, 200)
                ],
                "by_length": [{"length": length} | measure(model, task, length) for length in LENGTHS],
            }
            with whole_file(progress) as file:
                file.write_text(json.dumps(runs), encoding="utf-8", newline="\n")
            print(runs[key], flush=True)
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
        "runs": list(runs.values()),
        "training_cpu_seconds": round(sum(run["cpu_seconds"] for run in runs.values()), 1),
        "machine": machine(),
    }
    with whole_file(folder / "reversal.json") as file:
        file.write_text(json.dumps(card, indent=1) + "\n", encoding="utf-8", newline="\n")
    progress.unlink()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Train reversers; goes on with the runs that are missing.")
    parser.add_argument("--folder", type=Path, default=DATA / "models", help="where the card goes")
    parser.add_argument("--steps", type=int, default=STEPS, help="fewer steps, for a trial")
    options = parser.parse_args()
    main(options.folder, options.steps)
