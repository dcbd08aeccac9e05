"""What the strict comparison of outputs (nbval) sees: what show displays passes, any change in it fails."""

import copy
import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

import nbformat
import pytest

from tests.notebooks.book import Book
from tests.notebooks.output_rules import OUTPUT_RULES
from tools.notebooks import ROOT, as_text, environment, from_text, normalise, read

pytestmark = pytest.mark.slow

SOURCES = {
    "imports": "import matplotlib.pyplot as plt\nfrom ipywidgets import IntSlider\n"
    "from transformer_lib.show import check, explore, heatmap, listing, quiz, show",
    "figure": "share = [1, 0.5, 0.25]\nfig, ax = plt.subplots()\nax.plot(share)\n"
    'ax.set(title="Memory of 猫", xlabel="step", ylabel="share")\nshow(fig, alt="A falling line")',
    "heatmap": 'show(heatmap([[0.1, 0.9]], ["猫"], ["a", "b"], "Weights", "to", "from"), alt="Two weights")',
    "explore": "def draw(n):\n    return heatmap([[n, 1]], title='t', xlabel='x', ylabel='y')\n\n"
    'explore(draw, alt="Two numbers", n=IntSlider(3, 0, 9))',
    "listing": "listing(heatmap)",
    "check": 'answer = None  # your answer\ncheck("1.1", answer, folder="exercises")',
    "quiz": 'quiz("01", folder="exercises")',
    "ignored": "import time\nprint(time.time())",
}
# Changes of a source under stored outputs: those that have to be noticed, and those that must not matter.
NOTICED = {
    "point": ("figure", "0.25]", "0.251]"),
    "label": ("figure", '"share")', '"shares")'),
    "alt": ("figure", "A falling line", "A rising line"),
    "cell": ("heatmap", "0.9]", "0.91]"),
    "name": ("heatmap", '"猫"', '"犬"'),
    "start": ("explore", "IntSlider(3", "IntSlider(4"),
    "draw": ("explore", "title='t'", "title='u'"),
    "extreme": ("explore", "    return", "    1 / (9 - n)\n    return"),
    "twice": ("figure", "fig, ax", "plt.figure(); fig, ax"),
    "source": ("listing", "listing(heatmap)", "listing(show)"),
    "raises": ("ignored", "print", "1 / 0\nprint"),
}
UNNOTICED = {
    "answered": ("check", "None", "0.3"),
    "wrong": ("check", "None", "lambda: 1 / 0"),
    "ignoring": ("ignored", "print(", "print(1, "),
}


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Which cells failed under nbval: one folder of notebooks, executed once and compared once."""
    folder = tmp_path_factory.mktemp("nbval")
    (folder / "exercises").mkdir()
    (folder / "exercises" / "ch01.py").write_text(
        'from transformer_lib.show import exercise, right\n\n@exercise("1.1")\ndef _(answer):\n    return right()\n',
        encoding="utf-8",
    )
    question = {
        "question": "Why?",
        "answers": [{"text": text, "right": text == "a", "why": "so"} for text in ("a", "b")],
    }
    (folder / "exercises" / "ch01_quiz.json").write_text(json.dumps({"chapter": "01", "questions": [question]}))
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in SOURCES.values()])
    notebook.cells[list(SOURCES).index("listing")].metadata = {"tags": ["listing"]}
    notebook.cells[-1].metadata = {"tags": ["nbval-ignore-output"], "reason": "the time"}
    path = folder / "good.ipynb"
    path.write_text(as_text(normalise(notebook)), encoding="utf-8")
    texts = []
    for _ in range(2):
        _run(["-m", "tools.notebooks", "execute", str(path)], check=True)
        texts.append(path.read_text(encoding="utf-8"))
    stored = read(path)
    # One kernel for all: the stored notebook, then every change with the outputs of before it.
    cells = [*stored.cells, *(_changed(stored, change) for change in [*NOTICED.values(), *UNNOTICED.values()])]
    for place, cell in enumerate(cells):
        cell.id = f"c{place}"
    path.write_text(as_text(nbformat.v4.new_notebook(cells=cells)), encoding="utf-8")
    report = folder / "report.xml"
    _run(
        ["-m", "pytest", "--nbval", "--nbval-current-env", "-p", "no:cacheprovider", f"--junitxml={report}", str(path)]
    )
    cases = list(ElementTree.parse(report).getroot().iter("testcase"))
    assert [case.get("name") for case in cases] == [f"Cell {place}" for place in range(len(cells))]
    failed = [case.find("failure") is not None for case in cases]
    return {"texts": texts, "stored": stored, "failed": dict(zip([*SOURCES, *NOTICED, *UNNOTICED], failed))}


def _changed(stored, change):
    """A stored cell with another source under the same outputs."""
    name, old, new = change
    cell = copy.deepcopy(dict(zip(SOURCES, stored.cells))[name])
    assert cell.source.count(old) == 1, old
    cell.source = cell.source.replace(old, new)
    return cell


def _run(arguments, check=False):
    done = subprocess.run([sys.executable, *arguments], cwd=ROOT, env=environment(), capture_output=True, text=True)
    assert not check or done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", SOURCES)
def test_everything_that_show_displays_passes(name, results):
    assert results["failed"][name] is False


@pytest.mark.parametrize("name", NOTICED)
def test_a_change_fails(name, results):
    assert results["failed"][name] is True


@pytest.mark.parametrize("name", UNNOTICED)
def test_an_answer_and_an_ignored_output_pass(name, results):
    assert results["failed"][name] is False


def test_executing_again_changes_no_byte_but_the_ignored(results):
    first, second = (from_text(text, "good.ipynb") for text in results["texts"])
    assert first.cells[-1].outputs != second.cells[-1].outputs
    first.cells[-1].outputs = second.cells[-1].outputs = []
    assert as_text(first) == as_text(second) and "image/png" in as_text(first)


def test_what_show_leaves_behind_obeys_the_rules(results):
    book = Book.of(results["stored"], ROOT / "notebooks" / "01_sample.ipynb")
    faults = [fault for rule in OUTPUT_RULES for fault in rule(book)]
    assert len(faults) == 1 and "shows" in faults[0]  # the time, in the ignored cell


def test_nothing_is_displayed_twice_or_stored_that_needs_a_kernel(results):
    outputs = dict(zip(SOURCES, (cell.outputs for cell in results["stored"].cells)))
    assert [len(outputs[name]) for name in SOURCES] == [0, 1, 1, 1, 1, 1, 1, 1]
    assert "widget-view" not in results["texts"][0]
    assert set(outputs["explore"][0].data) == {"image/png", "text/plain"}
    assert os.environ["TRANSFORMER_LIB_PROGRESS"] == "0"
