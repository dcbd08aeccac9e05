"""A matrix as a picture: rows and columns named, numbers written in where there is room.

Serves all chapters: transition tables, gates over a sentence, attention weights.
"""

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

WRITTEN_IN = 120  # up to so many cells carry their number
NAMED = 40  # up to so many rows or columns carry their name


def as_array(values) -> np.ndarray:
    """A tensor, an array or nested lists as an array of floats; tensors may carry gradients."""
    if hasattr(values, "detach"):
        values = values.detach().cpu().numpy()
    return np.asarray(values, dtype=float)


def _name_axis(axis, names: Sequence | None, count: int, turn: bool) -> None:
    if names is None or count > NAMED:
        return
    axis.set_ticks(range(count), [str(name) for name in names])
    if turn and max(len(str(name)) for name in names) > 4:
        axis.set_tick_params(labelrotation=45)
        for label in axis.get_ticklabels():
            label.set(horizontalalignment="right", rotation_mode="anchor")


def heatmap(
    matrix,
    rows: Sequence | None = None,
    columns: Sequence | None = None,
    title: str = "",
    xlabel: str = "",
    ylabel: str = "",
    *,
    label: str = "value",
    limits: tuple[float, float] | None = None,
    digits: int = 2,
    ax: Axes | None = None,
) -> Figure:
    r"""Draw a matrix $A_{ij}$ as a grid of colours, row $i$ downwards and column $j$ to the right.

    Args:
        matrix: (rows, columns), a tensor, an array or nested lists. NaN cells stay grey.
        rows, columns: the names along the two sides, e.g. tokens.
        title, xlabel, ylabel: what the figure says, and what its columns and rows are.
        label: what the colour bar measures, with its unit.
        limits: the numbers at the two ends of the colour bar; by default the smallest and the largest one, and for a
            matrix with both signs a range symmetric about 0 in two hues.
        digits: decimals of the numbers written in (up to 120 cells).
        ax: where to draw; by default a new figure of a fitting size.

    Returns:
        The figure, to be passed to `show`.

    Raises:
        ValueError: the matrix is not two-dimensional or is empty, or the names do not fit its sides.
    """
    matrix = as_array(matrix)
    if matrix.ndim != 2 or matrix.size == 0:
        raise ValueError(f"heatmap expects a matrix with rows and columns; got shape {matrix.shape}")
    for side, names, count in (("rows", rows, matrix.shape[0]), ("columns", columns, matrix.shape[1])):
        if names is not None and len(names) != count:
            raise ValueError(f"heatmap expects a name for each of the {count} {side}; got {len(names)}")
    if ax is None:
        height, width = matrix.shape
        _, ax = plt.subplots(figsize=(min(max(0.6 * width, 3.0) + 2.2, 9.0), min(max(0.42 * height, 1.6) + 1.4, 8.0)))
    finite = matrix[np.isfinite(matrix)]
    if limits is None:
        low, high = (finite.min(), finite.max()) if finite.size else (0.0, 1.0)
        limits = (-max(-low, high), max(-low, high)) if low < 0 < high else (low, high)
    two_hues = limits[0] < 0 < limits[1]
    colours = plt.colormaps["RdBu_r" if two_hues else "viridis"].with_extremes(bad="#bbbbbb")
    image = ax.imshow(np.ma.masked_invalid(matrix), cmap=colours, vmin=limits[0], vmax=limits[1], aspect="auto")
    ax.grid(False)
    ax.set(title=title, xlabel=xlabel, ylabel=ylabel)
    _name_axis(ax.xaxis, columns, matrix.shape[1], turn=True)
    _name_axis(ax.yaxis, rows, matrix.shape[0], turn=False)
    ax.figure.colorbar(image, ax=ax, label=label)
    if matrix.size <= WRITTEN_IN:
        for (i, j), value in np.ndenumerate(matrix):
            red, green, blue, _ = image.cmap(image.norm(value))
            dark = 0.299 * red + 0.587 * green + 0.114 * blue < 0.5
            # rounded to 9 digits first, so that 0.125 and 0.12499999999999999 come out alike
            text = f"{float(f'{value:.9g}'):z.{digits}f}" if np.isfinite(value) else ""
            ax.text(j, i, text, ha="center", va="center", color="white" if dark else "black", fontsize=9)
    return ax.figure
