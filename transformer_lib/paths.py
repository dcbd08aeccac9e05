"""Where the repository's data lies, wherever Python was started.

Used by every chapter through `load_corpus` and `load_trained`.
"""

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / "data"
