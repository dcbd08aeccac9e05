"""Execute the notebooks afresh and bring them into the one form in which they are committed.

    python -m tools.notebooks execute [NOTEBOOK ...]      run top to bottom in a new kernel, normalise, write
    python -m tools.notebooks normalise [NOTEBOOK ...]    only take out what changes from run to run
    python -m tools.notebooks check [NOTEBOOK ...]        say what is not executed or not normalised

Without names: all chapters and solutions. Executing an unchanged notebook again changes no byte of it.
"""

import argparse
import hashlib
import json
import os
import re
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import nbformat

ROOT = Path(__file__).resolve().parents[1]
KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}
KEPT = {"jupyter", "reason", "tags", "textbook"}  # what a cell's metadata may hold; editors add their own
NEVER_STORED = "application/vnd.jupyter.widget-view+json"  # points to a kernel that is gone
TIMEOUT = 600  # seconds a cell
FENCED = re.compile(r"^ {0,3}(```|~~~).*?(?:^ {0,3}\1|\Z)", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^ {0,3}(#{1,6})[ \t]+(.+?)[ \t]*#*$", re.MULTILINE)


def all_notebooks(root: Path = ROOT) -> list[Path]:
    """The chapters, then the solutions, in reading order."""
    folder = root / "notebooks"
    return [*sorted(folder.glob("*.ipynb")), *sorted((folder / "solutions").glob("*.ipynb"))]


def from_text(text: str, name: str) -> nbformat.NotebookNode:
    """A notebook out of a file's text; `name` is what an error calls it.

    Raises:
        ValueError: the text is no notebook of format 4.
    """
    try:
        content = json.loads(text)
        if content["nbformat"] != 4:
            raise ValueError(f"it has format {content['nbformat']}")
        return nbformat.v4.reads(text)  # nbformat.reads would invent a random id where one is missing or double
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        reason = f"it lacks {error}" if isinstance(error, KeyError) else str(error).splitlines()[0]
        raise ValueError(f"{name} should be a notebook of format 4; it is not: {reason}") from None


def read(path: Path) -> nbformat.NotebookNode:
    """A notebook out of its file; ValueError as `from_text`."""
    return from_text(path.read_text(encoding="utf-8"), path.name)


def as_text(notebook: nbformat.NotebookNode) -> str:
    """The notebook as the file holds it, with one newline at the end."""
    return nbformat.v4.writes(notebook).rstrip("\n") + "\n"


def write(path: Path, notebook: nbformat.NotebookNode) -> None:
    """Write a notebook, all of it or nothing."""
    partial = path.with_suffix(".ipynb.partial")
    partial.write_text(as_text(notebook), encoding="utf-8", newline="\n")
    partial.replace(path)


def headings_of(markdown: str) -> list[tuple[int, str]]:
    """The headings outside fenced code: (level, words)."""
    return [(len(marks), words.strip()) for marks, words in HEADING.findall(FENCED.sub("", markdown))]


def plain_words(heading: str) -> str:
    """A heading as it is read: without the marks of Markdown."""
    heading = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    return re.sub(r"[`*]|(?<!\w)_|_(?!\w)", "", heading).strip()


def notebook_anchor(heading: str) -> str:
    """The anchor that JupyterLab and nbconvert give a heading."""
    return plain_words(heading).replace(" ", "-")


def normalise(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """Take out, in place, what differs from run to run or from editor to editor; outputs' meaning stays.

    Widget state and views, times of execution, kernel names and editors' marks go; cells get ids where they have none
    of their own; pieces of one printed text, which arrive cut at random places, are joined.
    """
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    notebook.metadata = nbformat.from_dict({"kernelspec": KERNEL, "language_info": {"name": "python"}})
    seen = set()
    for place, cell in enumerate(notebook.cells):
        cell.metadata = nbformat.from_dict({key: cell.metadata[key] for key in sorted(KEPT & set(cell.metadata))})
        if not cell.metadata.get("tags", True):
            del cell.metadata["tags"]
        if not cell.get("id") or cell.id in seen:
            cell.id = hashlib.sha256(f"{place} {cell.source}".encode()).hexdigest()[:8]
        seen.add(cell.id)
        if cell.cell_type == "code":
            cell.outputs = _joined(cell.outputs)
            for output in cell.outputs:
                output.get("data", {}).pop(NEVER_STORED, None)
    return notebook


def _joined(outputs: list) -> list:
    joined = []
    for output in outputs:
        last = joined[-1] if joined else None
        if last and output.output_type == last.output_type == "stream" and output.name == last.name:
            last.text += output.text
        else:
            joined.append(output)
    return joined


def counted(notebook: nbformat.NotebookNode) -> bool:
    """Whether the code cells were executed from the first to the last, once each, in a fresh kernel."""
    counts = [cell.execution_count for cell in notebook.cells if cell.cell_type == "code"]
    return counts == list(range(1, len(counts) + 1))


def environment(**more: str) -> dict[str, str]:
    """What a kernel starts with: one thread, no progress bars, the notebook's own way to show figures."""
    fixed = {
        "OMP_NUM_THREADS": "1",
        "TRANSFORMER_LIB_PROGRESS": "0",
        "PYDEVD_DISABLE_FILE_VALIDATION": "1",  # a debugger's warning that would land in an output
        **more,
    }
    return {name: value for name, value in os.environ.items() if name != "MPLBACKEND"} | fixed


def execute(path: Path) -> None:
    """Run a notebook in a fresh kernel, in its own folder, normalise it and write it.

    Raises:
        RuntimeError: a cell failed; the file stays as it was.
    """
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

    notebook = normalise(read(path))
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    client = NotebookClient(
        notebook,
        timeout=TIMEOUT,
        kernel_name="python3",
        resources={"metadata": {"path": str(path.resolve().parent)}},
        store_widget_state=False,
        record_timing=False,
    )
    try:
        with tempfile.TemporaryDirectory() as folder:  # a reader's own start-up files would run inside the notebook
            client.execute(env=environment(IPYTHONDIR=folder))
    except (CellExecutionError, CellTimeoutError, DeadKernelError) as error:
        at = next((cell for cell in notebook.cells if cell.cell_type == "code" and cell.execution_count is None), None)
        failed = [cell for cell in notebook.cells if any(o.output_type == "error" for o in cell.get("outputs", []))]
        cell = failed[0] if failed else at
        what = f"{error.ename}: {error.evalue}" if isinstance(error, CellExecutionError) else str(error).splitlines()[0]
        where = f", cell {cell.get('id', '?')}" if cell else ""
        raise RuntimeError(f"{path.name}{where}: {what}: the notebook was left as it was") from None
    write(path, normalise(notebook))


def faults(path: Path) -> list[str]:
    """What keeps a notebook from being committed: one line each."""
    text = path.read_text(encoding="utf-8")
    notebook = from_text(text, path.name)
    found = []
    if not counted(notebook):
        found.append(f"{path.name}: cells are not executed 1 to n: run python -m tools.notebooks execute {path.name}")
    if as_text(normalise(notebook)) != text:
        found.append(f"{path.name}: not normalised: run python -m tools.notebooks normalise {path.name}")
    try:
        nbformat.validate(notebook)
    except nbformat.ValidationError as error:
        found.append(f"{path.name}: not valid: {str(error).splitlines()[0]}")
    return found


def _located(names: list[str]) -> list[Path]:
    if not names:
        return all_notebooks()
    paths = []
    for name in names:
        choices = [Path(name), *(path for path in all_notebooks() if path.name == name)]
        path = next((choice for choice in choices if choice.is_file()), None)
        if path is None:
            raise FileNotFoundError(f"expected a notebook; {name} is none: give a path, or a file name in notebooks/")
        paths.append(path)
    return paths


def main(arguments: list[str] | None = None) -> int:
    """Do what the command line says; return 0 if nothing failed."""
    parser = argparse.ArgumentParser(prog="python -m tools.notebooks", description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["execute", "normalise", "check"])
    parser.add_argument("notebooks", nargs="*", help="paths, or file names in notebooks/; all if none is given")
    parser.add_argument("--jobs", type=int, default=1, help="how many to execute side by side")
    options = parser.parse_args(arguments)

    def work(path: Path) -> list[str]:
        try:
            if options.what == "execute":
                execute(path)
            elif options.what == "normalise":
                write(path, normalise(read(path)))
            else:
                return faults(path)
        except (RuntimeError, ValueError) as error:
            return [str(error)]
        return []

    try:
        paths = _located(options.notebooks)
    except FileNotFoundError as error:
        print(error, file=sys.stderr)
        return 1
    failed = 0
    with ThreadPoolExecutor(max_workers=max(1, options.jobs)) as pool:
        for path, found in zip(paths, pool.map(work, paths)):
            failed += bool(found)
            print("\n".join(found) if found else f"{path.name}: {options.what}: done")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
