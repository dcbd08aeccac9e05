"""What BERT is given to guess: masked tokens, and whether one text follows another.

Chapter 11.
"""

from collections.abc import Sequence
from typing import TypeVar

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from ..checks import require

Text = TypeVar("Text")
NOT_ASKED = -100


def mask_tokens(
    ids: Int[Tensor, "*batch n"],
    vocab_size: int,
    mask_id: int,
    special_ids: Sequence[int],
    generator: torch.Generator | None = None,
    share: float = 0.15,
) -> tuple[Int[Tensor, "*batch n"], Int[Tensor, "*batch n"]]:
    """What the model reads, and what it is to guess: the original id where it is asked, -100 elsewhere.

    Each token that is not special is chosen with probability `share`. Of the chosen, 80 % become [MASK] (mask_id),
    10 % a random token that is not special, and 10 % stay as they are; all of them are asked. -100 is what losses leave
    out, torch's and `label_smoothed_cross_entropy`.
    Source: Devlin et al. (2019), 3.1 and appendix A.1.
    """
    require(0 < share <= 1, f"share: expected above 0 and at most 1, got {share}")
    require(mask_id in special_ids, f"special_ids: expected the mask's id {mask_id} among them, got {special_ids}")
    ordinary = torch.tensor([i for i in range(vocab_size) if i not in set(special_ids)])
    require(len(ordinary) > 0, f"special_ids: expected ordinary tokens besides, got all {vocab_size}")
    chosen = (torch.rand(ids.shape, generator=generator) < share) & ~torch.isin(ids, torch.tensor(special_ids))
    lot = torch.rand(ids.shape, generator=generator)
    random = ordinary[torch.randint(len(ordinary), ids.shape, generator=generator)]
    given = ids.where(~(chosen & (lot < 0.8)), mask_id)
    given = given.where(~(chosen & (lot >= 0.8) & (lot < 0.9)), random)
    return given, ids.where(chosen, NOT_ASKED)


def next_sentence_pairs(documents: Sequence[Sequence[Text]], seed: int = 0) -> list[tuple[Text, Text, int]]:
    """(A, B, 0) where B follows A in its document, (A, B, 1) where B is drawn from another document.

    Every sentence but a document's last is A once; half of the pairs, drawn at random, are true. A text counts as what
    it says: a B that happens to be A's true neighbour is drawn again. Source: Devlin et al. (2019), 3.1.
    """
    full = [document for document in documents if len(document) > 0]
    require(len(full) >= 2, f"documents: expected at least 2 with sentences in them, got {len(full)}")
    chance = np.random.default_rng(seed)
    places = [(d, i) for d, document in enumerate(full) for i in range(len(document) - 1)]
    require(len(places) > 0, "documents: expected one with at least 2 sentences, got none")
    true = set(chance.permutation(len(places))[: -(-len(places) // 2)].tolist())
    pairs = []
    for k, (d, i) in enumerate(places):
        if k in true:
            pairs.append((full[d][i], full[d][i + 1], 0))
            continue
        for _ in range(100):
            other = (d + 1 + int(chance.integers(len(full) - 1))) % len(full)
            B = full[other][int(chance.integers(len(full[other])))]
            if B != full[d][i + 1]:
                break
        else:
            raise ValueError("documents: expected different texts, got the same sentence everywhere")
        pairs.append((full[d][i], B, 1))
    return pairs
