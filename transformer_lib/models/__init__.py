"""Models, assembled from parts: token ids -> distributions."""

from .bert import Bert, Chooser, Classifier, PretrainingHeads, SpanFinder, best_span
from .gpt import GPT
from .ngram import NGramModel
from .recurrent import RecurrentLanguageModel
from .seq2seq import AttentionDecoder, ContextDecoder, Decoder, Seq2Seq
from .trained import ladder, load_card, load_trained
from .transformer import Transformer

__all__ = [
    "GPT",
    "AttentionDecoder",
    "Bert",
    "Chooser",
    "Classifier",
    "ContextDecoder",
    "Decoder",
    "NGramModel",
    "PretrainingHeads",
    "RecurrentLanguageModel",
    "Seq2Seq",
    "SpanFinder",
    "Transformer",
    "best_span",
    "ladder",
    "load_card",
    "load_trained",
]
