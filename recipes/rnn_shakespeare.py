"""Train the ladder's RNN: `python -m recipes.rnn_shakespeare` (about 12 CPU-minutes)."""

from recipes.shakespeare_characters import train_on_shakespeare

if __name__ == "__main__":
    train_on_shakespeare("rnn-shakespeare", "RNNCell", d_h=544, steps=5000, learning_rate=6e-3)
