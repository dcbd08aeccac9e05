"""What a notebook shows: figures with alt text and digest, moving figures, listings, quizzes, exercise checks.

Serves all chapters. Takes numbers, returns figures; knows no model. Importing it sets the figures' style.
"""

from transformer_lib.show.style import apply_style

apply_style()

from transformer_lib.show.exercises import check, close, exercise, right, verdict, wrong  # noqa: E402
from transformer_lib.show.figures import show  # noqa: E402
from transformer_lib.show.heatmaps import heatmap  # noqa: E402
from transformer_lib.show.listings import listing  # noqa: E402
from transformer_lib.show.quizzes import quiz  # noqa: E402
from transformer_lib.show.style import COLOURS  # noqa: E402
from transformer_lib.show.tables import table  # noqa: E402
from transformer_lib.show.widgets import explore  # noqa: E402

__all__ = [
    "COLOURS",
    "check",
    "close",
    "exercise",
    "explore",
    "heatmap",
    "listing",
    "quiz",
    "right",
    "show",
    "table",
    "verdict",
    "wrong",
]
