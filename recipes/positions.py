"""The same small GPT with no, sinusoidal and learned positions: `python -m recipes.positions`, about 15 CPU-minutes.

Chapter 08. Characters of Shakespeare, trained on windows of 64, measured on windows four times as long, place by place.
Two seeds each, one card with what came of them; a recipe that was killed goes on with the runs that are missing.
"""

import math
import time
from functools import partial
from pathlib import Path

import torch
from torch import Tensor, nn

from recipes.cards import Runs, options
from recipes.language_model import warm_up_then_down
from transformer_lib.models import GPT
from transformer_lib.parts.positions import LearnedPositions, SinusoidalPositions
from transformer_lib.text import CharTokenizer, load_corpus
from transformer_lib.training import fit, windows

SMALL = 0.02 * math.sqrt(2)  # sines have root mean square 1 / sqrt(2): times this they are as large as the embeddings
KINDS = {
    None: None,
    "SinusoidalPositions": SinusoidalPositions,  # of full size, beside embeddings that start at 0.02
    "SinusoidalPositions, small": partial(SinusoidalPositions, scale=SMALL),
    "LearnedPositions": LearnedPositions,
}
TRAINED, LONGEST, GROUP = 64, 256, 16  # characters: in training, when measuring, and so many places averaged together
ARGUMENTS = {"longest": LONGEST, "d_model": 128, "heads": 4, "layers": 3}
STEPS, BATCH, LEARNING_RATE, SEEDS = 1200, 16, 2e-3, (0, 1)


@torch.no_grad()
def bits_by_place(model: nn.Module, ids: Tensor) -> list[float]:
    """Bits a character at each place of windows of LONGEST characters side by side, GROUP places averaged together."""
    count = (len(ids) - 1) // LONGEST
    inputs, targets = (ids[i : i + count * LONGEST].view(count, LONGEST) for i in (0, 1))
    total = sum(model.score(x, y)[0].double().sum(0) for x, y in zip(inputs.split(32), targets.split(32), strict=True))
    return [round(float(bits), 5) for bits in (-total / count / math.log(2)).view(-1, GROUP).mean(1)]


def train_one(vocab_size: int, train: Tensor, test: Tensor, kind: str | None, seed: int, steps: int) -> dict:
    """One model from its seed, trained and measured."""
    torch.manual_seed(seed)
    model = GPT(vocab_size, **ARGUMENTS, positions=KINDS[kind])
    clock = time.process_time()
    history = fit(
        model,
        windows(train, TRAINED, BATCH, seed),
        steps,
        torch.optim.AdamW(model.parameters(), LEARNING_RATE),
        schedule=warm_up_then_down(steps, min(100, steps // 2)),
        clip=1.0,
    )
    return {
        "positions": kind,
        "seed": seed,
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "cpu_seconds": round(time.process_time() - clock, 1),
        "loss_every_50_steps": [round(sum(history.loss[i : i + 50]) / 50, 4) for i in range(0, steps - 49, 50)],
        "bits_by_place": bits_by_place(model, test),
    }


def main(folder: Path, steps: int) -> None:
    """Do the runs that are not done yet, then write positions.json."""
    torch.set_num_threads(1)
    corpus = load_corpus("shakespeare")
    tokenizer = CharTokenizer.train(corpus.train)
    texts = [torch.tensor(tokenizer.encode(text)) for text in (corpus.train, corpus.test)]
    runs = Runs("positions", folder)
    for seed in SEEDS:
        for kind in KINDS:
            of = (tokenizer.vocab_size, *texts, kind, seed, steps)
            runs.once(f"{kind} / {seed} / {steps}", lambda of=of: train_one(*of))
    card = {
        "task": "characters of Shakespeare, the next one from those before in the window",
        "arguments": ARGUMENTS,
        "small": f"sines times {SMALL:.5f}, as large as the embeddings at the start",
        "training": {
            "length": TRAINED,
            "batch_size": BATCH,
            "steps": steps,
            "optimizer": "AdamW",
            "learning_rate": LEARNING_RATE,
            "schedule": "100 steps up, then a straight line to 0",
            "clip": 1.0,
        },
        "measured_on": f"the test plays in windows of {LONGEST} characters side by side; bits a character, averaged "
        f"over {GROUP} places each",
        "runs": list(runs.done.values()),
    }
    runs.finish(card)


if __name__ == "__main__":
    chosen = options(__doc__.splitlines()[0], STEPS)
    main(chosen.folder, chosen.steps)
