"""Train the ladder's two last rungs: `python -m recipes.gpt_ladder` (about 40 CPU-minutes in all).

Chapter 13. `gpt-short-shakespeare` has a quarter of the compute of the recurrent rungs, `gpt-shakespeare` two to three
times theirs.
"""

import argparse
import math

import torch

from recipes.cards import options
from recipes.gpt_shakespeare import ROTARY, Measured, make_gpt, muon, shakespeare
from recipes.language_model import warm_up_then_down
from recipes.one_model import curve, train_and_keep
from transformer_lib.evaluation import bits_per_token
from transformer_lib.models import GPT, Windowed
from transformer_lib.training import History, windows

WINDOW = 256
RUNGS = {
    "gpt-shakespeare": {"d_model": 192, "heads": 6, "layers": 5, "dropout": 0.0, "steps": 2400, "batch": 12},
    "gpt-short-shakespeare": {"d_model": 128, "heads": 4, "layers": 4, "dropout": 0.0, "steps": 400, "batch": 12},
}


def train(name: str, chosen: argparse.Namespace) -> None:
    """One rung: trained, rounded to float16 as it is kept, measured on the whole held-out plays."""
    settings = dict(RUNGS[name])
    batch, steps = settings.pop("batch"), chosen.steps or settings["steps"]
    del settings["steps"]
    tokenizer, ids = shakespeare()
    torch.manual_seed(0)
    arguments = {"vocab_size": tokenizer.vocab_size, "longest": WINDOW, **settings, **ROTARY, "f": "squared_relu"}
    model = make_gpt(arguments, zero_outputs=True)

    def measure(model: GPT, history: History) -> dict:
        bits = {
            f"{part}_bits": bits_per_token(Windowed(model, WINDOW), ids[part][:end])
            for part, end in (("validation", 100_000), ("test", None))
        }
        test_bits = bits["test_bits"]
        figures = bits | {"test_nats": test_bits * math.log(2), "test_perplexity": 2**test_bits}
        what = f"on 200 stretches of {WINDOW} characters of the validation text, each from a fresh start"
        on_the_way = curve(history, what)
        on_the_way["bits"] = [round(loss / math.log(2), 5) for loss in on_the_way["loss"]]
        on_the_way["share_of_training"] = [round(step / steps, 4) for step in on_the_way["step"]]
        return {"figures": {key: round(value, 5) for key, value in figures.items()}, "curve": on_the_way}

    train_and_keep(
        name,
        argparse.Namespace(folder=chosen.folder, steps=steps),
        model,
        tokenizer,
        {
            "arguments": arguments,
            "data": "shakespeare, characters",
            "held_out": f"whole plays, read on and on in windows of {WINDOW}: each character is predicted from the "
            f"{WINDOW // 2} to {WINDOW} before it",
            "window": WINDOW,
            "training": {
                "steps": steps,
                "batch_size": batch,
                "length": WINDOW,
                "optimizer": "Muon 0.02 for the layers' matrices, AdamW 5e-3 for the rest",
                "schedule": "50 steps up, then a straight line to 0",
                "clip": 1.0,
                "seed": 0,
            },
        },
        windows(ids["train"], WINDOW, batch),
        muon(model),
        warm_up_then_down(steps, min(50, steps // 4)),
        Measured(ids["validation"], WINDOW, 200),
        max(1, steps // 20),
        measure,
    )


if __name__ == "__main__":
    chosen = options("Train the GPTs of the ladder.", 0)
    torch.set_num_threads(1)  # so that CPU-seconds compare
    for rung in RUNGS:
        train(rung, chosen)
