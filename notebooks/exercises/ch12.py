"""The checks of chapter 12's exercises: new weights, a span by hand, a choice's loss, a layout, a search, an F1.

What is expected is computed here, by the library where it has it; each likely wrong answer gets its own explanation.
"""

import math
from collections import Counter

import torch

from transformer_lib.models import Bert, Classifier, best_span
from transformer_lib.show import close, exercise, right, wrong


@exercise("12.1", expects="a whole number")
def new_weights(answer):
    with torch.device("meta"):  # sizes, no memory
        head = Classifier(Bert(vocab_size=30522, layers=1), classes=3)
    expected = sum(p.numel() for p in head.output.parameters())
    if close(answer, expected, 1e-9):
        return right()
    if close(answer, expected - 3, 1e-9):
        return wrong("the matrix is right; each class has a bias too")
    if close(answer, expected + 768 * 768 + 768, 1e-9):
        return wrong("the pooler was trained in pre-training, by the next sentences; only the output layer is new")
    if close(answer, 2 * 769, 1e-9):
        return wrong("that would be two classes; contradiction, neutral and entailment are three")
    return wrong("a linear layer from 768 numbers to 3: a matrix and a bias")


START = [1.0, -2.0, -2.0, -2.0, 0.5, 2.0, 3.0, 0.0, -2.0]
END = [0.5, -2.0, -2.0, -2.0, 3.5, 0.0, 1.0, 2.0, -2.0]


@exercise("12.2", expects="two places, as (4, 5)")
def span_by_hand(answer):
    start, end = (torch.tensor(scores, dtype=torch.float64) for scores in (START, END))
    allowed = torch.zeros(len(start), dtype=torch.bool)
    allowed[4:8] = True
    expected = best_span(start, end, allowed)
    if answer == "none":
        return wrong("no answer only if S_0 + E_0 exceeds the best span's sum; here it is smaller")
    if close(answer, expected, 1e-9):
        return right()
    if close(answer, [int(start.argmax()), int(end.argmax())], 1e-9):
        return wrong("each maximum by itself: this span ends before it starts; look for the best sum with i <= j")
    if close(answer, [4, 4], 1e-9):
        return wrong("the largest E with its best start sums to 4; another pair sums to more")
    return wrong("of all pairs i <= j within places 4 to 7, take the one with the largest S_i + E_j")


@exercise("12.3", expects="a number")
def choice_loss(answer):
    scores = torch.tensor([2.0, 1.0, 0.0, 1.0], dtype=torch.float64)
    expected = -torch.log_softmax(scores, 0)[1]
    if close(answer, expected, 2e-3):
        return right()
    if close(answer, -torch.nn.functional.logsigmoid(scores[1]), 2e-3):
        return wrong("a sigmoid judges each ending by itself; the softmax runs over the four scores")
    if close(answer, -expected, 2e-3):
        return wrong("the size is right, the sign is not: a loss is *minus* the logarithm")
    if close(answer, math.exp(-expected), 2e-3):
        return wrong("that is the probability; the loss is minus its logarithm")
    if close(answer, expected / math.log(2), 2e-3):
        return wrong("that is in bits; the natural logarithm is wanted")
    if close(answer, -torch.log_softmax(scores, 0)[0], 2e-3):
        return wrong("that is the loss if the first ending were right; the second is")
    return wrong("minus the logarithm of the second of the four softmax probabilities")


@exercise("12.4", expects="a function of (cls, sep, first, second) that returns two lists")
def layout(answer):
    if not callable(answer):
        return wrong("write it as a function and give the function itself, not its result")
    cases = (([7, 8], [9]), ([5], [6, 7, 8]), ([5, 6, 7], None), ([4], [4]))
    for (cls, sep), (first, second) in zip(((2, 3), (2, 3), (2, 3), (101, 102)), cases, strict=True):
        ids, segments = [cls, *first, sep], [0] * (len(first) + 2)
        if second is not None:
            ids, segments = [*ids, *second, sep], [*segments, *[1] * (len(second) + 1)]
        given = list(first), None if second is None else list(second)
        try:
            got_ids, got_segments = map(list, answer(cls, sep, *given))
        except (TypeError, ValueError):
            return wrong("return two lists, ids and segments; second may be None: one text")
        if given != (first, second):
            return wrong("the texts were changed for the caller too: build new lists")
        if (got_ids, got_segments) == (ids, segments):
            continue
        if got_ids == ids and len(got_segments) == len(ids):
            if got_segments == [0] * len(ids):
                return wrong("the ids are right; the second text and its [SEP] are segment 1")
            if got_segments == [1 - segment for segment in segments]:
                return wrong("the ids are right; the first text is segment 0, the second segment 1")
            if second is not None and got_segments[len(first) + 1] == 1:
                return wrong("the ids are right; the first [SEP] still belongs to the first text: segment 0")
        if got_ids == ids[:-1]:
            return wrong("a [SEP] stands at the end too")
        if second is None and got_ids == [*ids, sep]:
            return wrong("without a second text there is no second [SEP]")
        if [i for i in got_ids if i != sep] == ids[:1] + first + (second or []) and got_ids.count(sep) < ids.count(sep):
            return wrong("each text ends with a [SEP]")
        if cls > 100 and got_ids[:1] == [2]:
            return wrong("the two marks are arguments, not always 2 and 3")
        if got_ids[:1] != [cls]:
            return wrong("the row begins with [CLS]")
        return wrong(f"for {first} and {second} expected {ids} and {segments}, got {got_ids} and {got_segments}")
    return right()


@exercise("12.5", expects="a function of (start, end, first, last, longest) that returns (i, j) or None")
def search(answer):
    if not callable(answer):
        return wrong("write it as a function and give the function itself, not its result")
    chance = torch.Generator().manual_seed(0)
    for trial in range(40):
        n = int(torch.randint(6, 14, (1,), generator=chance))
        start, end = (2 * torch.randn(n, generator=chance, dtype=torch.float64) for _ in range(2))
        if trial % 2:
            start[0], end[0] = start[0] + 2, end[0] + 2
        first, last, longest = 3, n - 2, 1 + trial % 4
        allowed = torch.zeros(n, dtype=torch.bool)
        allowed[first : last + 1] = True
        expected = best_span(start, end, allowed, longest)
        given = start.tolist(), end.tolist()
        got = answer(*given, first, last, longest)
        got = None if got is None else tuple(int(place) for place in got)
        if got == expected:
            continue
        if expected is None:
            return wrong("start[0] + end[0] was larger than any span's sum: return None")
        if got is None:
            return wrong("a span's sum was larger than start[0] + end[0], yet None came back")
        if got[0] > got[1]:
            return wrong("a span that ends before it starts: i <= j")
        if got[1] - got[0] + 1 > longest:
            return wrong(f"a span of {got[1] - got[0] + 1} tokens where {longest} are allowed")
        if got[0] < first or got[1] > last:
            return wrong(f"the span {got} lies outside the passage, {first} to {last}")
        if got == best_span(start, end, allowed, max(longest - 1, 1)) and longest > 1:
            return wrong(f"a span of exactly `longest` tokens is allowed: {expected} was missed")
        allowed[last] = False
        if got == best_span(start, end, allowed, longest):
            return wrong(f"place `last` still belongs to the passage: {expected} was missed")
        return wrong(f"the span {got} has a smaller sum than {expected}")
    return right()


def in_common(a, b):
    return sum((Counter(a) & Counter(b)).values())


F1_PAIRS = [
    (a.split(), b.split())
    for a, b in (
        ("first lord", "first lord"), ("lord", "first lord"), ("the first lord", "lord"),
        ("come come away", "come away"), ("a b a", "a a a c"),
    )
]  # fmt: skip
F1_SLIPS = (
    (lambda a, b: 2 * len(set(a) & set(b)) / len([*set(a), *set(b)]), "a word that stands twice counts twice: no sets"),
    (
        lambda a, b: 2 * len(set(a) & set(b)) / len(a + b),
        "a word in common counts as often as it stands in both: no sets",
    ),
    (lambda a, b: 2 * sum(w in b for w in a) / len(a + b), "a word is in common as often as it stands in *both* lists"),
    (lambda a, b: 2 * sum(w in a for w in b) / len(a + b), "a word is in common as often as it stands in *both* lists"),
    (lambda a, b: in_common(a, b) / len(a), "that is the precision; F1 takes the recall in as well"),
    (lambda a, b: in_common(a, b) / len(b), "that is the recall; F1 takes the precision in as well"),
    (
        lambda a, b: (in_common(a, b) / len(a) + in_common(a, b) / len(b)) / 2,
        "that is the plain mean; F1 is the harmonic mean, 2 P R / (P + R)",
    ),
    (lambda a, b: in_common(a, b) / len(a + b), "half of what is wanted: the harmonic mean is 2 P R / (P + R)"),
    (lambda a, b: float(a == b), "that is the exact match; F1 gives a part for words in common"),
)


@exercise("12.6", expects="a function of (said, wanted), two lists of words, that returns a number")
def f1(answer):
    if not callable(answer):
        return wrong("write it as a function and give the function itself, not its result")
    cases = (
        ("first lord", "first lord"), ("lord", "first lord"), ("the first lord", "lord"), ("hamlet", "ophelia"),
        ("", ""), ("hamlet", ""), ("", "hamlet"), ("come come away", "come away"), ("a b a", "a a a c"),
    )  # fmt: skip
    for said, wanted in ((a.split(), b.split()) for a, b in cases):
        common = in_common(said, wanted)
        expected = float(said == wanted) if not (said and wanted) else 2 * common / (len(said) + len(wanted))
        try:
            got = answer(list(said), list(wanted))
        except ZeroDivisionError:
            return wrong(f"a division by zero for {said} and {wanted}: no word in common, an empty answer")
        if close(got, expected, 1e-9):
            continue
        if not said and not wanted:
            return wrong("no answer, and none said: that is right, 1")
        if not said or not wanted:
            return wrong("one of the two is no answer and the other is not: 0")
        for slip, why in F1_SLIPS:
            if all(close(answer(list(a), list(b)), slip(a, b), 1e-9) for a, b in F1_PAIRS):
                return wrong(why)
        return wrong(f"for {said} and {wanted} expected {expected:.4g}")
    return right()
