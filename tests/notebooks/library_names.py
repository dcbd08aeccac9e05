"""The names that the library has, found without insisting that all of it can be imported yet."""

import ast
import builtins
import importlib
import keyword
import pkgutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import transformer_lib

FOLDER = Path(transformer_lib.__file__).parent
OTHERS = {"np": "numpy", "plt": "matplotlib.pyplot", "F": "torch.nn.functional", "nn": "torch.nn"}
# What prose may name by a dotted path, and what is looked up there.
IMPORTABLE = {"transformer_lib", "torch", "numpy", "matplotlib", "nltk", "ipywidgets", "math"}


def _modules() -> Iterator[str]:
    yield "transformer_lib"
    for module in pkgutil.walk_packages([str(FOLDER)], "transformer_lib."):
        yield module.name


@cache
def public_names() -> dict[str, str]:
    """Public name -> the module that offers it; of a module that cannot be imported yet, nothing."""
    names = {}
    for module_name in _modules():
        if any(part.startswith("_") for part in module_name.split(".")):
            continue
        try:
            module = importlib.import_module(module_name)
        except Exception:  # under construction; the library's own tests say so
            continue
        offered = getattr(module, "__all__", None)
        if offered is None:
            own = (name for name, value in vars(module).items() if getattr(value, "__module__", "") == module_name)
            offered = [name for name in own if not name.startswith("_")]
        for name in offered:
            names.setdefault(name, module_name)
    return names


def identifiers(tree: ast.AST) -> set[str]:
    """Every name in a piece of code: variables, attributes, functions, arguments, keywords, imports, and words of one
    name that stand as texts."""
    found = set()
    for node in ast.walk(tree):
        for field in ("id", "attr", "name", "arg", "asname", "module"):
            value = getattr(node, field, None)
            if isinstance(value, str):
                found |= set(value.split("."))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.isidentifier():
            found.add(node.value)
    return found


@cache
def known_identifiers() -> frozenset[str]:
    """Every name that occurs in the library's source or in Python itself."""
    names = set(dir(builtins)) | set(keyword.kwlist)
    for path in FOLDER.rglob("*.py"):
        names |= identifiers(ast.parse(path.read_text(encoding="utf-8"))) | {path.stem}
    return frozenset(names | {folder.name for folder in FOLDER.rglob("*") if folder.is_dir()})


@cache
def resolves(dotted: str) -> bool:
    """Whether a dotted name leads to something: as many parts as possible are imported, the rest are attributes."""
    head, *rest = dotted.split(".")
    parts = [*OTHERS.get(head, head).split("."), *rest]
    for cut in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:cut]))
        except Exception:
            continue
        for part in parts[cut:]:
            if not hasattr(found, part):
                return False
            found = getattr(found, part)
        return True
    return False
