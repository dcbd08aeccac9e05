"""Training: the loop, checkpoints, several processes. Knows a model only by what it answers."""

from .checkpoints import load_checkpoint, save_checkpoint
from .loop import History, fit, next_token_loss, windows

__all__ = ["History", "fit", "load_checkpoint", "next_token_loss", "save_checkpoint", "windows"]
