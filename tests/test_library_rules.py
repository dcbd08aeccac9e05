"""The library stays readable: short modules, short parts, every public name explained."""

import ast
import os
from pathlib import Path

import pytest

LIBRARY = Path(__file__).resolve().parents[1] / "transformer_lib"
MODULES = sorted(LIBRARY.rglob("*.py"))
PARTS = sorted((LIBRARY / "parts").rglob("*.py"))

# A mutation tester keeps every variant of a function beside it: these rules are about the source as people read it.
pytestmark = pytest.mark.skipif("MUTANT_UNDER_TEST" in os.environ, reason="the source is full of variants")

Documented = ast.Module | ast.ClassDef | ast.FunctionDef


def name_of(path):
    return path.relative_to(LIBRARY.parent).as_posix()


def documented(tree):
    return [node for node in ast.walk(tree) if isinstance(node, Documented)]


def lines_of_code(source, node=None):
    """Lines of the source, or of one class or function in it, that are neither blank nor comment nor docstring."""
    tree = ast.parse(source)
    prose = set()
    for each in documented(tree):
        if ast.get_docstring(each, clean=False) is not None:
            prose.update(range(each.body[0].lineno, each.body[0].end_lineno + 1))
    lines = source.splitlines()
    first, last = (node.lineno, node.end_lineno) if node is not None else (1, len(lines))
    return sum(
        number not in prose and bool(lines[number - 1].strip()) and not lines[number - 1].strip().startswith("#")
        for number in range(first, last + 1)
    )


def public(tree):
    """The public classes and functions of a module, and the public methods of its classes."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and not node.name.startswith("_"):
            yield node.name, node
            if isinstance(node, ast.ClassDef):
                for method in node.body:
                    if isinstance(method, ast.FunctionDef) and not method.name.startswith("_"):
                        yield f"{node.name}.{method.name}", method


EXAMPLE = '''"""A module.

Of two lines.
"""

import os  # counts

# does not count


class A:
    """Says something."""

    def f(self):
        r"""Says
        more."""
        text = """a string that is
        no docstring"""
        return text
'''


def test_lines_are_counted_without_docstrings_comments_and_blanks():
    assert lines_of_code(EXAMPLE) == 6
    (name, node), (method_name, method) = public(ast.parse(EXAMPLE))
    assert (name, method_name) == ("A", "A.f")
    assert lines_of_code(EXAMPLE, node) == 5 and lines_of_code(EXAMPLE, method) == 4


def test_the_library_is_found():
    assert {"transformer_lib/__init__.py", "transformer_lib/models/ngram.py"} <= set(map(name_of, MODULES))


def test_the_whole_library_is_under_3500_lines():
    assert sum(lines_of_code(path.read_text(encoding="utf-8")) for path in MODULES) < 3500


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_no_module_is_over_300_lines(path):
    assert lines_of_code(path.read_text(encoding="utf-8")) <= 300


@pytest.mark.parametrize("path", PARTS, ids=name_of)
def test_no_part_is_over_60_lines(path):
    source = path.read_text(encoding="utf-8")
    lengths = {name: lines_of_code(source, node) for name, node in public(ast.parse(source))}
    assert {name: length for name, length in lengths.items() if length > 60} == {}


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_a_module_says_what_it_holds(path):
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    assert docstring and docstring.splitlines()[0].endswith(".")


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_every_public_name_is_explained(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert [name for name, node in public(tree) if not ast.get_docstring(node)] == []


@pytest.mark.parametrize("path", PARTS, ids=name_of)
def test_a_part_has_few_arguments(path):
    """When a sixth is wanted (self not counted), it is two parts."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    many = {f.name: len([a for a in f.args.args + f.args.kwonlyargs if a.arg != "self"]) for f in functions}
    assert {name: number for name, number in many.items() if number > 5} == {}


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_text_files_are_opened_as_utf_8_and_nothing_is_unpickled(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            keywords = {keyword.arg for keyword in node.keywords}
            place = f"{name_of(path)}, line {node.lineno}"
            if called in ("read_text", "write_text"):
                assert "encoding" in keywords, place
            if called == "write_text":
                assert "newline" in keywords, place
            owner = getattr(getattr(node.func, "value", None), "id", "")
            assert (owner, called) not in {("torch", "load"), ("torch", "save"), ("pickle", "load")}, place
