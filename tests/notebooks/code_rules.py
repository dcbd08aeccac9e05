"""What holds in every notebook's code: no second definition, short cells, asserted listings, open exercises."""

import ast
import re
from collections.abc import Callable
from pathlib import Path

from tests.notebooks.book import Book, calls, first_text, last_name, tags
from tests.notebooks.library_names import public_names

CODE_CELLS, EXPLORERS, LINES, DRAW_LINES, EXERCISES = 40, 2, 15, 25, (3, 6)


def _bound(body: list[ast.stmt]) -> list[tuple[str, str | None]]:
    """The names that a cell binds at its own level, each with the module it is imported from, if it is."""
    found: list[tuple[str, str | None]] = []
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.append((node.name, None))
            continue
        if isinstance(node, ast.Import | ast.ImportFrom):
            module = getattr(node, "module", None)
            found += [(one.asname or one.name.split(".")[0], module or one.name) for one in node.names]
        scopes, names = [node], []
        while scopes:  # into loops and conditions, but not into functions: what they bind is their own
            inner = scopes.pop()
            if isinstance(inner, ast.FunctionDef | ast.ClassDef) and inner is not node:
                names.append(inner.name)
            elif isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store):
                names.append(inner.id)
            elif not isinstance(inner, ast.Lambda | ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
                scopes += list(ast.iter_child_nodes(inner))
        found += [(name, None) for name in names]
    return found


def no_second_definition(book: Book) -> list[str]:
    """No cell defines, assigns or imports from elsewhere a name that the library has."""
    public = public_names()
    return [
        book.fault(cell, f"binds {name}, which is {public[name]}.{name}: use the library's, or choose another name")
        for cell, tree in book.trees
        for name, module in dict(reversed(_bound(tree.body))).items()
        if name in public and not (module or "").startswith("transformer_lib")
    ]


def within_bounds(book: Book) -> list[str]:
    """At most 40 code cells, 2 moving figures, 15 lines a cell; 25 for a folded cell that draws."""
    found = []
    if len(book.code) > CODE_CELLS:
        found.append(book.fault(None, f"has {len(book.code)} code cells; at most {CODE_CELLS}: split or cut"))
    explorers = sum(len(calls(tree, "explore")) for _, tree in book.trees)
    if explorers > EXPLORERS:
        found.append(book.fault(None, f"has {explorers} explore widgets; at most {EXPLORERS}: cut"))
    for cell, tree in book.trees:
        draws, lines = "draw" in tags(cell), len(cell.source.strip().splitlines())
        if lines > (DRAW_LINES if draws else LINES):
            found.append(book.fault(cell, f"has {lines} lines; at most {DRAW_LINES if draws else LINES}: split it"))
        if draws and not any(isinstance(node, ast.FunctionDef) for node in tree.body):
            found.append(book.fault(cell, "is tagged draw but defines no function: take the tag away"))
        if draws and cell.metadata.get("jupyter", {}).get("source_hidden") is not True:
            found.append(
                book.fault(cell, 'is tagged draw but not folded: set metadata "jupyter": {"source_hidden": true}')
            )
    return found


def ignored_outputs_have_reasons(book: Book) -> list[str]:
    """A cell whose output is not compared says why; no cell is left out of the run or expected to fail."""
    found = []
    for cell in book.code:
        ignored = "nbval-ignore-output" in tags(cell)
        if ignored and not str(cell.metadata.get("reason") or "").strip():
            found.append(book.fault(cell, 'ignores its output without a reason: set metadata "reason"'))
        if not ignored and "reason" in cell.metadata:
            found.append(book.fault(cell, "gives a reason but ignores nothing: take the reason away"))
        other = {"nbval-skip", "nbval-raises-exception", "raises-exception", "skip-execution"} & set(tags(cell))
        marks = re.findall(r"^\s*#+\s*(NBVAL_\w+|PYTEST_VALIDATE_IGNORE_OUTPUT)\s*$", cell.source, re.MULTILINE)
        for mark in [*sorted(other), *marks]:
            found.append(book.fault(cell, f"carries {mark}: only the tag nbval-ignore-output with a reason is allowed"))
    return found


def listings_are_asserted(book: Book) -> list[str]:
    """A listing stands alone in a cell tagged `listing`, and an assert follows before the next listing."""
    found, open_listing = [], None
    for cell, tree in book.trees:
        if calls(tree, "listing"):
            only = all(
                isinstance(node, ast.Import | ast.ImportFrom)
                or isinstance(node, ast.Expr)
                and isinstance(node.value, ast.Call)
                and last_name(node.value.func) == "listing"
                for node in tree.body
            )
            if not only:
                found.append(book.fault(cell, "does more than list source: a listing stands in a cell of its own"))
            if "listing" not in tags(cell):
                found.append(book.fault(cell, "lists source without the tag listing: add it"))
            if open_listing is not None:
                found.append(
                    book.fault(open_listing, "lists source that no assert tests before the next listing: add one")
                )
            open_listing = cell
        else:
            if "listing" in tags(cell):
                found.append(book.fault(cell, "is tagged listing but lists nothing: take the tag away"))
            if any(isinstance(node, ast.Assert) for node in ast.walk(tree)):
                open_listing = None
    if open_listing is not None:
        found.append(book.fault(open_listing, "lists source that no later assert tests: add one"))
    return found


FORBIDDEN = {
    "interact": "explore(draw, alt=..., ...)",
    "interactive": "explore(draw, alt=..., ...)",
    "interact_manual": "explore(draw, alt=..., ...)",
    "interactive_output": "explore(draw, alt=..., ...)",
    "Output": "explore(draw, alt=..., ...)",
    "clear_output": "no replaced output",
    "update_display": "no replaced output",
}


def only_explore_moves(book: Book) -> list[str]:
    """Widgets come from explore, pictures from show: anything else can never pass a strict comparison."""
    found = []
    for cell, tree in book.trees:
        for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
            name = last_name(call.func)
            owner = call.func.value if isinstance(call.func, ast.Attribute) else None
            if name in FORBIDDEN:
                found.append(book.fault(cell, f"calls {name}: use {FORBIDDEN[name]}"))
            elif name == "show" and isinstance(owner, ast.Name) and owner.id in ("plt", "fig", "figure", "pyplot"):
                found.append(book.fault(cell, f'calls {owner.id}.show: use show(fig, alt="...")'))
        if re.search(r"^\s*[%!]", cell.source, re.MULTILINE):
            found.append(book.fault(cell, "uses a command of IPython (% or !): write Python"))
    return found


def _check_names(path: Path) -> list[str]:
    """The exercises of a file of checks, read without running it."""
    if not path.is_file():
        return []
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return [name for name in map(first_text, calls(tree, "exercise")) if name]


def exercises_are_open(book: Book) -> list[str]:
    """A chapter asks 3 to 6 exercises and answers none; its solutions answer all of them rightly; a quiz closes it."""
    known = _check_names(book.exercises / f"ch{book.chapter}.py")
    found, asked = [], []
    for cell, tree in book.trees:
        for call in calls(tree, "check" if book.is_chapter else "verdict"):
            name = first_text(call)
            asked.append(name)
            if name not in known:
                found.append(book.fault(cell, f"asks for exercise {name}; exercises/ch{book.chapter}.py has {known}"))
            if book.is_chapter and not _unanswered(call, tree):
                found.append(book.fault(cell, f"gives exercise {name} an answer: leave `answer = None  # your answer`"))
            if not book.is_chapter and not _asserted_right(call, tree):
                found.append(book.fault(cell, f'does not assert verdict("{name}", ...) == "right": do'))
    missing = sorted(set(known) - set(asked))
    if missing:
        found.append(book.fault(None, f"leaves out exercise {', '.join(missing)}: add a cell for it"))
    if book.is_chapter:
        if not EXERCISES[0] <= len(set(asked)) <= EXERCISES[1]:
            found.append(
                book.fault(None, f"has {len(set(asked))} exercises; {EXERCISES[0]} to {EXERCISES[1]} are wanted")
            )
        quizzes = [first_text(call) for _, tree in book.trees for call in calls(tree, "quiz")]
        if quizzes != [book.chapter]:
            found.append(book.fault(None, f'asks the quizzes {quizzes}; one quiz("{book.chapter}") is wanted'))
    return found


def _unanswered(call: ast.Call, tree: ast.Module) -> bool:
    given = call.args[1] if len(call.args) > 1 else None
    if isinstance(given, ast.Constant):
        return given.value is None
    values = [
        node.value
        for node in tree.body
        if isinstance(node, ast.Assign) and any(last_name(target) == last_name(given) for target in node.targets)
    ]
    return bool(values) and all(isinstance(value, ast.Constant) and value.value is None for value in values)


def _asserted_right(call: ast.Call, tree: ast.Module) -> bool:
    return any(
        isinstance(node, ast.Assert)
        and isinstance(node.test, ast.Compare)
        and node.test.left is call
        and isinstance(node.test.ops[0], ast.Eq)
        and isinstance(node.test.comparators[0], ast.Constant)
        and node.test.comparators[0].value == "right"
        for node in ast.walk(tree)
    )


CODE_RULES: list[Callable[[Book], list[str]]] = [
    no_second_definition,
    within_bounds,
    ignored_outputs_have_reasons,
    listings_are_asserted,
    only_explore_moves,
    exercises_are_open,
]
