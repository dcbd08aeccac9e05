"""Label smoothing by hand and against PyTorch, padding left out.

Chapter 10.
"""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from tests.one_line import one_line_error
from transformer_lib.models import Transformer
from transformer_lib.training import label_smoothed_cross_entropy, translation_loss


@pytest.fixture(autouse=True)
def _float64():
    torch.set_default_dtype(torch.float64)


def test_one_token_by_hand():
    P = torch.tensor([0.7, 0.2, 0.05, 0.05])
    expected = -(0.925 * math.log(0.7) + 0.025 * (math.log(0.2) + 2 * math.log(0.05)))
    found = label_smoothed_cross_entropy(P.log()[None], torch.tensor([0]))
    torch.testing.assert_close(found, torch.tensor(expected))
    certain = label_smoothed_cross_entropy(P.log(), torch.tensor(1), epsilon=0.0)
    torch.testing.assert_close(certain, torch.tensor(-math.log(0.2)))


@given(
    v=st.integers(1, 6),
    n=st.integers(1, 5),
    epsilon=st.sampled_from([0.0, 0.1, 0.5]),
    padding=st.integers(0, 4),
    seed=st.integers(0, 2**31),
)
def test_it_is_pytorchs_in_value_and_gradient(v, n, epsilon, padding, seed):
    chance = torch.Generator().manual_seed(seed)
    scores = torch.randn(2, n + padding, v, generator=chance, requires_grad=True)
    targets = torch.randint(v, (2, n + padding), generator=chance)
    targets[:, n:] = -100
    expected = nn.functional.cross_entropy(scores.flatten(0, 1), targets.flatten(), label_smoothing=epsilon)
    found = label_smoothed_cross_entropy(torch.log_softmax(scores, dim=-1), targets, epsilon=epsilon)
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(torch.autograd.grad(found, scores), torch.autograd.grad(expected, scores))


def test_it_is_least_where_the_target_has_what_smoothing_left_it():
    """The best distribution is q itself: certainty is punished."""
    q = torch.full((5,), 0.02)
    q[3] = 0.92
    target = torch.tensor(3)
    best = label_smoothed_cross_entropy(q.log(), target)
    torch.testing.assert_close(best, -(q * q.log()).sum())
    for share in (0.8, 0.9, 0.95, 0.999):
        p = torch.full((5,), (1 - share) / 4)
        p[3] = share
        assert label_smoothed_cross_entropy(p.log(), target) > best


def test_padding_of_the_models_own_id_is_left_out():
    torch.manual_seed(0)
    model = Transformer(9, 8, 2, 1, 16, 0.0)
    source, target = torch.tensor([[4, 5]]), torch.tensor([[1, 3, 2]])
    loss = translation_loss(model, (source, target), label_smoothed_cross_entropy)
    longer = nn.functional.pad(target, (0, 3))
    torch.testing.assert_close(translation_loss(model, (source, longer), label_smoothed_cross_entropy), loss)
    assert not torch.isclose(loss, translation_loss(model, (source, target)))


def test_what_cannot_be():
    log_probs = torch.log_softmax(torch.zeros(2, 3), dim=-1)
    for epsilon in (-0.1, 1.0):
        with one_line_error(f"epsilon: expected a share from 0 to below 1, got {epsilon}"):
            label_smoothed_cross_entropy(log_probs, torch.tensor([0, 1]), epsilon=epsilon)
    with one_line_error("targets: expected one a distribution, (2,), got (3,)"):
        label_smoothed_cross_entropy(log_probs, torch.tensor([0, 1, 2]))
    with one_line_error("targets: expected at least one that counts, got only -100"):
        label_smoothed_cross_entropy(log_probs, torch.tensor([-100, -100]))
    with one_line_error("targets: expected ids from 0 to 2, got 3"):
        label_smoothed_cross_entropy(log_probs, torch.tensor([0, 3]))
    with one_line_error("targets: expected whole numbers"):
        label_smoothed_cross_entropy(log_probs, torch.tensor([0.0, 1.0]))
