"""Weights on disk, without pickle: safetensors files that are whole or not there.

Chapter 02 onwards: checkpoints and the committed trained models are such files.
"""

import errno
import json
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from .files import whole_file


def write_weights(path: str | Path, tensors: dict[str, Tensor], about: dict[str, Any]) -> None:
    """Write tensors and a note about them as safetensors; the old file, if any, stays whole until the new one is."""
    tensors = {name: tensor.detach().clone().contiguous() for name, tensor in tensors.items()}
    note = json.dumps(about)
    with whole_file(path) as partial:
        try:
            save_file(tensors, str(partial), metadata={"about": note})
        except SafetensorError as error:
            raise OSError(errno.EIO, str(error)) from error


def own_tensors(model: nn.Module) -> dict[str, Tensor]:
    """The model's weights by name; a tensor that several parts share, such as a tied embedding, by its first name."""
    first: dict[int, str] = {}
    everything = model.state_dict(keep_vars=True)
    for name, tensor in everything.items():
        first.setdefault(id(tensor), name)
    return {name: everything[name].detach() for name in first.values()}


def read_weights(path: str | Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read what `write_weights` wrote: the tensors and the note about them."""
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"{path.name}: expected a weights file (.safetensors), found no such file")
    try:
        with safe_open(str(path), framework="pt") as file:
            about = json.loads((file.metadata() or {}).get("about", "{}"))
            # Copies: the tensors of safe_open are windows on the file, and would hold it open against the next write.
            tensors = {name: file.get_tensor(name).clone() for name in file.keys()}
    except (SafetensorError, ValueError) as error:
        raise ValueError(
            f"{path.name}: expected a whole safetensors file, got a damaged or truncated one "
            f"({path.stat().st_size} bytes); fetch or train it again"
        ) from error
    return tensors, about if isinstance(about, dict) else {}


def load_weights(model: nn.Module, tensors: dict[str, Tensor], source: str) -> None:
    """Copy weights into the model, after all names and shapes were found to agree; otherwise the model is untouched."""
    own = own_tensors(model)
    for name in [*own, *tensors]:
        here, there = (tuple(where[name].shape) if name in where else "nothing" for where in (own, tensors))
        if here != there:
            raise ValueError(
                f"{source}: expected the weights of this {type(model).__name__}, got another model's: "
                f"{name} is {there} in the file and {here} in the model"
            )
    model.load_state_dict(tensors, strict=False)  # all are there: what is missing is a second name
