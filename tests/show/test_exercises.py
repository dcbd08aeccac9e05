"""check and verdict: right and wrong are told apart, nothing a reader writes breaks the notebook."""

import random
import warnings

import numpy as np
import pytest
import torch

from transformer_lib.show import check, close, exercise, right, verdict, wrong
from transformer_lib.show.exercises import chapter_of, checks_of
from transformer_lib.show.widgets import WIDGET_VIEW

CHECKS = """
import random, warnings
import numpy as np, torch
from transformer_lib.show import close, exercise, right, wrong

LOADED = print("loaded")

@exercise("7.1", expects="a number")
def _(answer):
    if close(answer, 30 / 100):
        return right()
    return wrong("upside   down\\n" if close(answer, 100 / 30) else "divide $a < b$ by `c`")

@exercise("7.2", expects="a function of one number")
def _(answer):
    print("noise")
    warnings.warn("noise")
    random.random(), np.random.rand(), torch.rand(1)
    torch.set_default_dtype(torch.float64)
    return right() if answer(3) == 9 else wrong("square it")

@exercise("7.3")
def _(answer):
    return True
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "ch07.py").write_text(CHECKS, encoding="utf-8")
    return tmp_path


class Nasty:
    """An answer that objects to everything."""

    def __eq__(self, other):
        raise RuntimeError("no comparing")

    def __repr__(self):
        raise RuntimeError("no printing")

    def __array__(self, *_arguments, **_more):
        raise RuntimeError("no numbers")

    __hash__ = None


@pytest.mark.parametrize(
    "answer",
    [0.3, 3 / 10, [0.3], np.array(0.3), np.float32(0.3), torch.tensor([[0.3]], requires_grad=True), 0.3 + 1e-8],
)
def test_a_right_number_is_right_in_every_dress(answer, folder):
    assert verdict("7.1", answer, folder) == "right"


def test_the_misconception_is_named_on_one_line(folder):
    assert verdict("7.1", 100 / 30, folder) == "wrong: upside down"
    assert verdict("7.1", 0.31, folder) == "wrong: divide $a < b$ by `c`"
    assert verdict("7.1", None, folder) == verdict("7.1", ..., folder) == "not answered"


def test_functions_are_answers_too(folder):
    assert verdict("7.2", lambda x: x * x, folder) == "right"
    assert verdict("7.2", lambda x: x, folder) == "wrong: square it"


@pytest.mark.parametrize(
    "answer, came",
    [
        (5, "int 5 (TypeError: 'int' object is not callable)"),
        ("x" * 1000, "str 'xxxxxxxxxxxx...xxxxxxxxxxxxx' (TypeError"),
        (torch.zeros(3, 4), "Tensor of shape (3, 4) (TypeError"),
        (lambda: 3, "the function <lambda> (TypeError"),
        (Nasty(), "Nasty <Nasty instance at 0x"),
    ],
    ids=["number", "text", "tensor", "function", "nasty"],
)
def test_what_cannot_be_read_is_told_what_was_expected(answer, came, folder):
    said = verdict("7.2", answer, folder)
    assert said.startswith(
        f"wrong: the check could not read the answer: expected a function of one number, came {came}"
    )
    assert "\n" not in said and len(said) < 300


def test_a_check_that_returns_no_verdict_is_reported(folder):
    assert verdict("7.3", 1, folder).startswith("wrong: the check of 7.3 returned bool True instead of right()")


ANSWERS = [None, 0.3, 5, "text", [1, "a", None], {}, object(), Nasty(), np.zeros((1000, 1000)), lambda: 1 / 0, 10**400]


@pytest.mark.parametrize("answer", ANSWERS, ids=lambda answer: type(answer).__name__)
@pytest.mark.parametrize("name", ["7.1", "7.2", "7.3", "7.9", "99.1", "nonsense", 7.1, None])
def test_check_never_raises_and_always_reads_the_same(name, answer, folder, displayed):
    check(name, answer, folder)
    ((data, metadata),) = displayed
    assert set(data) == {"text/plain", WIDGET_VIEW} and metadata == {}
    assert data["text/plain"] == f"check {name}: the verdict shows when the cell runs"


def _panel(displayed):
    import ipywidgets

    (box,) = ipywidgets.widgets.widget._instances[displayed[-1][0][WIDGET_VIEW]["model_id"]].children
    return box.value


@pytest.mark.parametrize(
    "answer, heading, text",
    [
        (0.3, "Exercise 7.1: right", ""),
        (None, "Exercise 7.1: not answered yet", "Replace None"),
        (9, "Exercise 7.1: not yet", "divide $a &lt; b$ by <code>c</code>"),
    ],
)
def test_the_panel_says_the_verdict(answer, heading, text, folder, displayed):
    check("7.1", answer, folder)
    assert heading in _panel(displayed) and text in _panel(displayed)


def test_the_panel_says_which_exercises_there_are(folder, displayed):
    check("7.9", 1, folder)
    assert "chapter 07 has the exercises 7.1, 7.2, 7.3; got '7.9'" in _panel(displayed)


def test_checking_leaves_the_notebook_as_it_was(folder, displayed, capsys):
    random.seed(1), np.random.seed(1), torch.manual_seed(1)  # noqa: NPY002
    expected = random.random(), np.random.rand(), torch.rand(1).item()  # noqa: NPY002
    random.seed(1), np.random.seed(1), torch.manual_seed(1)  # noqa: NPY002
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check("7.2", lambda x: print("more noise") or x * x, folder)
    assert (random.random(), np.random.rand(), torch.rand(1).item()) == expected  # noqa: NPY002
    assert torch.get_default_dtype() == torch.float32
    assert capsys.readouterr().out in ("", "loaded\n")


def test_a_file_of_checks_is_loaded_once(folder, capsys):
    assert checks_of("07", folder) is checks_of("07", folder)
    assert capsys.readouterr().out == "loaded\n"


def test_what_does_not_exist_is_an_error_of_one_line(folder):
    with pytest.raises(KeyError, match="chapter 07 has the exercises 7.1, 7.2, 7.3; got '7.9'"):
        verdict("7.9", 1, folder)
    with pytest.raises(FileNotFoundError, match="chapter 99 should stand in exercises/ch99.py; got no file"):
        verdict("99.1", 1)
    for name in ("nonsense", "1", "1.", ".1", None):
        with pytest.raises(ValueError, match="named by chapter and number"):
            chapter_of(name)
    assert chapter_of("0.1") == "00" and chapter_of("12.3") == "12"


def test_one_name_twice_in_a_file_is_an_error(tmp_path):
    (tmp_path / "ch07.py").write_text(CHECKS.replace('"7.3"', '"7.1"'), encoding="utf-8")
    with pytest.raises(ValueError, match="each name once; got 7.1 twice"):
        checks_of("07", tmp_path)


@pytest.mark.parametrize(
    "answer, expected, is_close",
    [
        (0.3, 0.3 + 1e-9, True),
        (0.3, 0.3001, False),
        ([[1, 2]], torch.tensor([1.0, 2.0]), True),
        (np.array([[1], [2]]), [1, 2], True),
        ([1, 2, 3], [1, 2], False),
        ([2, 1], [1, 2], False),
        (0.0, 7.9e-31, False),
        (7.9e-31 * (1 + 1e-9), 7.9e-31, True),
        (1e-9, 0.0, True),
        ([1e-9, 5.0], [0.0, 5.0], True),
        (1e-3, 0.0, False),
        ([], [], True),
        ("0.3", 0.3, False),
        (" 猫 ", "猫", True),
        (3, "猫", False),
        (None, 0.3, False),
        (object(), 0.3, False),
        ([[1], [1, 2]], [1, 2], False),
        (float("nan"), 0.3, False),
        (float("inf"), float("inf"), True),
        (0.3, float("inf"), False),
        (float("nan"), float("nan"), True),
        (1j, 1.0, False),
        (10**400, 1.0, False),
        (Nasty(), 1.0, False),
        (True, 1, True),
        (torch.tensor([1.0]).to(torch.bfloat16), 1.0, True),
    ],
)
def test_close(answer, expected, is_close):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert close(answer, expected) is is_close


def test_tolerance_can_be_chosen():
    assert close(0.333, 1 / 3, tolerance=1e-2) and not close(0.333, 1 / 3)


def test_verdicts_are_plain_strings():
    assert right() == "right" and wrong(" a \n b ") == "wrong: a b"
    assert callable(exercise("1.1"))
