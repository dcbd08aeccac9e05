"""Four tasks for the pre-trained BERT, and what it has to beat: `python -m recipes.bert_finetuning`.

Chapter 12, about 8 CPU-minutes. Each task by baselines, by a BERT of the same size with random weights, by the
pre-trained one, fine-tuned or frozen, and by MiniLM; three seeds for what is ours. Nothing but the card is kept. A
recipe that was killed goes on with the runs that are missing.
"""

import time
from collections import Counter
from collections.abc import Callable
from functools import lru_cache, partial
from itertools import product
from pathlib import Path

import numpy as np
import torch
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression

from recipes.bert_english import NAME, SIZE
from recipes.bert_pretraining import packed, vocabulary
from recipes.bert_tasks import TASKS, Choice, Pair, Passage, Question
from recipes.cards import Runs, options
from recipes.fine_tuning import (
    Example,
    answers,
    as_ids,
    by_features,
    features,
    fine_tune,
    share_right,
    span_by_features,
)
from transformer_lib.models import Bert, NGramModel, load_trained
from transformer_lib.models.pretrained import load_minilm
from transformer_lib.text import WordPieceTokenizer

SEEDS, TRAINED_ON, MEASURED_ON, STEPS = (0, 1, 2), 600, 400, 75
LABELS = {30: 30, 100: 50, 300: 75, 1000: None}  # steps of fine-tuning by number of labelled sentences
BATCH = {"author": 16, "same scene": 8, "who speaks": 8, "ending": 8}  # where examples cost nothing, each is seen once
FOR_MINILM = (("author", 300), ("same scene", TRAINED_ON))  # 22.7 million weights: two tasks, one seed
RATES = {"pre-trained": 1e-3, "random": 1e-3, "MiniLM": 2e-4}


@lru_cache
def tokenizers() -> dict[str, WordPieceTokenizer]:
    """Ours, and MiniLM's."""
    return {"ours": vocabulary(), "MiniLM": load_minilm()[1]}


@lru_cache
def examples(task: str, part: str, count: int, seed: int = 0) -> list:
    """As a reader sees them; the test examples are always the same."""
    return TASKS[task](part, count, seed)


def encoder(kind: str, seed: int) -> Bert:
    """Pre-trained, or of the same size with random weights, or MiniLM; in evaluation mode."""
    if kind == "MiniLM":
        return load_minilm()[0]
    if kind == "pre-trained":
        return load_trained(NAME)[0].bert
    torch.manual_seed(1000 + seed)
    return Bert(tokenizers()["ours"].vocab_size, **SIZE).eval()


def read(task: str, kind: str, count: int, seed: int) -> dict[str, list[Example]]:
    """Training and test examples as ids."""
    tokenizer = tokenizers()["MiniLM" if kind == "MiniLM" else "ours"]
    sides = {"train": examples(task, "train", count, seed), "test": examples(task, "test", MEASURED_ON)}
    return {side: [as_ids(one, tokenizer) for one in some] for side, some in sides.items()}


def tuned(task: str, kind: str, count: int, seed: int, steps: int = STEPS) -> float:
    """Encoder and head trained together."""
    sides = read(task, kind, count, seed)
    head = fine_tune(task, encoder(kind, seed), sides["train"], steps, RATES[kind], seed, BATCH[task])
    return share_right(answers(head, sides["test"]), sides["test"])


def frozen(task: str, kind: str, count: int, seed: int) -> float:
    """Only what stands on top is trained: logistic regression on the mean of H, of spans a linear layer on H."""
    sides, bert = read(task, kind, count, seed), encoder(kind, seed)
    train, test = sides["train"], sides["test"]
    if task == "who speaks":
        states = lambda batch: bert(batch.ids, batch.segments)  # noqa: E731
        return share_right(span_by_features(states, train, test, bert.pad_id, seed=seed), test)
    targets = [example.target for example in train]
    return share_right(by_features(features(bert, train), targets, features(bert, test)), test)


def bag_of_words(train: list[Passage], test: list[Passage]) -> list[int]:
    """Logistic regression on tf-idf of the tokens, punctuation included, and pairs of them."""
    words = TfidfVectorizer(analyzer=tokens_and_pairs, sublinear_tf=True)
    X = words.fit_transform([one.text for one in train])
    model = LogisticRegression(C=10, max_iter=1000).fit(X, [one.label for one in train])
    return model.predict(words.transform([one.text for one in test])).tolist()


def tokens_and_pairs(text: str) -> list[str]:
    """Each token, and each with the next."""
    tokens = tokenizers()["ours"].split(text)
    return [*tokens, *map(" ".join, zip(tokens, tokens[1:], strict=False))]


def overlap(train: list[Pair], test: list[Pair]) -> list[int]:
    """The cosine of the two texts' tf-idf, and a threshold learned by logistic regression."""
    split = tokenizers()["ours"].split
    words = TfidfVectorizer(analyzer=split, sublinear_tf=True).fit([text for one in train for text in one[:2]])

    def cosine(some: list[Pair]) -> np.ndarray:
        first, second = (words.transform([one[side] for one in some]) for side in (0, 1))
        return np.asarray(first.multiply(second).sum(1))

    model = LogisticRegression(C=100).fit(cosine(train), [one.label for one in train])
    return model.predict(cosine(test)).tolist()


def habit(train: list[Question], test: list[Question]) -> list[int | None]:
    """For each kind of question the answer that it had most often: the first speaker, the second, ..., or none."""
    most = {kind: Counter(q.answer for q in train if q.kind == kind).most_common(1) for kind in {q.kind for q in train}}
    return [most[question.kind][0][0] for question in test]


@lru_cache
def trigrams() -> NGramModel:
    """Of the tokens of the training texts, the very ones that BERT was pre-trained on."""
    tokenizer = tokenizers()["ours"]
    passages = [i for each in packed(tokenizer, "train").values() for d in each for passage in d for i in passage]
    return NGramModel(3, smoothing="kneser-ney", vocab_size=tokenizer.vocab_size).fit(passages)


def likeliest(train: list[Choice], test: list[Choice]) -> list[int]:
    """The ending with the largest mean log probability after the beginning, by trigrams."""
    model, encode, said = trigrams(), tokenizers()["ours"].encode, []
    for one in test:
        begun, scores = encode(one.beginning), []
        for ending in one.endings:
            ids = torch.tensor([*begun, *encode(ending)])
            scores.append(float(model.score(ids[:-1], ids[1:])[0][len(begun) - 1 :].mean()))
        said.append(int(np.argmax(scores)))
    return said


BASELINES: dict[str, tuple[str, Callable[[list, list], list]]] = {
    "author": ("bag of words and pairs of words", bag_of_words),
    "same scene": ("words in common", overlap),
    "who speaks": ("most frequent place for the kind of question", habit),
    "ending": ("trigrams of the three books", likeliest),
}


def target(example: tuple) -> int | None:
    """What a baseline has to say."""
    return example.answer if isinstance(example, Question) else example.label


def baseline(task: str, count: int, seed: int) -> float:
    """The baseline's share of test examples answered rightly."""
    train, test = examples(task, "train", count, seed), examples(task, "test", MEASURED_ON)
    said = BASELINES[task][1](train, test)
    return sum(one == target(example) for one, example in zip(said, test, strict=True)) / len(test)


def most_frequent(task: str) -> float:
    """What saying always the same gives."""
    return Counter(target(e) for e in examples(task, "test", MEASURED_ON)).most_common(1)[0][1] / MEASURED_ON


def main(folder: Path) -> None:
    """Do the runs that are not done yet, then write bert-finetuning.json."""
    torch.set_num_threads(1)
    runs = Runs("bert-finetuning", folder)

    def once(task: str, way: str, count: int, seed: int, run: Callable[[], float]) -> None:
        def timed() -> dict:
            clock = time.process_time()
            result = {"task": task, "way": way, "examples": count, "seed": seed, "accuracy": round(run(), 4)}
            return result | {"cpu_seconds": round(time.process_time() - clock, 1)}

        runs.once(f"{task} / {way} / {count} / {seed}", timed)

    order = [(0, kind) for kind in ("pre-trained", "random", "MiniLM")]  # a first picture early, then the spread
    order += [(seed, kind) for kind in ("pre-trained", "random") for seed in SEEDS[1:]]
    for (seed, kind), task in product(order, TASKS):
        for count, steps in LABELS.items() if task == "author" else [(TRAINED_ON, STEPS)]:
            at = (task, kind, count, seed)
            if kind == "random":
                once(task, "baseline", count, seed, partial(baseline, task, count, seed))
            if kind == "MiniLM" and (task, count) not in FOR_MINILM:
                continue
            if kind != "random":
                once(task, f"{kind}, frozen", count, seed, partial(frozen, *at))
            if steps and (kind != "MiniLM" or task == "author"):
                once(task, f"{kind}, fine-tuned", count, seed, partial(tuned, *at, steps))
    card = {
        "tasks": {
            task: {"baseline": BASELINES[task][0], "always the most frequent": round(most_frequent(task), 4)}
            for task in TASKS
        },
        "measured_on": f"{MEASURED_ON} test examples of each task; each seed draws its training examples",
        "training": {
            "examples": TRAINED_ON,
            "steps": STEPS,
            "steps_by_examples": {str(count): steps for count, steps in LABELS.items() if steps},
            "batch_size": BATCH,
            "optimizer": "AdamW",
            "learning_rates": RATES,
            "schedule": "a tenth of the steps up, then a straight line to 0",
            "clip": 1.0,
        },
        "runs": list(runs.done.values()),
    }
    runs.finish(card)


if __name__ == "__main__":
    main(options(__doc__.splitlines()[0], STEPS).folder)
