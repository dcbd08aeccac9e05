"""Planted faults: each chapter notices its own, and the harness tells noticed from unnoticed.

Here the first fault of each chapter is planted, since each costs a chapter's run; `make faults` plants them all.
"""

import nbformat
import pytest

from tests.notebooks.samples import code, stream
from tools.concordance import chapters
from tools.faults import FAULTS, Fault, run, run_all
from tools.notebooks import ROOT, as_text, normalise

LIBRARY = '''\
"""A library of one formula."""


def half(x):
    return x / 2
'''


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """A course of three chapters on one formula: one asserts, one shows a number, one only lists the source."""
    folder = tmp_path_factory.mktemp("course")
    (folder / "transformer_lib").mkdir()
    (folder / "transformer_lib" / "__init__.py").write_text(LIBRARY, encoding="utf-8")
    (folder / "data").mkdir()
    (folder / "data" / "number.txt").write_text("8", encoding="utf-8")
    (folder / "notebooks").mkdir()
    use = "from transformer_lib import half\nfrom pathlib import Path\nx = int(Path('../data/number.txt').read_text())"
    source = "return x / 2\n"
    listed = "import inspect\nprint(inspect.getsource(half).splitlines()[1].strip())"
    asserts = "assert half(x) == 4, f'expected 4, got {half(x)}'"
    for name, cells in {
        "01_asserts": [code(use), code(asserts), code("never_reached = half(x)")],
        "02_shows": [code(use), code("print(half(x))", stream("4.0\n")), code("assert half(x) == 4")],
        "03_lists": [code(use), code(listed, stream(source), tags=["listing"]), code("print(x)", stream("8\n"))],
    }.items():
        notebook = normalise(nbformat.v4.new_notebook(cells=cells))
        for count, cell in enumerate(notebook.cells, 1):
            cell.execution_count, cell.id = count, f"c{count}"
        (folder / "notebooks" / f"{name}.ipynb").write_text(as_text(notebook), encoding="utf-8")
    return folder


def _fault(new="x / 3", chapter="01", old="x / 2"):
    return Fault(f"{new} in {chapter}", "__init__.py", old, new, chapter)


@pytest.fixture(scope="module")
def outcomes(root):
    faults = [_fault(chapter=chapter) for chapter in ("01", "02", "03")]
    faults.append(_fault("y / 2"))
    return {name: str(outcome) for name, outcome in run_all(faults, root).items()}


@pytest.mark.slow
@pytest.mark.parametrize(
    "name, said",
    [
        ("x / 3 in 01", "noticed by cell c2 (an assert failed)"),
        ("x / 3 in 02", "noticed by cell c2 (an output changed)"),
        ("x / 3 in 03", "unnoticed (3 cells passed)"),  # only the listing changed
        ("y / 2 in 01", "crashed by cell c2 (NameError)"),
    ],
)
def test_the_harness_tells_noticed_from_unnoticed(name, said, outcomes):
    assert outcomes[name] == said


@pytest.mark.slow
def test_an_unfaulted_copy_passes_and_nothing_is_left_behind(root):
    before = sorted(path.relative_to(root) for path in root.rglob("*"))
    assert str(run(None, "02", root)) == "unnoticed (3 cells passed)"
    assert (root / "transformer_lib" / "__init__.py").read_text(encoding="utf-8") == LIBRARY
    assert sorted(path.relative_to(root) for path in root.rglob("*")) == before


@pytest.mark.slow
def test_a_fault_that_never_ends_is_cut_off(root):
    fault = _fault("x / 2\n    while x: pass", old="x / 2")
    assert str(run(fault, "01", root, timeout=0.5)) == "too slow (more than 0.5 s)"


@pytest.mark.parametrize(
    "fault, said",
    [
        (_fault(old="x / 4"), "expected once in __init__.py: 'x / 4'; it is there 0 times"),
        (_fault(old="x"), "expected once in __init__.py: 'x'; it is there 2 times"),
        (_fault("x /"), "expected Python; line 5"),
    ],
)
def test_a_fault_that_cannot_be_planted_is_an_error_of_one_line(fault, said, root):
    with pytest.raises(ValueError, match=said) as caught:
        run(fault, "01", root)
    assert "\n" not in str(caught.value)


def test_a_chapter_that_is_not_there_is_an_error_of_one_line(root):
    with pytest.raises(FileNotFoundError, match="expected a notebook of chapter 09"):
        run(None, "09", root)


def test_there_are_enough_over_all_chapters():
    assert len(FAULTS) >= 30 and len({fault.name for fault in FAULTS}) == len(FAULTS)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_fault_can_be_planted(fault):
    source = (ROOT / "transformer_lib" / fault.file).read_text(encoding="utf-8")
    assert fault.planted(source) != source


FIRST = list({fault.chapter: fault for fault in reversed(FAULTS)}.values())


def test_every_chapter_has_a_fault():
    assert {fault.chapter for fault in FAULTS} == set(chapters())


@pytest.fixture(scope="module")
def noticed():
    """One fault of each chapter, two at a time."""
    return run_all(FIRST)


@pytest.mark.slow
@pytest.mark.parametrize("fault", FIRST, ids=lambda fault: fault.name)
def test_the_course_notices(fault, noticed):
    assert noticed[fault.name].noticed, f"chapter {fault.chapter}: {noticed[fault.name]}"
