"""A figure in words and numbers: what was drawn, to 4 significant digits, the same on every processor.

Serves all chapters. The notebooks' test compares this text where it cannot compare pixels.
"""

import math
from collections.abc import Iterable

import numpy as np
from matplotlib.axes import Axes
from matplotlib.category import StrCategoryLocator
from matplotlib.collections import Collection, LineCollection, PathCollection, QuadMesh
from matplotlib.container import BarContainer
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, Patch
from matplotlib.text import Text
from matplotlib.ticker import FixedLocator, LogFormatter, NullFormatter, ScalarFormatter

WRITTEN_OUT = 12  # so many numbers or fewer are written out; more are summarised
NOISE = 1e-9  # what is smaller than this share of the largest number is rounding error ...
NOISE_FLOOR = 1e-12  # ... and so is what is smaller than this on a linear axis


def number(value: float, digits: int = 4) -> str:
    """Write a number with so many significant digits, the same way on every processor.

    Rounding first to 9 digits takes the last-bit differences away: 0.12345 and 0.12344999999999999 print alike.
    """
    value = float(value)
    if not math.isfinite(value):
        return str(value)
    text = f"{float(f'{value:.9g}'):.{digits}g}"
    return "0" if float(text) == 0 else text


def _quiet(values: np.ndarray, scale: float) -> np.ndarray:
    """Round away what cancellation leaves: multiples of 1e-9 of the scale are kept, what is below is noise."""
    if scale < NOISE_FLOOR:
        return np.zeros_like(values)
    return np.round(values / scale / NOISE) * NOISE * scale


def numbers(values: Iterable, log: bool = False) -> str:
    """Say what an array holds: every number if there are few, else count, extremes, mean and a weighted mean.

    The weights rise evenly from -1 to 1, so that two exchanged numbers show. On a logarithmic axis (`log`) mean and
    weighted mean are taken of log10, so that small numbers count as much as they are seen.
    """
    values = np.ma.filled(np.ma.asarray(values, dtype=float), np.nan).ravel()
    finite = np.isfinite(values) & ((values > 0) if log else True)
    kept = values[finite]
    if kept.size == 0:
        return f"n={values.size}, none finite"
    scale = float(np.abs(kept).max())
    if not log:  # tiny numbers mean something on a logarithmic axis only
        kept = np.where(np.abs(kept) < max(NOISE * scale, NOISE_FLOOR), 0.0, kept)
    if values.size <= WRITTEN_OUT:
        filled = values.copy()
        filled[finite] = kept
        return ", ".join(number(value) for value in filled)
    measured = np.log10(kept) if log else kept
    spread = float(np.abs(measured).max())
    weights = np.linspace(-1, 1, values.size)[finite]
    mean, weighted = _quiet(np.array([measured.mean(), (measured * weights).mean()]), spread)
    of = "log10 " if log else ""
    missing = "" if kept.size == values.size else f" missing={values.size - kept.size}"
    return (
        f"n={values.size} min={number(kept.min())} max={number(kept.max())} "
        f"{of}mean={number(mean)} {of}weighted={number(weighted)}{missing}"
    )


def _limits(pair: tuple[float, float], log: bool) -> str:
    ends = np.array(pair, dtype=float)
    if not log:
        ends = _quiet(ends, float(np.abs(ends).max()))
    return f"{number(ends[0], 3)} to {number(ends[1], 3)}"


def _label(ax: Axes, which: str) -> str:
    """An axis's label: its own, that of the axes it shares the axis with, or the one written for the whole figure."""
    own = getattr(ax, f"get_{which}label")()
    if own:
        return own
    shared = getattr(ax, f"get_shared_{which}_axes")().get_siblings(ax)
    others = [getattr(other, f"get_{which}label")() for other in ax.figure.axes if other in shared]
    return next(filter(None, others), "") or getattr(ax.figure, f"get_sup{which}label")()


def _ticks(ax: Axes, which: str) -> list[str]:
    axis = getattr(ax, f"{which}axis")
    formatter, locator = axis.get_major_formatter(), axis.get_major_locator()
    if isinstance(locator, StrCategoryLocator):
        return [f"  {which} ticks {formatter.format_ticks(locator())}"]
    if not isinstance(locator, FixedLocator) or len(locator.locs) == 0:
        return []
    if isinstance(formatter, ScalarFormatter | LogFormatter | NullFormatter):
        return [f"  {which} ticks {numbers(locator.locs)}"]
    return [f"  {which} ticks {formatter.format_ticks(locator.locs)} at {numbers(locator.locs)}"]


def _named(artist) -> str:
    label = str(artist.get_label() or "")
    return "" if label.startswith("_") or not label else f" {label!r}"


def _collection(collection: Collection, log: tuple[bool, bool]) -> str:
    """Scattered points, filled areas, bundles of lines, meshes: their places and the values that colour them."""
    parts = [f"  {type(collection).__name__}{_named(collection)}"]
    offsets = np.ma.asarray(collection.get_offsets(), dtype=float)
    if isinstance(collection, PathCollection) or offsets.size > 2:
        parts.append(f"x[{numbers(offsets[:, 0], log[0])}] y[{numbers(offsets[:, 1], log[1])}]")
        sizes = np.asarray(collection.get_sizes()) if isinstance(collection, PathCollection) else np.zeros(0)
        if sizes.size > 1:
            parts.append(f"sizes[{numbers(sizes)}]")
    elif not isinstance(collection, QuadMesh):
        paths = collection.get_segments() if isinstance(collection, LineCollection) else collection.get_paths()
        points = [np.asarray(getattr(path, "vertices", path), dtype=float)[:, :2] for path in paths]
        if points:
            places = np.concatenate(points)
            parts.append(f"pieces={len(points)} x[{numbers(places[:, 0], log[0])}] y[{numbers(places[:, 1], log[1])}]")
    for name in ("U", "V"):  # arrows of a quiver
        if hasattr(collection, name):
            parts.append(f"{name}[{numbers(getattr(collection, name))}]")
    if collection.get_array() is not None:
        parts.append(f"values[{numbers(collection.get_array())}]")
    return " ".join(parts)


def _patch(patch: Patch) -> str:
    """A single shape: for an arrow its two ends, for anything else the outline."""
    ends = getattr(patch, "_posA_posB", None) if isinstance(patch, FancyArrowPatch) else None
    if ends is None:
        ends = patch.get_patch_transform().transform(patch.get_path().vertices)
    places = np.asarray(ends, dtype=float)
    return f"  {type(patch).__name__}{_named(patch)} x[{numbers(places[:, 0])}] y[{numbers(places[:, 1])}]"


def _text(text: Text, log: tuple[bool, bool]) -> str:
    place = [v if is_log else _quiet(np.array(v), 1.0) for v, is_log in zip(text.get_unitless_position(), log)]
    return f"{text.get_text()!r} ({', '.join(number(value, 3) for value in place)})"


def _drawn(ax: Axes) -> list[str]:
    log = ax.get_xscale() == "log", ax.get_yscale() == "log"
    found = []
    for line in filter(lambda artist: artist.get_visible(), ax.lines):
        x, y = numbers(line.get_xdata(orig=False), log[0]), numbers(line.get_ydata(orig=False), log[1])
        found.append(f"  line{_named(line)} x[{x}] y[{y}]")
    for image in filter(lambda artist: artist.get_visible(), ax.images):
        shape = " x ".join(map(str, image.get_array().shape))
        found.append(f"  image {shape} colours {_limits(image.get_clim(), False)} [{numbers(image.get_array())}]")
    in_bars = set()
    for bars in ax.containers:
        if isinstance(bars, BarContainer):
            in_bars |= {id(patch) for patch in bars.patches}
            corners = np.array([patch.get_bbox().extents for patch in bars.patches], dtype=float).reshape(-1, 4)
            along, across = (1, 0) if bars.orientation == "horizontal" else (0, 1)
            middle = numbers((corners[:, along] + corners[:, along + 2]) / 2, log[along])
            low, high = numbers(corners[:, across], log[across]), numbers(corners[:, across + 2], log[across])
            found.append(f"  bars{_named(bars)} at[{middle}] from[{low}] to[{high}]")
    found += [_collection(one, log) for one in ax.collections if one.get_visible()]
    found += [_patch(one) for one in ax.patches if one.get_visible() and id(one) not in in_bars]
    texts = [_text(text, log) for text in ax.texts if text.get_visible() and text.get_text().strip()]
    if texts:
        found.append(f"  texts {', '.join(texts)}")
    legend = ax.get_legend()
    if legend:
        heading = legend.get_title().get_text()
        found.append(f"  legend{f' {heading!r}' if heading else ''} {[text.get_text() for text in legend.get_texts()]}")
    return found


def _axes(ax: Axes) -> list[str]:
    title = " / ".join(filter(None, (ax.get_title(loc=loc) for loc in ("left", "center", "right"))))
    if ax.get_label() == "<colorbar>":
        label = ax.get_ylabel() or ax.get_xlabel() or title
        return [f"colour bar label={label!r} {_limits(ax.get_ylim(), ax.get_yscale() == 'log')}"]
    if not ax.axison:
        return [f"axes off title={title!r}", *_drawn(ax)]
    scale = {which: getattr(ax, f"get_{which}scale")() for which in "xy"}
    ranges = [
        f"{which}={_label(ax, which)!r} {_limits(getattr(ax, f'get_{which}lim')(), scale[which] == 'log')}"
        + ("" if scale[which] == "linear" else f" {scale[which]}")
        for which in "xy"
    ]
    return [f"axes title={title!r} {' '.join(ranges)}", *_ticks(ax, "x"), *_ticks(ax, "y"), *_drawn(ax)]


def describe(figure: Figure) -> str:
    """Describe a figure: its size, every axes' title, labels and limits, and what each holds, one line per artist.

    Numbers have 4 significant digits (limits 3). Two figures that a reader could tell apart by their data, their words
    or their ranges differ in this text; the same program gives the same text on every processor.
    """
    visible = [ax for ax in figure.axes if ax.get_visible()]
    width, height = figure.get_size_inches()
    lines = [f"Figure {number(width, 3)} x {number(height, 3)} in, axes: {len(visible)}"]
    if figure.get_suptitle():
        lines.append(f"title over all: {figure.get_suptitle()!r}")
    for ax in visible:
        lines += _axes(ax)
    around = {figure.get_suptitle(), figure.get_supxlabel(), figure.get_supylabel(), ""}
    texts = [text.get_text() for text in figure.texts if text.get_visible()]
    lines += [f"text {text!r}" for text in texts if text not in around]
    for legend in figure.legends:
        lines.append(f"legend {[text.get_text() for text in legend.get_texts()]}")
    return "\n".join(lines)
