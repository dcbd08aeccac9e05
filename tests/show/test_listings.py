"""listing: the source as it stands, without docstrings, of everything that has a source."""

import functools

import numpy as np
import pytest

from transformer_lib.show import listing
from transformer_lib.show.listings import source_of, without_docstrings


def _noted(function):
    @functools.wraps(function)
    def wrapper(*arguments):
        return function(*arguments)

    return wrapper


class Cell:
    """A cell.

    With two paragraphs.
    """

    size = 3  # how wide

    def step(self, x):
        """Do one step."""
        # this stays
        return x + self.size

    @_noted
    def noted(self, x):
        r"""Noted: $x$."""

        return "a string that is no docstring"

    @property
    def double(self):
        """Twice."""
        return 2 * self.size

    @staticmethod
    def free(x):
        return x

    @classmethod
    def made(cls):
        """Made."""
        return cls()


class OnlyWords(Exception):
    """Nothing but this."""


@_noted
def decorated(x):
    """Say it twice."""
    return x + x


STEP = """\
def step(self, x):
    # this stays
    return x + self.size"""


def test_a_class_is_shown_without_any_docstring():
    source = source_of(Cell)
    assert source.startswith("class Cell:\n    size = 3  # how wide\n\n    def step(self, x):\n        # this stays\n")
    assert "Do one step" not in source and "Twice" not in source and "Noted" not in source and "Made" not in source
    assert "a string that is no docstring" in source
    assert "\n\n\n" not in source and not source.endswith("\n")


@pytest.mark.parametrize("thing", [Cell.step, Cell().step])
def test_a_method_is_dedented(thing):
    assert source_of(thing) == STEP


def test_wrapped_functions_methods_and_properties_show_their_own_source():
    assert source_of(decorated) == "@_noted\ndef decorated(x):\n    return x + x"
    assert source_of(Cell.noted).startswith("@_noted\ndef noted(self, x):\n    return")
    assert source_of(Cell.double) == "@property\ndef double(self):\n    return 2 * self.size"
    assert source_of(Cell.free).startswith("@staticmethod\ndef free(x):")
    assert source_of(Cell.made) == "@classmethod\ndef made(cls):\n    return cls()"
    assert source_of(functools.partial(decorated, 1)).startswith("@_noted\ndef decorated(x):")


def test_a_body_of_nothing_but_words_stays_python():
    assert source_of(OnlyWords) == "class OnlyWords(Exception):\n    ..."
    assert without_docstrings('def f(): "doc"') == 'def f(): "doc"'


def test_what_is_left_means_the_same():
    namespace = {}
    exec(without_docstrings('"""m"""\n\nx = 1\n\ndef f():\n    """d\n\n    e"""\n    return x\n'), namespace)
    assert namespace["f"]() == 1


def test_it_is_displayed_as_text_and_as_coloured_python(displayed):
    listing(Cell.step, decorated)
    ((data, metadata),) = displayed
    assert data["text/plain"] == STEP + "\n\n@_noted\ndef decorated(x):\n    return x + x"
    assert data["text/markdown"] == f"```python\n{data['text/plain']}\n```" and metadata == {}


def _with_fence():
    return "```"


def test_a_fence_inside_does_not_end_the_listing(displayed):
    listing(_with_fence)
    assert displayed[0][0]["text/markdown"].startswith("````python\n")


@pytest.mark.parametrize(
    "thing, said", [(len, "got len$"), (3, "got int: pass int$"), (np.zeros(2), "got ndarray: pass ndarray$")]
)
def test_what_has_no_source_is_an_error_of_one_line(thing, said, displayed):
    with pytest.raises(TypeError, match="^listing expects a function, class or method written in Python; " + said):
        listing(thing)
    assert not displayed


def test_an_object_is_told_to_pass_its_class():
    with pytest.raises(TypeError, match="got Cell: pass Cell$"):
        listing(Cell())
