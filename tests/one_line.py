"""What every error of the library promises: one line that says what was expected and what came.

Used by all tests of bad input.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

# The stage "shapes" checks every annotated shape in tests/parts and tests/models; there jaxtyping may speak first.
SHAPES_CHECKED = os.environ.get("TRANSFORMER_LIB_SHAPES") == "1"


@contextmanager
def one_line_error(*pieces: str, kind: type[Exception] = ValueError) -> Iterator[pytest.ExceptionInfo]:
    """The block must raise this kind of error, on one line, and the line must hold all the pieces."""
    kinds: tuple[type[Exception], ...] = (kind,)
    if SHAPES_CHECKED:
        from jaxtyping import TypeCheckError

        kinds = (kind, TypeCheckError)
    with pytest.raises(kinds) as caught:
        yield caught
    if type(caught.value).__name__ == "TypeCheckError":
        return
    message = str(caught.value)
    assert "\n" not in message, message
    assert message == message.strip() and message
    for piece in pieces:
        assert piece in message, f"{piece!r} is not in the message {message!r}"
