"""The handles on runs and cells, for their callers."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Coroutine, Generator
from typing import Any, TypeVar, cast, final

from ._bridge import bridge_of
from ._result import AnyCellResult, AnyResult, CodeExecutionResult, KitCellResult, KitResult
from ._run import Run

Result = TypeVar("Result", bound=CodeExecutionResult)


class Execution(Coroutine[Any, Any, Result]):
    """The handle on a run or a cell."""

    __slots__ = ("__weakref__", "_received", "_run", "_steps")

    def __init__(self, run: Run) -> None:
        self._run = run
        self._received = run.received
        self._steps: weakref.WeakKeyDictionary[Any, Generator[Any, Any, Result]]
        self._steps = weakref.WeakKeyDictionary()

    def terminate(self, reason: str | None = None) -> None:
        """Ends the run. It settles with status `terminated` and the reason as `error.message`.

        The first reason wins. Any thread may call this. It never raises, and does nothing after the
        run has settled. Settling takes up to 50 ms, or up to 250 ms in code that the engine cannot
        interrupt.
        """
        self._run.terminate(reason)

    @property
    def running(self) -> bool:
        """Whether the run has not settled yet."""
        self._run.check_fork()
        return self._run.running

    @property
    def reports(self) -> list[Any]:
        """The reports so far, in the order of the calls: at each read a new list of the same
        values."""
        self._run.check_fork()
        self._run.read_reports()
        return self._received.reports.copy()

    def __await__(self) -> Generator[Any, Any, Result]:
        run, received = self._run, self._received
        run.check_fork()
        # A waiter also wakes when the loop of the run has closed. Then its own loop takes the run
        # over.
        while (result := received.result) is None:
            loop = asyncio.get_running_loop()
            with run.lock:
                if received.result is not None:
                    continue
                if loop is not run.loop and (run.orphaned or not run.loop.is_running()):
                    bridge_of(loop).adopt(run)
                waiter = (loop, loop.create_future())
                run.waiters.append(waiter)
            try:
                yield from waiter[1]
            except asyncio.CancelledError:
                if run.remove_waiter(waiter):
                    run.terminate("the task that awaited the run was cancelled")
                    if run.has_page:
                        # The page hears of it before the host, which may use the page itself then.
                        yield from run.until_ended(loop)
                raise
            finally:
                run.remove_waiter(waiter)
        return cast(Result, result)

    # The protocol of coroutines, so that a task can run a handle. Several tasks may await one run,
    # so each task has a generator of its own.

    def send(self, value: Any) -> Any:
        """Resumes the task that awaits the run; not for callers."""
        return self._step().send(value)

    def throw(self, *raised: Any) -> Any:
        """Raises an exception in the task that awaits the run; not for callers."""
        return self._step().throw(*raised)

    def close(self) -> None:
        """Does nothing when the task that awaited the run has ended; not for callers."""

    def _step(self) -> Generator[Any, Any, Result]:
        task = asyncio.current_task()
        steps = self._steps.get(task)
        if steps is None:
            steps = self._steps[task] = self.__await__()
        return steps

    def __repr__(self) -> str:
        result = self._received.result
        return f"<{type(self).__name__} {'running' if result is None else result.status}>"


@final
class CodeExecution(Execution[AnyResult]):
    """A run. Await it, in any event loop and as often as you like; it never raises.

    The outcome of any run is a result with a status. Cancelling the task that awaits the handle
    ends the run, unless another task awaits it too. `asyncio.create_task`, `TaskGroup.create_task`,
    `asyncio.gather` and `asyncio.wait_for` accept it as a coroutine.
    """

    __slots__ = ()


@final
class CellExecution(Execution[AnyCellResult]):
    """A cell of a session. All that holds for a `CodeExecution` holds for it, too; it counts as an
    instance of that."""

    __slots__ = ()


@final
class KitCellExecution(Execution[KitCellResult]):
    """A cell of a session of a kit. All that holds for a `CellExecution` holds for it, too; it
    counts as an instance of `CodeExecution`."""

    __slots__ = ()


@final
class KitExecution(Execution[KitResult]):
    """A run with a kit. All that holds for a `CodeExecution` holds for it, too; it counts as an
    instance of that."""

    __slots__ = ()


CodeExecution.register(CellExecution)
CodeExecution.register(KitCellExecution)
CodeExecution.register(KitExecution)
