"""Three sizes of model, three sizes of data: `python -m recipes.gpt_scaling` (about 8 CPU-minutes).

Chapter 13. Nine short runs, each with the same number of steps; a recipe that was killed goes on with those missing.
"""

import torch

from recipes.cards import Runs, options
from recipes.gpt_shakespeare import ROTARY, Measured, make_gpt, muon, shakespeare
from recipes.language_model import warm_up_then_down
from transformer_lib.training import fit, windows

SIZES = {  # name: width, heads, layers
    "small": (48, 3, 2),
    "middle": (80, 5, 3),
    "large": (128, 8, 4),
}
CHARACTERS = (50_000, 400_000, 3_200_000)
LENGTH, BATCH, STEPS = 64, 16, 700


def train(ids: dict, vocab_size: int, size: str, characters: int, steps: int) -> dict:
    """One run on the first characters of the training text."""
    d_model, heads, layers = SIZES[size]
    torch.manual_seed(0)
    arguments = {"vocab_size": vocab_size, "longest": LENGTH, "d_model": d_model, "heads": heads, "layers": layers}
    model = make_gpt(arguments | ROTARY | {"f": "squared_relu"}, zero_outputs=True)
    history = fit(
        model,
        windows(ids["train"][:characters], LENGTH, BATCH),
        steps,
        muon(model),
        schedule=warm_up_then_down(steps, min(20, steps // 4)),
        clip=1.0,
        evaluate=Measured(ids["validation"], LENGTH),
        every=steps,
    )
    return {
        "size": size,
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "characters": characters,
        "times_read": round(steps * BATCH * LENGTH / characters, 2),
        "training_loss": round(sum(history.loss[-50:]) / len(history.loss[-50:]), 4),
        "validation_loss": round(history.evaluations[-1][1]["loss"], 4),
        "cpu_seconds": history.evaluations[-1][1]["cpu_seconds"],
    }


def main() -> None:
    chosen = options("Train GPTs of three sizes on three sizes of data.", STEPS)
    torch.set_num_threads(1)  # so that CPU-seconds compare
    tokenizer, ids = shakespeare()
    runs = Runs("gpt-scaling", chosen.folder)
    results = [
        runs.once(f"{size} {n}", lambda size=size, n=n: train(ids, tokenizer.vocab_size, size, n, chosen.steps))
        for size in SIZES
        for n in CHARACTERS
    ]
    runs.finish(
        {
            "data": "shakespeare, characters: the first so many of the training text",
            "what": "nats a character; validation on 1,000 stretches of 64 characters, training over the last 50 steps",
            "steps": chosen.steps,
            "batch_size": BATCH,
            "length": LENGTH,
            "runs": results,
        }
    )


if __name__ == "__main__":
    main()
