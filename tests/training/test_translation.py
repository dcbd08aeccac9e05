"""Batches of pairs of similar length, and a loss that padding does not enter.

Chapters 04 and 05.
"""

import numpy as np
import pytest
import torch

from tests.one_line import one_line_error
from transformer_lib.decoding import greedy
from transformer_lib.models import AttentionDecoder, Decoder, Seq2Seq
from transformer_lib.parts.recurrent import GRUCell, LSTMCell
from transformer_lib.training import batches_by_length, fit, padded, translation_loss

PAIRS = [([3 + i % 5] * (1 + i % 7), [1, *[4 + i % 3] * (1 + (3 * i) % 5), 2]) for i in range(237)]


def rows_of(batch):
    return [tuple(tuple(i for i in row.tolist() if i != 0) for row in pair) for pair in zip(*batch)]


def test_padded_fills_up_on_the_right():
    assert padded([[5], [6, 7, 8]], 9).tolist() == [[5, 9, 9], [6, 7, 8]]
    assert padded([[5, 6]], 9).tolist() == [[5, 6]] and padded([[], [5]], 0).tolist() == [[0], [5]]
    for kind in (list, tuple, np.array, torch.tensor):
        rows = padded([kind([5]), kind([6, 7])], 9)
        assert rows.tolist() == [[5, 9], [6, 7]] and rows.dtype == torch.int64
    with one_line_error("rows: expected at least one row"):
        padded([], 0)


def test_an_epoch_reads_every_pair_once_and_the_next_one_in_another_order():
    batches = batches_by_length(PAIRS, 16, 0, seed=3)
    epochs = [[row for step in range(start, start + 15) for row in rows_of(batches(step))] for start in (0, 15)]
    everything = sorted((tuple(a), tuple(b)) for a, b in PAIRS)
    assert sorted(epochs[0]) == sorted(epochs[1]) == everything
    assert epochs[0] != epochs[1]


def test_a_batch_depends_on_seed_and_step_alone():
    one, two = batches_by_length(PAIRS, 16, 0, seed=3), batches_by_length(PAIRS, 16, 0, seed=3)
    [two(step) for step in range(40)]
    assert rows_of(one(7)) == rows_of(two(7)) and rows_of(one(7)) != rows_of(one(8))
    assert rows_of(one(7)) != rows_of(batches_by_length(PAIRS, 16, 0, seed=4)(7))


def test_an_epoch_of_many_pools_reads_every_pair_once():
    """50 batches are sorted by length together; here there are 101, the last of one pair."""
    pairs = [([i], [1, i]) for i in range(2, 203)]
    batches = batches_by_length(pairs, 2, 0)
    for start in (0, 101):
        read = [row for step in range(start, start + 101) for row in rows_of(batches(step))]
        assert sorted(read) == [((i,), (1, i)) for i in range(2, 203)]


def test_within_a_pool_of_50_batches_the_lengths_are_sorted():
    pairs = [([3] * (1 + i % 100), [1, 2]) for i in range(200)]
    batches = batches_by_length(pairs, 2, 0)
    lengths = [[int((row != 0).sum()) for row in batches(step)[0]] for step in range(100)]
    wide = [pair for pair in lengths if abs(pair[0] - pair[1]) > 8]
    assert len(wide) == 0  # 100 of 200 pairs, sorted: neighbours lie close together
    assert len({tuple(sorted(pair)) for pair in lengths}) > 60  # but not all of one length always meet


def test_the_seed_is_0_unless_said_otherwise_and_a_batch_may_be_one_pair():
    one, two = batches_by_length(PAIRS, 1, 0), batches_by_length(PAIRS, 1, 0, seed=0)
    assert [rows_of(one(step)) for step in range(9)] == [rows_of(two(step)) for step in range(9)]
    assert len(one(0)[0]) == 1
    assert rows_of(batches_by_length(PAIRS[:1], 4, 0)(3)) == [tuple(map(tuple, PAIRS[0]))]


def padding_of(batches):
    return sum(int((ids == 0).sum()) for batch in batches for ids in batch)


def test_similar_lengths_go_together():
    batches = batches_by_length(PAIRS, 16, 0)
    by_chance = [
        tuple(padded([pair[side] for pair in PAIRS[i : i + 16]], 0) for side in (0, 1)) for i in range(0, 237, 16)
    ]
    assert padding_of(batches(step) for step in range(15)) < 0.4 * padding_of(by_chance)


def small_model():
    torch.manual_seed(0)
    return Seq2Seq(10, 4, 6).double()


def test_the_loss_is_the_mean_over_real_tokens_whatever_the_padding():
    model = small_model()
    pairs = [([3, 4], [1, 5, 2]), ([6, 7, 8], [1, 5, 6, 7, 8, 2])]
    batch = tuple(padded([pair[side] for pair in pairs], 0) for side in (0, 1))
    alone = [translation_loss(model, tuple(torch.tensor([ids]) for ids in pair)) for pair in pairs]
    torch.testing.assert_close(translation_loss(model, batch), (2 * alone[0] + 5 * alone[1]) / 7)


def test_training_goes_on_after_a_stop_as_if_nothing_had_been(tmp_path):
    results = []
    for stops in ([12], [5, 12]):
        model = small_model()
        optimizer = torch.optim.Adam(model.parameters(), 0.01)
        for steps in stops:
            file = tmp_path / f"{len(stops)}.safetensors"
            fit(model, batches_by_length(PAIRS, 8, 0), steps, optimizer, loss=translation_loss, checkpoint=file)
        results.append(torch.cat([p.detach().flatten() for p in model.parameters()]))
    assert torch.equal(*results)


class Killed(BaseException):
    """In place of a signal."""


@pytest.mark.parametrize("decoder", [Decoder, AttentionDecoder])
@pytest.mark.parametrize("killed_at", [0, 3, 4, 15, 18])
def test_a_run_killed_anywhere_ends_as_an_unbroken_one(tmp_path, decoder, killed_at):
    """Over the border between two epochs (15 steps) too, and with random numbers drawn for dropout."""

    def train(path, batches):
        torch.manual_seed(0)
        model = Seq2Seq(10, 4, 6, decoder, LSTMCell, dropout=0.3).double()
        history = fit(
            model,
            batches,
            20,
            torch.optim.AdamW(model.parameters(), 0.01, weight_decay=0.01),
            loss=translation_loss,
            schedule=lambda step: 1 / (1 + step),
            clip=0.5,
            evaluate=lambda m: translation_loss(m, check(0)),
            every=4,
            checkpoint=path,
        )
        return torch.cat([p.detach().flatten() for p in model.parameters()]), history

    def dies(step):
        if step == killed_at:
            raise Killed
        return batches_by_length(PAIRS, 16, 0)(step)

    check = batches_by_length(PAIRS, 50, 0, seed=1)
    whole, expected = train(tmp_path / "whole.safetensors", batches_by_length(PAIRS, 16, 0))
    with pytest.raises(Killed):
        train(tmp_path / "killed.safetensors", dies)
    torch.manual_seed(12345)  # a new process starts anywhere
    weights, history = train(tmp_path / "killed.safetensors", batches_by_length(PAIRS, 16, 0))
    assert torch.equal(weights, whole)
    assert history.loss == expected.loss and history.evaluations == expected.evaluations
    assert history.gradient_norm == expected.gradient_norm


def test_in_training_each_process_weighs_its_share_by_its_tokens(monkeypatch):
    """Two shares of 2 and 5 target tokens: the mean of the two losses is that of the whole batch."""
    model = small_model()
    pairs = [([3, 4], [1, 5, 2]), ([6, 7, 8], [1, 5, 6, 7, 8, 2])]
    whole = translation_loss(model, tuple(padded([pair[side] for pair in pairs], 0) for side in (0, 1)))
    shares = [tuple(torch.tensor([ids]) for ids in pair) for pair in pairs]
    plain = [translation_loss(model, share) for share in shares]
    monkeypatch.setattr("transformer_lib.training.translation.average", lambda n: torch.full_like(n, 7 / 2))
    torch.testing.assert_close(sum(translation_loss(model, share) for share in shares) / 2, whole)
    with torch.no_grad():  # no training step: every process reads the same whole batch
        for share, loss in zip(shares, plain):
            torch.testing.assert_close(translation_loss(model, share), loss)


@pytest.mark.parametrize("target", [[[1, 0, 0], [1, 0, 0]], [[1], [1]]])
def test_targets_without_a_token_to_learn_are_refused(target):
    with one_line_error("target: expected a token after the start token"):
        translation_loss(small_model(), (torch.tensor([[3], [4]]), torch.tensor(target)))


def test_a_single_token_is_enough_to_learn_from():
    model = small_model()
    loss = translation_loss(model, (torch.tensor([[3, 4]]), torch.tensor([[1, 5]])))
    torch.testing.assert_close(loss, -model.log_probs(torch.tensor([[3, 4]]), torch.tensor([[1]]))[0, 0, 5])


def test_one_target_without_a_token_does_not_spoil_the_others():
    model = small_model()
    batch = torch.tensor([[3, 4], [5, 6]]), torch.tensor([[1, 5, 2], [1, 0, 0]])
    expected = translation_loss(model, (torch.tensor([[3, 4]]), torch.tensor([[1, 5, 2]])))
    torch.testing.assert_close(translation_loss(model, batch), expected)


def test_a_translator_learns_to_copy():
    """What it reads is what it says."""
    chance = torch.Generator().manual_seed(0)
    pairs = []
    for _ in range(300):
        ids = torch.randint(3, 8, (int(torch.randint(1, 4, (), generator=chance)),), generator=chance).tolist()
        pairs.append((ids, [1, *ids, 2]))
    torch.manual_seed(0)
    model = Seq2Seq(8, 12, 24, cell=GRUCell)
    history = fit(
        model,
        batches_by_length(pairs, 32, 0),
        150,
        torch.optim.Adam(model.parameters(), 0.01),
        loss=translation_loss,
        clip=1.0,
    )
    assert history.loss[-1] < 0.1 * history.loss[0]
    assert greedy(model, torch.tensor([[5, 3, 7], [4, 6, 0]]), 6) == [[5, 3, 7], [4, 6]]


@pytest.mark.parametrize(("pairs", "size", "message"), [([], 4, "pairs: expected"), (PAIRS, 0, "batch_size: expected")])
def test_bad_input_is_refused(pairs, size, message):
    with one_line_error(message):
        batches_by_length(pairs, size, 0)


def test_the_source_may_have_a_padding_of_its_own():
    pairs = [([4, 5, 6], [1, 2]), ([7], [1, 8, 2])]
    source, target = batches_by_length(pairs, 2, 0, source_pad_id=9)(0)
    assert sorted(source.tolist()) == [[4, 5, 6], [7, 9, 9]] and sorted(target.tolist()) == [[1, 2, 0], [1, 8, 2]]
    assert sorted(batches_by_length(pairs, 2, 3, source_pad_id=0)(0)[0].tolist()) == [[4, 5, 6], [7, 0, 0]]
    assert sorted(batches_by_length(pairs, 2, 3)(0)[0].tolist()) == [[4, 5, 6], [7, 3, 3]]
