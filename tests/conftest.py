"""What holds in every test: one thread, no progress bars, the same random examples on every machine."""

import os
import sys
from pathlib import Path

# Before torch is imported: under load two OpenMP threads stall each other, and the last digits depend on their number.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ["TRANSFORMER_LIB_PROGRESS"] = "0"
os.environ.setdefault("MPLBACKEND", "agg")

import pytest
from hypothesis import HealthCheck, settings

# `course` tries the same examples every time, so that a green run stays green. To look for new counterexamples:
# HYPOTHESIS_PROFILE=explore make test
settings.register_profile(
    "course", derandomize=True, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("explore", deadline=None, max_examples=1000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "course"))


@pytest.fixture(autouse=True)
def _leave_torch_as_it_was():
    """`reproducible` changes torch's default type; no test may depend on which test ran before it."""
    before = sys.modules["torch"].get_default_dtype() if "torch" in sys.modules else None
    yield
    if "torch" in sys.modules:
        torch = sys.modules["torch"]
        torch.set_default_dtype(before or torch.float32)


@pytest.fixture
def as_on_windows(monkeypatch):
    """Text files get the machine's old code page and its line ends, unless the program says which ones it wants."""
    read, write = Path.read_text, Path.write_text
    monkeypatch.setattr(
        Path, "read_text", lambda self, encoding=None, errors=None: read(self, encoding or "cp1252", errors)
    )
    monkeypatch.setattr(
        Path,
        "write_text",
        lambda self, data, encoding=None, errors=None, newline=None: write(
            self, data, encoding or "cp1252", errors, "\r\n" if newline is None else newline
        ),
    )
