"""Train a small GPT on Japanese words, whose heads chapter 07 looks into: `python -m recipes.gpt_tatoeba_words`.

About 8 CPU-minutes; as many parameters as the LSTM of chapter 03 on the same sentences.
"""

from recipes.tatoeba_words import train_on_tatoeba
from transformer_lib.models import GPT

if __name__ == "__main__":
    arguments = {"longest": 64, "d_model": 128, "heads": 4, "layers": 4, "positions": "LearnedPositions"}
    train_on_tatoeba("gpt-tatoeba-words", GPT, arguments, steps=2500, learning_rate=2e-3)
