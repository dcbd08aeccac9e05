"""The generation loop: greedy, sampled, repeatable, stopped in time.

Chapter 01.
"""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.models_by_hand import Counting, Table, uniform
from tests.one_line import one_line_error
from transformer_lib.decoding import generate
from transformer_lib.models import NGramModel, RecurrentLanguageModel

TABLE = [[0.1, 0.6, 0.3], [0.2, 0.1, 0.7], [0.5, 0.3, 0.2]]


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def draws(row, temperature=1.0, number=4000, seed=0):
    """How often each token follows token 0, out of many independent draws."""
    table = Table([row] * len(row))
    ids = generate(table, [0], number, temperature, seeded(seed))[1:]
    return torch.bincount(torch.tensor(ids), minlength=len(row)) / number


def test_temperature_0_takes_the_most_likely_token():
    assert generate(Table(TABLE), [0], 5, temperature=0) == [0, 1, 2, 0, 1, 2]
    assert generate(Table(TABLE), [2, 1], 3, temperature=0) == [2, 1, 2, 0, 1]


@given(st.integers(0, 1000))
def test_temperature_0_is_the_argmax_whatever_the_generator(seed):
    model = NGramModel(3, 5).fit([0, 1, 2, 3, 4, 2, 1, 2, 3, 0])
    ids = generate(model, [0], 6, temperature=0, generator=seeded(seed))
    for t in range(1, len(ids)):
        assert ids[t] == int(model.next_token_log_probs(torch.tensor(ids[:t])).argmax())


def test_a_temperature_near_0_is_nearly_greedy_and_a_high_one_nearly_uniform():
    row = [0.5, 0.3, 0.2]
    assert draws(row, temperature=0.02, number=300).tolist() == [1, 0, 0]
    assert draws(row, temperature=1e6).tolist() == pytest.approx([1 / 3] * 3, abs=0.03)


@pytest.mark.parametrize("temperature", [1e-3, 1e-100, 1e-308, 5e-324])
def test_however_small_a_temperature_the_likeliest_token_stays(temperature):
    assert generate(Table(TABLE), [0], 3, temperature, seeded()) == [0, 1, 2, 0]
    with_zeros = Table([[0.25, 0.75, 0.0], [0.0, 0.25, 0.75], [0.75, 0.25, 0.0]])
    assert generate(with_zeros, [0], 3, temperature, seeded()) == [0, 1, 2, 0]


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
def test_tokens_are_drawn_as_often_as_the_distribution_says(temperature):
    """A chi-square test: 3 degrees of freedom, 16.27 is exceeded once in a thousand times."""
    p = torch.tensor([0.4, 0.3, 0.2, 0.1], dtype=torch.float64)
    number = 4000
    expected = p ** (1 / temperature) / (p ** (1 / temperature)).sum()
    observed = draws(p.tolist(), temperature, number)
    assert number * float(((observed - expected) ** 2 / expected).sum()) < 16.27
    if temperature != 1:  # and the test can tell temperatures apart
        assert number * float(((observed - p) ** 2 / p).sum()) > 16.27


def test_the_temperature_is_1_unless_said_otherwise():
    model = Table(TABLE)
    assert generate(model, [0], 50, generator=seeded()) == generate(model, [0], 50, 1.0, seeded())
    assert generate(model, [0], 50, generator=seeded()) != generate(model, [0], 50, 0.5, seeded())


def test_impossible_tokens_are_never_drawn():
    ids = generate(Table([[0.5, 0.5, 0.0]] * 3), [0], 500, 5.0, seeded())
    assert set(ids) == {0, 1}


def test_the_same_seed_gives_the_same_text():
    model = uniform(10)
    assert generate(model, [0], 40, generator=seeded(3)) == generate(model, [0], 40, generator=seeded(3))
    assert generate(model, [0], 40, generator=seeded(3)) != generate(model, [0], 40, generator=seeded(4))


def test_without_a_generator_torchs_own_seed_counts():
    torch.manual_seed(5)
    first = generate(uniform(10), [0], 40)
    torch.manual_seed(5)
    assert generate(uniform(10), [0], 40) == first
    before = torch.get_rng_state()
    generate(uniform(10), [0], 5, generator=seeded())
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("prefix", [[2], [0, 1, 2], (1, 1), torch.tensor([2, 0])])
def test_the_prefix_is_kept_and_length_tokens_are_added(prefix):
    for length in (0, 1, 7):
        ids = generate(uniform(3), prefix, length, generator=seeded())
        assert ids[: len(prefix)] == [int(token) for token in prefix]
        assert len(ids) == len(prefix) + length
        assert all(type(token) is int for token in ids)


def test_it_ends_after_the_stop_token():
    assert generate(Table(TABLE), [0], 50, temperature=0, stop=2) == [0, 1, 2]
    assert generate(Table(TABLE), [2], 50, temperature=0, stop=2) == [2, 0, 1, 2]  # the prefix may hold it
    assert len(generate(Table(TABLE), [0], 4, temperature=0, stop=9)) == 5


def test_every_token_is_read_once_and_the_state_carried_along():
    model = Table(TABLE)
    generate(model, [0, 1, 2], 4, temperature=0)
    assert model.lengths == [3, 1, 1, 1]
    assert generate(Counting(5), [0, 0], 6, temperature=0) == [0, 0, 2, 3, 4, 0, 1, 2]


def test_a_text_grown_token_by_token_equals_one_from_its_whole_prefix():
    torch.manual_seed(0)
    model = RecurrentLanguageModel(6, 4, 5).double().eval()
    ids = generate(model, [1, 2], 8, temperature=0)
    for t in range(2, len(ids)):
        assert ids[t] == int(model.next_token_log_probs(torch.tensor(ids[:t])).argmax())


def test_the_prefix_is_not_modified():
    prefix, tensor = [0, 1], torch.tensor([0, 1])
    generate(uniform(3), prefix, 3)
    generate(uniform(3), tensor, 3)
    assert prefix == [0, 1] and tensor.tolist() == [0, 1]


# ---- bad input


@pytest.mark.parametrize("temperature", [-0.1, -math.inf, math.inf, math.nan])
def test_a_temperature_that_is_none_is_refused(temperature):
    with one_line_error("temperature: expected a number from 0", f"got {temperature}"):
        generate(uniform(3), [0], 1, temperature)


def test_a_negative_length_is_refused():
    with one_line_error("length: expected 0 or more tokens", "got -1"):
        generate(uniform(3), [0], -1)


@pytest.mark.parametrize("prefix", [[], [[0, 1]], torch.zeros(0, dtype=torch.long), torch.zeros(2, 2).long()])
def test_an_empty_or_batched_prefix_is_refused(prefix):
    with one_line_error("prefix: expected one text of at least one token", "got shape"):
        generate(uniform(3), prefix, 1)


@pytest.mark.parametrize(
    ("prefix", "words"),
    [
        ([3], "ids from 0 to 2, got 3"),
        ([-1], "ids from 0 to 2, got -1"),
        ([0.5], "whole numbers"),
        ("ab", "whole numbers"),
    ],
)
def test_a_prefix_that_is_no_ids_is_refused(prefix, words):
    with one_line_error("prefix: expected", words):
        generate(uniform(3), prefix, 1)


def test_a_context_never_seen_without_smoothing_is_said():
    model = NGramModel(2, 3, smoothing="none").fit([0, 1])
    for temperature in (0, 1.0):
        with one_line_error() as caught:
            generate(model, [1], 3, temperature)
        assert str(caught.value) == (
            "model: expected a distribution over the next token, got 0 for every token (a context never seen, "
            "without smoothing); choose a smoothing"
        )


def test_a_model_that_counted_nothing_is_said():
    with one_line_error("call fit first"):
        generate(NGramModel(2, 3), [0], 1)
