"""One short script per trained model; each writes weights, tokenizer and card to data/models."""
