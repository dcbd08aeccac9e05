"""Train the Japanese word LSTM: `python -m recipes.lstm_tatoeba_words` (about 8 CPU-minutes)."""

from recipes.tatoeba_words import train_on_tatoeba
from transformer_lib.models import RecurrentLanguageModel

if __name__ == "__main__":
    arguments = {"d_x": 128, "d_h": 160, "cell": "LSTMCell"}
    train_on_tatoeba("lstm-tatoeba-words", RecurrentLanguageModel, arguments, steps=2000, learning_rate=4e-3)
