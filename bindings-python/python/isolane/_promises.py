"""Promises that cross while a run is running.

In: awaitables of the host, and numbers of promises of the sandbox. Out: numbers, under which the
host's awaitables settle inside; and futures for the sandbox's numbers.
"""

from __future__ import annotations

import asyncio
import sys
import types
from collections.abc import Awaitable, Coroutine, Generator, Iterable
from typing import TYPE_CHECKING, Any

from ._futures import SETTLED, SandboxFuture, fail, outcome, settle
from ._isolane import Message
from ._throws import Answered

if TYPE_CHECKING:
    from ._run import Run

# Whether a new task can begin before the next turn of the loop.
_EAGER = sys.version_info >= (3, 12)

# The futures of asyncio: they run their callbacks in a later turn of the loop.
_OWN_FUTURES = (asyncio.Future, asyncio.Task, SandboxFuture)


class Promises:
    """The promises of one run, in both directions. Every method takes the run, because a reference
    to it would make a cycle, and only the garbage collector would free the run."""

    def __init__(self) -> None:
        # How many awaitables of the host have been given a number.
        self._given = 0
        # Pending promises of the host. There may be no other reference to them.
        self._own: dict[int, asyncio.Future[Any]] = {}
        # The callbacks on them, by identity.
        self._completions: dict[int, _Completion] = {}
        # The tasks among them that were made here, of coroutines. They may outlive the run.
        self._tasks: set[asyncio.Future[Any]] = set()
        self._of_sandbox: dict[int, asyncio.Future[Any]] = {}
        # About how many coroutines of the host have a task and have not begun.
        self.beginning = 0

    # Of the host.

    def number(self, run: Run, awaitable: Awaitable[Any]) -> int:
        """The number of an awaitable of the host."""
        known = self._completions.get(id(awaitable))
        if known is not None:
            return known.number
        self._given += 1
        self._watch(run, self._given, awaitable)
        return self._given

    def own(self, number: int) -> asyncio.Future[Any] | None:
        """The future of the host with that number, which the sandbox has sent back."""
        return self._own.get(number)

    def begin(self, run: Run, number: int, coroutine: Any) -> None:
        """As `_watch`, with an eager task if Python has them. Then a coroutine that does not wait
        takes no turn of the loop."""
        loop = run.loop
        runs_here = asyncio._get_running_loop() is loop
        if not (_EAGER and runs_here and loop.get_task_factory() is None):
            self._watch(run, number, coroutine)
            return
        eager: Any = asyncio.Task
        task = run.context.copy().run(eager, coroutine, loop=loop, eager_start=True)
        if task.done():
            self.done(run, number, task)
        else:
            self._watch(run, number, task, is_own_task=True)

    def send(self, run: Run, number: int, ok: bool, value: Any) -> None:
        """Sends a completion to the sandbox, under that number."""
        answered: Answered = ("promise", number)
        run.throws.keep(answered, run.remote.settle_promise(number, ok, value, run))

    def cancel_tasks(self) -> None:
        """Cancels the tasks of a run that could not be started."""
        for task in tuple(self._tasks):
            task.cancel()

    def _watch(
        self, run: Run, number: int, awaitable: Awaitable[Any], is_own_task: bool = False
    ) -> None:
        """Sends the completion of an awaitable to the sandbox, under that number."""
        if run.has_ended:
            # A host function has run the loop until then. No coroutine begins any more.
            if asyncio.iscoroutine(awaitable):
                awaitable.close()
            return
        copy = run.context.copy()
        is_called = run.has_started and asyncio.iscoroutine(awaitable)
        task_of = self._guarded(run, awaitable) if is_called else awaitable
        future = copy.run(asyncio.ensure_future, task_of, loop=run.loop)
        self._own[number] = future
        is_own_task = is_own_task or future is not awaitable
        tasks = self._tasks if is_own_task else None
        completion = _Completion(run, number, future, tasks)
        self._completions[id(future)] = completion
        if is_own_task:
            self._tasks.add(future)
        is_asyncio = type(future) in _OWN_FUTURES
        future.add_done_callback(completion if is_asyncio else completion.call_later)

    def _guarded(self, run: Run, coroutine: Any) -> Any:
        """The coroutine, for a task that takes its first step in a later turn of the loop."""
        guarded: Any = _if_running(run, coroutine)
        # Up to the place where it waits for that step. So it has begun, and closes the coroutine if
        # the task is cancelled before.
        guarded.send(None)
        if type(coroutine) is types.CoroutineType:
            # asyncio shows it in the text of a task.
            guarded.__qualname__ = coroutine.__qualname__
        self.beginning += 1
        return guarded

    def done(self, run: Run, number: int, future: asyncio.Future[Any]) -> None:
        """Sends the completion of a future that is done."""
        ended: BaseException | None = None
        try:
            ok, value = outcome(future)
        except BaseException as raised:  # A future of another class may raise anything.
            ok, value = False, raised
            ended = raised if isinstance(raised, (KeyboardInterrupt, SystemExit)) else None
        # The completion may contain the promise itself, so the promise keeps its number until that
        # is sent.
        self.send(run, number, ok, value)
        run.expect_events()
        self._own.pop(number, None)
        self._completions.pop(id(future), None)
        if ended is not None:
            raise ended

    # Of the sandbox.

    def of_sandbox(self, run: Run, number: int) -> asyncio.Future[Any]:
        """The future of a promise of the sandbox, the same one while it is pending."""
        known = self._of_sandbox.get(number)
        if known is not None:
            return known
        future = SandboxFuture(loop=run.loop)
        if not run.has_ended:
            self._of_sandbox[number] = future
        else:
            fail(future, RuntimeError(SETTLED))
        return future

    def is_awaited(self, number: int) -> bool:
        """Whether a promise of the sandbox is pending here."""
        future = self._of_sandbox.get(number)
        return future is not None and not future.done()

    def settle(self, run: Run, number: int, ok: bool, message: Message) -> None:
        """Settles a promise of the sandbox with its completion."""
        # The value may contain the promise itself, so the number is valid until the value is read.
        settle(self._of_sandbox.get(number), ok, message, run)
        self._of_sandbox.pop(number, None)

    def pending(self) -> Iterable[asyncio.Future[Any]]:
        """The promises of the sandbox that have not settled."""
        return self._of_sandbox.values()

    def leave(self) -> None:
        """Forgets the promises of the sandbox in a forked child: they are the parent's."""
        self._of_sandbox = {}

    def clear(self) -> None:
        """Forgets all promises after the run. Its tasks go on, and they keep one another."""
        self._of_sandbox.clear()
        self._own.clear()
        completions, self._completions = self._completions, {}
        for completion in completions.values():
            completion.end()


class _Completion:
    """The callback of an awaitable of the host. It refers to the run until the run has ended."""

    __slots__ = ("_future", "_loop", "_run", "_tasks", "number")

    def __init__(
        self,
        run: Run,
        number: int,
        future: asyncio.Future[Any],
        tasks: set[asyncio.Future[Any]] | None,
    ) -> None:
        self._run: Run | None = run
        self._loop = run.loop
        self._future: asyncio.Future[Any] | None = future
        # For a task that was made here: all such tasks.
        self._tasks = tasks
        self.number = number

    def __call__(self, future: asyncio.Future[Any]) -> None:
        """Sends the completion if the run has not ended."""
        if self._tasks is not None:
            self._tasks.discard(future)
        if self._run is not None:
            self._run.host_settled(self.number, future)
        elif type(future) in _OWN_FUTURES and not future.cancelled():
            # asyncio logs exceptions that are never retrieved.
            future.exception()

    def call_later(self, _: asyncio.Future[Any]) -> None:
        """The same for a future of another class, which may call back at once or on another thread.
        The sandbox has to receive the promise before its completion."""
        future = self._future
        if future is not None:
            self._loop.call_soon_threadsafe(self, future)

    def end(self) -> None:
        """Lets the run go, and leaves a future that others may keep."""
        future, self._run, self._future = self._future, None, None
        # Not with a method of the caller's class. A task that was made here still has to tell.
        if self._tasks is None and future is not None and issubclass(type(future), asyncio.Future):
            asyncio.Future.remove_done_callback(future, self)
            asyncio.Future.remove_done_callback(future, self.call_later)


@types.coroutine
def _first_step() -> Generator[None, None, None]:
    """Waits for the first step of a task."""
    yield


async def _if_running(run: Run, coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Runs a coroutine of the host, unless its run has ended or been told to end before."""
    try:
        await _first_step()
        begins = run.begins()
    except BaseException:
        coroutine.close()
        raise
    # The coroutine may outlive the run.
    del run
    if begins:
        return await coroutine
    coroutine.close()
    return None
