"""Compile requirements.txt from pyproject.toml: `make pins`. Keeps what still fits; `--upgrade` takes the newest.

One file serves Python 3.11 to 3.13 on Linux, macOS and Windows, hence uv's universal resolution.
"""

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# torch pins these itself, by system; the CPU build does without them.
BROUGHT_BY_TORCH = re.compile(r"^(nvidia|cuda|triton)[-=]", re.IGNORECASE)


def header(text: str) -> list[str]:
    """The comment lines that a requirements file begins with."""
    lines = text.splitlines()
    return lines[: next((i for i, line in enumerate(lines) if not line.startswith("#")), len(lines))]


def without_torch_parts(text: str) -> list[str]:
    """The pins alone: no comment, no blank line, nothing that torch brings along."""
    lines = [line.strip() for line in text.splitlines()]
    return [line for line in lines if line and not line.startswith("#") and not BROUGHT_BY_TORCH.match(line)]


def compile_pins(uv: str, target: Path, upgrade: bool) -> None:
    """Resolve pyproject.toml into `target`, which holds the pins to keep where they still fit."""
    command = [uv, "pip", "compile", "pyproject.toml", "--universal", "--fork-strategy", "fewest"]
    command += ["--python-version", "3.11", "--extra", "test", "--no-header", "--no-annotate", "--quiet"]
    command += ["--output-file", str(target)] + (["--upgrade"] if upgrade else [])
    subprocess.run(command, cwd=ROOT, check=True)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Compile requirements.txt from pyproject.toml.")
    parser.add_argument("--upgrade", action="store_true", help="take the newest versions instead of keeping the pins")
    parser.add_argument("--output", type=Path, default=ROOT / "requirements.txt")
    chosen = parser.parse_args(arguments)
    uv = shutil.which("uv")
    if uv is None:
        print("pins: uv is needed and was not found: install it (pip install uv) and run again", file=sys.stderr)
        return 1
    before = (ROOT / "requirements.txt").read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "requirements.txt"
        target.write_text(before, encoding="utf-8", newline="\n")
        try:
            compile_pins(uv, target, chosen.upgrade)
        except subprocess.CalledProcessError:
            print("pins: no set of versions fits (see above); requirements.txt stays as it was", file=sys.stderr)
            return 1
        lines = header(before) + without_torch_parts(target.read_text(encoding="utf-8"))
    chosen.output.write_text("\n".join(lines) + "\n", encoding="utf-8", newline="\n")
    print(f"{len(lines) - len(header(before))} pins written")
    return 0


if __name__ == "__main__":
    sys.exit(main())
