"""The handle on a run: what its caller holds while it goes on."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Coroutine, Generator
from typing import Any, final

from ._bridge import bridge_of
from ._result import CodeExecutionResult
from ._run import Run


@final
class CodeExecution(Coroutine[Any, Any, CodeExecutionResult]):
    """A run. Await it, in any event loop and as often as you like; it never raises.

    Whatever happens inside is a result with a status. Cancelling the task that awaits it ends the
    run, unless another still awaits it. It can be given to `asyncio.create_task`,
    `TaskGroup.create_task`, `asyncio.gather` and `asyncio.wait_for` as a coroutine can.
    """

    __slots__ = ("__weakref__", "_run", "_steps")

    def __init__(self, run: Run) -> None:
        self._run = run
        self._steps: weakref.WeakKeyDictionary[Any, Generator[Any, Any, CodeExecutionResult]]
        self._steps = weakref.WeakKeyDictionary()

    def terminate(self, reason: str | None = None) -> None:
        """Ends the run; it settles with status `terminated` and the reason as `error.message`.

        The first reason wins. May be called from any thread, never raises, and does nothing once
        the run has settled. Settling takes up to 50 ms, in code that the engine cannot interrupt
        up to 250 ms.
        """
        self._run.terminate(reason)

    @property
    def running(self) -> bool:
        """Whether the run has not settled yet."""
        self._run.check_fork()
        return self._run.running

    @property
    def reports(self) -> list[Any]:
        """What was reported so far, in call order: a new list at each read, of the same values."""
        self._run.check_fork()
        return self._run.reports

    def __await__(self) -> Generator[Any, Any, CodeExecutionResult]:
        run = self._run
        run.check_fork()
        # Also told when the loop of the run has closed; then another takes it over.
        while (result := run.result) is None:
            loop = asyncio.get_running_loop()
            with run.lock:
                if run.result is not None:
                    continue
                if loop is not run.loop and (run.lost or not run.loop.is_running()):
                    bridge_of(loop).adopt(run)
                waiter = (loop, loop.create_future())
                run.waiters.append(waiter)
            try:
                yield from waiter[1]
            except asyncio.CancelledError:
                if run.give_up(waiter):
                    run.terminate("the task that awaited the run was cancelled")
                raise
            finally:
                run.give_up(waiter)
        return result

    # The protocol of coroutines, so that a task can be made of a handle. Each task takes its own
    # steps: several may await one run.

    def send(self, value: Any) -> Any:
        """One step of the task that awaits the run; not for callers."""
        return self._step().send(value)

    def throw(self, *raised: Any) -> Any:
        """An exception for the task that awaits the run; not for callers."""
        return self._step().throw(*raised)

    def close(self) -> None:
        """The task that awaited the run is gone; not for callers."""

    def _step(self) -> Generator[Any, Any, CodeExecutionResult]:
        task = asyncio.current_task()
        steps = self._steps.get(task)
        if steps is None:
            steps = self._steps[task] = self.__await__()
        return steps

    def __repr__(self) -> str:
        result = self._run.result
        return f"<CodeExecution {'running' if result is None else result.status}>"
