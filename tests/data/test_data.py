"""The corpora of data/ keep the promises of data/README.md: no leaks, nothing offensive, the running example unseen.

Each search for something forbidden is shown to find a planted case first.
"""

import functools
import hashlib
import json
import re
import unicodedata
from collections import Counter

import pytest

from data import prepare
from transformer_lib import paths
from transformer_lib.text.corpora import load_corpus

TEXTS = ("shakespeare", "moby-dick", "bible")
SPLITS = ("train", "validation", "test")


opened = functools.cache(load_corpus)


@pytest.fixture(scope="module")
def corpora():
    return {name: opened(name) for name in (*TEXTS, "tatoeba")}


# ------------------------------------------------------------------------------------------------------ leaks in texts


def shared_runs(train: str, held_out: str, length: int = 60) -> list[str]:
    """Runs of so many characters (letters, digits, single blanks; from a word's start) that both texts have."""

    def runs(text):
        text = " ".join(re.findall("[a-z0-9]+", text.lower().replace("'", "")))
        starts = (match.start() for match in re.finditer("[a-z0-9]+", text))
        return (text[i : i + length] for i in starts if i + length <= len(text))

    forbidden = set(runs(held_out))
    return [run for run in runs(train) if run in forbidden]


@pytest.mark.parametrize("split", ["validation", "test"])
def test_a_planted_sentence_is_found(corpora, split):
    held_out = getattr(corpora["moby-dick"], split)
    sentence = max(re.split(r"(?<=[.!?])\s", held_out[:20_000]), key=len)
    assert len(sentence) > 80
    train = corpora["moby-dick"].train[:50_000]
    assert not shared_runs(train, held_out)
    middle = train.index("\n", 25_000)
    assert shared_runs(train[:middle] + sentence.upper().replace(",", "\n--") + train[middle:], held_out)


@pytest.mark.parametrize("name", TEXTS)
def test_held_out_text_does_not_occur_in_train(corpora, name):
    corpus = corpora[name]
    assert shared_runs(corpus.train, corpus.validation + "\n" + corpus.test) == []
    assert shared_runs(corpus.validation, corpus.test) == []


@pytest.mark.parametrize("name", TEXTS)
def test_held_out_text_is_about_a_tenth(corpora, name):
    corpus = corpora[name]
    total = sum(len(getattr(corpus, split)) for split in SPLITS)
    assert 0.085 < len(corpus.validation) / total < 0.115
    assert 0.085 < len(corpus.test) / total < 0.115


def unseen_characters(train: str, held_out: str) -> set[str]:
    return set(held_out) - set(train)


def test_an_unseen_character_is_found():
    assert unseen_characters("abc", "aébc~") == {"é", "~"}


@pytest.mark.parametrize("name", [*TEXTS, "tatoeba-ja", "tatoeba-en"])
def test_every_held_out_character_occurs_in_train(name):
    corpus = opened(name)
    assert unseen_characters(corpus.train, corpus.validation + corpus.test) == set()


@pytest.mark.parametrize("name", TEXTS)
def test_the_character_sets_are_small(corpora, name):
    assert 50 < len(set(corpora[name].train)) < 90


def foreign_matter(text: str) -> list[str]:
    """Traces of a publisher, of markup or of sloppy typing that the cleaning should have taken out."""
    publisher = r"gutenberg|\be-?texts?\b|copyright|ebook|https?:|www\."
    typing = r"&\w+;|[{}<>@_\t\r\u00a0\ufeff]|[ ]\n|\n[ ]|[ ][ ]|\n\n\n"
    return re.findall(publisher, text.lower()) + re.findall(typing, text)


def test_foreign_matter_is_found():
    for planted in (
        "Project Gutenberg's\n",
        "enforc&egrave;d",
        "[Exeunt.}",
        "two  blanks",
        "end \nbegin",
        "a\r\nb",
        "_so_",
    ):
        assert foreign_matter("To be, or not to be" + planted + "that is the question")


@pytest.mark.parametrize("name", TEXTS)
def test_the_texts_carry_no_foreign_matter(corpora, name):
    for split in SPLITS:
        assert foreign_matter(getattr(corpora[name], split)) == []


def test_shakespeare_is_plays_without_sonnets_and_poems(corpora):
    everything = "".join(getattr(corpora["shakespeare"], split) for split in SPLITS)
    opening = r"^[A-Z][A-Z ',;]+\n\n(?:(?:THE )?PROLOGUE|INDUCTION|ACT (?:I|1|FIRST))\b"
    assert len(re.findall(opening, everything, re.MULTILINE | re.IGNORECASE)) == 37
    assert "From fairest creatures we desire increase" not in everything
    assert "To be, or not to be,--that is the question" in everything


def test_moby_dick_is_in_order(corpora):
    everything = "\n".join(getattr(corpora["moby-dick"], split) for split in SPLITS)
    chapters = [int(number) for number in re.findall(r"^CHAPTER (\d+)\. ", everything, re.MULTILINE)]
    assert chapters == list(range(1, 136))
    assert everything.startswith("CHAPTER 1. Loomings.\n\nCall me Ishmael.")


# ------------------------------------------------------------------------------------------------------ leaks in pairs


def normalised(text: str) -> str:
    """Lower case, letters and digits only (of any script), so that punctuation makes no difference."""
    return "".join(c for c in unicodedata.normalize("NFKC", text).lower() if c.isalnum())


def shared_sentences(train, held_out) -> list:
    japanese, english = {normalised(pair.japanese) for pair in train}, {normalised(pair.english) for pair in train}
    return [p for p in held_out if normalised(p.japanese) in japanese or normalised(p.english) in english]


def test_a_planted_pair_is_found_from_either_side(corpora):
    train, planted = corpora["tatoeba"].train, corpora["tatoeba"].train[1234]
    fresh = corpora["tatoeba"].test[0]
    train = train[:3000]
    assert shared_sentences(train, [fresh]) == []
    for changed in (
        fresh._replace(english=planted.english.upper().rstrip(".?!") + "!!"),
        fresh._replace(japanese=planted.japanese.rstrip("。？！") + "！"),
    ):
        assert shared_sentences(train, [fresh, changed]) == [changed]


def test_no_held_out_sentence_occurs_in_train(corpora):
    corpus = corpora["tatoeba"]
    assert shared_sentences(corpus.train, corpus.validation + corpus.test) == []
    assert shared_sentences(corpus.validation, corpus.test) == []


def repeated(pairs, key) -> list[str]:
    return [text for text, n in Counter(map(key, pairs)).items() if n > 1]


def test_each_sentence_stands_once(corpora):
    everything = [pair for split in SPLITS for pair in getattr(corpora["tatoeba"], split)]
    keys = {
        "Japanese": lambda pair: prepare.japanese_key(pair.japanese),
        "English": lambda pair: prepare.english_key(pair.english),
        "number": lambda pair: pair.id,
    }
    twice = everything[0]._replace(
        japanese=everything[0].japanese.rstrip("。") + "！", english=everything[0].english + '"'
    )
    for key in keys.values():
        assert repeated([*everything[:100], twice], key) != []
        assert repeated(everything, key) == []
    assert (len(corpora["tatoeba"].validation), len(corpora["tatoeba"].test)) == (2000, 2000)
    assert len(everything) == prepare.MOST_PAIRS


def tells_the_running_example(pair) -> bool:
    japanese, words = pair.japanese, set(re.findall("[a-z]+", pair.english.lower()))
    return {"猫", "魚", "好"} <= set(japanese) or (
        bool(words & {"cat", "cats"}) and bool(words & {"like", "likes", "liked"}) and bool(words & {"fish", "fishes"})
    )


def test_the_running_example_is_in_no_split(corpora):
    some = corpora["tatoeba"].train[0]
    for planted in (
        some._replace(japanese="猫は魚が好き"),
        some._replace(japanese="猫は魚が好きです。"),
        some._replace(english="Cats like fish."),
        some._replace(english="The cat likes fish!"),
    ):
        assert tells_the_running_example(planted)
    assert not [p for split in SPLITS for p in getattr(corpora["tatoeba"], split) if tells_the_running_example(p)]


def test_the_running_example_consists_of_familiar_words(corpora):
    japanese = Counter(word for pair in corpora["tatoeba"].train for word in pair.tokens)
    english = Counter(word for p in corpora["tatoeba"].train for word in re.findall("[a-z]+", p.english.lower()))
    assert min(japanese[word] for word in ("猫", "は", "魚", "が", "好き")) >= 50
    assert english["cat"] + english["cats"] >= 100
    assert min(english[word] for word in ("cats", "like", "likes", "fish")) >= 30


# ----------------------------------------------------------------------------------------------- what a class may read

# Independent of data/exclusions.txt, so that a slip there is noticed.
ENGLISH = re.compile(
    r"\b(sex\w*|rap(e|ed|ist)|porn\w*|naked|prostitut\w*|breasts?|virgin|fuck\w*|shit\w*|bitch\w*|bastards?|damn\w*|"
    r"nigg\w+|negro\w*|japs?|fags?|faggots?|retard\w*|idiots?|kill\w*|murder\w*|suicid\w*|"
    r"hang(ed)? (him|her|my)self|strangl\w*|stab\w*|poison\w*|shoot\w*|guns?|bombs?|tortur\w*|heroin|cocaine|marijuana|"
    r"drugs?|opium|nazis?|hitler|corpses?)\b",
    re.IGNORECASE,
)
JAPANESE = re.compile(
    r"セックス|強姦|レイプ|ポルノ|裸|売春|処女|おっぱい|くそ|クソ|馬鹿|バカ|阿呆|アホ|黒ん坊|土人|殺|自殺|首を吊|毒|銃|刺し|爆弾|拷問|死体|"
    r"麻薬|覚醒剤|大麻|ヘロイン|コカイン|ナチ|ヒトラー|死ね"
)


def offending(pairs) -> list:
    return [pair for pair in pairs if ENGLISH.search(pair.english) or JAPANESE.search(pair.japanese)]


def test_nothing_offensive_in_the_pairs(corpora):
    some = corpora["tatoeba"].train[0]
    for english in ("He killed himself.", "Are you an idiot?", "Marijuana is a drug.", "They found the corpse."):
        assert offending([some._replace(english=english)])
    for japanese in ("彼は自殺した。", "馬鹿な事を言うな。", "麻薬はだめだ。"):
        assert offending([some._replace(japanese=japanese)])
    assert offending(pair for split in SPLITS for pair in getattr(corpora["tatoeba"], split)) == []


def test_the_exclusions_are_heeded(corpora):
    english, japanese = prepare.exclusions()
    assert english.search("he was drunk again") and not english.search("a classic grape")
    assert japanese.search("銃を持っている") and not japanese.search("そればかりだ")
    everything = [pair for split in SPLITS for pair in getattr(corpora["tatoeba"], split)]
    assert [p for p in everything if english.search(p.english.lower()) or japanese.search(p.japanese)] == []


# -------------------------------------------------------------------------------------------------- README, checksums


def test_checksums_name_every_file_and_hold():
    checksums = json.loads((paths.DATA / "checksums.json").read_text(encoding="utf-8"))
    files = {f"{prepare.file_name(name, split)}" for name in (*TEXTS, "tatoeba") for split in SPLITS}
    assert set(checksums) == files
    for name, expected in checksums.items():
        raw = (paths.DATA / name).read_bytes()
        assert expected == {"sha256": hashlib.sha256(raw).hexdigest(), "bytes": len(raw)}
        assert b"\r" not in raw


@pytest.fixture(scope="module")
def files():
    return {
        name: {s: (paths.DATA / prepare.file_name(name, s)).read_text(encoding="utf-8") for s in SPLITS}
        for name in (*TEXTS, "tatoeba")
    }


def test_the_readme_tables_are_in_sync(files):
    readme = (paths.DATA / "README.md").read_text(encoding="utf-8")
    assert prepare.counts_section(files) in readme


def test_the_readme_tables_follow_the_text():
    splits = dict.fromkeys(SPLITS, "A verse.\n")
    longer = {**splits, "test": "A verse more.\n"}
    assert prepare.counts_section({"bible": splits}) != prepare.counts_section({"bible": longer})


def test_the_readme_names_the_versions_and_settings():
    readme = (paths.DATA / "README.md").read_text(encoding="utf-8")
    prose = " ".join(readme.split())
    for source in prepare.SOURCES.values():
        assert re.search(rf"{re.escape(source.name)}\]\([^)]*\) {re.escape(source.version)} ", prose), source.name
    pins = (paths.ROOT / "requirements-data.txt").read_text(encoding="utf-8")
    assert len(re.findall(r"^\S+==\S+$", pins, re.MULTILINE)) == 2
    for name, version in re.findall(r"^(\S+)==(\S+)$", pins, re.MULTILINE):
        assert f"{name} {version}" in prose
    assert f"2 to {prepare.MOST_WORDS_ENGLISH} English words" in prose
    assert f"at most {prepare.MOST_CHARACTERS_JAPANESE} Japanese characters" in prose
    assert f"cut to {prepare.MOST_PAIRS:,}" in prose and f"no run of {prepare.WINDOW} characters" in prose
    for name in (*TEXTS, "tatoeba"):
        assert f"({name}/LICENCE.txt)" in readme and (paths.DATA / name / "LICENCE.txt").is_file()
