"""Train the ladder's GRU: `python -m recipes.gru_shakespeare` (about 12 CPU-minutes)."""

from recipes.shakespeare_characters import train_on_shakespeare

if __name__ == "__main__":
    train_on_shakespeare("gru-shakespeare", "GRUCell", d_h=300, steps=3500, learning_rate=6e-3)
