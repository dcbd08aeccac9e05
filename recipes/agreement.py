"""Teach RNN, LSTM and GRU a verb that agrees with a far subject: `python -m recipes.agreement` (about 12 CPU-minutes).

Chapter 03. Many small runs, each with a seed of its own, and one card with what came of them; a recipe that was killed
goes on with the runs that are missing.
"""

import argparse
import json
import platform
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from transformer_lib.files import whole_file
from transformer_lib.models import RecurrentLanguageModel
from transformer_lib.models.trained import CELLS
from transformer_lib.paths import DATA
from transformer_lib.text import AgreementTask, load_corpus
from transformer_lib.training import fit

WIDTH, BATCH, LEARNING_RATE, CLIP = 32, 64, 2e-3, 1.0
STEPS, EVERY, ENOUGH = 1500, 50, 0.99
DISTANCES = (5, 10, 15, 20, 30, 40, 80)
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
    learning_rate: float = LEARNING_RATE,
    stop_at: int | None = None,
) -> dict:
    """Train until 99 % of 500 validation sentences at the distance `stop_at` are right twice running, or to the end."""
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
        if stop_at is not None:
            good = good + 1 if accuracy(model, tasks["validation"], stop_at, 500) >= ENOUGH else 0
    return {"steps": done, "cpu_seconds": round(time.process_time() - clock, 1)}


def main(folder: Path, steps: int) -> None:
    """Do the runs that are not done yet, then write agreement.json."""
    torch.set_num_threads(1)
    corpus = load_corpus("moby-dick")
    tasks = {"train": AgreementTask(corpus.train)}
    tokenizer = tasks["train"].tokenizer
    tasks |= {part: AgreementTask(getattr(corpus, part), tokenizer) for part in ("validation", "test")}
    progress = folder / "agreement.checkpoint.json"
    runs = json.loads(progress.read_text(encoding="utf-8")) if progress.is_file() else {}

    def once(kind: str, start: str, seed: int, measure: tuple[int, ...], fixed: int | None, **settings) -> dict:
        key = f"{kind} / {start} / {fixed} / {seed} / {settings}"
        if key not in runs:
            cell, changed = STARTS[start]
            model = make(cell, tokenizer.vocab_size, seed, **changed)
            draws = np.random.default_rng((7, seed)).integers(MIXED + 1, size=100_000)
            result = train_one(
                model, tasks, lambda step: fixed if fixed is not None else int(draws[step]), seed, **settings
            )
            result["accuracy"] = [accuracy(model, tasks["test"], distance, 1000) for distance in measure]
            where = {"distance": fixed} if fixed is not None else {"distances": measure}
            runs[key] = {"cell": start, **where, "seed": seed, **settings, **result}
            with whole_file(progress) as file:
                file.write_text(json.dumps(runs), encoding="utf-8", newline="\n")
            print(key, runs[key], flush=True)
        return runs[key]

    fixed_runs, mixed_runs, patient_runs = [], [], []
    for start in STARTS:
        for distance in DISTANCES:
            here = [once("fixed", start, seed, (distance,), distance, steps=steps, stop_at=distance) for seed in SEEDS]
            fixed_runs += here
            if max(run["accuracy"][0] for run in here) < ENOUGH:
                break  # what no seed learns is not asked of longer distances
    for start in ("RNN", "LSTM", "GRU"):
        mixed_runs += [once("mixed", start, seed, BEYOND, None, steps=steps) for seed in SEEDS]
    for rate, factor in ((LEARNING_RATE / 4, 1), (LEARNING_RATE * 4, 1), (LEARNING_RATE, 4)):
        settings = {"steps": factor * steps, "stop_at": 20, "learning_rate": rate}
        patient_runs.append(once("patient", "RNN", 0, (20,), 20, **settings))

    def plain(run: dict) -> dict:
        kept = {key: value for key, value in run.items() if key != "stop_at"}
        return kept | ({"accuracy": run["accuracy"][0]} if "distance" in run else {})

    card = {
        "task": "likes or like, after a subject and so many running words of Moby Dick; Linzen et al. (2016) in small",
        "training": {
            "d_x": WIDTH, "d_h": WIDTH, "vocab_size": tokenizer.vocab_size, "batch_size": BATCH, "optimizer": "Adam",
            "learning_rate": LEARNING_RATE, "clip": CLIP, "steps_at_most": steps, "looked_at_every": EVERY,
            "stopped_when": f"{ENOUGH} of 500 validation sentences right, twice running", "seeds": SEEDS,
        },
        "measured_on": "1,000 sentences, the words between from the test part of Moby Dick",
        "starts": {start: {"cell": cell, **changed} for start, (cell, changed) in STARTS.items()},
        "fixed": [plain(run) for run in fixed_runs],
        "mixed": {"distances_trained": [0, MIXED], "runs": [plain(run) for run in mixed_runs]},
        "patient": [plain(run) for run in patient_runs],
        "cpu_seconds": round(sum(run["cpu_seconds"] for run in runs.values()), 1),
        "machine": f"{platform.machine()}, one thread, torch {torch.__version__.split('+')[0]}, "
        f"Python {sys.version_info.major}.{sys.version_info.minor}",
    }  # fmt: skip
    with whole_file(folder / "agreement.json") as file:
        file.write_text(json.dumps(card, indent=1) + "\n", encoding="utf-8", newline="\n")
    progress.unlink(missing_ok=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=DATA / "models", help="where the card goes")
    parser.add_argument("--steps", type=int, default=STEPS, help="fewer steps, for a trial")
    options = parser.parse_args()
    main(options.folder, options.steps)
