"""What the recipes for Japanese words share: Tatoeba's sentences, every word a token, each sentence from a fresh start.

Chapters 02, 03 and 07: RNN, LSTM and attention beside word n-grams, on the sentences that later chapters translate.
"""

from collections.abc import Callable
from itertools import chain

import torch
from torch import nn

from recipes.language_model import train
from transformer_lib.models.trained import with_parts
from transformer_lib.text import END, START, UNKNOWN, WordTokenizer, load_corpus


def train_on_tatoeba(
    name: str, kind: Callable[..., nn.Module], arguments: dict, steps: int, learning_rate: float
) -> None:
    """Train one word model: windows of 32 words of the sentences laid end to end, 32 windows a step."""
    corpus = load_corpus("tatoeba-ja")
    tokenizer = WordTokenizer.train(corpus.train, specials=(UNKNOWN, START, END), pattern=WordTokenizer.BLANKS)
    sentences = {
        part: [tokenizer.encode(line, start=True, end=True) for line in getattr(corpus, part).splitlines()]
        for part in ("train", "validation", "test")
    }
    arguments = {"vocab_size": tokenizer.vocab_size, **arguments, "dropout": 0.2}
    train(
        name,
        arguments,
        lambda: kind(**with_parts(arguments)),
        tokenizer,
        torch.tensor(list(chain.from_iterable(sentences["train"]))),
        sentences["validation"],
        sentences["test"],
        {
            "data": "tatoeba-ja, words",
            "held_out": "whole sentences; every sentence is read from a fresh start, its </s> counted",
        },
        steps=steps,
        learning_rate=learning_rate,
        length=32,
        batch_size=32,
    )
