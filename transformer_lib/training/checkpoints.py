"""Checkpoints without pickle: one safetensors file with the weights, the optimizer, the history and the random state.

Chapter 02; a file is whole or not there, and it only loads into the model it was made from.
"""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from ..weights import load_weights, own_tensors, read_weights, write_weights


def save_checkpoint(
    path: str | Path,
    model: nn.Module,
    optimizer: torch.optim.Optimizer | None = None,
    step: int = 0,
    history: dict[str, Any] | None = None,
) -> None:
    """Write everything that training needs to go on: weights, optimizer, step, history, random state."""
    tensors = {f"model.{name}": tensor for name, tensor in own_tensors(model).items()}
    tensors["random.state"] = torch.get_rng_state()
    plain = {}
    if optimizer is not None:
        state = optimizer.state_dict()
        for number, values in state["state"].items():
            for name, value in values.items():
                if isinstance(value, Tensor):
                    tensors[f"optimizer.{number}.{name}"] = value
                else:
                    plain[f"{number}.{name}"] = value
        plain = {"kind": type(optimizer).__name__, "values": plain, "groups": state["param_groups"]}
    about = {"model": type(model).__name__, "step": step, "history": history or {}, "optimizer": plain}
    write_weights(path, tensors, about)


def load_checkpoint(
    path: str | Path, model: nn.Module, optimizer: torch.optim.Optimizer | None = None
) -> tuple[int, dict[str, Any]]:
    """Load a checkpoint into the model (and the optimizer) and the random state; return the step and the history."""
    path = Path(path)
    tensors, about = read_weights(path)
    if not {"model", "step", "history", "optimizer"} <= about.keys() or "random.state" not in tensors:
        raise ValueError(f"{path.name}: expected a checkpoint of save_checkpoint, got another safetensors file")
    if about["model"] != type(model).__name__:
        raise ValueError(f"{path.name}: expected a checkpoint of {type(model).__name__}, got one of {about['model']}")
    weights = {name.removeprefix("model."): tensor for name, tensor in tensors.items() if name.startswith("model.")}
    stored = None
    if optimizer is not None:
        if not about["optimizer"]:
            raise ValueError(f"{path.name}: expected a checkpoint with an optimizer, got one without; save it with one")
        kind = about["optimizer"]["kind"]
        if kind != type(optimizer).__name__:
            raise ValueError(f"{path.name}: expected the state of {type(optimizer).__name__}, got that of {kind}")
        state: dict[int, dict[str, Any]] = {}
        entries = {
            name.removeprefix("optimizer."): tensor for name, tensor in tensors.items() if name.startswith("optimizer.")
        } | about["optimizer"]["values"]
        for name, value in entries.items():
            number, key = name.split(".", 1)
            state.setdefault(int(number), {})[key] = value
        groups = about["optimizer"]["groups"]
        here, there = ([len(group["params"]) for group in where] for where in (optimizer.param_groups, groups))
        if here != there:
            raise ValueError(f"{path.name}: expected an optimizer with parameter groups of {here}, got {there}")
        stored = {"state": state, "param_groups": groups}
    load_weights(model, weights, path.name)
    if stored is not None:
        optimizer.load_state_dict(stored)
    torch.set_rng_state(tensors["random.state"])
    return about["step"], about["history"]
