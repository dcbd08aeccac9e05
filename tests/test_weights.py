"""Weights on disk: what was written is read, and no other, damaged or half-written file is taken for it."""

import os

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import save_file
from torch import nn

from tests.one_line import one_line_error
from transformer_lib.weights import load_weights, own_tensors, read_weights, write_weights


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def random_model(d_h=3, seed=0, depth=2):
    torch.manual_seed(seed)
    return nn.Sequential(*[nn.Linear(d_h, d_h) for _ in range(depth)])


def copy_of(model):
    return {name: tensor.clone() for name, tensor in model.state_dict().items()}


def untouched(model, before):
    return all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())


@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.uint8, torch.bool]
)
def test_what_was_written_is_read_bit_for_bit(tmp_path, dtype):
    torch.manual_seed(0)
    tensors = {
        "matrix": (torch.randn(3, 4) * 50).to(dtype),
        "scalar": torch.tensor(7).to(dtype),
        "empty": torch.zeros(0, 2).to(dtype),
        "transposed": (torch.randn(3, 4) * 50).to(dtype).T,
    }
    about = {"step": 3, "list": [1.5, None, "言葉"], "small": 5e-324}
    write_weights(tmp_path / "deep" / "w.safetensors", tensors, about)
    read, about_too = read_weights(str(tmp_path / "deep" / "w.safetensors"))
    assert about_too == about and read.keys() == tensors.keys()
    for name, tensor in tensors.items():
        assert read[name].dtype == dtype and torch.equal(read[name], tensor)
    assert names(tmp_path / "deep") == ["w.safetensors"]


def test_one_tensor_under_two_names_is_written_twice(tmp_path):
    shared = torch.ones(3)
    write_weights(tmp_path / "w", {"one": shared, "two": shared, "part": shared[:2]}, {})
    read, _ = read_weights(tmp_path / "w")
    assert torch.equal(read["two"], shared) and read["part"].tolist() == [1, 1]


def test_a_parameter_is_written_without_its_gradient(tmp_path):
    parameter = nn.Parameter(torch.ones(2))
    write_weights(tmp_path / "w", {"p": parameter}, {})
    assert not read_weights(tmp_path / "w")[0]["p"].requires_grad
    assert parameter.requires_grad


def test_what_was_read_does_not_hang_on_the_file(tmp_path):
    """A window on the file would change with it, and hold it open: then nobody could write it anew on Windows."""
    path = tmp_path / "w"
    write_weights(path, {"x": torch.ones(4000)}, {})
    read, _ = read_weights(path)
    with path.open("r+b") as file:
        file.seek(-8000, os.SEEK_END)
        file.write(bytes(8000))
    assert torch.equal(read["x"], torch.ones(4000))


def test_a_new_file_replaces_the_old_one(tmp_path):
    path = tmp_path / "w"
    write_weights(path, {"x": torch.zeros(2)}, {"step": 1})
    write_weights(path, {"y": torch.ones(1)}, {"step": 2})
    read, about = read_weights(path)
    assert list(read) == ["y"] and about == {"step": 2}


@pytest.mark.parametrize("fails", ["os.replace", "transformer_lib.weights.save_file"])
def test_a_write_that_fails_leaves_the_old_file_and_no_rest(tmp_path, monkeypatch, fails):
    path = tmp_path / "w.safetensors"
    write_weights(path, {"x": torch.zeros(2)}, {"step": 1})
    before = path.read_bytes()

    def refuse(*arguments, **settings):
        raise PermissionError(13, "Permission denied", "somewhere")

    monkeypatch.setattr(fails, refuse)
    with one_line_error("w.safetensors: could not be written (Permission denied)", "nothing was changed", kind=OSError):
        write_weights(path, {"x": torch.ones(2)}, {"step": 2})
    assert path.read_bytes() == before and names(tmp_path) == ["w.safetensors"]


def test_an_error_of_safetensors_is_said_like_any_other(tmp_path, monkeypatch):
    from safetensors import SafetensorError

    def refuse(*arguments, **settings):
        raise SafetensorError("I/O error: disk full")

    monkeypatch.setattr("transformer_lib.weights.save_file", refuse)
    with one_line_error("w: could not be written (I/O error: disk full); nothing was changed", kind=OSError):
        write_weights(tmp_path / "w", {"x": torch.ones(2)}, {})
    assert names(tmp_path) == []


@pytest.mark.parametrize("place", ["file/w", "folder"])
def test_a_place_that_cannot_be_written_to_is_refused(tmp_path, place):
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    (tmp_path / "folder").mkdir()
    with one_line_error("could not be written", kind=OSError):
        write_weights(tmp_path / place, {"x": torch.ones(2)}, {})
    assert names(tmp_path) == ["file", "folder"]


def test_a_note_that_is_no_json_changes_nothing(tmp_path):
    write_weights(tmp_path / "w", {"x": torch.ones(2)}, {"step": 1})
    with pytest.raises(TypeError):
        write_weights(tmp_path / "w", {"x": torch.zeros(2)}, {"step": object()})
    assert read_weights(tmp_path / "w")[1] == {"step": 1} and names(tmp_path) == ["w"]


@given(st.integers(0, 10**6))
def test_a_truncated_file_is_refused_wherever_it_was_cut(tmp_path_factory, cut):
    path = tmp_path_factory.mktemp("cut") / "w"
    write_weights(path, {"x": torch.ones(20), "y": torch.zeros(3, 3)}, {"step": 1})
    whole = path.read_bytes()
    cut %= len(whole)
    path.write_bytes(whole[:cut])
    with one_line_error("w: expected a whole safetensors file, got a damaged or truncated one", f"({cut} bytes)"):
        read_weights(path)


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 a zip file, as torch.save writes it" * 3, b"\x80\x02}q" * 50])
def test_a_file_of_another_kind_is_refused(tmp_path, content):
    (tmp_path / "w").write_bytes(content)
    with one_line_error("w: expected a whole safetensors file", f"({len(content)} bytes)"):
        read_weights(tmp_path / "w")


def test_a_missing_file_is_said(tmp_path):
    for path in (tmp_path / "none.safetensors", tmp_path):
        with one_line_error(f"{path.name}: expected a weights file (.safetensors)", kind=FileNotFoundError):
            read_weights(path)


@pytest.mark.parametrize("note", [None, {"format": "pt"}, {"about": "[1, 2]"}, {"about": "5"}, {"about": "null"}])
def test_weights_that_others_wrote_have_no_note(tmp_path, note):
    save_file({"x": torch.ones(2)}, str(tmp_path / "w"), metadata=note)
    read, about = read_weights(tmp_path / "w")
    assert torch.equal(read["x"], torch.ones(2)) and about == {}


# ---- into a model


def test_weights_are_copied_into_the_model():
    model, other = random_model(seed=0), random_model(seed=1)
    given_weights = copy_of(other)
    load_weights(model, given_weights, "file")
    assert untouched(model, given_weights)
    given_weights["0.weight"].zero_()
    assert untouched(model, copy_of(other))  # copied, not shared


def test_weights_take_the_models_number_format():
    model = random_model().double()
    load_weights(model, copy_of(random_model(seed=1)), "file")
    assert model[0].weight.dtype == torch.float64
    assert torch.equal(model[0].weight.float(), random_model(seed=1)[0].weight)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda w: w.pop("1.bias"), "1.bias is nothing in the file and (3,) in the model"),
        (lambda w: w.update(more=torch.ones(2, 2)), "more is (2, 2) in the file and nothing in the model"),
        (lambda w: w.update({"0.weight": torch.ones(3, 4)}), "0.weight is (3, 4) in the file and (3, 3) in the model"),
        (lambda w: w.update({"1.weight": torch.ones(9)}), "1.weight is (9,) in the file and (3, 3) in the model"),
        (lambda w: w.update({"1.bias": torch.ones(())}), "1.bias is () in the file and (3,) in the model"),
        (lambda w: w.clear(), "0.weight is nothing in the file"),
    ],
)
def test_another_models_weights_are_refused_and_the_model_is_untouched(change, words):
    model = random_model()
    before, weights = copy_of(model), copy_of(random_model(seed=1))
    change(weights)
    with one_line_error("a.file: expected the weights of this Sequential, got another model's", words):
        load_weights(model, weights, "a.file")
    assert untouched(model, before)


class Tied(nn.Module):
    """Two names for one matrix, and a bias."""

    def __init__(self):
        super().__init__()
        self.embedding, self.output = nn.Embedding(3, 2), nn.Linear(2, 3)
        self.output.weight = self.embedding.weight


def test_a_shared_matrix_is_kept_once_and_stays_shared(tmp_path):
    one, other = Tied(), Tied()
    assert list(own_tensors(one)) == ["embedding.weight", "output.bias"]
    write_weights(tmp_path / "w", own_tensors(one), {})
    load_weights(other, read_weights(tmp_path / "w")[0], "w")
    assert torch.equal(other.output.weight, one.embedding.weight) and other.output.weight is other.embedding.weight
    for left_out in ("embedding.weight", "output.bias"):
        tensors = own_tensors(one)
        del tensors[left_out]
        with one_line_error("w: expected the weights of this Tied", left_out):
            load_weights(other, tensors, "w")
    apart = nn.ModuleDict({"embedding": nn.Embedding(3, 2), "output": nn.Linear(2, 3)})
    assert len(own_tensors(apart)) == 3  # equal in shape is not the same
    with one_line_error("output.weight is nothing in the file and (3, 2) in the model"):
        load_weights(apart, own_tensors(one), "w")
