"""The checks of chapter 03's exercises: a half-life, a step of the cell state, a GRU step, an LSTM that counts.

What is expected is computed here, by the library where it has it; each likely wrong answer gets its own explanation.
"""

import math

import torch

from transformer_lib.parts.recurrent import GRUCell, LSTMCell, unroll
from transformer_lib.show import close, exercise, right, wrong


@exercise("3.1", expects="a number between 0 and 1")
def half_life(answer):
    expected = 0.5 ** (1 / 50)
    if close(answer, expected, 1e-3):
        return right()
    if close(answer, 1 - 0.5 / 50, 1e-4):
        return wrong(
            f"0.99 is more than is needed: after 50 steps it leaves 0.99^50 = {0.99**50:.2f}. "
            "(If you lost a hundredth a step, 0.5 / 50: losses multiply, they do not add up)"
        )
    if close(answer, 0.5**50):
        return wrong("that is what a gate of 0.5 leaves after 50 steps; here the gate is asked for")
    if close(answer, 0.9, 1e-3):
        return wrong("0.9 is not near enough: after 50 steps it leaves 0.9^50, half a per cent")
    if close(answer, math.log(expected / (1 - expected)), 0.01):
        return wrong("that is the bias which opens the gate so far; the gate itself, its sigmoid, is asked for")
    return wrong("what is left after 50 steps is f^50, and it should be 0.5: take the fiftieth root")


@exercise("3.2", expects="two numbers, as (1, 2)")
def cell_state(answer):
    c, f = torch.tensor([4.0, -2.0]), torch.tensor([0.5, 1.0])
    i, candidate = torch.tensor([1.0, 0.25]), torch.tensor([-1.0, 0.8])
    if close(answer, f * c + i * candidate):
        return right()
    if close(answer, f * c):
        return wrong("that is what is kept; what is written, i (.) c~, is still to be added")
    if close(answer, c + i * candidate):
        return wrong("the old cell state comes whole; it has to pass the forget gate first")
    if close(answer, f * c + candidate):
        return wrong("the candidate comes whole; it has to pass the input gate first")
    if close(answer, torch.tanh(f * c + i * candidate)):
        return wrong("the tanh comes later, on the way to h; c itself is only multiplied and added to")
    if close(answer, (1 - f) * c + i * candidate):
        return wrong("a forget gate of 1 keeps, in spite of its name")
    if close(answer, i * c + f * candidate):
        return wrong("the forget gate belongs to the old cell state, the input gate to the candidate")
    if close(answer, (f * c).sum() + (i * candidate).sum()):
        return wrong("(.) multiplies component with component; the result is a vector")
    return wrong("c = f (.) c_old + i (.) c~, each component on its own")


@exercise("3.3", expects="a function of (x, h, W_x, W_h, b, b_h)")
def gru_step(answer):
    for seed, (d_x, d_h) in enumerate([(3, 2), (4, 5), (1, 1)]):  # with one number, slips about r look alike
        generator = torch.Generator().manual_seed(seed)
        cell = GRUCell(d_x, d_h).double().requires_grad_(False)
        for parameter in cell.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator, dtype=torch.float64))
        x, h = (torch.randn(d, generator=generator, dtype=torch.float64) for d in (d_x, d_h))
        got = answer(x.clone(), h.clone(), cell.W_x.clone(), cell.W_h.clone(), cell.b.clone(), cell.b_h.clone())
        if close(got, cell(x, h)):
            continue
        if got is None:
            return wrong("the function returns nothing; end it with return")
        r, z, candidate = cell.gates(cell.project(x), h)
        if close(got, z * candidate + (1 - z) * h):
            return wrong("z and 1 - z are exchanged: z = 1 keeps the old memo")
        x_candidate, W = cell.project(x)[2 * d_h :], cell.W_h[2 * d_h :]
        if close(got, (1 - r) * torch.tanh(x_candidate + z * (W @ h + cell.b_h)) + r * h):
            return wrong("r and z are exchanged: the rows stand in the order r, z, candidate")
        slips = {
            "the reset gate stands behind W_h: it multiplies W_h h + b_h, not h": W @ (r * h) + cell.b_h,
            "the reset gate stands behind W_h, and b_h is missing": W @ (r * h),
            "b_h belongs inside: the reset gate multiplies it, too": r * (W @ h) + cell.b_h,
            "b_h is missing: the reset gate multiplies W_h h + b_h": r * (W @ h),
            "the reset gate is not used": W @ h + cell.b_h,
        }
        for slip, inner in slips.items():
            if close(got, (1 - z) * torch.tanh(x_candidate + inner) + z * h):
                return wrong(slip)
        if close(got, candidate):
            return wrong("that is the candidate; the new memo mixes it with the old one, by z")
        return wrong(
            f"with d_x = {d_x}, d_h = {d_h} the cell gives something else; compare r, z and candidate (the rows' order)"
        )
    return right()


@exercise("3.4", expects="a function without arguments that returns an LSTMCell(1, 1)")
def counter(answer):
    cell = answer() if callable(answer) and not isinstance(answer, LSTMCell) else answer
    if not isinstance(cell, LSTMCell) or (cell.d_x, cell.d_h) != (1, 1):
        return wrong("the function should return an LSTMCell(1, 1) with weights that you have set")
    generator = torch.Generator().manual_seed(0)
    for length in (1, 7, 60, 60):
        X = torch.randint(2, (length, 1), generator=generator).to(cell.b.dtype)
        with torch.no_grad():
            _, (_, c) = unroll(cell, X)
            at_zero, at_one = (cell.gates(cell.project(X.new_full((1,), x)), X.new_zeros(1)) for x in (0.0, 1.0))
        if abs(float(c) - float(X.sum())) <= 0.1:
            continue
        (i_zero, f_zero, candidate_zero, _), (i_one, f_one, candidate_one, _) = at_zero, at_one
        if min(f_zero, f_one) < 0.99:
            return wrong(
                "the forget gate is not near enough to 1: what was counted early leaks away. "
                "(It is the second row: i, f, candidate, o)"
            )
        if abs(i_zero * candidate_zero) > 0.001:
            return wrong("something is written at a zero too; close the input gate there, or make the candidate 0")
        if abs(i_one * candidate_one - 1) > 0.001:
            return wrong(
                "a one should write 1: input gate and candidate both at 1 (what does tanh do to a large number?)"
            )
        ones = int(X.sum())
        why = "does W_h disturb the gates?" if cell.W_h.any() else "a gate leaks a little at every step: larger biases"
        return wrong(f"after {length} steps c is {float(c):.4g}, and there were {ones} ones; {why}")
    return right()
