"""Teach RNN, LSTM and GRU a verb that agrees with a far subject: `python -m recipes.agreement` (about 14 CPU-minutes).

Chapter 03. Many small runs, each with a seed of its own, and one card with what came of them; a recipe that was killed
goes on with the runs that are missing.
"""

import time
from collections.abc import Callable
from itertools import product
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from recipes.agreement_task import AgreementTask
from recipes.cards import Runs, options
from transformer_lib.models import RecurrentLanguageModel
from transformer_lib.models.trained import CELLS
from transformer_lib.text import load_corpus
from transformer_lib.training import fit

WIDTH, BATCH, CLIP = 32, 64, 1.0
LEARNING_RATES = (2e-3, 8e-3)  # each cell may have the one that suits it: the plain RNN likes the larger one
STEPS, EVERY, ENOUGH = 1200, 50, 0.99
DISTANCES = (5, 10, 20, 40, 80)
SEEDS = (0, 1, 2)
MIXED, BEYOND = 30, (0, 5, 10, 20, 30, 40, 60, 80)
# Each: the cell, and what its start is changed to. "gate": bias of the gate that keeps the memory.
STARTS = {
    "RNN": ("RNNCell", {}),
    "RNN, orthogonal start": ("RNNCell", {"orthogonal": True}),
    "LSTM": ("LSTMCell", {}),
    "LSTM, forget bias 1": ("LSTMCell", {"gate": 1.0}),
    "LSTM, forget bias 3": ("LSTMCell", {"gate": 3.0}),
    "GRU": ("GRUCell", {}),
    "GRU, update bias 3": ("GRUCell", {"gate": 3.0}),
}


def make(cell: str, vocab_size: int, seed: int, orthogonal: bool = False, gate: float | None = None) -> nn.Module:
    """A network by its seed, its start changed as STARTS says; the keeping gate is the second in LSTM and GRU alike."""
    torch.manual_seed(seed)
    model = RecurrentLanguageModel(vocab_size, WIDTH, WIDTH, CELLS[cell])
    if orthogonal:
        nn.init.orthogonal_(model.cells[0].W_h)
    if gate is not None:
        nn.init.constant_(model.cells[0].b[WIDTH : 2 * WIDTH], gate)
    return model


def verb_scores(model: nn.Module, sentences: Tensor, verbs: tuple[int, int]) -> tuple[Tensor, Tensor]:
    """The scores of the two verb forms after all words but the last, (batch, 2), and which of the two comes."""
    H, _ = model.hidden_states(sentences[:, :-1])
    return model.output(H[:, -1])[:, list(verbs)], sentences[:, -1] - verbs[0]


@torch.no_grad()
def accuracy(model: nn.Module, task: AgreementTask, distance: int, count: int) -> float:
    """The share of sentences in which the right verb form is the likelier one; always the same sentences."""
    scores, right = verb_scores(model, task.sentences(distance, count, seed=(99, distance)), task.verbs)
    return float((scores.argmax(-1) == right).double().mean())


def train_one(
    model: nn.Module,
    tasks: dict[str, AgreementTask],
    distance_of: Callable[[int], int],
    seed: int,
    steps: int,
    learning_rate: float,
    check_at: int,
    stop: bool,
) -> dict:
    """Train; if `stop`, only until 99 % of the validation sentences at distance `check_at` are right twice running."""
    optimizer = torch.optim.Adam(model.parameters(), learning_rate)
    verbs, done, good, clock = tasks["train"].verbs, 0, 0, time.process_time()

    def loss(model: nn.Module, batch: Tensor) -> Tensor:
        return nn.functional.cross_entropy(*verb_scores(model, batch, verbs))

    while done < steps and good < 2:
        before = done

        def batches(step: int, before: int = before) -> Tensor:
            step += before
            return tasks["train"].sentences(distance_of(step), BATCH, seed=(seed, step))

        fit(model, batches, min(EVERY, steps - done), optimizer, loss, clip=CLIP)
        done += min(EVERY, steps - done)
        share = accuracy(model, tasks["validation"], check_at, 500)
        good = good + 1 if stop and share >= ENOUGH else 0
    return {"steps": done, "validation": share, "cpu_seconds": round(time.process_time() - clock, 1)}


def at_better_rate(runs: list[dict], start: str, distance: int) -> dict:
    """What the seeds reached at the learning rate that is better on validation sentences; nothing where none tried."""
    by_rate = [
        [run for run in runs if (run["cell"], run["distance"], run["learning_rate"]) == (start, distance, rate)]
        for rate in LEARNING_RATES
    ]
    best = max(by_rate, key=lambda runs: sum(run["validation"] for run in runs))
    rate = best[0]["learning_rate"] if best else None
    return {"cell": start, "distance": distance, "learning_rate": rate, "accuracy": [run["accuracy"] for run in best]}


def main(folder: Path, steps: int) -> None:
    """Do the runs that are not done yet, then write agreement.json."""
    torch.set_num_threads(1)
    corpus = load_corpus("moby-dick")
    tasks = {"train": AgreementTask(corpus.train)}
    tokenizer = tasks["train"].tokenizer
    tasks |= {part: AgreementTask(getattr(corpus, part), tokenizer) for part in ("validation", "test")}
    runs = Runs("agreement", folder)

    def run(start: str, seed: int, rate: float, distance: int | None) -> dict:
        cell, changed = STARTS[start]
        model = make(cell, tokenizer.vocab_size, seed, **changed)
        draws = np.random.default_rng((7, seed)).integers(MIXED + 1, size=steps)
        of = (lambda step: int(draws[step])) if distance is None else (lambda step: distance)
        result = train_one(model, tasks, of, seed, steps, rate, distance or MIXED, stop=distance is not None)
        shares = [accuracy(model, tasks["test"], at, 1000) for at in (BEYOND if distance is None else [distance])]
        about = {"cell": start, "seed": seed, "learning_rate": rate}
        if distance is None:
            return about | result | {"distances": BEYOND, "accuracy": shares}
        return about | {"distance": distance} | result | {"accuracy": shares[0]}

    def once(start: str, seed: int, rate: float, distance: int | None) -> dict:
        key = f"{start} / {rate} / {distance} / {seed} / {steps}"
        return runs.once(key, lambda: run(start, seed, rate, distance))

    fixed = []
    for start, rate in product(STARTS, LEARNING_RATES):
        for distance in DISTANCES:
            here = [once(start, seed, rate, distance) for seed in SEEDS]
            fixed += here
            if max(run["accuracy"] for run in here) < ENOUGH:
                break  # what no seed learns is not asked of longer distances
    mixed = [once("RNN", seed, LEARNING_RATES[0], None) for seed in SEEDS]
    card = {
        "task": "likes or like, after a subject and so many running words of Moby Dick; Linzen et al. (2016) in small",
        "training": {
            "d_x": WIDTH, "d_h": WIDTH, "vocab_size": tokenizer.vocab_size, "batch_size": BATCH, "optimizer": "Adam",
            "learning_rates": LEARNING_RATES, "clip": CLIP, "steps_at_most": steps, "looked_at_every": EVERY,
            "stopped_when": f"{ENOUGH} of 500 validation sentences right, twice running", "seeds": SEEDS,
        },
        "measured_on": "1,000 sentences, the words between from the test part of Moby Dick",
        "starts": {start: {"cell": cell, **changed} for start, (cell, changed) in STARTS.items()},
        "learned": [at_better_rate(fixed, *where) for where in product(STARTS, DISTANCES)],
        "fixed": fixed,
        "mixed": {"distances_trained": [0, MIXED], "runs": mixed},
    }  # fmt: skip
    runs.finish(card)


if __name__ == "__main__":
    chosen = options(__doc__.splitlines()[0], STEPS)
    main(chosen.folder, chosen.steps)
