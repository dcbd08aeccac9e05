"""Tokenizers: text to ids and back, the order of the vocabulary, and what is no text, no id and no file.

Chapters 00 and 01.
"""

import json
import os

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.one_line import one_line_error
from transformer_lib.text import END, PAD, START, UNKNOWN, CharTokenizer, WordTokenizer
from transformer_lib.text.tokenizers import Tokenizer

SPECIALS = (PAD, UNKNOWN, START, END)
texts = st.text(max_size=60).filter(bool)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_the_special_tokens_are_called_as_everywhere():
    assert SPECIALS == ("<pad>", "<unk>", "<s>", "</s>")


@given(texts)
def test_characters_come_back_as_they_were(text):
    tokenizer = CharTokenizer.train(text)
    ids = tokenizer.encode(text)
    assert tokenizer.decode(ids) == text and len(ids) == len(text)
    assert tokenizer.vocab_size == len(set(text)) == len(tokenizer.tokens)
    assert set(ids) == set(range(tokenizer.vocab_size))


@given(st.lists(st.sampled_from("the cat sat on a mat . , 猫 が いる don't it’s".split()), min_size=1, max_size=12))
def test_words_come_back_with_a_blank_between_them(words):
    text = " ".join(words)
    tokenizer = WordTokenizer.train(text)
    assert tokenizer.decode(tokenizer.encode(text)) == text
    assert [tokenizer.tokens[i] for i in tokenizer.encode(text)] == words


def test_words_and_punctuation_marks_are_tokens():
    split = WordTokenizer([]).split
    assert split("Don't stop, he said: it’s 5 o'clock!\n") == [
        *["Don't", "stop", ",", "he", "said", ":", "it’s", "5", "o'clock", "!"]
    ]
    assert split("'tis the dogs' — rock'n'roll") == ["'", "tis", "the", "dogs", "'", "—", "rock'n'roll"]
    assert split("  \n ") == []


def test_text_with_blanks_in_it_already_is_split_there():
    tokenizer = WordTokenizer.train("猫 が いる 。 don't.", pattern=WordTokenizer.BLANKS)
    assert tokenizer.split("猫 が いる 。\ndon't.") == ["猫", "が", "いる", "。", "don't."]
    assert tokenizer.pattern == r"\S+" and WordTokenizer([]).pattern == WordTokenizer.WORDS


def test_a_pattern_may_have_groups():
    assert WordTokenizer([], pattern=r"(a)(b)?").split("ab a") == ["ab", "a"]


def test_characters_are_characters():
    assert CharTokenizer([]).split("né 猫\n") == ["n", "é", " ", "猫", "\n"]
    assert CharTokenizer([]).join(["a", "b"]) == "ab" and WordTokenizer([]).join(["a", "b"]) == "a b"


# ---- the vocabulary


def test_the_most_frequent_token_comes_first_and_ties_go_by_code_point():
    assert CharTokenizer.train("bbbcaacx").tokens == ["b", "a", "c", "x"]
    assert WordTokenizer.train("b a c b").tokens == ["b", "a", "c"]
    assert CharTokenizer.train("猫aZ é").tokens == [" ", "Z", "a", "é", "猫"]


def test_several_texts_are_counted_together():
    for several in (["ab", "bc"], ("ab", "bc"), (text for text in ["ab", "bc"])):
        assert CharTokenizer.train(several).tokens == ["b", "a", "c"]


def test_special_tokens_come_first_in_their_order():
    tokenizer = WordTokenizer.train("b b a", specials=SPECIALS)
    assert tokenizer.tokens == [*SPECIALS, "b", "a"]
    assert [tokenizer.ids[token] for token in SPECIALS] == [0, 1, 2, 3]
    assert WordTokenizer.train("b <s> <s>", specials=["<s>"], pattern=r"\S+").tokens == ["<s>", "b"]


@pytest.mark.parametrize("vocab_size", [2, 3, 4, 9])
def test_the_vocabulary_size_counts_the_special_tokens(vocab_size):
    tokenizer = CharTokenizer.train("bbaac", vocab_size, specials=[UNKNOWN])
    assert tokenizer.tokens == ["<unk>", "a", "b", "c"][:vocab_size]


def test_the_smallest_vocabulary_is_one_token():
    assert CharTokenizer.train("aab", 1).tokens == ["a"]
    assert CharTokenizer.train("aab", None).tokens == ["a", "b"]


def test_ids_number_the_tokens_from_0():
    tokenizer = CharTokenizer("xyz")
    assert tokenizer.ids == {"x": 0, "y": 1, "z": 2} and tokenizer.vocab_size == 3
    assert tokenizer.tokens == ["x", "y", "z"]


# ---- encoding and decoding


def test_start_and_end_are_set_only_where_asked_for():
    tokenizer = CharTokenizer.train("ab", specials=SPECIALS)
    assert tokenizer.encode("ab") == [4, 5]
    assert tokenizer.encode("ab", start=True) == [2, 4, 5]
    assert tokenizer.encode("ab", end=True) == [4, 5, 3]
    assert tokenizer.encode("", start=True, end=True) == [2, 3]
    assert tokenizer.encode("") == []


def test_decoding_leaves_out_start_end_and_padding_but_not_the_unknown():
    tokenizer = WordTokenizer.train("a b", specials=SPECIALS)
    assert tokenizer.decode([2, 4, 1, 5, 3, 0, 0]) == "a <unk> b"
    assert tokenizer.decode([]) == ""


def test_ids_of_any_whole_kind_are_decoded():
    tokenizer = CharTokenizer("abc")
    for ids in (
        [0, 2],
        (0, 2),
        torch.tensor([0, 2]),
        np.array([0, 2]),
        iter([0, 2]),
        torch.tensor([0, 2]).to(torch.uint8),
    ):
        assert tokenizer.decode(ids) == "ac"


def test_a_token_never_learnt_is_unknown():
    tokenizer = CharTokenizer.train("ab", specials=[UNKNOWN])
    assert tokenizer.encode("axb") == [1, 0, 2]


# ---- bad input


def test_a_token_never_learnt_without_an_unknown_one_is_refused():
    tokenizer = CharTokenizer.train("ab")
    with one_line_error() as caught:
        tokenizer.encode("a猫")
    assert str(caught.value) == (
        "text: expected only tokens of the vocabulary (2), got '猫'; "
        "train on text that has it, or with specials=('<unk>',)"
    )
    with one_line_error(r"got '\n'"):
        tokenizer.encode("a\nb")


@pytest.mark.parametrize("specials", [(), (UNKNOWN,)])
def test_a_border_that_the_vocabulary_does_not_know_is_refused(specials):
    """It must not become <unk> unseen."""
    tokenizer = CharTokenizer.train("ab", specials=specials)
    with one_line_error("text: expected <s> in the vocabulary", "specials=('<s>',)"):
        tokenizer.encode("a", start=True)
    with one_line_error("text: expected </s> in the vocabulary", "specials=('</s>',)"):
        tokenizer.encode("a", end=True)


@pytest.mark.parametrize("empty", ["", [], [""], ["", ""], iter([])])
def test_empty_text_is_refused(empty):
    with one_line_error() as caught:
        CharTokenizer.train(empty, specials=SPECIALS)
    assert str(caught.value) == "texts: expected at least one token to learn from, got empty text"


def test_text_without_words_is_empty_for_words():
    with one_line_error("texts: expected at least one token to learn from"):
        WordTokenizer.train(" \n ")


@pytest.mark.parametrize("vocab_size", [2, 1, 0, -1])
def test_a_vocabulary_without_room_for_a_token_is_refused(vocab_size):
    with one_line_error(f"vocab_size: expected more than the 2 special tokens, got {vocab_size}"):
        CharTokenizer.train("ab", vocab_size, specials=[PAD, UNKNOWN])
    if vocab_size <= 0:
        with one_line_error(f"vocab_size: expected more than the 0 special tokens, got {vocab_size}"):
            CharTokenizer.train("ab", vocab_size)


def test_a_token_given_twice_is_refused():
    with one_line_error() as caught:
        CharTokenizer("aba")
    assert str(caught.value) == "tokens: expected each token once, got one twice"
    with one_line_error("tokens: expected each token once"):
        CharTokenizer.train("ab", specials=[PAD, PAD])


@pytest.mark.parametrize("i", [3, -1, 100])
def test_ids_outside_the_vocabulary_are_refused(i):
    with one_line_error(f"ids: expected 0 to 2, got {i}"):
        CharTokenizer("abc").decode([0, i])


@pytest.mark.parametrize(
    ("ids", "kind"),
    [
        ([0.0], "float"),
        ([1.7], "float"),
        (torch.tensor([1.0]), "Tensor"),
        (torch.tensor([[0, 1]]), "Tensor"),
        ("01", "str"),
    ],
)
def test_what_are_no_ids_is_refused(ids, kind):
    with one_line_error("ids: expected one text's token ids, whole numbers", f"got a {kind}"):
        CharTokenizer("abc").decode(ids)


def test_the_general_tokenizer_splits_nothing():
    with pytest.raises(NotImplementedError):
        Tokenizer([]).split("a")
    with pytest.raises(NotImplementedError):
        Tokenizer([]).join(["a"])


# ---- on disk


@given(st.lists(st.text(min_size=1), unique=True, max_size=8))
def test_a_saved_tokenizer_is_the_same(tmp_path_factory, tokens):
    path = tmp_path_factory.mktemp("saved") / "t.json"
    CharTokenizer(tokens).save(path)
    loaded = CharTokenizer.load(path)
    assert type(loaded) is CharTokenizer and loaded.tokens == tokens and names(path.parent) == ["t.json"]


def test_options_are_saved_with_it(tmp_path):
    WordTokenizer(["猫"], pattern=WordTokenizer.BLANKS).save(str(tmp_path / "deep" / "t.json"))
    loaded = WordTokenizer.load(str(tmp_path / "deep" / "t.json"))
    assert loaded.pattern == WordTokenizer.BLANKS and loaded.encode("猫") == [0]
    content = json.loads((tmp_path / "deep" / "t.json").read_text(encoding="utf-8"))
    assert content == {"kind": "word", "options": {"pattern": r"\S+"}, "tokens": ["猫"]}
    assert CharTokenizer("a").options() == {}


def test_the_file_is_text_that_people_and_git_can_read(tmp_path):
    CharTokenizer(["猫", "\n"]).save(tmp_path / "t.json")
    content = (tmp_path / "t.json").read_bytes()
    expected = ["{", '"kind": "character",', '"options": {},', '"tokens": [', '"猫",', r'"\n"', "]", "}", ""]
    assert content.decode("utf-8") == "\n".join(expected)


def test_the_file_is_the_same_on_every_machine(tmp_path, as_on_windows):
    CharTokenizer("猫é\r\n").save(tmp_path / "t.json")
    content = (tmp_path / "t.json").read_bytes()
    assert "猫".encode() in content and b"\r" not in content
    assert CharTokenizer.load(tmp_path / "t.json").tokens == ["猫", "é", "\r", "\n"]


def test_the_general_tokenizer_loads_either_kind(tmp_path):
    CharTokenizer("ab").save(tmp_path / "c.json")
    WordTokenizer(["ab"]).save(tmp_path / "w.json")
    assert type(Tokenizer.load(tmp_path / "c.json")) is CharTokenizer
    assert type(Tokenizer.load(tmp_path / "w.json")) is WordTokenizer


def test_a_tokenizer_of_another_kind_is_refused(tmp_path):
    WordTokenizer(["a"]).save(tmp_path / "t.json")
    with one_line_error("t.json: expected a character tokenizer, got a word tokenizer"):
        CharTokenizer.load(tmp_path / "t.json")
    (tmp_path / "t.json").write_text('{"kind": ["x"], "options": {}, "tokens": []}', encoding="utf-8")
    with one_line_error(
        "t.json: expected a character or word or byte-pair or wordpiece tokenizer, got a ['x'] tokenizer"
    ):
        Tokenizer.load(tmp_path / "t.json")


@pytest.mark.parametrize("part", [0.0, 0.1, 0.5, 0.9, 0.97])
def test_a_truncated_file_is_refused(tmp_path, part):
    WordTokenizer(list("abcdefgh")).save(tmp_path / "t.json")
    whole = (tmp_path / "t.json").read_bytes()
    (tmp_path / "t.json").write_bytes(whole[: int(len(whole) * part)])
    with one_line_error("t.json: expected a tokenizer saved as JSON, got something else or a part of it"):
        WordTokenizer.load(tmp_path / "t.json")


@pytest.mark.parametrize(
    "content",
    [
        b"[]",
        b"5",
        b"{}",
        b'"kind"',
        b'{"kind": "word", "tokens": []}',
        b'{"kind": "word", "options": {}, "tokens": 5}',
        b'{"kind": "word", "options": {}, "tokens": "ab"}',
        b'{"kind": "word", "options": {}, "tokens": [1, 2]}',
        b'{"kind": "word", "options": {"width": 1}, "tokens": []}',
        b'{"kind": "word", "options": null, "tokens": []}',
        b"\xff\xfe\x00binary",
    ],
)
def test_a_file_of_something_else_is_refused(tmp_path, content):
    (tmp_path / "t.json").write_bytes(content)
    with one_line_error("t.json: expected a tokenizer saved as JSON"):
        WordTokenizer.load(tmp_path / "t.json")


def test_a_missing_file_is_said(tmp_path):
    for path in (tmp_path / "none.json", tmp_path):
        with one_line_error(f"{path.name}: expected a saved tokenizer, found no such file", kind=FileNotFoundError):
            CharTokenizer.load(path)


def test_a_save_that_fails_leaves_the_old_file_and_no_rest(tmp_path, monkeypatch):
    path = tmp_path / "t.json"
    CharTokenizer("ab").save(path)

    def refuse(source, target):
        raise PermissionError(13, "Permission denied", str(target))

    monkeypatch.setattr(os, "replace", refuse)
    with one_line_error("t.json: could not be written (Permission denied)", kind=OSError):
        CharTokenizer("xyz").save(path)
    monkeypatch.undo()
    assert CharTokenizer.load(path).tokens == ["a", "b"] and names(tmp_path) == ["t.json"]
    with pytest.raises(UnicodeEncodeError):  # half of a character: cannot be written as UTF-8
        CharTokenizer(["a", "\ud800"]).save(path)
    assert CharTokenizer.load(path).tokens == ["a", "b"] and names(tmp_path) == ["t.json"]


def test_a_folder_that_cannot_be_written_to_is_refused(tmp_path):
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    with one_line_error("t.json: could not be written", kind=OSError):
        CharTokenizer("ab").save(tmp_path / "file" / "t.json")
