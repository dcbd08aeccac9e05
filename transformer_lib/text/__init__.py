"""Text: corpora and tokenizers. text -> token ids, and back."""

from .byte_pair import BytePairTokenizer
from .corpora import Corpus, Pair, load_corpus
from .tokenizers import END, PAD, START, UNKNOWN, CharTokenizer, Tokenizer, WordTokenizer
from .wordpiece import WordPieceTokenizer

__all__ = [
    "END",
    "PAD",
    "START",
    "UNKNOWN",
    "BytePairTokenizer",
    "CharTokenizer",
    "Corpus",
    "Pair",
    "Tokenizer",
    "WordPieceTokenizer",
    "WordTokenizer",
    "load_corpus",
]
