"""What importing the library costs beyond importing torch."""

import subprocess
import sys
from pathlib import Path

from benchmarks.measure import Row

ROOT = Path(__file__).resolve().parents[1]
USUAL = "transformer_lib.models, transformer_lib.training, transformer_lib.evaluation, transformer_lib.decoding"


def seconds(module: str, after: str = "torch") -> float:
    """Processor time of an import in a Python of its own, once `after` is loaded."""
    code = f"import time, {after}; begin = time.process_time(); import {module}; print(time.process_time() - begin)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    return float(done.stdout)


def beyond_torch(rounds: int = 3) -> list[Row]:
    """The library alone, and all that the first chapters use but for the figures; the best of some rounds."""
    torch = min(seconds("torch", after="sys") for _ in range(rounds))
    return [
        Row(
            f"Importing {name}, beyond torch",
            min(seconds(module) for _ in range(rounds)),
            0.3,
            False,
            "s",
            f"torch itself: {torch:.2g} s",
        )
        for name, module in (("transformer_lib", "transformer_lib"), ("models, training, evaluation, decoding", USUAL))
    ]
