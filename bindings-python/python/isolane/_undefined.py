"""The value `undefined`, for those who must send it: `None` crosses as `null`."""

from typing import Final, final


@final
class Undefined:
    """The type of `undefined`, of which there is one."""

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
"""Crosses as `undefined`. What comes out of a sandbox as `undefined` arrives as `None`."""
