"""Which batch and which learning rate suit a small GPT, and which a larger one: `python -m recipes.gpt_batch_and_rate`.

Chapter 14, about 5 CPU-minutes. Characters of Shakespeare; three sizes, every run reads the same number of tokens.
"""

import time
from functools import partial
from pathlib import Path

import torch
from torch import Tensor

from recipes.cards import Runs, options
from recipes.gpt_shakespeare import USUAL, adamw, cosine, held_out_loss, make_gpt, shakespeare
from transformer_lib.training import fit, windows

WIDTHS, RATES, BATCHES = (24, 48, 96), (1e-3, 3e-3, 1e-2, 3e-2), (8, 32)
LENGTH, LAYERS, ROWS = 64, 2, 3200  # ROWS: windows that every run reads


def train_one(
    ids: dict[str, Tensor], vocab_size: int, d_model: int, batch: int, rate: float, total: int, seed: int
) -> dict:
    """One model from its seed: the usual AdamW recipe, a tenth of the steps up, then down in half a cosine."""
    torch.manual_seed(seed)
    model = make_gpt(
        {"vocab_size": vocab_size, "longest": LENGTH, "d_model": d_model, "heads": 4, "layers": LAYERS, **USUAL}
    )
    steps, clock = max(2, total // batch), time.process_time()
    schedule = cosine(steps, max(1, steps // 10))
    fit(model, windows(ids["train"], LENGTH, batch, seed), steps, adamw(model, rate), schedule=schedule, clip=1.0)
    return {
        "d_model": d_model,
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "batch": batch,
        "rate": rate,
        "seed": seed,
        "steps": steps,
        "loss": round(held_out_loss(model, ids["validation"], LENGTH, 300), 4),
        "cpu_seconds": round(time.process_time() - clock, 1),
    }


def main(folder: Path, total: int) -> None:
    """Do the runs that are not done yet, then write gpt-batch-and-rate.json."""
    torch.set_num_threads(1)
    tokenizer, ids = shakespeare()
    runs, results = Runs("gpt-batch-and-rate", folder), []
    for d_model in WIDTHS:
        for batch in BATCHES:
            for rate in RATES:
                run = partial(train_one, ids, tokenizer.vocab_size, d_model, batch, rate, total, 0)
                results.append(runs.once(f"{d_model} / {batch} / {rate} / {total}", run))
    runs.finish(
        {
            "task": "characters of Shakespeare, GPTs of 2 layers and 4 heads; nats a character on held-out plays",
            "training": "AdamW (0.9, 0.99), a tenth of the steps up, then down in half a cosine to a tenth, clip 1",
            "windows_read": total,
            "length": LENGTH,
            "runs": [{name: value for name, value in one.items() if name != "cpu_seconds"} for one in results],
        }
    )


if __name__ == "__main__":
    chosen = options("Train three sizes with several batches and rates; goes on where it was killed.", ROWS)
    main(chosen.folder, chosen.steps)
