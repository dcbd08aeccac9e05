"""Train the translator that hears c at every step: `python -m recipes.context_tatoeba` (about 30 CPU-minutes)."""

from recipes.translation import train_recurrent

if __name__ == "__main__":
    train_recurrent("context-tatoeba", "ContextDecoder", d_h=284, steps=9600, learning_rate=2e-3, dropout=0.3)
