"""A figure becomes an output: a PNG, its alt text, and a digest that a test can compare.

Serves all chapters. `show` is the only way in which a notebook displays a figure that does not move.
"""

import base64
import io
from unicodedata import east_asian_width

import matplotlib.pyplot as plt
from IPython.core.getipython import get_ipython
from IPython.display import display
from matplotlib import cbook
from matplotlib.figure import Figure
from matplotlib.text import Text

from transformer_lib.show.digest import describe
from transformer_lib.show.style import DOTS_PER_INCH


def emit(data: dict, metadata: dict | None = None) -> None:
    """Send one output to the notebook; outside a notebook print its text."""
    if get_ipython() is None:
        print(data["text/plain"])
    else:
        display(data, metadata=metadata or {}, raw=True)


def require_alt(alt: str | None, what: str) -> str:
    """Return the alt text on one line, or say that it is missing."""
    if not isinstance(alt, str) or not alt.strip():
        raise ValueError(f'{what} expects alt="...", a sentence that says what the figure shows; got {alt!r}')
    return " ".join(alt.split())


def render(figure: Figure, alt: str) -> tuple[dict, dict]:
    """Turn a figure into an output's data and metadata, and close it.

    The data hold `image/png` and, as `text/plain`, the alt text followed by the digest; the metadata hold the alt text
    for the image. The digest is taken before the figure is laid out, so that fonts do not enter into it.
    """
    text = f"{alt}\n{describe(figure)}"
    png = io.BytesIO()
    # The writer's name and version would change the file with every release of matplotlib.
    figure.savefig(png, format="png", dpi=DOTS_PER_INCH, bbox_inches="tight", metadata={"Software": None})
    plt.close(figure)  # or the inline backend would display it once more at the end of the cell
    data = {"image/png": base64.b64encode(png.getvalue()).decode("ascii"), "text/plain": text}
    return data, {"image/png": {"alt": alt}}


def require_figure(figure: Figure, what: str) -> Figure:
    """Return the figure, or say what came instead."""
    if not isinstance(figure, Figure):
        hint = ": pass its .figure" if hasattr(figure, "get_figure") else ""
        raise TypeError(f"{what} a matplotlib Figure; got {type(figure).__name__}{hint}")
    require_drawable(figure)
    return figure


def require_drawable(figure: Figure) -> None:
    """See that no text mixes Japanese with $mathematics$, whose font has no Japanese: empty boxes would be drawn."""
    for artist in figure.findobj(Text):
        words = artist.get_text()
        if cbook.is_math_text(words) and any(east_asian_width(character) in "WF" for character in words):
            plt.close(figure)
            raise ValueError(
                f"show expects Japanese and $mathematics$ in separate texts; got {words!r}: write one of them in words"
            )


def show(figure: Figure, alt: str | None = None) -> None:
    """Display a figure with its alt text and a digest of what was drawn, and close it.

    Args:
        figure: what to display.
        alt: one sentence that tells someone who cannot see the figure what it shows.

    Raises:
        TypeError: not a figure.
        ValueError: no alt text, or a text that cannot be drawn.
    """
    require_figure(figure, "show expects")
    try:
        alt = require_alt(alt, "show")
    except ValueError:
        plt.close(figure)  # the error is enough: the inline backend shall not display the figure on top of it
        raise
    emit(*render(figure, alt))
