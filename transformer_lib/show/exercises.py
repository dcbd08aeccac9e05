"""Exercise checks that name the likely misconception, and never break a notebook whatever the answer is.

Serves all chapters. The checks themselves stand in notebooks/exercises/chNN.py; they are written with `exercise`,
`right`, `wrong` and `close`; notebooks call `check`, and `verdict` in the solutions.
"""

import contextlib
import importlib.util
import io
import random
import reprlib
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import ipywidgets
import numpy as np
import torch

from transformer_lib.paths import ROOT
from transformer_lib.show.figures import emit
from transformer_lib.show.panels import panel
from transformer_lib.show.widgets import view

EXERCISES = ROOT / "notebooks" / "exercises"
RIGHT = "right"
NOT_ANSWERED = "not answered"

_registered: dict[str, Callable] = {}  # filled by @exercise while a file of checks is being loaded
_loaded: dict[Path, dict[str, Callable]] = {}


def right() -> str:
    """The verdict on a right answer."""
    return RIGHT


def wrong(misconception: str) -> str:
    """The verdict on a wrong answer: says what was probably thought, not only that it is wrong."""
    return f"wrong: {' '.join(misconception.split())}"


def exercise(name: str, expects: str = "an answer of the kind the exercise asks for") -> Callable:
    """Register the decorated function as the check of the exercise `name`, e.g. "1.1".

    The function takes the reader's answer and returns `right()` or `wrong("...")`.

    Args:
        name: chapter and number.
        expects: what kind of answer, e.g. "a list of 5 numbers": said to a reader whose answer cannot be read.
    """

    def register(check_answer: Callable) -> Callable:
        if name in _registered:
            raise ValueError(f"exercise expects each name once; got {name} twice: give the second its own number")
        check_answer.expects = expects
        _registered[name] = check_answer
        return check_answer

    return register


def numeric(value) -> np.ndarray | None:
    """A number, a list, an array or a tensor as an array without sides of length 1; None for anything else."""
    if isinstance(value, str | bytes):
        return None
    try:
        value = value.detach().cpu().to(torch.float64).numpy() if isinstance(value, torch.Tensor) else value
        return np.squeeze(np.asarray(value, dtype=float))
    except Exception:  # an answer may be anything at all
        return None


def close(answer, expected, tolerance: float = 1e-6) -> bool:
    r"""Whether $|a_i - e_i| \le$ tolerance $\cdot |e_i|$ in every place $i$ of the answer $a$, $e$ being expected.

    For numbers, lists, arrays and tensors alike; sides of length 1 do not matter. Where 0 is expected, tolerance is
    measured against the largest expected number. Strings are equal if they differ in outer blanks only. Anything else
    is not close.
    """
    if isinstance(expected, str):
        return isinstance(answer, str) and answer.strip() == expected.strip()
    answer, expected = numeric(answer), numeric(expected)
    if answer is None or expected is None or answer.shape != expected.shape:
        return False
    if not np.isfinite(expected).all():
        return bool(np.array_equal(answer, expected, equal_nan=True))
    scale = np.abs(expected)
    scale = np.where(scale == 0, scale.max(initial=0.0) or 1.0, scale)
    with np.errstate(all="ignore"):
        return bool((np.abs(answer - expected) <= tolerance * scale).all())


def chapter_of(name: str) -> str:
    """The chapter's two digits: "1.2" belongs to "01"."""
    head, dot, tail = str(name).partition(".")
    if not (dot and head.isdigit() and tail):
        raise ValueError(f'an exercise is named by chapter and number, as "1.2"; got {name!r}')
    return f"{int(head):02d}"


def checks_of(chapter: str, folder: Path | None = None) -> dict[str, Callable]:
    """Load a chapter's checks from its file, once: name -> function.

    Raises:
        FileNotFoundError: the chapter has no file of checks.
    """
    path = Path(folder or EXERCISES).resolve() / f"ch{chapter}.py"
    if path not in _loaded:
        if not path.is_file():
            raise FileNotFoundError(
                f"the checks of chapter {chapter} should stand in exercises/{path.name}; got no file"
            )
        specification = importlib.util.spec_from_file_location(f"exercises_{path.stem}", path)
        module = importlib.util.module_from_spec(specification)
        sys.modules[specification.name] = module
        _registered.clear()
        specification.loader.exec_module(module)
        _loaded[path] = dict(_registered)
    return _loaded[path]


@contextlib.contextmanager
def _undisturbed():
    """Whatever a check or a reader's function does, the notebook's random numbers, precision and output stay."""
    states = random.getstate(), np.random.get_state(), torch.get_rng_state(), torch.get_default_dtype()  # noqa: NPY002
    sink = io.StringIO()
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(sink), contextlib.redirect_stderr(sink):
            warnings.simplefilter("ignore")
            yield
    finally:
        random.setstate(states[0])
        np.random.set_state(states[1])  # noqa: NPY002
        torch.set_rng_state(states[2])
        torch.set_default_dtype(states[3])


def _told(answer) -> str:
    """What came, shortened: a tensor's or array's shape, else the value."""
    try:
        kind = type(answer).__name__
        if getattr(answer, "shape", ()):
            return f"{kind} of shape {tuple(answer.shape)}"
        if callable(answer):
            return f"the {kind} {getattr(answer, '__name__', '')}".strip()
        return f"{kind} {' '.join(reprlib.repr(answer).split())[:80]}"
    except Exception:
        return "something that cannot be printed"


def verdict(name: str, answer, folder: Path | None = None) -> str:
    """Judge an answer: "right", "wrong: (the likely misconception)" or "not answered" (for None).

    Args:
        name: the exercise, e.g. "1.1".
        answer: a number, list, array, tensor, string, function: what the exercise asks for.
        folder: where the files of checks are, if not in notebooks/exercises.

    Raises:
        KeyError: there is no such exercise.
        FileNotFoundError: its chapter has no file of checks.
    """
    chapter = chapter_of(name)
    checks = checks_of(chapter, folder)
    if name not in checks:
        raise KeyError(f"chapter {chapter} has the exercises {', '.join(checks)}; got {name!r}")
    if answer is None or answer is ...:
        return NOT_ANSWERED
    function = checks[name]
    try:
        with _undisturbed():
            found = function(answer)
    except Exception as error:
        reason = " ".join(str(error).split())[:120]
        return wrong(
            f"the check could not read the answer: expected {function.expects}, came {_told(answer)}"
            f" ({type(error).__name__}{': ' if reason else ''}{reason})"
        )
    if isinstance(found, str) and (found == RIGHT or found.startswith("wrong: ")):
        return found
    return wrong(f"the check of {name} returned {_told(found)} instead of right() or wrong(...): please report it")


def check(name: str, answer, folder: Path | None = None) -> None:
    """Display the verdict on an answer in a small panel; never raises, whatever the answer is.

    What a test compares is the same for every answer, so that an answered notebook still passes.
    """
    try:
        found = verdict(name, answer, folder)
    except Exception as error:
        found = wrong(str(error.args[0]) if error.args else type(error).__name__)
    if found == RIGHT:
        box = panel("right", f"Exercise {name}: right", "")
    elif found == NOT_ANSWERED:
        box = panel("open", f"Exercise {name}: not answered yet", "Replace None by your answer and run the cell again.")
    else:
        box = panel("wrong", f"Exercise {name}: not yet", found.removeprefix("wrong: "))
    emit({"text/plain": f"check {name}: the verdict shows when the cell runs", **view(ipywidgets.VBox([box]))})
