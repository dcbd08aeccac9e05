"""A small notebook that obeys every rule, for the tests that break one at a time."""

from pathlib import Path

import nbformat

from tests.notebooks.book import Book
from tests.notebooks.prose_rules import SECTIONS
from tools.notebooks import normalise

ALT = "A line that falls from 1 to 0.25"
DIGEST = (
    f"{ALT}\nFigure 6.4 x 4 in, axes: 2\n"
    "axes title='Memory' x='step' -0.1 to 2.1 y='share' 0.2 to 1.04\n  line x[0, 1, 2] y[1, 0.5, 0.25]\n"
    "axes off title=''\ncolour bar label='share' 0 to 1"
)
PICTURE = {
    "output_type": "display_data",
    "data": {"image/png": "iVBORw0KGgo=", "text/plain": DIGEST},
    "metadata": {"image/png": {"alt": ALT}},
}
DRAW = "def draw(n):\n    return None"


def stream(text: str, name: str = "stdout") -> dict:
    """What a print leaves behind."""
    return {"output_type": "stream", "name": name, "text": text}


def code(source: str, *outputs: dict, **metadata) -> nbformat.NotebookNode:
    """A code cell."""
    return nbformat.v4.new_code_cell(source, outputs=[nbformat.from_dict(one) for one in outputs], metadata=metadata)


def chapter() -> nbformat.NotebookNode:
    """A chapter that obeys every rule; its cells are ids c0, c1, ..."""
    bodies = {
        "The question": "We ask [what is left](#Summary), as [notes](notes.md#what-is-left) do. `NGramModel` counts.",
        "By hand": [code("share = 0.5 ** 2\nprint(share)", stream("0.25\n"))],
        "The listing": [
            code("from transformer_lib.show import show\nlisting(show)", tags=["listing"]),
            code("assert share == 0.25"),
        ],
        "The picture": [
            code(DRAW, tags=["draw"], jupyter={"source_hidden": True}),
            code('show(draw(2), alt="a")', PICTURE),
        ],
        "Explore": [code("explore(draw, alt='a', n=None)", PICTURE)],
        "On real text": [code("import time", tags=["nbval-ignore-output"], reason="it depends on the machine")],
        "Exercises": [code(f'answer = None  # your answer\ncheck("1.{n}", answer)') for n in (1, 2, 3)],
        "Quiz": [code('quiz("01")')],
    }
    intro = "# 01 A good chapter\n\nYou need nothing. 20 minutes on two cores.\n\ntextbook: 7.1, 7.2"
    cells = [nbformat.v4.new_markdown_cell(intro)]
    for name in SECTIONS:
        body = bodies.get(name, "Words.")
        cells.append(nbformat.v4.new_markdown_cell(f"## {name}" + (f"\n\n{body}" if isinstance(body, str) else "")))
        cells += body if isinstance(body, list) else []
    return _numbered(cells)


def solutions() -> nbformat.NotebookNode:
    """The solutions of its exercises."""
    cells = [nbformat.v4.new_markdown_cell("# 01 Solutions")]
    cells += [code(f'answer = {n}\nassert verdict("1.{n}", answer) == "right"') for n in (1, 2, 3)]
    return _numbered(cells)


def _numbered(cells: list) -> nbformat.NotebookNode:
    count = 0
    for place, cell in enumerate(cells):
        cell.id = f"c{place}"
        if cell.cell_type == "code":
            count += 1
            cell.execution_count = count
    return normalise(nbformat.v4.new_notebook(cells=cells))


def renumbered(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """The notebook with its counts put right again, after a cell came or went."""
    for count, cell in enumerate((cell for cell in notebook.cells if cell.cell_type == "code"), 1):
        cell.execution_count = count
    return notebook


def in_folder(folder: Path, notebook: nbformat.NotebookNode, is_chapter: bool = True) -> Book:
    """The notebook at its place in a small repository with notes to link to and three exercises."""
    (folder / "exercises").mkdir(exist_ok=True)
    (folder / "notes.md").write_text("# Notes\n\n## What is left?\n", encoding="utf-8")
    checks = "".join(f'@exercise("1.{n}")\ndef _(answer):\n    return right()\n' for n in (1, 2, 3))
    (folder / "exercises" / "ch01.py").write_text(checks, encoding="utf-8")
    return Book.of(notebook, folder / "01_good.ipynb" if is_chapter else folder / "solutions" / "01_solutions.ipynb")
