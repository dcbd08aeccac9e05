"""How long something takes, in CPU-seconds, so that two ways of doing it can be compared.

Wherever two ways of doing it are compared, from chapter 03 on; and the benchmarks.
"""

import time
from collections.abc import Callable
from timeit import repeat

import torch

from .checks import require


def cpu_seconds(work: Callable[[], object], rounds: int = 1) -> float:
    """CPU-seconds of one call of `work` on one thread, the least of so many rounds.

    It hardly grows when others are at work on the same computer. One thread, whatever is set: with several, those that
    wait for one another count as busy, and CPU-seconds say little.
    """
    require(rounds >= 1, f"rounds: expected at least 1, got {rounds}")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return min(repeat(work, number=1, repeat=rounds, timer=time.process_time))
    finally:
        torch.set_num_threads(threads)
