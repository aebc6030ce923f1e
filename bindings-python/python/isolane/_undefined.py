"""The value `undefined`. `None` crosses as `null`."""

from typing import Final, final


@final
class Undefined:
    """The type of `undefined`, which is its only instance."""

    _only: "Undefined | None" = None

    def __new__(cls) -> "Undefined":
        if cls._only is None:
            cls._only = super().__new__(cls)
        return cls._only

    def __repr__(self) -> str:
        return "undefined"

    def __bool__(self) -> bool:
        return False

    def __reduce__(self) -> str:
        return "undefined"


undefined: Final = Undefined()
"""Crosses as `undefined`. An `undefined` from a sandbox arrives as `None`."""
