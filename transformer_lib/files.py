"""Files that are whole or not there: tokenizers, checkpoints, trained models.

Chapter 01 onwards.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def whole_file(path: str | Path) -> Iterator[Path]:
    """Give a path to write to; at the end that file takes the old one's place, and nothing half-written stays."""
    path = Path(path)
    partial = path.with_name(path.name + ".partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield partial
        os.replace(partial, path)
    except OSError as error:
        if error.errno is None:  # from within: it says already which file and why
            raise
        raise OSError(
            f"{path.name}: could not be written ({error.strerror}); nothing was changed; "
            "choose a folder you may write to"
        ) from error
    finally:
        with suppress(OSError):
            partial.unlink()
