"""What the recipes share: their options, small runs that survive a kill, and what every card says alike."""

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from platform import machine as processor
from typing import Any

import torch

from transformer_lib.files import whole_file
from transformer_lib.paths import DATA


def options(about: str, steps: int) -> argparse.Namespace:
    """What the command line says: folder and steps."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--folder", type=Path, default=DATA / "models", help="where the results go")
    parser.add_argument("--steps", type=int, default=steps, help="fewer steps, for a trial")
    return parser.parse_args()


def machine() -> str:
    """Where it was trained, as far as it matters for numbers and CPU-seconds; no name of a machine."""
    return (
        f"{processor()}, one thread, torch {torch.__version__.split('+')[0]}, "
        f"Python {sys.version_info.major}.{sys.version_info.minor}"
    )


class Runs:
    """Many small runs behind one card NAME.json. Each is kept once it is done: after a kill only the others are run."""

    def __init__(self, name: str, folder: Path):
        self.card, self.progress = folder / f"{name}.json", folder / f"{name}.checkpoint.json"
        self.done: dict[str, dict[str, Any]] = {}
        if self.progress.is_file():
            self.done = json.loads(self.progress.read_text(encoding="utf-8"))

    def once(self, key: str, run: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """The result under this key: what is there, or what `run` gives now."""
        if key not in self.done:
            self.done[key] = run()
            with whole_file(self.progress) as file:
                file.write_text(json.dumps(self.done), encoding="utf-8", newline="\n")
            print(self.done[key], flush=True)
        return self.done[key]

    def finish(self, card: dict[str, Any]) -> None:
        """Write the card, with the CPU-seconds of all runs; then what was kept on the way is gone."""
        spent = round(sum(run["cpu_seconds"] for run in self.done.values()), 1)
        content = json.dumps(card | {"cpu_seconds": spent, "machine": machine()}, indent=1)
        with whole_file(self.card) as file:
            file.write_text(content + "\n", encoding="utf-8", newline="\n")
        self.progress.unlink(missing_ok=True)
