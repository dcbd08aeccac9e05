"""The checks of chapter 10's exercises: a rate, a floor, a first step, a loss without padding, a beam's step, a leak.

What is expected is computed here, by the library where it has it; each likely wrong answer gets its own explanation.
"""

import math

import torch

from transformer_lib.show import close, exercise, right, wrong
from transformer_lib.training import label_smoothed_cross_entropy, warmup_inverse_sqrt


@exercise("10.1", expects="a number")
def rate(answer):
    d_model, warm_up, t = 256, 100, 400
    if close(answer, warmup_inverse_sqrt(d_model, warm_up)(t), 1e-3):
        return right()
    if close(answer, d_model**-0.5 * t * warm_up**-1.5, 1e-3):
        return wrong("that is the rising line; at step 400 the warm-up is long over, and the smaller of the two counts")
    if close(answer, (d_model * warm_up) ** -0.5, 1e-3):
        return wrong("that is the peak, at step 100; afterwards the rate falls like the root of the step")
    if close(answer, (d_model * warm_up) ** -0.5 / 4, 1e-3):
        return wrong("four times as many steps halve the rate: it falls with the root of the step, not with the step")
    if close(answer, t**-0.5, 1e-3):
        return wrong("the factor of the width is missing: d_model to the -1/2 is 1/16")
    if close(answer, d_model**0.5 * t**-0.5, 1e-3) or close(answer, t**-0.5 / d_model, 1e-3):
        return wrong("the width enters with its inverse root: 1/16")
    return wrong("of 1/sqrt(400) and 400 / 100^1.5 take the smaller, and multiply it by 1/sqrt(256)")


@exercise("10.2", expects="two numbers, as (1, 2)")
def floor(answer):
    v, epsilon = 10, 0.2
    q = torch.full((v,), epsilon / v, dtype=torch.float64)
    q[0] += 1 - epsilon
    best = float(-(q * q.log()).sum())
    if close(answer, [q[0], best], 2e-3):
        return right()
    if close(answer, [best, q[0]], 2e-3):
        return wrong("both are right, in the other order: first the probability, then the loss")
    if close(answer, [1, 0], 1e-3):
        return wrong("that is the floor of the plain loss; certainty is punished by the smoothed one")
    apart = torch.full((v,), epsilon / (v - 1), dtype=torch.float64)
    apart[0] = 1 - epsilon
    got = torch.as_tensor(answer, dtype=torch.float64).flatten() if isinstance(answer, list | tuple) else None
    if got is not None and len(got) == 2 and close(got[0], apart[0], 2e-3):
        return wrong("the share is spread over all ten tokens, the right one included: it gets 0.02 back")
    if got is not None and len(got) == 2 and close(got[0], q[0], 2e-3):
        if close(got[1], -q[0].log(), 5e-3):
            return wrong("the probability is right; to the loss the nine other tokens add their share as well")
        if close(got[1], -q[0] * q[0].log(), 2e-3):
            return wrong("the probability is right; the terms of the nine other tokens are missing in the loss")
        if close(got[1], -q[0] * q[0].log() - q[1] * q[1].log(), 2e-3):
            return wrong("the probability is right; you counted one of the other tokens, and there are nine")
        if close(got[1], -best, 2e-3):
            return wrong("the probability is right; the sign of the loss is not: minus the logarithm")
        if close(got[1], best / math.log(2), 2e-3):
            return wrong("the probability is right; that loss is in bits, the natural logarithm is wanted")
        return wrong("the probability is right; the loss is the entropy of q, one term for each of the ten tokens")
    return wrong("the best prediction is q itself, 0.2 of it spread over ten tokens, and its loss is the entropy of q")


@exercise("10.3", expects="a number")
def first_step(answer):
    beta_1, beta_2, g = 0.9, 0.9975, 3.0
    without = (1 - beta_1) * g / math.sqrt((1 - beta_2) * g**2)
    if close(answer, without, 1e-3) or close(answer, -without, 1e-3):  # downwards, as the gradient is positive
        return right()
    if close(answer, 1, 1e-3) or close(answer, -1, 1e-3):
        return wrong("that is the step with the correction; without it m is 0.1 g and the root of v is 0.05 |g|")
    if close(answer, without * g, 1e-3):
        return wrong("the gradient's size drops out: it stands in m and in the root of v")
    if close(answer, (1 - beta_1) / (1 - beta_2), 1e-3):
        return wrong("the root of v is taken: 0.0025 becomes 0.05")
    if close(answer, 1 / without, 1e-3):
        return wrong("upside down: m, which is 0.1 g, over the root of v, which is 0.05 |g|")
    return wrong("m = 0.1 g, v = 0.0025 g^2; the step is m over the root of v, in learning rates")


@exercise("10.4", expects="a function of (log_probs, targets, pad_id, epsilon)")
def smoothed_loss(answer):
    for seed, (n, v, pad_id, epsilon) in enumerate([(5, 4, -100, 0.1), (9, 7, 0, 0.1), (6, 5, 2, 0.3), (8, 3, 0, 0.0)]):
        chance = torch.Generator().manual_seed(seed)
        log_probs = torch.log_softmax(2 * torch.randn(n, v, generator=chance, dtype=torch.float64), dim=-1)
        targets = torch.randint(v, (n,), generator=chance)
        targets[:2] = torch.tensor(
            [1, max(pad_id, 0)]
        )  # at least one that counts and, where there is padding, one of it
        got = answer(log_probs.clone(), targets.clone(), pad_id, epsilon)
        expected = label_smoothed_cross_entropy(log_probs, targets, pad_id, epsilon)
        if close(got, expected, 1e-9):
            continue
        counts = targets != pad_id
        spread = log_probs.clone().fill_(epsilon / (v - 1))
        spread[torch.arange(n), targets.clamp(min=0)] = 1 - epsilon
        if close(got, expected * counts.sum(), 1e-9):
            return wrong("that is the sum over the targets; the mean is wanted")
        if close(got, expected * counts.sum() / n, 1e-9):
            return wrong("divide by the number of targets that count, not by that of all: padding counts nowhere")
        if close(got, label_smoothed_cross_entropy(log_probs, targets, -1, epsilon), 1e-9):
            return wrong("padding enters the loss: leave its rows out before you add up")
        if close(got, label_smoothed_cross_entropy(log_probs, targets, pad_id, 0.0), 1e-9):
            return wrong("that is the plain loss; epsilon is not used")
        if close(got, -(spread * log_probs)[counts].sum() / counts.sum(), 1e-9):
            return wrong("the share is spread over all v tokens, the right one included, and not over the v - 1 others")
        if close(got, -expected, 1e-9):
            return wrong("the sign: a loss is minus log P")
        if got is None:
            return wrong("the function returns nothing; is a `return` missing?")
        of_y, kept = log_probs[counts, targets[counts]], log_probs[counts]
        if getattr(got, "shape", ()) == of_y.shape and close(
            got, -(1 - epsilon) * of_y - epsilon * kept.mean(-1), 1e-9
        ):
            return wrong("that is one loss for each target; return their mean")
        if close(got, -((1 - epsilon) * of_y + epsilon * kept.sum(-1)).mean(), 1e-9):
            return wrong("each of the v tokens gets epsilon / v: divide the sum over the vocabulary by v")
        if close(got, -(of_y + epsilon * kept.mean(-1)).mean(), 1e-9):
            return wrong("the right token's own share is 1 - epsilon, or the target sums to more than 1")
        if close(got, -(epsilon * of_y + (1 - epsilon) * kept.mean(-1)).mean(), 1e-9):
            return wrong("the shares are turned round: epsilon is what is spread")
        rest = (1 - epsilon) * of_y.mean(), epsilon * log_probs.mean(-1).sum()
        if any(close(got, -rest[0] - rest[1] / count, 1e-9) for count in (n, counts.sum())):
            return wrong("padding is left out for the right token, but not for the share that is spread")
        return wrong(f"with {n} targets, v = {v}, padding {pad_id} and epsilon = {epsilon} it gives something else")
    return right()


def picked(numbers, beam, width=None):
    """The places (row, column) of the `beam` largest numbers, best first; width: of a row, if another."""
    best = numbers.flatten().argsort(descending=True)[:beam]
    return [divmod(int(place), width or numbers.shape[1]) for place in best]


@exercise("10.5", expects="a function of (scores, log_probs, beam) that returns a list of pairs")
def beam_step(answer):
    for seed, (k, v, beam) in enumerate([(3, 7, 4), (1, 6, 3), (3, 6, 3), (4, 9, 4), (2, 3, 6), (2, 2, 9)]):
        chance = torch.Generator().manual_seed(seed)
        scores = -3 * torch.rand(k, generator=chance, dtype=torch.float64)
        log_probs = torch.log_softmax(2 * torch.randn(k, v, generator=chance, dtype=torch.float64), dim=-1)
        total = scores[:, None] + log_probs
        expected = picked(total, beam)
        try:
            given = answer(scores.tolist(), log_probs.clone(), beam)
        except RuntimeError:
            if total.numel() >= beam:
                raise
            return wrong(f"it fails with {k} rows of {v} tokens and a beam of {beam}: return fewer pairs then")
        try:
            got = [tuple(int(x) for x in pair) for pair in given]
        except (TypeError, ValueError):
            return wrong("return a list of pairs (row, token)")
        if any(len(pair) != 2 for pair in got):
            return wrong("pairs are wanted, (row, token), and nothing more")
        if got == expected:
            continue
        of_each = [(i, int(row.argmax())) for i, row in enumerate(total)]
        if got == picked(log_probs, beam):
            return wrong("the scores so far are not added: a good piece after a bad beginning is still bad")
        if got == picked(-total, beam):
            return wrong("these are the worst: ln P is below 0, and the highest is the one closest to it")
        if got == picked(scores[:, None] * log_probs, beam) or got == picked(-scores[:, None] * log_probs, beam):
            return wrong("logarithms are added; it is probabilities that are multiplied")
        if got == picked(scores[:, None] + log_probs.exp(), beam):
            return wrong("both are ln P already: add them as they are, without exp")
        if got == picked(total, beam, k):
            return wrong("a row has as many places as there are tokens: divide by the number of tokens, not of rows")
        if sorted(got) == sorted(expected):
            return wrong("these are the right pairs; order them best first")
        if sorted(got) == sorted(of_each):
            return wrong("that is the best continuation of each row; the best of all continuations are wanted")
        if [pair[::-1] for pair in got] == expected:
            return wrong("the pairs are turned round: first the row, then the token")
        if len(got) != len(expected):
            return wrong(
                f"of {k} rows and {v} tokens with beam {beam}, {len(expected)} pairs are wanted, not {len(got)}"
            )
        return wrong(f"with {k} rows, {v} tokens and beam {beam} it gives something else")
    return right()


def suspects(seed=0, v=7):
    """Models of a text (n,) -> (n, v): honest; all open; one look ahead; leaks at one place; blind to its past."""
    chance = torch.Generator().manual_seed(seed)
    E, W = (torch.randn(v, v, generator=chance, dtype=torch.float64) for _ in range(2))

    def model(look):
        def log_probs(ids):
            n = len(ids)
            allowed = torch.tensor([[float(look(i, j)) for j in range(n)] for i in range(n)], dtype=torch.float64)
            return torch.log_softmax(torch.tanh(allowed @ E[ids]) @ W, dim=-1)

        return log_probs

    yield "an honest model", model(lambda i, j: j <= i), lambda n: []
    yield "an open one", model(lambda i, j: True), lambda n: [(i, j) for i in range(n) for j in range(i + 1, n)]
    yield "one that looks one ahead", model(lambda i, j: j <= i + 1), lambda n: [(i, i + 1) for i in range(n - 1)]
    yield "one that leaks at one place", model(lambda i, j: j <= i or (i, j) == (1, 3)), lambda n: [(1, 3)]
    faint = model(lambda i, j: (j <= i) + 1e-4 * ((i, j) == (0, 2)))
    yield "one that leaks very little", faint, lambda n: [(0, 2)]
    yield "one that reads nothing but the last word", model(lambda i, j: j == i), lambda n: []


@exercise("10.6", expects="a function of (f, ids, vocab_size) that returns a list of pairs (i, j)")
def leaks(answer):
    for ids in (
        torch.tensor([4, 1, 0, 6, 2]),
        torch.tensor([6, 3, 6, 0, 1, 5, 2, 4]),
    ):  # 0 and the last token among them
        n = len(ids)
        for name, log_probs_of, expected in suspects(n):
            given = ids.clone()
            try:
                result = answer(log_probs_of, given, 7)
            except IndexError:
                return wrong(
                    "a token outside the vocabulary was tried: after the last comes 0 again, (id + 1) % vocab_size"
                )
            if not torch.equal(given, ids):
                return wrong("the text was changed for the caller too: work on a copy, ids.clone()")
            try:
                got = sorted({tuple(int(x) for x in pair) for pair in result})
            except (TypeError, ValueError):
                return wrong("return a list of pairs (i, j)")
            if got == expected(n):
                continue
            if set(got) == {(j, i) for i, j in expected(n)}:
                return wrong("the pairs are turned round: first the place that moves, then the one that was changed")
            past = [(i, j) for i in range(n) for j in range(i + 1)]
            if set(got) & set(past):
                return wrong(f"{name}: a place may depend on itself and on what comes before; only j > i is a leak")
            if set(got) > set(expected(n)):
                few = sorted(set(got) - set(expected(n)))[0]
                return wrong(f"{name}: {few} is no leak; change one token at a time, each against the unchanged text")
            if set(got) < set(expected(n)):
                few = sorted(set(expected(n)) - set(got))[0]
                if name == "one that leaks very little":
                    return wrong(
                        f"{name}: {few} was missed; ask whether the numbers differ, not whether they differ much"
                    )
                return wrong(
                    f"{name}: {few} was missed; put another token there than stands there, one place at a time, "
                    "and compare all probabilities, not the favourite alone"
                )
            return wrong(f"{name}: found {got[:3]}, expected {expected(n)[:3]}")
    return right()
