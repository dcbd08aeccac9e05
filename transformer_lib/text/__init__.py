"""Text: corpora and tokenizers. text -> token ids, and back."""

from .agreement import AgreementTask
from .corpora import Corpus, Pair, load_corpus
from .tokenizers import END, PAD, START, UNKNOWN, CharTokenizer, Tokenizer, WordTokenizer

__all__ = [
    "END",
    "PAD",
    "START",
    "UNKNOWN",
    "AgreementTask",
    "CharTokenizer",
    "Corpus",
    "Pair",
    "Tokenizer",
    "WordTokenizer",
    "load_corpus",
]
