"""The one look of every figure: fonts that hold English and Japanese, colours that everyone can tell apart.

Serves all chapters. Applied once, when `transformer_lib.show` is imported.
"""

import dataclasses
import logging

COLOURS = {  # Okabe and Ito (2008), without the yellow, which is too pale for a line on white
    "blue": "#0072B2",
    "vermilion": "#D55E00",
    "green": "#009E73",
    "purple": "#CC79A7",
    "orange": "#E69F00",
    "sky": "#56B4E9",
    "black": "#000000",
}
JAPANESE = "IPAexGothic"
DOTS_PER_INCH = 100  # a 10-point letter is 14 pixels high: readable without zooming


def apply_style() -> None:
    """Set matplotlib's defaults: DejaVu Sans first, IPAexGothic for Japanese, one colour cycle, a light grid."""
    # Building the font cache, once per machine, is announced on stderr; a notebook's stored output knows nothing of it.
    log = logging.getLogger("matplotlib.font_manager")
    level = log.level
    log.setLevel(logging.ERROR)
    import matplotlib
    import matplotlib_fontja  # noqa: F401  registers IPAexGothic, and makes it the default, which is undone below
    from matplotlib.font_manager import fontManager

    log.setLevel(level)
    # The Japanese font has one weight; said to be bold as well, it serves bold titles without a warning.
    japanese = [font for font in fontManager.ttflist if font.name == JAPANESE]
    if not any(font.weight == 700 for font in japanese):
        fontManager.ttflist += [dataclasses.replace(font, weight=700) for font in japanese]
    matplotlib.rcParams.update(
        {
            "font.family": ["DejaVu Sans", JAPANESE],
            "font.size": 10,
            "axes.titlesize": 11,
            "axes.labelsize": 10,
            "axes.unicode_minus": True,
            "axes.prop_cycle": matplotlib.cycler(color=list(COLOURS.values())),
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.grid": True,
            "axes.axisbelow": True,
            "grid.color": "#d9d9d9",
            "grid.linewidth": 0.6,
            "image.cmap": "viridis",
            "image.interpolation": "nearest",
            "legend.frameon": False,
            "lines.linewidth": 1.8,
            "figure.figsize": (6.4, 4.0),
            "figure.dpi": DOTS_PER_INCH,
            "savefig.dpi": DOTS_PER_INCH,
            "figure.constrained_layout.use": True,
        }
    )
