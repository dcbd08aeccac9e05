"""Models, assembled from parts: token ids -> distributions."""

from .ngram import NGramModel
from .recurrent import RecurrentLanguageModel
from .trained import ladder, load_card, load_trained

__all__ = ["NGramModel", "RecurrentLanguageModel", "ladder", "load_card", "load_trained"]
