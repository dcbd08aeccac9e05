"""The reversal task: what it draws, by what, and what it refuses."""

import numpy as np
import pytest

from recipes.reversal_task import ReversalTask


def test_target_is_the_source_backwards_between_start_and_end():
    task = ReversalTask()
    for source, target in task.pairs((1, 9), 200, seed=1):
        assert target == [1, *source[::-1], 2]
        assert task.decode(target) == task.decode(source)[::-1]
        assert task.encode(task.decode(source)) == source


def test_every_length_and_every_letter_is_drawn_about_evenly():
    task = ReversalTask("abcd")
    sources = [source for source, _ in task.pairs((2, 5), 4000, seed=2)]
    lengths = np.bincount([len(source) for source in sources], minlength=7)
    assert lengths[:2].sum() == 0 and lengths[6:].sum() == 0
    assert lengths[2:6].min() > 900 and lengths[2:6].max() < 1100
    letters = np.bincount([i for source in sources for i in source], minlength=7)
    assert letters[:3].sum() == 0 and len(letters) == 7 and np.ptp(letters[3:7]) < 0.1 * letters[3:7].mean()
    assert task.vocab_size == 7


def test_one_length_for_all():
    assert {len(source) for source, _ in ReversalTask().pairs(6, 50, seed=0)} == {6}


def test_the_seed_alone_decides():
    task = ReversalTask()
    assert task.pairs(8, 5, seed=(3, 1)) == task.pairs(8, 5, seed=(3, 1))
    assert task.pairs(8, 5, seed=(3, 1)) != task.pairs(8, 5, seed=(3, 2))


@pytest.mark.parametrize(
    "wrong", [lambda t: t.pairs(0, 1, 0), lambda t: t.pairs((5, 4), 1, 0), lambda t: t.pairs(3, 0, 0)]
)
def test_impossible_lengths_and_counts(wrong):
    with pytest.raises(ValueError, match="expected length from 1, the shorter first, and count from 1"):
        wrong(ReversalTask())


def test_letters_that_the_task_does_not_know():
    with pytest.raises(ValueError, match="expected letters of 'abc', got 'abd'"):
        ReversalTask("abc").encode("abd")
    with pytest.raises(ValueError, match="expected each once"):
        ReversalTask("aba")
    with pytest.raises(ValueError, match="expected each once"):
        ReversalTask("")
