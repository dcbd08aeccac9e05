"""Text: corpora and tokenizers. text -> token ids, and back."""

from .tokenizers import END, PAD, START, UNKNOWN, CharTokenizer, Tokenizer, WordTokenizer

__all__ = ["END", "PAD", "START", "UNKNOWN", "CharTokenizer", "Tokenizer", "WordTokenizer"]
