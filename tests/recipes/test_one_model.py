"""Training one model to keep: what the first process writes, and what the others leave alone."""

import argparse
import json

import pytest
import torch

from recipes import one_model
from recipes.one_model import curve, train_and_keep
from transformer_lib.models import GPT, load_trained
from transformer_lib.text import CharTokenizer
from transformer_lib.training import History, windows


def run(folder):
    torch.manual_seed(0)
    tokenizer = CharTokenizer(list("abcdef"))
    arguments = {"vocab_size": 6, "longest": 8, "d_model": 8, "heads": 2, "layers": 1}
    model = GPT(**arguments)
    train_and_keep(
        "small",
        argparse.Namespace(folder=folder, steps=4),
        model,
        tokenizer,
        {"arguments": arguments, "training": {"steps": 4}},
        windows(torch.arange(60) % 6, 8, 2),
        torch.optim.SGD(model.parameters(), lr=0.1),
        lambda step: 1.0,
        lambda model: {"one": 1.0, "two": 2.0},
        2,
        lambda model, history: {"figures": {"loss": history.loss[-1]}, "curve": curve(history, "numbers")},
    )
    return model


def test_what_is_measured_is_what_is_kept(tmp_path, capsys):
    model = run(tmp_path)
    kept, _, card = load_trained("small", tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"small.json", "small.safetensors", "small.tokenizer.json"}
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), kept.parameters(), strict=True))
    assert card["curve"] == {"what": "numbers", "step": [2, 4], "one": [1.0, 1.0], "two": [2.0, 2.0]}
    assert card["parameters"] == sum(p.numel() for p in model.parameters()) and "small" in capsys.readouterr().out


@pytest.mark.parametrize("rank", [1, 3])
def test_other_processes_than_the_first_write_and_remove_nothing(tmp_path, monkeypatch, rank):
    run(tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    (tmp_path / "small.checkpoint.safetensors").write_bytes(b"the first one's")
    monkeypatch.setattr(one_model, "process_rank", lambda: rank)
    monkeypatch.setattr(one_model, "fit", lambda *given, **named: History([0.0]))
    run(tmp_path)
    after = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert after == before | {"small.checkpoint.safetensors": b"the first one's"}


def test_a_curve_of_single_numbers_has_a_name():
    history = History(evaluations=[(1, 0.123456789), (2, 0.5)])
    assert json.dumps(curve(history, "x", "bits")) == '{"what": "x", "step": [1, 2], "bits": [0.12346, 0.5]}'
