"""explore: the figure follows its controls, breaks at once if it breaks anywhere, and reads the same every time."""

import ipywidgets
import matplotlib.pyplot as plt
import pytest

from transformer_lib.show import explore
from transformer_lib.show.widgets import WIDGET_VIEW, Explorer, extremes


def _draw(n, word):
    figure, ax = plt.subplots()
    ax.plot(range(n))
    ax.set(title=word, xlabel="step", ylabel="share")
    return figure


def _controls():
    return {"n": ipywidgets.IntSlider(5, 2, 9), "word": ipywidgets.Dropdown(options=["猫", "魚"], description="token")}


def test_what_is_displayed_reads_the_same_every_time(displayed):
    for _ in range(2):
        explore(_draw, alt=lambda n, **_others: f"A line of {n} points", **_controls())
    (first, metadata), (second, _) = displayed
    assert set(first) == {"image/png", "text/plain", WIDGET_VIEW}
    assert first["text/plain"] == second["text/plain"] and first["image/png"] == second["image/png"]
    assert metadata == {"image/png": {"alt": "A line of 5 points"}}
    alt, controls, figure, *_ = first["text/plain"].splitlines()
    assert alt == "A line of 5 points"
    assert controls == "Controls, live when the notebook runs: n = 5, token = '猫'"
    assert figure == "Figure 6.4 x 4 in, axes: 1"


def test_moving_a_control_redraws():
    explorer = Explorer(_draw, "a line", _controls())
    (before,) = explorer.output.outputs
    explorer.controls["n"].value = 8
    (after,) = explorer.output.outputs
    assert before["data"]["image/png"] != after["data"]["image/png"]
    assert "line x[0, 1, 2, 3, 4, 5, 6, 7]" in after["data"]["text/plain"]
    assert after["metadata"] == {"image/png": {"alt": "a line"}}
    assert explorer.output in explorer.box.children


def _breaks_at(value):
    def draw(control):
        if control == value:
            raise ZeroDivisionError(f"broke at {value!r}")
        return _small()

    return draw


def _small():
    figure, _ = plt.subplots(figsize=(1, 1))
    return figure


EXTREMES = [
    (ipywidgets.IntSlider(2, 1, 3), 1),
    (ipywidgets.IntSlider(2, 1, 3), 3),
    (ipywidgets.FloatSlider(value=0.5, min=0, max=1), 1.0),
    (ipywidgets.FloatLogSlider(value=1, min=-2, max=2), 100.0),
    (ipywidgets.IntRangeSlider(value=(3, 4), min=1, max=9), (9, 9)),
    (ipywidgets.BoundedIntText(value=2, min=0, max=4), 0),
    (ipywidgets.Dropdown(options=["a", "b", "c"]), "b"),
    (ipywidgets.Dropdown(options=[("one", 1), ("two", 2)]), 2),
    (ipywidgets.ToggleButtons(options=["a", "b"]), "b"),
    (ipywidgets.RadioButtons(options=["a", "b"]), "b"),
    (ipywidgets.Select(options=["a", "b"]), "b"),
    (ipywidgets.SelectionSlider(options=[1, 10, 100]), 100),
    (ipywidgets.Checkbox(value=True), False),
    (ipywidgets.ToggleButton(value=False), True),
    (ipywidgets.Play(value=0, min=0, max=7), 7),
    (ipywidgets.Text("猫"), "猫"),
]


@pytest.mark.parametrize("control, value", EXTREMES, ids=lambda given: type(given).__name__)
def test_a_callback_that_breaks_at_an_extreme_breaks_at_once(control, value, displayed):
    start = control.value
    with pytest.raises(ZeroDivisionError, match="broke at"):
        explore(_breaks_at(value), alt="a", control=control)
    assert not displayed and control.value == start
    explore(_breaks_at("no value of it"), alt="a", control=control)
    assert len(displayed) == 1 and control.value == start


def test_a_figure_that_cannot_be_laid_out_breaks_at_once(displayed):
    def draw(n):
        figure, ax = plt.subplots()
        ax.set_title("$\\frac{1}$" if n == 9 else "fine")  # mathematics that cannot be set
        return figure

    with pytest.raises(ValueError, match="Expected"):
        explore(draw, alt="a", n=ipywidgets.IntSlider(5, 2, 9))


def test_extremes_are_all_that_a_choice_offers():
    assert list(extremes(ipywidgets.Dropdown(options={"one": 1, "two": 2, "three": 3}))) == [1, 2, 3]
    assert list(extremes(ipywidgets.FloatSlider(value=0.5, min=0.25, max=1))) == [0.25, 1]


def test_an_error_while_moving_is_said_in_one_line_and_passes():
    def draw(n):
        if n == 5:
            raise ValueError("expected anything\nbut 5")
        return _draw(n, "w")

    explorer = Explorer(draw, "a line", {"n": ipywidgets.IntSlider(2, 1, 9)})
    explorer.controls["n"].value = 5
    (shown,) = explorer.output.outputs
    assert shown["output_type"] == "stream" and shown["text"] == "ValueError: expected anything but 5\n"
    explorer.controls["n"].value = 6
    (shown,) = explorer.output.outputs
    assert shown["output_type"] == "display_data"


def test_figures_are_closed_even_those_that_draw_forgets():
    def draw(n):
        plt.figure()  # left open, and never returned
        return _draw(n, "w")

    mine = plt.figure()
    Explorer(draw, "a line", {"n": ipywidgets.IntSlider(2, 1, 9)})
    assert plt.get_fignums() == [mine.number]
    plt.close(mine)


@pytest.mark.parametrize(
    "draw, alt, controls, error, said",
    [
        (
            _draw,
            "a",
            {"n": ipywidgets.IntSlider()},
            TypeError,
            r"exactly the controls \['n'\]; it takes \['n', 'word'\]",
        ),
        (_draw, "a", {}, TypeError, "a control or more"),
        (lambda n: None, "a", {"n": 5}, TypeError, "n to be a widget with a value; got int"),
        (lambda n: None, "a", {"n": ipywidgets.IntSlider()}, TypeError, "draw to return a matplotlib Figure; got None"),
        (lambda n: None, "", {"n": ipywidgets.IntSlider()}, ValueError, "explore expects alt="),
        (lambda n: _draw(n, ""), lambda n: "", {"n": ipywidgets.IntSlider()}, ValueError, "explore expects alt="),
        (
            lambda n: None,
            lambda m: "",
            {"n": ipywidgets.IntSlider()},
            TypeError,
            r"alt to take exactly .*it takes \['m'\]",
        ),
    ],
)
def test_what_does_not_fit_is_an_error_of_one_line(draw, alt, controls, error, said, displayed):
    with pytest.raises(error, match=said) as caught:
        explore(draw, alt=alt, **controls)
    assert "\n" not in str(caught.value) and not displayed


def test_controls_are_wide_enough_for_their_names_unless_a_width_is_given():
    controls = _controls() | {"on": ipywidgets.Checkbox(), "own": ipywidgets.IntSlider(layout={"width": "9em"})}
    Explorer(lambda n, word, on, own: _draw(n, word), "a line", controls)
    assert [controls[name].layout.width for name in ("n", "word", "on", "own")] == ["34em", "34em", None, "9em"]
    assert controls["n"].layout.max_width == "100%"  # never wider than the page
