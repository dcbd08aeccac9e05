"""Recipes killed and started again make the same files: a translation in small, and many small runs behind one card.

Chapters 04 and 05.
"""

import json
import sys

import pytest
import torch

from recipes import one_model, translation
from recipes.cards import Runs
from transformer_lib.models import load_trained
from transformer_lib.text import Corpus, load_corpus
from transformer_lib.training import batches_by_length, fit


class Killed(BaseException):
    """In place of a signal."""


@pytest.fixture
def small(monkeypatch):
    """A few pairs of every length, few tokens, and an evaluation every 4 steps."""
    whole = load_corpus("tatoeba")
    by_length = sorted(whole.test, key=lambda pair: len(pair.tokens))
    test = by_length[:: len(by_length) // 55] + by_length[-1:]
    corpus = Corpus("tatoeba", whole.train[:300], whole.validation[:50], tuple(test))
    monkeypatch.setattr(translation, "load_corpus", lambda name: corpus)
    monkeypatch.setattr(translation, "VOCABULARY", 320)
    monkeypatch.setattr(translation, "LONGEST", 6)
    monkeypatch.setattr(one_model, "fit", lambda *given, **named: fit(*given, **named | {"every": 4}))
    return corpus


def run(monkeypatch, folder, decoder):
    monkeypatch.setattr(sys, "argv", ["recipe", "--folder", str(folder), "--steps", "10"])
    if decoder == "DecoderLayer":
        translation.train_transformer("small", d_model=16, d_ff=32, steps=5000, learning_rate=0.01, dropout=0.2)
    else:
        translation.train_recurrent("small", decoder, d_h=12, steps=5000, learning_rate=0.01, dropout=0.2)
    card = json.loads((folder / "small.json").read_text(encoding="utf-8"))
    for own in ("training_cpu_seconds", "evaluation_cpu_seconds"):
        assert card.pop(own) >= 0
    return (folder / "small.safetensors").read_bytes(), card


@pytest.mark.slow
@pytest.mark.parametrize("decoder", ["Decoder", "AttentionDecoder", "DecoderLayer"])
def test_a_recipe_killed_and_started_again_makes_the_same_files(tmp_path, monkeypatch, capsys, small, decoder):
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    expected = run(monkeypatch, whole, decoder)

    def dying(pairs, batch_size, pad_id):
        batches = batches_by_length(pairs, batch_size, pad_id)

        def batch(step):
            if step == 6:
                raise Killed
            return batches(step)

        return batch if len(pairs) == 300 else batches

    monkeypatch.setattr(translation, "batches_by_length", dying)
    with pytest.raises(Killed):
        run(monkeypatch, killed, decoder)
    assert [path.name for path in killed.iterdir()] == ["small.checkpoint.safetensors"]
    monkeypatch.setattr(translation, "batches_by_length", batches_by_length)
    torch.manual_seed(12345)  # a new process starts anywhere
    assert run(monkeypatch, killed, decoder) == expected

    names = {"small.json", "small.safetensors", "small.tokenizer.json"}
    assert {path.name for path in killed.iterdir()} == names
    model, tokenizer, card = load_trained("small", killed)
    assert decoder in {type(part).__name__ for part in model.modules()} and tokenizer.vocab_size == 320
    assert card["figures"]["sentences"] == len(small.test) == sum(one["sentences"] for one in card["by_source_words"])
    assert 0 <= card["figures"]["bleu"] <= 100 and len(card["translations"]) == 50
    assert card["curve"]["step"] == [4, 8, 10]


def test_of_many_runs_only_the_missing_ones_are_run_again(tmp_path, capsys):
    calls = []

    def run(key, fails=False):
        calls.append(key)
        if fails:
            raise Killed
        return {"what": key, "cpu_seconds": 1.26}

    runs = Runs("small", tmp_path)
    assert runs.once("a", lambda: run("a")) == runs.once("a", lambda: run("a")) == {"what": "a", "cpu_seconds": 1.26}
    with pytest.raises(Killed):
        runs.once("b", lambda: run("b", fails=True))
    again = Runs("small", tmp_path)
    for key in "abc":
        again.once(key, lambda key=key: run(key))
    assert calls == ["a", "b", "b", "c"]
    again.finish({"task": "small", "runs": list(again.done.values())})
    assert [path.name for path in tmp_path.iterdir()] == ["small.json"]
    card = json.loads((tmp_path / "small.json").read_text(encoding="utf-8"))
    assert [one["what"] for one in card["runs"]] == ["a", "b", "c"] and card["cpu_seconds"] == 3.8
    assert "one thread" in card["machine"] and card["task"] == "small"
