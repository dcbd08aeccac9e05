"""A small table, readable as text and drawn as Markdown.

Serves all chapters; what a cell computed stands in it, nothing typed.
"""

from collections.abc import Sequence
from unicodedata import east_asian_width

from transformer_lib.checks import require
from transformer_lib.show.figures import emit


def table(headers: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Display rows under headers. Numbers are shown with at most 4 significant digits, whole numbers in full."""
    cells = [[_text(value) for value in row] for row in rows]
    for number, row in enumerate(cells):
        require(
            len(row) == len(headers), f"rows: expected {len(headers)} values in each, got {len(row)} in row {number}"
        )
    numeric = [all(isinstance(row[i], int | float) for row in rows) for i in range(len(headers))]
    widths = [max(_width(row[i]) for row in [list(headers), *cells]) for i in range(len(headers))]
    lines = [
        "  ".join(
            " " * (width - _width(text)) * right + text + " " * (width - _width(text)) * (not right)
            for text, width, right in zip(row, widths, numeric, strict=True)
        ).rstrip()
        for row in [list(headers), *cells]
    ]
    rule = ["---:" if right else "---" for right in numeric]
    escaped = [[text.replace("|", r"\|") for text in row] for row in [list(headers), rule, *cells]]
    markdown = "\n".join("| " + " | ".join(row) + " |" for row in escaped)
    emit({"text/markdown": markdown, "text/plain": "\n".join(lines)})


def _width(text: str) -> int:
    """How many columns a text takes: a Japanese character takes two."""
    return sum(2 if east_asian_width(character) in "WF" else 1 for character in text)


def _text(value: object) -> str:
    if isinstance(value, bool | str):
        return str(value)
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        if value != 0 and not 1e-4 <= abs(value) < 1e4 and abs(value) != float("inf"):
            return f"{value:.3g}" if abs(value) < 1 or abs(value) >= 1e7 else f"{value:,.0f}"
        return f"{value:.4g}"
    return str(value)
