"""A library function's own source, printed in the notebook: the listing is the code, so the two cannot drift apart.

Serves all chapters.
"""

import ast
import functools
import inspect
import textwrap

from transformer_lib.show.figures import emit


def source_of(thing) -> str:
    """The source of a function, class, method or property, dedented and without its docstrings; comments stay.

    Raises:
        TypeError: the thing has no Python source of its own, as a built-in function or a number.
    """
    if isinstance(thing, functools.partial):
        thing = thing.func
    if isinstance(thing, property):
        thing = thing.fget
    thing = inspect.unwrap(getattr(thing, "__func__", thing))
    try:
        source = inspect.getsource(thing)
    except (TypeError, OSError):
        hint = f": pass {type(thing).__name__}" if inspect.isclass(type(thing)) and not callable(thing) else ""
        name = getattr(thing, "__name__", type(thing).__name__)
        raise TypeError(f"listing expects a function, class or method written in Python; got {name}{hint}") from None
    return without_docstrings(textwrap.dedent(source))


def without_docstrings(source: str) -> str:
    """Leave the docstrings out, and the blank line after each; a body that was nothing else becomes `...`."""
    lines = source.rstrip().splitlines()
    owners = (ast.Module, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, owners) or ast.get_docstring(node, clean=False) is None:
            continue
        docstring = node.body[0]
        if docstring.lineno == getattr(node, "lineno", 0):
            continue  # all on one line: nothing to leave out without breaking it
        first, last = docstring.lineno - 1, docstring.end_lineno
        alone = len(node.body) == 1 and not isinstance(node, ast.Module)
        lines[first] = " " * docstring.col_offset + "..." if alone else None
        lines[first + 1 : last] = [None] * (last - first - 1)
        if not alone and last < len(lines) and not lines[last].strip():
            lines[last] = None
    return "\n".join(line for line in lines if line is not None)


def listing(thing, *more) -> None:
    """Print the source of library functions, classes or methods, without docstrings, coloured where possible.

    Args:
        thing, more: what to print, in this order.

    Raises:
        TypeError: something has no Python source.
    """
    source = "\n\n".join(source_of(each) for each in (thing, *more))
    fence = "```" if "```" not in source else "````"
    emit({"text/plain": source, "text/markdown": f"{fence}python\n{source}\n{fence}"})
