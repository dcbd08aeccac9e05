"""The one-line checks that every public function begins with."""

import math

import numpy as np
import pytest
import torch

from tests.one_line import one_line_error
from transformer_lib.checks import are_several, as_ids, require, require_width


@pytest.mark.parametrize(
    "ids",
    [
        [0, 1, 4],
        (0, 1, 4),
        range(5),
        [[0, 1], [3, 4]],
        torch.tensor([0, 4]),
        torch.tensor([[4]], dtype=torch.int32),
        torch.tensor([3], dtype=torch.uint8),
        np.array([0, 2]),
        [],
        torch.zeros(2, 0),
    ],
)
def test_ids_become_a_long_tensor_of_the_same_numbers(ids):
    tensor = as_ids(ids, 5)
    assert tensor.dtype == torch.int64
    expected = ids.tolist() if hasattr(ids, "tolist") else list(ids)
    assert tensor.tolist() == expected


def test_ids_of_the_right_kind_are_not_copied():
    ids = torch.tensor([0, 1])
    assert as_ids(ids, 2) is ids


@pytest.mark.parametrize(("vocab_size", "highest"), [(1, 0), (5, 4)])
def test_the_vocabularys_own_borders_are_inside(vocab_size, highest):
    assert as_ids([0, highest], vocab_size).tolist() == [0, highest]


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        (
            [0, 5],
            "ids: expected ids from 0 to 4, got 5; was the text encoded with this model's tokenizer?",
        ),
        ([-1, 9], "ids: expected ids from 0 to 4, got -1; was the text encoded with this model's tokenizer?"),
        ([[0], [7]], "ids: expected ids from 0 to 4, got 7; was the text encoded with this model's tokenizer?"),
        ([0.0, 1.0], "ids: expected whole numbers (token ids), got torch.float32; encode the text first"),
        (
            torch.zeros(2, dtype=torch.float64),
            "ids: expected whole numbers (token ids), got torch.float64; encode the text first",
        ),
        ([True, False], "ids: expected whole numbers (token ids), got torch.bool; encode the text first"),
        ([1j], "ids: expected whole numbers (token ids), got torch.complex64; encode the text first"),
        (3, "ids: expected shape (n,) or (batch, n), got ()"),
        ([[[1]]], "ids: expected shape (n,) or (batch, n), got (1, 1, 1)"),
        ([[1], [1, 2]], "ids: expected whole numbers, all rows of one length, got [[1], [1, 2]]"),
        ("abc", "ids: expected whole numbers, all rows of one length, got 'abc'"),
        (None, "ids: expected whole numbers, all rows of one length, got None"),
        (["a"], "ids: expected whole numbers, all rows of one length, got ['a']"),
        ([[1], 2], "ids: expected whole numbers, all rows of one length, got [[1], 2]"),
    ],
)
def test_what_are_no_ids_is_refused_in_one_line(ids, message):
    with one_line_error() as caught:
        as_ids(ids, 5)
    assert str(caught.value) == message


def test_the_message_names_what_was_given():
    with one_line_error("prefix: expected ids from 0 to 4, got 5"):
        as_ids([5], 5, "prefix")


def test_a_long_or_many_lined_thing_is_shortened_to_one_line():
    with one_line_error("got [tensor([[1, 2], [3, 4]]), tensor([5])]"):
        as_ids([torch.tensor([[1, 2], [3, 4]]), torch.tensor([5])], 9)
    with one_line_error() as caught:
        as_ids([[1] * 500, [2]], 5)
    assert str(caught.value).endswith("got [[" + "1, " * 19 + "1") and len(str(caught.value)) < 130


def test_numbers_beyond_64_bits_are_refused():
    with one_line_error("ids: expected whole numbers"):
        as_ids([2**70], 5)


def test_require_raises_only_where_the_condition_fails():
    require(True, "never said")
    with one_line_error() as caught:
        require(False, "said")
    assert str(caught.value) == "said"


@pytest.mark.parametrize("shape", [(3,), (2, 3), (4, 2, 3), (0, 3)])
def test_a_last_axis_of_the_right_width_passes(shape):
    require_width("x", torch.zeros(shape), 3)


@pytest.mark.parametrize("shape", [(4,), (3, 2), (), (3, 0)])
def test_another_last_axis_is_refused(shape):
    with one_line_error(f"x: expected a last axis of 3, got shape {shape}"):
        require_width("x", torch.zeros(shape), 3)


@pytest.mark.parametrize(
    ("ids", "several"),
    [
        ([1, 2], False),
        ((1, 2), False),
        ([], False),
        (torch.tensor([1, 2]), False),
        (np.array([1, 2]), False),
        (torch.tensor([]), False),
        (list(torch.tensor([1, 2])), False),
        ([[1, 2]], True),
        ([[]], True),
        (((1,), (2,)), True),
        (torch.tensor([[1, 2]]), True),
        (np.array([[1, 2]]), True),
        ([torch.tensor([1]), torch.tensor([1, 2])], True),
        ([np.array([1])], True),
    ],
)
def test_several_texts_are_told_from_one(ids, several):
    assert are_several(ids) is several


def test_a_number_that_is_none_is_refused():
    with one_line_error("whole numbers"):
        as_ids([math.nan], 5)
