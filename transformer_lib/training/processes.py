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


def own_share(batch: Tensor) -> Tensor:
    """The rows of the batch that this process works on."""
    if process_count() == 1:
        return batch
    require(
        len(batch) % process_count() == 0,
        f"batch: expected a size that {process_count()} processes can share evenly, got {len(batch)}",
    )
    return batch[process_rank() :: process_count()]


def average_gradients(model: nn.Module) -> None:
    """Give every process the mean of all processes' gradients."""
    if process_count() == 1:
        return
    if not dist.is_initialized():
        dist.init_process_group("gloo")
    for parameter in model.parameters():
        if parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
        dist.all_reduce(parameter.grad)
        parameter.grad /= process_count()
