"""The place of a misuse.

In: an act of a notebook. Out: an error of misuse with its `path`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

_ALL = re.compile(r"^(?:(options)|arguments(?:\[\d+\])?)(?:\.|(?=:))")
"""The names of all options, and of all arguments, in the place of a value that cannot cross."""

_REMEDY = "; default= can convert it"
"""A remedy of runs, which notebooks do not have."""


@contextmanager
def paths() -> Iterator[None]:
    """Gives an error of misuse its `path`, with which its message begins."""
    try:
        yield
    except (TypeError, ValueError) as error:
        text = str(error).removesuffix(_REMEDY)
        if found := _ALL.match(text):
            text = text[found.end() :]
            if text.startswith(":"):
                text = (found[1] or "args") + text
            error.args = (text,)
        error.path = str(error).split(":", 1)[0].split(" ", 1)[0]  # type: ignore[union-attr]
        raise
