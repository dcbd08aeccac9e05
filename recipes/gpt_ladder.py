"""Train the ladder's two last rungs: `python -m recipes.gpt_ladder` (about 40 CPU-minutes in all).

Chapter 13. `gpt-short-shakespeare` has a quarter of the compute of the recurrent rungs, `gpt-shakespeare` two to three
times theirs.
"""

import math
import time

import torch

from recipes.cards import machine, options
from recipes.gpt_shakespeare import ROTARY, Measured, make_gpt, muon, shakespeare
from recipes.language_model import warm_up_then_down
from transformer_lib.evaluation import bits_per_token
from transformer_lib.models import Windowed
from transformer_lib.models.trained import save_trained
from transformer_lib.training import fit, windows

WINDOW = 256
RUNGS = {
    "gpt-shakespeare": {"d_model": 192, "heads": 6, "layers": 5, "dropout": 0.0, "steps": 2400, "batch": 12},
    "gpt-short-shakespeare": {"d_model": 128, "heads": 4, "layers": 4, "dropout": 0.0, "steps": 400, "batch": 12},
}


def train(name: str, chosen, steps: int) -> None:
    """One rung: trained, rounded to float16 as it is kept, measured on the whole held-out plays."""
    settings = dict(RUNGS[name])
    batch = settings.pop("batch")
    settings.pop("steps")
    tokenizer, ids = shakespeare()
    torch.manual_seed(0)
    arguments = {"vocab_size": tokenizer.vocab_size, "longest": WINDOW, **settings, **ROTARY, "f": "squared_relu"}
    model = make_gpt(arguments, zero_outputs=True)
    checkpoint = chosen.folder / f"{name}.checkpoint.safetensors"
    history = fit(
        model,
        windows(ids["train"], WINDOW, batch),
        steps,
        muon(model),
        schedule=warm_up_then_down(steps, min(50, steps // 4)),
        clip=1.0,
        evaluate=Measured(ids["validation"], WINDOW, 200),
        every=max(1, steps // 20),
        checkpoint=checkpoint,
    )
    model.half().float()  # the weights are kept in float16: what is measured is what is kept
    clock = time.process_time()
    test_bits = bits_per_token(Windowed(model, WINDOW), ids["test"])
    card = {
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
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "training_cpu_seconds": round(history.cpu_seconds, 1),
        "evaluation_cpu_seconds": round(time.process_time() - clock, 1),
        "machine": machine(),
        "figures": {
            "validation_bits": round(bits_per_token(Windowed(model, WINDOW), ids["validation"][:100_000]), 5),
            "test_bits": round(test_bits, 5),
            "test_nats": round(test_bits * math.log(2), 5),
            "test_perplexity": round(2**test_bits, 5),
        },
        "curve": {
            "what": f"on 200 stretches of {WINDOW} characters of the validation text, each from a fresh start",
            "step": [step for step, _ in history.evaluations],
            "bits": [round(said["loss"] / math.log(2), 5) for _, said in history.evaluations],
            "share_of_training": [round(step / steps, 4) for step, _ in history.evaluations],
        },
        "loss_every_50_steps": [round(sum(history.loss[i : i + 50]) / 50, 4) for i in range(0, steps - 49, 50)],
    }
    save_trained(name, model, tokenizer, card, chosen.folder, torch.float16)
    checkpoint.unlink()
    print(f"{name}: {card['parameters']} parameters, {card['training_cpu_seconds']} CPU-seconds, {card['figures']}")


if __name__ == "__main__":
    chosen = options("Train the GPTs of the ladder.", 0)
    torch.set_num_threads(1)  # so that CPU-seconds compare
    for rung, settings in RUNGS.items():
        train(rung, chosen, chosen.steps or settings["steps"])
