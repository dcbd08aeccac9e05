"""Train the ladder's LSTM: `python -m recipes.lstm_shakespeare` (about 12 CPU-minutes)."""

from recipes.shakespeare_characters import train_on_shakespeare

if __name__ == "__main__":
    train_on_shakespeare("lstm-shakespeare", "LSTMCell", d_h=256, steps=3500, learning_rate=6e-3)
