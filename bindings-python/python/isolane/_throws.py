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
    """The latest exceptions of one run. Their frames hold the arguments of the calls. So the
    exception of a call with large arguments is kept only until the next call, as in the core."""

    def __init__(self) -> None:
        self.calls = 0
        self._kept: dict[Answered, BaseException] = {}
        self._large: tuple[Answered, BaseException] | None = None
        # Promises that answer calls with large arguments.
        self._large_promises: set[int] = set()

    def number_call(self) -> Answered:
        """Counts a synchronous call of the sandbox; returns it with its number, which is also the
        core's."""
        self._large = None
        self.calls += 1
        return ("call", self.calls)

    def keep(
        self, answered: Answered, raised: BaseException | None, is_large: bool = False
    ) -> None:
        """Keeps an exception, if there is one."""
        if raised is None:
            return
        _TRACEBACK.__set__(raised, _outside(_TRACEBACK.__get__(raised)))
        if is_large or (answered[0] == "promise" and answered[1] in self._large_promises):
            self._large = (answered, raised)
            return
        self._kept[answered] = raised
        if len(self._kept) > _KEPT:
            del self._kept[next(iter(self._kept))]

    def is_called(self) -> None:
        """Notes that the sandbox calls an asynchronous function."""
        self._large = None

    def answers_large(self, promises: range) -> None:
        """Notes that a call with large arguments returned these promises."""
        self._large_promises.update(promises)

    def settled(self, promise: int) -> None:
        self._large_promises.discard(promise)

    def find(self, answered: Answered) -> BaseException | None:
        if self._large is not None and self._large[0] == answered:
            return self._large[1]
        return self._kept.get(answered)

    def clear(self) -> None:
        self._kept.clear()
        self._large = None


def _outside(traceback: TracebackType | None) -> TracebackType | None:
    """The frames of the host's own code. Frames of this package would make a cycle: they hold the
    run, which holds the exception."""
    while traceback is not None:
        if traceback.tb_frame.f_globals.get("__package__") != __package__:
            return traceback
        traceback = traceback.tb_next
    return None
