"""Models, assembled from parts: token ids -> distributions."""

from .gpt import GPT
from .ngram import NGramModel
from .recurrent import RecurrentLanguageModel
from .seq2seq import AttentionDecoder, ContextDecoder, Decoder, Seq2Seq
from .trained import ladder, load_card, load_trained
from .transformer import Transformer

__all__ = [
    "GPT",
    "AttentionDecoder",
    "ContextDecoder",
    "Decoder",
    "NGramModel",
    "RecurrentLanguageModel",
    "Seq2Seq",
    "Transformer",
    "ladder",
    "load_card",
    "load_trained",
]
