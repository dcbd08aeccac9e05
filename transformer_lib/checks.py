"""One-line checks of what comes in: what was expected, what came, what to do.

Every chapter's functions begin with a call of these.
"""

from collections.abc import Sequence

import torch
from torch import Tensor


def require(condition: bool, message: str) -> None:
    """Raise ValueError(message) unless the condition holds; the message is one line."""
    if not condition:
        raise ValueError(message)


def as_ids(ids: Tensor | Sequence[int], vocab_size: int, name: str = "ids") -> Tensor:
    """Token ids as a LongTensor, (n,) or (batch, n), each checked to lie in 0 .. vocab_size - 1."""
    try:
        tensor = torch.as_tensor(ids)
    except (TypeError, ValueError, RuntimeError) as error:
        got = " ".join(repr(ids).split())[:60]  # one line, whatever it was
        raise ValueError(f"{name}: expected whole numbers, all rows of one length, got {got}") from error
    if tensor.numel() == 0:
        tensor = tensor.long()
    require(
        not tensor.is_floating_point() and not tensor.is_complex() and tensor.dtype != torch.bool,
        f"{name}: expected whole numbers (token ids), got {tensor.dtype}; encode the text first",
    )
    require(tensor.dim() in (1, 2), f"{name}: expected shape (n,) or (batch, n), got {tuple(tensor.shape)}")
    if tensor.numel() > 0:
        low, high = int(tensor.min()), int(tensor.max())
        require(
            0 <= low and high < vocab_size,
            f"{name}: expected ids from 0 to {vocab_size - 1}, got {low if low < 0 else high}; "
            "was the text encoded with this model's tokenizer?",
        )
    return tensor.long()


def as_batch(ids: Tensor, vocab_size: int, name: str, rows: int | None = None) -> Tensor:
    """Ids (batch, n), in as many rows as the source has."""
    ids = as_ids(ids, vocab_size, name)
    require(ids.dim() == 2, f"{name}: expected a batch (batch, n), got shape {tuple(ids.shape)}; one text is ids[None]")
    require(rows in (None, len(ids)), f"{name}: expected a row for each of {rows} sources, got {len(ids)}")
    require(name == "source" or ids.shape[1] > 0, f"{name}: expected at least one token in each row, got none")
    return ids


def are_several(ids: Tensor | Sequence) -> bool:
    """Whether these are several texts (sequences, or the rows of a tensor) and not one text's ids."""
    return len(ids) > 0 and (isinstance(ids[0], Sequence) or getattr(ids[0], "ndim", 0) > 0)


def require_width(name: str, x: Tensor, width: int) -> None:
    """Raise ValueError unless the last axis of x has this width."""
    require(
        x.dim() > 0 and x.shape[-1] == width, f"{name}: expected a last axis of {width}, got shape {tuple(x.shape)}"
    )


def require_specials(specials: tuple[int, int, int], vocab_size: int) -> None:
    """One line of error unless these are three different ids of the vocabulary."""
    require(
        len(set(specials)) == 3 and 0 <= min(specials) and max(specials) < vocab_size,
        f"specials: expected three different ids below {vocab_size} (padding, start, end), got {specials}",
    )
