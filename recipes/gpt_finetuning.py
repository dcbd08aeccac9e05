"""Fine-tune a small GPT with lambda 0 and 0.5, pre-trained and not: `python -m recipes.gpt_finetuning`.

Chapter 14, about 10 CPU-minutes. Tasks of chapter 12, laid out as GPT-1 laid them out; three seeds; one card.
"""

import argparse
import copy
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import torch
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from torch import Tensor, nn

from recipes import fine_tuning
from recipes.bert_pretraining import LENGTH
from recipes.bert_tasks import AUTHORS, TASKS, Choice, Passage
from recipes.cards import Runs
from recipes.gpt_english import NAME, SIZE
from recipes.gpt_shakespeare import make_gpt
from recipes.language_model import warm_up_then_down
from transformer_lib.models import GPTClassifier, load_trained
from transformer_lib.paths import DATA
from transformer_lib.text import WordPieceTokenizer
from transformer_lib.training import fit, padded

LAYOUTS = {"author": "author", "one way": "same scene", "both ways": "same scene", "ending": "ending"}
TRAINED_ON, TESTED_ON, BATCH, STEPS, RATE, SEEDS = 400, 400, 8, 100, 1e-3, (0, 1, 2)
Batch = tuple[Tensor, Tensor]  # ids (batch, rows of one example, n), labels (batch,)


def layout(example: tuple, tokenizer: WordPieceTokenizer, both_ways: bool = True) -> list[list[int]]:
    """The rows by which a GPT reads an example: start, text, delimiter, text, extract.

    A passage: one row; a pair: one row, or both orders; a choice: a row for each ending. Start is [CLS], the delimiter
    [SEP]; what marks the end is [MASK]. The pre-training has never seen these two. A text is cut where its row would
    not fit into LENGTH.
    """
    start, between, extract = (tokenizer.ids[token] for token in (tokenizer.start, tokenizer.end, tokenizer.mask))
    if isinstance(example, Passage):
        return [[start, *tokenizer.encode(example.text)[: LENGTH - 2], extract]]
    if isinstance(example, Choice):
        texts = [(example.beginning, ending) for ending in example.endings]
    else:
        texts = [(example.first, example.second), (example.second, example.first)][: 2 if both_ways else 1]
    both = ([tokenizer.encode(text)[: (LENGTH - 3) // 2] for text in pair] for pair in texts)
    return [[start, *a, between, *b, extract] for a, b in both]


def encoded(name: str, examples: Sequence[tuple], tokenizer: WordPieceTokenizer) -> list[tuple[list[list[int]], int]]:
    """(rows, label) of each example in the layout of this name."""
    return [(layout(one, tokenizer, name != "one way"), one.label) for one in examples]


def together(some: Sequence[tuple[list[list[int]], int]]) -> Batch:
    """Several examples, filled up to the longest row; [PAD] is 0."""
    rows = padded([row for rows, _ in some for row in rows], 0)
    return rows.view(len(some), -1, rows.shape[-1]), torch.tensor([label for _, label in some])


def label_scores(model: GPTClassifier, ids: Tensor) -> tuple[Tensor, Tensor]:
    """Scores of the labels (batch, labels), and log P of the next tokens of all rows.

    One class: each row's score is that of an ending. Several classes: the scores of all rows, added up.
    """
    scores, log_probs = model(ids.flatten(0, 1))
    scores = scores.view(*ids.shape[:2], -1)
    return scores.squeeze(-1) if scores.shape[-1] == 1 else scores.sum(1), log_probs


def fine_tuning_loss(model: GPTClassifier, batch: Batch, weight: float) -> Tensor:
    r"""$-L_3$ as means: cross-entropy of the labels, plus lambda times that of the next tokens; no padding counts."""
    ids, labels = batch
    scores, log_probs = label_scores(model, ids)
    loss = nn.functional.cross_entropy(scores, labels)
    if weight == 0:
        return loss
    return loss + weight * nn.functional.nll_loss(
        log_probs[:, :-1].flatten(0, 1), ids.flatten(0, 1)[:, 1:].flatten(), ignore_index=0
    )


def shuffled(examples: Sequence, size: int, seed: int) -> Callable[[int], Batch]:
    """From the step's number to its batch; every epoch in another order."""
    return fine_tuning.shuffled(examples, size, seed, together)


@torch.no_grad()
def share_right(model: GPTClassifier, examples: Sequence, size: int = 50) -> float:
    """Of the examples, how many get their label."""
    right = 0
    for i in range(0, len(examples), size):
        ids, labels = together(examples[i : i + size])
        right += int((label_scores(model, ids)[0].argmax(-1) == labels).sum())
    return right / len(examples)


def fine_tune(name: str, start: str, weight: float, seed: int, steps: int) -> dict:
    """One run: a copy of the pre-trained GPT, or one with fresh weights, and a new output layer."""
    gpt, tokenizer, card = load_trained(NAME)
    train, test = (
        encoded(name, TASKS[LAYOUTS[name]](part, count), tokenizer)
        for part, count in (("train", TRAINED_ON), ("test", TESTED_ON))
    )
    torch.manual_seed(seed)
    if start == "fresh":
        gpt = make_gpt({"vocab_size": tokenizer.vocab_size, **SIZE}, zero_outputs=True)
    classes = {"author": len(AUTHORS), "ending": 1}.get(name, 2)
    model = GPTClassifier(copy.deepcopy(gpt), classes, tokenizer.ids[tokenizer.mask])
    clock = time.process_time()
    history = fit(
        model,
        shuffled(train, BATCH, seed),
        steps,
        torch.optim.AdamW(model.parameters(), RATE, weight_decay=0.01),
        partial(fine_tuning_loss, weight=weight),
        warm_up_then_down(steps, max(1, steps // 10)),
        clip=1.0,
    )
    return {
        "layout": name,
        "start": start,
        "lambda": weight,
        "seed": seed,
        "accuracy": round(share_right(model, test), 4),
        "accuracy_on_100_of_training": round(share_right(model, train[:100]), 4),
        "loss_every_10_steps": [round(sum(history.loss[i : i + 10]) / 10, 4) for i in range(0, steps - 9, 10)],
        "cpu_seconds": round(time.process_time() - clock, 1),
    }


def shared(first: str, second: str) -> int:
    """How many different words two texts have in common."""
    return len(set(first.lower().split()) & set(second.lower().split()))


def without_a_network(task: str) -> float:
    """Words counted, a logistic regression on the same examples; of pairs and endings, the words they share."""
    train, test = (TASKS[task](part, count) for part, count in (("train", TRAINED_ON), ("test", TESTED_ON)))
    labels = [one.label for one in test]
    if task == "ending":
        said = [int(np.argmax([shared(one.beginning, ending) for ending in one.endings])) for one in test]
    elif task == "author":
        model = make_pipeline(CountVectorizer(), LogisticRegression(max_iter=2000))
        said = model.fit([one.text for one in train], [one.label for one in train]).predict([one.text for one in test])
    else:
        counts = [[[shared(one.first, one.second)] for one in part] for part in (train, test)]
        said = LogisticRegression().fit(counts[0], [one.label for one in train]).predict(counts[1])
    return round(float(np.mean(np.array(said) == labels)), 4)


def most_frequent(task: str) -> float:
    """The share of the commonest label."""
    labels = [one.label for one in TASKS[task]("test", TESTED_ON)]
    return round(max(map(labels.count, labels)) / len(labels), 4)


def options() -> argparse.Namespace:
    """What the command line says."""
    parser = argparse.ArgumentParser(description="Fine-tune on four layouts; goes on where it was killed.")
    parser.add_argument("--folder", type=Path, default=DATA / "models", help="where the card goes")
    parser.add_argument("--steps", type=int, default=STEPS, help="fewer steps, for a trial")
    parser.add_argument("--layouts", nargs="*", default=list(LAYOUTS), choices=list(LAYOUTS), help="only some of them")
    return parser.parse_args()


def main(folder: Path, steps: int, layouts: Sequence[str]) -> None:
    """Do the runs that are not done yet; when there are all, write gpt-finetuning.json."""
    torch.set_num_threads(1)
    runs = Runs("gpt-finetuning", folder)
    for seed in SEEDS:
        for name in layouts:
            for start in ("pre-trained", "fresh"):
                for weight in (0.0, 0.5):
                    of = name, start, weight, seed, steps
                    runs.once(" / ".join(map(str, of)), partial(fine_tune, *of))
    if set(layouts) != set(LAYOUTS):
        return
    tasks = sorted(set(LAYOUTS.values()))
    runs.finish(
        {
            "task": f"{', '.join(tasks)} of chapter 12, laid out for a GPT; accuracy on {TESTED_ON} test examples",
            "training": f"{steps} steps of {BATCH} of {TRAINED_ON} examples, AdamW {RATE}, a tenth up, then down to 0",
            "trained_on": TRAINED_ON,
            "tested_on": TESTED_ON,
            "layouts": LAYOUTS,
            "most_frequent": {task: most_frequent(task) for task in tasks},
            "without_a_network": {task: without_a_network(task) for task in tasks},
            "runs": [
                {name: value for name, value in one.items() if name != "cpu_seconds"} for one in runs.done.values()
            ],
        }
    )


if __name__ == "__main__":
    chosen = options()
    main(chosen.folder, chosen.steps, chosen.layouts)
