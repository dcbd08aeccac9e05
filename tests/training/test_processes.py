"""Several processes train one model, and it becomes the one that a single process would have trained."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

from tests.one_line import one_line_error
from tests.training import two_processes
from transformer_lib.training import processes
from transformer_lib.training.processes import (
    average,
    average_gradients,
    own_share,
    process_count,
    process_rank,
    share_start,
    wait_for_all,
)
from transformer_lib.weights import read_weights

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def alone(monkeypatch):
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    monkeypatch.delenv("RANK", raising=False)


def test_one_process_is_the_rule(alone):
    assert process_count() == 1 and process_rank() == 0
    batch = torch.arange(7)
    assert own_share(batch) is batch
    value = torch.tensor(3.0)
    assert average(value) is value
    model = nn.Linear(2, 1)
    model.weight.grad = torch.ones(1, 2)
    wait_for_all()
    share_start(model)
    average_gradients(model)
    assert model.weight.grad.tolist() == [[1, 1]] and model.bias.grad is None
    assert not torch.distributed.is_initialized()


def test_the_number_of_processes_comes_from_torchrun(monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "3")
    monkeypatch.setenv("RANK", "2")
    assert process_count() == 3 and process_rank() == 2


@pytest.mark.parametrize("count", [2, 3, 6])
def test_the_shares_make_up_the_batch(monkeypatch, count):
    batch = torch.arange(12).reshape(6, 2)
    monkeypatch.setenv("WORLD_SIZE", str(count))
    rows = []
    for rank in range(count):
        monkeypatch.setenv("RANK", str(rank))
        share = own_share(batch)
        assert len(share) == 6 // count
        rows += share.tolist()
    assert sorted(rows) == batch.tolist()


def test_a_batch_that_cannot_be_shared_evenly_is_refused(monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "4")
    monkeypatch.setenv("RANK", "0")
    with one_line_error("batch: expected a size that 4 processes can share evenly, got 6"):
        own_share(torch.zeros(6, 2))


@pytest.mark.parametrize("count", [2, 3])
def test_pairs_are_shared_row_by_row_also_where_one_is_left_over(monkeypatch, count):
    source, target = torch.arange(14).reshape(7, 2), torch.arange(21).reshape(7, 3)
    monkeypatch.setenv("WORLD_SIZE", str(count))
    rows = []
    for rank in range(count):
        monkeypatch.setenv("RANK", str(rank))
        a, b = own_share((source, target))
        assert len(a) == len(b) in (7 // count, 7 // count + 1)
        assert torch.equal(a[:, 0] // 2, b[:, 0] // 3)  # a source and its own target
        rows += b.tolist()
    assert sorted(rows) == target.tolist()
    monkeypatch.setenv("WORLD_SIZE", "8")
    with one_line_error("batch: expected at least one row for each of 8 processes, got 7"):
        own_share((source, target))


def test_a_gradient_that_only_some_processes_have_is_averaged_with_zeros(monkeypatch):
    """Of two processes, the other has gradients for b and c; nobody has one for d."""
    model = nn.ParameterDict({name: nn.Parameter(torch.zeros(2)) for name in "abcd"})
    model["a"].grad, model["b"].grad = torch.tensor([2.0, 4.0]), torch.tensor([6.0, 6.0])
    others = iter(
        [torch.tensor([0.0, 1.0, 1.0, 0.0]), torch.zeros(2), torch.tensor([2.0, 0.0]), torch.tensor([8.0, 2.0])]
    )
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setattr(processes, "average", lambda value: (value + next(others)) / 2)
    average_gradients(model)
    assert [model[name].grad.tolist() for name in "abc"] == [[1, 2], [4, 3], [4, 1]]
    assert model["d"].grad is None


def free_port():
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return server.getsockname()[1]


def run(kind, folder, *steps):
    done = subprocess.run(
        [
            *[sys.executable, "-m", "torch.distributed.run", "--nproc_per_node", "2"],
            *["--master_addr", "127.0.0.1", "--master_port", str(free_port())],
            *[two_processes.__file__, kind, str(folder), *map(str, steps)],
        ],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT), "TRANSFORMER_LIB_PROGRESS": "0"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return [read_weights(folder / f"rank{rank}.safetensors") for rank in range(2)]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="torchrun on Windows lacks the store that it starts with")
@pytest.mark.parametrize("kind", two_processes.TRAININGS)
def test_two_processes_train_the_model_that_one_would_have_trained(tmp_path, alone, kind):
    """Also after going on from a checkpoint, and from different seeds: the first process's weights count.

    Pairs are of all lengths, and their number is odd in an epoch's last batch: each target token counts alike, wherever
    it is read.
    """
    (first, history), (second, history_too) = run(kind, tmp_path, 7, 12)
    model, expected = two_processes.TRAININGS[kind](None)
    for name, tensor in model.state_dict().items():
        assert torch.equal(first[name], second[name]), name
        assert (first[name] - tensor).abs().max() < 1e-10, name
    for key in ("loss", "gradient_norm"):
        assert history[key] == pytest.approx(getattr(expected, key), abs=1e-10)
        assert history_too[key] == history[key]
    steps, values = zip(*history["evaluations"])
    assert steps == (5, 7, 10, 12)  # 7: the end of the first run
    assert [values[i] for i in (0, 2, 3)] == pytest.approx([value for _, value in expected.evaluations], abs=1e-10)
    if kind == "text":
        assert model.frozen.tolist() == model.unused.tolist() == [1, 1, 1]
