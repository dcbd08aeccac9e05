"""The training loop: what a step does, what a batch is, and going on after a kill as if nothing had been.

Chapter 02 shows it.
"""

import math
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from tqdm.auto import tqdm

from tests.one_line import one_line_error
from transformer_lib.models import RecurrentLanguageModel
from transformer_lib.parts.recurrent import GRUCell
from transformer_lib.training import History, fit, load_checkpoint, next_token_loss, windows

IDS = torch.tensor([0, 1, 2, 3, 4, 3, 2, 1] * 30)


@pytest.fixture(autouse=True)
def _the_progress_bars_lock_is_this_processs_own():
    """tqdm's own is shared with all processes forked from this one: one that is killed would hold it for ever."""
    tqdm.set_lock(threading.RLock())


def small_model(seed=0, dropout=0.0):
    torch.manual_seed(seed)
    return RecurrentLanguageModel(5, 4, 6, GRUCell, layers=2, dropout=dropout).double()


def adam(model, lr=0.01):
    return torch.optim.Adam(model.parameters(), lr=lr)


def weights_of(model):
    return {name: tensor.clone() for name, tensor in model.state_dict().items()}


def same(one, other):
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


class Line(nn.Module):
    """y = w . x; small enough to train by hand."""

    def __init__(self, start=(1.0, 2.0)):
        super().__init__()
        self.w = nn.Parameter(torch.tensor(start, dtype=torch.float64))


def pull(model, batch):
    """A loss whose gradient is the batch itself, scaled: d/dw of w . mean(batch)."""
    return model.w @ batch.mean(0)


def constant(*gradient):
    return lambda step: torch.tensor([gradient], dtype=torch.float64)


# ---- what a step does


def test_the_loss_falls():
    model = small_model()
    history = fit(model, windows(IDS, 8, 4), 80, adam(model, 0.03), clip=1.0)
    assert sum(history.loss[:5]) / 5 == pytest.approx(math.log(5), abs=0.1)
    assert sum(history.loss[-5:]) / 5 < 0.75
    assert len(history.loss) == len(history.gradient_norm) == 80 and history.cpu_seconds > 0


def test_the_loss_is_the_mean_cross_entropy_of_the_next_tokens():
    model = small_model()
    batch = torch.stack([IDS[:9], IDS[3:12]])
    by_hand = [-float(model.log_probs(row[:-1]).detach()[t, row[t + 1]]) for row in batch for t in range(len(row) - 1)]
    assert float(next_token_loss(model, batch).detach()) == pytest.approx(sum(by_hand) / 16, abs=1e-12)
    history = fit(model, lambda step: batch, 1, adam(model))
    assert history.loss == pytest.approx([sum(by_hand) / 16], abs=1e-12)


def test_a_step_goes_down_the_gradient():
    model = Line()
    history = fit(model, constant(3.0, 4.0), 2, torch.optim.SGD(model.parameters(), lr=0.1), loss=pull)
    assert model.w.tolist() == pytest.approx([1 - 0.6, 2 - 0.8])
    assert history.loss == pytest.approx([3 + 8, 3 * 0.7 + 4 * 1.6])
    assert history.gradient_norm == pytest.approx([5, 5])


@pytest.mark.parametrize(
    ("clip", "factor"), [(None, 1.0), (10.0, 1.0), (5.1, 1.0), (2.5, 0.5), (1.0, 0.2), (0.05, 0.01)]
)
def test_a_gradient_above_the_clip_is_scaled_down_to_it(clip, factor):
    model = Line()
    history = fit(model, constant(3.0, 4.0), 1, torch.optim.SGD(model.parameters(), lr=1.0), loss=pull, clip=clip)
    assert model.w.tolist() == pytest.approx([1 - 3 * factor, 2 - 4 * factor], abs=1e-5)
    assert history.gradient_norm == pytest.approx([5.0])  # before clipping


def test_the_norm_is_over_all_weights_together():
    model = nn.ModuleDict({"a": Line((0.0, 0.0)), "b": Line((0.0, 0.0))})
    history = fit(
        model,
        constant(3.0, 4.0),
        1,
        torch.optim.SGD(model.parameters(), lr=1.0),
        loss=lambda m, batch: pull(m["a"], batch) + pull(m["b"], batch),
        clip=1.0,
    )
    assert history.gradient_norm == pytest.approx([50**0.5])
    assert model["a"].w.tolist() == pytest.approx([-3 / 50**0.5, -4 / 50**0.5])


def test_gradients_do_not_pile_up_from_step_to_step():
    model = Line()
    fit(model, constant(1.0, 0.0), 3, torch.optim.SGD(model.parameters(), lr=1.0), loss=pull)
    assert model.w.tolist() == pytest.approx([1 - 3, 2])


def test_the_schedule_is_a_factor_on_the_learning_rate_of_each_step():
    model = Line()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    steps, places = [], []

    def schedule(step):
        steps.append(step)
        return [1.0, 0.5, 0.0, 2.0][step]

    def loss(model, batch):
        places.append(float(model.w[0].detach()))
        return pull(model, batch)

    fit(model, constant(1.0, 0.0), 4, optimizer, loss=loss, schedule=schedule)
    assert steps == [0, 1, 2, 3]
    assert [*places, float(model.w[0].detach())] == pytest.approx([1, 0.5, 0.25, 0.25, -0.75])


def test_every_parameter_group_keeps_its_own_learning_rate():
    a, b = Line((0.0, 0.0)), Line((0.0, 0.0))
    model = nn.ModuleList([a, b])
    groups = [{"params": a.parameters(), "lr": 1.0}, {"params": b.parameters(), "lr": 0.1}]
    optimizer = torch.optim.SGD(groups)
    loss = lambda m, batch: pull(m[0], batch) + pull(m[1], batch)  # noqa: E731
    fit(model, constant(1.0, 0.0), 1, optimizer, loss=loss, schedule=lambda step: 0.5)
    assert a.w.tolist() == pytest.approx([-0.5, 0]) and b.w.tolist() == pytest.approx([-0.05, 0])
    assert [group["lr"] for group in optimizer.param_groups] == [1.0, 0.1]


def test_the_learning_rate_is_left_as_it_came_and_may_be_changed_between_two_runs():
    model = Line((0.0, 0.0))
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    fit(model, constant(1.0, 0.0), 2, optimizer, loss=pull, schedule=lambda step: 0.25)
    assert optimizer.param_groups[0]["lr"] == 1.0 and "initial_lr" not in optimizer.param_groups[0]
    optimizer.param_groups[0]["lr"] = 0.5
    fit(model, constant(1.0, 0.0), 1, optimizer, loss=pull)
    assert model.w.tolist() == pytest.approx([-0.5 - 0.5, 0])


def test_batches_are_asked_for_by_the_number_of_the_step():
    asked = []
    model = Line()

    def batches(step):
        asked.append(step)
        return constant(1.0, 1.0)(step)

    fit(model, batches, 3, torch.optim.SGD(model.parameters(), lr=0.0), loss=pull)
    assert asked == [0, 1, 2]


def test_steps_are_taken_in_training_mode_and_the_model_is_handed_back_in_evaluation_mode():
    model, modes = Line(), []

    def loss(model, batch):
        modes.append(model.training)
        return pull(model, batch)

    model.eval()
    fit(
        model,
        constant(1.0, 1.0),
        4,
        torch.optim.SGD(model.parameters(), lr=0.0),
        loss=loss,
        evaluate=lambda m: modes.append(m.training) or 0.0,
        every=2,
    )
    assert modes == [True, True, False, True, True, False]
    assert not model.training


@pytest.mark.parametrize(
    ("steps", "every", "at"), [(5, 2, [2, 4, 5]), (4, 2, [2, 4]), (3, 10, [3]), (3, 1, [1, 2, 3]), (1, 1, [1])]
)
def test_it_is_evaluated_every_so_often_and_at_the_end(steps, every, at):
    model = Line()
    history = fit(
        model,
        constant(1.0, 0.0),
        steps,
        torch.optim.SGD(model.parameters(), lr=1.0),
        loss=pull,
        evaluate=lambda m: m.w[0],
        every=every,
    )
    assert history.evaluations == [(step, 1.0 - step) for step in at]


def test_several_measures_are_kept_by_their_names_also_over_a_kill(tmp_path):
    def train(steps):
        model = Line()
        optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
        say = {"evaluate": lambda m: {"w": float(m.w[0]), "twice": 2 * float(m.w[0])}, "every": 1}
        return fit(model, constant(1.0, 0.0), steps, optimizer, loss=pull, checkpoint=tmp_path / "c", **say)

    train(1)
    assert train(2).evaluations == [(1, {"w": 0.0, "twice": 0.0}), (2, {"w": -1.0, "twice": -2.0})]


def test_every_process_starts_from_the_first_ones_weights(monkeypatch):
    import transformer_lib.training.loop as loop

    model, seen = Line(), []
    monkeypatch.setattr(loop, "share_start", lambda m: seen.append((m, m.w.tolist())))
    fit(model, constant(1.0, 0.0), 2, torch.optim.SGD(model.parameters(), lr=1.0), loss=pull)
    assert seen == [(model, [1.0, 2.0])]  # once, before the first step


def test_evaluation_keeps_no_gradients():
    model = Line()
    seen = []
    fit(
        model,
        constant(1.0, 0.0),
        1,
        torch.optim.SGD(model.parameters(), lr=1.0),
        loss=pull,
        evaluate=lambda m: seen.append(torch.is_grad_enabled()) or 0.0,
    )
    assert seen == [False] and torch.is_grad_enabled()


def test_without_evaluation_there_are_no_evaluations():
    model = Line()
    history = fit(model, constant(1.0, 0.0), 2, torch.optim.SGD(model.parameters(), lr=1.0), loss=pull, every=1)
    assert history.evaluations == []


def test_a_new_history_is_empty():
    one, other = History(), History()
    assert vars(one) == {"loss": [], "gradient_norm": [], "evaluations": [], "cpu_seconds": 0.0}
    one.loss.append(1.0)
    assert other.loss == []


def test_every_1000_steps_unless_said_otherwise():
    model = Line()
    history = fit(
        model,
        constant(0.0, 0.0),
        1001,
        torch.optim.SGD(model.parameters(), lr=0.0),
        loss=pull,
        evaluate=lambda m: 0.0,
    )
    assert history.evaluations == [(1000, 0.0), (1001, 0.0)]


# ---- windows


@given(st.integers(1, 9), st.integers(1, 6), st.integers(0, 10**6), st.integers(0, 10**6), st.integers(1, 30))
def test_a_batch_is_a_function_of_seed_and_step_and_lies_in_the_text(length, batch_size, seed, step, more):
    ids = torch.arange(length + more) * 10  # each token says where it stands
    batch = windows(ids, length, batch_size, seed)(step)
    assert batch.shape == (batch_size, length + 1) and batch.dtype == torch.int64
    assert torch.equal(batch // 10, batch[:, :1] // 10 + torch.arange(length + 1))
    assert batch.min() >= 0 and batch.max() <= 10 * (length + more - 1)
    again = windows(ids, length, batch_size, seed)
    again(step + 1)
    assert torch.equal(again(step), batch)


def test_every_window_of_the_text_comes_and_the_last_token_is_a_target():
    ids = torch.arange(7)
    batch = torch.cat([windows(ids, 3, 16)(step) for step in range(20)])
    assert sorted(set(batch[:, 0].tolist())) == [0, 1, 2, 3]
    assert int(batch[:, -1].max()) == 6


def test_the_shortest_text_has_one_window():
    assert windows([5, 6, 7], 2, 3)(0).tolist() == [[5, 6, 7]] * 3


def test_steps_and_seeds_differ():
    ids = torch.arange(1000)
    batches = windows(ids, 3, 8)
    assert not torch.equal(batches(0), batches(1))
    assert not torch.equal(batches(0), windows(ids, 3, 8, seed=1)(0))
    assert torch.equal(batches(5), windows(ids, 3, 8, seed=0)(5))  # 0 unless said otherwise
    assert not torch.equal(windows(ids, 3, 8, seed=1)(2), windows(ids, 3, 8, seed=2)(1))


def test_batches_neither_use_nor_change_torchs_random_numbers():
    before = torch.get_rng_state()
    first = windows(IDS, 3, 8)(4)
    torch.manual_seed(99)
    assert torch.equal(windows(IDS, 3, 8)(4), first)
    torch.set_rng_state(before)


def test_a_batch_can_be_changed_without_changing_the_text():
    ids = torch.arange(9)
    windows(ids, 3, 2)(0).fill_(7)
    assert torch.equal(ids, torch.arange(9))


@pytest.mark.parametrize("ids", [[], [1], [1, 2, 3], [[1, 2, 3, 4, 5, 6]]])
def test_a_text_too_short_for_a_window_is_refused(ids):
    with one_line_error("ids: expected a text of more than 3 tokens"):
        windows(ids, 3, 2)


@pytest.mark.parametrize(("length", "batch_size"), [(0, 2), (3, 0), (-1, 2), (3, -2)])
def test_sizes_below_one_are_refused(length, batch_size):
    with one_line_error("length and batch_size of at least 1", f"got {length}, {batch_size}"):
        windows(IDS, length, batch_size)


@pytest.mark.parametrize("ids", [[0.5] * 9, [-1] * 9])
def test_what_are_no_ids_is_refused(ids):
    with one_line_error("ids: expected"):
        windows(ids, 3, 2)


# ---- going on after a kill


def train(path, steps, evaluate=True, lr=0.01, **settings):
    """A run as a recipe does it: everything made anew, then trained from the checkpoint if there is one."""
    model = small_model(seed=1, dropout=0.3)
    history = fit(
        model,
        windows(IDS, 6, 4, seed=2),
        steps,
        adam(model, lr),
        schedule=lambda step: 1 / (1 + step / 10),
        clip=0.5,
        # An evaluation that draws random numbers of its own
        evaluate=(lambda m: torch.rand(()) + next_token_loss(m, IDS[None, :20])) if evaluate else None,
        every=4,
        checkpoint=path,
        **settings,
    )
    return model, history


def equal_runs(one, other):
    """The same weights and the same history, bit for bit, but for the CPU-seconds."""
    (model, history), (model_too, history_too) = one, other
    assert same(weights_of(model), weights_of(model_too))
    assert history.loss == history_too.loss and history.gradient_norm == history_too.gradient_norm
    assert history.evaluations == history_too.evaluations
    return True


class Killed(BaseException):
    """In place of a signal."""


@pytest.mark.parametrize("killed_at", [0, 1, 3, 4, 5, 11, 12, 13])
def test_a_run_killed_anywhere_ends_as_an_unbroken_one(tmp_path, killed_at):
    whole = train(tmp_path / "whole.safetensors", 14)
    path = tmp_path / "killed.safetensors"

    def dies(step):
        if step == killed_at:
            raise Killed
        return windows(IDS, 6, 4, seed=2)(step)

    model = small_model(seed=1, dropout=0.3)
    with pytest.raises(Killed):
        fit(
            model,
            dies,
            14,
            adam(model),
            schedule=lambda step: 1 / (1 + step / 10),
            clip=0.5,
            evaluate=lambda m: torch.rand(()) + next_token_loss(m, IDS[None, :20]),
            every=4,
            checkpoint=path,
        )
    torch.manual_seed(12345)  # a new process starts anywhere
    assert equal_runs(train(path, 14), whole)


def test_a_run_killed_again_and_again_ends_as_an_unbroken_one(tmp_path):
    whole = train(None, 14, evaluate=False)
    path = tmp_path / "c.safetensors"
    for steps in (4, 8, 12, 14):
        last = train(path, steps, evaluate=False)
    assert equal_runs(last, whole)
    assert last[1].cpu_seconds > 0


def test_a_finished_run_is_not_trained_further(tmp_path):
    path = tmp_path / "c.safetensors"
    first = train(path, 6)
    before = path.read_bytes()
    assert equal_runs(train(path, 6), first)
    assert load_checkpoint(path, small_model(), adam(small_model()))[0] == 6
    assert len(path.read_bytes()) == len(before)


def test_weights_that_were_not_the_checkpoints_do_not_matter(tmp_path):
    path = tmp_path / "c.safetensors"
    whole = train(None, 8)
    train(path, 4)
    model = small_model(seed=77, dropout=0.3)
    history = fit(
        model,
        windows(IDS, 6, 4, seed=2),
        8,
        adam(model),
        schedule=lambda step: 1 / (1 + step / 10),
        clip=0.5,
        evaluate=lambda m: torch.rand(()) + next_token_loss(m, IDS[None, :20]),
        every=4,
        checkpoint=path,
    )
    assert equal_runs((model, history), whole)


def test_evaluations_come_back_as_they_were_made(tmp_path):
    path = tmp_path / "c.safetensors"
    train(path, 4)
    _, history = train(path, 8)
    assert [type(entry) for entry in history.evaluations] == [tuple, tuple]
    assert [step for step, _ in history.evaluations] == [4, 8]


def test_cpu_seconds_are_those_of_all_runs(tmp_path, monkeypatch):
    clock = iter(range(0, 1000, 10))
    monkeypatch.setattr("transformer_lib.training.loop.time.process_time", lambda: next(clock))
    _, history = train(tmp_path / "c.safetensors", 8)  # read at the start and twice after 4 steps
    assert history.cpu_seconds == 20
    _, history = train(tmp_path / "c.safetensors", 12)
    assert history.cpu_seconds == 20 + 10


def test_the_checkpoint_is_there_before_the_first_step(tmp_path):
    """So that a folder that cannot be written to shows before an hour of training, not after."""
    path = tmp_path / "deep" / "c.safetensors"
    model = small_model()

    def dies(step):
        raise Killed

    with pytest.raises(Killed):
        fit(model, dies, 10, adam(model), checkpoint=path)
    other = small_model(seed=5)
    assert load_checkpoint(path, other, adam(other)) == (0, vars(History()))
    assert same(weights_of(other), weights_of(model))


def test_a_checkpoint_is_written_every_so_often_and_at_the_end(tmp_path, monkeypatch):
    import transformer_lib.training.loop as loop

    written = []
    monkeypatch.setattr(loop, "save_checkpoint", lambda path, model, optimizer, step, history: written.append(step))
    train(tmp_path / "c", 10)
    assert written == [0, 4, 8, 10]


def test_a_folder_that_cannot_be_written_to_is_refused_before_the_first_step(tmp_path):
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    model = small_model()
    before = weights_of(model)

    def batches(step):
        raise AssertionError("a step was taken")

    with one_line_error("c.safetensors: could not be written", kind=OSError):
        fit(model, batches, 10, adam(model), checkpoint=tmp_path / "file" / "c.safetensors")
    assert same(weights_of(model), before)


def test_a_checkpoint_of_another_model_is_refused_and_kept(tmp_path):
    path = tmp_path / "c.safetensors"
    train(path, 4)
    content = path.read_bytes()
    torch.manual_seed(0)
    other = RecurrentLanguageModel(5, 4, 7, GRUCell, layers=2).double()
    before = weights_of(other)
    with one_line_error("c.safetensors: expected the weights of this RecurrentLanguageModel"):
        fit(other, windows(IDS, 6, 4), 8, adam(other), checkpoint=path)
    assert same(weights_of(other), before) and path.read_bytes() == content


KILLED = """
import sys, time, torch
from tests.training.test_loop import train
import transformer_lib.weights as weights
real = weights.save_file
def slow(tensors, path, metadata):  # in two halves, with time in between to be killed in
    real(tensors, path, metadata=metadata)
    whole = open(path, "rb").read()
    open(path, "wb").write(whole[: len(whole) // 2])
    print("half", flush=True)
    time.sleep(float(sys.argv[2]))
    open(path, "wb").write(whole)
weights.save_file = slow
train(sys.argv[1], 14)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL here")
def test_a_process_killed_in_the_middle_of_writing_leaves_a_whole_checkpoint(tmp_path):
    path = tmp_path / "c.safetensors"
    root = Path(__file__).resolve().parents[2]
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(path), "0.05"],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root), "TRANSFORMER_LIB_PROGRESS": "0"},
        stdout=subprocess.PIPE,
        text=True,
    )
    for _ in range(3):  # before the first step, after 4 steps, and after 8
        assert process.stdout.readline() == "half\n"
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    assert (tmp_path / "c.safetensors.partial").exists()  # it did die in the middle
    model = small_model()
    assert load_checkpoint(path, model, adam(model))[0] == 4
    assert equal_runs(train(path, 14), train(None, 14))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["c.safetensors"]  # the next write clears up


# ---- the progress bar


@pytest.mark.parametrize(("setting", "shown"), [("0", False), ("1", True), (None, True)])
def test_the_progress_bar_can_be_turned_off(monkeypatch, capsys, setting, shown):
    if setting is None:
        monkeypatch.delenv("TRANSFORMER_LIB_PROGRESS", raising=False)
    else:
        monkeypatch.setenv("TRANSFORMER_LIB_PROGRESS", setting)
    model = Line()
    fit(model, constant(1.0, 0.5), 2, torch.optim.SGD(model.parameters(), lr=0.0), loss=pull)
    captured = capsys.readouterr()
    assert captured.out == ""
    if shown:
        assert "training" in captured.err and "2/2" in captured.err and "loss=2.000" in captured.err
    else:
        assert captured.err == ""


def test_the_bar_begins_where_the_checkpoint_stands(tmp_path, monkeypatch, capsys):
    train(tmp_path / "c", 8)
    monkeypatch.setenv("TRANSFORMER_LIB_PROGRESS", "1")
    train(tmp_path / "c", 10)
    error = capsys.readouterr().err
    assert "8/10" in error and "10/10" in error and "7/10" not in error


# ---- bad input


@pytest.mark.parametrize(("steps", "every"), [(0, 1), (-1, 1), (1, 0), (1, -1)])
def test_no_steps_are_refused(steps, every):
    model = Line()
    with one_line_error("steps and every of at least 1", f"got {steps}, {every}"):
        fit(model, constant(1.0, 0.0), steps, torch.optim.SGD(model.parameters(), lr=1.0), loss=pull, every=every)
    assert model.w.tolist() == [1.0, 2.0]


@pytest.mark.parametrize("clip", [0, 0.0, -1.0, math.nan])
def test_a_clip_of_0_or_less_is_refused(clip):
    model = Line()
    with one_line_error("clip: expected a number above 0 or None", f"got {clip}"):
        fit(model, constant(1.0, 0.0), 1, torch.optim.SGD(model.parameters(), lr=1.0), loss=pull, clip=clip)
    assert model.w.tolist() == [1.0, 2.0]


def test_time_is_processor_time():
    model = Line()
    begin = time.process_time()
    history = fit(
        model,
        lambda step: time.sleep(0.2) or constant(1.0, 0.0)(step),
        1,
        torch.optim.SGD(model.parameters(), lr=1.0),
        loss=pull,
    )
    assert history.cpu_seconds <= time.process_time() - begin + 1e-3
