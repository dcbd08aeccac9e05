"""What every card says alike."""

import platform
import sys

import torch


def machine() -> str:
    """Where it was trained, as far as it matters for numbers and CPU-seconds; no name of a machine."""
    return (
        f"{platform.machine()}, one thread, torch {torch.__version__.split('+')[0]}, "
        f"Python {sys.version_info.major}.{sys.version_info.minor}"
    )
