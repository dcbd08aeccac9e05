"""Masking and pairs: the shares, what is never touched, where negatives come from.

Chapter 11.
"""

from collections import Counter
from functools import partial

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.one_line import one_line_error
from transformer_lib.models import Bert, PretrainingHeads
from transformer_lib.training import label_smoothed_cross_entropy, mask_tokens, next_sentence_pairs

SPECIAL = [0, 1, 2, 3, 4]  # the last is [MASK]


def masked(ids, seed=0, vocab_size=50, **named):
    return mask_tokens(ids, vocab_size, 4, SPECIAL, torch.Generator().manual_seed(seed), **named)


def test_the_shares_over_a_hundred_thousand_tokens():
    ids = torch.randint(5, 50, (100, 1000), generator=torch.Generator().manual_seed(1))
    given_ids, targets = masked(ids)
    asked = targets != -100
    assert asked.double().mean() == pytest.approx(0.15, abs=0.005)
    assert (targets[asked] == ids[asked]).all() and (given_ids[~asked] == ids[~asked]).all()
    assert (given_ids[asked] == 4).double().mean() == pytest.approx(0.8, abs=0.015)
    stays = (given_ids[asked] == ids[asked]).double().mean()
    assert stays == pytest.approx(0.1 + 0.1 / 45, abs=0.01)  # a random token may be the same one
    drawn = given_ids[asked & (given_ids != 4) & (given_ids != ids)]
    assert set(drawn.tolist()) == set(range(5, 50))


@given(
    rows=st.lists(st.lists(st.integers(0, 11), min_size=6, max_size=6), min_size=1, max_size=4),
    share=st.floats(0.01, 1), seed=st.integers(0, 2**31),
)  # fmt: skip
def test_special_tokens_are_never_chosen_and_never_drawn(rows, share, seed):
    ids = torch.tensor(rows)
    before = ids.clone()
    given_ids, targets = masked(ids, seed, 12, share=share)
    special = torch.isin(ids, torch.tensor(SPECIAL))
    assert (targets[special] == -100).all() and (given_ids[special] == ids[special]).all()
    assert (given_ids[~special] >= 4).all() and (given_ids < 12).all() and torch.equal(ids, before)
    again = masked(ids, seed, 12, share=share)
    assert torch.equal(again[0], given_ids) and torch.equal(again[1], targets)
    if share == 1:
        assert (targets[~special] != -100).all()


def flat_nll_loss(log_probs, targets):
    return torch.nn.functional.nll_loss(log_probs.flatten(0, 1), targets.flatten())


def test_the_loss_counts_what_is_asked_and_nothing_else():
    log_probs = torch.log_softmax(torch.randn(2, 3, 5, generator=torch.Generator().manual_seed(0)), dim=-1)
    targets = torch.tensor([[-100, 2, -100], [4, -100, -100]])
    expected = -(log_probs[0, 1, 2] + log_probs[1, 0, 4]) / 2
    for loss in (partial(label_smoothed_cross_entropy, epsilon=0.0), flat_nll_loss):
        torch.testing.assert_close(loss(log_probs, targets), expected)


def test_gradients_reach_every_embedding_but_only_from_what_is_asked():
    torch.manual_seed(0)
    heads = PretrainingHeads(Bert(12, 8, 2, 1, 16, 6, 0.0))
    ids = torch.tensor([[1, 5, 4, 7, 2]])
    words, _ = heads(ids)
    flat_nll_loss(words, torch.tensor([[-100, -100, 6, -100, -100]])).backward()
    assert (heads.bert.positions.rows.grad[:5].abs().sum(-1) > 0).all()
    assert (heads.bert.positions.rows.grad[5] == 0).all() and heads.next.weight.grad is None
    assert (heads.bert.embedding.weight.grad[6] != 0).any()


def test_pairs_by_hand():
    documents = [["a1", "a2", "a3"], ["b1"], ["c1", "c2"]]
    pairs = next_sentence_pairs(documents)
    assert sorted(A for A, _, _ in pairs) == ["a1", "a2", "c1"] and Counter(y for *_, y in pairs) == {0: 2, 1: 1}
    for A, B, label in pairs:
        follows = any(document[i : i + 2] == [A, B] for document in documents for i in range(2))
        assert follows == (label == 0) and (A[0] == B[0]) == (label == 0)


@given(sizes=st.lists(st.integers(0, 6), min_size=2, max_size=5), seed=st.integers(0, 1000))
def test_half_follow_and_half_come_from_another_document(sizes, seed):
    documents = [[f"{d}.{i}" for i in range(size)] for d, size in enumerate(sizes)]
    count = sum(max(size - 1, 0) for size in sizes)
    if sum(size > 0 for size in sizes) < 2 or count == 0:
        with one_line_error("documents: expected"):
            next_sentence_pairs(documents, seed)
        return
    pairs = next_sentence_pairs(documents, seed)
    assert len(pairs) == count and 0 <= 2 * sum(y == 0 for *_, y in pairs) - count <= 1
    for A, B, label in pairs:
        document, i = A.split(".")
        assert B == f"{document}.{int(i) + 1}" if label == 0 else B.split(".")[0] != document
    assert pairs == next_sentence_pairs(documents, seed)


def test_a_negative_is_no_true_neighbour_in_disguise():
    documents = [["a", "same"], ["same", "same", "other"]]
    for seed in range(30):
        assert all(B != "same" for A, B, label in next_sentence_pairs(documents, seed) if label and A == "a")
    with one_line_error("documents: expected different texts, got the same sentence everywhere"):
        for seed in range(10):
            next_sentence_pairs([["x", "x", "x"], ["x", "x"]], seed)


def test_what_cannot_be():
    ids = torch.tensor([5, 6])
    for share in (0, 1.5):
        with one_line_error(f"share: expected above 0 and at most 1, got {share}"):
            masked(ids, share=share)
    with one_line_error("special_ids: expected the mask's id 4 among them, got [0, 1]"):
        mask_tokens(ids, 50, 4, [0, 1])
    with one_line_error("special_ids: expected ordinary tokens besides, got all 5"):
        masked(ids, vocab_size=5)
