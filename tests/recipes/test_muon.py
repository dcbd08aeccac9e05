"""Muon beside AdamW as one optimizer: each on its own parameters, schedules, checkpoints.

Chapters 11 and 13.
"""

import pytest
import torch

from recipes.muon import MuonAndAdamW
from tests.one_line import one_line_error
from transformer_lib.models import GPT
from transformer_lib.training import fit, windows

TEXT = torch.randint(7, (300,), generator=torch.Generator().manual_seed(0))
BATCHES = windows(TEXT, 6, 4)


class Killed(BaseException):
    """In place of a signal."""


def gpt(seed=0):
    torch.manual_seed(seed)
    return GPT(7, 8, 8, 2, 2, dropout=0.1)


def parts(model):
    named = dict(model.named_parameters())
    matrices = [name for name in named if name.startswith("layers.") and name.endswith("weight")]
    return {name: named[name] for name in matrices}, {name: p for name, p in named.items() if name not in matrices}


def test_the_layers_matrices_go_to_muon_and_all_others_to_adamw():
    model = gpt()
    matrices, others = parts(model)
    assert len(matrices) == 12 and {"embedding.weight", "positions.rows", "norm.gamma"} <= others.keys()
    optimizer = MuonAndAdamW(model, 0.02, 0.003, 0.1, (0.8, 0.9))
    muon, adamw = optimizer.param_groups
    assert [id(p) for p in muon["params"]] == [id(p) for p in matrices.values()]
    assert [id(p) for p in adamw["params"]] == [id(p) for p in others.values()]
    assert (muon["lr"], adamw["lr"], muon["weight_decay"], adamw["weight_decay"]) == (0.02, 0.003, 0.1, 0.1)
    assert adamw["betas"] == (0.8, 0.9)


def test_its_steps_are_those_of_both_alone():
    one, other = gpt(), gpt()
    matrices, others = parts(other)
    both = MuonAndAdamW(one, 0.02, 0.003, 0.1)
    alone = [
        torch.optim.Muon(list(matrices.values()), lr=0.02, weight_decay=0.1),
        torch.optim.AdamW(list(others.values()), lr=0.003, betas=(0.9, 0.98), weight_decay=0.1),
    ]
    for step in range(4):
        for model, optimizers in ((one, [both]), (other, alone)):
            torch.manual_seed(step)
            model.zero_grad()
            model.log_probs(BATCHES(step)).square().sum().backward()
            for optimizer in optimizers:
                optimizer.step()
    for name, tensor in one.state_dict().items():
        assert torch.equal(tensor, other.state_dict()[name]), name
    both.zero_grad(set_to_none=True)
    assert all(p.grad is None for p in one.parameters())


def test_rates_follow_the_schedule_and_come_back():
    model, seen = gpt(), []
    optimizer = MuonAndAdamW(model, 0.02, 0.003)
    muon, adamw = optimizer.muon.step, optimizer.adamw.step
    optimizer.muon.step = lambda: (seen.append(optimizer.muon.param_groups[0]["lr"]), muon())
    optimizer.adamw.step = lambda: (seen.append(optimizer.adamw.param_groups[0]["lr"]), adamw())
    before = {name: p.clone() for name, p in model.named_parameters()}
    fit(model, BATCHES, 3, optimizer, schedule=lambda step: (0.0, 0.5, 0.0)[step])
    assert seen == [0.0, 0.0, 0.01, 0.0015, 0.0, 0.0]
    assert [group["lr"] for group in optimizer.param_groups] == [0.02, 0.003]
    assert all(not torch.equal(before[name], p) for name, p in model.named_parameters())
    unchanged = {name: p.clone() for name, p in model.named_parameters()}
    fit(model, BATCHES, 2, optimizer, schedule=lambda step: 0.0)
    assert all(torch.equal(unchanged[name], p) for name, p in model.named_parameters())


def train(path, killed_at=None):
    model = gpt()

    def batches(step):
        if step == killed_at:
            raise Killed
        return BATCHES(step)

    optimizer = MuonAndAdamW(model, 0.02, 0.003, 0.05)
    history = fit(
        model, batches, 9, optimizer, schedule=lambda step: 1 / (1 + step), every=2, checkpoint=path, clip=1.0
    )
    return model.state_dict(), history.loss, optimizer


def test_training_goes_on_from_a_checkpoint_as_if_it_had_never_stopped(tmp_path):
    weights, losses, _ = train(tmp_path / "whole")
    for killed_at in (5, 8):
        path = tmp_path / f"killed{killed_at}"
        with pytest.raises(Killed):
            train(path, killed_at)
        again, losses_again, optimizer = train(path)
        assert losses_again == losses
        assert all(torch.equal(tensor, again[name]) for name, tensor in weights.items())
        assert [group["lr"] for group in optimizer.param_groups] == [0.02, 0.003]
        assert all(optimizer.state[p] for group in optimizer.param_groups for p in group["params"])
        assert optimizer.muon.state is optimizer.adamw.state is optimizer.state


def test_a_checkpoint_of_another_optimizer_is_refused(tmp_path):
    train(tmp_path / "c")
    model = gpt()
    with one_line_error("c: expected the state of AdamW, got that of MuonAndAdamW"):
        fit(model, BATCHES, 10, torch.optim.AdamW(model.parameters()), checkpoint=tmp_path / "c")
