"""Text: corpora and tokenizers. text -> token ids, and back."""

from .agreement import AgreementTask
from .byte_pair import BytePairTokenizer
from .corpora import Corpus, Pair, load_corpus
from .reversal import ReversalTask
from .tokenizers import END, PAD, START, UNKNOWN, CharTokenizer, Tokenizer, WordTokenizer
from .wordpiece import WordPieceTokenizer

__all__ = [
    "END",
    "PAD",
    "START",
    "UNKNOWN",
    "AgreementTask",
    "BytePairTokenizer",
    "CharTokenizer",
    "Corpus",
    "Pair",
    "ReversalTask",
    "Tokenizer",
    "WordPieceTokenizer",
    "WordTokenizer",
    "load_corpus",
]
