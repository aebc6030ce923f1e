"""The futures of asyncio by which a run and its host wait for each other.

In: a future that is done, or a completion from the sandbox. Out: the future's outcome, or the
settled future. Futures that are done, and loops that are closed, are left alone.
"""

from __future__ import annotations

import asyncio
import collections
import contextlib
import contextvars
from collections.abc import Callable, Generator, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

from ._errors import SandboxError
from ._isolane import Message

if TYPE_CHECKING:
    from ._run import Run

_result = asyncio.Future.result

Value = TypeVar("Value")

SETTLED = "the run has settled; nothing in its sandbox can be called any more"

# How many futures fail in one turn of the loop.
_MOST_FUTURES = 1000


class SandboxFuture(asyncio.Future[Any]):
    """A future that the sandbox settles. It raises a copy of its exception each time.

    An exception that was raised holds the frames that it passed, and so their variables. One of
    these is usually the future. If the future held that exception, only the garbage collector would
    free both, and the thrown value with them, which no limit counts any more."""

    _thrown: SandboxError | None = None

    # For a session: the cell that received it, or the session itself; the place of that cell; and
    # for a call of a function, the context of the caller.
    origin: Run | None = None
    place: int = 0
    caller: contextvars.Context | None = None

    def set_exception(self, exception: type | BaseException, /) -> None:
        """Fails it, as `asyncio.Future.set_exception` does."""
        super().set_exception(exception)
        if type(exception) is SandboxError:
            self._thrown = exception

    def exception(self) -> BaseException | None:
        """The exception, or None; raises as `asyncio.Future.exception` does."""
        exception = super().exception()
        return exception if self._thrown is None else _copy(self._thrown)

    def result(self) -> Any:
        """The value; raises as `asyncio.Future.result` does."""
        if self._thrown is not None:
            raise _copy(self._thrown)
        return _result(self)

    def __await__(self) -> Generator[Any, None, Any]:
        # The method of asyncio raises the future's own exception.
        if self.done():
            return self.result()
        self._asyncio_future_blocking = True
        # A task throws the exception here.
        yield self
        return _result(self)

    __iter__ = __await__


def _copy(thrown: SandboxError) -> SandboxError:
    """The same exception, without a traceback."""
    copied = SandboxError.__new__(SandboxError, *thrown.args)
    copied.__dict__.update(thrown.__dict__)
    return copied


def outcome(future: asyncio.Future[Any]) -> tuple[bool, Any]:
    """Whether a future has a value or an exception, and which."""
    if future.cancelled():
        try:
            future.result()
        except asyncio.CancelledError as cancelled:
            if cancelled.args:
                return False, cancelled
        return False, asyncio.CancelledError("the host cancelled it")
    raised = future.exception()
    return (True, future.result()) if raised is None else (False, raised)


def settle(future: SandboxFuture | None, ok: bool, message: Message, run: Run) -> None:
    """Settles a future with a completion of the sandbox."""
    if future is None or future.done():
        return
    # The future does not keep the session any more.
    future.origin = future.caller = None
    try:
        value = message.read(run)
        if not ok and not isinstance(value, SandboxError):
            value = SandboxError.of(value)
    except Exception as failure:
        # The frame here would hold the future, which holds the exception.
        fail(future, failure.with_traceback(None))
        return
    if ok:
        future.set_result(value)
    else:
        fail(future, value)


def finish(future: asyncio.Future[Value], act: Callable[[], Value]) -> None:
    """Gives a future the value of `act`, or its exception, unless the caller has cancelled it."""
    try:
        value = act()
    except Exception as raised:
        if not future.done():
            future.set_exception(raised)
    else:
        if not future.done():
            future.set_result(value)


def fail(future: asyncio.Future[Any], raised: BaseException) -> None:
    """Fails a future with an exception that need not be retrieved."""
    future.set_exception(raised)
    # asyncio logs exceptions that are never retrieved. This one is the sandbox's, not the host's.
    future.exception()


def run_settled() -> Exception:
    """The exception of futures whose run has settled."""
    return RuntimeError(SETTLED)


def fail_all(
    futures: collections.deque[asyncio.Future[Any]],
    loop: asyncio.AbstractEventLoop | None,
    why: Callable[[], Exception] = run_settled,
) -> None:
    """Fails futures that will never settle, some in each turn of the loop: there may be many.
    `why` makes the exception of each."""
    for _ in range(min(len(futures), _MOST_FUTURES)):
        future = futures.popleft()
        if not future.done() and not future.get_loop().is_closed():
            fail(future, why())
    if futures and loop is not None and not loop.is_closed():
        loop.call_soon(fail_all, futures, loop, why)


def cancel_all(
    tasks: collections.deque[asyncio.Future[Any]], loop: asyncio.AbstractEventLoop
) -> None:
    """Cancels tasks of the loop that runs here, some in each turn of it: there may be many."""
    for _ in range(min(len(tasks), _MOST_FUTURES)):
        tasks.popleft().cancel()
    if tasks and not loop.is_closed():
        loop.call_soon(cancel_all, tasks, loop)


def fail_everywhere(futures: Iterable[asyncio.Future[Any]], why: Callable[[], Exception]) -> None:
    """Fails futures of any loops, each on its own loop."""
    by_loop: dict[asyncio.AbstractEventLoop, collections.deque[asyncio.Future[Any]]] = {}
    for future in futures:
        by_loop.setdefault(future.get_loop(), collections.deque()).append(future)
    for loop, its in by_loop.items():
        on_loop(loop, fail_all, its, loop, why)


def is_elsewhere(future: asyncio.Future[Any]) -> bool:
    """Whether a future belongs to another loop than the one that runs on this thread."""
    return future.get_loop() is not asyncio._get_running_loop()


def on_loop(loop: asyncio.AbstractEventLoop, act: Callable[..., object], *args: Any) -> None:
    """Calls `act` on a loop of any thread."""
    # Nothing waits on a loop that has closed.
    with contextlib.suppress(RuntimeError):
        loop.call_soon_threadsafe(act, *args)


def wake(future: asyncio.Future[None]) -> None:
    """Resolves a future of this thread's loop."""
    if not future.done():
        future.set_result(None)


def wake_on(loop: asyncio.AbstractEventLoop, future: asyncio.Future[None]) -> None:
    """Resolves a future of any loop."""
    on_loop(loop, wake, future)
