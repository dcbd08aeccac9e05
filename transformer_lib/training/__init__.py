"""Training: the loop, checkpoints, several processes. Knows a model only by what it answers."""

from .checkpoints import load_checkpoint, save_checkpoint
from .loop import History, fit, next_token_loss, windows
from .losses import label_smoothed_cross_entropy
from .pretraining import mask_tokens, next_sentence_pairs
from .schedules import warmup_inverse_sqrt
from .translation import batches_by_length, padded, translation_loss

__all__ = [
    "History",
    "batches_by_length",
    "fit",
    "label_smoothed_cross_entropy",
    "load_checkpoint",
    "mask_tokens",
    "next_sentence_pairs",
    "next_token_loss",
    "padded",
    "save_checkpoint",
    "translation_loss",
    "warmup_inverse_sqrt",
    "windows",
]
