"""Values as text, for a person or a model."""

from __future__ import annotations

from . import _isolane


def describe(value: object, *, limit: int | None = None) -> str:
    """A value as one line of text, as a console shows it: `{ ids: Set(1) { 1 }, note: null }`.

    Any value has one: that of a value which crosses into a sandbox is the same in every language, a
    data class is `Order { total: 3 }`, and another instance is `[Pool]`. A string is bare. At most
    100 items of each container are shown, and three levels of containers.

    Args:
        value: Any value, such as the `result` of a run or the `args` of a log.
        limit: The most bytes of UTF-8, an ellipsis included. Default 10,000.

    Raises:
        TypeError, ValueError: the limit is not valid.
    """
    return _isolane.describe(value, limit)
