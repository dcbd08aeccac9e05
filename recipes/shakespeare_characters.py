"""What the recipes of the ladder share: characters of Shakespeare's plays, the same steps for every cell's settings.

Chapters 02 and 03: RNN, LSTM and GRU of about the same size, about the same CPU-seconds, the same held-out plays.
"""

import torch

from recipes.language_model import train
from transformer_lib.models import RecurrentLanguageModel
from transformer_lib.models.trained import CELLS
from transformer_lib.text import CharTokenizer, load_corpus


def train_on_shakespeare(name: str, cell: str, d_h: int, steps: int, learning_rate: float) -> None:
    """Train one rung of the ladder: windows of 128 characters, 32 of them a step."""
    corpus = load_corpus("shakespeare")
    tokenizer = CharTokenizer.train(corpus.train)
    ids = {part: torch.tensor(tokenizer.encode(getattr(corpus, part))) for part in ("train", "validation", "test")}
    arguments = {"vocab_size": tokenizer.vocab_size, "d_x": 64, "d_h": d_h, "cell": cell}
    train(
        name,
        arguments,
        lambda: RecurrentLanguageModel(**arguments | {"cell": CELLS[cell]}),
        tokenizer,
        ids["train"],
        ids["validation"],
        ids["test"],
        {
            "data": "shakespeare, characters",
            "held_out": "whole plays; the state is carried over the whole held-out text",
        },
        steps=steps,
        learning_rate=learning_rate,
        length=128,
        batch_size=32,
    )
