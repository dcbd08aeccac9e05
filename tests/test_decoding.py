"""The generation loop: greedy, sampled, repeatable, stopped in time; what may be drawn; many prompts at once.

Chapters 01 and 13.
"""

import functools
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.models_by_hand import Counting, Table, uniform
from tests.one_line import one_line_error
from tests.parts.pytorchs import shake
from transformer_lib.decoding import draw_token, generate, generate_all, top_k_filter, top_p_filter
from transformer_lib.models import GPT, NGramModel, RecurrentLanguageModel, Windowed
from transformer_lib.parts.attention import RotaryAttention
from transformer_lib.parts.layers import squared_relu
from transformer_lib.parts.positions import SinusoidalPositions
from transformer_lib.parts.recurrent import GRUCell, LSTMCell, RNNCell

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


# ---- what may be drawn


def log_of(*rows):
    return torch.tensor(rows, dtype=torch.float64).log()


def kept(log_probs):
    return [
        [i for i, value in enumerate(row) if value > -math.inf] for row in log_probs.reshape(-1, log_probs.shape[-1])
    ]


def test_the_k_likeliest_stay_and_what_is_tied_with_the_last_of_them():
    row = log_of([0.1, 0.4, 0.2, 0.2, 0.1])
    assert [kept(top_k_filter(row, k))[0] for k in range(1, 7)] == [
        [1], [1, 2, 3], [1, 2, 3], [0, 1, 2, 3, 4], [0, 1, 2, 3, 4], [0, 1, 2, 3, 4],
    ]  # fmt: skip
    assert torch.equal(top_k_filter(row, 2)[0, 1:4], row[0, 1:4])
    assert kept(top_k_filter(log_of([0.0, 1.0, 0.0]), 2)) == [[1]]  # the impossible stays impossible


def test_the_smallest_set_that_reaches_p_stays():
    row = log_of([0.125, 0.5, 0.0, 0.25, 0.125])
    for p, expected in [
        (1e-9, [1]), (0.5, [1]), (0.51, [1, 3]), (0.75, [1, 3]), (0.76, [0, 1, 3]), (0.875, [0, 1, 3]),
        (0.9, [0, 1, 3, 4]), (1, [0, 1, 3, 4]), (1.0, [0, 1, 3, 4]),
    ]:  # fmt: skip
        assert kept(top_p_filter(row, p)) == [expected], p
    assert torch.equal(top_p_filter(row, 0.75)[0, [1, 3]], row[0, [1, 3]])
    assert kept(top_p_filter(log_of([0.25] * 4), 0.5)) == [[0, 1]]  # of equals the first ones


@given(
    weights=st.lists(st.integers(0, 9), min_size=1, max_size=7).filter(any),
    tenths=st.integers(1, 99),
    batch=st.booleans(),
)
def test_the_set_by_its_definition(weights, tenths, batch):
    """In whole numbers: no shorter set reaches p, and the set itself does."""
    p, total = tenths / 100, sum(weights)
    log_probs = (torch.tensor(weights, dtype=torch.float64) / total).log()
    (found, *_) = kept(top_p_filter(log_probs.expand(2, 3, -1) if batch else log_probs, p))
    mass = sum(weights[i] for i in found)
    smallest = min(weights[i] for i in found)
    if all(abs(100 * part - tenths * total) > 1e-6 for part in (mass, mass - smallest)):  # not a matter of one rounding
        assert 100 * mass > tenths * total > 100 * (mass - smallest)
    assert found and smallest >= max([w for i, w in enumerate(weights) if i not in found], default=0)


def test_rounding_loses_nobody_at_p_1_and_leaves_somebody_near_0():
    chance = torch.Generator().manual_seed(0)
    for dtype in (torch.float32, torch.float64, torch.float16):
        rows = torch.log_softmax(20 * torch.randn(20, 500, generator=chance), dim=-1).to(dtype)
        assert torch.equal(top_p_filter(rows, 1.0), rows)
        assert top_p_filter(rows, 1e-12).isfinite().sum(-1).tolist() == [1] * 20
    even = torch.full((50_000,), -math.log(50_000))  # in float32 even the sum of these is a matter of rounding
    assert abs(int(top_p_filter(even, 0.5).isfinite().sum()) - 25_000) <= 1


def test_what_another_filter_left_is_the_whole():
    row = log_of([0.4, 0.2, 0.2, 0.1, 0.1])
    assert kept(top_p_filter(top_k_filter(row, 1), 0.9)) == [[0]]
    assert kept(top_p_filter(top_k_filter(row, 2), 0.45)) == [[0]]  # 0.5 of what is left, the tied one included


@settings(max_examples=25)
@given(st.integers(0, 2**31), st.integers(1, 12), st.integers(1, 99))
def test_filters_are_those_of_the_transformers_library(seed, k, percent):
    from transformers import TopKLogitsWarper, TopPLogitsWarper

    scores = torch.randn(4, 10, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    scores[0, :4], scores[1, 2] = scores[0, 4], -math.inf  # ties, and a token that cannot be
    log_probs = scores.log_softmax(dim=-1)
    before = log_probs.clone()
    ours = [top_k_filter(log_probs, k), top_p_filter(log_probs, percent / 100), top_p_filter(log_probs, 1.0)]
    theirs = [TopKLogitsWarper(k), TopPLogitsWarper(percent / 100), TopPLogitsWarper(1.0)]
    for mine, warper in zip(ours, theirs, strict=True):
        other = warper(None, log_probs)
        assert torch.equal(mine[1:], other[1:])
        assert torch.equal(mine[0].sort().values, other[0].sort().values)  # of equals: as many, but the last ones
    assert torch.equal(log_probs, before)
    assert torch.equal(top_p_filter(log_probs.view(2, 2, 10), percent / 100), ours[1].view(2, 2, 10))
    assert torch.equal(top_k_filter(log_probs.view(2, 2, 10), k), ours[0].view(2, 2, 10))


def test_they_differ_from_the_transformers_library_where_it_says():
    from transformers import TopPLogitsWarper

    even = log_of([0.25] * 4)
    assert kept(top_p_filter(even, 0.5)) == [[0, 1]] and kept(TopPLogitsWarper(0.5)(None, even)) == [[2, 3]]


def test_only_what_is_kept_is_drawn():
    row = [0.4, 0.3, 0.2, 0.1]
    table = Table([row] * 4)
    assert set(generate(table, [0], 300, 1.0, seeded(), keep=lambda log_probs: top_k_filter(log_probs, 2))) == {0, 1}
    assert set(generate(table, [0], 300, 1.0, seeded(), keep=lambda log_probs: top_p_filter(log_probs, 0.8))) == {
        0,
        1,
        2,
    }
    assert generate(table, [1], 3, 0, keep=lambda log_probs: top_k_filter(log_probs, 1)) == [1, 0, 0, 0]
    # Filtered first: a high temperature does not let the others in
    assert set(generate(table, [0], 300, 1e6, seeded(), keep=lambda log_probs: top_p_filter(log_probs, 0.6))) == {0, 1}
    drawn = generate(table, [0], 4000, 1.0, seeded(), keep=lambda log_probs: top_k_filter(log_probs, 2))[1:]
    assert drawn.count(0) / 4000 == pytest.approx(4 / 7, abs=0.03)
    with one_line_error("model: expected a distribution over the next token, got 0 for every token"):
        generate(table, [0], 1, keep=lambda log_probs: log_probs.new_full(log_probs.shape, -math.inf))
    with one_line_error("model: expected log probabilities, got NaN"):
        generate(table, [0], 1, keep=lambda log_probs: top_p_filter(top_k_filter(log_probs * math.nan, 2), 0.5))


def test_one_token_from_each_distribution():
    rows = log_of([0.0, 1.0, 0.0], [0.5, 0.0, 0.5])
    for temperature in (0, 1e-5, 1.0, 9.0):
        tokens = draw_token(rows, temperature, seeded())
        assert tokens.shape == (2, 1) and tokens[0, 0] == 1 and tokens[1, 0] in (0, 2)
        assert draw_token(rows[0], temperature).tolist() == [1]
    assert {int(draw_token(rows, 1.0, seeded(seed))[1]) for seed in range(9)} == {0, 2}
    assert draw_token(rows, 0).flatten().tolist() == [1, 0]


@pytest.mark.parametrize("k", [0, -1])
def test_a_k_that_keeps_nobody_is_refused(k):
    with one_line_error("k: expected at least 1", f"got {k}"):
        top_k_filter(log_of([0.5, 0.5]), k)


@pytest.mark.parametrize("p", [0, -0.1, 1.1, math.nan])
def test_a_p_that_is_no_share_is_refused(p):
    with one_line_error("p: expected above 0 and at most 1", f"got {p}"):
        top_p_filter(log_of([0.5, 0.5]), p)


# ---- many prompts at once


def models(vocab_size):
    torch.manual_seed(0)
    rotary = {"positions": None, "attention": RotaryAttention, "f": squared_relu}
    text = torch.randint(vocab_size, (300,)).tolist()
    yield NGramModel(3, vocab_size).fit(text)
    yield Counting(vocab_size)
    for cell in (RNNCell, LSTMCell, GRUCell):
        yield RecurrentLanguageModel(vocab_size, 4, 5, cell).double().eval()
    for more in ({}, {"positions": SinusoidalPositions}, {"positions": None}, rotary):
        yield shake(GPT(vocab_size, 14, 8, 2, 2, **more)).double().eval()
    yield Windowed(shake(GPT(vocab_size, 6, 8, 2, 2)).double().eval(), 5)


MODELS = list(models(7))


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
@settings(max_examples=8)
@given(
    prefixes=st.lists(st.lists(st.integers(0, 6), min_size=1, max_size=9), min_size=1, max_size=4),
    length=st.integers(0, 6), stop=st.sampled_from([None, *range(7)]),
)  # fmt: skip
def test_many_prompts_at_once_are_each_alone(model, prefixes, length, stop):
    before = [list(prefix) for prefix in prefixes]
    together = generate_all(model, prefixes, length, 0, stop=stop)
    assert together == [generate(model, prefix, length, 0, stop=stop) for prefix in prefixes]
    assert prefixes == before and all(type(token) is int for row in together for token in row)
    if not isinstance(model, NGramModel):  # whose counts are tied often, and then both stay
        keep = functools.partial(top_k_filter, k=1)
        assert generate_all(model, prefixes, length, 1.0, seeded(), stop, keep) == together


def test_no_token_is_read_twice_and_none_beyond_what_is_needed():
    model = Table(TABLE)
    assert generate_all(model, [[0, 1, 2], [0], (2, 0)], 3, 0) == [[0, 1, 2, 0, 1, 2], [0, 1, 2, 0], [2, 0, 1, 2, 0]]
    assert model.lengths == [1] * 5  # the longest prompt's three, then two of its three: the last one is not read
    model = Table(TABLE)
    assert generate_all(model, torch.tensor([[0, 1], [1, 2]]), 2, 0) == [[0, 1, 2, 0], [1, 2, 0, 1]]
    assert model.lengths == [2, 1]
    model = Table(TABLE)
    assert generate_all(model, [[0], [1, 2, 0]], 9, 0, stop=2) == [[0, 1, 2], [1, 2, 0, 1, 2]]  # in a prompt: no end
    assert model.lengths == [1] * 4
    assert generate_all(model, [[0], [1, 2]], 0) == [[0], [1, 2]] and model.lengths == [1] * 4


def test_a_row_that_is_not_asked_may_be_where_the_model_knows_nothing():
    """A prompt no text begins with, and a row that has ended: `generate` would not draw there either."""
    model = NGramModel(2, 5, smoothing="none").fit([0, 1, 2, 3])
    assert generate_all(model, [[0], [4, 4, 0]], 2, 0) == [[0, 1, 2], [4, 4, 0, 1, 2]]
    assert generate_all(model, [[2], [3, 0]], 1, 0) == [[2, 3], [3, 0, 1]]
    with one_line_error("got 0 for every token (a context never seen, without smoothing)"):
        generate_all(model, [[0], [4]], 2, 0)


def test_each_row_is_drawn_by_its_own_distribution():
    table = Table([[0.5, 0.5, 0.0], [0.0, 0.25, 0.75], [1.0, 0.0, 0.0]])
    rows = generate_all(table, [[0]] * 2000 + [[1]] * 2000 + [[1, 2]], 1, 1.0, seeded())
    assert sum(row[1] for row in rows[:2000]) / 2000 == pytest.approx(0.5, abs=0.04)
    assert sum(row[1] == 2 for row in rows[2000:4000]) / 2000 == pytest.approx(0.75, abs=0.04)
    assert rows[4000] == [1, 2, 0]
    assert rows == generate_all(table, [[0]] * 2000 + [[1]] * 2000 + [[1, 2]], 1, 1.0, seeded())
    assert rows != generate_all(table, [[0]] * 2000 + [[1]] * 2000 + [[1, 2]], 1, 1.0, seeded(1))


@pytest.mark.parametrize(
    ("prefixes", "words"),
    [
        ([], "prefixes: expected some, each of at least one token"),
        ([[0], []], "prefixes: expected some, each of at least one token"),
        ([[0], [1, 1, 3]], "prefixes: expected ids from 0 to 2, got 3"),
        ([[0], [0.5]], "prefixes: expected whole numbers"),
        (["ab"], "prefixes: expected whole numbers"),
        ([0, 1], "prefixes: expected shape (n,)"),
    ],
)
def test_prompts_that_are_none_are_refused(prefixes, words):
    with one_line_error(words):
        generate_all(uniform(3), prefixes, 1)


def test_prompts_with_a_negative_length_or_temperature_are_refused():
    with one_line_error("length: expected 0 or more tokens", "got -1"):
        generate_all(uniform(3), [[0]], -1)
    with one_line_error("temperature: expected a number from 0", "got -1"):
        generate_all(uniform(3), [[0]], 1, -1)
