"""From distributions to text: the generation loop, for anything that predicts a next token.

Chapter 01 defines `generate`; sampling rules and beam search join it in later chapters.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from .checks import as_ids, require
from .protocols import LanguageModel


@torch.no_grad()
def generate(
    model: LanguageModel,
    prefix: Tensor | Sequence[int],
    length: int,
    temperature: float = 1.0,
    generator: torch.Generator | None = None,
    stop: int | None = None,
) -> list[int]:
    r"""Predict a token, append it, predict again: the prefix and up to `length` tokens more.

    temperature T: the token is drawn from $P(w)^{1/T} / \sum_v P(v)^{1/T}$; 1 leaves the distribution as it is,
    0 always takes the most likely token.
    generator: makes the draw repeatable. stop: end after this token. The model reads every token
    once, its state is carried along. Source: the textbook's 7.1.3.
    """
    require(0 <= temperature < math.inf, f"temperature: expected a number from 0, got {temperature}")
    require(length >= 0, f"length: expected 0 or more tokens, got {length}")
    new = as_ids(prefix, model.vocab_size, "prefix")
    require(
        new.dim() == 1 and len(new) > 0,
        f"prefix: expected one text of at least one token, got shape {tuple(new.shape)}",
    )
    ids, state = new.tolist(), None
    for _ in range(length):
        log_probs, state = model.step(new, state)
        log_probs = log_probs[-1]
        require(
            bool(log_probs.max() > -torch.inf),
            "model: expected a distribution over the next token, got 0 for every token (a context never seen, "
            "without smoothing); choose a smoothing",
        )
        if temperature == 0:
            new = log_probs.argmax(dim=-1, keepdim=True)
        else:
            # The largest is 0 before it is divided: so it stays, however small the temperature.
            p = torch.softmax((log_probs.double() - log_probs.max()) / temperature, dim=-1)
            new = torch.multinomial(p, 1, generator=generator)
        ids.append(int(new))
        if ids[-1] == stop:
            break
    return ids
