"""Fine-tuning a GPT: the layouts, the loss L3, the scores of several rows, the runs behind the card; batch and rate.

Chapter 14.
"""

import json

import pytest
import torch
from torch import nn

from recipes import gpt_batch_and_rate, gpt_finetuning
from recipes.bert_tasks import Choice, Pair, Passage
from recipes.gpt_finetuning import (
    encoded,
    fine_tuning_loss,
    label_scores,
    layout,
    share_right,
    shared,
    shuffled,
    together,
)
from transformer_lib.models import GPT, GPTClassifier
from transformer_lib.text import WordPieceTokenizer
from transformer_lib.training import next_token_loss

PAD, START, BETWEEN, EXTRACT = 0, 2, 3, 4
TOKENIZER = WordPieceTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "cats", "like", "fish", "dogs"])


def classifier(classes, seed=0):
    torch.manual_seed(seed)
    return GPTClassifier(GPT(TOKENIZER.vocab_size, 64, 16, 2, 1), classes, EXTRACT).double().eval()


def test_each_task_has_its_layout():
    assert layout(Passage("cats like fish", 1), TOKENIZER) == [[START, 5, 6, 7, EXTRACT]]
    pair = Pair("cats", "like fish", 1)
    assert layout(pair, TOKENIZER, both_ways=False) == [[START, 5, BETWEEN, 6, 7, EXTRACT]]
    assert layout(pair, TOKENIZER)[1:] == [[START, 6, 7, BETWEEN, 5, EXTRACT]]
    choice = Choice("cats like", ("fish", "dogs", "cats", "like"), 2)
    assert layout(choice, TOKENIZER) == [[START, 5, 6, BETWEEN, token, EXTRACT] for token in (7, 8, 5, 6)]
    assert len(encoded("one way", [pair], TOKENIZER)[0][0]) == 1
    assert len(encoded("both ways", [pair], TOKENIZER)[0][0]) == 2


def test_rows_that_are_too_long_are_cut_before_their_marks():
    long = "cats " * 100
    (row,) = layout(Passage(long, 0), TOKENIZER)
    assert len(row) == 64 and row[-1] == EXTRACT
    for row in layout(Pair(long, long, 0), TOKENIZER):
        assert len(row) <= 64 and row[-1] == EXTRACT and row.count(BETWEEN) == 1


def test_both_orders_are_added_and_each_ending_is_scored_alone():
    model, pair = classifier(2), Pair("cats", "like fish dogs", 1)
    one, other = (model(torch.tensor([row]))[0] for row in layout(pair, TOKENIZER))
    turned = Pair(pair.second, pair.first, 1)
    for example in (pair, turned):
        ids, labels = together(encoded("both ways", [example], TOKENIZER))
        assert ids.shape == (1, 2, 7) and labels.tolist() == [1]
        assert torch.allclose(label_scores(model, ids)[0], one + other)
    chooser, choice = classifier(1), Choice("cats like", ("fish", "dogs dogs", "cats", "like"), 2)
    ids, _ = together(encoded("ending", [choice, choice], TOKENIZER))
    alone = torch.stack([chooser(torch.tensor([row]))[0][0, 0] for row in layout(choice, TOKENIZER)])
    assert torch.allclose(label_scores(chooser, ids)[0], alone.expand(2, 4))


def test_the_loss_is_the_labels_and_lambda_times_the_next_tokens():
    model = classifier(3)
    examples = encoded("author", [Passage("cats like fish", 0), Passage("dogs", 2)], TOKENIZER)
    batch = together(examples)
    scores, _ = label_scores(model, batch[0])
    of_labels = nn.functional.cross_entropy(scores, torch.tensor([0, 2]))
    assert torch.allclose(fine_tuning_loss(model, batch, 0), of_labels)
    both = [torch.tensor(rows) for rows, _ in examples]  # without any padding: 4 and 2 tokens to be guessed
    of_tokens = sum(next_token_loss(model.gpt, rows) * (rows.shape[1] - 1) for rows in both) / 6
    assert torch.allclose(fine_tuning_loss(model, batch, 0.5), of_labels + 0.5 * of_tokens)


def test_every_epoch_shows_every_example_once_in_another_order():
    examples = [([[START, 5, EXTRACT]], label) for label in range(6)]
    batch = shuffled(examples, 2, seed=0)
    epochs = [[label for step in range(3 * e, 3 * e + 3) for label in batch(step)[1].tolist()] for e in range(2)]
    assert sorted(epochs[0]) == sorted(epochs[1]) == list(range(6)) and epochs[0] != epochs[1]


def test_share_right_counts_labels():
    model = classifier(3)
    examples = encoded("author", [Passage(text, 0) for text in ("cats", "like fish", "dogs like")], TOKENIZER)
    said = [int(label_scores(model, together([one])[0])[0].argmax()) for one in examples]
    right = [(rows, label) for (rows, _), label in zip(examples, said, strict=True)]
    assert share_right(model, right) == 1 and share_right(model, [(rows, 3) for rows, _ in right], size=2) == 0


def test_words_in_common_are_counted_once_without_case():
    assert shared("The cat and the dog", "the DOG sat") == 2


def test_the_card_comes_when_all_runs_are_there(tmp_path, monkeypatch, capsys):
    calls = []

    def run(name, start, weight, seed, steps):
        calls.append(name)
        return {"layout": name, "start": start, "lambda": weight, "seed": seed, "accuracy": 0.5, "cpu_seconds": 1.0}

    for name, fake in (
        ("fine_tune", run),
        ("most_frequent", lambda task: 0.5),
        ("without_a_network", lambda task: 0.4),
    ):
        monkeypatch.setattr(gpt_finetuning, name, fake)
    gpt_finetuning.main(tmp_path, 3, ["author"])
    assert calls == ["author"] * 12 and not (tmp_path / "gpt-finetuning.json").exists()
    gpt_finetuning.main(tmp_path, 3, list(gpt_finetuning.LAYOUTS))
    card = json.loads((tmp_path / "gpt-finetuning.json").read_text(encoding="utf-8"))
    assert len(card["runs"]) == len(calls) == 48 and card["cpu_seconds"] == 48


def test_every_run_of_batch_and_rate_reads_as_many_windows():
    ids = {part: torch.arange(400) % 7 for part in ("train", "validation")}
    runs = [gpt_batch_and_rate.train_one(ids, 7, 8, batch, 1e-2, 64, seed=0) for batch in (4, 16)]
    assert [one["steps"] * one["batch"] for one in runs] == [64, 64]
    assert all(0 < one["loss"] < 2.2 for one in runs)


@pytest.mark.slow
def test_a_run_learns_what_one_word_tells(monkeypatch):
    examples = [Passage("cats like" if i % 2 else "dogs like", i % 2) for i in range(64)]
    monkeypatch.setattr(gpt_finetuning, "TASKS", {"author": lambda part, count: examples[:count]})
    gpt = GPT(TOKENIZER.vocab_size, 64, 16, 2, 1)
    monkeypatch.setattr(gpt_finetuning, "load_trained", lambda name: (gpt, TOKENIZER, {}))
    monkeypatch.setattr(gpt_finetuning, "TRAINED_ON", 64)
    before = {name: weight.clone() for name, weight in gpt.state_dict().items()}
    done = gpt_finetuning.fine_tune("author", "pre-trained", 0.5, 0, 60)
    assert done["accuracy"] == 1 and len(done["loss_every_10_steps"]) == 6
    assert all(torch.equal(before[name], weight) for name, weight in gpt.state_dict().items())  # a copy was trained
