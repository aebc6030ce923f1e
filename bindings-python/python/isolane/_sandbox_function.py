"""Functions of the sandbox, for callers in the host.

In: numbers that the sandbox gave out. Out: functions that return futures. A number stands for the
same function while that function is reachable. After its collection the sandbox receives a release
and can free its own.
"""

from __future__ import annotations

import asyncio
import itertools
import weakref
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any, final

from ._futures import SETTLED, SandboxFuture, fail, is_elsewhere, on_loop, settle
from ._isolane import Message

if TYPE_CHECKING:
    from ._run import Run


@final
class SandboxFunction:
    """A function of the sandbox. A call returns a future of its value.

    If the run has settled, the future raises. The function belongs to the event loop of the run.
    That of a session can be called on any event loop, also between cells, until the session is
    closed; and it keeps the session. The same sandbox function is the same object while that object
    is alive.
    """

    __slots__ = ("__name__", "__weakref__", "_number", "_run", "_times")

    __name__: str

    def __init__(self, run: Run, number: int, name: str) -> None:
        self._run = run
        self._number = number
        self._times = 1
        self.__name__ = name

    def __call__(self, *args: Any) -> asyncio.Future[Any]:
        """Calls the function with a clone of the arguments.

        Raises:
            SerializationError: an argument cannot be cloned.
            RuntimeError: on another thread than that of the run's event loop; for a session: where
                no event loop is running.
        """
        return self._run.call_sandbox(self._number, args)

    def __repr__(self) -> str:
        return f"<function {self.__name__ or 'anonymous'} of a sandbox>"

    def __del__(self) -> None:
        # The sandbox can free its function, too.
        self._run.release_sandbox_function(self._number, self._times)


class SandboxFunctions:
    """The functions of one sandbox, and the calls of them. Methods take the run, because a
    reference to it would make a cycle, and only the garbage collector would free the run."""

    def __init__(self) -> None:
        self._known: weakref.WeakValueDictionary[int, SandboxFunction]
        self._known = weakref.WeakValueDictionary()
        self._calls: dict[int, SandboxFuture] = {}
        # The threads that use a session draw from it, too.
        self._call_numbers = itertools.count(1)

    def function(self, run: Run, number: int, name: str) -> SandboxFunction:
        """The function with that number."""
        known = self._known.get(number)
        if known is not None:
            known._times += 1
            return known
        function = SandboxFunction(run, number, name)
        self._known[number] = function
        return function

    def call(self, run: Run, number: int, args: tuple[Any, ...]) -> SandboxFuture:
        """Calls the function with that number."""
        future = SandboxFuture(loop=run.loop)
        if run.has_ended:
            fail(future, RuntimeError(SETTLED))
            return future
        call = next(self._call_numbers)
        run.remote.call_function(number, call, args, run)
        self._calls[call] = future
        run.expect_events()
        return future

    def is_awaited(self, call: int) -> bool:
        """Whether a call is pending."""
        future = self._calls.get(call)
        return future is not None and not future.done()

    def settle(self, run: Run, call: int, ok: bool, message: Message) -> None:
        """Settles a call with the completion that the sandbox sent."""
        future = self._calls.pop(call, None)
        if future is not None and future.origin is not None and is_elsewhere(future):
            on_loop(future.get_loop(), settle, future, ok, message, future.origin)
        else:
            settle(future, ok, message, run if future is None else future.origin or run)

    def pending(self) -> Collection[SandboxFuture]:
        """The calls that have not settled, from the oldest on."""
        return self._calls.values()

    def forget_closed(self) -> None:
        """Forgets the calls whose loops have closed: nothing waits for them, and their outcomes may
        have been sent to those loops."""
        for number, future in tuple(self._calls.items()):
            if future.get_loop().is_closed():
                self._calls.pop(number, None)

    def release_all(self, release: Callable[[int, int], None]) -> None:
        """Releases the functions that are known here, for a copy of the sandbox: no object of the
        host stands for that one's functions."""
        for number, function in tuple(self._known.items()):
            release(number, function._times)

    def leave(self) -> None:
        """Forgets the calls in a forked child: they are the parent's."""
        self._calls = {}

    def clear(self) -> None:
        """Forgets the calls after the run."""
        self._calls.clear()
