"""Deep Transformers, Post-LN and Pre-LN, with and without warm-up: `python -m recipes.deep_transformers`.

Chapter 09, about 8 CPU-minutes. How far do 240 steps bring 6 + 6 layers (one seed) and 12 + 12 (three)? Trained on
10,000 of the pairs; the loss of the training batches is what is measured, and the gradients before the first step. A
recipe that was killed goes on with the runs that are missing.
"""

import time
from pathlib import Path

import torch

from recipes.cards import Runs, options
from recipes.translation import encoded_pairs, joint_tokenizer
from transformer_lib.models import Transformer
from transformer_lib.parts.layers import PostNorm, PreNorm
from transformer_lib.training import batches_by_length, fit, translation_loss

PAIRS, SEEDS = 10_000, {6: (0,), 12: (0, 1, 2)}  # by depth
SIZE = {"d_model": 64, "heads": 4, "d_ff": 256, "dropout": 0.0}
STEPS, BATCH, LEARNING_RATE, WARM_UP = 240, 32, 1e-3, 120
WAYS = {"Post-LN": (PostNorm, 0), "Post-LN, warm-up": (PostNorm, WARM_UP), "Pre-LN": (PreNorm, 0)}


def train_one(tokenizer, pairs: list, depth: int, name: str, seed: int, steps: int) -> dict:
    """One model from its seed: the loss of its training, step by step."""
    wrap, warm_up = WAYS[name]
    torch.manual_seed(seed)
    model = Transformer(tokenizer.vocab_size, layers=depth, wrap=wrap, **SIZE)
    batches = batches_by_length(pairs, BATCH, model.pad_id, seed)
    translation_loss(model, batches(0)).backward()
    first, last = (float(model.decoder[i].feed_forward.sublayer.W_2.weight.grad.norm()) for i in (0, -1))
    clock = time.process_time()
    history = fit(
        model,
        batches,
        steps,
        torch.optim.Adam(model.parameters(), LEARNING_RATE, betas=(0.9, 0.98), eps=1e-9, fused=True),
        translation_loss,
        (lambda step: min(1.0, (step + 1) / warm_up)) if warm_up else None,
    )
    return {
        "layers": depth,
        "way": name,
        "seed": seed,
        "cpu_seconds": round(time.process_time() - clock, 1),
        "gradient_first_and_last_decoder_layer": [float(f"{norm:.4g}") for norm in (first, last)],
        "loss_every_20_steps": [round(sum(history.loss[i : i + 20]) / 20, 4) for i in range(0, steps - 19, 20)],
    }


def by_frequency(pairs: list) -> float:
    """What guessing every token by its frequency alone would cost, in nats a token."""
    tokens = torch.tensor([token for _, target in pairs for token in target[1:]])
    share = torch.bincount(tokens).double() / len(tokens)
    return float(-(share[share > 0] * share[share > 0].log()).sum())


def main(folder: Path, steps: int) -> None:
    """Do the runs that are not done yet, then write deep-transformers.json."""
    torch.set_num_threads(1)
    tokenizer = joint_tokenizer()
    pairs, runs = encoded_pairs(tokenizer)["train"][:PAIRS], Runs("deep-transformers", folder)
    for depth, seeds in SEEDS.items():
        for seed in seeds:
            for name in WAYS:
                of = (tokenizer, pairs, depth, name, seed, steps)
                runs.once(f"{depth} / {name} / {seed} / {steps}", lambda of=of: train_one(*of))
    card = {
        "task": f"Japanese to English, trained on {PAIRS:,} pairs of tatoeba",
        "measured_on": "the training batches, before the step; loss in nats a token",
        "arguments": SIZE | {"layers": list(SEEDS)},
        "training": {
            "steps": steps,
            "batch_size": BATCH,
            "optimizer": "Adam, 0.9, 0.98, 1e-9",
            "learning_rate": LEARNING_RATE,
            "warm_up": f"a straight line over {WARM_UP} steps, or none",
        },
        "loss_of_guessing_by_frequency": round(by_frequency(pairs), 4),
        "runs": list(runs.done.values()),
    }
    runs.finish(card)


if __name__ == "__main__":
    chosen = options(__doc__.splitlines()[0], STEPS)
    main(chosen.folder, chosen.steps)
