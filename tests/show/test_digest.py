"""The digest: every change that a reader could see shows, and the last bits of a processor do not."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer_lib.show.digest import describe, number, numbers


def _figure(**change):
    """A figure with one of everything; `change` replaces one of its ingredients."""
    is_ = {
        "line": np.sin(np.arange(50.0)),
        "short": [1, 0.5, 0.25],
        "label": "RNN",
        "title": "Loss",
        "xlabel": "step",
        "ylabel": "loss / nats",
        "xlim": (0, 50),
        "yscale": "linear",
        "image": np.arange(48.0).reshape(6, 8),
        "clim": (0, 47),
        "ticks": ["猫", "は"],
        "bars": [3.0, 1.0, 2.0],
        "kinds": ["a", "b", "c"],
        "points": [0.1, 0.2, 0.4],
        "sizes": [10, 20, 30],
        "band": [1.0, 2.0, 3.0],
        "word": "here",
        "place": (1.0, 1.0),
        "arrow": (1.0, 0.5),
        "over": "Two views",
        "off": True,
        "bar_label": "count",
        "level": 0.5,
    } | change
    figure, ((a, b, c), (d, e, f)) = plt.subplots(2, 3)
    a.plot(is_["line"], label=is_["label"])
    a.plot(is_["short"], label="_hidden")
    a.axhline(is_["level"])
    a.set(title=is_["title"], xlabel=is_["xlabel"], ylabel=is_["ylabel"], xlim=is_["xlim"], yscale=is_["yscale"])
    a.legend()
    image = b.imshow(is_["image"], vmin=is_["clim"][0], vmax=is_["clim"][1])
    b.set_xticks([0, 1], is_["ticks"])
    figure.colorbar(image, ax=b, label=is_["bar_label"])
    c.bar(is_["kinds"], is_["bars"])
    d.scatter([1, 2, 3], is_["points"], s=is_["sizes"])
    e.fill_between([0, 1, 2], is_["band"])
    f.annotate(is_["word"], (0, 0), is_["place"], arrowprops={"arrowstyle": "->"})
    f.add_patch(plt.Circle(is_["arrow"], 0.1))
    f.axis("off" if is_["off"] else "on")
    figure.suptitle(is_["over"])
    return figure


def _digest(**change):
    figure = _figure(**change)
    text = describe(figure)
    plt.close(figure)
    return text


def _changed(values, at, by):
    values = np.array(values, dtype=float)
    values.flat[at] += by
    return values


CHANGES = {
    "a point of a long line": {"line": _changed(np.sin(np.arange(50.0)), 17, 0.05)},
    "two exchanged points": {"line": np.sin(np.arange(50.0))[[1, 0, *range(2, 50)]]},
    "a point of a short line": {"short": [1, 0.5, 0.2501]},
    "a legend entry": {"label": "LSTM"},
    "a title": {"title": "Losses"},
    "an x label": {"xlabel": "steps"},
    "a y label": {"ylabel": "loss / bits"},
    "a range": {"xlim": (0, 49)},
    "a logarithmic axis": {"yscale": "symlog"},
    "a cell of an image": {"image": _changed(np.arange(48.0).reshape(6, 8), 20, 0.5)},
    "an image turned round": {"image": np.arange(48.0).reshape(6, 8)[::-1]},
    "the ends of the colours": {"clim": (0, 40)},
    "a tick's word": {"ticks": ["犬", "は"]},
    "a bar": {"bars": [3.0, 1.0, 2.001]},
    "a bar's name": {"kinds": ["a", "b", "d"]},
    "a scattered point": {"points": [0.1, 0.2, 0.4001]},
    "a scattered point's size": {"sizes": [10, 20, 31]},
    "a filled area": {"band": [1.0, 2.0, 3.01]},
    "a word in the figure": {"word": "there"},
    "a word's place": {"place": (1.0, 1.01)},
    "a shape's place": {"arrow": (1.0, 0.51)},
    "the title over all": {"over": "Three views"},
    "axes switched on": {"off": False},
    "the colour bar's label": {"bar_label": "counts"},
    "a horizontal line": {"level": 0.501},
}


@pytest.fixture(scope="module")
def unchanged():
    return _digest()


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_a_change_that_a_reader_sees_shows(change, unchanged):
    assert _digest(**change) != unchanged


def test_the_same_figure_gives_the_same_text():
    assert _digest() == _digest()


def test_drawing_the_figure_first_changes_nothing():
    figure = _figure()
    before = describe(figure)
    figure.canvas.draw()
    assert describe(figure) == before
    plt.close(figure)


def test_it_says_whose_axes_are_off_and_where_labels_come_from():
    text = _digest()
    assert "axes off title=''" in text
    assert "axes title='Loss' x='step' 0 to 50 y='loss / nats'" in text
    assert "colour bar label='count' 0 to 47" in text
    assert "x ticks ['猫', 'は'] at 0, 1" in text and "x ticks ['a', 'b', 'c']" in text


def test_shared_and_common_labels_count_for_every_axes():
    figure, (left, right) = plt.subplots(1, 2, sharey=True)
    left.set_ylabel("share")
    figure.supxlabel("step")
    right.plot([0, 1], [0, 1])
    lines = [line for line in describe(figure).splitlines() if line.startswith("axes")]
    assert len(lines) == 2 and all("x='step'" in line and "y='share'" in line for line in lines)
    plt.close(figure)


@given(
    st.lists(st.floats(-1e6, 1e6).filter(lambda value: value == 0 or abs(value) > 1e-6), min_size=13, max_size=60),
    st.integers(0, 2**32 - 1),
)
def test_last_digits_do_not_show(values, seed):
    """Two processors differ by some 1e-13 of the largest number, in the data and in the sums over them."""
    values = np.array(values)
    noise = np.random.default_rng(seed).uniform(-1, 1, values.size) * 1e-13
    assert numbers(values) == numbers(values * (1 + noise))


def test_what_cancels_to_nothing_is_nothing():
    wave = np.sin(np.linspace(0, 2 * np.pi, 101))  # the mean is 0 but for rounding
    assert "mean=0 " in numbers(wave) and numbers(wave) == numbers(wave + 1e-16)
    assert numbers([0.1 + 0.2 - 0.3, 1.0]) == numbers([0.0, 1.0]) == "0, 1"
    assert numbers(np.full(20, 1e-17)) == numbers(np.zeros(20))


def test_ties_round_alike():
    assert number(0.12345) == number(0.12344999999999999) == number(0.12345000000000002)
    assert number(-0.0) == "0" and number(0.0004999999999999) == "0.0005"
    assert number(float("nan")) == "nan" and number(1234567) == "1.235e+06"


def test_small_numbers_count_on_a_logarithmic_axis():
    decay = 0.5 ** np.arange(100.0)
    changed = decay.copy()
    changed[90] *= 3
    assert numbers(decay, log=True) != numbers(changed, log=True)
    assert "min=1.578e-30" in numbers(decay, log=True)
    assert "missing=1" in numbers([*decay, 0.0], log=True)


def test_missing_numbers_are_counted():
    assert numbers([np.nan] * 20) == "n=20, none finite"
    assert "missing=2" in numbers([np.nan, np.inf, *range(20)])
    assert numbers(np.ma.masked_invalid([1.0, np.nan])) == "1, nan"


def test_many_kinds_of_artists_are_described():
    figure, axes = plt.subplots(2, 3)
    axes[0, 0].quiver([0, 1], [0, 1], [1, 1], [0, 1])
    axes[0, 1].pcolormesh([[1.0, 2.0], [3.0, 4.0]])
    axes[0, 2].hlines([1, 2], 0, [3, 4])
    axes[1, 0].barh(["x", "y"], [1, 2])
    axes[1, 1].hist([1, 1, 2], bins=2)
    axes[1, 2].contour([[1.0, 2.0], [3.0, 4.0]])
    text = describe(figure)
    plt.close(figure)
    for part in ("U[1, 1] V[0, 1]", "QuadMesh values[1, 2, 3, 4]", "LineCollection pieces=2", "to[1, 2]", "to[2, 1]"):
        assert part in text
    assert "QuadContourSet" in text
