"""A larger Transformer, trained longer: `python -m recipes.transformer_tatoeba_long` (about 60 CPU-minutes).

Chapter 10: the best translator of at most 10 MB, beyond the comparison at equal compute. It reads every pair about
fifteen times and so needs more dropout.
"""

from recipes.translation import train_transformer

if __name__ == "__main__":
    train_transformer("transformer-tatoeba-long", d_model=256, d_ff=512, steps=9000, learning_rate=1e-3, dropout=0.2)
