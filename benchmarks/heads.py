"""Many heads: our fast path against PyTorch's module, and what weights cost in memory when they are written down."""

import multiprocessing
import re
import sys
from pathlib import Path

import torch
from torch import nn

from benchmarks.measure import Row, ratio
from tests.parts.pytorchs import copy_attention
from transformer_lib.parts.attention import MultiHeadAttention, record_attention


def against_pytorch(batch: int = 12, n: int = 64, d_model: int = 128, heads: int = 4, rounds: int = 15) -> list[Row]:
    """Self-attention forward and backward, weights not asked for; the same weights, so the same output: asserted."""
    torch.manual_seed(0)
    ours = MultiHeadAttention(d_model, heads)
    theirs = nn.MultiheadAttention(d_model, heads, batch_first=True)
    copy_attention(ours, theirs)
    X = torch.randn(batch, n, d_model, requires_grad=True)
    assert torch.allclose(ours(X), theirs(X, X, X, need_weights=False)[0], atol=1e-5)

    def step_ours() -> None:
        for _ in range(20):
            ours.zero_grad()
            ours(X).sum().backward()

    def step_theirs() -> None:
        for _ in range(20):
            theirs.zero_grad()
            theirs(X, X, X, need_weights=False)[0].sum().backward()

    times, seconds, seconds_theirs = ratio(step_ours, step_theirs, rounds)
    details = (
        f"batch {batch}, n {n}, d_model {d_model}, h {heads}; {50 * seconds:.3g} ms and {50 * seconds_theirs:.3g} ms"
    )
    return [Row("MultiHeadAttention / nn.MultiheadAttention", times, 1, False, "times", details)]


def _growth(weights: bool, n: int, queue: multiprocessing.Queue) -> None:
    """How many bytes a process of its own needed at most beyond what it had before one forward and backward pass.

    An upper bound: the process's largest size so far may date from its start.
    """
    import psutil

    torch.set_num_threads(1)
    attention = MultiHeadAttention(64, 4)
    X = torch.randn(1, n, 64, requires_grad=True)
    attention(X[:, :8]).sum().backward()
    before = psutil.Process().memory_info().rss
    if weights:
        with record_attention(attention):
            attention(X).sum().backward()
    else:
        attention(X).sum().backward()
    queue.put(_largest() - before)


def _largest() -> int:
    """The most bytes that this process has had so far.

    Linux says it in /proc; getrusage there also counts the process from which this one was started.
    """
    status = Path("/proc/self/status")
    if status.exists():
        return 1024 * int(re.search(r"VmHWM:\s+(\d+)", status.read_text(encoding="utf-8"))[1])
    import resource  # not on Windows

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def memory(n: int = 4096) -> list[Row]:
    """The fused path never writes down the n x n weights; asking for them does."""
    grown = []
    for weights in (False, True):
        context = multiprocessing.get_context("spawn")
        queue = context.Queue()
        process = context.Process(target=_growth, args=(weights, n, queue))
        process.start()
        grown.append(queue.get(timeout=300))
        process.join()
    fused, explicit = grown
    details = f"n {n}, d_model 64, h 4, forward and backward; {fused / 2**20:.3g} MiB and {explicit / 2**20:.3g} MiB"
    return [Row("Memory of the fused path / of explicit weights", fused / explicit, 0.1, False, "times", details)]
