"""A figure that moves: controls around a pure function `draw(**values) -> Figure`.

Serves all chapters. Unlike `interact`, what it displays is the same on every run, and broken callbacks fail at once.
"""

import inspect
from collections.abc import Callable, Iterator

import ipywidgets
import matplotlib.pyplot as plt

from transformer_lib.show.digest import describe
from transformer_lib.show.figures import emit, render, require_alt, require_figure

WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"


# A width would stretch their buttons; the others share theirs between name, track or menu, and number.
SIZED_BY_TEXT = (ipywidgets.Checkbox, ipywidgets.ToggleButton, ipywidgets.ToggleButtons)


def view(widget: ipywidgets.Widget) -> dict:
    """What makes the notebook draw a widget: kept out of stored notebooks, where no kernel answers it."""
    return {WIDGET_VIEW: {"version_major": 2, "version_minor": 0, "model_id": widget.model_id}}


def extremes(control: ipywidgets.Widget) -> Iterator:
    """The values a control is driven to: both ends of a slider, every option of a choice, both states of a checkbox."""
    if isinstance(control, ipywidgets.FloatLogSlider):
        yield from (control.base**control.min, control.base**control.max)
    elif isinstance(control, ipywidgets.Checkbox | ipywidgets.ToggleButton):
        yield from (False, True)
    elif isinstance(control, ipywidgets.SelectMultiple | ipywidgets.SelectionRangeSlider):
        yield control.value
    elif hasattr(control, "options"):
        start = control.index
        for index in range(len(control.options)):
            control.index = index
            yield control.value
        control.index = start
    elif hasattr(control, "min") and hasattr(control, "max"):
        ends = control.min, control.max
        # a range slider's value is a pair
        yield from ((end, end) if isinstance(control.value, tuple) else end for end in ends)
    else:
        yield control.value


class Explorer:
    """The controls, the output area they redraw, and how the two hang together."""

    def __init__(self, draw: Callable, alt: str | Callable, controls: dict[str, ipywidgets.Widget]):
        self.draw, self.alt, self.controls = draw, alt, controls
        self._check_names()
        for name, control in controls.items():
            if not control.description:
                control.description = name.replace("_", " ")
            control.style.description_width = "initial"
            if control.layout.width is None and not isinstance(control, SIZED_BY_TEXT):
                control.layout = {"width": "34em", "max_width": "100%"}  # a long name must not eat the slider's track
            for value in list(extremes(control)):  # a callback that breaks at an end of a slider breaks here
                self.picture({**self.values(), name: value}, drawn=False)
        self.output = ipywidgets.Output()
        self.data, self.metadata = self.picture(self.values())
        self._put()
        for control in controls.values():
            control.observe(self._moved, "value")
        self.box = ipywidgets.VBox([*controls.values(), self.output])

    def values(self) -> dict:
        """What the controls stand at."""
        return {name: control.value for name, control in self.controls.items()}

    def start(self) -> str:
        """The controls and their values in words."""
        told = (f"{control.description} = {control.value!r}" for control in self.controls.values())
        return f"Controls, live when the notebook runs: {', '.join(told)}"

    def picture(self, values: dict, drawn: bool = True) -> tuple[dict, dict]:
        """Draw at these values; close the figure and whatever else `draw` left open.

        With `drawn=False` the figure is laid out to see whether it can be, but no PNG is made: a third of the time.
        """
        before = set(plt.get_fignums())
        try:
            figure = require_figure(self.draw(**values), "explore expects draw to return")
            alt = self.alt(**values) if callable(self.alt) else self.alt
            alt = require_alt(alt, "explore")
            if drawn:
                return render(figure, alt)
            figure.draw_without_rendering()
            return {"text/plain": describe(figure)}, {}
        finally:
            for number in set(plt.get_fignums()) - before:
                plt.close(number)

    def _check_names(self) -> None:
        if not self.controls:
            raise TypeError("explore expects a control or more, as explore(draw, alt=..., n=IntSlider(...)); got none")
        for name, control in self.controls.items():
            if not isinstance(control, ipywidgets.ValueWidget):
                raise TypeError(f"explore expects {name} to be a widget with a value; got {type(control).__name__}")
        if not callable(self.alt):
            require_alt(self.alt, "explore")
        functions = {"draw": self.draw, "alt": self.alt} if callable(self.alt) else {"draw": self.draw}
        for what, function in functions.items():
            parameters = inspect.signature(function).parameters.values()
            if what == "alt" and any(one.kind is one.VAR_KEYWORD for one in parameters):
                continue
            takes, controls = sorted(one.name for one in parameters), sorted(self.controls)
            if takes != controls:
                raise TypeError(f"explore expects {what} to take exactly the controls {controls}; it takes {takes}")

    def _put(self) -> None:
        # Set directly: an output context would send messages that no stored output can match.
        self.output.outputs = ({"output_type": "display_data", "data": self.data, "metadata": self.metadata},)

    def _moved(self, _change) -> None:
        try:
            self.data, self.metadata = self.picture(self.values())
            self._put()
        except Exception as error:  # the reader sees what went wrong instead of a figure that no longer moves
            text = f"{type(error).__name__}: {' '.join(str(error).split())}\n"
            self.output.outputs = ({"output_type": "stream", "name": "stderr", "text": text},)


def explore(draw: Callable, *, alt: str | Callable, **controls: ipywidgets.Widget) -> None:
    """Display a figure under controls that redraw it.

    Where no kernel runs the figure at the start values stands there, with its alt text and digest. Every control is
    driven over its extremes once before anything is displayed.

    Args:
        draw: takes the controls' values by their names, changes nothing, returns a figure.
        alt: one sentence on what the figure shows, or a function of the same values that returns it.
        controls: ipywidgets: sliders, dropdowns, toggle buttons, selections, checkboxes, text fields, players.

    Raises:
        TypeError: draw's arguments are not the controls' names, or a control is no widget.
        ValueError: no alt text.
        Exception: whatever draw raises at an extreme of a control.
    """
    explorer = Explorer(draw, alt, controls)
    lines = explorer.data["text/plain"].split("\n", 1)
    text = "\n".join([lines[0], explorer.start(), lines[1]])
    emit({**explorer.data, "text/plain": text, **view(explorer.box)}, explorer.metadata)
