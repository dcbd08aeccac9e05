"""Train the plain sequence-to-sequence translator: `python -m recipes.seq2seq_tatoeba` (about 30 CPU-minutes)."""

from recipes.translation import train_recurrent

if __name__ == "__main__":
    train_recurrent("seq2seq-tatoeba", "Decoder", d_h=320, steps=10_300, learning_rate=2e-3, dropout=0.3)
