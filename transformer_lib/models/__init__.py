"""Models, assembled from parts: token ids -> distributions."""

from .bert import Bert, Chooser, Classifier, PretrainingHeads, SpanFinder, best_span
from .gpt import GPT, GPTClassifier
from .ngram import NGramModel
from .recurrent import RecurrentLanguageModel
from .seq2seq import AttentionDecoder, ContextDecoder, Decoder, Seq2Seq
from .trained import ladder, load_card, load_trained
from .transformer import Transformer
from .windowed import Windowed

__all__ = [
    "GPT",
    "GPTClassifier",
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
    "Windowed",
    "best_span",
    "ladder",
    "load_card",
    "load_trained",
]
