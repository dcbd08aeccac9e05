"""Checkpoints: everything comes back, and nothing else is taken for one.

Chapter 02 onwards.
"""

import os

import pytest
import torch
from torch import nn

from tests.one_line import one_line_error
from transformer_lib.training import load_checkpoint, save_checkpoint
from transformer_lib.weights import read_weights, write_weights

OPTIMIZERS = {
    "SGD": lambda parameters: torch.optim.SGD(parameters, lr=0.1),
    "SGD with momentum": lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9, nesterov=True),
    "Adam": lambda parameters: torch.optim.Adam(parameters, lr=0.01, betas=(0.8, 0.95)),
    "Adam, amsgrad": lambda parameters: torch.optim.Adam(parameters, lr=0.01, amsgrad=True),
    "AdamW": lambda parameters: torch.optim.AdamW(parameters, lr=0.01, weight_decay=0.1),
    "RMSprop": lambda parameters: torch.optim.RMSprop(parameters, lr=0.01),
}


class Twin(nn.Sequential):
    """Of the same shapes as any Sequential, but another model."""


def model_of(seed=0, width=3, kind=nn.Sequential):
    torch.manual_seed(seed)
    return kind(nn.Linear(2, width), nn.Tanh(), nn.Dropout(0.5), nn.Linear(width, 1))


def step(model, optimizer, times=1):
    for _ in range(times):
        optimizer.zero_grad()
        model(torch.randn(4, 2)).square().sum().backward()
        optimizer.step()


def weights_of(model):
    return {name: tensor.clone() for name, tensor in model.state_dict().items()}


def same(one, other):
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def checkpoint_of(path, optimizer="Adam", seed=0, **settings):
    model = model_of(seed)
    made = OPTIMIZERS[optimizer](model.parameters())
    step(model, made, 2)
    save_checkpoint(path, model, made, **settings)
    return model, made


@pytest.mark.parametrize("name", list(OPTIMIZERS))
def test_training_goes_on_from_a_checkpoint_as_if_it_had_never_stopped(tmp_path, name):
    model, optimizer = checkpoint_of(tmp_path / "c", name, step=2, history={"loss": [3.0, 2.5]})
    step(model, optimizer, 3)

    other = model_of(seed=9)
    optimizer_too = OPTIMIZERS[name](other.parameters())
    assert load_checkpoint(str(tmp_path / "c"), other, optimizer_too) == (2, {"loss": [3.0, 2.5]})
    step(other, optimizer_too, 3)
    assert same(weights_of(model), weights_of(other))


def test_the_optimizers_settings_come_back(tmp_path):
    checkpoint_of(tmp_path / "c", "Adam")
    model = model_of(seed=1)
    optimizer = torch.optim.Adam(model.parameters(), lr=7.0, weight_decay=5.0)
    load_checkpoint(tmp_path / "c", model, optimizer)
    group = optimizer.param_groups[0]
    assert group["lr"] == 0.01 and tuple(group["betas"]) == (0.8, 0.95) and group["weight_decay"] == 0


def test_an_optimizer_that_has_not_stepped_yet_can_be_saved(tmp_path):
    model = model_of()
    optimizer = OPTIMIZERS["Adam"](model.parameters())
    save_checkpoint(tmp_path / "c", model, optimizer)
    other = model_of(seed=1)
    optimizer_too = OPTIMIZERS["Adam"](other.parameters())
    assert load_checkpoint(tmp_path / "c", other, optimizer_too) == (0, {})
    assert optimizer_too.state_dict()["state"] == {}


def test_the_random_state_comes_back(tmp_path):
    torch.manual_seed(3)
    save_checkpoint(tmp_path / "c", model := model_of())
    torch.manual_seed(4)
    expected_model = model_of()
    torch.manual_seed(5)
    save_checkpoint(tmp_path / "d", model)
    expected = torch.randn(3)
    torch.manual_seed(6)
    load_checkpoint(tmp_path / "d", expected_model)
    assert torch.equal(torch.randn(3), expected)


def test_weights_alone_can_be_saved_and_loaded(tmp_path):
    model = model_of()
    save_checkpoint(tmp_path / "c", model)
    other = model_of(seed=1)
    assert load_checkpoint(tmp_path / "c", other) == (0, {})
    assert same(weights_of(model), weights_of(other))
    checkpoint_of(tmp_path / "d", step=8)  # one with an optimizer serves too, where none is wanted
    assert load_checkpoint(tmp_path / "d", other)[0] == 8


def test_a_checkpoint_is_one_file_without_pickle(tmp_path):
    checkpoint_of(tmp_path / "c.safetensors", step=3, history={"loss": [1.0]})
    assert [path.name for path in tmp_path.iterdir()] == ["c.safetensors"]
    tensors, about = read_weights(tmp_path / "c.safetensors")
    assert {"model.0.weight", "random.state", "optimizer.0.exp_avg"} <= tensors.keys()
    assert (about["model"], about["step"], about["history"]) == ("Sequential", 3, {"loss": [1.0]})
    assert about["optimizer"]["kind"] == "Adam"


def test_what_was_loaded_does_not_hang_on_the_file(tmp_path):
    path = tmp_path / "c"
    checkpoint_of(path)
    other = model_of(seed=1)
    optimizer = OPTIMIZERS["Adam"](other.parameters())
    load_checkpoint(path, other, optimizer)
    before = weights_of(other), [s["exp_avg"].clone() for s in optimizer.state.values()]
    with path.open("r+b") as file:
        file.seek(-4000, os.SEEK_END)
        file.write(bytes(4000))
    assert same(weights_of(other), before[0])
    assert all(torch.equal(s["exp_avg"], copy) for s, copy in zip(optimizer.state.values(), before[1], strict=True))


def test_a_number_in_the_optimizers_state_comes_back(tmp_path):
    model, optimizer = checkpoint_of(tmp_path / "c", "SGD with momentum")
    for state in optimizer.state.values():
        state["passes"] = 4
        state["nothing"] = None
        state["by.name"] = 7
    save_checkpoint(tmp_path / "c", model, optimizer)
    other = model_of()
    optimizer_too = OPTIMIZERS["SGD with momentum"](other.parameters())
    load_checkpoint(tmp_path / "c", other, optimizer_too)
    for state in optimizer_too.state.values():
        assert state["passes"] == 4 and state["nothing"] is None and "momentum_buffer" in state
        assert state["by.name"] == 7


# ---- bad input: each leaves the model, the optimizer and torch's random numbers as they were


def refused(path, *words, model=None, optimizer="Adam", kind=ValueError):
    model = model or model_of(seed=5)
    made = OPTIMIZERS[optimizer](model.parameters()) if optimizer else None
    if made is not None:
        step(model, made)
    weights, random = weights_of(model), torch.get_rng_state()
    state = str(made.state_dict()) if made is not None else None
    with one_line_error(path.name, *words, kind=kind):
        load_checkpoint(path, model, made)
    assert same(weights_of(model), weights)
    assert torch.equal(torch.get_rng_state(), random)
    assert made is None or str(made.state_dict()) == state


@pytest.mark.parametrize("optimizer", ["Adam", None])
def test_a_checkpoint_of_another_model_is_refused(tmp_path, optimizer):
    path = tmp_path / "c"
    checkpoint_of(path)
    words = "expected a checkpoint of Twin, got one of Sequential"
    refused(path, words, model=model_of(kind=Twin), optimizer=optimizer)


def test_a_checkpoint_of_other_sizes_is_refused(tmp_path):
    path = tmp_path / "run.safetensors"
    checkpoint_of(path)
    refused(path, "0.weight is (3, 2) in the file and (4, 2) in the model", model=model_of(width=4))
    deeper = nn.Sequential(*model_of(), nn.Linear(1, 1))
    refused(path, "4.weight is nothing in the file and (1, 1) in the model", model=deeper, optimizer=None)
    refused(path, "expected an optimizer with parameter groups of [6], got [4]", model=deeper)


@pytest.mark.parametrize("part", [0, 0.001, 0.1, 0.5, 0.9, 0.999])
def test_a_truncated_checkpoint_is_refused(tmp_path, part):
    path = tmp_path / "c.safetensors"
    checkpoint_of(path)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(len(whole) * part)])
    refused(path, "expected a whole safetensors file, got a damaged or truncated one")


def test_a_missing_checkpoint_is_said(tmp_path):
    refused(tmp_path / "none", "expected a weights file", kind=FileNotFoundError)


@pytest.mark.parametrize("missing", ["model", "step", "history", "optimizer", "random.state"])
def test_weights_that_are_no_checkpoint_are_refused(tmp_path, missing):
    path = tmp_path / "w"
    checkpoint_of(path)
    tensors, about = read_weights(path)
    tensors.pop(missing, None)
    about.pop(missing, None)
    write_weights(path, tensors, about)
    refused(path, "expected a checkpoint of save_checkpoint, got another safetensors file")
    write_weights(path, {"x": torch.ones(2)}, {})
    refused(path, "expected a checkpoint of save_checkpoint")


def test_a_checkpoint_without_an_optimizer_is_no_use_to_one(tmp_path):
    path = tmp_path / "c"
    save_checkpoint(path, model_of())
    refused(path, "expected a checkpoint with an optimizer, got one without")


@pytest.mark.parametrize(("saved", "wanted"), [("SGD", "Adam"), ("Adam", "AdamW"), ("Adam", "SGD")])
def test_another_optimizers_state_is_refused(tmp_path, saved, wanted):
    path = tmp_path / "c"
    checkpoint_of(path, saved)
    refused(path, f"expected the state of {wanted}, got that of {saved}", optimizer=wanted)


def test_an_optimizer_of_other_parameters_is_refused(tmp_path):
    path = tmp_path / "c"
    model = model_of()
    save_checkpoint(path, model, torch.optim.Adam(model[0].parameters()))
    refused(path, "expected an optimizer with parameter groups of [4], got [2]")


def test_a_save_that_fails_leaves_the_old_checkpoint_and_no_rest(tmp_path, monkeypatch):
    path = tmp_path / "c"
    old, _ = checkpoint_of(path, step=2)

    def refuse(source, target):
        raise OSError(30, "Read-only file system", str(target))

    monkeypatch.setattr(os, "replace", refuse)
    with one_line_error("c: could not be written (Read-only file system)", kind=OSError):
        checkpoint_of(path, seed=1, step=3)
    monkeypatch.undo()
    model = model_of(seed=2)
    assert load_checkpoint(path, model)[0] == 2 and same(weights_of(model), weights_of(old))
    assert [p.name for p in tmp_path.iterdir()] == ["c"]
