"""Where training starts from: the first values of a model's weights.

Chapters 11 and 13; the Transformer of chapter 09 has Xavier's.
"""

from torch import nn


def start_small(part: nn.Module) -> None:
    """BERT's and GPT-2's start: matrices drawn with standard deviation 0.02, biases 0. For `model.apply`."""
    if isinstance(part, nn.Linear | nn.Embedding):
        nn.init.normal_(part.weight, std=0.02)
    if isinstance(part, nn.Linear) and part.bias is not None:
        nn.init.zeros_(part.bias)
