"""The place of a misuse.

In: an act of a notebook. Out: an error of misuse with its `path`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def paths() -> Iterator[None]:
    """Gives an error of misuse its `path`, with which its message begins."""
    try:
        yield
    except (TypeError, ValueError) as error:
        error.path = str(error).split(":", 1)[0].split(" ", 1)[0]  # type: ignore[union-attr]
        raise
