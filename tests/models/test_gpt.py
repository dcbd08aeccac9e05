"""GPT: the protocol, looking back only, with and without a cache, positions of each kind.

Chapters 07, 08 and 13.
"""

import functools
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from tests.one_line import SHAPES_CHECKED, one_line_error
from transformer_lib.decoding import generate
from transformer_lib.models import GPT
from transformer_lib.parts.attention import record_attention
from transformer_lib.parts.cache import KeyValueCache
from transformer_lib.parts.layers import LayerNorm, PostNorm, PreNorm
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
