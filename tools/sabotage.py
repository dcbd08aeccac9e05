"""Break the library in one small place after another and see whether its unit tests notice: `make sabotage`.

A mutation tester (mutmut) turns + into -, drops an argument, replaces a value by None, ...; docstrings and the wording
of errors are left alone, and so is transformer_lib.show. Each module is broken in a copy of its own under
build/sabotage, under the tests that mirror it; an interrupted run goes on where it stopped. The results stand in
tests/sabotage.json, the table made from them in tests/SABOTAGE.md. A fault that no test can notice, since it changes
nothing that matters, is named with the reason in tests/sabotage_equivalent.toml.
"""

import argparse
import ast
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
WORK = ROOT / "build" / "sabotage"
RESULTS = ROOT / "tests" / "sabotage.json"
TABLE = ROOT / "tests" / "SABOTAGE.md"
EQUIVALENT = ROOT / "tests" / "sabotage_equivalent.toml"
TARGET = 0.9
# Tests of the project around the library: none of them can say anything about a formula.
NOT_UNIT_TESTS = {"notebooks", "browser", "show", "data"} | {
    f"test_{name}.py" for name in ("benchmarks", "layout", "library_rules", "sabotage", "setup")
}
# What is tested elsewhere than its name says, or elsewhere as well.
MIRRORS = {
    "transformer_lib/__init__.py": ["tests/test_import.py"],
    "transformer_lib/decoding.py": ["tests/test_decoding.py", "tests/test_translating.py"],
    "transformer_lib/parts/attention.py": ["tests/parts/test_attention.py", "tests/parts/test_heads.py"],
    "transformer_lib/evaluation.py": ["tests/test_evaluation.py", "tests/test_translating.py"],
    "transformer_lib/protocols.py": ["tests/test_protocols.py", "tests/models/test_seq2seq.py"],
}
# Folders around the library that its tests read; no link to them, since a broken library writes where it should not.
READ_BY_TESTS = ("data", "recipes", "notebooks")
# mutmut's exit codes. A fault that makes the tests hang or crash has been noticed as well.
NOTICED = {1, 3, 36, 24, -24, 152, 255, -11, -9}
UNCHECKED = {None, 2}
TIMED_OUT = {36, 24, -24, 152}
PATIENCE = 10  # mutmut gives tests 15 times what they take and 1 second more; in a second try, and so many seconds


class SabotageError(Exception):
    """One line for whoever runs it."""


def modules(root: Path = ROOT) -> list[str]:
    """The modules that are broken: all of the library that has functions, without what only draws."""
    found = []
    for path in sorted((root / "transformer_lib").rglob("*.py")):
        name = path.relative_to(root).as_posix()
        if not name.startswith("transformer_lib/show/") and re.search(
            r"^\s*def ", path.read_text("utf-8"), re.MULTILINE
        ):
            found.append(name)
    return found


def tests_of(module: str, root: Path = ROOT) -> list[str]:
    """The unit tests that must notice: the mirroring file, or folder; all of them where nothing mirrors the module.

    `models/ngram_counts.py` is mirrored by `models/test_ngram_counts.py`, else by `models/test_ngram.py`.
    """
    named = [name for name in MIRRORS.get(module, []) if (root / name).exists()]
    if named:
        return named
    inside = Path(module).relative_to("transformer_lib")
    folder = Path("tests") / inside.parent
    words = inside.stem.split("_")
    for length in range(len(words), 0, -1):
        file = folder / f"test_{'_'.join(words[:length])}.py"
        if (root / file).exists():
            return [file.as_posix()]
    if len(inside.parts) > 1 and any((root / folder).glob("test_*.py")):
        return [folder.as_posix()]
    entries = sorted((root / "tests").iterdir())
    return [
        f"tests/{entry.name}"
        for entry in entries
        if entry.name not in NOT_UNIT_TESTS
        and (any(entry.glob("test_*.py")) if entry.is_dir() else re.fullmatch(r"test_.*\.py", entry.name))
    ]


# ------------------------------------------------------------------------------------------------ the copy


def settings(module: str, tests: list[str], text: str) -> str:
    """pyproject.toml for the copy: its [tool.mutmut] breaks this one module under these tests."""
    lines = [f"only_mutate = [{json.dumps(module)}]", f"pytest_add_cli_args_test_selection = {json.dumps(tests)}"]
    if "[tool.mutmut]\n" not in text:
        raise SabotageError("pyproject.toml has no section [tool.mutmut]: it says how the library is broken")
    return text.replace("[tool.mutmut]\n", "[tool.mutmut]\n" + "\n".join(lines) + "\n")


def undecorated(source: str) -> str:
    """The same module with its decorators applied by a line after each function: mutmut passes over decorated ones."""
    lines = source.splitlines()
    functions = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef)]
    for node in sorted(functions, key=lambda node: node.lineno, reverse=True):
        words = [ast.unparse(decorator) for decorator in node.decorator_list]
        if not words or words in (["classmethod"], ["staticmethod"]):
            continue
        applied = f"{'('.join(words)}({node.name}{')' * len(words)}"
        lines.insert(node.end_lineno, f"{' ' * node.col_offset}{node.name} = {applied}")
        del lines[node.decorator_list[0].lineno - 1 : node.lineno - 1]
    return "\n".join(lines) + "\n"


def write_if_other(path: Path, content: bytes) -> bool:
    """Write only what changed: mutmut goes by the files' times."""
    if path.exists() and path.read_bytes() == content:
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return True


def copy_tree(name: str, folder: Path, root: Path, without: set[str] = frozenset(), broken: str = "") -> bool:
    """Bring a copy of the files below `name` up to date, the broken one undecorated; says whether anything changed."""
    changed = False
    wanted = set()
    for path in (root / name).rglob("*"):
        inside = path.relative_to(root / name)
        if path.is_file() and inside.parts[0] not in without and "__pycache__" not in inside.parts:
            wanted.add(inside)
            content = path.read_bytes()
            if (Path(name) / inside).as_posix() == broken:
                content = undecorated(content.decode("utf-8")).encode("utf-8")
            changed |= write_if_other(folder / name / inside, content)
    for path in (folder / name).rglob("*.py"):
        if path.relative_to(folder / name) not in wanted:
            path.unlink()
            changed = True
    return changed


def remove(path: Path) -> None:
    """A folder, or a link in its place: never what the link leads to."""
    if path.is_symlink():
        path.unlink()
    else:
        shutil.rmtree(path, ignore_errors=True)


def prepare(module: str, folder: Path, root: Path = ROOT) -> None:
    """A copy of the library and its tests in which `mutmut run` breaks one module, or goes on breaking it.

    A broken library may write anywhere below its root, such as among the trained models: what the tests read is copied
    as well, anew for each run, and nothing in the copy is a link out of it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    copy_tree("transformer_lib", folder, root, broken=module)
    tests_changed = copy_tree("tests", folder, root, without={"notebooks", "browser", "show"})
    text = settings(module, tests_of(module, root), (root / "pyproject.toml").read_text(encoding="utf-8"))
    (folder / "pyproject.toml").write_text(text, encoding="utf-8", newline="\n")
    broken = folder / "mutants"
    broken.mkdir(exist_ok=True)
    shutil.rmtree(broken / "tests", ignore_errors=True)
    for name in READ_BY_TESTS:
        remove(broken / name)
        if (root / name).exists():
            shutil.copytree(root / name, broken / name, ignore=shutil.ignore_patterns("__pycache__", "*.checkpoint.*"))
    if tests_changed:
        (folder / "mutants" / "mutmut-stats.json").unlink(missing_ok=True)  # which test meets which function
        forget(module, folder, lambda code: code not in NOTICED)


def meta_file(module: str, folder: Path) -> Path:
    return folder / "mutants" / f"{module}.meta"


def exit_codes(module: str, folder: Path) -> dict[str, int | None]:
    """mutmut's verdict on every fault so far."""
    path = meta_file(module, folder)
    return json.loads(path.read_text(encoding="utf-8"))["exit_code_by_key"] if path.exists() else {}


def forget(module: str, folder: Path, which: Callable[[int | None], bool]) -> bool:
    """Have faults with such verdicts tried anew (after a change of the tests: what none of them noticed); were any?"""
    path, codes = meta_file(module, folder), exit_codes(module, folder)
    kept = {key: None if which(code) else code for key, code in codes.items()}
    if kept != codes:
        meta = json.loads(path.read_text(encoding="utf-8")) | {"exit_code_by_key": kept}
        path.write_text(json.dumps(meta, indent=4), encoding="utf-8")
    return kept != codes


def be_patient(module: str, folder: Path) -> bool:
    """On a busy machine all tests are slow: what timed out is tried once more, with more time; was there any?"""
    if not forget(module, folder, lambda code: code in TIMED_OUT):
        return False
    path = folder / "pyproject.toml"
    text = path.read_text(encoding="utf-8").replace(
        "[tool.mutmut]\n", f"[tool.mutmut]\ntimeout_constant = {PATIENCE}\n"
    )
    path.write_text(text, encoding="utf-8", newline="\n")
    return True


# ------------------------------------------------------------------------------------------------ breaking it


def mutmut(folder: Path, *arguments: str, **options) -> subprocess.CompletedProcess:
    program = Path(sys.executable).with_name("mutmut")
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "TRANSFORMER_LIB_PROGRESS": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    return subprocess.run([str(program), *arguments], cwd=folder, env=environment, encoding="utf-8", **options)


def changed_lines(diff: str) -> tuple[str, str]:
    """What stood there and what stands there in a fault's difference, each without its indentation."""
    lines = [line for line in diff.splitlines() if not line.startswith(("---", "+++", "@@", "#"))]
    return tuple(" ".join(line[1:].strip() for line in lines if line.startswith(sign)) for sign in "-+")


def function_of(key: str) -> str:
    """`LSTMCell.step` out of mutmut's `transformer_lib.parts.recurrent.xǁLSTMCellǁstep__mutmut_3`."""
    name = key.rpartition("__mutmut_")[0].rpartition(".")[2]
    return name[2:].replace("ǁ", ".") if name.startswith("xǁ") else name.removeprefix("x_")


def sabotage(module: str, fresh: bool = False, jobs: int = 1) -> dict:
    """Break one module in every way and return what came of it.

    Raises SabotageError where its tests fail without any fault, or where the run was interrupted.
    """
    folder = WORK / module.removesuffix(".py").replace("/", ".")
    if fresh:
        shutil.rmtree(folder, ignore_errors=True)
    prepare(module, folder)
    log = folder / "log.txt"
    print(f"{module}: under {', '.join(tests_of(module))} ...", flush=True)
    with log.open("w", encoding="utf-8") as output:
        run = ("run", "--max-children", str(jobs))
        status = mutmut(folder, *run, stdout=output, stderr=subprocess.STDOUT).returncode
        if not status and be_patient(module, folder):
            status = mutmut(folder, *run, stdout=output, stderr=subprocess.STDOUT).returncode
    codes = exit_codes(module, folder)
    if status and not any(code not in UNCHECKED for code in codes.values()):
        said = log.read_text(encoding="utf-8").replace("\r", "\n").strip().splitlines()
        print("\n".join(said[-15:]), file=sys.stderr)
        raise SabotageError(f"{module}: its tests must pass as long as nothing is broken; see {log.relative_to(ROOT)}")
    if any(code in UNCHECKED for code in codes.values()):
        done = sum(code not in UNCHECKED for code in codes.values())
        raise SabotageError(f"{module}: stopped after {done} of {len(codes)} faults; run it again to go on")
    survivors = []
    for key, code in codes.items():
        if code not in NOTICED:
            diff = mutmut(folder, "show", key, stdout=subprocess.PIPE).stdout
            before, after = changed_lines(diff)
            survivors.append({"function": function_of(key), "from": before, "to": after})
    for name in READ_BY_TESTS:  # the next run copies them anew
        remove(folder / "mutants" / name)
    survivors.sort(key=lambda one: (one["function"], one["from"], one["to"]))
    source = hashlib.sha256((ROOT / module).read_bytes()).hexdigest()
    return {"source": source, "faults": len(codes), "survivors": survivors}


# ------------------------------------------------------------------------------------------------ the table


def read_equivalent(path: Path = EQUIVALENT) -> list[dict]:
    """The faults that no test can notice: module, function, from, to and the reason."""
    if not path.exists():
        return []
    entries = tomllib.loads(path.read_text(encoding="utf-8")).get("equivalent", [])
    for entry in entries:
        missing = {"module", "function", "from", "to", "reason"} - set(entry)
        if missing or not entry["reason"].strip():
            raise SabotageError(f"{path.name}: an entry lacks {', '.join(sorted(missing)) or 'its reason'}: {entry}")
    return entries


def reason_of(module: str, survivor: dict, equivalent: list[dict]) -> str | None:
    """Why this survivor counts as equivalent, if it does."""
    for entry in equivalent:
        if entry["module"] == module and all(entry[part] == survivor[part] for part in ("function", "from", "to")):
            return entry["reason"]
    return None


def score(result: dict, module: str, equivalent: list[dict]) -> tuple[int, int, int]:
    """Faults, those noticed, those that are none."""
    same = sum(reason_of(module, survivor, equivalent) is not None for survivor in result["survivors"])
    return result["faults"], result["faults"] - len(result["survivors"]), same


def share(noticed: int, faults: int, same: int) -> float:
    """The share noticed of all faults that can be noticed."""
    return noticed / (faults - same) if faults > same else 1.0


def table(results: dict[str, dict], equivalent: list[dict]) -> str:
    """tests/SABOTAGE.md: the score of each module, what was not noticed, and what cannot be."""
    lines = [
        "# Does a test notice when the library is broken?",
        "",
        "Made by `make sabotage`: every module is broken in one small place after another (mutmut: `+` becomes `-`, an",
        "argument goes, a value becomes `None`, ...), and the unit tests that mirror it must fail each time.",
        "Docstrings and errors' wording are left alone. *Equivalent* faults change nothing that matters; their reasons",
        f"stand below, and they do not count. Modules not listed were not tried yet. Target: {TARGET:.0%}.",
        "",
        "| module | faults | noticed | equivalent | score |",
        "|---|---:|---:|---:|---:|",
    ]
    total = [0, 0, 0]
    for module, result in sorted(results.items()):
        numbers = score(result, module, equivalent)
        total = [a + b for a, b in zip(total, numbers)]
        faults, noticed, same = numbers
        lines.append(f"| `{module}` | {faults} | {noticed} | {same} | {share(noticed, faults, same):.1%} |")
    faults, noticed, same = total
    lines.append(f"| **all** | {faults} | {noticed} | {same} | **{share(noticed, faults, same):.1%}** |")
    for title, wanted in (("Not noticed", False), ("Equivalent", True)):
        found = [
            (module, survivor, reason)
            for module, result in sorted(results.items())
            for survivor in result["survivors"]
            if ((reason := reason_of(module, survivor, equivalent)) is not None) == wanted
        ]
        if found:
            lines += ["", f"## {title}", ""]
        for module, survivor, reason in found:
            lines.append(f"- `{module}`, `{survivor['function']}`" + (f": {reason}" if reason else ""))
            lines += ["  ```diff", f"  - {survivor['from']}", f"  + {survivor['to']}", "  ```"]
    return "\n".join(lines) + "\n"


def read_results(path: Path = RESULTS) -> dict[str, dict]:
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def write(results: dict[str, dict]) -> None:
    """Store the results of the modules that exist, and the table made from them."""
    results = {module: results[module] for module in sorted(results) if module in modules()}
    text = json.dumps(results, indent=1, ensure_ascii=False) + "\n"
    RESULTS.write_text(text, encoding="utf-8", newline="\n")
    TABLE.write_text(table(results, read_equivalent()), encoding="utf-8", newline="\n")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Break the library line by line and see whether its tests notice.")
    parser.add_argument("modules", nargs="*", metavar="MODULE", help="for example transformer_lib/parts/recurrent.py")
    parser.add_argument("--fresh", action="store_true", help="forget what earlier runs found")
    parser.add_argument("--table", action="store_true", help="break nothing, only make the table anew")
    parser.add_argument("--jobs", type=int, default=int(os.environ.get("JOBS") or min(4, os.cpu_count() or 1)))
    chosen = parser.parse_args(arguments)
    try:
        if not hasattr(os, "fork"):
            raise SabotageError("mutmut needs a system that can fork: run this on Linux, macOS or in WSL")
        unknown = [module for module in chosen.modules if module not in modules()]
        if unknown:
            raise SabotageError(f"{unknown[0]} is no module to break; those are: {' '.join(modules())}")
        results, equivalent, low, failed = read_results(), read_equivalent(), [], []
        for module in [] if chosen.table else chosen.modules or modules():
            try:
                result = sabotage(module, chosen.fresh, chosen.jobs)
            except SabotageError as error:  # the other modules can still be broken
                failed.append(str(error))
                print(f"  {error}", file=sys.stderr, flush=True)
                continue
            results = {**read_results(), module: result}  # another module may have been done beside this one
            write(results)
            faults, noticed, same = score(results[module], module, equivalent)
            reached = share(noticed, faults, same)
            print(f"  {noticed} of {faults - same} faults noticed, {reached:.1%}", flush=True)
            low += [module] if reached < TARGET else []
        write(results)
        if failed:
            raise SabotageError(f"{len(failed)} modules without a result, see above")
        if low:
            raise SabotageError(f"below the target of {TARGET:.0%}: {', '.join(low)}; {TABLE.name} names what survived")
    except SabotageError as error:
        print(f"sabotage: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("sabotage: stopped; run it again to go on", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
