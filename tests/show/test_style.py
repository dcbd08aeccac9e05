"""Fonts and colours: Japanese is drawn, nothing warns, and only show sets them."""

import io
import logging
import subprocess
import sys

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.font_manager import findfont, fontManager

import transformer_lib.show as show_package


def _png(text, **options):
    figure, ax = plt.subplots(figsize=(2, 1))
    ax.set_axis_off()
    ax.text(0.1, 0.4, text, **options)
    png = io.BytesIO()
    figure.savefig(png, format="png")
    plt.close(figure)
    return png.getvalue()


@pytest.mark.parametrize("weight", ["normal", "bold"])
def test_japanese_is_drawn_without_a_warning(weight, caplog, recwarn):
    with caplog.at_level(logging.WARNING):
        cat, fish = _png("猫 は 魚 が 好き ＋ latin", weight=weight), _png("犬 は 魚 が 好き ＋ latin", weight=weight)
    assert cat != fish  # two missing glyphs would look alike
    assert not caplog.records and not list(recwarn)


def test_a_missing_glyph_would_be_noticed(recwarn):
    with pytest.warns(UserWarning, match="missing from font"):
        _png("猫", fontfamily="DejaVu Sans")


def test_english_stays_in_dejavu_sans():
    assert matplotlib.rcParams["font.family"] == ["DejaVu Sans", "IPAexGothic"]
    assert findfont("DejaVu Sans").endswith("DejaVuSans.ttf")
    assert any(font.name == "IPAexGothic" for font in fontManager.ttflist)


def test_colours_differ_for_colour_blind_eyes_and_from_white():
    """Simulated red-green blindness (Viénot 1999): the first four lines stay apart, and every one from the paper."""
    to_lms = np.array([[17.8824, 43.5161, 4.11935], [3.45565, 27.1554, 3.86714], [0.0299566, 0.184309, 1.46709]])
    deuteranopia = np.array([[1, 0, 0], [0.494207, 0, 1.24827], [0, 0, 1]])
    rgb = np.array([matplotlib.colors.to_rgb(colour) for colour in show_package.COLOURS.values()])
    seen = (np.linalg.inv(to_lms) @ deuteranopia @ to_lms @ rgb.T).T
    for first in range(4):
        for second in range(first):
            assert np.linalg.norm(seen[first] - seen[second]) > 0.2
    assert (np.linalg.norm(rgb - 1, axis=1) > 0.5).all()
    assert [entry["color"] for entry in matplotlib.rcParams["axes.prop_cycle"]] == list(show_package.COLOURS.values())


def test_the_library_alone_draws_nothing_and_show_knows_no_model():
    program = (
        "import sys, transformer_lib; assert not {'matplotlib', 'ipywidgets', 'IPython'} & set(sys.modules), 'loaded';"
        "import transformer_lib.show;"
        "loaded = {name.split('.')[1] for name in sys.modules if name.startswith('transformer_lib.')};"
        "assert loaded <= {'show', 'paths', 'checks'}, loaded"
    )
    done = subprocess.run([sys.executable, "-W", "error", "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout == done.stderr == ""
