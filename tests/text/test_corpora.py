"""`load_corpus`: what it gives, and the one line that it says when a file is not the committed one.

Met in chapter 00.
"""

import dataclasses
import hashlib
import json
import re

import pytest

from tests.one_line import one_line_error
from transformer_lib import paths
from transformer_lib.text.corpora import FILES, Corpus, Pair, load_corpus

SPLITS = ("train", "validation", "test")


@pytest.fixture(scope="module")
def pairs():
    return load_corpus("tatoeba")


@pytest.fixture
def copied(tmp_path, monkeypatch):
    """The first hundred pairs of each split in a folder of the test's own, and the library looking there."""
    folder = tmp_path / "data"
    (folder / "tatoeba").mkdir(parents=True)
    checksums = {}
    for split in SPLITS:
        name = f"tatoeba/{split}.tsv"
        raw = b"".join((paths.DATA / name).read_bytes().splitlines(keepends=True)[:100])
        (folder / name).write_bytes(raw)
        checksums[name] = {"sha256": hashlib.sha256(raw).hexdigest(), "bytes": len(raw)}
    (folder / "checksums.json").write_text(json.dumps(checksums), encoding="utf-8")
    monkeypatch.setattr(paths, "DATA", folder)
    return folder


@pytest.mark.parametrize("name", ["shakespeare", "moby-dick", "bible"])
def test_a_text_is_the_file_unchanged(name):
    corpus = load_corpus(name)
    assert isinstance(corpus, Corpus) and corpus.name == name
    for split in SPLITS:
        text = getattr(corpus, split)
        assert text.encode() == (paths.DATA / name / f"{split}.txt").read_bytes()
        assert "\r" not in text and "\n\n\n" not in text and "  " not in text and text.endswith("\n")


@pytest.fixture
def by_hand(tmp_path, monkeypatch):
    """A corpus of one pair a split, written here. A blank of the sentence itself (U+3000) is a token of its own."""
    (tmp_path / "tatoeba").mkdir()
    checksums = {}
    for number, split in enumerate(SPLITS):
        raw = f"{number}\t猫が\u3000いる。\tThe cat's {split} is here.\t猫 が \u3000 いる 。\n".encode()
        (tmp_path / "tatoeba" / f"{split}.tsv").write_bytes(raw)
        checksums[f"tatoeba/{split}.tsv"] = {"sha256": hashlib.sha256(raw).hexdigest(), "bytes": len(raw)}
    (tmp_path / "checksums.json").write_text(json.dumps(checksums), encoding="utf-8")
    monkeypatch.setattr(paths, "DATA", tmp_path)


def test_a_line_becomes_a_pair(by_hand):
    corpus = load_corpus("tatoeba")
    assert corpus.name == "tatoeba"
    for number, split in enumerate(SPLITS):
        pair = Pair(number, "猫が\u3000いる。", f"The cat's {split} is here.", ("猫", "が", "\u3000", "いる", "。"))
        assert getattr(corpus, split) == (pair,)


def test_each_side_of_a_line(by_hand):
    japanese, english = load_corpus("tatoeba-ja"), load_corpus("tatoeba-en")
    assert (japanese.name, english.name) == ("tatoeba-ja", "tatoeba-en")
    assert japanese.test == "猫 が \u3000 いる 。\n" and english.test == "The cat's test is here .\n"


def test_a_corpus_is_the_same_on_every_machine(by_hand, as_on_windows):
    assert load_corpus("tatoeba").train[0].japanese == "猫が\u3000いる。"


def test_a_corpus_cannot_be_changed(pairs):
    with pytest.raises(dataclasses.FrozenInstanceError):
        pairs.train = ()


def test_pairs_keep_what_the_line_says(pairs):
    for split in SPLITS:
        lines = (paths.DATA / "tatoeba" / f"{split}.tsv").read_text(encoding="utf-8").splitlines()
        assert len(lines) == len(getattr(pairs, split))
        for line, pair in zip(lines, getattr(pairs, split), strict=True):
            assert isinstance(pair, Pair)
            assert f"{pair.id}\t{pair.japanese}\t{pair.english}\t{' '.join(pair.tokens)}" == line
            assert "".join(pair.tokens) == pair.japanese


def test_one_side_is_a_sentence_a_line(pairs):
    japanese, english = load_corpus("tatoeba-ja"), load_corpus("tatoeba-en")
    for split in SPLITS:
        here = getattr(pairs, split)
        assert getattr(japanese, split) == "".join(" ".join(pair.tokens) + "\n" for pair in here)
        lines = getattr(english, split).splitlines()
        assert [line.replace(" ", "") for line in lines] == [pair.english.replace(" ", "") for pair in here]


def test_english_words_and_marks_stand_apart():
    lines = load_corpus("tatoeba-en").train.splitlines()
    words = {word for line in lines for word in line.split(" ")}
    assert {"I'm", "o'clock", ",", ".", "?", "cats", "fish"} <= words
    assert not [word for word in words if re.search(r"\w[.?!]$", word) and word.count(".") < 2], (
        "a mark stuck to a word"
    )
    assert "" not in words


def test_an_unknown_name_lists_those_there_are():
    with one_line_error("'shakespear'", *FILES):
        load_corpus("shakespear")


def test_no_data_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "DATA", tmp_path / "data")
    with one_line_error("expected the corpora in", "clone of the repository", kind=FileNotFoundError):
        load_corpus("bible")


def test_a_missing_file(copied):
    (copied / "tatoeba" / "test.tsv").unlink()
    with one_line_error("data/tatoeba/test.tsv", "git checkout -- data/tatoeba/test.tsv", kind=FileNotFoundError):
        load_corpus("tatoeba")


def test_the_copy_is_good_before_it_is_spoilt(copied, pairs):
    assert load_corpus("tatoeba").train == pairs.train[:100]


def test_a_truncated_file_says_how_much_came(copied):
    file = copied / "tatoeba" / "validation.tsv"
    raw = file.read_bytes()
    file.write_bytes(raw[:-100])
    expected = json.loads((copied / "checksums.json").read_text(encoding="utf-8"))["tatoeba/validation.tsv"]["bytes"]
    with one_line_error(
        "data/tatoeba/validation.tsv", f"expected {expected} bytes, came {expected - 100}", "make data"
    ):
        load_corpus("tatoeba-ja")


@pytest.mark.parametrize("place", [0, 1234, -1])
def test_one_flipped_bit_is_found(copied, place):
    file = copied / "tatoeba" / "train.tsv"
    raw = bytearray(file.read_bytes())
    raw[place] ^= 1
    file.write_bytes(raw)
    with one_line_error("data/tatoeba/train.tsv", "expected sha256", "git checkout -- data/tatoeba/train.tsv"):
        load_corpus("tatoeba")


def test_line_ends_of_windows_are_named(copied):
    file = copied / "tatoeba" / "test.tsv"
    file.write_bytes(file.read_bytes().replace(b"\n", b"\r\n"))
    with one_line_error("data/tatoeba/test.tsv", "CRLF"):
        load_corpus("tatoeba-en")
