"""Runs for callers without an event loop.

In: a run that was just started on this thread. Out: its result. While the sandbox computes, the
interpreter's lock is free. If the run has host functions or promises, it gets a loop of its own on
this thread. The loop ends with the run.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
import threading
import weakref
from collections.abc import Generator
from types import FrameType
from typing import TYPE_CHECKING

from ._bridge import Bridge
from ._execution import CodeExecution
from ._result import CodeExecutionResult
from ._run import Run

if TYPE_CHECKING:
    from ._page import PageDriver

# Python misses a signal that comes just before a loop goes to sleep, until the loop wakes.
SIGNAL_CHECK_S = 0.05

# Functions whose exceptions Python drops, as it drops those of each `__del__`: they run where an
# object is freed.
_CALLED_BY_REFERENCES = {
    getattr(references(), "_remove").__code__  # noqa: B009
    for references in (weakref.WeakSet, weakref.WeakKeyDictionary, weakref.WeakValueDictionary)
}

_RUN_FOREVER = asyncio.BaseEventLoop.run_forever.__code__

# Loops that `run_code_sync` made and runs at this moment.
_driven: set[asyncio.AbstractEventLoop] = set()


@contextlib.contextmanager
def outside_of_loops(
    blocking: str = "run_code_sync", other: str = "run_code", page: PageDriver | None = None
) -> Generator[None]:
    """Refuses to block a loop that is running on this thread. The error names the function that
    blocks, and the other one to await. The loop of synchronous Playwright is not blocked: only
    calls of its functions run it, on a greenlet of its own. The function of a `page` may start
    Playwright meanwhile.

    A host function of an outer `run_code_sync` may call it again: nothing else waits for that
    outer loop.
    """
    running = asyncio._get_running_loop()
    if running is None:
        yield
        if page is not None:
            # Its function may have started Playwright.
            asyncio._set_running_loop(page.loop)
        return
    is_of_page = page is not None and page.loop is running
    is_idle = asyncio.current_task(running) is None
    if not (is_of_page or (is_idle and (running in _driven or _is_elsewhere(running)))):
        raise RuntimeError(
            f"{blocking} cannot be called while an event loop is running on this thread: "
            f"await {other} instead"
        )
    asyncio._set_running_loop(None)
    try:
        yield
    finally:
        asyncio._set_running_loop(running)


def _is_elsewhere(loop: asyncio.AbstractEventLoop) -> bool:
    """Whether a loop runs on another greenlet of this thread: no frame below this one runs it."""
    if not isinstance(loop, asyncio.BaseEventLoop):
        return False
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        if frame.f_code is _RUN_FOREVER and frame.f_locals.get("self") is loop:
            return False
        frame = frame.f_back
    return True


def is_driven(bridge: Bridge) -> bool:
    """Whether a thread waits for a run of the bridge, instead of a loop of the caller's."""
    return bridge.own_loop is None or bridge.own_loop in _driven


def wait(bridge: Bridge, run: Run) -> CodeExecutionResult:
    """Waits until the run has settled. An exception meanwhile, such as `KeyboardInterrupt`, ends
    the run."""
    received = run.received
    try:
        if bridge.own_loop is None and not run.remote.calls_host():
            # A session may be handed coroutine functions meanwhile.
            bridge.wait_until(lambda: run.has_ended or bridge.own_loop is not None)
        if not run.has_ended:
            _drive(bridge, CodeExecution(run))
    except BaseException as raised:
        run.terminate(f"ended by {type(raised).__name__}")
        raise
    # An exception of a host function refers to this frame.
    return received.take()


def _drive(bridge: Bridge, handle: CodeExecution) -> None:
    loop = bridge.loop
    _driven.add(loop)
    # Its first step comes before the first call of a host function, which may fork: a loop does not
    # count as running in a forked child.
    settled = loop.create_task(_settled(handle))
    bridge.watch()
    bridge.expect_events()
    with _no_interrupt_is_lost():
        loop.run_until_complete(settled)


@contextlib.contextmanager
def _no_interrupt_is_lost() -> Generator[None]:
    """Has a Ctrl-C raise `KeyboardInterrupt` in the loop if it comes where an object is freed:
    Python would drop the exception there. A handler of the caller's stays."""
    if (
        threading.current_thread() is not threading.main_thread()
        or signal.getsignal(signal.SIGINT) is not signal.default_int_handler
    ):
        yield
        return
    signal.signal(signal.SIGINT, _interrupted)
    try:
        yield
    finally:
        # A host function may have set another one.
        if signal.getsignal(signal.SIGINT) is _interrupted:
            signal.signal(signal.SIGINT, signal.default_int_handler)


def _interrupted(number: int, frame: FrameType | None) -> None:
    loop = asyncio._get_running_loop()
    interrupted = frame
    while frame is not None and loop is not None:
        if frame.f_code.co_name == "__del__" or frame.f_code in _CALLED_BY_REFERENCES:
            loop.call_soon_threadsafe(_interrupted, number, None)
            return
        frame = frame.f_back
    signal.default_int_handler(number, interrupted)


def close_loop(bridge: Bridge) -> None:
    """Ends the wait for runs of a bridge. Closes its loop, if it has one, and cancels the tasks on
    it."""
    bridge.end()
    loop = bridge.own_loop
    if loop is None:
        return
    try:
        _cancel_tasks(loop)
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.run_until_complete(loop.shutdown_default_executor())
    finally:
        _driven.discard(loop)
        bridge.unwatch()
        loop.close()


async def _settled(handle: CodeExecution) -> None:
    """Waits for the end of a run. The task does not keep the result: an exception of a host
    function refers to it, too."""
    if threading.current_thread() is not threading.main_thread():
        await handle
        return
    waking: list[asyncio.TimerHandle] = []
    _wake(asyncio.get_running_loop(), waking)
    try:
        await handle
    finally:
        waking.pop().cancel()


def _wake(loop: asyncio.AbstractEventLoop, waking: list[asyncio.TimerHandle]) -> None:
    """Wakes the loop again and again."""
    waking[:] = [loop.call_later(SIGNAL_CHECK_S, _wake, loop, waking)]


def _cancel_tasks(loop: asyncio.AbstractEventLoop) -> None:
    tasks = asyncio.all_tasks(loop)
    for task in tasks:
        task.cancel()
    if tasks:
        loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
