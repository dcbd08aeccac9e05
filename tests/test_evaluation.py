"""Probability of a sentence, perplexity and bits per token, against models whose numbers are known by hand.

Chapter 01.
"""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.models_by_hand import Counting, Table, uniform
from tests.one_line import one_line_error
from transformer_lib.evaluation import bits_per_token, mean_log_prob, perplexity, sentence_log_prob
from transformer_lib.models import NGramModel, RecurrentLanguageModel
from transformer_lib.parts.recurrent import GRUCell

TABLE = [[0.5, 0.25, 0.25], [0.125, 0.75, 0.125], [1.0, 0.0, 0.0]]


def recurrent(vocab_size=5):
    torch.manual_seed(0)
    return RecurrentLanguageModel(vocab_size, 3, 4, GRUCell, layers=2).double().eval()


@given(st.integers(1, 50), st.lists(st.integers(0, 10**6), min_size=2, max_size=40))
def test_a_uniform_model_hesitates_among_all_tokens(vocab_size, numbers):
    ids = [number % vocab_size for number in numbers]
    assert perplexity(uniform(vocab_size), ids) == pytest.approx(vocab_size, rel=1e-12)
    assert bits_per_token(uniform(vocab_size), ids) == pytest.approx(math.log2(vocab_size), rel=1e-12, abs=1e-12)


def test_sentence_probability_is_the_product_by_hand():
    """P(1, 2, 0 | 0) = 0.25 * 0.125 * 1."""
    log_prob = sentence_log_prob(Table(TABLE), [0, 1, 2, 0])
    assert log_prob.shape == () and float(log_prob) == pytest.approx(math.log(0.25 * 0.125), abs=1e-12)
    assert float(sentence_log_prob(Table(TABLE), torch.tensor([1, 1]))) == math.log(0.75)
    batch = sentence_log_prob(Table(TABLE), [[0, 1, 2], [1, 1, 1], [0, 2, 1]])
    assert batch.exp().tolist() == pytest.approx([0.25 * 0.125, 0.75 * 0.75, 0.0], abs=1e-15)


@pytest.mark.parametrize("model", [recurrent(), NGramModel(3, 5).fit([0, 1, 2, 3, 4, 2, 1, 2, 3])])
def test_sentence_probability_is_the_chain_rule(model):
    ids = [0, 3, 2, 1, 2, 4, 4]
    by_hand = 1.0
    for t in range(1, len(ids)):
        by_hand *= float(model.next_token_log_probs(torch.tensor(ids[:t])).detach().exp()[ids[t]])
    assert float(sentence_log_prob(model, ids).exp()) == pytest.approx(by_hand, rel=1e-12)


def test_perplexity_and_bits_by_hand():
    """Probabilities 1/4, 1/8, 1 and 1/2: the geometric mean is 2^(-6/4)."""
    model, ids = Table(TABLE), [0, 1, 2, 0, 0]
    assert mean_log_prob(model, ids) == pytest.approx(-6 / 4 * math.log(2), rel=1e-12)
    assert perplexity(model, ids) == pytest.approx(2**1.5, rel=1e-12)
    assert bits_per_token(model, ids) == pytest.approx(1.5, rel=1e-12)


@given(st.integers(1, 30), st.integers(2, 25))
def test_the_result_does_not_depend_on_the_chunk(chunk, length):
    ids = [(7 * i * i) % 5 for i in range(length)]
    for model in (Counting(5), NGramModel(3, 5).fit(ids), recurrent()):
        assert perplexity(model, ids, chunk) == pytest.approx(perplexity(model, ids, 10**6), rel=1e-12)
        assert bits_per_token(model, ids, chunk) == pytest.approx(bits_per_token(model, ids), rel=1e-12)


@pytest.mark.parametrize(
    ("chunk", "length", "pieces"),
    [(3, 8, [3, 3, 1]), (3, 7, [3, 3]), (7, 8, [7]), (1, 4, [1, 1, 1]), (4096, 9, [8]), (2, 2, [1])],
)
def test_a_text_is_read_once_in_pieces_of_the_chunk(chunk, length, pieces):
    for measure in (mean_log_prob, perplexity, bits_per_token):
        model = uniform(3)
        measure(model, [0] * length, chunk)
        assert model.lengths == pieces


def test_the_chunk_is_4096_tokens_unless_said_otherwise():
    for measure in (mean_log_prob, perplexity, bits_per_token):
        model = uniform(2)
        measure(model, [0] * 5000)
        assert model.lengths == [4096, 903]


@given(st.lists(st.lists(st.integers(0, 4), min_size=2, max_size=6), min_size=1, max_size=12), st.integers(1, 20))
def test_several_texts_are_read_one_by_one_and_weighed_by_their_tokens(texts, chunk):
    for model in (Counting(5), NGramModel(2, 5).fit(texts)):
        total = sum(float(sentence_log_prob(model, text)) for text in texts)
        tokens = sum(len(text) - 1 for text in texts)
        assert mean_log_prob(model, texts, chunk) == pytest.approx(total / tokens, rel=1e-12)
        assert perplexity(model, texts, chunk) == pytest.approx(math.exp(-total / tokens), rel=1e-12)
        assert bits_per_token(model, texts, chunk) == pytest.approx(-total / tokens / math.log(2), rel=1e-12)


def test_texts_of_one_length_go_through_together():
    sizes = []

    class Watched(Table):
        def step(self, ids, state=None):
            sizes.append(tuple(ids.shape))
            return super().step(ids, state)

    model = Watched(TABLE)
    mean_log_prob(model, [[0, 0, 0]] * 7 + [[0, 0]] * 3, chunk=9)
    assert sizes == [(3, 2), (3, 2), (1, 2), (3, 1)]
    sizes.clear()
    mean_log_prob(model, [[0, 0, 0]] * 3, chunk=1)
    assert sizes == [(1, 2)] * 3


def test_rows_of_a_tensor_and_lists_of_tensors_are_texts():
    model, rows = Counting(5), [[0, 1, 2], [3, 4, 0]]
    expected = mean_log_prob(model, rows)
    assert mean_log_prob(model, torch.tensor(rows)) == expected
    assert mean_log_prob(model, [torch.tensor(row) for row in rows]) == expected
    assert mean_log_prob(model, [tuple(row) for row in rows]) == expected
    assert mean_log_prob(model, torch.tensor(rows[0])) == mean_log_prob(model, rows[0])


def test_a_token_of_probability_0_makes_perplexity_infinite():
    model = NGramModel(2, 4, smoothing="none").fit([0, 1, 2, 0, 1])
    for ids in ([0, 1, 3], [0, 3, 0], [[0, 1], [0, 3]]):
        assert perplexity(model, ids) == math.inf
        assert bits_per_token(model, ids) == math.inf
        assert mean_log_prob(model, ids) == -math.inf
    assert perplexity(model, [0, 1, 2, 0]) == pytest.approx(1.0)


def test_a_perplexity_beyond_every_float_is_infinite_too():
    tiny = Table([[1.0, 5e-324], [1.0, 5e-324]])

    class Worse(Table):
        def step(self, ids, state=None):
            log_probs, state = super().step(ids, state)
            return 2 * log_probs, state

    assert perplexity(tiny, [0, 1, 1]) == math.inf
    assert perplexity(Worse(tiny.table), [0, 1, 1]) == math.inf
    assert bits_per_token(Worse(tiny.table), [0, 1, 1]) == pytest.approx(2 * 1074)


def test_a_model_that_went_wrong_does_not_look_bad_but_wrong():
    assert math.isnan(perplexity(Table([[math.nan] * 2] * 2), [0, 1, 1]))


def test_no_gradients_are_kept():
    model = recurrent()
    assert not sentence_log_prob(model, [0, 1, 2]).requires_grad
    assert isinstance(perplexity(model, [0, 1, 2]), float)


# ---- bad input


@pytest.mark.parametrize("ids", [[], [0], [[0], [1]], torch.zeros(0, dtype=torch.long)])
def test_a_text_without_a_token_to_predict_is_refused(ids):
    with one_line_error("ids: expected a first token and at least one after it"):
        sentence_log_prob(uniform(3), ids)


@pytest.mark.parametrize("ids", [[], [0], [[0, 1], [2]], [[0, 1], []], [[]], torch.zeros(3, 0, dtype=torch.long)])
def test_perplexity_of_nothing_is_refused(ids):
    with one_line_error("ids: expected", "at least 2 tokens"):
        perplexity(uniform(3), ids)


def test_the_message_says_how_many_there_were():
    with one_line_error("ids: expected at least 2 tokens in each text, got 1"):
        perplexity(uniform(3), [[0, 1], [2]])
    with one_line_error("ids: expected a text of at least 2 tokens, got shape (1,)"):
        perplexity(uniform(3), [0])
    with one_line_error("got 1 in all"):
        sentence_log_prob(uniform(3), [0])


@pytest.mark.parametrize("chunk", [0, -1])
def test_a_chunk_below_one_is_refused(chunk):
    with one_line_error("chunk: expected at least 1 token at a time", f"got {chunk}"):
        perplexity(uniform(3), [0, 1], chunk)


@pytest.mark.parametrize("ids", [[0, 3], [-1, 0], [[0, 3], [0, 0]]])
def test_ids_outside_the_vocabulary_are_refused(ids):
    for measure in (sentence_log_prob, perplexity, bits_per_token):
        with one_line_error("ids: expected ids from 0 to 2"):
            measure(uniform(3), ids)


@pytest.mark.parametrize("ids", [[0.0, 1.0], "ab", [["a", "b"]]])
def test_what_are_no_ids_is_refused(ids):
    with one_line_error("expected"):
        perplexity(uniform(3), ids)
    with one_line_error("expected"):
        sentence_log_prob(uniform(3), ids)
