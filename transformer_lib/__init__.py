"""The shared library of the course: every listing that a notebook shows is defined here, once.

Importing it loads neither matplotlib nor ipywidgets; `transformer_lib.show` does.
"""

import os

import torch

__all__ = ["reproducible"]


def reproducible(seed: int) -> torch.Generator:
    """Make what follows come out the same on every machine, and return a seeded generator.

    Sets one thread and float64 (in float32 only 5 to 7 digits survive a change of processor; in float64 11 and more do)
    and seeds torch's global generator, which the starting weights of modules are drawn from. The environment variable
    TRANSFORMER_LIB_THREADS asks for another number of threads: a test of the notebooks sees that nothing changes.
    """
    torch.set_num_threads(int(os.environ.get("TRANSFORMER_LIB_THREADS", "1")))
    torch.set_default_dtype(torch.float64)
    torch.manual_seed(seed)
    return torch.Generator().manual_seed(seed)
