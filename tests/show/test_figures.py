"""show: alt text and digest beside the picture, the same bytes every time, no figure left over."""

import base64
import struct

import matplotlib.pyplot as plt
import pytest
from matplotlib.figure import Figure

from transformer_lib.show import show


def _figure():
    figure, ax = plt.subplots()
    ax.plot([0, 1, 2], [1, 0.5, 0.25])
    ax.set(title="Memory of 猫", xlabel="step", ylabel="share")
    return figure


def test_png_alt_and_digest_stand_together(displayed):
    show(_figure(), alt="Half of it is lost\n at each step")
    (data, metadata), *more = displayed
    assert not more and set(data) == {"image/png", "text/plain"}
    assert metadata == {"image/png": {"alt": "Half of it is lost at each step"}}
    alt, first, *rest = data["text/plain"].splitlines()
    assert alt == "Half of it is lost at each step" and first == "Figure 6.4 x 4 in, axes: 1"
    assert "  line x[0, 1, 2] y[1, 0.5, 0.25]" in rest


def test_the_picture_is_the_same_bytes_and_readable(displayed):
    show(_figure(), alt="a")
    show(_figure(), alt="a")
    first, second = (base64.b64decode(data["image/png"]) for data, _ in displayed)
    assert first == second and b"matplotlib" not in first.lower()
    width, height = struct.unpack(">II", first[16:24])
    assert 600 <= width <= 700 and 350 <= height <= 450


def test_a_figure_made_without_pyplot_is_shown_too(displayed):
    figure = Figure()
    figure.subplots().plot([1, 2])
    show(figure, alt="a line")
    assert len(displayed) == 1


@pytest.mark.parametrize("alt", [None, "", "  \n", 3])
def test_no_alt_text_is_an_error_of_one_line(alt, displayed):
    with pytest.raises(ValueError, match=r"^show expects alt=") as caught:
        show(_figure(), alt=alt)
    assert "\n" not in str(caught.value) and not displayed


def test_what_is_no_figure_is_an_error_of_one_line(displayed):
    with pytest.raises(TypeError, match="^show expects a matplotlib Figure; got list$"):
        show([1], alt="a")
    figure = _figure()
    with pytest.raises(TypeError, match="got Axes: pass its .figure$"):
        show(figure.axes[0], alt="a")
    plt.close(figure)


def test_outside_a_notebook_the_text_is_printed(capsys):
    show(_figure(), alt="Half of it")
    assert capsys.readouterr().out.startswith("Half of it\nFigure 6.4 x 4 in")


def test_japanese_beside_mathematics_would_be_boxes():
    figure, axes = plt.subplots()
    axes.set_title("What 猫 left in $h_5$")
    with pytest.raises(ValueError, match=r"expects Japanese and \$mathematics\$ in separate texts; got 'What 猫"):
        show(figure, alt="What is left.")
    assert not plt.get_fignums()


@pytest.mark.parametrize("title", ["What 猫 left", "left in $h_5$", "猫 for 5$"])
def test_japanese_alone_and_mathematics_alone_are_drawn(title, displayed):
    figure, axes = plt.subplots()
    axes.set_title(title)
    show(figure, alt="What is left.")
    assert len(displayed) == 1
