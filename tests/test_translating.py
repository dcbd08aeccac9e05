"""Greedy and beam search against looking at every possible sentence, and BLEU against counting by hand.

Chapters 04, 05 and 10.
"""

import itertools
import math

import pytest
import torch

from tests.one_line import one_line_error
from transformer_lib.decoding import Hypothesis, beam_search, greedy
from transformer_lib.evaluation import bleu
from transformer_lib.models import AttentionDecoder, Decoder, Seq2Seq

END = 2


def model_of(decoder=AttentionDecoder, vocab_size=5, seed=0):
    torch.manual_seed(seed)
    model = Seq2Seq(vocab_size, 4, 6, decoder).double().eval()
    with torch.no_grad():  # a starting model hesitates between all tokens alike: make it choose
        model.output.weight *= 8
    return model


def every_hypothesis(model, source, length):
    """All sentences of up to so many tokens that end, and all of that length that do not."""
    others = [i for i in range(model.vocab_size) if i != END]
    for n in range(1, length + 1):
        for ids in itertools.product(others, repeat=n - 1):
            for last in [END] if n < length else range(model.vocab_size):
                yield [*ids, last]


@torch.no_grad()
def log_prob(model, source, ids):
    log_probs = model.log_probs(source[None], torch.tensor([[model.start_id, *ids[:-1]]]))[0]
    return float(log_probs.gather(-1, torch.tensor(ids)[:, None]).sum())


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("alpha", [0.0, 0.7, 1.0])
def test_a_beam_as_wide_as_the_search_finds_the_best_finished_sentence(seed, alpha):
    model, source = model_of(vocab_size=4, seed=seed), torch.tensor([3, 1, 3])
    scores = {
        tuple(ids): log_prob(model, source, ids) / len(ids) ** alpha
        for ids in every_hypothesis(model, source, 4)
        if ids[-1] == END
    }
    best = max(scores, key=scores.get)
    found = beam_search(model, source, beam=300, length=4, alpha=alpha)
    ended = [h for h in found if h.ids[-1] == END]
    assert tuple(ended[0].ids) == best
    assert ended[0].score(alpha) == pytest.approx(scores[best], rel=1e-9)


@pytest.mark.parametrize("decoder", [Decoder, AttentionDecoder])
@pytest.mark.parametrize("seed", range(6))
def test_beam_1_is_greedy_and_greedy_does_not_depend_on_the_batch(decoder, seed):
    model = model_of(decoder, vocab_size=9, seed=seed)
    sources = [torch.tensor(ids) for ids in ([3, 4, 5], [6, 7], [8])]
    batch = torch.tensor([[3, 4, 5], [6, 7, 0], [8, 0, 0]])
    together = greedy(model, batch, 8)
    for row, source in zip(together, sources):
        assert greedy(model, source[None], 8) == [row]
        (one,) = beam_search(model, source, beam=1, length=8)
        assert (one.ids[:-1] if one.ids[-1] == END else one.ids) == row
        assert one.log_prob == pytest.approx(log_prob(model, source, one.ids), rel=1e-9)


def test_greedy_takes_the_most_likely_token_each_time_and_stops_at_the_end():
    for seed in range(6):
        model = model_of(vocab_size=6, seed=seed)
        source, ids = torch.tensor([[3, 4]]), [1]
        for _ in range(7):
            ids.append(int(model.log_probs(source, torch.tensor([ids]))[0, -1].argmax()))
            if ids[-1] == END:
                break
        expected = ids[1:-1] if ids[-1] == END else ids[1:]
        assert greedy(model, source, 7) == [expected]


def test_hypotheses_come_best_first_and_no_more_than_asked_for():
    found = beam_search(model_of(vocab_size=7), torch.tensor([3, 4, 5]), beam=4, length=6)
    scores = [h.score(1.0) for h in found]
    assert len(found) <= 4 and scores == sorted(scores, reverse=True)
    assert len({tuple(h.ids) for h in found}) == len(found)


def test_length_normalisation_by_hand():
    hypothesis = Hypothesis([3, 4, 5, 2], -2.0)
    assert hypothesis.score(1.0) == -0.5 and hypothesis.score(0.0) == -2.0 and hypothesis.score(0.5) == -1.0


def test_bad_input_is_refused():
    model, source = model_of(), torch.tensor([3])
    for options, message in (
        ({"beam": 0, "length": 3}, "beam: expected at least 1, got 0"),
        ({"beam": 1, "length": 0}, "length: expected at least 1 token, got 0"),
        ({"beam": 1, "length": 3, "alpha": -1}, "alpha: expected 0"),
    ):
        with one_line_error(message):
            beam_search(model, source, **options)
    with one_line_error("length: expected at least 1 token, got 0"):
        greedy(model, source[None], 0)


def test_bleu_by_hand():
    # 7 tokens each; 6, 4, 3 and 2 of the 1- to 4-grams agree
    result = bleu(["the cat sat on the mat today"], ["the cat sat on the mat yesterday"])
    assert result["bleu"] == pytest.approx(100 * (6 / 7 * 5 / 6 * 4 / 5 * 3 / 4) ** 0.25, rel=1e-9)
    assert bleu(["a b c d"], ["a b c d"])["bleu"] == pytest.approx(100)
    short = bleu(["a b c d"], ["a b c d e f"])["bleu"]
    assert short == pytest.approx(100 * math.exp(1 - 6 / 4), rel=1e-9)


def test_bleu_says_how_it_was_computed_and_how_sure_it_is():
    pairs = [("a b c d e", "a b c d f"), ("g h i j", "g h i j"), ("k l m n", "o p q r")] * 20
    result = bleu(*zip(*pairs), samples=200)
    assert "tok:13a" in result["bleu_signature"] and "nc:6" in result["chrf_signature"]
    for name in ("bleu", "chrf"):
        low, high = result[f"{name}_interval"]
        assert low < result[name] < high
    assert result == bleu(*zip(*pairs), samples=200)
    assert "bleu_interval" not in bleu(["a"], ["a"])


def test_bleu_wants_a_reference_for_each():
    with one_line_error("hypotheses: expected one for each reference, got 1 for 2"):
        bleu(["a"], ["a", "b"])
    with one_line_error("hypotheses: expected one for each reference, got 0 for 0"):
        bleu([], [])
