"""Scaled dot-product attention and many heads: by hand, against PyTorch, masked, recorded, cached; rotary.

Chapters 06, 07 and 13.
"""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn.functional import scaled_dot_product_attention as theirs

from tests.one_line import SHAPES_CHECKED, one_line_error
from tests.parts.pytorchs import copy_attention
from transformer_lib.parts.attention import (
    MultiHeadAttention,
    RotaryAttention,
    masked_softmax,
    record_attention,
    scaled_dot_product_attention,
)
from transformer_lib.parts.cache import KeyValueCache
from transformer_lib.parts.masks import additive, causal_mask
from transformer_lib.parts.positions import rotate

sizes = st.integers(1, 6)
seeds = st.integers(0, 2**31)
batches = st.sampled_from([(), (2,), (2, 3)])


@pytest.fixture(autouse=True)
def _float64():
    torch.set_default_dtype(torch.float64)


def drawn(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).requires_grad_()


def gradients(Z, tensors):
    weights = torch.linspace(-1, 1, Z.numel(), dtype=Z.dtype).view_as(Z)
    return torch.autograd.grad((Z * weights).sum(), tensors, retain_graph=True)


def test_two_tokens_by_hand():
    Q, K, V = torch.tensor([[1.0, 0], [1, 1]]), torch.tensor([[2.0, 0], [0, 2]]), torch.tensor([[1.0, 2, 3], [4, 5, 6]])
    e = math.exp(2 / math.sqrt(2))
    Z, A = scaled_dot_product_attention(Q, K, V)
    torch.testing.assert_close(A, torch.tensor([[e / (e + 1), 1 / (e + 1)], [0.5, 0.5]]))
    torch.testing.assert_close(Z, torch.tensor([[1.0, 2, 3], [2.5, 3.5, 4.5]]) + torch.tensor([[3 / (e + 1)], [0]]))
    _, sharper = scaled_dot_product_attention(Q, K, V, scale=3.0)
    torch.testing.assert_close(sharper[0, 0], torch.tensor(math.exp(6) / (math.exp(6) + 1)))


@given(batches, sizes, sizes, sizes, sizes, seeds, st.sampled_from([None, 0.3]))
def test_values_and_gradients_are_pytorchs(batch, n, m, d_k, d_v, seed, scale):
    Q, K, V = (drawn(*batch, *s, seed=seed + i) for i, s in enumerate([(n, d_k), (m, d_k), (m, d_v)]))
    chance = torch.Generator().manual_seed(seed)
    masks = [None, torch.rand(n, m, generator=chance) < 0.7, torch.randn(n, m, generator=chance)]
    masks += [torch.rand(*batch[:1], *(1 for _ in batch[1:]), n, m, generator=chance) < 0.7, torch.ones(1, m) > 0]
    for mask in masks:
        Z, A = scaled_dot_product_attention(Q, K, V, mask, scale)
        expected = theirs(Q, K, V, attn_mask=mask, scale=scale)
        torch.testing.assert_close(Z, expected, rtol=1e-10, atol=1e-12)
        for ours, other in zip(gradients(Z, (Q, K, V)), gradients(expected, (Q, K, V)), strict=True):
            torch.testing.assert_close(ours, other, rtol=1e-9, atol=1e-11)
        total = A.sum(-1)
        assert ((total - 1).abs() < 1e-12).logical_or(total == 0).all()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
def test_shorter_number_formats(dtype):
    Q, K, V = (drawn(2, 3, 5, 8, seed=i).detach().to(dtype) for i in range(3))
    for mask in (None, causal_mask(5), additive(causal_mask(5))):
        Z, A = scaled_dot_product_attention(Q, K, V, mask)
        assert Z.dtype == A.dtype == dtype
        exact, _ = scaled_dot_product_attention(Q.double(), K.double(), V.double(), mask)
        torch.testing.assert_close(Z.double(), exact, rtol=0, atol=8 * torch.finfo(dtype).eps)


def test_both_kinds_of_mask_say_the_same():
    S, mask = drawn(4, 4).detach(), causal_mask(4)
    assert torch.equal(masked_softmax(S, mask), masked_softmax(S, additive(mask)))
    assert (masked_softmax(S, mask).triu(1) == 0).all()
    torch.testing.assert_close(
        masked_softmax(S, torch.full((4,), 7.0)), torch.softmax(S, -1)
    )  # the same to every score: nothing


@pytest.mark.parametrize("form", [lambda mask: mask, additive])
def test_a_row_that_may_look_nowhere_is_zero_with_finite_gradients(form):
    Q, K, V = drawn(3, 4, seed=1), drawn(5, 4, seed=2), drawn(5, 2, seed=3)
    mask = torch.ones(3, 5, dtype=torch.bool)
    mask[1] = False
    Z, A = scaled_dot_product_attention(Q, K, V, form(mask))
    assert (Z[1] == 0).all() and (A[1] == 0).all()
    for gradient in gradients(Z, (Q, K, V)):
        assert gradient.isfinite().all()
    assert (gradients(scaled_dot_product_attention(Q, K, V, form(mask))[0], (Q,))[0][1] == 0).all()
    attention = MultiHeadAttention(4, 2)
    out = attention(Q, K.detach(), form(mask))
    torch.testing.assert_close(out[1], attention.W_O.bias)
    assert torch.autograd.grad(out.sum(), Q)[0].isfinite().all()


def test_shapes_that_do_not_fit():
    Q, K, V = torch.zeros(2, 4), torch.zeros(3, 4), torch.zeros(3, 5)
    for wrong, words in [
        (lambda: scaled_dot_product_attention(torch.zeros(2, 3), K, V), "queries and keys of one width"),
        (lambda: scaled_dot_product_attention(Q, K, torch.zeros(2, 5)), "a value for every key"),
        (lambda: scaled_dot_product_attention(torch.zeros(4), K, V), "expected Q (..., n, d_k)"),
        (lambda: scaled_dot_product_attention(Q, K, V, torch.ones(3, 2) > 0), "mask: expected a shape that stretches"),
        (lambda: scaled_dot_product_attention(Q, K, V, torch.ones(7, 2, 3) > 0), "mask: expected a shape that str"),
        (lambda: scaled_dot_product_attention(Q, K, V, torch.ones(2, 3).long()), "mask: expected True and False"),
        (lambda: MultiHeadAttention(6, 4), "d_model: expected a multiple of heads=4, got 6"),
        (lambda: MultiHeadAttention(8, 4, kv_heads=3), "kv_heads: expected a divisor of heads=4, got 3"),
        (lambda: MultiHeadAttention(8, 0), "expected at least 1"),
        (lambda: MultiHeadAttention(8, 2, dropout=1.0), "dropout: expected a share"),
        (lambda: MultiHeadAttention(8, 2)(torch.zeros(3, 7)), "X: expected a last axis of 8"),
        (lambda: MultiHeadAttention(8, 2)(torch.zeros(3, 8), torch.zeros(3, 7)), "memory: expected a last axis of 8"),
        (lambda: MultiHeadAttention(8, 2)(torch.zeros(8)), "X: expected shape (..., n, d_model)"),
        (lambda: MultiHeadAttention(8, 2)(torch.zeros(3, 8), mask=torch.ones(2, 2) > 0), "mask: expected a shape"),
        (lambda: record_attention(nn.Linear(2, 2)).__enter__(), "model: expected one with MultiHeadAttention"),
    ]:
        with one_line_error(words):
            wrong()


def alike(d_model, heads, seed, bias=True):
    """Ours and PyTorch's, with the same weights."""
    torch.manual_seed(seed)
    ours = MultiHeadAttention(d_model, heads, bias=bias)
    other = nn.MultiheadAttention(d_model, heads, batch_first=True, bias=bias)
    copy_attention(ours, other)
    return ours, other


@given(st.integers(1, 3), sizes, sizes, st.sampled_from([(2, 1), (4, 2), (6, 3), (8, 8)]), st.booleans(), seeds)
def test_many_heads_are_pytorchs(batch, n, m, widths, bias, seed):
    ours, other = alike(*widths, seed, bias)
    X, Y = drawn(batch, n, widths[0], seed=seed), drawn(batch, m, widths[0], seed=seed + 1)
    chance = torch.Generator().manual_seed(seed)
    everyone = torch.rand(n, m, generator=chance) < 0.7
    everyone[:, 0] = True  # PyTorch gives NaN where nothing may be looked at
    each = torch.rand(batch, n, m, generator=chance) < 0.7
    each[..., -1] = True
    added = torch.randn(batch, widths[1], n, m, generator=chance)
    for mask, its in [
        (None, None),
        (everyone, ~everyone),  # its boolean masks say the opposite
        (each, (~each).repeat_interleave(widths[1], dim=0)),
        (added, added.flatten(0, 1)),
    ]:
        Z, A = ours.with_weights(X, Y, mask)
        expected, weights = other(X, Y, Y, attn_mask=its, average_attn_weights=False)
        torch.testing.assert_close(Z, expected, rtol=1e-9, atol=1e-11)
        torch.testing.assert_close(A, weights, rtol=1e-9, atol=1e-11)
        torch.testing.assert_close(ours(X, Y, mask), expected, rtol=1e-9, atol=1e-11)
        for result in (Z, ours(X, Y, mask)):
            for a, b in zip(gradients(result, (X, Y)), gradients(expected, (X, Y)), strict=True):
                torch.testing.assert_close(a, b, rtol=1e-8, atol=1e-10)
    torch.testing.assert_close(ours(X), other(X, X, X)[0], rtol=1e-9, atol=1e-11)
    torch.testing.assert_close(ours(X[0]), ours(X)[0], rtol=1e-9, atol=1e-11)  # without a batch


@given(st.sampled_from([(8, 4, 2), (8, 4, 1), (6, 3, 3)]), seeds)
def test_shared_keys_and_values_are_those_of_repeated_heads(widths, seed):
    d_model, heads, kv_heads = widths
    torch.manual_seed(seed)
    shared, full = MultiHeadAttention(d_model, heads, kv_heads), MultiHeadAttention(d_model, heads)
    with torch.no_grad():
        for name in ("W_Q", "W_O"):
            getattr(full, name).load_state_dict(getattr(shared, name).state_dict())
        for name in ("W_K", "W_V"):
            few, many = getattr(shared, name), getattr(full, name)
            for i in range(heads):
                j = i // (heads // kv_heads)
                rows, source = slice(i * shared.d_k, (i + 1) * shared.d_k), slice(j * shared.d_k, (j + 1) * shared.d_k)
                many.weight[rows], many.bias[rows] = few.weight[source], few.bias[source]
    X, mask = drawn(2, 5, d_model, seed=seed), causal_mask(5)
    torch.testing.assert_close(shared(X, mask=mask), full(X, mask=mask))
    for ours, other in zip(shared.with_weights(X), full.with_weights(X), strict=True):
        torch.testing.assert_close(ours, other)


@pytest.mark.parametrize("training", [False, True])
def test_what_comes_later_changes_nothing_before(training):
    torch.manual_seed(0)
    attention = MultiHeadAttention(8, 2).train(training)
    X = drawn(2, 6, 8).detach()
    other = X.clone()
    other[:, 4:] += 1
    for weigh in (
        lambda X: attention(X, mask=causal_mask(6)),
        lambda X: attention.with_weights(X, mask=causal_mask(6))[0],
    ):
        torch.testing.assert_close(weigh(X)[:, :4], weigh(other)[:, :4], rtol=0, atol=0)
        assert not torch.allclose(weigh(X)[:, 4:], weigh(other)[:, 4:])


def test_nothing_that_comes_in_is_changed():
    torch.manual_seed(0)
    attention, X, Y = MultiHeadAttention(8, 2), drawn(2, 3, 8).detach(), drawn(2, 4, 8, seed=1).detach()
    mask, added = torch.rand(3, 4) < 0.5, torch.randn(2, 3, 4)
    before = [x.clone() for x in (X, Y, mask, added)]
    attention(X, Y, mask), attention.with_weights(X, Y, added), attention.with_weights(X, Y, mask)
    assert all(torch.equal(a, b) for a, b in zip(before, (X, Y, mask, added), strict=True))


def test_recorded_weights_are_those_it_works_with():
    torch.manual_seed(0)
    model = nn.Sequential(MultiHeadAttention(8, 2, dropout=0.5), MultiHeadAttention(8, 4))
    X = drawn(2, 5, 8).detach()
    alone = model.eval()(X)
    with record_attention(model) as maps:
        torch.testing.assert_close(model(X), alone)
        model(X)
    assert [len(one) for one in maps] == [2, 2] and maps[1][0].shape == (2, 4, 5, 5)
    assert model[0].record is None and model[1].record is None
    model.train()
    with record_attention(model) as maps:
        Z = model(X)
    A, first = maps[0][0], model[0]  # dropout: what was left out was left out of what is shown as well
    assert 0.2 < (A == 0).double().mean() < 0.8
    V = first.project(X, X)[2]
    torch.testing.assert_close(model[1](first.W_O((A @ V).transpose(1, 2).flatten(2))), Z)
    with pytest.raises(RuntimeError), record_attention(model):
        raise RuntimeError
    assert model[0].record is None


@given(seeds, st.integers(1, 5))
def test_with_a_cache_as_without(seed, first):
    torch.manual_seed(seed)
    attention, X = MultiHeadAttention(8, 4, kv_heads=2), drawn(2, 6, 8, seed=seed).detach()
    whole = attention(X, mask=causal_mask(6))
    cache = KeyValueCache()
    beginning = attention(X[:, :first], mask=causal_mask(first), cache=cache)
    kept = cache.copy()
    rest = [attention(X[:, i : i + 1], cache=cache) for i in range(first, 6)]
    torch.testing.assert_close(torch.cat([beginning, *rest], dim=1), whole)
    assert len(cache) == 6 and len(kept) == first and cache.K.shape == (2, 2, 6, 2)
    swapped = cache.choose(torch.tensor([1, 0, 1]))
    assert torch.equal(swapped.K, cache.K[[1, 0, 1]]) and torch.equal(swapped.V, cache.V[[1, 0, 1]])
    assert len(KeyValueCache().choose(torch.tensor([0]))) == 0


def test_a_mask_that_is_no_number_shows():
    mask = torch.zeros(3, 3)
    mask[0, 1] = torch.nan  # neither "may look" nor "may not": it must not count as either
    S, attention = drawn(3, 3).detach(), MultiHeadAttention(4, 2)
    assert masked_softmax(S, mask)[0].isnan().all() and masked_softmax(S, mask)[1:].isfinite().all()
    X = drawn(3, 4).detach()
    for Z in (attention(X, mask=mask), attention.with_weights(X, mask=mask)[0]):
        assert Z[0].isnan().all() and Z[1:].isfinite().all()


def test_batches_and_number_formats_that_do_not_fit():
    Q, attention = torch.zeros(2, 3, 4), MultiHeadAttention(4, 2)
    for wrong, words in [
        (lambda: scaled_dot_product_attention(Q, torch.zeros(3, 3, 4), torch.zeros(3, 3, 4)), "one batch for all"),
        (lambda: scaled_dot_product_attention(Q, Q, torch.zeros(3, 3, 4)), "one batch for all three"),
        (lambda: scaled_dot_product_attention(Q[:1], Q, torch.zeros(3, 3, 4)), "one batch for all three"),
        (lambda: scaled_dot_product_attention(Q, Q.float(), Q), "floating-point numbers of one format"),
        (lambda: scaled_dot_product_attention(Q, Q, Q.float()), "floating-point numbers of one format"),
        (lambda: scaled_dot_product_attention(Q.long(), Q.long(), Q.long()), "floating-point numbers of one format"),
        (lambda: scaled_dot_product_attention(Q[..., :0], Q[..., :0], Q), "queries and keys of one width"),
        (lambda: attention(Q, torch.zeros(3, 5, 4)), "memory: expected the batch of X (2, 3, 4), got (3, 5, 4)"),
    ]:
        with one_line_error(words):
            wrong()
    if not SHAPES_CHECKED:  # the signatures promise one batch; what stretches to it is taken as well
        torch.testing.assert_close(attention(Q + 1, Q[:1] + 1), attention(Q + 1, Q[0] + 1))
        assert scaled_dot_product_attention(Q, Q[:1], Q[0])[0].shape == (2, 3, 4)


def test_a_call_that_fails_leaves_the_cache_as_it_was():
    torch.manual_seed(0)
    attention, X, cache = MultiHeadAttention(8, 2), drawn(2, 4, 8).detach(), KeyValueCache()
    attention(X[:, :2], mask=causal_mask(2), cache=cache)
    for wrong, words in [
        (lambda: attention(X[:, 2:], mask=causal_mask(2), cache=cache), "mask: expected a shape that stretches"),
        (lambda: attention(X[:1, 2:], cache=cache), "cache: expected more tokens for what is kept"),
        (lambda: attention(X[0, 2:], cache=cache), "cache: expected more tokens for what is kept"),
        (lambda: MultiHeadAttention(8, 4)(X[:, 2:], cache=cache), "another layer needs a cache of its own"),
        (lambda: cache.append(cache.K, cache.V[..., :1]), "cache: expected more tokens for what is kept"),
        (lambda: cache.append(cache.K, cache.V[:, :, 1:]), "cache: expected a value for every key"),
        (lambda: KeyValueCache(cache.K), "cache: expected both keys and values, or neither"),
        (lambda: KeyValueCache(None, cache.V), "cache: expected both keys and values, or neither"),
        (lambda: KeyValueCache(cache.K[0], cache.V[0]).choose(torch.tensor([0])), "cache: expected a batch of texts"),
    ]:
        with one_line_error(words):
            wrong()
        assert len(cache) == 2
    mended = attention(X[:, 2:], mask=causal_mask(4)[2:], cache=cache)
    torch.testing.assert_close(mended, attention(X, mask=causal_mask(4))[:, 2:])


def test_keys_and_values_projected_beforehand_stand_for_the_memory():
    torch.manual_seed(0)
    attention = MultiHeadAttention(8, 4, kv_heads=2)
    X, memory, mask = torch.randn(3, 2, 8), torch.randn(3, 5, 8), torch.rand(3, 1, 5) < 0.8
    kept = attention.keys_values(memory)
    assert kept.K.shape == kept.V.shape == (3, 2, 5, 2)
    torch.testing.assert_close(attention(X, kept, mask), attention(X, memory, mask))
    torch.testing.assert_close(attention.with_weights(X, kept)[1], attention.with_weights(X, memory)[1])
    assert len(kept) == 5  # what was looked into is as it was
    for other, words in [
        (attention.keys_values(torch.randn(2, 5, 8)), "memory: expected the batch of X (3, 2, 8), got (2, 2, 5, 2)"),
        (
            MultiHeadAttention(8, 4).keys_values(memory),
            "memory: expected keys of 2 heads, each 2 wide, got (3, 4, 5, 2)",
        ),
        (MultiHeadAttention(8, 2).keys_values(memory), "got (3, 2, 5, 4); made by another module?"),
        (KeyValueCache(), "memory: expected keys and values of at least one token, got an empty cache"),
    ]:
        with one_line_error(words):
            attention(X, other)
    with one_line_error("memory: expected a last axis of 8, got shape (3, 5, 7)"):
        attention.keys_values(torch.randn(3, 5, 7))
    with one_line_error("memory: expected shape (..., n, d_model), got (8,)"):
        attention.keys_values(torch.randn(8))


@given(st.integers(1, 5), st.integers(0, 5))
def test_what_is_new_looks_at_all_before(n, before):
    assert torch.equal(causal_mask(n, before), causal_mask(before + n)[before:])
    with one_line_error("before: expected 0 or more keys, got -1"):
        causal_mask(n, -1)


# ---- rotary positions


def rotary(seed=0, heads=4, kv_heads=2):
    torch.manual_seed(seed)
    attention = RotaryAttention(8 * heads, heads, kv_heads)
    for parameter in attention.parameters():
        nn.init.normal_(parameter, std=0.3)
    return attention


def test_rotary_attention_by_its_parts():
    attention, X = rotary(), drawn(2, 5, 32).detach()
    Q, K, V = (W(X).unflatten(-1, (-1, 8)).transpose(1, 2) for W in (attention.W_Q, attention.W_K, attention.W_V))
    Q, K = (rotate(x / (x**2).mean(-1, keepdim=True).sqrt()) for x in (Q, K))
    expected = theirs(Q, K, V, causal_mask(5), enable_gqa=True).transpose(1, 2).flatten(2)
    torch.testing.assert_close(attention(X, mask=causal_mask(5)), attention.W_O(expected))


@settings(max_examples=12)
@given(seeds, st.lists(st.integers(1, 3), min_size=1, max_size=4))
def test_rotary_attention_in_pieces_as_in_one(seed, lengths):
    attention, n = rotary(seed), sum(lengths)
    X, cache, parts = drawn(2, n, 32, seed=seed).detach(), KeyValueCache(), []
    whole = attention(X, mask=causal_mask(n))
    for piece in X.split(lengths, dim=1):
        before = len(cache)
        parts.append(attention(piece, None, causal_mask(piece.shape[1], before), cache))
    torch.testing.assert_close(torch.cat(parts, dim=1), whole)
    torch.testing.assert_close(attention(X, mask=causal_mask(n)), whole)  # and the next text begins at 0 again
    torch.testing.assert_close(attention(X[0], mask=causal_mask(n)), whole[0])


def test_rotary_scores_depend_on_distance_and_direction_only():
    attention, x = rotary(), drawn(32).detach()
    _, A = attention.with_weights(x.expand(7, 32))  # the same token everywhere
    scores = A.log() - A.log().diagonal(dim1=-2, dim2=-1)[..., None]  # to that of distance 0
    for distance in range(-6, 7):
        line = scores.diagonal(distance, dim1=-2, dim2=-1)
        torch.testing.assert_close(line, line[:, :1].expand_as(line), rtol=0, atol=1e-12)
    assert (scores[:, 6, 0] - scores[:, 6, 5]).abs().min() > 1e-3
    with torch.no_grad():
        Z = attention(X := drawn(6, 32).detach())
        for W in (attention.W_Q, attention.W_K):  # one length: how long they were does not count
            W.weight *= 5
            W.bias *= 5
        torch.testing.assert_close(attention(X), Z)
        torch.testing.assert_close(attention(X.flip(0)).flip(0).shape, Z.shape)
        assert not torch.allclose(attention(X.flip(0)).flip(0), Z)  # the order counts


@pytest.mark.parametrize("training", [False, True])
def test_rotary_attention_looks_back_only(training):
    attention, X = rotary().train(training), drawn(2, 6, 32).detach()
    other = X.clone()
    other[:, 4:] += 1
    one, two = (attention(x, mask=causal_mask(6)) for x in (X, other))
    assert torch.equal(one[:, :4], two[:, :4]) and not torch.isclose(one[:, 4:], two[:, 4:]).all(-1).any()


def test_rotary_weights_are_recorded_after_the_turn():
    attention, X, cache = rotary(), drawn(2, 5, 32).detach(), KeyValueCache()
    attention(X[:, :3], mask=causal_mask(3), cache=cache)
    with record_attention(attention) as maps:
        Z = attention(X[:, 3:], mask=causal_mask(2, 3), cache=cache)
        whole = attention(X, mask=causal_mask(5))
    torch.testing.assert_close(maps[0][0], maps[0][1][:, :, 3:])
    torch.testing.assert_close(Z, whole[:, 3:])
    torch.testing.assert_close(attention(X, mask=causal_mask(5)), whole)


def test_rotary_attention_refuses_another_text_and_odd_widths():
    attention, X = rotary(), drawn(2, 5, 32).detach()
    for memory in (X, attention.keys_values(X)):
        with one_line_error("memory: expected None"):
            attention(X, memory)
    with one_line_error("expected an even width", "got 3"):
        RotaryAttention(6, 2)(torch.zeros(2, 6))
