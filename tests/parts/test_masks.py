"""Masks: True = may be looked at.

Chapters 04 to 06.
"""

import torch

from tests.one_line import one_line_error
from transformer_lib.parts.masks import additive, causal_mask, padding_mask


def test_padding_may_not_be_looked_at():
    assert padding_mask(torch.tensor([[5, 0, 7], [0, 0, 1]]), 0).tolist() == [[True, False, True], [False, False, True]]


def test_a_query_sees_itself_and_what_was_before():
    assert causal_mask(3).tolist() == [[True, False, False], [True, True, False], [True, True, True]]
    assert causal_mask(1).tolist() == [[True]]


def test_masks_are_of_true_and_false():
    """So that ~ turns them round and no attention takes them for numbers to add."""
    for mask in (causal_mask(2), causal_mask(1), padding_mask(torch.tensor([1, 0]), 0)):
        assert mask.dtype == torch.bool


def test_the_textbooks_mask_is_added():
    assert additive(torch.tensor([True, False])).tolist() == [0.0, -torch.inf]
    assert additive(causal_mask(2)).tolist() == [[0.0, -torch.inf], [0.0, 0.0]]


def test_what_is_added_lies_where_the_mask_does():
    """On a graphics card the two could not be added else; the device "meta" stands for it."""
    assert additive(torch.ones(2, 3, dtype=torch.bool, device="meta")).device.type == "meta"


def test_no_position_is_refused():
    with one_line_error("n: expected at least 1 position, got 0"):
        causal_mask(0)
