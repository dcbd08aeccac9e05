"""The benchmarks run, compare like with like, and write their table; how fast things are is theirs to say."""

import math

import pytest

from benchmarks import cells, measure, ngrams
from benchmarks.measure import BEGIN, END, Row, ratio, table, write


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
