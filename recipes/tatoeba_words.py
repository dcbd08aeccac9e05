"""What the recipes for Japanese words share: Tatoeba's sentences, every word a token, each sentence from a fresh start.

Chapters 02 and 03: an RNN and an LSTM beside word n-grams, on the sentences that chapters 04, 05 and 10 translate.
"""

from itertools import chain

import torch

from recipes.language_model import train
from transformer_lib.models import RecurrentLanguageModel
from transformer_lib.models.trained import CELLS
from transformer_lib.text import END, START, UNKNOWN, WordTokenizer, load_corpus


def train_on_tatoeba(name: str, cell: str, d_h: int, steps: int, learning_rate: float) -> None:
    """Train one word model: windows of 32 words of the sentences laid end to end, 32 windows a step."""
    corpus = load_corpus("tatoeba-ja")
    tokenizer = WordTokenizer.train(corpus.train, specials=(UNKNOWN, START, END), pattern=WordTokenizer.BLANKS)
    sentences = {
        part: [tokenizer.encode(line, start=True, end=True) for line in getattr(corpus, part).splitlines()]
        for part in ("train", "validation", "test")
    }
    arguments = {"vocab_size": tokenizer.vocab_size, "d_x": 128, "d_h": d_h, "cell": cell, "dropout": 0.2}
    train(
        name,
        arguments,
        lambda: RecurrentLanguageModel(**arguments | {"cell": CELLS[cell]}),
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
