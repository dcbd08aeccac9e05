"""Positions: the formula by hand, wavelengths, rotation, tables and their ends; queries and keys turned.

Chapters 08 and 13.
"""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.one_line import one_line_error
from transformer_lib.parts.positions import LearnedPositions, SinusoidalPositions, rotate, sinusoidal_positions


@pytest.fixture(autouse=True)
def _float64():
    torch.set_default_dtype(torch.float64)


def test_width_four_by_hand():
    expected = [[f(p / w) for w in (1, 100) for f in (math.sin, math.cos)] for p in range(5)]
    torch.testing.assert_close(sinusoidal_positions(5, 4), torch.tensor(expected))
    torch.testing.assert_close(sinusoidal_positions(2, 4, start=3), torch.tensor(expected[3:]))
    assert sinusoidal_positions(0, 4).shape == (0, 4)


@given(st.integers(0, 500), st.integers(0, 500), st.sampled_from([2, 4, 64, 512]))
def test_a_step_of_k_is_the_same_rotation_everywhere(pos, k, d_model):
    here, there = sinusoidal_positions(1, d_model, pos)[0], sinusoidal_positions(1, d_model, pos + k)[0]
    omega = 10_000.0 ** (-torch.arange(0, d_model, 2) / d_model)
    sine, cosine = here[0::2], here[1::2]
    turn_cosine, turn_sine = torch.cos(k * omega), torch.sin(k * omega)
    torch.testing.assert_close(there[0::2], sine * turn_cosine + cosine * turn_sine, rtol=0, atol=1e-12)
    torch.testing.assert_close(there[1::2], cosine * turn_cosine - sine * turn_sine, rtol=0, atol=1e-12)
    assert (here.abs() <= 1).all()
    torch.testing.assert_close((here**2).sum(), torch.tensor(d_model / 2))


def test_in_the_default_format_and_exact_far_out():
    torch.set_default_dtype(torch.float32)
    rows = sinusoidal_positions(3, 512, start=100_000)
    assert rows.dtype == torch.float32
    torch.set_default_dtype(torch.float64)
    torch.testing.assert_close(rows.double(), sinusoidal_positions(3, 512, start=100_000), rtol=0, atol=1e-7)


def test_as_a_part_it_has_no_end():
    positions = SinusoidalPositions(6, 8)
    assert not list(positions.parameters()) and not positions.state_dict()
    for n, start in ((4, 0), (3, 3), (3, 4), (10, 20)):
        assert torch.equal(positions(n, start), sinusoidal_positions(n, 8, start))


def test_learned_rows_end_where_their_table_ends():
    torch.manual_seed(0)
    positions = LearnedPositions(6, 8)
    assert positions(6).shape == (6, 8) and torch.equal(positions(2, 3), positions.rows[3:5])
    assert [p.shape for p in positions.parameters()] == [(6, 8)]
    assert 0.01 < positions.rows.std() < 0.03
    positions(2, 4).sum().backward()
    assert torch.equal(positions.rows.grad.sum(1), torch.tensor([0.0, 0, 0, 0, 8, 8]))
    with one_line_error("positions: learned for 6 tokens, got 7"):
        positions(3, 4)
    with one_line_error("expected n and start from 0"):
        positions(3, -1)


def test_what_cannot_be():
    with one_line_error("d_model: expected an even width", "got 5"):
        sinusoidal_positions(3, 5)
    with one_line_error("d_model: expected an even width", "got 0"):
        sinusoidal_positions(3, 0)
    with one_line_error("expected length and start from 0"):
        sinusoidal_positions(-1, 4)
    with one_line_error("expected length and start from 0"):
        sinusoidal_positions(1, 4, -1)
    with one_line_error("d_model: expected an even width"):
        SinusoidalPositions(4, 3)
    with one_line_error("expected at least 1"):
        LearnedPositions(0, 3)


def test_the_table_of_sines_is_safe_from_its_readers_and_from_negative_positions():
    positions = SinusoidalPositions(6, 8)
    positions(3).add_(100.0)
    assert torch.equal(positions(3), sinusoidal_positions(3, 8))
    for n, start in ((3, -1), (-2, 4), (-1, 10)):
        with one_line_error("expected n and start from 0"):
            positions(n, start)


def test_positions_too_far_out_to_tell_apart():
    assert sinusoidal_positions(1, 4, 2**53 - 1).shape == (1, 4)
    with one_line_error("start: expected positions that float64 tells apart"):
        sinusoidal_positions(2, 4, 2**60)


def test_a_scale_multiplies_every_row_in_the_table_and_beyond_it():
    table = SinusoidalPositions(4, 6, scale=0.25)
    torch.testing.assert_close(table(9), torch.cat([table(4), table(5, 4)]))
    torch.testing.assert_close(table(9), sinusoidal_positions(9, 6) / 4)
    torch.testing.assert_close(SinusoidalPositions(4, 6)(9), sinusoidal_positions(9, 6))


# ---- rotary positions


def test_a_pair_is_turned_by_hand():
    x = torch.tensor([[1.0, 0.0, 0.0, 2.0]]).expand(3, 4)
    expected = [[math.cos(t), math.sin(t), -2 * math.sin(t / 100), 2 * math.cos(t / 100)] for t in range(3)]
    torch.testing.assert_close(rotate(x), torch.tensor(expected), rtol=0, atol=1e-15)
    torch.testing.assert_close(rotate(x[:1], start=2)[0], torch.tensor(expected[2]), rtol=0, atol=1e-15)
    assert rotate(x[:0]).shape == (0, 4)


@given(
    st.integers(0, 2000), st.integers(0, 2000), st.integers(0, 2000), st.sampled_from([2, 6, 64]), st.integers(0, 2**31)
)
def test_a_score_depends_on_the_distance_alone(s, t, shift, d_k, seed):
    q, k = torch.randn(2, 1, d_k, generator=torch.Generator().manual_seed(seed))
    q, k = q / q.norm(), k / k.norm()
    here, there = (rotate(q, s + more) @ rotate(k, t + more).T for more in (0, shift))
    torch.testing.assert_close(here, there, rtol=0, atol=1e-12)
    torch.testing.assert_close(rotate(q, s).norm(), torch.tensor(1.0), rtol=0, atol=1e-14)  # only turned
    if d_k == 64 and s != t:
        assert (here - q @ k.T).abs() > 1e-9  # and the distance does count


def test_turned_as_matrices_of_pairs_of_neighbours_would_and_nothing_else_is_changed():
    x, start = torch.randn(2, 5, 6, generator=torch.Generator().manual_seed(0)), 7
    before = x.clone()
    omega = 10_000.0 ** (-torch.arange(0, 6, 2) / 6)
    for t in range(5):
        R = torch.zeros(6, 6)
        for i, angle in enumerate((start + t) * omega):
            c, s = torch.cos(angle), torch.sin(angle)
            R[2 * i : 2 * i + 2, 2 * i : 2 * i + 2] = torch.stack([torch.stack([c, -s]), torch.stack([s, c])])
        torch.testing.assert_close(rotate(x, start)[:, t], x[:, t] @ R.T, rtol=0, atol=1e-13)
    # A rotation's gradient is the rotation backwards: what was turned comes back.
    x.requires_grad_()
    (gradient,) = torch.autograd.grad((rotate(x, start) * rotate(x, start).detach()).sum(), x)
    torch.testing.assert_close(gradient, before, rtol=0, atol=1e-12)
    x = x.detach()
    assert torch.equal(x, before)
    for dtype in (torch.float32, torch.float64):
        turned = rotate(x.to(dtype), start)
        assert turned.dtype == dtype
        torch.testing.assert_close(turned.double(), rotate(x, start), rtol=0, atol=8 * torch.finfo(dtype).eps)
    torch.testing.assert_close(rotate(x.mT.contiguous().mT, start), rotate(x, start))  # however it lies in memory


def test_widths_and_positions_that_cannot_be_turned():
    with one_line_error("expected an even width", "got 5"):
        rotate(torch.zeros(2, 5))
    with one_line_error("expected length and start from 0", "start=-1"):
        rotate(torch.zeros(2, 4), -1)
