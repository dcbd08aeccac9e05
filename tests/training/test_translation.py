"""Batches of pairs of similar length, and a loss that padding does not enter.

Chapters 04 and 05.
"""

import pytest
import torch

from tests.one_line import one_line_error
from transformer_lib.models import Seq2Seq
from transformer_lib.training import batches_by_length, fit, padded, translation_loss

PAIRS = [([3 + i % 5] * (1 + i % 7), [1, *[4 + i % 3] * (1 + (3 * i) % 5), 2]) for i in range(237)]


def rows_of(batch):
    return [tuple(tuple(i for i in row.tolist() if i != 0) for row in pair) for pair in zip(*batch)]


def test_padded_fills_up_on_the_right():
    assert padded([[5], [6, 7, 8]], 9).tolist() == [[5, 9, 9], [6, 7, 8]]
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


@pytest.mark.parametrize(("pairs", "size", "message"), [([], 4, "pairs: expected"), (PAIRS, 0, "batch_size: expected")])
def test_bad_input_is_refused(pairs, size, message):
    with one_line_error(message):
        batches_by_length(pairs, size, 0)
