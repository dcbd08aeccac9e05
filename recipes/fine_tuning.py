"""What the recipes that fine-tune share: examples as ids, a head for each task, training, frozen features, measures.

Chapter 12. The heads are the library's; here stands what surrounds them.
"""

import copy
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import Tensor, nn

from recipes.bert_pretraining import LENGTH
from recipes.bert_tasks import AUTHORS, Choice, Passage, Question
from recipes.language_model import warm_up_then_down
from transformer_lib.models import Bert, Chooser, Classifier, SpanFinder, best_span
from transformer_lib.text import WordPieceTokenizer
from transformer_lib.training import fit, padded

NOTHING = (0, 0)  # no answer: [CLS] is where it starts and ends


class Example(NamedTuple):
    """An example as a model reads it: a row of ids and one of segments for each text (4 for a choice)."""

    ids: list[list[int]]
    segments: list[list[int]]
    target: int | tuple[int, int]  # a label, or where the answer starts and ends
    passage: range  # where an answer may lie


class Batch(NamedTuple):
    """Ids and segments (batch, n), of choices (batch, 4, n); targets (batch,), of spans (batch, 2)."""

    ids: Tensor
    segments: Tensor
    targets: Tensor


def as_ids(example: tuple, tokenizer: WordPieceTokenizer, longest: int = LENGTH) -> Example:
    """[CLS] text [SEP], or [CLS] first [SEP] second [SEP], as the task wants it."""
    if isinstance(example, Question):
        return question_as_ids(example, tokenizer, longest)
    if isinstance(example, Choice):
        texts = [(example.beginning, ending) for ending in example.endings]
    else:
        texts = [(example.text, None)] if isinstance(example, Passage) else [(example.first, example.second)]
    ids, segments = zip(*(tokenizer.encode_pair(*pair, longest=longest) for pair in texts), strict=True)
    return Example(list(ids), list(segments), example.label, range(0))


def question_as_ids(example: Question, tokenizer: WordPieceTokenizer, longest: int) -> Example:
    """The answer's place in tokens: after [CLS], question, [SEP] and the speeches before it."""
    ids, segments = tokenizer.encode_pair(example.question, example.passage, longest=longest)
    begin, target = segments.index(1), NOTHING
    if example.answer is not None:
        before = " ".join(f"{speaker} . {text}" for speaker, text in example.speeches[: example.answer])
        start = begin + len(tokenizer.encode(before))
        target = (start, start + len(tokenizer.encode(example.speeches[example.answer][0])) - 1)
    return Example([ids], [segments], target, range(begin, len(ids) - 1))


def together(examples: Sequence[Example], pad_id: int) -> Batch:
    """Several examples, filled up to the longest."""
    shape = (len(examples), -1) if len(examples[0].ids) == 1 else (len(examples), len(examples[0].ids), -1)
    ids = padded([row for example in examples for row in example.ids], pad_id)
    segments = padded([row for example in examples for row in example.segments], 0)
    return Batch(ids.view(shape), segments.view(shape), torch.tensor([example.target for example in examples]))


def new_head(task: str, bert: Bert, dropout: float = 0.1) -> nn.Module:
    """The library's head for a task; it trains this encoder too."""
    if task == "who speaks":
        return SpanFinder(bert)
    return (
        Chooser(bert, dropout) if task == "ending" else Classifier(bert, {"author": len(AUTHORS)}.get(task, 2), dropout)
    )


def task_loss(head: nn.Module, batch: Batch) -> Tensor:
    """Cross-entropy of the labels; of spans, the mean of that of the start and that of the end."""
    said = head(batch.ids, batch.segments)
    if isinstance(head, SpanFinder):
        each = (nn.functional.cross_entropy(s, t) for s, t in zip(said, batch.targets.unbind(1), strict=True))
        return sum(each) / 2
    return nn.functional.nll_loss(said, batch.targets)


def shuffled(examples: Sequence, size: int, seed: int, as_batch: Callable[[list], Any]) -> Callable[[int], Any]:
    """A function from the step's number to what `as_batch` makes of its examples; every epoch in another order."""
    per_epoch = -(-len(examples) // size)

    def batch(step: int) -> Any:
        order = np.random.default_rng((seed, step // per_epoch)).permutation(len(examples))
        start = step % per_epoch * size
        return as_batch([examples[i] for i in order[start : start + size]])

    return batch


def fine_tune(
    task: str, bert: Bert, examples: Sequence[Example], steps: int, rate: float, seed: int = 0, size: int = 16
) -> nn.Module:
    """A new head on a copy of the encoder, and both trained: AdamW, a tenth of the steps up, then down to 0."""
    torch.manual_seed(seed)
    head = new_head(task, copy.deepcopy(bert))
    optimizer = torch.optim.AdamW(head.parameters(), rate, weight_decay=0.01)
    batches = shuffled(examples, size, seed, partial(together, pad_id=bert.pad_id))
    fit(head, batches, steps, optimizer, task_loss, warm_up_then_down(steps, max(1, steps // 10)), clip=1.0)
    return head


@torch.no_grad()
def answers(head: nn.Module, examples: Sequence[Example], size: int = 50) -> list:
    """What a head in evaluation mode says: a label each, or a span; (0, 0) where it finds no answer."""
    said = []
    for i in range(0, len(examples), size):
        some = examples[i : i + size]
        batch = together(some, head.bert.pad_id)
        if isinstance(head, SpanFinder):
            said += spans(*head(batch.ids, batch.segments), some)
        else:
            said += head(batch.ids, batch.segments).argmax(-1).tolist()
    return said


def spans(start: Tensor, end: Tensor, examples: Sequence[Example]) -> list[tuple[int, int]]:
    """The best span of each of the examples, within its passage."""
    inside = torch.zeros(start.shape, dtype=torch.bool)
    for row, example in zip(inside, examples, strict=True):
        row[example.passage.start : example.passage.stop] = True
    return [best_span(*one, longest=6) or NOTHING for one in zip(start, end, inside, strict=True)]


def share_right(said: Sequence, examples: Sequence[Example]) -> float:
    """Of the examples, how many are answered as the target says."""
    return sum(one == example.target for one, example in zip(said, examples, strict=True)) / len(examples)


@torch.no_grad()
def features(bert: Bert, examples: Sequence[Example], size: int = 50) -> np.ndarray:
    """The mean of H over the tokens of each row, (examples, d_model), of choices (examples, 4, d_model)."""
    found = []
    for i in range(0, len(examples), size):
        ids, segments, _ = together(examples[i : i + size], bert.pad_id)
        H = bert(ids.flatten(0, -2), segments.flatten(0, -2))
        real = (ids.flatten(0, -2) != bert.pad_id).unsqueeze(-1)
        found.append(((H * real).sum(1) / real.sum(1)).view(*ids.shape[:-1], -1))
    return torch.cat(found).numpy()


def regression(C: float = 0.1) -> Pipeline:
    """Logistic regression on numbers brought to one scale."""
    return make_pipeline(StandardScaler(), LogisticRegression(C=C, max_iter=2000))


def by_features(train: np.ndarray, targets: Sequence[int], test: np.ndarray, C: float = 0.1) -> list[int]:
    """Labels by logistic regression; of choices, the row that looks most like a row that is right."""
    model = regression(C)
    if train.ndim == 2:
        return model.fit(train, targets).predict(test).tolist()
    right = (np.arange(train.shape[1]) == np.array(targets)[:, None]).ravel()
    scores = model.fit(train.reshape(-1, train.shape[-1]), right).decision_function(test.reshape(-1, test.shape[-1]))
    return scores.reshape(test.shape[:2]).argmax(1).tolist()


def span_by_features(
    states: Callable[[Batch], Tensor],
    train: Sequence[Example],
    test: Sequence[Example],
    pad_id: int,
    steps: int = 300,
    seed: int = 0,
) -> list[tuple[int, int]]:
    """Two scores of each token by a linear layer over states that stay as they are."""
    torch.manual_seed(seed)
    with torch.no_grad():
        batch, exam = together(train, pad_id), together(test, pad_id)
        H, of_test = states(batch), states(exam)
    layer = nn.Linear(H.shape[-1], 2)
    optimizer = torch.optim.AdamW(layer.parameters(), 0.01, weight_decay=0.01)
    for step in range(steps):
        rows = torch.from_numpy(np.random.default_rng((seed, step)).integers(len(H), size=64))
        said = layer(H[rows]).masked_fill((batch.ids[rows] == pad_id)[..., None], -1e9).transpose(1, 2)
        loss = nn.functional.cross_entropy(said.flatten(0, 1), batch.targets[rows].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        return spans(*layer(of_test).unbind(-1), test)
