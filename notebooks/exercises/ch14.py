"""The checks of chapter 14's exercises: L3, a swap's probability, two characters, layouts, likelihoods, shifts.

What is expected is computed here, by the library where it has it; each likely wrong answer gets its own explanation.
"""

import math
import unicodedata

import torch

from transformer_lib.models import GPT
from transformer_lib.models.pretrained import load_gpt2_vocabulary
from transformer_lib.show import close, exercise, right, wrong

A_FUNCTION = "write it as a function and give the function itself, not its result"


@exercise("14.1", expects="a number")
def third_objective(answer):
    L_1, L_2, weight = sum(map(math.log, (0.5, 0.2, 0.1))), math.log(0.9), 0.5
    if close(answer, L_2 + weight * L_1, 1e-3):
        return right()
    if close(answer, -(L_2 + weight * L_1), 1e-3):
        return wrong("the size is right, the sign is not: L3 is a log likelihood, to be made large")
    if close(answer, L_2 + L_1, 1e-3):
        return wrong("that is lambda = 1; the tokens' sum counts half")
    if close(answer, weight * L_2 + L_1, 1e-3):
        return wrong("lambda stands before L1, the old task, not before L2, the label")
    if close(answer, L_2 + weight * L_1 / 3, 1e-3):
        return wrong("that takes the mean over the tokens, as programs do; the sum was asked for")
    if close(answer, (L_2 + weight * L_1) / math.log(2), 1e-3) or close(
        answer, (L_2 + weight * L_1) / math.log(10), 1e-3
    ):
        return wrong("that logarithm has another base; the natural one is wanted")
    if close(answer, L_2, 1e-3) or close(answer, weight * L_1, 1e-3):
        return wrong("that is one of the two terms; L3 is both, added")
    if close(answer, math.exp(L_2 + weight * L_1), 1e-3):
        return wrong("that is the probability; L3 is its logarithm")
    return wrong("add ln 0.9 and half of ln 0.5 + ln 0.2 + ln 0.1")


@exercise("14.2", expects="two numbers, as (1, 2)")
def swap_or_shift(answer):
    shift, swap = 1 / 10, 1 / 9 / 7
    second = swap / (shift + swap)
    if close(answer, [1, second], 1e-2):
        return right()
    got = torch.as_tensor(answer, dtype=torch.float64).flatten() if isinstance(answer, list | tuple) else torch.zeros(0)
    if len(got) != 2:
        return wrong("two numbers are wanted, one for each prompt")
    if close(answer, [second, 1], 1e-2):
        return wrong("both are right, in the other order: first the prompt `ac ca`")
    if close(got[1], 1 - second, 1e-2):
        return wrong("the second number is the probability of the shift; that of the swap is wanted")
    if close(answer, [100, 100 * second], 1e-2):
        return wrong("those are percentages; give both as parts of 1")
    if close(got[1], swap / (shift + swap + 1 / 100), 1e-2):
        return wrong("that counts the lookup as a third kind; here there are shifts and swaps only")
    if not close(got[0], 1, 1e-3):
        return wrong("`ac` leaves one shift, that by 2, and it sends c to e: no shift says `ca`, so it must be a swap")
    if close(got[1], 1 / 81 / (shift + 1 / 81), 1e-2):
        return wrong("a and c are partners by now: for b seven letters are left, not nine")
    if close(got[1], 1 / 72 / (shift + 1 / 72), 1e-2):
        return wrong("a pair uses up two letters: after nine partners there are seven, not eight")
    if close(got[1], swap / (shift**2 + swap), 1e-2):
        return wrong("once `ac` is known, the shift by 2 makes `bd` certain: 1/10 for both examples together")
    if close(got[1], 0, 1e-3) or close(got[1], 0.5, 1e-2):
        return wrong("`ac bd` fits both kinds; weigh them by how likely each makes these two examples")
    return wrong("the shift makes `ac bd` likely with 1/10, a swap with 1/9 times 1/7; Bayes' rule with equal priors")


@exercise("14.3", expects="two strings of one character each")
def two_characters(answer):
    if not (isinstance(answer, list | tuple) and len(answer) == 2 and all(isinstance(c, str) for c in answer)):
        return wrong("two strings are wanted, one character in each")
    web = load_gpt2_vocabulary()
    for c, count in zip(answer, (1, 3), strict=True):
        if len(c) != 1:
            return wrong(f"{c!r} has {len(c)} characters; one is wanted in each string")
        name = unicodedata.name(c, "")
        if not any(script in name for script in ("HIRAGANA", "KATAKANA", "CJK", "IDEOGRAPHIC")):
            return wrong(f"{c!r} is no Japanese character")
        tokens = len(web.encode(c))
        if [len(web.encode(d)) for d in answer] == [3, 1]:
            return wrong("both are right, in the other order: first the one that is a single token")
        if tokens != count:
            return wrong(f"tokens that {c} takes: {tokens}, not {count}; ask `encode` of the vocabulary")
    return right()


@exercise("14.4", expects="a function of (kind, texts, start, delimiter, extract) that returns a list of rows")
def rows_of(answer):
    if not callable(answer):
        return wrong(A_FUNCTION)
    a, b, c, d = [5, 6, 7], [8], [9, 5], [6, 6, 6]
    expected = {
        "classification": ([a], [[1, *a, 3]]),
        "entailment": ([a, b], [[1, *a, 2, *b, 3]]),
        "similarity": ([a, b], [[1, *a, 2, *b, 3], [1, *b, 2, *a, 3]]),
        "choice": ([c, a, b, d], [[1, *c, 2, *one, 3] for one in (a, b, d)]),
    }
    for kind, (texts, rows) in expected.items():
        given = [list(text) for text in texts]
        got = answer(kind, given, 1, 2, 3)
        if given != texts:
            return wrong("the texts were changed for the caller too: make new lists")
        try:
            got = [[int(i) for i in row] for row in got]
        except (TypeError, ValueError):
            return wrong(f"{kind}: return a list of rows, each a list of ids; also if there is only one row")
        if got == rows:
            continue
        if kind == "entailment" and len(got) == 2:
            return wrong("entailment: the order means something, so one row; both orders are for similarity")
        if kind == "entailment" and got == [[1, *b, 2, *a, 3]]:
            return wrong("entailment: the order is turned round; the first text comes first")
        if kind == "choice" and got == [[1, *one, 2, *c, 3] for one in (a, b, d)]:
            return wrong("choice: the question comes first, the answer after the delimiter")
        if kind == "similarity" and got == rows[:1]:
            return wrong("similarity has no first text: the model reads both orders, two rows")
        if kind == "similarity" and got == rows[::-1]:
            return wrong("similarity: both rows are right, the order given comes first")
        if kind == "choice" and len(got) == 1:
            return wrong("choice: one row for each answer, each with the question before it")
        if kind == "choice" and len(got) == len(texts):
            return wrong("choice: the first text is the question and stands in every row; it is no answer itself")
        if any(row[-1:] != [3] for row in got):
            return wrong(f"{kind}: every row ends with extract; there the model has read everything")
        if any(row[:1] != [1] for row in got):
            return wrong(f"{kind}: every row begins with start")
        if len(texts) > 1 and any(row.count(2) != 1 for row in got):
            return wrong(f"{kind}: between the two texts stands one delimiter")
        if kind == "classification" and any(2 in row for row in got):
            return wrong("classification: one text, so no delimiter")
        return wrong(f"{kind}: expected {rows}, got {got}")
    return right()


@exercise("14.5", expects="a function of (model, question, answers, rule) that returns a number")
def chosen_answer(answer):
    if not callable(answer):
        return wrong(A_FUNCTION)
    chance = torch.Generator().manual_seed(0)
    torch.manual_seed(0)
    model = GPT(9, 32, 8, 2, 1).eval()
    for weight in model.parameters():  # opinions strong enough to differ
        weight.data = torch.randn(weight.shape, generator=chance, dtype=weight.dtype)
    slips = {  # by rule: what a likely wrong answer would choose, and what to say
        ("sum", "least"): "the least likely answer wins there; the largest score should",
        ("sum", "late"): "what stands at place i is judged by what is said at place i - 1, one place earlier",
        ("mean", "sum"): "that is the answer of the plain sum",
        ("mean", "all"): "the mean is over the answer's tokens; those of the question do not count",
        ("gain", "sum"): "that is the answer of the plain sum",
        ("gain", "least"): "the smallest gain wins there; the largest should",
        ("gain", "mean"): "the gain is a difference of two sums; it is not divided by the length",
        ("gain", "ratio"): "the gain is a difference of logarithms, not their ratio",
    }
    took: dict[str, list[tuple[int, int]]] = {"sum": [], "mean": [], "gain": []}  # the right place, the given one
    would: dict[tuple[str, str], list[int]] = {slip: [] for slip in slips}
    for trial in range(30):
        lengths = torch.randint(1, 6, (4,), generator=chance).tolist()
        question = [0, *torch.randint(1, 9, (trial % 3,), generator=chance).tolist()]
        answers = [torch.randint(1, 9, (length,), generator=chance).tolist() for length in lengths]

        def ln(before, after, earlier=1):
            with torch.no_grad():
                said = model.log_probs(torch.tensor([*before, *after]))
            return sum(float(said[len(before) - earlier + i, token]) for i, token in enumerate(after))

        given, bare = ([ln(before, one) for one in answers] for before in (question, question[:1]))
        whole = [ln(question[:1], question[1:] + one) for one in answers]
        gain = [x - y for x, y in zip(given, bare, strict=True)]
        scores = {"sum": given, "mean": [x / n for x, n in zip(given, lengths, strict=True)], "gain": gain}
        wrong_scores = {
            ("sum", "least"): [-x for x in given],
            ("sum", "late"): [ln(question, one, earlier=0) for one in answers],
            ("mean", "sum"): given,
            ("mean", "all"): [x / (n + len(question) - 1) for x, n in zip(whole, lengths, strict=True)],
            ("gain", "sum"): given,
            ("gain", "least"): [-x for x in gain],
            ("gain", "mean"): [x / n for x, n in zip(gain, lengths, strict=True)],
            ("gain", "ratio"): [x / y for x, y in zip(given, bare, strict=True)],
        }
        for rule, values in scores.items():
            if rule == "gain" and len(question) == 1:
                continue  # nothing is gained by no question: all are equal
            got = answer(model, list(question), [list(one) for one in answers], rule)
            try:
                place = int(got)
            except (TypeError, ValueError):
                return wrong(f"{rule}: return the number of the answer, counted from 0")
            if place != got or not 0 <= place < 4:
                return wrong(f"{rule}: return the number of the answer, counted from 0, not {got}")
            took[rule].append((max(range(4), key=values.__getitem__), place))
            for slip in would:
                if slip[0] == rule:
                    would[slip].append(max(range(4), key=wrong_scores[slip].__getitem__))
    for rule, pairs in took.items():
        places = [place for _, place in pairs]
        if places == [best for best, _ in pairs]:
            continue
        for slip, chosen in would.items():
            if slip[0] == rule and chosen == places:
                return wrong(f"{rule}: {slips[slip]}")
        share = sum(best == place for best, place in pairs)
        return wrong(
            f"{rule}: right in {share} of {len(pairs)} cases; the first token of an answer is judged after the last of "
            "what stands before it, and only the answer's own tokens count"
        )
    return right()


@exercise("14.6", expects="a function of (pairs, query, n) that returns n probabilities")
def shift_reader(answer):
    if not callable(answer):
        return wrong(A_FUNCTION)
    cases = [([], 2, 10), ([(0, 3)], 2, 10), ([(0, 3), (5, 8)], 9, 10), ([(0, 3), (1, 3)], 2, 10), ([(6, 0)], 6, 7)]
    cases += [([(4, 1)], 4, 5), ([(3, 3)], 0, 4)]
    for pairs, query, n in cases:
        fits = [k for k in range(n) if all((x + k) % n == y for x, y in pairs)]
        expected = [0.0] * n
        for k in fits or range(n):
            expected[(query + k) % n] += 1 / len(fits or range(n))
        got = answer(list(pairs), query, n)
        what = f"pairs {pairs}, query {query}, n = {n}"
        try:
            got = [float(p) for p in got]
        except (TypeError, ValueError):
            return wrong(f"{what}: return a list of {n} probabilities")
        if len(got) != n:
            return wrong(f"{what}: {n} probabilities are wanted, one for each answer, not {len(got)}")
        if all(abs(p - e) < 1e-6 for p, e in zip(got, expected, strict=True)):
            continue
        if not fits:
            return wrong(f"{what}: no shift fits, so all answers are as likely")
        if n != 10 and abs(sum(got) - 1) > 1e-6:
            return wrong(f"{what}: the probabilities add up to {sum(got):.3g}; there are {n} letters here, not 10")
        if abs(sum(got) - 1) > 1e-6:
            return wrong(f"{what}: the probabilities add up to {sum(got):.3g}; divide by how many shifts fit")
        if n != 10 and len(pairs) == 1:
            return wrong(f"{what}: after the last letter comes the first again; and there are {n} letters")
        if not pairs:
            return wrong(f"{what}: with no example all {n} shifts are as likely, that by 0 among them")
        if expected.index(max(expected)) == (2 * query - got.index(max(got))) % n:
            return wrong(f"{what}: that moves the letter the wrong way round; the shift goes from x to y")
        return wrong(f"{what}: expected {expected.index(max(expected))} as the likeliest, got {got.index(max(got))}")
    return right()
