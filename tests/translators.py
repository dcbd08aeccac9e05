"""What must hold for every sequence-to-sequence model, whatever it is made of."""

import torch
from hypothesis import strategies as st

from transformer_lib.training import padded, translation_loss

PAIR_LENGTHS = st.lists(st.tuples(st.integers(1, 6), st.integers(1, 5)), min_size=1, max_size=4)


def same_loss_alone_and_together(model, lengths, more, seed, rtol, atol):
    """Loss and gradients of several pairs: the mean over all their tokens, in one padded batch or each in its own."""
    chance = torch.Generator().manual_seed(seed)
    pairs = [tuple(torch.randint(3, 12, (n,), generator=chance).tolist() for n in (m, n + 1)) for m, n in lengths]
    batch = tuple(
        torch.nn.functional.pad(padded([pair[side] for pair in pairs], model.pad_id), (0, more)) for side in (0, 1)
    )
    loss = translation_loss(model, batch)
    together = torch.autograd.grad(loss, list(model.parameters()))
    tokens = [len(target) - 1 for _, target in pairs]
    alone = sum(
        n * translation_loss(model, tuple(torch.tensor([ids]) for ids in pair)) for n, pair in zip(tokens, pairs)
    ) / sum(tokens)
    torch.testing.assert_close(loss, alone)
    for one, other in zip(together, torch.autograd.grad(alone, list(model.parameters())), strict=True):
        torch.testing.assert_close(one, other, rtol=rtol, atol=atol)
