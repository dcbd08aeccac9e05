"""The checks of chapter 05's exercises: a context by hand, steps that wait, additive attention, memos that can win.

What is expected is computed here, by the library where it has it; each likely wrong answer gets its own explanation.
"""

import torch

from transformer_lib.parts.attention import AdditiveAttention
from transformer_lib.parts.recurrent import RNNCell, unroll
from transformer_lib.show import close, exercise, right, wrong


@exercise("5.1", expects="two numbers, as (1, 2)")
def context(answer):
    H = torch.tensor([[8.0, 0.0], [0.0, 8.0], [4.0, 4.0]], dtype=torch.float64)
    e = torch.tensor([1.0, 2.0, 5.0], dtype=torch.float64).log()
    a = torch.softmax(e, dim=0)
    if close(answer, a @ H):
        return right()
    if close(answer, a):
        return wrong("those are the three weights; the context is still to be collected")
    if close(answer, e.exp() @ H):
        return wrong("exp(e) is not yet a weight: divide by the sum, 8")
    if close(answer, (e / e.sum()) @ H, 1e-2):
        return wrong("the scores were divided by their sum; the softmax takes the exponentials first")
    if close(answer, H[2]):
        return wrong("that is the memo with the highest score; soft attention averages over all of them")
    if close(answer, H.mean(0)):
        return wrong("that is the plain mean, every weight 1/3; the scores were not used")
    return wrong(
        "weights are exp(e) over their sum; the context is the sum of weight times memo, component by component"
    )


@exercise("5.2", expects="a whole number")
def steps(answer):
    m, n = 30, 20
    if close(answer, m + n):
        return right()
    if close(answer, 2 * m + n):
        return wrong("the two directions of the encoder do not wait for each other: they run side by side")
    if close(answer, m * n) or close(answer, m * n + m + n):
        return wrong("20 x 30 scores are computed, but the 30 of one step all at once: none of them waits for another")
    if close(answer, n):
        return wrong("before the decoder can look, the encoder must have read: its steps wait too")
    if close(answer, m):
        return wrong("the decoder's memo needs the one before it, so that writing takes steps as well")
    if close(answer, 1) or close(answer, 2):
        return wrong(
            "attention looks at all memos at once, but memos and queries come from recurrent cells, step by step"
        )
    return wrong("count the steps of the longest chain in which each one needs the result of the one before")


@exercise("5.3", expects="a function of (s, H, W, U, v, mask)")
def attend(answer):
    for seed, (d_s, d_h, d_a, m, padding) in enumerate(
        [(2, 2, 2, 5, 0), (3, 2, 4, 6, 2), (1, 4, 3, 1, 0), (4, 3, 5, 9, 8)]
    ):
        generator = torch.Generator().manual_seed(seed)
        library = AdditiveAttention(d_s, d_h, d_a).double().requires_grad_(False)
        for parameter in library.parameters():
            parameter.copy_(2 * torch.randn(parameter.shape, generator=generator, dtype=torch.float64))
        s, H = (torch.randn(size, generator=generator, dtype=torch.float64) for size in ((d_s,), (m, d_h)))
        mask = torch.arange(m) < m - padding
        got = answer(s.clone(), H.clone(), library.W.clone(), library.U.clone(), library.v.clone(), mask.clone())
        if not isinstance(got, tuple | list) or len(got) != 2:
            return wrong("the function should return two things, the context and the weights")
        (c, a), (expected_c, expected_a) = got, library(s, H, mask)
        if close(a, expected_a, 1e-9) and close(c, expected_c, 1e-9):
            continue
        e = library.score(s, library.keys(H))
        if close(c, expected_a, 1e-9) and close(a, expected_c, 1e-9):
            return wrong("context and weights are exchanged: the context comes first")
        if padding and close(a, torch.softmax(e, dim=0) * mask, 1e-9):
            return wrong("masked after the softmax: what is left no longer sums to 1; mask the scores")
        if padding and close(a, torch.softmax(e * mask, dim=0), 1e-9):
            return wrong("a score of 0 is a score like any other, and e^0 = 1; give padding minus infinity")
        if padding and close(a, torch.softmax(e, dim=0), 1e-9):
            return wrong("the mask is not used: padding gets weight")
        if close(a, torch.softmax((s @ library.W.T + H @ library.U.T) @ library.v, dim=0).masked_fill(~mask, 0), 1e-9):
            return wrong("the tanh is missing; without it the query adds the same to every score and drops out")
        if close(a, expected_a, 1e-9):
            return wrong("the weights are right; the context is their weighted average of the memos H")
        return wrong(
            f"with d_s = {d_s}, d_h = {d_h}, d_a = {d_a}, m = {m}, {padding} of them padding, it gives something else"
        )
    return right()


def reachable(H):
    """The rows i for which some q has q (h_i - h_j) > 0 for all j: all differences lie within an open half-plane."""
    found = []
    for i, h in enumerate(H):
        differences = h - torch.cat([H[:i], H[i + 1 :]])
        angles = torch.atan2(differences[:, 1], differences[:, 0]).sort().values
        gaps = torch.cat([angles[1:] - angles[:-1], angles[:1] + 2 * torch.pi - angles[-1:]])
        if float(gaps.max()) > torch.pi + 1e-9:
            found.append(i)
    return found


def clouds():
    """Memos in the plane: those of the chapter, a square with its middle, three on one line, random ones."""
    cell = RNNCell(2, 2, torch.relu).double().requires_grad_(False)
    cell.W_x.copy_(torch.eye(2)), cell.W_h.copy_(0.5 * torch.eye(2)), cell.b.zero_()
    X = torch.tensor([(1.0, 0.0), (0.0, 1.0), (1.0, 1.0), (0.0, 1.0), (-1.0, 1.0)], dtype=torch.float64)
    yield unroll(cell, X)[0]
    yield torch.tensor([(1.0, 1.0), (-1.0, 1.0), (0.0, 0.0), (-1.0, -1.0), (1.0, -1.0)], dtype=torch.float64)
    yield torch.tensor([(0.0, 0.0), (1.0, 1.0), (2.0, 2.0), (0.0, 3.0)], dtype=torch.float64)
    generator = torch.Generator().manual_seed(0)
    yield torch.randn(12, 2, generator=generator, dtype=torch.float64) - 3


@exercise("5.4", expects="a function of H that returns a list of row numbers")
def corners(answer):
    for H in clouds():
        got, expected = answer(H.clone()), reachable(H)
        got = [int(i) for i in (got.tolist() if isinstance(got, torch.Tensor) else got)]
        if sorted(got) == expected and len(set(got)) == len(got):
            continue
        by_themselves = [i for i, h in enumerate(H) if int((H @ h).argmax()) == i]
        upwards = torch.linspace(0, torch.pi / 2, 9999, dtype=torch.float64)
        by_positive = (H @ torch.stack([upwards.cos(), upwards.sin()])).argmax(0).unique().tolist()
        if sorted(got) in (by_themselves, by_positive):
            return wrong("try all directions: a query need not be one of the memos, and its numbers may be negative")
        if set(got) > set(expected):
            extra = sorted(set(got) - set(expected))[0]
            return wrong(
                f"row {extra} of {H.tolist()} never wins alone: it lies inside the outline, or on an edge of it"
            )
        missing = sorted(set(expected) - set(got))
        if missing:
            return wrong(f"row {missing[0]} of {H.tolist()} can win; if you tried directions, try more of them")
        return wrong("each row number once, please")
    return right()
