"""Trained models on disk: what was saved comes back, and what is missing, damaged or half-written is said in one line.

Chapter 02 onwards.
"""

import json
import math
import os
from hashlib import sha256

import pytest
import torch

from tests.one_line import one_line_error
from transformer_lib.models import (
    AttentionDecoder,
    ContextDecoder,
    Decoder,
    RecurrentLanguageModel,
    Seq2Seq,
    load_trained,
)
from transformer_lib.models.trained import ladder, load_card, save_trained
from transformer_lib.parts.recurrent import GRUCell, LSTMCell, RNNCell
from transformer_lib.text import CharTokenizer, WordTokenizer


@pytest.fixture(autouse=True)
def _the_courses_own_models_are_out_of_reach(tmp_path_factory, monkeypatch):
    """Not even a broken library may write among them."""
    monkeypatch.setattr("transformer_lib.models.trained.DATA", tmp_path_factory.mktemp("data"))


ARGUMENTS = {"vocab_size": 5, "d_x": 3, "d_h": 4}


def saved(folder, name="small", cell=GRUCell, seed=0, **extra):
    torch.manual_seed(seed)
    model = RecurrentLanguageModel(**ARGUMENTS, cell=cell, layers=2)
    card = {"arguments": ARGUMENTS | {"cell": cell.__name__, "layers": 2}, "bits_per_character": 1.5} | extra
    save_trained(name, model, CharTokenizer("abcde"), card, folder)
    return model


def same_weights(one, other):
    here, there = one.state_dict(), other.state_dict()
    return here.keys() == there.keys() and all(torch.equal(here[k], there[k].to(here[k].dtype)) for k in here)


@pytest.mark.parametrize("cell", [RNNCell, LSTMCell, GRUCell])
def test_what_was_saved_comes_back(tmp_path, cell):
    model = saved(tmp_path, cell=cell)
    loaded, tokenizer, card = load_trained("small", tmp_path)
    assert isinstance(loaded, RecurrentLanguageModel) and isinstance(loaded.cells[1], cell)
    assert same_weights(loaded, model) and not loaded.training
    assert isinstance(tokenizer, CharTokenizer) and tokenizer.tokens == list("abcde")
    assert card == {
        "model": "RecurrentLanguageModel",
        "sha256": sha256((tmp_path / "small.safetensors").read_bytes()).hexdigest(),
        "arguments": ARGUMENTS | {"cell": cell.__name__, "layers": 2},
        "bits_per_character": 1.5,
    }
    assert load_card("small", tmp_path) == card
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"small.json", "small.safetensors", "small.tokenizer.json"}


@pytest.mark.parametrize("decoder", [Decoder, ContextDecoder, AttentionDecoder])
def test_a_sequence_to_sequence_model_comes_back(tmp_path, decoder):
    model = Seq2Seq(5, 3, 4, decoder, LSTMCell)
    arguments = {"vocab_size": 5, "d_x": 3, "d_h": 4, "decoder": decoder.__name__, "cell": "LSTMCell"}
    save_trained("pairs", model, CharTokenizer("abcde"), {"arguments": arguments}, tmp_path)
    loaded = load_trained("pairs", tmp_path)[0]
    assert isinstance(loaded, Seq2Seq) and type(loaded.decoder) is decoder and same_weights(loaded, model)


def test_half_precision_takes_half_the_space(tmp_path):
    model = saved(tmp_path, "whole")
    arguments = {"arguments": load_card("whole", tmp_path)["arguments"]}
    save_trained("half", model, CharTokenizer("abcde"), arguments, tmp_path, torch.float16)
    loaded = load_trained("half", tmp_path)[0]
    assert next(loaded.parameters()).dtype == torch.get_default_dtype()
    assert same_weights(loaded, model.half().float())
    sizes = [(tmp_path / f"{name}.safetensors").stat().st_size for name in ("whole", "half")]
    assert sizes[1] < 0.75 * sizes[0]


def test_a_cell_need_not_be_named(tmp_path):
    torch.manual_seed(0)
    model = RecurrentLanguageModel(**ARGUMENTS)
    save_trained("plain", model, CharTokenizer("abcde"), {"arguments": ARGUMENTS}, tmp_path)
    assert same_weights(load_trained("plain", tmp_path)[0], model)


def test_weights_lie_in_float32_and_come_in_torchs_default_format(tmp_path):
    torch.set_default_dtype(torch.float64)
    model = saved(tmp_path)
    loaded = load_trained("small", tmp_path)[0]
    for ours, theirs in zip(loaded.parameters(), model.parameters(), strict=True):
        assert ours.dtype == torch.float64 and torch.equal(ours, theirs.float().double())
    torch.set_default_dtype(torch.float32)
    assert all(p.dtype == torch.float32 for p in load_trained("small", tmp_path)[0].parameters())


def test_a_word_tokenizer_comes_back_with_its_pattern(tmp_path):
    tokenizer = WordTokenizer(["猫", "が", "いる", "。", "<unk>"], pattern=WordTokenizer.BLANKS)
    save_trained("words", RecurrentLanguageModel(**ARGUMENTS), tokenizer, {"arguments": ARGUMENTS}, tmp_path)
    loaded = load_trained("words", tmp_path)[1]
    assert isinstance(loaded, WordTokenizer)
    assert loaded.pattern == WordTokenizer.BLANKS and loaded.tokens == tokenizer.tokens


def test_the_card_is_text_that_people_can_read(tmp_path):
    saved(tmp_path, data="シェイクスピア")
    content = (tmp_path / "small.json").read_bytes()
    assert content.decode("utf-8").startswith('{\n  "model": "RecurrentLanguageModel",\n  "sha256": "')
    assert "シェイクスピア" in content.decode("utf-8")
    assert content.endswith(b"}\n") and b"\r" not in content


def test_files_are_the_same_on_every_machine(tmp_path, as_on_windows):
    saved(tmp_path, data="シェイクスピア")
    assert b"\r" not in (tmp_path / "small.json").read_bytes()
    assert "シェイクスピア".encode() in (tmp_path / "small.json").read_bytes()
    assert load_card("small", tmp_path)["data"] == "シェイクスピア"


# ---- the ladder


def put_card(folder, name, bits, **more):
    card = {"figures": {"test_bits": bits}, "parameters": 1000, "training_cpu_seconds": 60.5} | more
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps(card), encoding="utf-8")


def test_a_rung_says_what_the_card_says(tmp_path):
    put_card(tmp_path, "gru-shakespeare", 2.0, parameters=357_000, training_cpu_seconds=1790.2)
    (rung,) = ladder(tmp_path)
    assert rung.pop("nats") == pytest.approx(2 * math.log(2), rel=1e-12)
    assert rung == {"name": "GRU", "parameters": 357_000, "cpu_seconds": 1790.2, "bits": 2.0}


def test_the_ladder_goes_up_from_the_most_bits_to_the_fewest(tmp_path):
    for name, bits in (("gru", 1.9), ("rnn", 2.4), ("lstm", 2.0)):
        put_card(tmp_path, f"{name}-shakespeare", bits)
    assert [(rung["name"], rung["bits"]) for rung in ladder(tmp_path)] == [("RNN", 2.4), ("LSTM", 2.0), ("GRU", 1.9)]


def test_a_card_may_hold_several_rungs(tmp_path):
    """The n-gram models, one for each n, are no single model and have no figures of one."""
    rungs = [{"name": f"{n}-gram", "parameters": n, "cpu_seconds": 1.0, "bits": 5.0 - n, "nats": 1.0} for n in (1, 3)]
    (tmp_path / "ngram-shakespeare.json").write_text(json.dumps({"rungs": rungs}), encoding="utf-8")
    put_card(tmp_path, "rnn-shakespeare", 3.0)
    found = ladder(tmp_path)
    assert [rung["name"] for rung in found] == ["1-gram", "RNN", "3-gram"]
    assert found[0] == rungs[0] and found[2] == rungs[1]


def test_only_models_measured_on_shakespeares_plays_stand_on_the_ladder(tmp_path):
    put_card(tmp_path, "rnn-shakespeare", 3.0)
    put_card(tmp_path, "rnn-tatoeba-words", 5.0)
    saved(tmp_path, "small-shakespeare-words")
    (tmp_path / "rnn-shakespeare.tokenizer.json").write_text("{}", encoding="utf-8")
    assert [rung["bits"] for rung in ladder(tmp_path)] == [3.0]


def test_without_models_there_are_no_rungs(tmp_path):
    assert ladder(tmp_path) == []


def test_without_a_folder_the_ladder_of_the_courses_own_models_is_meant(tmp_path, monkeypatch):
    monkeypatch.setattr("transformer_lib.models.trained.DATA", tmp_path)
    put_card(tmp_path / "models", "rnn-shakespeare", 3.0)
    assert [rung["bits"] for rung in ladder()] == [3.0]


def test_a_damaged_card_on_the_ladder_is_named(tmp_path):
    (tmp_path / "rnn-shakespeare.json").write_text("{", encoding="utf-8")
    with one_line_error("rnn-shakespeare.json: expected a card in JSON", "damaged"):
        ladder(tmp_path)


def test_a_model_saved_again_replaces_the_old_one(tmp_path):
    saved(tmp_path, seed=0)
    second = saved(tmp_path, seed=1)
    assert same_weights(load_trained("small", tmp_path)[0], second)


def test_without_a_folder_the_courses_own_models_are_meant(tmp_path, monkeypatch):
    monkeypatch.setattr("transformer_lib.models.trained.DATA", tmp_path)
    torch.manual_seed(3)
    model = RecurrentLanguageModel(**ARGUMENTS)
    save_trained("own", model, CharTokenizer("abcde"), {"arguments": ARGUMENTS})
    assert (tmp_path / "models" / "own.json").is_file()
    assert same_weights(load_trained("own")[0], model)
    assert load_card("own")["arguments"] == ARGUMENTS


# ---- bad input


def test_the_weights_of_another_training_are_refused(tmp_path):
    saved(tmp_path, "first", seed=1)
    saved(tmp_path, "second", seed=2)
    os.replace(tmp_path / "first.safetensors", tmp_path / "second.safetensors")
    with one_line_error("second.safetensors: expected the weights that the card names (sha256", "got"):
        load_trained("second", tmp_path)


def test_a_missing_model_says_which_ones_there_are(tmp_path):
    saved(tmp_path, "second")
    saved(tmp_path, "first")
    with one_line_error("other: expected a trained model", "(there: first, second)", kind=FileNotFoundError):
        load_trained("other", tmp_path)
    with one_line_error("other: expected a trained model", "(there: first, second)", kind=FileNotFoundError):
        load_card("other", tmp_path)


def test_a_missing_folder_has_none(tmp_path):
    with one_line_error("(there: none)", kind=FileNotFoundError):
        load_trained("any", tmp_path / "nowhere")


@pytest.mark.parametrize("content", ["", "{", '{"model": "Recurr'])
def test_a_damaged_card_is_refused(tmp_path, content):
    saved(tmp_path)
    (tmp_path / "small.json").write_text(content, encoding="utf-8")
    with one_line_error("small.json: expected a card in JSON", "damaged"):
        load_trained("small", tmp_path)


@pytest.mark.parametrize(
    ("change", "got"),
    [
        ({"model": "GPT"}, "got GPT"),
        ({"arguments": ARGUMENTS | {"cell": "NoCell"}}, "NoCell"),
        ({"model": None}, "got None"),
        ({"arguments": {"vocab_size": 5}}, "{'vocab_size': 5}"),
        ({"arguments": ARGUMENTS | {"width": 5}}, "'width': 5"),
        ({"arguments": None}, "with None"),
    ],
)
def test_a_card_of_something_else_is_refused(tmp_path, change, got):
    saved(tmp_path)
    card = load_card("small", tmp_path) | change
    (tmp_path / "small.json").write_text(json.dumps(card), encoding="utf-8")
    with one_line_error(
        "small.json: expected a card with the arguments of a RecurrentLanguageModel", "RNNCell, LSTMCell", got
    ):
        load_trained("small", tmp_path)


@pytest.mark.parametrize("content", ["[]", "{}", '{"model": "RecurrentLanguageModel"}', '"card"', "[1]", "null"])
def test_a_card_without_arguments_is_refused(tmp_path, content):
    saved(tmp_path)
    (tmp_path / "small.json").write_text(content, encoding="utf-8")
    with one_line_error("small.json: expected a card"):
        load_trained("small", tmp_path)


def test_a_card_whose_arguments_do_not_fit_the_weights_is_refused(tmp_path):
    saved(tmp_path)
    card = load_card("small", tmp_path)
    card["arguments"]["d_h"] = 6
    (tmp_path / "small.json").write_text(json.dumps(card), encoding="utf-8")
    with one_line_error("small: expected the weights of this RecurrentLanguageModel", "in the file", "in the model"):
        load_trained("small", tmp_path)


def test_missing_and_truncated_weights_are_refused(tmp_path):
    saved(tmp_path)
    weights = tmp_path / "small.safetensors"
    whole = weights.read_bytes()
    for length in (0, 7, 100, len(whole) // 2, len(whole) - 1):
        weights.write_bytes(whole[:length])
        with one_line_error("small.safetensors: expected a whole safetensors file", f"({length} bytes)"):
            load_trained("small", tmp_path)
    weights.unlink()
    with one_line_error("small.safetensors: expected a weights file", kind=FileNotFoundError):
        load_trained("small", tmp_path)


def test_missing_and_truncated_tokenizers_are_refused(tmp_path):
    saved(tmp_path)
    path = tmp_path / "small.tokenizer.json"
    whole = path.read_bytes()
    for length in (0, 1, len(whole) // 2, len(whole) - 2):
        path.write_bytes(whole[:length])
        with one_line_error("small.tokenizer.json: expected a tokenizer saved as JSON"):
            load_trained("small", tmp_path)
    path.write_text('{"kind": "unigram", "options": {}, "tokens": []}', encoding="utf-8")
    with one_line_error("small.tokenizer.json: expected a character or word or byte-pair or wordpiece", "unigram"):
        load_trained("small", tmp_path)
    path.unlink()
    with one_line_error("small.tokenizer.json: expected a saved tokenizer", kind=FileNotFoundError):
        load_trained("small", tmp_path)


def test_a_card_without_the_models_arguments_is_not_saved(tmp_path):
    model = saved(tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with one_line_error("card: expected the model's 'arguments'"):
        save_trained("small", model, CharTokenizer("abcde"), {"bits": 1.0}, tmp_path)
    with pytest.raises(TypeError):  # not JSON
        save_trained("small", model, CharTokenizer("abcde"), {"arguments": {"cell": GRUCell}}, tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize("fails_at", range(5))
def test_a_write_that_fails_leaves_the_old_model_whole(tmp_path, monkeypatch, fails_at):
    """The disk fills up while the files are written (0, 1), or one cannot take its place (2 to 4)."""
    old = saved(tmp_path, seed=0)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    real, calls = os.replace, []

    def replace(source, target):
        calls.append(target)
        if len(calls) == fails_at + 1:
            raise OSError(28, "No space left on device", str(source))
        return real(source, target)

    monkeypatch.setattr(os, "replace", replace)
    with one_line_error("could not be written (No space left on device)", kind=OSError):
        saved(tmp_path, seed=1)
    monkeypatch.undo()
    left = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert left.keys() == before.keys()  # nothing half-written beside them
    if fails_at < 3:
        assert left == before
        assert same_weights(load_trained("small", tmp_path)[0], old)


def test_a_folder_that_cannot_be_made_is_refused(tmp_path):
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    with one_line_error("could not be written", kind=OSError):
        saved(tmp_path / "file" / "models")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_another_models_tokenizer_is_refused(tmp_path):
    saved(tmp_path)
    CharTokenizer("abc").save(tmp_path / "small.tokenizer.json")
    with one_line_error("small.tokenizer.json: expected the model's 5 tokens, got 3"):
        load_trained("small", tmp_path)


@pytest.mark.parametrize(("value", "number_format"), [(1e5, torch.float16), (math.nan, torch.float32)])
def test_weights_that_are_no_numbers_are_not_saved(tmp_path, value, number_format):
    model = saved(tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with torch.no_grad():
        model.output.bias[0] = value
    with one_line_error("model: expected finite weights", "output.bias"):
        save_trained("small", model, CharTokenizer("abcde"), {"arguments": {}}, tmp_path, number_format)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
