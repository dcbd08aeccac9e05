"""WordPiece: cut by hand, equal to the tokenizers library, what is unknown, pairs and their segments.

Chapters 11 and 12.
"""

import pytest
import tokenizers
from hypothesis import given
from hypothesis import strategies as st

from tests.one_line import one_line_error
from transformer_lib.text import Tokenizer, WordPieceTokenizer, load_corpus
from transformer_lib.text.wordpiece import SPECIALS

TOKENS = [*SPECIALS, "the", "cat", "##s", "like", "##ing", "fish", ".", ",", "!", "?", "'", "t", "猫", "[", "]"]


@pytest.fixture(scope="module")
def ours():
    """From real text, whose words the random ones below are made to meet."""
    return WordPieceTokenizer.train(load_corpus("moby-dick").train[:60_000], 700)


def the_same(tokenizer):
    """The tokenizers library's WordPiece with this vocabulary, put together as BERT's own."""
    model = tokenizers.models.WordPiece(tokenizer.ids, unk_token="[UNK]", max_input_chars_per_word=100)
    other = tokenizers.Tokenizer(model)
    other.normalizer = tokenizers.normalizers.BertNormalizer(lowercase=tokenizer.lowercase)
    other.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    other.decoder = tokenizers.decoders.WordPiece()
    other.add_special_tokens(list(SPECIALS))
    return other


def test_by_hand():
    tokenizer = WordPieceTokenizer(TOKENS)
    assert tokenizer.split("The cats  LIKE\tfish.") == ["the", "cat", "##s", "like", "fish", "."]
    assert tokenizer.split("catlike") == ["[UNK]"]  # ##like is no token: the whole word is unknown
    assert tokenizer.split("cafés") == ["[UNK]"] and tokenizer.split("càts") == ["cat", "##s"]
    assert tokenizer.split("cat's 猫猫") == ["cat", "'", "[UNK]", "猫", "猫"]
    assert tokenizer.split("the [MASK] likes") == ["the", "[MASK]", "like", "##s"]
    assert tokenizer.split("[mask]") == ["[", "[UNK]", "]"]  # no mark: only [MASK] is
    assert tokenizer.split("cat" * 34) == ["[UNK]"]
    assert tokenizer.decode(tokenizer.encode("The cats, liking fish!", start=True, end=True)) == "the cats, [UNK] fish!"
    assert WordPieceTokenizer(TOKENS, lowercase=False).split("The cat") == ["[UNK]", "cat"]


def test_words_of_a_hundred_characters_and_of_one_more():
    tokenizer = WordPieceTokenizer([*SPECIALS, "a", "##a"])
    assert tokenizer.split("a" * 100) == ["a", *["##a"] * 99] and tokenizer.split("a" * 101) == ["[UNK]"]


characters = st.one_of(
    st.sampled_from(list("aeiounstrlthw ")),
    st.sampled_from(
        list("\t\n\r\x00\x07\x85\u00a0\u200b\u200d\u3000\ufeff\ufffd!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~«—…€°")
    ),
    st.sampled_from(list("éñüßİﬁ猫は魚𠀀豈à가ไअ\u0301\u0302😀ÅΣς")),
    st.characters(
        max_codepoint=0xFFFF, exclude_categories=["Cs", "Cn"]
    ),  # what is newer, not every Unicode table knows
)


@given(st.lists(st.one_of(characters, st.sampled_from(["the", " whale", "[MASK]", "[SEP]"])), max_size=20))
def test_it_is_the_librarys(ours, parts):
    text = "".join(parts)
    assert ours.encode(text) == the_same(ours).encode(text).ids
    cased = WordPieceTokenizer(ours.tokens, lowercase=False)
    other = the_same(cased)
    other.normalizer = tokenizers.normalizers.BertNormalizer(lowercase=False, strip_accents=False)
    assert cased.encode(text) == other.encode(text).ids


def test_real_text_is_cut_and_joined_as_the_library_does(ours):
    other = the_same(ours)
    for line in load_corpus("moby-dick").validation.splitlines()[:500]:
        ids = ours.encode(line)
        assert ids == other.encode(line).ids
        if ours.ids["[UNK]"] not in ids:  # the library leaves what is unknown out of the text
            assert ours.decode(ids) == other.decode(ids)


@pytest.mark.parametrize("vocab_size", [300, 1000])
def test_what_is_learned_is_nearly_what_the_library_learns(vocab_size):
    """Only ties differ."""
    text = load_corpus("moby-dick").train[:200_000]
    ours = WordPieceTokenizer.train(text, vocab_size)
    other = the_same(ours)
    trainer = tokenizers.trainers.WordPieceTrainer(
        vocab_size=vocab_size, special_tokens=list(SPECIALS), show_progress=False
    )
    other.train_from_iterator(text.splitlines(), trainer)
    assert ours.vocab_size == vocab_size == len(set(ours.tokens))
    assert len({*ours.tokens} & {*other.get_vocab()}) >= 0.99 * vocab_size
    assert ours.tokens[:5] == list(SPECIALS)


def test_training_by_hand():
    tokenizer = WordPieceTokenizer.train(["low low lower", "low"], 11)
    assert tokenizer.tokens == [*SPECIALS, "##e", "##o", "##r", "##w", "l", "##ow"]  # l + ##o and ##o + ##w tie
    more = WordPieceTokenizer.train(["low low lower", "low"], 12)
    assert more.tokens[-1] == "low" and more.split("lower") == ["low", "##e", "##r"]
    assert WordPieceTokenizer.train("low low lower", 99).vocab_size == 12  # no pair is left that occurs twice


def test_pairs_and_their_segments():
    tokenizer = WordPieceTokenizer(TOKENS)
    ids, segments = tokenizer.encode_pair("the cat", "fish.")
    assert [tokenizer.tokens[i] for i in ids] == ["[CLS]", "the", "cat", "[SEP]", "fish", ".", "[SEP]"]
    assert segments == [0, 0, 0, 0, 1, 1, 1]
    assert tokenizer.encode_pair("the cat") == (ids[:4], [0] * 4)
    shorter, segments = tokenizer.encode_pair("the cat like fish", "fish.", longest=7)
    assert [tokenizer.tokens[i] for i in shorter] == ["[CLS]", "the", "cat", "[SEP]", "fish", ".", "[SEP]"]
    assert tokenizer.encode_pair("the cat", "fish.", longest=7)[0] == ids
    assert tokenizer.encode_pair("the", "", longest=4) == ([2, 5, 3, 3], [0, 0, 0, 1])
    for text, longest in [(None, 2), ("fish", 3)]:
        with one_line_error(f"longest: expected more than the {longest} special tokens, got {longest}"):
            tokenizer.encode_pair("the", text, longest=longest)


def test_what_was_saved_comes_back(tmp_path, ours):
    ours.save(tmp_path / "t.json")
    again = Tokenizer.load(tmp_path / "t.json")
    assert again.tokens == ours.tokens and again.lowercase
    WordPieceTokenizer(TOKENS, lowercase=False).save(tmp_path / "u.json")
    assert not WordPieceTokenizer.load(tmp_path / "u.json").lowercase


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_published_vocabulary(tmp_path, end):
    path = tmp_path / "vocab.txt"
    path.write_bytes(end.join([*TOKENS, ""]).encode())
    tokenizer = WordPieceTokenizer.from_vocabulary(path)
    assert tokenizer.tokens == TOKENS and tokenizer.encode("cats") == [6, 7]


def test_damaged_vocabularies_are_refused(tmp_path):
    path = tmp_path / "vocab.txt"
    for content, words in [
        ("\n".join([*SPECIALS, "", "a"]).encode(), "vocab.txt: expected one token a line, got an empty line"),
        ("\n".join([*SPECIALS, "a", "a"]).encode(), "vocab.txt: tokens: expected each token once"),
        (b"[PAD]\n[UNK]\n[CLS]\na\n", "vocab.txt: tokens: expected [PAD], [UNK], [CLS], [SEP], [MASK] among them"),
        (b"\xff\xfe\n", "vocab.txt: expected a vocabulary in UTF-8"),
        (b"", "vocab.txt: expected one token a line"),
    ]:
        path.write_bytes(content)
        with one_line_error(words):
            WordPieceTokenizer.from_vocabulary(path)
    with one_line_error("vocab_size: expected at least 8"):
        WordPieceTokenizer.train("abc", 7)
    for nothing in ("", " \n\x00", "[MASK]", []):
        with one_line_error("texts: expected at least one word to learn from, got empty text"):
            WordPieceTokenizer.train(nothing, 100)


def test_ids_that_there_are_none_of():
    tokenizer = WordPieceTokenizer(TOKENS)
    with one_line_error(f"ids: expected 0 to {len(TOKENS) - 1}, got {len(TOKENS)}"):
        tokenizer.decode([len(TOKENS)])
    assert tokenizer.decode([2, 5, 7, 3, 0, 0]) == "thes" and tokenizer.decode([7]) == "##s"
    assert tokenizer.decode([]) == "" == tokenizer.decode(tokenizer.encode(""))
