"""Bahdanau's attention by hand, with padding, and without any place to look at.

Chapter 05.
"""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.one_line import SHAPES_CHECKED, one_line_error
from transformer_lib.parts.attention import AdditiveAttention, masked_softmax


@pytest.fixture(autouse=True)
def _float64():
    torch.set_default_dtype(torch.float64)


def by_hand(d=2):
    attention = AdditiveAttention(d, d, d)
    with torch.no_grad():
        attention.W.copy_(torch.tensor([[1.0, 0.0], [0.0, 2.0]]))
        attention.U.copy_(torch.tensor([[0.0, 1.0], [1.0, 0.0]]))
        attention.v.copy_(torch.tensor([1.0, -1.0]))
    return attention


def test_scores_weights_and_context_by_hand():
    s, H = torch.tensor([0.5, 0.25]), torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    # W s = (0.5, 0.5); U h_1 = (0, 1), U h_2 = (1, 0)
    e_1 = math.tanh(0.5 + 0) - math.tanh(0.5 + 1)
    e_2 = math.tanh(0.5 + 1) - math.tanh(0.5 + 0)
    a_1 = math.exp(e_1) / (math.exp(e_1) + math.exp(e_2))
    attention = by_hand()
    c, a = attention(s, H)
    torch.testing.assert_close(attention.score(s, attention.keys(H)), torch.tensor([e_1, e_2]))
    torch.testing.assert_close(a, torch.tensor([a_1, 1 - a_1]))
    torch.testing.assert_close(c, torch.tensor([a_1, 1 - a_1]))


@given(st.integers(1, 3), st.integers(1, 5), st.integers(0, 3), st.integers(0, 2**31))
def test_padding_gets_exactly_nothing_and_changes_nothing(batch, m, more, seed):
    generator = torch.Generator().manual_seed(seed)
    torch.manual_seed(seed)
    attention = AdditiveAttention(3, 4, 5)
    s, H = torch.randn(batch, 3, generator=generator), torch.randn(batch, m, 4, generator=generator)
    padded = torch.cat([H, 1e3 * torch.randn(batch, more, 4, generator=generator)], dim=1)
    mask = torch.arange(m + more).expand(batch, -1) < m
    c, a = attention(s, padded, mask)
    alone, weights = attention(s, H)
    assert (a[:, m:] == 0).all()
    torch.testing.assert_close(a[:, :m], weights)
    torch.testing.assert_close(c, alone)
    torch.testing.assert_close(a.sum(-1), torch.ones(batch))
    torch.testing.assert_close(attention(s, padded, mask, attention.keys(padded))[0], c)


@given(st.integers(1, 3), st.integers(1, 6), st.integers(0, 2**31), st.randoms(use_true_random=False))
def test_a_permuted_memory_permutes_the_weights_and_leaves_the_context(batch, m, seed, chance):
    torch.manual_seed(seed)
    attention, s, H = AdditiveAttention(3, 4, 5), torch.randn(batch, 3), torch.randn(batch, m, 4)
    mask = torch.rand(batch, m) < 0.7
    order = list(range(m))
    chance.shuffle(order)
    c, a = attention(s, H, mask)
    c_too, a_too = attention(s, H[:, order], mask[:, order])
    torch.testing.assert_close(a_too, a[:, order])
    torch.testing.assert_close(c_too, c)
    assert (a[~mask] == 0).all()


def test_a_batch_is_its_rows_and_one_query_looks_at_many_sources():
    torch.manual_seed(0)
    attention, s, H = AdditiveAttention(3, 4, 5), torch.randn(6, 3), torch.randn(6, 2, 4)
    rows = torch.stack([attention(query, memory)[0] for query, memory in zip(s, H, strict=True)])
    torch.testing.assert_close(attention(s, H)[0], rows)
    if not SHAPES_CHECKED:  # the signature promises one batch; what stretches to it is taken as well
        one_query = torch.stack([attention(s[0], memory)[0] for memory in H])
        torch.testing.assert_close(attention(s[0], H)[0], one_query)


def test_nowhere_to_look_gives_zeros_and_finite_gradients():
    S = torch.randn(2, 3, requires_grad=True)
    weights = masked_softmax(S, torch.tensor([[False, False, False], [True, False, True]]))
    assert weights[0].tolist() == [0, 0, 0] and weights[1, 1] == 0
    weights.square().sum().backward()
    assert torch.isfinite(S.grad).all() and (S.grad[0] == 0).all() and (S.grad[1, [0, 2]] != 0).all()


def test_the_context_depends_on_the_memory_and_the_memory_is_left_alone():
    torch.manual_seed(0)
    attention, s, H = AdditiveAttention(3, 4, 5), torch.randn(3), torch.randn(6, 4)
    before = H.clone()
    c = attention(s, H)[0]
    assert torch.equal(H, before) and not torch.allclose(c, attention(s, 2 * H)[0])


def test_start_values_are_within_the_stated_bounds():
    torch.manual_seed(0)
    attention = AdditiveAttention(4, 25, 100)
    for parameter, bound in ((attention.W, 0.5), (attention.U, 0.2), (attention.v, 0.1)):
        assert 0.9 * bound < parameter.max() <= bound and -bound <= parameter.min() < -0.9 * bound
        assert abs(parameter.mean()) < 0.2 * bound
    assert attention.W.shape == (100, 4) and attention.U.shape == (100, 25) and attention.v.shape == (100,)


def test_bad_input_is_refused():
    attention = AdditiveAttention(3, 4, 5)
    for widths, got in (((3, 4, 0), "d_a=0"), ((0, 4, 5), "d_s=0"), ((3, 0, 5), "d_h=0")):
        with one_line_error("expected widths of at least 1", got):
            AdditiveAttention(*widths)
    assert AdditiveAttention(1, 1, 1)(torch.ones(1), torch.ones(2, 1))[1].tolist() == [0.5, 0.5]
    with one_line_error("H: expected a last axis of 4"):
        attention(torch.zeros(3), torch.zeros(2, 3))
    with one_line_error("s: expected a last axis of 3"):
        attention(torch.zeros(4), torch.zeros(2, 4))
    with one_line_error("keys: expected those of H (2, 4), got (3, 5)"):
        attention(torch.zeros(3), torch.zeros(2, 4), keys=torch.zeros(3, 5))
    with one_line_error("keys: expected those of H (6, 2, 4), got (1, 2, 5)"):
        attention(torch.zeros(6, 3), torch.zeros(6, 2, 4), keys=torch.zeros(1, 2, 5))
    with one_line_error("mask: expected a shape that stretches to that of the scores (2,), got (3,)"):
        attention(torch.zeros(3), torch.zeros(2, 4), torch.ones(3, dtype=torch.bool))
    with one_line_error("mask: expected True and False, or numbers to add to the scores, got torch.int64"):
        attention(torch.zeros(3), torch.zeros(2, 4), torch.ones(2, dtype=torch.int64))


def test_queries_are_never_paired_with_another_sentences_memory():
    attention = AdditiveAttention(3, 4, 5)
    with one_line_error("s: expected a query for each memory"):
        attention(torch.zeros(3, 3, 3), torch.zeros(3, 6, 4))
    with one_line_error("keys: expected those of H"):
        attention(torch.zeros(2, 3), torch.zeros(2, 6, 4), keys=torch.zeros(2, 6, 1))
