"""Promises that cross between the host and one sandbox.

In: awaitables of the host, and numbers of promises of the sandbox. Out: numbers, under which the
host's awaitables settle inside; and futures for the sandbox's numbers.
"""

from __future__ import annotations

import asyncio
import collections
import sys
import threading
import types
import weakref
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterable
from typing import TYPE_CHECKING, Any, TypeAlias

from ._futures import (
    SETTLED,
    SandboxFuture,
    cancel_all,
    fail,
    fail_everywhere,
    is_elsewhere,
    on_loop,
    outcome,
    settle,
)
from ._isolane import Message
from ._throws import Answered

if TYPE_CHECKING:
    from ._run import Run

# Whether a new task can begin before the next turn of the loop.
_EAGER = sys.version_info >= (3, 12)

# The futures of asyncio: they run their callbacks in a later turn of the loop.
_OWN_FUTURES = (asyncio.Future, asyncio.Task, SandboxFuture)
# Held to give a number: several threads may use a session.
_numbering = threading.Lock()

Watched: TypeAlias = tuple[int, "asyncio.Future[Any]", asyncio.AbstractEventLoop]
"""The number of an awaitable of the host, its future, and the loop of that."""


class Promises:
    """The promises of one sandbox, in both directions. Every method takes the run, because a
    reference to it would make a cycle, and only the garbage collector would free the run."""

    def __init__(self, *, of_session: bool = False) -> None:
        # The last number that was given to an awaitable of the host.
        self._given = 0
        # Pending promises of the host. There may be no other reference to them.
        self._own: dict[int, asyncio.Future[Any]] = {}
        # The callbacks on them, by identity.
        self._completions: dict[int, _Completion] = {}
        # The tasks among them that were made here, of coroutines. They may outlive the run.
        self._tasks: set[asyncio.Future[Any]] = set()
        self._of_sandbox: dict[int, SandboxFuture] = {}
        # Of a session: completions that were received before the promise. A cell may settle the
        # promise of an earlier one whose last messages have not been read.
        self._early: dict[int, tuple[bool, Message]] | None = {} if of_session else None
        # About how many coroutines of the host have a task and have not begun.
        self.beginning = 0

    # Of the host.

    def number(self, run: Run, awaitable: Awaitable[Any]) -> int:
        """The number of an awaitable of the host."""
        known = self._completions.get(id(awaitable))
        if known is not None:
            known.share(run)
            return known.number
        with _numbering:
            self._given += 1
            number = self._given
        # A value of the caller is no call: the options of a run, and the values of a session, whose
        # reference is weak.
        is_call = run.has_started and run.reference is run
        self._watch(run, number, awaitable, is_call=is_call)
        return number

    def own(self, number: int) -> asyncio.Future[Any] | None:
        """The future of the host with that number, which the sandbox has sent back."""
        return self._own.get(number)

    def begin(self, run: Run, number: int, coroutine: Any) -> None:
        """As `_watch`, with an eager task if Python has them. Then a coroutine that does not wait
        takes no turn of the loop."""
        loop = run.loop
        runs_here = asyncio._get_running_loop() is loop
        if not (_EAGER and runs_here and loop.get_task_factory() is None):
            self._watch(run, number, coroutine, is_call=True)
            return
        eager: Any = asyncio.Task
        task = run.context.copy().run(eager, coroutine, loop=loop, eager_start=True)
        if task.done():
            self.done(run, number, task)
        else:
            self._watch(run, number, task, is_own_task=True, is_call=True)

    def send(self, run: Run, number: int, ok: bool, value: Any) -> None:
        """Sends a completion to the sandbox, under that number."""
        answered: Answered = ("promise", number)
        run.sandbox.throws.keep(answered, run.remote.settle_promise(number, ok, value, run))

    @property
    def given(self) -> int:
        """The last number that was given to an awaitable of the host."""
        return self._given

    def forget(self, run: Run, since: int = 0) -> None:
        """Forgets the awaitables of a request that was refused, and cancels its tasks. Their
        numbers are those after `since`."""
        for key, completion in tuple(self._completions.items()):
            if completion.number > since and completion.forget(run):
                self._own.pop(completion.number, None)
                self._completions.pop(key, None)

    def take_back(self, is_lost: Callable[[Run], bool]) -> None:
        """Forgets the awaitables that were given to such cells alone. The tasks of their calls are
        cancelled, and tell when they are done."""
        for key, completion in tuple(self._completions.items()):
            if completion.take_back(is_lost):
                self._own.pop(completion.number, None)
                self._completions.pop(key, None)

    def cancel_calls(self, was_ended: Callable[[Run], bool]) -> None:
        """Cancels the tasks of host functions that such runs have called, and that nobody awaits
        any more. Tasks and futures of the caller's own are left alone."""
        by_loop: dict[asyncio.AbstractEventLoop, collections.deque[asyncio.Future[Any]]] = {}
        for completion in tuple(self._completions.values()):
            task = completion.task_of_call(was_ended)
            if task is not None:
                by_loop.setdefault(task.get_loop(), collections.deque()).append(task)
        for loop, tasks in by_loop.items():
            if loop is asyncio._get_running_loop():
                cancel_all(tasks, loop)
            else:
                on_loop(loop, cancel_all, tasks, loop)

    def abandon(self, loop: asyncio.AbstractEventLoop) -> None:
        """Rejects the awaitables that are pending on a loop that has closed, and forgets the
        futures of that loop: a promise of the sandbox gets another one if it is received again."""
        for completion in tuple(self._completions.values()):
            completion.abandon(loop)
        for number, future in tuple(self._of_sandbox.items()):
            if future.get_loop() is loop:
                self._of_sandbox.pop(number, None)

    def reject(self, run: Run, number: int, future: asyncio.Future[Any]) -> None:
        """Rejects an awaitable that will never be done."""
        self.send(run, number, False, asyncio.CancelledError("the host cancelled it"))
        self._own.pop(number, None)
        self._completions.pop(id(future), None)

    def watched(self) -> list[Watched]:
        """The awaitables of the host that are pending."""
        watched = [completion.watched() for completion in tuple(self._completions.values())]
        return [each for each in watched if each is not None]

    def copy_from(self, other: Promises, watched: list[Watched], run: Run) -> None:
        """Sends the completions of another sandbox's awaitables here, too: this is a copy of it."""
        self._given = other._given
        for number, future, loop in watched:
            completion = _Completion(run, number, future, None, loop)
            self._own[number] = future
            self._completions[id(future)] = completion
            on_loop(loop, future.add_done_callback, completion.callback(future))

    def _watch(
        self,
        run: Run,
        number: int,
        awaitable: Awaitable[Any],
        *,
        is_own_task: bool = False,
        is_call: bool = False,
    ) -> None:
        """Sends the completion of an awaitable to the sandbox, under that number."""
        if run.is_over:
            # A host function has run the loop until then. No coroutine begins any more.
            if asyncio.iscoroutine(awaitable):
                awaitable.close()
            return
        copy = run.context.copy()
        is_called = run.has_started and asyncio.iscoroutine(awaitable)
        task_of = self._guarded(run, awaitable) if is_called else awaitable
        future = copy.run(asyncio.ensure_future, task_of, loop=run.loop)
        self._own[number] = future
        run.visits_loop()
        is_own_task = is_own_task or future is not awaitable
        tasks = self._tasks if is_own_task else None
        completion = _Completion(run, number, future, tasks, run.loop, is_call)
        self._completions[id(future)] = completion
        if is_own_task:
            self._tasks.add(future)
            if isinstance(future, asyncio.Task):
                # The sandbox left it pending if the program ends before. asyncio sets it for tasks
                # of its own, too.
                future._log_destroy_pending = False  # type: ignore[attr-defined]
        future.add_done_callback(completion.callback(future))

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
        future.origin, future.place = run.origin, run.place
        if run.is_over:
            fail(future, RuntimeError(SETTLED))
            return future
        self._of_sandbox[number] = future
        run.visits_loop()
        early = self._early.pop(number, None) if self._early else None
        if early is not None:
            on_loop(run.loop, self.settle, run, number, *early)
        return future

    def is_awaited(self, number: int) -> bool:
        """Whether a promise of the sandbox is pending here."""
        future = self._of_sandbox.get(number)
        return future is not None and not future.done()

    def settle(self, run: Run, number: int, ok: bool, message: Message) -> None:
        """Settles a promise of the sandbox with its completion."""
        future = self._of_sandbox.get(number)
        if future is None:
            if self._early is not None:
                self._early[number] = (ok, message)
            return
        if future.origin is not None and is_elsewhere(future):
            on_loop(future.get_loop(), self.settle, future.origin, number, ok, message)
            return
        # The value may contain the promise itself, so the number is valid until the value is read.
        settle(future, ok, message, future.origin or run)
        self._of_sandbox.pop(number, None)

    def pending(self) -> Iterable[asyncio.Future[Any]]:
        """The promises of the sandbox that have not settled."""
        return self._of_sandbox.values()

    def lose(self, is_lost: Callable[[SandboxFuture], bool], why: Callable[[], Exception]) -> None:
        """Fails promises of the sandbox that will never settle."""
        lost = [(n, future) for n, future in tuple(self._of_sandbox.items()) if is_lost(future)]
        for number, _ in lost:
            self._of_sandbox.pop(number, None)
        fail_everywhere([future for _, future in lost], why)

    def forget_early(self) -> None:
        """Forgets completions whose promises nobody receives any more."""
        if self._early:
            self._early.clear()

    def leave(self) -> None:
        """Forgets the promises of the sandbox in a forked child: they are the parent's."""
        self._of_sandbox = {}

    def clear(self) -> None:
        """Forgets all promises after the run. Its tasks go on, and they keep one another."""
        self._of_sandbox.clear()
        self.forget_early()
        self._own.clear()
        completions, self._completions = self._completions, {}
        for completion in completions.values():
            completion.end()


class _Completion:
    """The callback of an awaitable of the host. It refers to the run until the run has ended."""

    __slots__ = ("_is_call", "_is_shared", "_loop", "_reference", "_tasks", "future", "number")

    def __init__(
        self,
        run: Run,
        number: int,
        future: asyncio.Future[Any],
        tasks: set[asyncio.Future[Any]] | None,
        loop: asyncio.AbstractEventLoop,
        is_call: bool = False,
    ) -> None:
        self._is_call = is_call
        # Whether other cells than that one have it.
        self._is_shared = False
        self._reference: Run | weakref.ref[Run] | None = run.reference
        self._loop = loop
        self.future: asyncio.Future[Any] | None = future
        # For a task that was made here: all such tasks.
        self._tasks = tasks
        self.number = number

    def __call__(self, future: asyncio.Future[Any]) -> None:
        """Sends the completion if the run has not ended."""
        if self._tasks is not None:
            self._tasks.discard(future)
        run = self._run()
        if run is not None:
            run.host_settled(self.number, future)
        elif type(future) in _OWN_FUTURES and not future.cancelled():
            # asyncio logs exceptions that are never retrieved.
            future.exception()

    def call_later(self, _: asyncio.Future[Any]) -> None:
        """The same for a future of another class, which may call back at once or on another thread.
        The sandbox has to receive the promise before its completion."""
        future = self.future
        if future is not None:
            self._loop.call_soon_threadsafe(self, future)

    def callback(self, future: asyncio.Future[Any]) -> Callable[[asyncio.Future[Any]], None]:
        """The method to add to the future."""
        return self if type(future) in _OWN_FUTURES else self.call_later

    def forget(self, run: Run) -> bool:
        """Lets go of the awaitable if it is that run's, and cancels a task that was made here.
        Returns whether it is."""
        future = self.future
        if future is None or self._run() is not run:
            return False
        self.end()
        if self._tasks is not None:
            future.cancel()
        return True

    def share(self, run: Run) -> None:
        """Notes that the awaitable is given to that run, too."""
        if self._run() is not run:
            self._is_shared = True

    def take_back(self, is_lost: Callable[[Run], bool]) -> bool:
        """Lets go of the awaitable if it was given to such a run alone. Returns whether it was."""
        run = self._run()
        is_own_call = self._is_call and self._tasks is not None
        if run is None or self._is_shared or is_own_call or not is_lost(run):
            return False
        self.end()
        return True

    def task_of_call(self, was_ended: Callable[[Run], bool]) -> asyncio.Future[Any] | None:
        """The task, if it was made here for a call of such a run and is pending."""
        run = self._run()
        if run is None or self._tasks is None or not self._is_call or not was_ended(run):
            return None
        return self.future

    def abandon(self, loop: asyncio.AbstractEventLoop) -> None:
        """Rejects the promise if it belongs to that loop."""
        run, future = self._run(), self.future
        if self._loop is loop and run is not None and future is not None:
            self.end()
            run.host_abandoned(self.number, future)

    def watched(self) -> Watched | None:
        """The future with its number and its loop, unless this has ended."""
        future = self.future
        return None if future is None else (self.number, future, self._loop)

    def _run(self) -> Run | None:
        reference = self._reference
        return reference() if isinstance(reference, weakref.ref) else reference

    def end(self) -> None:
        """Lets the run go, and leaves a future that others may keep."""
        future, self._reference, self.future = self.future, None, None
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
        await run.decided()
        begins = run.begins()
    except BaseException:
        coroutine.close()
        raise
    # The coroutine may outlive the run.
    del run
    if begins:
        return await coroutine
    coroutine.close()
    raise RuntimeError(SETTLED)
