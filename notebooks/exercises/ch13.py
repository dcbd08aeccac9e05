"""The checks of chapter 13's exercises: a likelihood, a count, a nucleus, top-p, writing with a cache, a copying head.

What is expected is computed here, by the library where it has it; each likely wrong answer gets its own explanation.
"""

import math

import torch

from transformer_lib.decoding import top_k_filter, top_p_filter
from transformer_lib.models import GPT
from transformer_lib.show import close, exercise, right, wrong


@exercise("13.1", expects="two numbers, as (1, 2)")
def likelihood(answer):
    P = (0.5, 0.25, 0.8, 0.1)
    total = math.log(math.prod(P))
    perplexity = math.exp(-total / len(P))
    if close(answer, [total, perplexity], 2e-3):
        return right()
    if close(answer, [perplexity, total], 2e-3):
        return wrong("both are right, in the other order: first L1, then the perplexity")
    if close(answer, [-total, perplexity], 2e-3):
        return wrong("L1 is a sum of logarithms of probabilities, below 0, and is to be made large; minus it is a loss")
    if close(answer, [total / 4, perplexity], 2e-3) or close(answer, [-total / 4, perplexity], 2e-3):
        return wrong("the perplexity is right; L1 is the sum over the tokens, not the mean")
    if close(answer, [total / math.log(2), perplexity], 2e-3):
        return wrong("the perplexity is right; that L1 is in bits, the natural logarithm is wanted")
    if close(answer, [total, math.exp(-total)], 2e-3):
        return wrong("L1 is right; the perplexity is the exponential of the mean loss, not of the sum")
    if close(answer, [total, math.exp(total / 4)], 2e-3):
        return wrong("L1 is right; that is the geometric mean of the probabilities, and the perplexity is 1 over it")
    if close(answer, [total, 2 ** (-total / 4)], 2e-3):
        return wrong("L1 is right; it is in nats, so the perplexity is e to the mean loss, not 2 to it")
    if close(answer, [math.prod(P), perplexity], 2e-3):
        return wrong("the perplexity is right; L1 is the logarithm of that product")
    return wrong("add the four logarithms; the perplexity is exp of minus the mean")


@exercise("13.2", expects="a number")
def count(answer):
    v, n, d, layers = 1000, 128, 64, 3
    with torch.device("meta"):
        expected = sum(x.numel() for x in GPT(v, n, d, 4, layers).parameters())
    slips = {
        expected + v * d: "the output layer is the embedding matrix again: it is not counted twice",
        expected - 2 * d: "GPT-2 has one norm more, after the last layer: 2 d",
        expected - n * d: "the learned positions are parameters, too: n d",
        expected - 13 * d * layers - 2 * d: "these are the matrices; each layer has biases and two norms, 13 d, and a "
        "last norm follows",
        expected - 13 * d * layers: "the biases and the two norms of each layer are missing: 13 d",
        expected - 4 * d * layers: "4 d a layer are missing: the biases of attention, or the two norms",
        expected - 5 * d * layers: "the feed-forward network has biases of 4 d and of d",
        expected - 4 * d * layers - 2 * d: "the norms are missing: two in a layer, of 2 d each, and one at the end",
        expected - 2 * d * layers: "a layer has two norms, each with a gamma and a beta of d numbers",
        expected + 3 * 3 * d * d * layers: "the heads share the width: four heads of d / 4, not four of d",
        expected + 4 * 3 * d * d * layers: "the heads share the width: four heads of d / 4, not four of d",
        expected - 4 * d * d * layers: "there are four matrices of attention and two of d by 4 d: 12 d^2 in a layer",
        expected - (layers - 1) * (12 * d * d + 13 * d): "that is the count with a single layer",
    }
    for slip, why in slips.items():
        if close(answer, slip, 1e-9) and slip != expected:
            return wrong(why)
    if close(answer, expected, 1e-9):
        return right()
    return wrong("(v + n) d, then 12 d^2 + 13 d for each layer, then 2 d for the last norm; the heads do not enter")


@exercise("13.3", expects="two numbers, as (1, 2)")
def kept_and_first(answer):
    P, p = torch.tensor([0.35, 0.25, 0.2, 0.1, 0.06, 0.04], dtype=torch.float64), 0.7
    after = top_p_filter(P.log(), p).softmax(-1)
    expected = [float((after > 0).sum()), float(after[0])]
    if close(answer, expected, 1e-2):
        return right()
    if close(answer, expected[::-1], 1e-2):
        return wrong("both are right, in the other order: first how many, then the probability")
    if close(answer, [expected[0], float(P[0])], 2e-3):
        return wrong("three stay; what is left has to be scaled to sum 1, so the likeliest gets more than 0.35")
    if any(close(answer, [2, float(P[0] / by)], 2e-3) for by in (P[:2].sum(), 1, p)):
        return wrong("two have 0.6 together and do not reach 0.7: the token that reaches it stays as well")
    if close(answer, [4, float(P[0] / P[:4].sum())], 2e-3):
        return wrong("three have 0.8 already: the set is the smallest that reaches p")
    if close(answer, [expected[0], float(P[0] / p)], 2e-3):
        return wrong("three stay; divide by what they have together, 0.8, not by p")
    if close(answer, [1, 1], 2e-3):
        return wrong("p is no bound on a single probability: it is what the set has together")
    return wrong("add from the likeliest on until 0.7 is reached, and scale those to sum 1")


@exercise("13.4", expects="a function of (log_probs, p)")
def nucleus(answer):
    if not callable(answer):
        return wrong("write it as a function and give the function itself, not its result")
    cases = [(7, 0.6, 1.5), (9, 0.9, 1.0), (5, 0.01, 1.0), (12, 0.5, 3.0), (6, 1.0, 1.0), (8, 0.95, 0.3)]
    for seed, (v, p, sharp) in enumerate(cases):
        chance = torch.Generator().manual_seed(seed)
        log_probs = torch.log_softmax(sharp * torch.randn(v, generator=chance, dtype=torch.float64), dim=-1)
        given = log_probs.clone()
        got, expected = answer(given, p), top_p_filter(log_probs, p)
        if got is None:
            return wrong("the function returns nothing; is a `return` missing?")
        got = torch.as_tensor(got, dtype=torch.float64)
        if got.shape != expected.shape:
            return wrong(f"of {v} tokens came {tuple(got.shape)}: return as many numbers, in the order they came in")
        if torch.equal(got, expected):
            continue
        stay, should = got > -torch.inf, expected > -torch.inf
        bounded = [torch.equal(stay, log_probs.exp() >= bound) for bound in (p, 1 - p)]
        if any(bounded) and not torch.equal(stay, should):
            return wrong("p is no bound on a single probability: it is what the set has together")
        if not stay.any():
            return wrong(f"with p = {p} nothing is left: the likeliest token always stays, even if it alone exceeds p")
        if torch.equal(got.sort(descending=True).values, expected.sort(descending=True).values):
            return wrong("the right numbers at the wrong places: undo the sorting")
        if stay.sum() == should.sum() - 1 and (got[stay] == log_probs[stay]).all():
            return wrong("the token that reaches p belongs to the set: out is what has p before it already")
        if torch.equal(stay, should):
            return wrong("the right tokens stay, but their ln P has changed: leave it as it is, `draw_token` scales")
        if (got >= 0).all():
            return wrong("ln P is wanted, not P; what may not be drawn gets minus infinity")
        if (got == 0).any() and not (log_probs == 0).any():
            return wrong("0 is ln of probability 1: what may not be drawn gets minus infinity")
        if torch.equal(got, top_k_filter(log_probs, max(1, int(p * v)))):
            return wrong("that keeps a share of the tokens; a share of the probability is wanted")
        if stay.all() and p < 1:
            return wrong("everything stays; do you add P, not ln P, and from the likeliest token on?")
        if stay.sum() == should.sum():
            return wrong("as many stay as should, but other ones: what is out has to be brought back to its place")
        return wrong(f"with v = {v} and p = {p} it keeps {int(stay.sum())} tokens, and {int(should.sum())} should stay")
    return right()


PROMPTS = [
    ([3], 6, None),
    ([1, 2, 5, 7], 9, None),
    ([4, 4], 12, 0),
    ([2, 9, 1], 30, 6),
    ([1, 2, 5, 7], 8, 7),
    ([5], 0, 1),
]


class Recorder:
    """A model that writes down what it reads: the next token is a fixed function of all read so far."""

    def __init__(self, v=11):
        self.v, self.read = v, []

    def step(self, ids, state=None):
        ids, before, rows = [int(i) for i in ids], list(state or []), []
        if not ids:
            raise ValueError("step expects at least one token")
        self.read.append(len(ids))
        for i in ids:
            before.append(i)
            best = (sum((k + 1) * t for k, t in enumerate(before)) + len(before)) % self.v
            P = [math.exp(-abs(w - best)) for w in range(self.v)]
            rows.append([math.log(x / sum(P)) for x in P])
        return rows, before


@exercise("13.5", expects="a function of (step, prompt, length, stop) that returns a list of ids")
def write(answer):
    if not callable(answer):
        return wrong("write it as a function and give the function itself, not its result")
    for prompt, length, stop in PROMPTS:
        model, ids, state = Recorder(), list(prompt), None
        new = list(prompt)
        for _ in range(length):
            rows, state = model.step(new, state)
            new = [max(range(model.v), key=rows[-1].__getitem__)]
            ids += new
            if new[0] == stop:
                break
        theirs, given = Recorder(), list(prompt)
        got = answer(theirs.step, given, length, stop)
        if got is None:
            return wrong("the function returns nothing; is a `return` missing?")
        if given != prompt and got is not given:
            return wrong("the caller's prompt was changed: work on a copy")
        got = [int(i) for i in got]
        if got == ids[len(prompt) :] and length:
            return wrong("return the prompt as well, and then what was written")
        if got == [*ids, *ids[-1:]] or (got[: len(ids)] == ids and len(got) > len(ids)):
            return wrong("it goes on after the stop token, or beyond `length` tokens")
        if stop is not None and ids[-1] == stop and got == ids[:-1]:
            return wrong("the stop token itself belongs to the text")
        if got == ids[: len(got)] and len(got) < len(ids) and stop not in prompt:
            return wrong("it ends too early: up to `length` tokens are to be written, the prompt not counted")
        if got == ids[: len(got)] and len(got) < len(ids):
            return wrong("it ends too early: only a stop token that was written ends it, not one in the prompt")
        if got != ids:
            if sum(theirs.read) < sum(model.read):
                return wrong("read the whole prompt, not only its last token; and hand the state on each time")
            if sum(theirs.read) > sum(model.read) + 1:
                return wrong("it reads too much: with a state, `step` takes only the ids that are new")
            return wrong(
                f"for the prompt {prompt} it writes {got[len(prompt) :][:5]}, expected {ids[len(prompt) :][:5]}"
            )
        if sum(theirs.read) > sum(model.read) + 1:
            return wrong(f"{sum(theirs.read)} tokens were read, {sum(model.read)} suffice: hand on the state, "
                         "and read only what is new")  # fmt: skip
        if sum(theirs.read) > sum(model.read):
            return wrong("the last token was read, though nothing is written after it")
        if len(theirs.read) > len(model.read):
            return wrong("the prompt can be read in one call; one token after the other takes as many calls")
    return right()


@exercise("13.6", expects="a function of (A, ids) that returns a number")
def copies(answer):
    if not callable(answer):
        return wrong("write it as a function and give the function itself, not its result")
    for ids in ([1, 2, 3, 1, 2, 3], [4, 0, 4, 4, 1, 0, 2, 4, 1], [5, 5, 5, 1], list(range(4)) * 3):
        n = len(ids)
        chance = torch.Generator().manual_seed(n)
        S = torch.randn(n, n, generator=chance, dtype=torch.float64).masked_fill(
            ~torch.ones(n, n).tril().bool(), -torch.inf
        )
        A = torch.softmax(S, -1)

        def mean(places, A=A, ids=ids, n=n):
            sums = [sum(float(A[t, j]) for j in places(t)) for t in range(n) if ids[t] in ids[:t]]
            return sum(sums) / len(sums)

        expected = mean(lambda t, ids=ids: [j + 1 for j in range(t) if ids[j] == ids[t]])
        got = answer(A.clone(), torch.tensor(ids))
        if got is None:
            return wrong("the function returns nothing; is a `return` missing?")
        if close(got, expected, 1e-9):
            continue
        many = sum(ids[t] in ids[:t] for t in range(n))
        slips = {
            mean(lambda t, ids=ids: [j for j in range(t) if ids[j] == ids[t]]): "that is the weight on the earlier "
            "occurrences themselves; what came after them is wanted, one place further",
            mean(lambda t, ids=ids: [max(j + 1 for j in range(t) if ids[j] == ids[t])]): "only the last occurrence "
            "was counted; add up over all earlier ones",
            mean(lambda t, ids=ids: [min(j + 1 for j in range(t) if ids[j] == ids[t])]): "only the first occurrence "
            "was counted; add up over all earlier ones",
            mean(lambda t, ids=ids: [j + 1 for j in range(t - 1) if ids[j] == ids[t]]): "the place t itself counts as "
            "well, when the token just before it is the same",
            expected * many / n: "divide by the number of places whose token occurred before, not by n",
            expected * many: "that is the sum; the mean over those places is wanted",
            mean(lambda t, ids=ids: [j - 1 for j in range(1, t) if ids[j] == ids[t]]): "that is what came before the "
            "earlier occurrence; what came after it is wanted",
        }
        for slip, why in slips.items():
            if close(got, slip, 1e-9):
                return wrong(why)
        return wrong(f"for the tokens {ids} it gives something else")
    return right()
