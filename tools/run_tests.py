"""Run every check of the course, one stage after another, and close with one line of totals.

`make test` runs all stages, `make check` the quick ones, `make test-portability` the notebooks under other threads and
instruction sets. A stage that fails does not stop the next one: one run shows everything that is wrong.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PYTEST = [sys.executable, "-m", "pytest", "-q"]
# Where no notebook runs, the plugin that would run it stays out: loading it takes two seconds each time.
PLAIN = [*PYTEST, "-p", "no:nbval"]
# Notebooks that train take up to 1 GiB each: never more than four side by side.
JOBS = int(os.environ.get("JOBS") or min(4, os.cpu_count() or 1))
PARALLEL = ["-n", str(JOBS), "--dist", "loadscope"]
# --nbval compares every output; the current environment's kernel runs it, not one that happens to be registered.
NBVAL = ["--nbval", "--nbval-current-env", "--nbval-cell-timeout=300", *PARALLEL, "notebooks"]

# What has a stage of its own.
OTHER_STAGES = ["notebooks", "browser"]


@dataclass(frozen=True)
class Stage:
    """One command: `quick` ones make up `make check`, `extra` ones nothing else; `portability` only on demand."""

    name: str
    command: list[str]
    quick: bool = False
    extra: bool = False
    portability: bool = False
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def is_pytest(self) -> bool:
        return self.command[: len(PYTEST)] == PYTEST


STAGES = [
    Stage("ruff", [sys.executable, "-m", "ruff", "check", "."], quick=True),
    Stage(
        "import contracts",
        # import-linter has no `python -m`; its entry point is called instead of a script whose place differs by system
        [sys.executable, "-c", "from importlinter.cli import lint_imports_command as run; run(['--no-logo'])"],
        quick=True,
    ),
    Stage("notebooks in order", [sys.executable, "-m", "tools.notebooks", "check"], quick=True),
    Stage("concordance", [sys.executable, "-m", "tools.concordance", "--check"], quick=True),
    Stage("notebook rules", [*PLAIN, "tests/notebooks", "-m", "not slow"], quick=True),
    # `make test` runs these among the unit tests.
    Stage("layout", [*PLAIN, "tests/test_layout.py", "tests/test_setup.py", "-m", "not slow"], quick=True, extra=True),
    Stage("unit tests", [*PLAIN, *PARALLEL, "tests", *(f"--ignore=tests/{name}" for name in OTHER_STAGES)]),
    Stage(
        "shapes",
        # The same tests, with every shape in a signature checked at run time.
        [
            *PLAIN,
            *PARALLEL,
            "--jaxtyping-packages=transformer_lib.parts,transformer_lib.models,beartype.beartype",
            "tests/parts",
            "tests/models",
        ],
        environment={"TRANSFORMER_LIB_SHAPES": "1"},
    ),
    Stage("planted faults", [*PLAIN, "tests/notebooks", "-m", "slow"]),
    Stage("notebooks", [*PYTEST, *NBVAL]),
    Stage("browser", [*PLAIN, "tests/browser", "-rs"]),
    Stage(
        "notebooks, 2 threads",
        [*PYTEST, *NBVAL],
        portability=True,
        environment={"OMP_NUM_THREADS": "2", "TRANSFORMER_LIB_THREADS": "2"},
    ),
    Stage("notebooks, plain CPU", [*PYTEST, *NBVAL], portability=True, environment={"ATEN_CPU_CAPABILITY": "default"}),
    Stage("notebooks, AVX2", [*PYTEST, *NBVAL], portability=True, environment={"ATEN_CPU_CAPABILITY": "avx2"}),
]


@dataclass
class Outcome:
    """What a stage came to. A stage without pytest is one check; one that found no test at all has failed."""

    name: str
    passed: int
    failed: int
    skipped: int
    seconds: float


def counts(report: Path, status: int) -> tuple[int, int, int]:
    """Passed, failed, skipped out of pytest's XML report; a run that broke off counts as a failure."""
    passed = failed = skipped = 0
    if report.exists():
        for suite in ElementTree.parse(report).getroot().iter("testsuite"):
            number = {name: int(suite.get(name, 0)) for name in ("tests", "failures", "errors", "skipped")}
            failed += number["failures"] + number["errors"]
            skipped += number["skipped"]
            passed += number["tests"] - number["failures"] - number["errors"] - number["skipped"]
    if status and not failed:
        failed = 1
    return max(passed, 0), failed, skipped


def run(stage: Stage, folder: Path) -> Outcome:
    """Run one stage with its output in the open."""
    print(f"\n--- {stage.name} ---", flush=True)
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": "1",  # under load two OpenMP threads stall each other; the stages are parallel themselves
        "TRANSFORMER_LIB_PROGRESS": "0",
        "PYTHONIOENCODING": "utf-8",  # Windows' console would not take a Japanese word
        "PYDEVD_DISABLE_FILE_VALIDATION": "1",  # a debugger's warning that would land in a notebook's output
        # A reader's own start-up files would run inside the notebooks.
        "IPYTHONDIR": str(folder / "ipython"),
        "JUPYTER_CONFIG_DIR": str(folder / "jupyter"),
        **stage.environment,
    }
    report = folder / "report.xml"
    report.unlink(missing_ok=True)
    command = [*stage.command, f"--junitxml={report}"] if stage.is_pytest else stage.command
    begin = time.monotonic()
    status = subprocess.run(command, cwd=ROOT, env=environment).returncode
    seconds = time.monotonic() - begin
    if stage.is_pytest:
        return Outcome(stage.name, *counts(report, status), seconds)
    return Outcome(stage.name, int(status == 0), int(status != 0), 0, seconds)


def summary(outcomes: list[Outcome]) -> str:
    """A table of the stages and, as the last line, the totals."""
    lines = ["", f"{'stage':<24}{'passed':>8}{'failed':>8}{'skipped':>9}{'seconds':>9}"]
    lines += [f"{o.name:<24}{o.passed:>8}{o.failed:>8}{o.skipped:>9}{o.seconds:>9.1f}" for o in outcomes]
    passed, failed, skipped = (sum(getattr(o, what) for o in outcomes) for what in ("passed", "failed", "skipped"))
    lines += ["", f"{passed} passed, {failed} failed, {skipped} skipped in {sum(o.seconds for o in outcomes):.0f} s"]
    return "\n".join(lines)


def chosen_stages(quick: bool = False, portability: bool = False, only: list[str] | None = None) -> list[Stage]:
    """The stages of `make test`, of `make check`, of `make test-portability`, or those named."""
    if only:
        unknown = set(only) - {stage.name for stage in STAGES}
        if unknown:
            names = ", ".join(stage.name for stage in STAGES)
            raise SystemExit(f"tests: no stage is called {', '.join(sorted(unknown))}; the stages are {names}")
        return [stage for stage in STAGES if stage.name in only]
    if quick:
        return [stage for stage in STAGES if stage.quick]
    return [stage for stage in STAGES if stage.portability == portability and not stage.extra]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Run every check of the course.")
    parser.add_argument("--quick", action="store_true", help="only what needs no notebook run (make check)")
    parser.add_argument("--portability", action="store_true", help="the notebooks under other threads and processors")
    parser.add_argument("--only", action="append", metavar="STAGE", help="only this stage; may be given again")
    parser.add_argument("--list", action="store_true", help="name the stages")
    chosen = parser.parse_args(arguments)
    stages = chosen_stages(chosen.quick, chosen.portability, chosen.only)
    if chosen.list:
        print("\n".join(stage.name for stage in stages))
        return 0
    # The first figure ever drawn on a computer builds matplotlib's font list, and says so inside that notebook.
    subprocess.run([sys.executable, "-c", "import matplotlib.font_manager"], cwd=ROOT, check=False)
    with tempfile.TemporaryDirectory() as folder:
        outcomes = [run(stage, Path(folder)) for stage in stages]
    print(summary(outcomes), flush=True)
    return 1 if any(outcome.failed for outcome in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())
