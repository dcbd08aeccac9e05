"""Models, assembled from parts: token ids -> distributions."""

from .ngram import NGramModel
from .recurrent import RecurrentLanguageModel
from .trained import load_trained

__all__ = ["NGramModel", "RecurrentLanguageModel", "load_trained"]
