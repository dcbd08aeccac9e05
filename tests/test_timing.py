"""CPU-seconds: of the work alone, the least of the rounds, on one thread and back.

Chapters 03 and 05.
"""

import time

import pytest
import torch

from tests.one_line import one_line_error
from transformer_lib.timing import cpu_seconds


def busy(seconds):
    begin = time.process_time()
    while time.process_time() - begin < seconds:
        pass


def test_the_least_of_the_rounds_counts():
    lengths = [0.06, 0.02, 0.04]
    assert 0.02 <= cpu_seconds(lambda: busy(lengths.pop(0)), rounds=3) < 0.04
    assert lengths == []
    calls = []
    cpu_seconds(lambda: calls.append(0))
    assert len(calls) == 1


def test_sleep_costs_nothing():
    assert cpu_seconds(lambda: time.sleep(0.1)) < 0.05


def test_it_runs_on_one_thread_and_leaves_the_number_as_it_was():
    before, seen = torch.get_num_threads(), []
    torch.set_num_threads(2)
    try:
        cpu_seconds(lambda: seen.append(torch.get_num_threads()), rounds=2)
        with pytest.raises(ZeroDivisionError):
            cpu_seconds(lambda: 1 / 0)
        assert seen == [1, 1] and torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_no_rounds():
    with one_line_error("rounds: expected at least 1, got 0"):
        cpu_seconds(lambda: None, rounds=0)
