"""The one form of a committed notebook: what changes from run to run is gone, everything else is kept."""

import copy
import json

import nbformat
import pytest

from tests.notebooks.samples import PICTURE, chapter, code, stream
from tools.notebooks import (
    NEVER_STORED,
    all_notebooks,
    as_text,
    counted,
    from_text,
    headings_of,
    main,
    normalise,
    notebook_anchor,
)


def _untidy():
    """A notebook as an editor and a kernel leave it."""
    cells = [
        code(
            "print(1)", stream("a"), stream("b\n"), stream("c", "stderr"), stream("d"), execution={"x": "now"}, tags=[]
        ),
        code("show()", {**PICTURE, "data": {**PICTURE["data"], NEVER_STORED: {"model_id": "5f"}}}, tags=["draw"]),
        nbformat.v4.new_markdown_cell("words", metadata={"slideshow": {"slide_type": ""}, "textbook": ["C7.1.1"]}),
    ]
    kernel = {"name": "conda-env", "display_name": "mine"}
    notebook = nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": kernel, "widgets": {"state": {}}})
    for cell in notebook.cells:
        cell.id = "same"
    return notebook


def test_what_changes_from_run_to_run_is_gone():
    notebook = normalise(_untidy())
    assert set(notebook.metadata) == {"kernelspec", "language_info"} and notebook.metadata.kernelspec.name == "python3"
    assert [dict(cell.metadata) for cell in notebook.cells] == [{}, {"tags": ["draw"]}, {"textbook": ["C7.1.1"]}]
    assert NEVER_STORED not in as_text(notebook)


def test_what_was_computed_is_kept():
    notebook = normalise(_untidy())
    assert [(out.name, out.text) for out in notebook.cells[0].outputs] == [
        ("stdout", "ab\n"),
        ("stderr", "c"),
        ("stdout", "d"),
    ]
    assert notebook.cells[1].outputs[0] == nbformat.from_dict(PICTURE)


def test_ids_are_unique_and_the_same_every_time():
    first, second = normalise(_untidy()), normalise(_untidy())
    ids = [cell.id for cell in first.cells]
    assert len(set(ids)) == 3 and ids[0] == "same" and ids == [cell.id for cell in second.cells]
    without = json.loads(as_text(first))
    del without["cells"][1]["id"]
    assert normalise(from_text(json.dumps(without), "x")).cells[1].id == ids[1]
    nbformat.validate(first)


def test_normalising_twice_changes_nothing():
    text = as_text(normalise(_untidy()))
    assert as_text(normalise(from_text(text, "x"))) == text
    assert text.endswith("}\n") and not text.endswith("\n\n")


def test_counts_are_looked_at_and_not_invented():
    notebook = chapter()
    assert counted(notebook)
    notebook.cells[3].execution_count = None
    assert not counted(notebook) and not counted(normalise(copy.deepcopy(notebook)))


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"nbformat": 3, "worksheets": []}', '{"nbformat": 4}'])
def test_what_is_no_notebook_is_an_error_of_one_line(text):
    with pytest.raises(ValueError, match="x.ipynb should be a notebook of format 4; it is not: ") as caught:
        from_text(text, "x.ipynb")
    assert "\n" not in str(caught.value)


def test_the_command_checks_and_mends(tmp_path, capsys):
    path = tmp_path / "a.ipynb"
    notebook = chapter()
    notebook.metadata["widgets"] = {}
    path.write_text(as_text(notebook), encoding="utf-8")
    assert main(["check", str(path)]) == 1
    assert "a.ipynb: not normalised: run python -m tools.notebooks normalise a.ipynb" in capsys.readouterr().out
    assert main(["normalise", str(path)]) == 0 and main(["check", str(path)]) == 0
    assert [item.name for item in tmp_path.iterdir()] == ["a.ipynb"]
    path.write_text(path.read_text(encoding="utf-8").replace('"execution_count": 2', '"execution_count": 9'))
    assert main(["check", str(path)]) == 1
    assert "not executed 1 to n" in capsys.readouterr().out
    path.write_text("{", encoding="utf-8")
    assert main(["check", str(path)]) == 1
    assert main(["check", str(tmp_path / "none.ipynb")]) == 1
    assert "expected a notebook" in capsys.readouterr().err


def test_solutions_are_found_too(tmp_path):
    (tmp_path / "notebooks" / "solutions").mkdir(parents=True)
    for name in ("01_b.ipynb", "00_a.ipynb", "solutions/00_s.ipynb"):
        (tmp_path / "notebooks" / name).touch()
    assert [path.name for path in all_notebooks(tmp_path)] == ["00_a.ipynb", "01_b.ipynb", "00_s.ipynb"]


def test_headings_and_anchors():
    assert headings_of("# A\n```\n# no\n```\ntext\n## The *listing*: `RNNCell` ##\n#none") == [
        (1, "A"),
        (2, "The *listing*: `RNNCell`"),
    ]
    assert notebook_anchor("The *listing*: `RNNCell` and d_k") == "The-listing:-RNNCell-and-d_k"
