"""Which section of the textbook is answered where: ids in the cells' metadata, checked and made into a table.

    python -m tools.concordance            write the table into README.md
    python -m tools.concordance --check    only say what is missing, unknown or out of date

A cell carries `"textbook": ["C7.3.3"]` in its metadata. The ids and the chapters that owe them stand in
notebooks/textbook.json. A chapter's ids are demanded from the day its notebook exists.
"""

import argparse
import json
import sys
from dataclasses import dataclass
from pathlib import Path

from tools.notebooks import ROOT, headings_of, notebook_anchor, plain_words, read

BEGIN, END = "<!-- concordance -->", "<!-- /concordance -->"


@dataclass(frozen=True)
class Entry:
    """A section of the textbook: its number and title, and the chapter that takes it up."""

    section: str
    title: str
    chapter: str


@dataclass(frozen=True)
class Place:
    """Where a section is answered: the notebook and the heading that the cell stands under."""

    notebook: Path
    heading: str


def load_entries(root: Path = ROOT) -> dict[str, Entry]:
    """The textbook's sections by their ids, in the textbook's order.

    Raises:
        ValueError: an entry lacks its section, title or chapter.
    """
    content = json.loads((root / "notebooks" / "textbook.json").read_text(encoding="utf-8"))
    for name, entry in content.items():
        if set(entry) != {"section", "title", "chapter"} or not all(isinstance(v, str) and v for v in entry.values()):
            raise ValueError(f"textbook.json, {name}: expected section, title and chapter; got {sorted(entry)}")
    return {name: Entry(**entry) for name, entry in content.items()}


def chapters(root: Path = ROOT) -> dict[str, Path]:
    """The chapters that exist, by their two digits."""
    return {path.name[:2]: path for path in sorted((root / "notebooks").glob("[0-9][0-9]_*.ipynb"))}


def places(notebook: Path) -> dict[str, list[Place]]:
    """The ids that a notebook's cells carry, each with the headings under which it stands, in order."""
    found: dict[str, list[Place]] = {}
    heading = ""
    for cell in read(notebook).cells:
        if cell.cell_type == "markdown":
            headings = [words for level, words in headings_of(cell.source) if level <= 3]
            heading = headings[-1] if headings else heading
        for name in cell.metadata.get("textbook", []):
            place = Place(notebook, heading)
            if place not in found.setdefault(name, []):
                found[name].append(place)
    return found


def faults(root: Path = ROOT) -> list[str]:
    """Ids of existing chapters that no cell of that chapter carries, and ids that nobody knows: one line each."""
    entries, existing = load_entries(root), chapters(root)
    found = []
    for chapter, path in existing.items():
        carried = places(path)
        found += [
            f"{path.name}: carries {name}, which textbook.json has not: correct it"
            for name in carried
            if name not in entries
        ]
        found += [
            f"{path.name}: no cell carries {name} ({entry.section}, {entry.title}): add it to the metadata of the cell"
            for name, entry in entries.items()
            if entry.chapter == chapter and name not in carried
        ]
    return found


def table(root: Path = ROOT) -> str:
    """The table for readers: each section of the textbook that an existing chapter takes up, linked to the headings."""
    entries = load_entries(root)
    found: dict[str, list[Place]] = {}
    for path in chapters(root).values():
        for name, where in places(path).items():
            found.setdefault(name, []).extend(where)
    lines = ["| textbook | chapter and section |", "|---|---|"]
    for name, entry in entries.items():
        if name in found:
            links = "<br>".join(_link(place) for place in found[name])
            lines.append(f"| {entry.section} {entry.title} | {links} |")
    return "\n".join(lines)


def _link(place: Place) -> str:
    folder = place.notebook.parent.name
    words = plain_words(place.heading).replace("|", "\\|")
    anchor = notebook_anchor(place.heading).replace("(", "%28").replace(")", "%29").replace("|", "%7C")
    return f"[{place.notebook.name[:2]}: {words}]({folder}/{place.notebook.name}#{anchor})"


def with_table(text: str, root: Path = ROOT) -> str:
    """The README's text with the table between its marks.

    Raises:
        ValueError: the marks are not there, once each and in order.
    """
    if text.count(BEGIN) != 1 or text.count(END) != 1 or text.index(BEGIN) > text.index(END):
        raise ValueError(f"README.md: expected the marks {BEGIN} and {END} once each: put them where the table belongs")
    before, rest = text.split(BEGIN)
    return f"{before}{BEGIN}\n{table(root)}\n{END}{rest.split(END)[1]}"


def main(arguments: list[str] | None = None, root: Path = ROOT) -> int:
    """Check or write; return 0 if nothing is wrong."""
    parser = argparse.ArgumentParser(prog="python -m tools.concordance", description=__doc__.splitlines()[0])
    parser.add_argument("what", nargs="?", choices=["check", "table"], default="table")
    parser.add_argument("--check", action="store_true", help="write nothing, say what is wrong")
    options = parser.parse_args(arguments)
    checking = options.check or options.what == "check"
    readme = root / "README.md"
    try:
        found = faults(root)
        text = readme.read_text(encoding="utf-8") if readme.exists() else ""
        new = with_table(text, root)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 1
    if checking and new != text:
        found.append("README.md: the table of textbook sections is out of date: run python -m tools.concordance")
    if not checking and new != text:
        readme.write_text(new, encoding="utf-8", newline="\n")
    for fault in found:
        print(fault, file=sys.stderr)
    if not found:
        print(f"concordance: {len(chapters(root))} chapters answer every section that they owe")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
