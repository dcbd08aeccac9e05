"""What each ingredient of the Transformer's training is worth: `python -m recipes.transformer_ablations`.

Chapter 10, about 30 CPU-minutes. A small Transformer on 10,000 of the pairs, one ingredient changed at a time, three
seeds each. Measured on the validation pairs: loss without smoothing, and BLEU of greedy translations of 1,000. A recipe
that was killed goes on with the runs that are missing.
"""

import copy
import math
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch
from torch import nn

from recipes.cards import Runs, options
from recipes.translation import LONGEST, SMOOTHING, encoded_pairs, joint_tokenizer, validation_loss
from transformer_lib.decoding import greedy_all
from transformer_lib.evaluation import bleu
from transformer_lib.models import Transformer
from transformer_lib.parts.layers import PostNorm, PreNorm
from transformer_lib.text import load_corpus
from transformer_lib.training import (
    batches_by_length,
    fit,
    label_smoothed_cross_entropy,
    translation_loss,
    warmup_inverse_sqrt,
)

PAIRS, SENTENCES, SEEDS = 10_000, 1000, (0, 1, 2)
SIZE = {"d_model": 128, "heads": 4, "layers": 2, "d_ff": 512}
STEPS, BATCH, PEAK, WARM_UP = 1000, 32, 2e-3, 200


def paper_schedule(step: int) -> float:
    """The paper's curve, its peak made 1."""
    return warmup_inverse_sqrt(1, WARM_UP)(step) * WARM_UP**0.5


def without_warm_up(step: int) -> float:
    """The same curve from its peak on: at full height from the first step."""
    return paper_schedule(max(step, WARM_UP))


def unshared(model: Transformer) -> Transformer:
    """Three matrices of their own instead of one; they start alike."""
    model.target_embedding = copy.deepcopy(model.target_embedding)
    model.output.weight = nn.Parameter(model.output.weight.detach().clone())
    return model


BASE = {
    "wrap": PreNorm,
    "dropout": 0.1,
    "smoothing": SMOOTHING,
    "schedule": paper_schedule,
    "change": lambda model: model,
}
CHANGES = {
    "as in the paper, but Pre-LN": {},
    "no warm-up": {"schedule": without_warm_up},
    "no smoothing": {"smoothing": 0.0},
    "no dropout": {"dropout": 0.0},
    "Post-LN": {"wrap": PostNorm},
    "Post-LN, no warm-up": {"wrap": PostNorm, "schedule": without_warm_up},
    "three embedding matrices": {"change": unshared},
}


def train_one(tokenizer, pairs: dict, name: str, seed: int, steps: int) -> dict:
    """One model from its seed, trained and measured."""
    chosen: dict[str, object] = BASE | CHANGES[name]
    change: Callable[[Transformer], Transformer] = chosen["change"]
    torch.manual_seed(seed)
    model = change(Transformer(tokenizer.vocab_size, **SIZE, dropout=chosen["dropout"], wrap=chosen["wrap"]))
    smoothed = partial(label_smoothed_cross_entropy, epsilon=chosen["smoothing"])
    clock = time.process_time()
    history = fit(
        model,
        batches_by_length(pairs["train"][:PAIRS], BATCH, model.pad_id, seed),
        steps,
        torch.optim.Adam(model.parameters(), PEAK, betas=(0.9, 0.98), eps=1e-9),
        loss=partial(translation_loss, token_loss=smoothed),
        schedule=chosen["schedule"],
        clip=1.0,
        evaluate=validation_loss(pairs["validation"][:SENTENCES], model.pad_id),
        every=250,
    )
    spent = round(time.process_time() - clock, 1)
    written = greedy_all(model, [source for source, _ in pairs["validation"][:SENTENCES]], LONGEST)
    references = [pair.english for pair in load_corpus("tatoeba").validation[:SENTENCES]]
    figures = bleu(hypotheses=[tokenizer.decode(ids) for ids in written], references=references)
    return {
        "change": name,
        "seed": seed,
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "cpu_seconds": spent,
        "validation_loss": [[step, None if math.isnan(loss) else round(loss, 4)] for step, loss in history.evaluations],
        "loss_every_50_steps": [round(sum(history.loss[i : i + 50]) / 50, 4) for i in range(0, steps - 49, 50)],
        "bleu": round(figures["bleu"], 3),
        "chrf": round(figures["chrf"], 3),
    }


def main(folder: Path, steps: int) -> None:
    """Do the runs that are not done yet, then write transformer-ablations.json."""
    torch.set_num_threads(1)
    tokenizer = joint_tokenizer()
    pairs, runs = encoded_pairs(tokenizer), Runs("transformer-ablations", folder)
    for seed in SEEDS:
        for name in CHANGES:
            of = (tokenizer, pairs, name, seed, steps)
            runs.once(f"{name} / {seed} / {steps}", lambda of=of: train_one(*of))
    card = {
        "task": f"Japanese to English, trained on {PAIRS:,} pairs of tatoeba",
        "measured_on": f"the first {SENTENCES:,} validation pairs; loss in nats a token without smoothing, greedy BLEU",
        "arguments": SIZE | {"dropout": BASE["dropout"], "wrap": "PreNorm"},
        "training": {
            "batch_size": BATCH,
            "steps": steps,
            "optimizer": "Adam, 0.9, 0.98, 1e-9",
            "learning_rate": PEAK,
            "schedule": f"the paper's, {WARM_UP} steps up, its peak at the learning rate",
            "smoothing": BASE["smoothing"],
            "clip": 1.0,
        },
        "runs": list(runs.done.values()),
    }
    runs.finish(card)


if __name__ == "__main__":
    chosen = options(__doc__.splitlines()[0], STEPS)
    main(chosen.folder, chosen.steps)
