"""A model of limited context on a text of any length.

Chapter 13: how a GPT that knows 256 positions is measured on a whole play, and writes one.
"""

from typing import Any

import torch
from torch import Tensor

from ..checks import as_ids, require
from ..protocols import LanguageModel


class Windowed(LanguageModel):
    """Reads on and on, never more than `window` tokens at once.

    The rule: when a window is full, the next one begins with the last window // 2 tokens, read again. So each token is
    predicted from at least window // 2 of those before it (where there are as many) and from at most window, however
    the text is cut into chunks. The state: the tokens of the window, and the model's own state after them.
    """

    def __init__(self, model: LanguageModel, window: int):
        require(window >= 2, f"window: expected at least 2 tokens, got {window}")
        self.model, self.window, self.vocab_size = model, window, model.vocab_size

    def step(self, ids: Tensor, state: tuple[Tensor, Any] | None = None) -> tuple[Tensor, tuple[Tensor, Any]]:
        """Log probabilities after each of the ids, (..., n, vocab_size), and the new state."""
        ids, parts = as_ids(ids, self.vocab_size), []
        read, inner = state or (ids[..., :0], None)
        while ids.shape[-1] > 0:
            if read.shape[-1] == self.window:
                read = read[..., self.window - self.window // 2 :]
                inner = self.model.step(read)[1]
            room = self.window - read.shape[-1]
            now, ids = ids[..., :room], ids[..., room:]
            log_probs, inner = self.model.step(now, inner)
            parts.append(log_probs)
            read = torch.cat([read, now], dim=-1)
        require(len(parts) > 0, "ids: expected at least one token, got none")
        return torch.cat(parts, dim=-2), (read, inner)
