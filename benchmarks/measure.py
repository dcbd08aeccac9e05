"""What the benchmarks share: processor time, one line of the table, the table in README.md."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from transformer_lib.timing import cpu_seconds

README = Path(__file__).resolve().parent / "README.md"
BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"


@dataclass(frozen=True)
class Row:
    """One measurement: what, how much, the limit it must keep ("at least" or "at most"), and what was measured with."""

    what: str
    measured: float
    limit: float
    at_least: bool
    unit: str
    details: str

    @property
    def kept(self) -> bool:
        return self.measured >= self.limit if self.at_least else self.measured <= self.limit

    def __str__(self) -> str:
        word = "at least" if self.at_least else "at most"
        verdict = "yes" if self.kept else "**no**"
        return f"| {self.what} | {self.measured:.3g} {self.unit} | {word} {self.limit:g} | {verdict} | {self.details} |"


def ratio(ours: Callable[[], object], theirs: Callable[[], object], rounds: int) -> tuple[float, float, float]:
    """How many times theirs ours takes: the median over rounds in which the two take turns; both medians in seconds.

    One call of each goes first and is not counted: it warms the caches and the memory allocator.
    """
    ours(), theirs()
    pairs = [(cpu_seconds(ours), cpu_seconds(theirs)) for _ in range(rounds)]
    return median(a / b for a, b in pairs), median(a for a, _ in pairs), median(b for _, b in pairs)


def table(rows: list[Row]) -> str:
    """The rows as a Markdown table."""
    return "\n".join(["| what | measured | limit | kept | details |", "|---|---|---|---|---|", *map(str, rows)])


def write(rows: list[Row], path: Path = README) -> None:
    """Put the table between the two marks of README.md and leave everything else there as it is."""
    text = path.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    path.write_text(f"{before}{BEGIN}\n{table(rows)}\n{END}{after}", encoding="utf-8", newline="\n")
