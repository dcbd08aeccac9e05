"""A notebook as the rules read it: cells, code as syntax trees, outputs as text, headings and their anchors."""

import ast
import re
import urllib.parse
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import nbformat

from tools.notebooks import FENCED, ROOT, as_text, from_text, headings_of, notebook_anchor, plain_words, read

LINK = re.compile(
    r"!?\[(?:[^\[\]]|\[[^\]]*\])*\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)|(?:href|src)=[\"']([^\"']+)"
)
CODE_SPAN = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")


def markdown_anchor(heading: str) -> str:
    """The anchor that GitHub gives a heading of a Markdown file."""
    return re.sub(r"[^\w\- ]", "", plain_words(heading).lower()).replace(" ", "-")


def anchors_of(path: Path) -> set[str]:
    """The anchors of a notebook or a Markdown file; of any other file none."""
    if path.suffix == ".ipynb":
        cells = read(path).cells
        return {notebook_anchor(h) for c in cells if c.cell_type == "markdown" for _, h in headings_of(c.source)}
    if path.suffix == ".md":
        return {markdown_anchor(heading) for _, heading in headings_of(path.read_text(encoding="utf-8"))}
    return set()


def parse(source: str) -> ast.Module:
    """A cell's syntax tree; lines of IPython's own (%, !) are left out."""
    plain = "\n".join("pass" if line.lstrip().startswith(("%", "!")) else line for line in source.splitlines())
    try:
        return ast.parse(plain)
    except SyntaxError:
        return ast.Module(body=[], type_ignores=[])


def calls(tree: ast.AST, name: str) -> list[ast.Call]:
    """The calls of a function by its last name: show(...) and anything.show(...) alike."""
    found = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return [call for call in found if last_name(call.func) == name]


def last_name(function: ast.expr) -> str | None:
    """The name behind the last dot."""
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else None


def first_text(call: ast.Call) -> str | None:
    """The first argument, if it is a text written out."""
    first = call.args[0] if call.args else None
    return first.value if isinstance(first, ast.Constant) and isinstance(first.value, str) else None


@dataclass
class Book:
    """A notebook with its place and its text; `solutions` ones are held to fewer rules."""

    path: Path
    text: str

    @classmethod
    def read(cls, path: Path) -> "Book":
        """From a file."""
        return cls(path, path.read_text(encoding="utf-8"))

    @classmethod
    def of(cls, notebook: nbformat.NotebookNode, path: Path) -> "Book":
        """From memory, as if it stood at that path."""
        return cls(path, as_text(notebook))

    @cached_property
    def notebook(self) -> nbformat.NotebookNode:
        return from_text(self.text, self.name)

    @property
    def is_chapter(self) -> bool:
        return self.path.parent.name != "solutions"

    @property
    def chapter(self) -> str:
        """The two digits that the file's name begins with."""
        return self.path.name[:2]

    @property
    def exercises(self) -> Path:
        """The folder of the checks and quizzes."""
        return (self.path.parent if self.is_chapter else self.path.parent.parent) / "exercises"

    @property
    def name(self) -> str:
        return self.path.relative_to(ROOT).as_posix() if self.path.is_relative_to(ROOT) else self.path.name

    @cached_property
    def code(self) -> list[nbformat.NotebookNode]:
        return [cell for cell in self.notebook.cells if cell.cell_type == "code"]

    @cached_property
    def prose(self) -> list[nbformat.NotebookNode]:
        return [cell for cell in self.notebook.cells if cell.cell_type == "markdown"]

    @cached_property
    def trees(self) -> list[tuple[nbformat.NotebookNode, ast.Module]]:
        """Each code cell with its syntax tree."""
        return [(cell, parse(cell.source)) for cell in self.code]

    @cached_property
    def headings(self) -> list[tuple[int, str]]:
        return [heading for cell in self.prose for heading in headings_of(cell.source)]

    def fault(self, cell: nbformat.NotebookNode | None, what: str) -> str:
        """One line: which file, which cell, what to do."""
        place = f"{self.name}, cell {cell.get('id', '?')}" if cell is not None else self.name
        return f"{place}: {' '.join(what.split())}"

    def links(self) -> Iterator[tuple[nbformat.NotebookNode, str]]:
        """Every link and picture in the prose."""
        for cell in self.prose:
            for match in LINK.finditer(CODE_SPAN.sub("", FENCED.sub("", cell.source))):
                yield cell, urllib.parse.unquote(match.group(1) or match.group(2))


def tags(cell: nbformat.NotebookNode) -> list[str]:
    """A cell's tags."""
    return cell.metadata.get("tags", [])


def texts(cell: nbformat.NotebookNode) -> Iterator[str]:
    """Everything in a cell's outputs that is text: streams, results, errors, but no pictures."""
    for output in cell.get("outputs", []):
        if output.output_type == "stream":
            yield output.text
        elif output.output_type == "error":
            yield "\n".join([output.ename, output.evalue, *output.traceback])
        else:
            yield from (str(value) for kind, value in output.data.items() if not kind.startswith("image/"))
