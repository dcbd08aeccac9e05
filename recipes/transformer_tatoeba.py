"""Train the Transformer that translates: `python -m recipes.transformer_tatoeba` (about 30 CPU-minutes).

Chapter 10, beside the GRU translators of chapters 04 and 05: the same pairs, vocabulary, batches and compute, and as
many parameters.
"""

from recipes.translation import train_transformer

if __name__ == "__main__":
    train_transformer("transformer-tatoeba", d_model=160, d_ff=640, steps=6000, learning_rate=1.5e-3, dropout=0.1)
