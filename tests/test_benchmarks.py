"""The benchmarks run, compare like with like, and write their table; how fast things are is theirs to say."""

import math
import sys

import pytest
import torch

from benchmarks import cells, heads, measure, ngrams, translating
from benchmarks.measure import BEGIN, END, Row, ratio, table, write
from transformer_lib.models import Seq2Seq
from transformer_lib.models.seq2seq import AttentionDecoder, Decoder
from transformer_lib.training import translation_loss


def row(measured, limit, at_least):
    return Row("what", measured, limit, at_least, "times", "details")


@pytest.mark.parametrize(
    ("measured", "at_least", "kept"), [(20, True, True), (19.9, True, False), (20, False, True), (20.1, False, False)]
)
def test_a_limit_is_kept_or_not(measured, at_least, kept):
    assert row(measured, 20, at_least).kept is kept
    limit, verdict = "at least 20" if at_least else "at most 20", "yes" if kept else "**no**"
    assert str(row(measured, 20, at_least)) == f"| what | {measured:.3g} times | {limit} | {verdict} | details |"


def test_the_table_goes_between_its_marks(tmp_path):
    path = tmp_path / "README.md"
    path.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n", encoding="utf-8")
    write([row(1, 2, True)], path)
    write([row(3, 2, True)], path)
    assert path.read_text(encoding="utf-8") == f"before\n{BEGIN}\n{table([row(3, 2, True)])}\n{END}\nafter\n"
    assert measure.README.read_text(encoding="utf-8").count(BEGIN) == 1


def test_a_ratio_is_that_of_the_times(monkeypatch):
    spent = {"a": 6.0, "b": 2.0}
    monkeypatch.setattr(measure, "cpu_seconds", lambda work: spent[work()])
    assert ratio(lambda: "a", lambda: "b", rounds=3) == (3.0, 6.0, 2.0)


def test_both_n_gram_models_are_the_same_one():
    for result in ngrams.against_nltk(train_size=3000, test_size=60):  # asserts that the bits agree
        assert result.measured > 1 and result.at_least and result.limit == 20
    (result,) = ngrams.order_6(train_size=2000, test_size=100)
    assert 0 < result.measured and not result.at_least and result.limit == 10


def test_both_kinds_of_cell_are_timed():
    results = cells.against_pytorch(batch=2, n=3, d_x=2, widths=(3,), rounds=1)
    assert [result.what.split()[0] for result in results] == ["RNNCell", "LSTMCell", "GRUCell"]
    assert all(result.limit == 2.5 and not result.at_least and math.isfinite(result.measured) for result in results)


def test_translation_is_timed_against_the_same_model():
    results = translating.against_pytorch(vocab_size=300, d_x=4, d_h=6, count=50, batch=4, rounds=1)  # asserts the loss
    assert [result.what.split()[1] for result in results] == ["Decoder", "AttentionDecoder"]
    assert all(result.limit == 1.3 and not result.at_least for result in results)
    (greedy,) = translating.batched_greedy(count=101, d_h=6, vocab_size=300, rounds=1)  # asserts the same words
    assert greedy.limit == 5 and greedy.at_least and greedy.measured > 1
    (pairs,) = translating.byte_pairs(characters=5000, vocab_size=400, rounds=1)  # asserts the size
    assert pairs.limit == 10 and not pairs.at_least


def test_the_model_on_pytorch_has_the_same_gradients():
    torch.manual_seed(1)
    for decoder in (Decoder, AttentionDecoder):
        ours = Seq2Seq(11, 3, 4, decoder).double()
        theirs = translating.OnTorch(ours.float()).double()
        ours.double()
        batch = (torch.tensor([[3, 4, 5], [6, 0, 0]]), torch.tensor([[1, 7, 8, 2], [1, 9, 2, 0]]))
        for model in (ours, theirs):
            translation_loss(model, batch).backward()
        assert torch.allclose(ours.embedding.weight.grad, theirs.embedding.weight.grad, atol=1e-12)
        assert ours.embedding.weight.grad.abs().max() > 0


def test_heads_are_timed_and_their_memory_weighed():
    (speed,) = heads.against_pytorch(batch=2, n=4, d_model=8, heads=2, rounds=1)  # asserts the same output
    assert speed.limit == 1 and not speed.at_least and math.isfinite(speed.measured)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no resource module")
def test_the_fused_path_writes_no_weights_down():
    """Also when measured from a large process: what that one needs is not the measured one's."""
    large = torch.ones(3 * 10**8 // 4)
    (row,) = heads.memory(n=2048)
    assert len(large) > 0
    assert row.limit == 0.1 and row.measured < 0.5
