"""The latest exceptions of host functions.

In: each exception that is thrown into the sandbox, with the call or the promise that it answers.
Out: the exception that ended the run, by the number of that call or promise.
"""

from __future__ import annotations

from types import TracebackType
from typing import Any, Literal, TypeAlias

Answered: TypeAlias = tuple[Literal["call", "promise"], int]
"""The call or the promise that an exception answers."""

# The descriptor itself: a class of the caller's may override its attributes.
_TRACEBACK: Any = BaseException.__dict__["__traceback__"]

# The number of exceptions that are kept: `isolane::KEPT_THROWS`.
_KEPT = 8


class Throws:
    """The latest exceptions of one run, or of the promises of one session. An exception and its
    frames may hold values of the sandbox, which count against no limit any more. So in a run that
    has sent a large message, only the latest exception is kept, and only until the sandbox calls
    again."""

    def __init__(self) -> None:
        self.calls = 0
        self._kept: dict[Answered, BaseException] = {}
        self._has_large = False
        self._has_ended = False

    def received_large(self) -> None:
        """Notes a large message of the sandbox: of the exceptions so far, the latest stays."""
        self._has_large = True
        while len(self._kept) > 1:
            del self._kept[next(iter(self._kept))]

    def number_call(self) -> Answered:
        """Counts a synchronous call of the sandbox; returns it with its number, which is also the
        core's."""
        self.is_called()
        self.calls += 1
        return ("call", self.calls)

    def keep(self, answered: Answered, raised: BaseException | None) -> None:
        """Keeps an exception, if there is one."""
        if raised is None:
            return
        _TRACEBACK.__set__(raised, _outside(_TRACEBACK.__get__(raised)))
        if self._has_ended:
            return
        if self._has_large:
            self._kept.clear()
        self._kept[answered] = raised
        if len(self._kept) > _KEPT:
            del self._kept[next(iter(self._kept))]

    def is_called(self) -> None:
        """Notes that the sandbox calls a host function."""
        if self._has_large:
            self._kept.clear()

    def find(self, answered: Answered) -> BaseException | None:
        return self._kept.get(answered)

    def clear(self) -> None:
        """Keeps no exception any more: the run has ended."""
        self._has_ended = True
        self._kept.clear()


def _outside(traceback: TracebackType | None) -> TracebackType | None:
    """The frames of the host's own code. Frames of this package would make a cycle: they hold the
    run, which holds the exception."""
    while traceback is not None:
        if traceback.tb_frame.f_globals.get("__package__") != __package__:
            return traceback
        traceback = traceback.tb_next
    return None
