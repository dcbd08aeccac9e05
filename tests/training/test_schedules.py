"""The paper's learning rate: formula, peak, never 0, up and then down.

Chapter 10.
"""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from tests.one_line import one_line_error
from transformer_lib.training import fit, warmup_inverse_sqrt


def test_the_papers_peak():
    rate = warmup_inverse_sqrt(512, 4000)
    assert rate(4000) == pytest.approx(512**-0.5 * 4000**-0.5) == pytest.approx(6.99e-4, rel=1e-3)
    assert rate(1) == pytest.approx(1.747e-7, rel=1e-3)
    assert rate(16_000) == pytest.approx(rate(4000) / 2) == pytest.approx(rate(2000))


@given(st.integers(1, 2048), st.integers(1, 300))
def test_up_in_a_line_to_the_peak_then_down(d_model, warmup_steps):
    rate = warmup_inverse_sqrt(d_model, warmup_steps)
    rates = [rate(t) for t in range(1, 2 * warmup_steps + 2)]
    assert rate(0) == rates[0] > 0
    for t in range(1, warmup_steps):
        assert rates[t] - rates[t - 1] == pytest.approx(rates[0], rel=1e-6)
    assert max(rates) == rates[warmup_steps - 1] == pytest.approx((d_model * warmup_steps) ** -0.5)
    down = rates[warmup_steps - 1 :]
    assert all(one > other for one, other in zip(down, down[1:]))
    assert rate(100 * warmup_steps) == pytest.approx(max(rates) / 10)


def test_fit_uses_it_as_the_learning_rate_itself():
    model = nn.Linear(1, 1, bias=False)
    nn.init.zeros_(model.weight)
    seen, optimizer = [], torch.optim.SGD(model.parameters(), 1.0)

    def loss(model, batch):
        seen.append(float(model.weight.detach()))
        return model(torch.ones(1, 1)).sum()

    fit(model, lambda step: torch.zeros(1), 6, optimizer, loss=loss, schedule=warmup_inverse_sqrt(4, 3), clip=None)
    steps = [one - other for one, other in zip(seen, seen[1:])]
    assert steps == pytest.approx([warmup_inverse_sqrt(4, 3)(t) for t in range(5)], rel=1e-5)


def test_what_cannot_be():
    for d_model, warmup_steps in [(0, 4), (4, 0)]:
        with one_line_error(f"expected at least 1, got d_model={d_model}, warmup_steps={warmup_steps}"):
            warmup_inverse_sqrt(d_model, warmup_steps)
    with one_line_error("t: expected a step from 0, got -1"):
        warmup_inverse_sqrt(4, 4)(-1)
