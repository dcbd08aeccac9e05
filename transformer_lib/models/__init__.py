"""Models, assembled from parts: token ids -> distributions."""

from .gpt import GPT
from .ngram import NGramModel
from .recurrent import RecurrentLanguageModel
from .seq2seq import AttentionDecoder, ContextDecoder, Decoder, Seq2Seq
from .trained import ladder, load_card, load_trained

__all__ = [
    "GPT",
    "AttentionDecoder",
    "ContextDecoder",
    "Decoder",
    "NGramModel",
    "RecurrentLanguageModel",
    "Seq2Seq",
    "ladder",
    "load_card",
    "load_trained",
]
