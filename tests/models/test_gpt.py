"""GPT: the protocol, looking back only, with and without a cache, positions of each kind; its size; fine-tuning.

Chapters 07, 08 and 13.
"""

import functools
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from tests.one_line import SHAPES_CHECKED, one_line_error
from tests.parts.pytorchs import shake
from transformer_lib.decoding import generate
from transformer_lib.models import GPT, GPTClassifier
from transformer_lib.parts.attention import RotaryAttention, record_attention
from transformer_lib.parts.cache import KeyValueCache
from transformer_lib.parts.layers import LayerNorm, PostNorm, PreNorm, squared_relu
from transformer_lib.parts.positions import LearnedPositions, SinusoidalPositions
from transformer_lib.training import fit, windows

KINDS = [LearnedPositions, SinusoidalPositions, None]


@pytest.fixture(autouse=True)
def _float64():
    torch.set_default_dtype(torch.float64)


def small(positions=LearnedPositions, **named):
    torch.manual_seed(0)
    return GPT(11, 8, d_model=8, heads=2, layers=2, positions=positions, **named).eval()


@pytest.mark.parametrize("positions", KINDS)
@given(seed=st.integers(0, 2**31), cut=st.integers(1, 6))
def test_on_from_a_state_as_in_one_pass(positions, seed, cut):
    model = small(positions)
    ids = torch.randint(11, (3, 7), generator=torch.Generator().manual_seed(seed))
    whole = model.log_probs(ids)
    torch.testing.assert_close(whole.exp().sum(-1), torch.ones(3, 7))
    first, state = model.step(ids[:, :cut])
    second, _ = model.step(ids[:, cut:], state)
    torch.testing.assert_close(torch.cat([first, second], dim=1), whole)
    torch.testing.assert_close(model.step(ids[:, cut:], state)[0], second)  # the state it was given is as it was
    torch.testing.assert_close(model.log_probs(ids[0]), whole[0])


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("positions", KINDS)
def test_a_later_token_changes_nothing_before(positions, training):
    model = small(positions).train(training)
    ids = torch.tensor([1, 2, 3, 4, 5])
    other = torch.tensor([1, 2, 3, 9, 8])
    assert torch.equal(model.log_probs(ids)[:3], model.log_probs(other)[:3])
    assert not torch.allclose(model.log_probs(ids)[3:], model.log_probs(other)[3:])


@pytest.mark.parametrize("positions", KINDS)
def test_without_positions_one_layer_does_not_see_the_order(positions):
    torch.manual_seed(0)
    model = GPT(11, 8, d_model=8, heads=2, layers=1, positions=positions).eval()
    last = [model.log_probs(torch.tensor(ids))[-1] for ids in ([1, 2, 3], [2, 1, 3])]
    assert ((last[0] - last[1]).abs().max() < 1e-12) == (positions is None)


def test_output_layer_is_the_embedding_matrix():
    model = small()
    H, _ = model.hidden_states(torch.tensor([4, 2]))
    torch.testing.assert_close(
        model.log_probs(torch.tensor([4, 2])), torch.log_softmax(H @ model.embedding.weight.T, -1)
    )
    count = 11 * 8 + 8 * 8 + 2 * (4 * 72 + (8 * 32 + 32) + (32 * 8 + 8) + 2 * 16) + 16
    assert sum(p.numel() for p in model.parameters()) == count
    no_last_norm = small(wrap=PostNorm)
    assert sum(p.numel() for p in no_last_norm.parameters()) == count - 16 and isinstance(
        no_last_norm.norm, nn.Identity
    )


def test_it_starts_near_evenly_and_learns():
    torch.manual_seed(0)
    model = GPT(5, 8, d_model=16, heads=2, layers=2)
    text = torch.tensor([0, 1, 2, 3, 4] * 40)
    batches = windows(text, 8, 8)
    history = fit(model, batches, 60, torch.optim.Adam(model.parameters(), 1e-2))
    assert abs(history.loss[0] - math.log(5)) < 0.05 and history.loss[-1] < 0.2
    assert generate(model, [0, 1], 5, temperature=0) == [0, 1, 2, 3, 4, 0, 1]
    assert 0.01 < small().embedding.weight.std() < 0.03
    deep = GPT(5, 8, d_model=64, heads=2, layers=8).layers[0]
    ratio = deep.attention.sublayer.W_Q.weight.std() / deep.attention.sublayer.W_O.weight.std()
    assert (
        3.5 < ratio < 4.5
        and 3.5 < deep.feed_forward.sublayer.W_1.weight.std() / deep.feed_forward.sublayer.W_2.weight.std()
    )
    assert (deep.feed_forward.sublayer.W_1.bias == 0).all()


def test_maps_of_every_head():
    model = small(dropout=0.5)
    with record_attention(model) as maps:
        model.log_probs(torch.tensor([[1, 2, 3], [4, 5, 6]]))
    assert [len(layer) for layer in maps] == [1, 1] and maps[0][0].shape == (2, 2, 3, 3)
    assert (maps[0][0].triu(1) == 0).all()
    model.train()
    assert not torch.equal(model.log_probs(torch.tensor([1, 2])), model.log_probs(torch.tensor([1, 2])))


def test_what_cannot_be():
    model = small()
    with one_line_error("positions: learned for 8 tokens, got 9"):
        model.log_probs(torch.arange(9))
    _, state = model.step(torch.arange(6))
    with one_line_error("positions: learned for 8 tokens, got 9"):
        model.step(torch.arange(3), state)
    with one_line_error("ids: expected at least one token"):
        model.log_probs(torch.tensor([], dtype=torch.long))
    with one_line_error("ids from 0 to 10, got 11"):
        model.log_probs(torch.tensor([11]))
    with one_line_error("expected at least 1"):
        GPT(11, 8, 8, 2, 0)
    assert small(SinusoidalPositions).log_probs(torch.arange(9)).shape == (9, 11)


def test_a_state_of_another_model_or_batch_is_refused():
    model, ids = small(), torch.tensor([[1, 2], [3, 4]])
    _, state = model.step(ids)
    torch.manual_seed(0)
    deeper = GPT(11, 8, d_model=8, heads=2, layers=3).eval()
    for wrong, words in [
        (state[:1], "state: expected 2 caches, one a layer, of one length, got lengths [2]"),
        (deeper.step(ids)[1], "state: expected 2 caches, one a layer, of one length, got lengths [2, 2, 2]"),
        ([], "state: expected 2 caches"),
        ([state[0], KeyValueCache()], "of one length, got lengths [2, 0]"),
        ([KeyValueCache(), state[1]], "of one length, got lengths [0, 2]"),
        ([torch.zeros(2, 8)] * 2, "state: expected None or what `step` returned"),
        (state[0], "state: expected None or what `step` returned"),
        (model.step(ids[:1])[1], "cache: expected more tokens for what is kept, (1, 2, 2, 4), got (2, 2, 1, 4)"),
        (model.step(ids[0])[1], "another batch or another layer needs a cache of its own"),
    ]:
        with one_line_error(words):
            model.step(ids[:, :1], wrong)
    if not SHAPES_CHECKED:  # the signature promises a list; a tuple will do
        assert torch.equal(model.step(ids, tuple(state))[0], model.step(ids, state)[0])


def test_every_kind_of_pre_norm_has_the_norm_at_the_end():
    assert isinstance(small(wrap=functools.partial(PreNorm)).norm, LayerNorm)
    assert isinstance(small(wrap=functools.partial(PostNorm)).norm, nn.Identity)


# ---- rotary positions


def rotary(layers=2):
    torch.manual_seed(0)
    return shake(GPT(11, 8, 8, 2, layers, positions=None, attention=RotaryAttention, f=squared_relu).eval())


@settings(max_examples=12)
@given(st.integers(0, 2**31), st.lists(st.integers(1, 5), min_size=1, max_size=5))
def test_with_rotary_positions_in_pieces_as_in_one_pass_of_any_length(seed, lengths):
    model, n = rotary(), sum(lengths)
    ids = torch.randint(11, (3, n), generator=torch.Generator().manual_seed(seed))
    whole, parts, state, states = model.log_probs(ids), [], None, []
    for piece in ids.split(lengths, dim=1):
        states.append(state)
        log_probs, state = model.step(piece, state)
        parts.append(log_probs)
    torch.testing.assert_close(torch.cat(parts, dim=1), whole)
    for piece, before, expected in zip(ids.split(lengths, dim=1), states, parts, strict=True):
        assert torch.equal(model.step(piece, before)[0], expected)  # a state is as it was, and may be gone on from
    torch.testing.assert_close(model.log_probs(ids[1]), whole[1])
    assert len(state) == 2 and all(len(cache) == n for cache in state)


@pytest.mark.parametrize("training", [False, True])
def test_with_rotary_positions_it_looks_back_only_and_sees_the_order(training):
    model = rotary().train(training)
    ids, other = torch.tensor([1, 2, 3, 4, 5]), torch.tensor([1, 2, 3, 9, 8])
    assert torch.equal(model.log_probs(ids)[:3], model.log_probs(other)[:3])
    assert not torch.isclose(model.log_probs(ids)[3:], model.log_probs(other)[3:]).all(-1).any()
    swapped = torch.tensor([2, 1, 3])
    one_layer = rotary(layers=1)
    assert (one_layer.log_probs(swapped)[-1] - one_layer.log_probs(ids[:3])[-1]).abs().max() > 1e-3


def test_what_the_layers_are_made_of():
    model = rotary()
    assert model.positions is None and all(type(x.attention.sublayer) is RotaryAttention for x in model.layers)
    ids = torch.tensor([1, 2, 3])
    squared = model.log_probs(ids)
    for layer in model.layers:
        assert layer.feed_forward.sublayer.f is squared_relu
        layer.feed_forward.sublayer.f = nn.functional.gelu
    assert not torch.allclose(model.log_probs(ids), squared)
    dropping = GPT(11, 8, 8, 2, 1, dropout=0.25, attention=RotaryAttention)
    assert dropping.layers[0].attention.sublayer.dropout == 0.25


def test_rotary_positions_learn_what_lies_at_a_distance():
    """Each token is the one three places before: without any positions nothing tells which that is."""
    torch.manual_seed(0)
    text = torch.randint(5, (40, 3)).repeat(1, 4)
    losses = []
    for attention in ({}, {"attention": RotaryAttention}):
        torch.manual_seed(0)
        model = GPT(5, 12, d_model=16, heads=2, layers=1, positions=None, **attention)
        history = fit(model, lambda step: text, 60, torch.optim.Adam(model.parameters(), 2e-2))
        losses.append(history.loss[-1])
    assert losses[1] < 0.75 * losses[0], losses


# ---- published sizes


@pytest.mark.parametrize(
    ("sizes", "wrap", "expected"),
    [
        ((40_478, 512, 768, 12, 12), PostNorm, 116_534_784),  # GPT-1
        ((50_257, 1024, 768, 12, 12), PreNorm, 124_439_808),  # GPT-2, the smallest
        ((50_257, 2048, 12_288, 96, 96), PreNorm, 174_604_259_328),  # GPT-3
    ],
)
def test_as_many_parameters_as_published(sizes, wrap, expected):
    with torch.device("meta"):
        assert sum(p.numel() for p in GPT(*sizes, wrap=wrap).parameters()) == expected


# ---- fine-tuning

EXTRACT = 10


def classifier(classes=3, **named):
    torch.manual_seed(0)
    return shake(GPTClassifier(rotary() if named.pop("turned", False) else small(), classes, EXTRACT, **named)).eval()


@pytest.mark.parametrize("turned", [False, True])
def test_the_label_is_read_where_the_text_ends(turned):
    model = classifier(turned=turned)
    ids = torch.tensor([[1, 2, 3, 10, 0, 0], [4, 5, 6, 7, 8, 10], [10, 0, 0, 0, 0, 0]])
    scores, log_probs = model(ids)
    H, _ = model.gpt.hidden_states(ids)
    for row, end in enumerate((3, 5, 0)):
        torch.testing.assert_close(scores[row], H[row, end] @ model.output.weight.T + model.output.bias)
        alone, log_probs_alone = model(ids[row : row + 1, : end + 1])  # without padding
        torch.testing.assert_close(alone[0], scores[row])
        torch.testing.assert_close(log_probs_alone[0], log_probs[row, : end + 1])
    torch.testing.assert_close(model(ids.masked_fill(ids == 0, 9))[0], scores)  # whatever the padding is
    torch.testing.assert_close(model(ids.flip(0))[0], scores.flip(0))
    torch.testing.assert_close(log_probs, model.gpt.log_probs(ids))
    assert scores.shape == (3, 3) and not torch.allclose(model(ids.where(ids != 2, 9))[0][0], scores[0])


def test_both_losses_reach_the_gpt_and_dropout_the_row():
    model = classifier(dropout=0.5)
    ids = torch.tensor([[1, 2, 10], [3, 10, 0]])
    for i in range(2):
        model.zero_grad()
        model(ids)[i].sum().backward()
        assert model.gpt.layers[0].attention.sublayer.W_Q.weight.grad.abs().max() > 0
        assert (model.output.weight.grad is None) == (i == 1)
    torch.testing.assert_close(model(ids)[0], model(ids)[0])
    model.train()
    assert not torch.equal(model(ids)[0], model(ids)[0])
    torch.testing.assert_close(model(ids)[1], model(ids)[1])  # of the next tokens nothing is dropped here
    before = small().state_dict()
    head = GPTClassifier(gpt := small(), 2, EXTRACT)
    assert all(torch.equal(before[name], tensor) for name, tensor in gpt.state_dict().items())
    assert (head.output.bias == 0).all() and head.output.weight.std() < 0.04


@pytest.mark.parametrize(
    ("ids", "words"),
    [
        ([[1, 2, 3], [1, 10, 3]], "ids: expected the token 10 once in every row"),
        ([[1, 10, 10]], "ids: expected the token 10 once in every row"),
        ([[1, 10, 10], [1, 2, 3]], "ids: expected the token 10 once in every row"),
        ([1, 2, 10], "ids: expected a batch (batch, n), got shape (3,)"),
        ([[1, 11, 10]], "ids: expected ids from 0 to 10, got 11"),
        ([[]], "ids: expected at least one token in each row, got none"),
        ([[1] * 8 + [10]], "positions: learned for 8 tokens, got 9"),
    ],
)
def test_texts_that_do_not_end_once_are_refused(ids, words):
    with one_line_error(words):
        classifier()(torch.tensor(ids))


def test_no_class_at_all_is_refused():
    with one_line_error("classes: expected at least 1, got 0"):
        GPTClassifier(small(), 0, EXTRACT)
