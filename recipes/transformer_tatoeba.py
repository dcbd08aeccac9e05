"""Train the Transformer that translates: `python -m recipes.transformer_tatoeba` (about 30 CPU-minutes).

Chapter 10, beside the GRU translators of chapters 04 and 05: the same pairs, vocabulary, batches and compute.
"""

from recipes.translation import train_transformer

if __name__ == "__main__":
    train_transformer("transformer-tatoeba", steps=4500, dropout=0.1)
