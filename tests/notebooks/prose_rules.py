"""What holds in every notebook's prose: its headings, its first cell, its links, the names it mentions."""

import re
from collections.abc import Callable

from tests.notebooks.book import CODE_SPAN, FENCED, Book, anchors_of, headings_of, notebook_anchor
from tests.notebooks.library_names import (
    IMPORTABLE,
    OTHERS,
    identifiers,
    known_identifiers,
    public_names,
    resolves,
)

SECTIONS = [
    "The question",
    "By hand",
    "The listing",
    "The picture",
    "Explore",
    "On real text",
    "Break it",
    "What remains open",
    "Summary",
    "Exercises",
    "Quiz",
    "References",
]
REPEATED = {"By hand", "The listing"}  # once for each idea


def _section(heading: str) -> str | None:
    return next((name for name in SECTIONS if re.match(rf"{name}\b", heading)), None)


def sections_in_order(book: Book) -> list[str]:
    """A chapter has all its sections, in the one order; only the two that belong to an idea may come again."""
    if not book.is_chapter:
        return []
    found, last, seen = [], -1, []
    for level, heading in book.headings:
        name = _section(heading) if level == 2 else None
        if name is None:
            continue
        if name in seen:
            if name not in REPEATED or "What remains open" in seen:
                found.append(book.fault(None, f'has the section "{name}" again: join the two'))
            continue
        seen.append(name)
        if SECTIONS.index(name) < last:
            found.append(book.fault(None, f'has "{name}" too late: it comes before "{SECTIONS[last]}"'))
        last = max(last, SECTIONS.index(name))
    missing = [name for name in SECTIONS if name not in seen]
    if missing:
        found.append(book.fault(None, f"lacks the section {', '.join(f'## {name}' for name in missing)}"))
    return found


def first_cell_introduces(book: Book) -> list[str]:
    """The first cell is the one title, and says how many minutes it takes and which textbook sections it covers."""
    first = book.notebook.cells[0] if book.notebook.cells else None
    if first is None or first.cell_type != "markdown":
        return [book.fault(first, "should be the title in Markdown")]
    found = []
    titles = [heading for level, heading in book.headings if level == 1]
    if len(titles) != 1 or headings_of(first.source)[:1] != [(1, titles[0])]:
        found.append(book.fault(first, f"should hold the only heading of level 1; there are {len(titles)}"))
    elif not titles[0].startswith(f"{book.chapter} "):
        found.append(
            book.fault(first, f'has the title "{titles[0]}": begin it with the number, "# {book.chapter} ..."')
        )
    if book.is_chapter:
        if not re.search(r"\d+ minutes", first.source):
            found.append(book.fault(first, 'does not say how long it takes: write "... minutes on two cores"'))
        if not re.search(r"^\W*textbook\W* \d+\.\d", first.source, re.MULTILINE | re.IGNORECASE):
            found.append(book.fault(first, 'names no sections: write a line "textbook: 7.1, 7.2"'))
    return found


def no_codes_in_prose(book: Book) -> list[str]:
    """Readers see section titles; the codes of the concordance stay in the metadata."""
    return [
        book.fault(cell, f"shows the code {code}: write textbook {code.partition('.')[2]}")
        for cell in book.prose
        for code in re.findall(r"\bC7\.\d+(?:\.\d+)*|\b[TA]\.[a-z][a-z-]+\b", CODE_SPAN.sub("", cell.source))
    ]


def links_lead_somewhere(book: Book) -> list[str]:
    """Every relative link leads to a file of the repository, and to a heading in it if it names one."""
    found = []
    for cell, target in book.links():
        if re.match(r"(https?|mailto|data|attachment):", target):
            continue
        file, _, anchor = target.partition("#")
        path = (book.path.parent / file).resolve() if file else book.path
        if file.startswith("/") or (file and not path.exists()):
            found.append(book.fault(cell, f"links to {target}, which is not there: correct the path"))
        elif anchor and (not file or path.suffix in (".ipynb", ".md")):
            anchors = anchors_of(path) if file else {notebook_anchor(heading) for _, heading in book.headings}
            if anchor not in anchors:
                found.append(book.fault(cell, f"links to {target}, but no heading there has this anchor: correct it"))
    return found


# What looks like a name in code: a call, a dotted name, snake_case of two words, CamelCase of two.
_NAME = r"[A-Za-z_]\w*"
_LOOKS_LIKE_CODE = re.compile(
    rf"({_NAME}(?:\.{_NAME})*)\(.*\)"
    rf"|({_NAME}(?:\.{_NAME})+)"
    r"|([A-Za-z]{2,}[a-z\d]*(?:_[A-Za-z\d]+)+)"
    r"|([A-Z]\w*[a-z]\w*[A-Z]\w*|[A-Z]{2,}[a-z]\w+)"
)


def names_in_prose_exist(book: Book) -> list[str]:
    """A name in backticks that looks like code exists: in the library, in this notebook, or where its dots lead."""
    here = {name for _, tree in book.trees for name in identifiers(tree)}
    known = here | known_identifiers()
    found = []
    for cell in book.prose:
        for span in CODE_SPAN.findall(FENCED.sub("", cell.source)):
            match = _LOOKS_LIKE_CODE.fullmatch(span.strip())
            if not match:
                continue
            dotted = next(filter(None, match.groups()))
            head = dotted.split(".")[0]
            if len(dotted) == 1:
                continue  # a letter of the textbook: P(w)
            if re.search(r"\.(py|ipynb|md|json|txt|safetensors|toml|ya?ml|tsv|csv|gz)$", dotted):
                continue  # a file's name: links have their own rule
            if "." in dotted and (head in IMPORTABLE or head in OTHERS):
                fine = resolves(dotted)
            elif "." in dotted and head in public_names():
                fine = resolves(f"{public_names()[head]}.{dotted}") or set(dotted.split(".")) <= known
            elif "." in dotted and resolves(f"transformer_lib.{head}") and head not in here:
                fine = resolves(f"transformer_lib.{dotted}")
            else:
                fine = set(dotted.split(".")) <= known
            if not fine:
                found.append(book.fault(cell, f"names `{span}`, which neither the library nor this notebook has"))
    return found


PROSE_RULES: list[Callable[[Book], list[str]]] = [
    sections_in_order,
    first_cell_introduces,
    no_codes_in_prose,
    links_lead_somewhere,
    names_in_prose_exist,
]
