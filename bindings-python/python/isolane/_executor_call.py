"""Calls of executors on the event loop that made them.

In: a method of an executor and its arguments. Out: its live output, handed to the context's
receivers, and its result. The loop never blocks for a call.
"""

from __future__ import annotations

import asyncio
import inspect
import sys
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from ._door import Door, DoorCall, as_error
from ._executor_data import ExecutorError, InvocationContext, error_of, never
from ._sync import outside_of_loops

Value = TypeVar("Value")

# How long a cancelled call is waited for, so that nothing of it outlives the program.
_MOST_WAIT_S = 1.0

# The time between two looks at `cancelled` of a context.
_LOOK_S = 0.02

# How long the output waits for a coroutine function that receives a piece of it.
_MOST_RECEIVING_S = 5.0


def executor_error(thrown: Any) -> ExecutorError:
    """The error of a call: a list of its kind and its message, or another failure of the
    library."""
    if isinstance(thrown, list):
        kind, message = thrown
        return error_of((kind, message))
    return ExecutorError("other", str(as_error(thrown)))


async def finish(
    door: Door, method: str, context: InvocationContext | None = None, *args: Any
) -> Any:
    """Begins a call and waits for its end. Cancelling the task ends the call.

    Args:
        door: The executor.
        method: The method. With a context, the context is its first argument.
        context: The context of the call.
        args: The other arguments.

    Raises:
        ExecutorError: the program did not start, or the call was cancelled by its context.
        Whatever a receiver or `cancelled` of the context raises.
    """
    if context is None:
        return await _ended(door.call(method, *args))
    if not callable(context.cancelled):
        got = type(context.cancelled).__name__
        raise TypeError(f"cancelled must be a function, got {got}")
    failed: list[BaseException] = []

    is_late = False

    # Keeps them.
    receiving: set[asyncio.Future[object]] = set()

    async def received_by(task: asyncio.Future[object]) -> None:
        nonlocal is_late
        try:
            done, _ = await asyncio.wait([task], timeout=_MOST_RECEIVING_S)
        except asyncio.CancelledError:
            # The call is over.
            task.cancel()
            raise
        if not done:
            is_late = True
            return
        try:
            task.result()
        except BaseException as raised:
            failed.append(raised)
            raise

    def receiver(
        receive: Callable[[bytes], object] | None,
    ) -> Callable[[bytes], Awaitable[None] | None] | None:
        if receive is None:
            return None

        def received(data: bytes) -> Awaitable[None] | None:
            if failed:
                return None
            try:
                answer = receive(data)
            except BaseException as raised:
                failed.append(raised)
                raise
            if not inspect.isawaitable(answer):
                return None
            # The next piece waits for a coroutine function, unless that has been late.
            task = asyncio.ensure_future(answer)
            receiving.add(task)
            task.add_done_callback(receiving.discard)
            return None if is_late else received_by(task)

        return received

    given = {
        "invocationId": context.invocation_id,
        "turn": context.turn,
        "attempt": context.attempt,
        "stdout": receiver(context.stdout),
        "stderr": receiver(context.stderr),
    }
    call = door.call(method, given, *args)

    async def watch_it() -> None:
        try:
            # `cancelled` is a function of the caller's, which tells nobody when its answer changes.
            while not _is_cancelled(context):  # noqa: ASYNC110
                await asyncio.sleep(_LOOK_S)
        except Exception as raised:
            failed.append(raised)
        call.terminate()

    watch = None if context.cancelled is never else asyncio.create_task(watch_it())
    try:
        value = await _ended(call)
    except ExecutorError:
        if not failed:
            raise
    finally:
        if watch is not None:
            watch.cancel()
    if failed:
        # The frames of the receivers would hold the exception, which holds the frames.
        raise failed.pop()
    return value


def _is_cancelled(context: InvocationContext) -> bool:
    answer: object = context.cancelled()
    if inspect.isawaitable(answer):
        if inspect.iscoroutine(answer):
            answer.close()
        raise TypeError("cancelled must be a plain function, got one whose answer is awaited")
    return bool(answer)


async def _ended(call: DoorCall) -> Any:
    """The value of a call. When the task is cancelled, it waits for a moment for the end."""

    async def value() -> Any:
        return await call

    ended = asyncio.create_task(value())
    try:
        # The task goes on when this one is cancelled.
        return await asyncio.shield(ended)
    except asyncio.CancelledError:
        call.terminate()
        await asyncio.wait([ended], timeout=_MOST_WAIT_S)
        if ended.done() and not ended.cancelled():
            # Nobody asks for it any more.
            ended.exception()
        raise


def run_here(blocking: str, other: str, work: Callable[[], Coroutine[Any, Any, Value]]) -> Value:
    """Runs a coroutine on a loop of its own on this thread. `KeyboardInterrupt` cancels it."""
    with outside_of_loops(blocking, other):
        if sys.version_info < (3, 11):
            return asyncio.run(work())
        # Given a factory, it leaves the event loop alone that was set for this thread.
        with asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner:
            return runner.run(work())
