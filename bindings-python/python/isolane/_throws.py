"""What host functions raised last.

In: each exception that is thrown into the sandbox, with the call or the promise that it answers.
Out: the one that ended the run, which the sandbox tells by that number.
"""

from __future__ import annotations

from types import TracebackType
from typing import Any, Literal, TypeAlias

Answered: TypeAlias = tuple[Literal["call", "promise"], int]
"""What was answered with an exception."""

# Asked directly: a class of the caller's may make anything of its attributes.
_TRACEBACK: Any = BaseException.__dict__["__traceback__"]

# How many are kept: `isolane::KEPT_THROWS`.
_KEPT = 8


class Throws:
    """The latest exceptions of one run. Their frames hold what the functions were called with, so
    that of a call with large arguments is kept only until the next call, as the core does it."""

    def __init__(self) -> None:
        self.calls = 0
        self._kept: dict[Answered, BaseException] = {}
        self._large: tuple[Answered, BaseException] | None = None
        # Promises that answer calls with large arguments.
        self._large_promises: set[int] = set()

    def number_call(self) -> Answered:
        """The sandbox calls its host and waits. The call by its number, as the core counts them."""
        self._large = None
        self.calls += 1
        return ("call", self.calls)

    def keep(
        self, answered: Answered, raised: BaseException | None, is_large: bool = False
    ) -> None:
        """Keeps what was thrown, if anything was."""
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
        """The sandbox calls its host and goes on."""
        self._large = None

    def answers_large(self, promises: range) -> None:
        """These promises came of a call with large arguments."""
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
    """The frames of the host's own code: those of this package hold the run, which holds what is
    kept here."""
    while traceback is not None:
        if traceback.tb_frame.f_globals.get("__package__") != __package__:
            return traceback
        traceback = traceback.tb_next
    return None
