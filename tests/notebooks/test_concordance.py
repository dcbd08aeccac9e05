"""Every section of the textbook that an existing chapter owes is answered, and the table for readers says where."""

import json

import nbformat
import pytest

from tests.notebooks.book import anchors_of
from tools import concordance
from tools.concordance import BEGIN, END, chapters, faults, load_entries, main, places, table, with_table
from tools.notebooks import ROOT, as_text, normalise

IDS = ["C7.0", *(f"C7.{a}.{b}" for a, n in enumerate((3, 3, 3, 2, 2, 2, 3, 4), 1) for b in range(1, n + 1))]


def test_the_course_answers_what_it_owes():
    assert faults() == []


def test_the_readers_table_is_up_to_date():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert with_table(readme) == readme, "run python -m tools.concordance"


def test_every_section_before_the_transformer_is_known():
    entries = load_entries()
    assert [name for name in entries if name.startswith("C7")] == IDS
    assert all(name == f"C{entry.section}" for name, entry in entries.items() if name.startswith("C7"))
    owed = {chapter: [name for name in IDS if entries[name].chapter == chapter] for chapter in ("00", "01", "02", "03")}
    assert sum(map(len, owed.values())) == 14 and owed["00"] == ["C7.0"] and owed["03"][-1] == "C7.5.2"
    order = [entries[name].chapter for name in IDS]
    assert order == sorted(order)


def test_the_codes_stay_out_of_the_readers_sight():
    assert not any(name in table() for name in load_entries())


def _cell(words, *names):
    return nbformat.v4.new_markdown_cell(words, metadata={"textbook": list(names)} if names else {})


@pytest.fixture
def root(tmp_path):
    """A repository with chapters 00 and 01; what chapter 04 owes is not due yet."""
    (tmp_path / "notebooks").mkdir()
    entries = {
        "C7.0": {"section": "7.0", "title": "before", "chapter": "00"},
        "C7.1.1": {"section": "7.1.1", "title": "next word", "chapter": "01"},
        "C7.6.1": {"section": "7.6.1", "title": "encoder", "chapter": "04"},
    }
    (tmp_path / "notebooks" / "textbook.json").write_text(json.dumps(entries), encoding="utf-8")
    _write(tmp_path, "00_start", _cell("# 00 Start", "C7.0"))
    code = nbformat.v4.new_code_cell("1", metadata={"textbook": ["C7.1.1"]})
    _write(tmp_path, "01_words", _cell("# 01 Words"), _cell("## By hand: (`a|b`)"), code, _cell("## Later", "C7.1.1"))
    (tmp_path / "README.md").write_text(f"# R\n{BEGIN}\nold\n{END}\nrest\n", encoding="utf-8")
    return tmp_path


def _write(root, name, *cells):
    text = as_text(normalise(nbformat.v4.new_notebook(cells=list(cells))))
    (root / "notebooks" / f"{name}.ipynb").write_text(text, encoding="utf-8")


def test_a_complete_course_has_no_faults(root, capsys):
    assert faults(root) == []
    assert main([], root) == 0 and main(["--check"], root) == 0 and main(["check"], root) == 0
    assert "2 chapters" in capsys.readouterr().out
    text = (root / "README.md").read_text(encoding="utf-8")
    assert text.startswith(f"# R\n{BEGIN}\n| textbook |") and text.endswith(f"{END}\nrest\n") and "old" not in text


def test_the_table_links_to_headings_that_exist(root):
    text = table(root)
    assert "| 7.0 before | [00: 00 Start](notebooks/00_start.ipynb#00-Start) |" in text
    assert "[01: By hand: (a\\|b)](notebooks/01_words.ipynb#By-hand:-%28a%7Cb%29)<br>[01: Later]" in text
    assert "encoder" not in text
    where = places(chapters(root)["01"])["C7.1.1"]
    assert {concordance.notebook_anchor(place.heading) for place in where} <= anchors_of(chapters(root)["01"])


def test_a_section_that_no_cell_answers_is_noticed(root):
    _write(root, "01_words", _cell("# 01 Words"))
    assert faults(root) == [
        "01_words.ipynb: no cell carries C7.1.1 (7.1.1, next word): add it to the metadata of the cell"
    ]
    assert main(["--check"], root) == 1


def test_a_section_answered_in_another_chapter_alone_is_noticed(root):
    _write(root, "01_words", _cell("# 01 Words"))
    _write(root, "00_start", _cell("# 00 Start", "C7.0", "C7.1.1"))
    assert len(faults(root)) == 1


def test_an_unknown_id_is_noticed(root):
    _write(root, "00_start", _cell("# 00 Start", "C7.0", "C7.0.1"))
    assert faults(root) == ["00_start.ipynb: carries C7.0.1, which textbook.json has not: correct it"]


def test_a_new_chapter_owes_its_sections(root):
    _write(root, "04_pairs", _cell("# 04 Pairs"))
    assert len(faults(root)) == 1 and "C7.6.1" in faults(root)[0]


def test_a_table_out_of_date_is_noticed(root, capsys):
    assert main(["--check"], root) == 1
    assert "out of date: run python -m tools.concordance" in capsys.readouterr().err
    assert "old" in (root / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("text", ["", f"{BEGIN}", f"{END} {BEGIN}", f"{BEGIN} {END} {BEGIN} {END}"])
def test_a_readme_without_marks_is_an_error_of_one_line(text, root, capsys):
    (root / "README.md").write_text(text, encoding="utf-8")
    assert main([], root) == 1
    assert "expected the marks" in capsys.readouterr().err
    assert (root / "README.md").read_text(encoding="utf-8") == text


def test_an_incomplete_entry_is_an_error_of_one_line(root, capsys):
    (root / "notebooks" / "textbook.json").write_text('{"C7.0": {"section": "7.0"}}', encoding="utf-8")
    assert main(["--check"], root) == 1
    assert "textbook.json, C7.0: expected section, title and chapter" in capsys.readouterr().err
