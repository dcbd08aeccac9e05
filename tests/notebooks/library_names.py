"""The names that the library has, found without insisting that all of it can be imported yet."""

import ast
import builtins
import contextlib
import importlib
import keyword
import pkgutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType

import transformer_lib

FOLDER = Path(transformer_lib.__file__).parent
OTHERS = {"np": "numpy", "plt": "matplotlib.pyplot", "F": "torch.nn.functional", "nn": "torch.nn"}
# What prose may name by a dotted path, and what is looked up there.
IMPORTABLE = {"transformer_lib", "torch", "numpy", "matplotlib", "nltk", "ipywidgets", "math"}


# Modules at the top that are for readers; the others (checks, files, ...) serve the library itself.
FOR_READERS = {"transformer_lib.protocols", "transformer_lib.decoding", "transformer_lib.evaluation"}


def _modules(folder: Path = FOLDER, name: str = "transformer_lib") -> Iterator[tuple[str, ModuleType]]:
    """The library's packages, and the modules of those packages that do not say themselves what they offer.

    What cannot be imported yet is left out; the library's own tests say so.
    """
    try:
        package = importlib.import_module(name)
    except Exception:
        return
    yield name, package
    for module in pkgutil.iter_modules([str(folder)], f"{name}."):
        if module.ispkg:
            yield from _modules(folder / module.name.rpartition(".")[2], module.name)
        elif module.name in FOR_READERS or (folder != FOLDER and not hasattr(package, "__all__")):
            with contextlib.suppress(Exception):
                yield module.name, importlib.import_module(module.name)


@cache
def public_names() -> dict[str, str]:
    """The names that are offered to readers -> the module that offers them."""
    names = {}
    for module_name, module in _modules():
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
