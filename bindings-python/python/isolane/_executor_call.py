"""Calls of executors on the event loop that made them.

In: a call that the native half has started. Out: its live output, handed to the context's
receivers, and its result. The loop never blocks for a call.
"""

from __future__ import annotations

import asyncio
import contextvars
import sys
from collections.abc import Callable, Coroutine
from typing import Any, TypeAlias, TypeVar

from ._bridge import Bridge, bridge_of
from ._executor_data import InvocationContext, error_of, never
from ._isolane import ExecutorCall
from ._sync import outside_of_loops

Value = TypeVar("Value")

Begin: TypeAlias = Callable[[Bridge, int], ExecutorCall]
"""Starts a call, whose news are notices of that number."""

# How long a cancelled call is waited for, so that nothing of it outlives the program.
_MOST_WAIT_S = 1.0

# The time between two looks at `cancelled` of a context.
_LOOK_S = 0.02


async def finish(begin: Begin, context: InvocationContext | None = None) -> Any:
    """Starts a call and waits for its end. Cancelling the task ends the call.

    Raises:
        ExecutorError: the program did not start, or the call was cancelled by its context.
        Whatever a receiver or `cancelled` of the context raises.
    """
    context = InvocationContext() if context is None else context
    if not callable(context.cancelled):
        got = type(context.cancelled).__name__
        raise TypeError(f"cancelled must be a function, got {got}")
    # News arrive in the context variables of whoever used the event loop first.
    variables = contextvars.copy_context()
    loop = asyncio.get_running_loop()
    bridge = bridge_of(loop)
    ended: asyncio.Future[tuple[bool, Any]] = loop.create_future()
    failed: list[BaseException] = []

    def news() -> None:
        outputs, end = call.take()
        try:
            if not failed:
                for is_stdout, data in outputs:
                    receive = context.stdout if is_stdout else context.stderr
                    if receive is not None:
                        variables.run(receive, data)
        except BaseException as raised:
            failed.append(raised)
            call.cancel()
            if not isinstance(raised, Exception):
                raise
        finally:
            if end is not None:
                bridge.end_notice(number)
                if not ended.done():
                    ended.set_result(end)

    number = bridge.on_notice(news)
    try:
        call = begin(bridge, number)
    except BaseException:
        bridge.end_notice(number)
        raise

    async def watch_it() -> None:
        try:
            # `cancelled` is a function of the caller's, which tells nobody when its answer changes.
            while not context.cancelled():  # noqa: ASYNC110
                await asyncio.sleep(_LOOK_S)
        except Exception as raised:
            failed.append(raised)
        call.cancel()

    watch = None if context.cancelled is never else loop.create_task(watch_it())
    try:
        # The future goes on when the task is cancelled.
        ok, value = await asyncio.shield(ended)
    except asyncio.CancelledError:
        call.cancel()
        await asyncio.wait([ended], timeout=_MOST_WAIT_S)
        raise
    finally:
        if watch is not None:
            watch.cancel()
    if failed:
        # The frame of `news` would hold the exception, which holds the frame.
        raise failed.pop()
    if not ok:
        raise error_of(value)
    return value


def run_here(blocking: str, other: str, work: Callable[[], Coroutine[Any, Any, Value]]) -> Value:
    """Runs a coroutine on a loop of its own on this thread. `KeyboardInterrupt` cancels it."""
    with outside_of_loops(blocking, other):
        if sys.version_info < (3, 11):
            return asyncio.run(work())
        # Given a factory, it leaves the event loop alone that was set for this thread.
        with asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner:
            return runner.run(work())
