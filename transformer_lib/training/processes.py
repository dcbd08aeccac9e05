"""Several processes train one model: what `torchrun` starts, each works on its share of a batch.

Used by `fit`; on one process, which is the rule, every function here does nothing.
"""

import os

import torch
import torch.distributed as dist
from torch import Tensor, nn

from ..checks import require


def process_count() -> int:
    """How many processes train together; 1 unless torchrun started more."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def process_rank() -> int:
    """The number of this process, from 0."""
    return int(os.environ.get("RANK", "0"))


def own_share(batch: Tensor | tuple[Tensor, ...]) -> Tensor | tuple[Tensor, ...]:
    """The rows of the batch that this process works on: of a tensor, or of each of several of the same length.

    Shares of a tensor are of equal size, so that the mean over the processes is the mean over the batch. Several
    tensors are pairs of unequal length, whose loss has to weigh what is in a share anyway: one row more is no matter.
    """
    count, rank = process_count(), process_rank()
    if count == 1:
        return batch
    if isinstance(batch, tuple):
        rows = min(map(len, batch))
        require(rows >= count, f"batch: expected at least one row for each of {count} processes, got {rows}")
        return tuple(part[rank::count] for part in batch)
    require(
        len(batch) % count == 0, f"batch: expected a size that {count} processes can share evenly, got {len(batch)}"
    )
    return batch[rank::count]


def wait_for_all() -> None:
    """Go on only when every process has come so far: what the first one was writing is then written."""
    if process_count() == 1:
        return
    if not dist.is_initialized():
        dist.init_process_group("gloo")
    dist.barrier()


def share_start(model: nn.Module) -> None:
    """Give every process the first one's weights: averaged gradients fit only models that are the same."""
    if process_count() == 1:
        return
    for tensor in model.state_dict().values():
        dist.broadcast(tensor, 0)
    wait_for_all()


def average(value: Tensor) -> Tensor:
    """The mean of all processes' values."""
    if process_count() == 1:
        return value
    value = value.clone()
    dist.all_reduce(value)
    return value / process_count()


def average_gradients(model: nn.Module) -> None:
    """Give every process the mean of all processes' gradients; a parameter that nobody has one for keeps none."""
    if process_count() == 1:
        return
    parameters = list(model.parameters())
    used = average(torch.tensor([float(parameter.grad is not None) for parameter in parameters]))
    for parameter in (parameter for parameter, share in zip(parameters, used) if share > 0):
        gradient = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
        parameter.grad = average(gradient)
