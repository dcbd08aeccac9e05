"""What holds in every notebook's outputs: complete, free of warnings and of this computer, pictures with words."""

import ast
import re
import socket
from collections.abc import Callable
from pathlib import Path

from tests.notebooks.book import Book, tags, texts
from tools.notebooks import as_text, normalise

DIGEST = re.compile(r"^Figure [\d.]+ x [\d.]+ in, axes: \d+$", re.MULTILINE)
_QUOTED = r"('(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")"
AXES = re.compile(rf"^axes title={_QUOTED} x={_QUOTED} .*? y={_QUOTED} ", re.MULTILINE)
COLOUR_BAR = re.compile(rf"^colour bar label={_QUOTED} ", re.MULTILINE)
SIGNIFICANT = 8  # a printed number with so many digits shows a processor's last bits


def executed_in_order(book: Book) -> list[str]:
    """Every code cell was run, first to last, in a fresh kernel: an output without a count is compared with nothing."""
    return [
        book.fault(cell, f"has execution count {cell.execution_count} instead of {count}: execute the notebook")
        if cell.source.strip()
        else book.fault(cell, "is an empty code cell: delete it")
        for count, cell in enumerate(book.code, 1)
        if cell.execution_count != count or not cell.source.strip()
    ]


def normalised(book: Book) -> list[str]:
    """The file is in the one form in which executing it again changes no byte."""
    if as_text(normalise(Book(book.path, book.text).notebook)) == book.text:
        return []
    return [book.fault(None, "is not normalised: run python -m tools.notebooks normalise")]


def no_errors(book: Book) -> list[str]:
    """No cell failed."""
    failed = [(cell, out) for cell in book.code for out in cell.outputs if out.output_type == "error"]
    return [book.fault(cell, f"ended in {out.ename}: {out.evalue}: mend it, execute again") for cell, out in failed]


def no_warnings(book: Book) -> list[str]:
    """Nothing on stderr and no warning: their text differs from run to run."""
    found = []
    for cell in book.code:
        if any(out.output_type == "stream" and out.name == "stderr" for out in cell.outputs):
            found.append(book.fault(cell, "writes to stderr: take the cause of the warning away"))
        elif "listing" not in tags(cell):
            warned = next((word for text in texts(cell) for word in re.findall(r"\b\w*Warning:", text)), None)
            if warned:
                found.append(book.fault(cell, f"shows a {warned[:-1]}: take its cause away"))
    return found


def _machine_marks() -> dict[str, re.Pattern]:
    marks = {
        "an absolute path": re.compile(
            r"(?<![\w.:/~)-])/(?:home|Users|root|tmp|var|usr|opt|mnt|etc|private|srv|work|content|workspace)(?:/[\w.@-]+)+"
        ),
        "a Windows path": re.compile(r"(?<![A-Za-z])[A-Za-z]:\\+(?!n\b|t\b)\w"),
        "a path in the home folder": re.compile(r"(?<![\w~])~/\w"),
        "this computer's address": re.compile(r"\blocalhost\b|\b127\.0\.0\.1\b|\b0\.0\.0\.0\b"),
        "an object's address": re.compile(r"\bat 0x[0-9a-fA-F]{6,}"),
    }
    home, host = str(Path.home()), socket.gethostname()
    if len(home) > 5:
        marks["the home folder"] = re.compile(re.escape(home))
    if len(host) > 4 and host != "localhost":
        marks["this computer's name"] = re.compile(rf"\b{re.escape(host)}\b")
    return marks


def no_machine(book: Book) -> list[str]:
    """Neither outputs nor sources name a place on somebody's computer."""
    found = []
    for cell in book.notebook.cells:
        for what, mark in _machine_marks().items():
            hit = next((m.group() for text in [cell.source, *texts(cell)] for m in mark.finditer(text)), None)
            if hit:
                found.append(
                    book.fault(cell, f"names {what}, {hit!r}: use a path relative to the repository, or leave it")
                )
    return found


def figures_through_show(book: Book) -> list[str]:
    """Every picture has alt text and a digest: it was displayed by show or explore."""
    found = []
    for cell in book.code:
        for output in cell.outputs:
            data, metadata = output.get("data", {}), output.get("metadata", {})
            for kind in (kind for kind in data if kind.startswith("image/")):
                alt, text = metadata.get(kind, {}).get("alt", ""), data.get("text/plain", "")
                if not alt.strip() or not text.startswith(alt) or not DIGEST.search(text):
                    found.append(
                        book.fault(cell, 'displays a picture without alt text and digest: show(fig, alt="...")')
                    )
            plain = data.get("text/plain", "")
            if re.match(r"\[?<(Figure|Axes|matplotlib)|\[?Text\(", plain) and not any(
                k.startswith("image/") for k in data
            ):
                found.append(book.fault(cell, "shows a matplotlib object's name: assign the last line, then show(fig)"))
    return found


def axes_are_labelled(book: Book) -> list[str]:
    """Every axes that is not switched off has a title and says what its two sides are; every colour bar too."""
    found = []
    for cell in book.code:
        for output in cell.outputs:
            text = output.get("data", {}).get("text/plain", "")
            if not DIGEST.search(text):
                continue
            for labels in AXES.findall(text):
                for what, label in zip(("title", "x label", "y label"), labels):
                    if not ast.literal_eval(label).strip():
                        found.append(book.fault(cell, f"draws axes without {what} (title {labels[0]}): set it"))
            if any(not ast.literal_eval(label).strip() for label in COLOUR_BAR.findall(text)):
                found.append(book.fault(cell, "draws a colour bar without a label: say what it measures"))
    return found


def numbers_are_short(book: Book) -> list[str]:
    """No output shows a number with 8 or more significant digits: its last ones differ between processors."""
    found = []
    for cell in book.code:
        if "listing" in tags(cell):
            continue
        for text in texts(cell):
            for match in re.finditer(r"(?<![\w.])\d+\.\d+(?:[eE][+-]?\d+)?(?![\w.]*\.)", text):
                digits = re.sub(r"[eE].*|\.", "", match.group()).lstrip("0")
                if len(digits) >= SIGNIFICANT:
                    found.append(
                        book.fault(cell, f"shows {match.group()}: print 4 significant digits, as in {{x:.4g}}")
                    )
                    break
    return found


OUTPUT_RULES: list[Callable[[Book], list[str]]] = [
    executed_in_order,
    normalised,
    no_errors,
    no_warnings,
    no_machine,
    figures_through_show,
    axes_are_labelled,
    numbers_are_short,
]
