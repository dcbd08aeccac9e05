"""How fast can a small GPT be trained? `python -m recipes.gpt_fast` (about 10 CPU-minutes).

Chapter 13. The usual recipe first; its loss at the end is the mark. Then the same model with one change more each time:
how many CPU-seconds until the validation loss is as low? All in one run, so that the seconds compare.
"""

import torch

from recipes.cards import Runs, options
from recipes.gpt_shakespeare import ROTARY, USUAL, Measured, adamw, cosine, make_gpt, muon, shakespeare
from recipes.language_model import warm_up_then_down
from transformer_lib.training import fit, windows

LENGTH, BATCH = 64, 12
SIZE = {"longest": LENGTH, "d_model": 128, "heads": 4, "layers": 4}
USUAL_STEPS, FAST_STEPS, EVERY = 2000, 450, 25
CHANGES = {  # name: what the model is made of, whether outputs start at zero
    "Muon": (USUAL, False),
    "+ rotary positions, normalised queries and keys": (USUAL | ROTARY, False),
    "+ squared ReLU": (USUAL | ROTARY | {"f": "squared_relu"}, False),
    "+ outputs that start at zero": (USUAL | ROTARY | {"f": "squared_relu"}, True),
}


def train(ids: dict, vocab_size: int, name: str, steps: int) -> dict:
    """One run: its measures on the way."""
    parts, zero = CHANGES.get(name, (USUAL, False))
    torch.manual_seed(0)
    model = make_gpt({"vocab_size": vocab_size, **SIZE, **parts}, zero)
    usual = name not in CHANGES
    measured = Measured(ids["validation"], LENGTH)
    history = fit(
        model,
        windows(ids["train"], LENGTH, BATCH),
        steps,
        adamw(model) if usual else muon(model),
        schedule=cosine(steps, min(100, steps // 4)) if usual else warm_up_then_down(steps, min(20, steps // 4)),
        clip=1.0,
        evaluate=measured,
        every=EVERY * 8 if usual else EVERY,
    )
    curve = [{"step": step, **said} for step, said in history.evaluations]
    return {"name": name, "steps": steps, "cpu_seconds": curve[-1]["cpu_seconds"], "curve": curve}


def reached(run: dict, mark: float) -> float | None:
    """CPU-seconds until the loss was at most the mark, or None."""
    return next((point["cpu_seconds"] for point in run["curve"] if point["loss"] <= mark), None)


def main() -> None:
    chosen = options("Train a small GPT the usual way and faster ways.", USUAL_STEPS)
    torch.set_num_threads(1)  # so that CPU-seconds compare
    tokenizer, ids = shakespeare()
    runs = Runs("gpt-fast", chosen.folder)
    fast_steps = max(1, FAST_STEPS * chosen.steps // USUAL_STEPS)
    usual = runs.once("usual", lambda: train(ids, tokenizer.vocab_size, "usual", chosen.steps))
    mark = usual["curve"][-1]["loss"]
    results = []
    for name in CHANGES:
        run = runs.once(name, lambda name=name: train(ids, tokenizer.vocab_size, name, fast_steps))
        seconds = reached(run, mark)
        ratio = None if seconds is None else round(usual["cpu_seconds"] / seconds, 2)
        results.append(run | {"seconds_to_the_mark": seconds, "times_faster": ratio})
    runs.finish(
        {
            "data": "shakespeare, characters",
            "size": {"vocab_size": tokenizer.vocab_size, **SIZE},
            "batch_size": BATCH,
            "what": "nats a character on 1,000 stretches of 64 characters of the validation text",
            "mark": mark,
            "usual": usual | {"optimizer": "AdamW 1e-3, 0.9, 0.99, decay 0.1, 100 steps up, cosine to a tenth"},
            "changes": results,
            "fast": "Muon 0.02 for the layers' matrices, AdamW 5e-3 for the rest; 20 steps up, a line down to 0",
        }
    )


if __name__ == "__main__":
    main()
