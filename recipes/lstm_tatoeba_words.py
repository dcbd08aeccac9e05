"""Train the Japanese word LSTM: `python -m recipes.lstm_tatoeba_words` (about 8 CPU-minutes)."""

from recipes.tatoeba_words import train_on_tatoeba

if __name__ == "__main__":
    train_on_tatoeba("lstm-tatoeba-words", "LSTMCell", d_h=160, steps=2000, learning_rate=4e-3)
