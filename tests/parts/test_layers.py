"""Layer norm, feed-forward network, both wrappers and the encoder layer, by hand and against PyTorch.

Chapter 09.
"""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from tests.one_line import one_line_error
from tests.parts.pytorchs import copy_decoder_layer, copy_encoder_layer
from transformer_lib.parts.attention import MultiHeadAttention
from transformer_lib.parts.layers import (
    DecoderLayer,
    EncoderLayer,
    FeedForward,
    LayerNorm,
    PostNorm,
    PreNorm,
    layer_norm,
    squared_relu,
)
from transformer_lib.parts.masks import causal_mask

seeds = st.integers(0, 2**31)


@pytest.fixture(autouse=True)
def _float64():
    torch.set_default_dtype(torch.float64)


def test_layer_norm_by_hand():
    norm = LayerNorm(4, epsilon=0.0)
    root = 1.25**0.5  # of the variance of 1, 2, 3, 4 around 2.5
    torch.testing.assert_close(norm(torch.tensor([1.0, 2, 3, 4])), torch.tensor([-1.5, -0.5, 0.5, 1.5]) / root)
    with torch.no_grad():
        norm.gamma.fill_(2.0)
        norm.beta.fill_(3.0)
    torch.testing.assert_close(norm(torch.tensor([1.0, 2, 3, 4]))[0], torch.tensor(3 - 3 / root))
    assert LayerNorm(3)(torch.ones(3)).abs().max() == 0  # nothing to divide by: epsilon is there


@given(st.integers(1, 5), st.integers(1, 4), seeds)
def test_layer_norm_is_pytorchs(d, batch, seed):
    torch.manual_seed(seed)
    ours, other, x = LayerNorm(d), nn.LayerNorm(d), torch.randn(batch, 3, d, requires_grad=True)
    with torch.no_grad():
        ours.gamma.copy_(torch.randn(d)), ours.beta.copy_(torch.randn(d))
        other.weight.copy_(ours.gamma), other.bias.copy_(ours.beta)
    torch.testing.assert_close(ours(x), other(x))
    torch.testing.assert_close(ours(x), layer_norm(x, ours.gamma, ours.beta))
    weights = torch.randn(batch, 3, d)
    (ours_gradient,) = torch.autograd.grad((ours(x) * weights).sum(), x)
    torch.testing.assert_close(ours_gradient, torch.autograd.grad((other(x) * weights).sum(), x)[0])


def test_feed_forward_by_hand_and_position_by_position():
    ffn = FeedForward(2, 3)
    with torch.no_grad():
        ffn.W_1.weight.copy_(torch.tensor([[1.0, 0], [0, 1], [1, 1]])), ffn.W_1.bias.copy_(torch.tensor([0.0, 0, -1]))
        ffn.W_2.weight.copy_(torch.tensor([[1.0, 1, 1], [0, 0, 2]])), ffn.W_2.bias.copy_(torch.tensor([0.5, 0]))
    x = torch.tensor([[1.0, -2], [2, 3]])  # inside: (1, 0, 0) and (2, 3, 4)
    torch.testing.assert_close(ffn(x), torch.tensor([[1.5, 0], [9.5, 8]]))
    torch.testing.assert_close(ffn(x.flip(0)), ffn(x).flip(0))
    assert FeedForward(2, 3, bias=False).W_1.bias is None
    assert FeedForward(2, 3, f=torch.abs)(x).shape == (2, 2)
    torch.manual_seed(0)
    half = FeedForward(2, 4000, f=torch.ones_like, bias=False, dropout=0.5)
    assert not torch.allclose(half(x), half.eval()(x))


@pytest.mark.parametrize(("wrap", "first"), [(PostNorm, False), (PreNorm, True)])
@given(seed=seeds)
def test_encoder_layer_is_pytorchs(wrap, first, seed):
    torch.manual_seed(seed)
    ours = EncoderLayer(MultiHeadAttention(8, 2), FeedForward(8, 16), wrap)
    other = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True, norm_first=first)
    draw_norms(ours)
    copy_encoder_layer(ours, other)
    X, mask = torch.randn(3, 5, 8, requires_grad=True), causal_mask(5)
    same(ours(X), other(X), X)
    same(ours(X, mask), other(X, src_mask=~mask), X)


@pytest.mark.parametrize(("wrap", "first"), [(PostNorm, False), (PreNorm, True)])
@given(seed=seeds)
def test_decoder_layer_is_pytorchs(wrap, first, seed):
    torch.manual_seed(seed)
    ours = DecoderLayer(MultiHeadAttention(8, 2), MultiHeadAttention(8, 2), FeedForward(8, 16), wrap)
    other = nn.TransformerDecoderLayer(8, 2, 16, dropout=0.0, batch_first=True, norm_first=first)
    draw_norms(ours)
    copy_decoder_layer(ours, other)
    Y, H, mask = torch.randn(3, 5, 8, requires_grad=True), torch.randn(3, 4, 8, requires_grad=True), causal_mask(5)
    padding = torch.tensor([[False] * 4, [False, False, True, True], [False, False, False, True]])
    expected = other(Y, H, tgt_mask=~mask, memory_key_padding_mask=padding)
    same(ours(Y, H, mask, ~padding[:, None]), expected, Y, H)
    kept = ours.source_attention.sublayer.keys_values(H)  # projected beforehand: the same, for the gradients too
    same(ours(Y, kept, mask, ~padding[:, None]), expected, Y, H)


def draw_norms(layer):
    with torch.no_grad():
        for module in layer.modules():
            if isinstance(module, LayerNorm):
                module.gamma.copy_(torch.randn(8)), module.beta.copy_(torch.randn(8))


def same(found, expected, *inputs):
    """In value, and in gradient with respect to the inputs."""
    torch.testing.assert_close(found, expected)
    weights = torch.linspace(-1, 1, found.numel()).view_as(found)
    for one, other in zip(
        torch.autograd.grad((found * weights).sum(), inputs, retain_graph=True),
        torch.autograd.grad((expected * weights).sum(), inputs, retain_graph=True),
        strict=True,
    ):
        torch.testing.assert_close(one, other)


def test_each_wrapper_has_its_own_norm_and_dropout_on_the_detour_alone():
    layer = EncoderLayer(MultiHeadAttention(8, 2), FeedForward(8, 16), PreNorm, dropout=0.5)
    assert layer.attention.norm is not layer.feed_forward.norm
    torch.manual_seed(0)
    ones = PreNorm(FeedForward(4, 4, torch.ones_like, bias=False), nn.Identity(), dropout=0.5)
    nn.init.ones_(ones.sublayer.W_2.weight)
    added = ones(torch.zeros(1000, 4))
    assert set(added.unique().tolist()) == {0.0, 8.0}  # 4 doubled, or nothing
    assert (ones(torch.full((1000, 4), 2.0)) >= 2).all()  # the straight way is never dropped


def test_widths_that_do_not_fit():
    with one_line_error("x: expected a last axis of 3"):
        LayerNorm(3)(torch.zeros(2, 4))
    with one_line_error("x: expected a last axis of 3"):
        FeedForward(3, 4)(torch.zeros(2, 4))
    with one_line_error("expected widths of at least 1"):
        FeedForward(3, 0)
    with one_line_error("d_model: expected at least 1"):
        LayerNorm(0)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("size", [1e-3, 1.0, 300.0, 1e4])
def test_layer_norm_in_half_precision_is_pytorchs(dtype, size):
    torch.manual_seed(0)
    x = (size * torch.randn(5, 64) + size).to(dtype)  # 300 squared is more than float16 holds
    for parameters in (dtype, torch.float32):
        ours, other = LayerNorm(64).to(parameters), nn.LayerNorm(64).to(parameters)
        assert ours(x).dtype == other(x).dtype == dtype
        torch.testing.assert_close(ours(x), other(x), rtol=0, atol=8 * torch.finfo(dtype).eps)
        assert ours(x).double().std() > 0.9 or size < 1


@given(st.floats(-50, 50))
def test_squared_relu_is_zero_below_zero_and_the_square_above(x):
    at = torch.tensor(x, requires_grad=True)
    (gradient,) = torch.autograd.grad(squared_relu(at), at)
    assert float(squared_relu(at.detach())) == max(0.0, x) ** 2 and float(gradient) == 2 * max(0.0, x)
    ffn = FeedForward(2, 3, squared_relu)
    X = torch.tensor([[1.0, x]])
    torch.testing.assert_close(ffn(X), ffn.W_2(ffn.W_1(X).clamp(min=0) ** 2))
