"""Train the attention translator: `python -m recipes.attention_tatoeba` (about 30 CPU-minutes)."""

from recipes.translation import train_recurrent

if __name__ == "__main__":
    train_recurrent("attention-tatoeba", "AttentionDecoder", d_h=256, steps=8600, learning_rate=2e-3, dropout=0.3)
