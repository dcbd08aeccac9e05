"""Train the Japanese word RNN: `python -m recipes.rnn_tatoeba_words` (about 8 CPU-minutes)."""

from recipes.tatoeba_words import train_on_tatoeba
from transformer_lib.models import RecurrentLanguageModel

if __name__ == "__main__":
    arguments = {"d_x": 128, "d_h": 320, "cell": "RNNCell"}
    train_on_tatoeba("rnn-tatoeba-words", RecurrentLanguageModel, arguments, steps=2000, learning_rate=2e-3)
