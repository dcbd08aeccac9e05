"""Train the Japanese word RNN: `python -m recipes.rnn_tatoeba_words` (about 8 CPU-minutes)."""

from recipes.tatoeba_words import train_on_tatoeba

if __name__ == "__main__":
    train_on_tatoeba("rnn-tatoeba-words", "RNNCell", d_h=320, steps=2000, learning_rate=2e-3)
