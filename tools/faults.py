"""Does the course notice when a formula goes wrong? Some planted faults, each against the chapter that teaches it.

    python -m tools.faults [NAME ...]      plant these faults (all if none is named) and say what noticed them

The library and one chapter are copied to a temporary folder, the fault is planted there, and the chapter is run under
the strict comparison of outputs (nbval) up to the first cell that fails. A listing prints the library's source, so that
any change shows there: listing cells are left out of account. Noticed means: an assert failed, or an output changed.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tools.concordance import chapters
from tools.notebooks import ROOT, as_text, environment, read

TIMEOUT = 120  # seconds a fault: a chapter takes at most 60
COLOURS = re.compile(r"(?:\x1b|#x1B)\[[0-9;]*m")  # in a traceback, and how the report writes them


@dataclass(frozen=True)
class Fault:
    """A change of the library: in `file` (within transformer_lib), `old`, which occurs once there, becomes `new`."""

    name: str
    file: str
    old: str
    new: str
    chapter: str

    def planted(self, source: str) -> str:
        """The file's text with the fault in it.

        Raises:
            ValueError: the old text does not occur exactly once, or the new one is no Python.
        """
        count = source.count(self.old)
        if count != 1:
            raise ValueError(
                f"fault {self.name}: expected once in {self.file}: {self.old!r}; it is there {count} times"
            )
        changed = source.replace(self.old, self.new)
        try:
            compile(changed, self.file, "exec")
        except SyntaxError as error:
            raise ValueError(f"fault {self.name}: expected Python; line {error.lineno}: {error.msg}") from None
        return changed


@dataclass(frozen=True)
class Outcome:
    """What a chapter said to a fault: `noticed`, `unnoticed`, `crashed` (an error that is no assert) or `too slow`."""

    kind: str
    cell: str = ""
    how: str = ""

    @property
    def noticed(self) -> bool:
        """Whether an assert or a computed output told the fault."""
        return self.kind == "noticed"

    def __str__(self) -> str:
        return " ".join(filter(None, [self.kind, self.cell and f"by cell {self.cell}", self.how and f"({self.how})"]))


def _copy(root: Path, notebook: Path, folder: Path) -> tuple[Path, list[str]]:
    """Copy the library and one notebook, listing cells set to be ignored; return the copy and its code cells' ids."""
    for package in ("transformer_lib", "recipes"):  # chapters show tasks that stand with the recipes
        if (root / package).is_dir():
            shutil.copytree(root / package, folder / package, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "notebooks").mkdir()
    if (root / "notebooks" / "exercises").is_dir():
        shutil.copytree(root / "notebooks" / "exercises", folder / "notebooks" / "exercises")
    if (root / "data").is_dir():
        try:
            (folder / "data").symlink_to(root / "data", target_is_directory=True)
        except OSError:  # Windows asks for a privilege to make links
            shutil.copytree(root / "data", folder / "data")
    content = read(notebook)
    code = [cell for cell in content.cells if cell.cell_type == "code"]
    for cell in code:
        tags = cell.metadata.get("tags", [])
        if "listing" in tags:
            cell.metadata["tags"] = [*tags, "nbval-ignore-output"]
    copy = folder / "notebooks" / notebook.name
    copy.write_text(as_text(content), encoding="utf-8", newline="\n")
    return copy, [cell.get("id", "?") for cell in code]


def run(fault: Fault | None, chapter: str, root: Path = ROOT, timeout: float = TIMEOUT) -> Outcome:
    """Run a chapter over a copy of the library with the fault planted in it (or none), up to the first failing cell.

    Raises:
        FileNotFoundError: there is no such chapter.
        ValueError: the fault cannot be planted.
        RuntimeError: the comparison itself did not run.
    """
    notebook = chapters(root).get(chapter)
    if notebook is None:
        raise FileNotFoundError(f"expected a notebook of chapter {chapter} in notebooks/; there is none")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        copy, ids = _copy(root, notebook, folder)
        if fault is not None:
            file = folder / "transformer_lib" / fault.file
            file.write_text(fault.planted(file.read_text(encoding="utf-8")), encoding="utf-8", newline="\n")
        report = folder / "report.xml"
        command = [sys.executable, "-m", "pytest", "-p", "nbval.plugin", "--nbval", "--nbval-current-env", "-x", "-q"]
        command += ["-p", "no:cacheprovider", f"--rootdir={folder}", f"--junitxml={report}", str(copy)]
        more = {"PYTHONPATH": str(folder), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONDONTWRITEBYTECODE": "1"}
        more["IPYTHONDIR"] = str(folder / "ipython")
        try:
            done = subprocess.run(
                command, cwd=folder, env=environment(**more), capture_output=True, text=True, timeout=timeout
            )
        except subprocess.TimeoutExpired:
            return Outcome("too slow", how=f"more than {timeout:g} s")
        if not report.exists():
            raise RuntimeError(f"the comparison did not run: {(done.stdout + done.stderr).strip().splitlines()[-1]}")
        return _outcome(report, ids)


def _outcome(report: Path, ids: list[str]) -> Outcome:
    """Read the outcome off pytest's report."""
    cases = list(ElementTree.parse(report).getroot().iter("testcase"))
    for case in cases:
        failure = case.find("failure")
        if failure is None:
            failure = case.find("error")
        if failure is None:
            continue
        cell = ids[int(case.get("name").split()[-1])]
        text = COLOURS.sub("", failure.text or "")
        if "Cell outputs differ" in text:
            return Outcome("noticed", cell, "an output changed")
        errors = re.findall(r"^(\w+(?:Error|Exception|Interrupt|Exit))\b", text, re.MULTILINE)
        if errors and errors[-1] == "AssertionError":
            return Outcome("noticed", cell, "an assert failed")
        return Outcome("crashed", cell, errors[-1] if errors else "no error was told")
    if len(cases) != len(ids):
        raise RuntimeError(f"the comparison stopped after {len(cases)} of {len(ids)} cells without a failure")
    return Outcome("unnoticed", how=f"{len(ids)} cells passed")


def run_all(faults: Sequence[Fault], root: Path = ROOT, jobs: int = 2) -> dict[str, Outcome]:
    """Plant each fault, two at a time: name -> what noticed it."""
    with ThreadPoolExecutor(max_workers=jobs) as pool:
        outcomes = pool.map(lambda fault: run(fault, fault.chapter, root), faults)
        return dict(zip((fault.name for fault in faults), outcomes))


RECURRENT, NGRAM, LOOP = "parts/recurrent.py", "models/ngram.py", "training/loop.py"
FAULTS = [
    Fault(
        "rare tokens first",
        "text/tokenizers.py",
        "key=lambda token: (-counts[token], token)",
        "key=lambda token: (counts[token], token)",
        "00",
    ),
    Fault("add-k spreads k once", NGRAM, "spread = k * vocab_size / (", "spread = k / (", "01"),
    Fault("Kneser-Ney takes off too much", NGRAM, "y = n[1] / (n[1] + 2 * n[2])", "y = n[1] / (n[1] + n[2])", "01"),
    Fault("perplexity to the base 2", "evaluation.py", "math.exp(-mean_log_prob(", "math.exp2(-mean_log_prob(", "01"),
    Fault("temperature multiplies", "decoding.py", "/ temperature, dim=-1)", "* temperature, dim=-1)", "01"),
    Fault("tanh for ReLU", RECURRENT, "return self.f(projected + ", "return torch.tanh(projected + ", "02"),
    Fault(
        "W_h turned round",
        RECURRENT,
        "projected + h @ self.W_h.T)\n\n\nclass LSTM",
        "projected + h @ self.W_h)\n\n\nclass LSTM",
        "02",
    ),
    Fault("targets one off", LOOP, "batch[:, 1:].flatten()", "batch[:, :-1].flatten()", "02"),
    Fault(
        "the forget gate forgets the rest",
        RECURRENT,
        "c = f * c + i * candidate",
        "c = (1 - f) * c + i * candidate",
        "03",
    ),
    Fault("the cell state shown raw", RECURRENT, "return o * torch.tanh(c), c", "return o * c, c", "03"),
    Fault("GRU weights exchanged", RECURRENT, "(1 - z) * candidate + z * h", "z * candidate + (1 - z) * h", "03"),
    Fault("clipping off", LOOP, 'clip if clip is not None else float("inf")', 'float("inf")', "03"),
    Fault("padding is read", RECURRENT, "state = torch.where(read, after, state)", "state = after", "04"),
    Fault(
        "the decoder starts blank",
        "models/seq2seq.py",
        "self.dropout(Y), memory.c if state is None else state",
        "self.dropout(Y), state",
        "04",
    ),
    Fault(
        "no tanh in the score",
        "parts/attention.py",
        "torch.tanh((s @ self.W.T).unsqueeze(-2) + keys) @ self.v",
        "((s @ self.W.T).unsqueeze(-2) + keys) @ self.v",
        "05",
    ),
    Fault(
        "masked after the softmax",
        "parts/attention.py",
        "return weights.masked_fill(~allowed, 0)",
        "return torch.softmax(S, dim=-1).masked_fill(~allowed, 0)",
        "05",
    ),
    Fault(
        "scores divided by d_k",
        "parts/attention.py",
        "(Q.shape[-1] ** -0.5 if scale is None else scale)",
        "(Q.shape[-1] ** -1.0 if scale is None else scale)",
        "06",
    ),
    Fault("one look into the future", "parts/masks.py", ".tril(before)", ".tril(before + 1)", "06"),
    Fault(
        "the exponent doubled",
        "parts/positions.py",
        "(-torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)",
        "(-2 * torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)",
        "08",
    ),
    Fault(
        "sine and cosine exchanged",
        "parts/positions.py",
        "[torch.sin(pos * omega), torch.cos(pos * omega)]",
        "[torch.cos(pos * omega), torch.sin(pos * omega)]",
        "08",
    ),
    Fault(
        "learned rows always from the first",
        "parts/positions.py",
        "return self.rows[start : start + n]\n",
        "return self.rows[:n]\n",
        "08",
    ),
    Fault(
        "heads take every h-th number",
        "parts/attention.py",
        'rearrange(W(x), "... n (h d_k) -> ... h n d_k"',
        'rearrange(W(x), "... n (d_k h) -> ... h n d_k"',
        "07",
    ),
    Fault(
        "heads joined by turns",
        "parts/attention.py",
        'rearrange(Z, "... h n d_k -> ... n (h d_k)")',
        'rearrange(Z, "... h n d_k -> ... n (d_k h)")',
        "07",
    ),
    Fault(
        "the weights shown know no mask",
        "parts/attention.py",
        "Z, A = scaled_dot_product_attention(Q, K, V, mask)",
        "Z, A = scaled_dot_product_attention(Q, K, V, mask)[0], scaled_dot_product_attention(Q, K, V)[1]",
        "07",
    ),
    Fault(
        "the root of d_model forgotten",
        "models/transformer.py",
        "embedding(ids) * self.d_model**0.5 + ",
        "embedding(ids) + ",
        "09",
    ),
    Fault(
        "one norm for two sub-layers",
        "parts/layers.py",
        "wrap(feed_forward, LayerNorm(d_model), dropout)",
        "wrap(feed_forward, self.attention.norm, dropout)",
        "09",
    ),
    Fault(
        "the detour is normed as well",
        "parts/layers.py",
        "return x + self.dropout(self.sublayer(self.norm(x)",
        "return self.norm(x) + self.dropout(self.sublayer(self.norm(x)",
        "09",
    ),
    Fault(
        "the share of smoothing whole to every token",
        "training/losses.py",
        "epsilon * log_probs.mean(-1).sum()",
        "epsilon * log_probs.sum()",
        "10",
    ),
    Fault("the rate falls with the step", "training/schedules.py", "min(t**-0.5, ", "min(t**-1.0, ", "10"),
    Fault(
        "a beam that forgets what came before",
        "decoding.py",
        "_no_nan(log_probs).double() + torch.tensor([[h.log_prob] for h in self.opened], dtype=torch.float64)",
        "_no_nan(log_probs).double()",
        "10",
    ),
    Fault(
        "the two translations drawn apart",
        "evaluation.py",
        "((times @ counts).tolist() for counts in sides)",
        "((drawn @ counts).tolist() for drawn, counts in zip((times, times[::-1]), sides, strict=True))",
        "10",
    ),
    Fault(
        "no chosen token stays as it is",
        "training/pretraining.py",
        "(lot >= 0.8) & (lot < 0.9)",
        "(lot >= 0.8)",
        "11",
    ),
    Fault(
        "a false B that is true",
        "training/pretraining.py",
        "if B != full[d][i + 1]:",
        "if B is not None:",
        "11",
    ),
    Fault(
        "the segments forgotten",
        "models/bert.py",
        "self.embedding(ids) + self.segments(segments) + ",
        "self.embedding(ids) + 0 * self.segments(segments) + ",
        "11",
    ),
    Fault(
        "a span that ends before it starts",
        "models/bert.py",
        "torch.ones(n, n, dtype=torch.bool).triu().tril(longest - 1)",
        "torch.ones(n, n, dtype=torch.bool).tril(longest - 1)",
        "12",
    ),
    Fault(
        "choices that do not compete",
        "models/bert.py",
        "torch.log_softmax(scores.view(ids.shape[:2]), dim=-1)",
        "nn.functional.logsigmoid(scores.view(ids.shape[:2]))",
        "12",
    ),
    Fault(
        "top-p keeps one token too many",
        "decoding.py",
        "scatter(-1, order[..., 1:], reached[..., :-1])",
        "scatter(-1, order[..., 2:], reached[..., :-2])",
        "13",
    ),
    Fault(
        "each piece turned from place 0",
        "parts/attention.py",
        "self.start = 0 if cache is None else len(cache)",
        "self.start = 0",
        "13",
    ),
    Fault(
        "a window that remembers one token",
        "models/windowed.py",
        "read[..., self.window - self.window // 2 :]",
        "read[..., self.window - 1 :]",
        "13",
    ),
    Fault(
        "the label read off at the last place, padding or not",
        "models/gpt.py",
        "self.dropout(H[ends])",
        "self.dropout(H[:, -1])",
        "14",
    ),
    Fault(
        "the values turned as well",
        "parts/attention.py",
        "Q, K = (rotate(nn.functional.rms_norm(x, (self.d_k,)), self.start) for x in (Q, K))",
        "Q, K, V = (rotate(nn.functional.rms_norm(x, (self.d_k,)), self.start) for x in (Q, K, V))",
        "14",
    ),
]


def main(arguments: list[str] | None = None) -> int:
    """Plant what the command line names; return 0 if every fault was noticed."""
    parser = argparse.ArgumentParser(prog="python -m tools.faults", description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="names of faults; all if none is given")
    parser.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1), help="how many side by side")
    options = parser.parse_args(arguments)
    unknown = set(options.names) - {fault.name for fault in FAULTS}
    if unknown:
        print(
            f"expected names of faults ({', '.join(fault.name for fault in FAULTS)}); got {', '.join(sorted(unknown))}"
        )
        return 1
    chosen = [fault for fault in FAULTS if not options.names or fault.name in options.names]
    outcomes = run_all(chosen, jobs=options.jobs)
    for fault in chosen:
        print(f"{fault.chapter}  {fault.name:36}{outcomes[fault.name]}")
    return 0 if all(outcome.noticed for outcome in outcomes.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
