"""Where the repository and its data lie, found from this file, whatever the current folder.

Used by every chapter's `load_corpus` and `load_trained`.
"""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT / "data"
