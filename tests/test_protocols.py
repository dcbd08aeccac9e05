"""What follows for every language model from its `step`."""

import math

import pytest
import torch

from tests.models_by_hand import Counting, Table
from tests.one_line import one_line_error
from transformer_lib.protocols import LanguageModel

TABLE = [[0.5, 0.25, 0.25], [0.125, 0.75, 0.125], [1.0, 0.0, 0.0]]


def test_a_model_without_a_step_is_none():
    with pytest.raises(NotImplementedError):
        LanguageModel().step(torch.tensor([0]))


def test_log_probs_are_those_of_a_step_from_the_start():
    model = Table(TABLE)
    assert torch.equal(model.log_probs(torch.tensor([0, 2])).exp(), model.table[[0, 2]])
    counting = Counting(3)
    assert counting.log_probs(torch.tensor([0, 0])).exp().tolist() == [[0.25, 0.5, 0.25], [0.25, 0.25, 0.5]]


def test_the_next_token_follows_the_last_of_the_prefix():
    model = Table(TABLE)
    assert model.next_token_log_probs(torch.tensor([2, 0, 1])).exp().tolist() == pytest.approx(TABLE[1])
    batch = model.next_token_log_probs(torch.tensor([[2, 0], [0, 2]]))
    assert batch.shape == (2, 3)
    torch.testing.assert_close(batch.exp(), model.table[[0, 2]])
    assert model.next_token_log_probs(torch.tensor([1])).exp().tolist() == pytest.approx(TABLE[1])


def test_score_is_the_log_probability_of_each_target():
    model = Table(TABLE)
    scores, state = model.score(torch.tensor([0, 1, 2]), torch.tensor([1, 2, 0]))
    assert scores.tolist() == [math.log(0.25), math.log(0.125), 0.0] and state == 3
    scores, _ = model.score(torch.tensor([[0, 1], [2, 0]]), torch.tensor([[0, 1], [1, 2]]))
    assert scores.exp().tolist() == [[0.5, 0.75], [0.0, 0.25]]


def test_score_goes_on_from_a_state():
    scores, state = Counting(4).score(torch.tensor([0, 0]), torch.tensor([3, 0]), 2)
    assert scores.exp().tolist() == pytest.approx([0.5, 0.5]) and state == 4


def test_an_empty_prefix_is_refused():
    with one_line_error() as caught:
        Table(TABLE).next_token_log_probs(torch.tensor([], dtype=torch.long))
    assert str(caught.value) == "prefix: expected at least one token, got none; begin with the start token"


@pytest.mark.parametrize("shape", [(1,), (3,), (1, 2), (2, 1), ()])
def test_targets_of_another_shape_are_refused(shape):
    with one_line_error("targets: expected"):
        Table(TABLE).score(torch.tensor([0, 1]), torch.zeros(shape, dtype=torch.long))


def test_the_message_says_which_shape_was_expected():
    for shape in ((2,), (2, 4)):
        with one_line_error(f"targets: expected the shape of ids {shape}, got (1,)"):
            Table(TABLE).score(torch.zeros(shape, dtype=torch.long), torch.tensor([0]))


@pytest.mark.parametrize("target", [3, -1])
def test_targets_outside_the_vocabulary_are_refused(target):
    with one_line_error("targets: expected ids from 0 to 2", f"got {target}"):
        Table(TABLE).score(torch.tensor([0]), torch.tensor([target]))
