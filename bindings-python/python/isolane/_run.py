"""One run, on the event loop that started it.

In: the events of its sandbox. Out: answers, the reports so far and the result. Host functions run
on the loop, in a copy of the context of the `run_code` call. No host function starts after a call
of `terminate`.
"""

from __future__ import annotations

import asyncio
import collections
import contextlib
import contextvars
import sys
import threading
import weakref
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from ._errors import SandboxError
from ._isolane import REPORT_SINK, HostCall, Message, RunHandle
from ._result import CodeExecutionResult, Outcome, ended_elsewhere, read_result, unreadable
from ._sandbox_function import SandboxFunction
from ._throws import Answered, Throws

if TYPE_CHECKING:
    from ._bridge import Bridge

Waiter: TypeAlias = tuple[asyncio.AbstractEventLoop, asyncio.Future[None]]
"""A loop, and a future of that loop which the end of the run resolves."""

Event: TypeAlias = tuple[
    int,
    Literal["call", "start", "function", "promise", "settled", "closed"],
    int,
    bool,
    Any,
    Any,
    bool,
]
"""The number of the run or of the closing runtime; the kind; the number of the function, the call
or the promise; whether the message is a value or a thrown value; the message; the call to answer or
the promise to settle; whether the message is large. A kind may lack some of them."""

# Whether a new task can begin before the next turn of the loop.
_EAGER = sys.version_info >= (3, 12)

# The futures of asyncio: they run their callbacks in a later turn of the loop.
_OWN_FUTURES = (asyncio.Future, asyncio.Task)

# How many futures fail in one turn of the loop.
_MOST_FUTURES = 1000

_SETTLED = "the run has settled; nothing in its sandbox can be called any more"
_FORKED = "this process was forked while the run was running; the parent process continues it"


class Run:
    """The state of a run. Its loop calls all methods, except that any thread may call `terminate`,
    `running` and `reports`."""

    def __init__(self, bridge: Bridge, report: Callable[[Any], Any] | None) -> None:
        # None until the run has started.
        self._remote: RunHandle | None = None
        self.bridge = weakref.ref(bridge)
        self.result: CodeExecutionResult | None = None
        # Whether no loop fetches the events of this run.
        self.lost = False
        # Reentrant: a finalizer may ask for reports while they are read.
        self.lock = threading.RLock()
        self.waiters: list[Waiter] = []
        self._loop = bridge.own_loop
        self._sink = report
        self._context = contextvars.copy_context()
        self.terminating = False
        self._reports: list[Any] = []
        self._delivered = 0
        self._fetching = False
        # Whether all reports that have arrived have been read.
        self._fetched = True
        # The outcome once it has been read; None if the run ends in another process.
        self._outcome: Outcome | Exception | None = None
        # An event whose message is being read, and the later events of the run.
        self.held_up: collections.deque[Event] = collections.deque()
        # Pending promises of the host. There may be no other reference to them.
        self._own_promises: dict[int, asyncio.Future[Any]] = {}
        # Their numbers, by identity.
        self._numbers: dict[int, int] = {}
        # The tasks among them that were made here, of coroutines. They may outlive the run.
        self._tasks: set[asyncio.Future[Any]] = set()
        self._promises_given = 0
        self._sandbox_promises: dict[int, asyncio.Future[Any]] = {}
        self._sandbox_functions: weakref.WeakValueDictionary[int, SandboxFunction] = (
            weakref.WeakValueDictionary()
        )
        self._calls: dict[int, asyncio.Future[Any]] = {}
        self._calls_made = 0
        self._throws = Throws()

    @property
    def remote(self) -> RunHandle:
        """The core's handle on the run."""
        assert self._remote is not None, "the run has started"
        return self._remote

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The loop of the run's host functions and promises."""
        if self._loop is None:
            bridge = self.bridge()
            assert bridge is not None, "the thread that waits for a run holds its bridge"
            self._loop = bridge.loop
        return self._loop

    def began(self, remote: RunHandle) -> None:
        """Records that the run has started."""
        self._remote = remote

    def failed(self) -> None:
        """Cancels the tasks of a run that could not be started."""
        for task in tuple(self._tasks):
            task.cancel()

    # For the handle, on any thread.

    def terminate(self, reason: Any) -> None:
        if self.result is None:
            self.terminating = True
            self.remote.terminate(reason)

    @property
    def running(self) -> bool:
        if self.result is not None:
            return False
        return not (self.lost or self.remote.forked()) or self.remote.running()

    @property
    def reports(self) -> list[Any]:
        """All reports so far, in the order of the calls. Each is the object that the sink gets. A
        large report appears when it has been read."""
        with self.lock:
            self._fetch_reports()
            return self._reports.copy()

    def _fetch_reports(self) -> None:
        if self.result is not None or self._sink is None or self._fetching:
            return
        # Reading may run a finalizer that asks for reports. That gets those read so far.
        self._fetching = True
        try:
            reports, self._fetched = self.remote.reports_since(len(self._reports), self)
            self._reports += reports
        finally:
            self._fetching = False

    # For the encoder and the decoder.

    def host_function(self, number: int) -> Any:
        return self.remote.function(number)

    def sandbox_function(self, number: int, name: str) -> SandboxFunction:
        known = self._sandbox_functions.get(number)
        if known is not None:
            known._times += 1
            return known
        function = SandboxFunction(self, number, name)
        self._sandbox_functions[number] = function
        return function

    def sandbox_number(self, function: SandboxFunction) -> int | None:
        return function._number if function._run is self else None

    def host_promise(self, awaitable: Awaitable[Any]) -> int:
        known = self._numbers.get(id(awaitable))
        if known is not None:
            return known
        self._promises_given += 1
        self._watch(self._promises_given, awaitable)
        return self._promises_given

    def _watch(self, number: int, awaitable: Awaitable[Any]) -> None:
        """Sends the completion of an awaitable to the sandbox, under that number."""
        copy = self._context.copy()
        future = copy.run(asyncio.ensure_future, awaitable, loop=self.loop)
        self._own_promises[number] = future
        self._numbers[id(future)] = number
        if future is not awaitable:
            self._tasks.add(future)
        if type(future) in _OWN_FUTURES:
            future.add_done_callback(lambda future: self._host_promise_done(number, future))
            return
        # A future of another class may call back at once or on another thread. The sandbox has to
        # receive the promise before its completion.
        tell, loop = self._host_promise_done, self.loop
        future.add_done_callback(lambda _: loop.call_soon_threadsafe(tell, number, future))

    def _begin(self, number: int, coroutine: Any) -> None:
        """As `_watch`, with an eager task if Python has them. Then a coroutine that does not wait
        takes no turn of the loop."""
        loop = self.loop
        runs_here = asyncio._get_running_loop() is loop
        if not (_EAGER and runs_here and loop.get_task_factory() is None):
            self._watch(number, coroutine)
            return
        eager: Any = asyncio.Task
        task = self._context.copy().run(eager, coroutine, loop=loop, eager_start=True)
        if task.done():
            self._host_promise_done(number, task)
        else:
            self._tasks.add(task)
            self._watch(number, task)

    def _host_promise_done(self, number: int, future: asyncio.Future[Any]) -> None:
        self._tasks.discard(future)
        ended: BaseException | None = None
        try:
            ok, value = _outcome(future)
        except BaseException as raised:  # A future of another class may raise anything.
            ok, value = False, raised
            ended = raised if isinstance(raised, (KeyboardInterrupt, SystemExit)) else None
        if self.result is None and self._remote is not None:
            # The completion may contain the promise itself, so the promise keeps its number until
            # that is sent.
            self._settle_promise(number, ok, value)
            self._expect_events()
        self._throws.settled(number)
        self._own_promises.pop(number, None)
        self._numbers.pop(id(future), None)
        if ended is not None:
            raise ended

    def _settle_promise(self, number: int, ok: bool, value: Any) -> None:
        answered: Answered = ("promise", number)
        self._throws.keep(answered, self.remote.settle_promise(number, ok, value, self))

    def own_promise(self, number: int) -> asyncio.Future[Any] | None:
        return self._own_promises.get(number)

    def sandbox_promise(self, number: int) -> asyncio.Future[Any]:
        known = self._sandbox_promises.get(number)
        if known is not None:
            return known
        future = self._future()
        if self.result is None:
            self._sandbox_promises[number] = future
        else:
            _fail(future, RuntimeError(_SETTLED))
        return future

    # For functions of the sandbox.

    def call_sandbox(self, number: int, args: tuple[Any, ...]) -> asyncio.Future[Any]:
        if asyncio.get_running_loop() is not self.loop:
            raise RuntimeError("a function of the sandbox has to be called on the loop of its run")
        future = self._future()
        if self.result is not None:
            _fail(future, RuntimeError(_SETTLED))
            return future
        self._calls_made += 1
        call = self._calls_made
        self.remote.call_function(number, call, args, self)
        self._calls[call] = future
        self._expect_events()
        return future

    def release_sandbox_function(self, number: int, times: int) -> None:
        if self.result is None and not self.lost:
            self.remote.release_function(number, times)

    # Events.

    def is_ready(self, event: Event) -> bool:
        """Whether an event can be handled. If its message is large, this reads one slice of it."""
        _, kind, what, _, message, _, is_large = event
        if kind == "settled":
            return self._is_outcome_read()
        if kind == "call" and what == REPORT_SINK:
            return self.terminating or self._is_report_read()
        return not is_large or not self._is_awaited(kind, what) or message.ready(self)

    def _is_awaited(self, kind: str, what: int) -> bool:
        """Whether the message of an event is still needed."""
        if self.terminating:
            return False
        if kind in ("call", "start"):
            return self.remote.running()
        futures = self._calls if kind == "function" else self._sandbox_promises
        future = futures.get(what)
        return future is not None and not future.done()

    def _is_report_read(self) -> bool:
        with self.lock:
            if self._delivered >= len(self._reports):
                self._fetch_reports()
            return self._fetched or self._delivered < len(self._reports)

    def _is_outcome_read(self) -> bool:
        with self.lock:
            try:
                outcome = self.remote.take_result(len(self._reports), self)
            except Exception as raised:  # The run settles with a result that says so.
                self._outcome = raised
                return True
        if outcome is False:
            return False
        self._outcome = outcome
        return True

    def called(self, function: int, message: Message, call: HostCall, is_large: bool) -> None:
        """The sandbox called a host function and waits for the answer."""
        answered = self._throws.number_call()
        before = self._promises_given
        # No local variable holds the kept exception: its traceback would hold this frame, and the
        # frame the exception.
        try:
            is_report = function == REPORT_SINK
            value = self._report() if is_report else self._invoke(function, message)
        except (KeyboardInterrupt, SystemExit) as raised:
            self.remote.reply(call, False, raised, self)
            raise
        except BaseException as raised:
            self._throws.keep(answered, self.remote.reply(call, False, raised, self), is_large)
        else:
            self._throws.keep(answered, self.remote.reply(call, True, value, self), is_large)
            if is_large:
                self._throws.answers_large(range(before + 1, self._promises_given + 1))

    def async_called(self, function: int, message: Message, promise: int) -> None:
        """The sandbox called a coroutine function of the host and continues."""
        self._throws.is_called()
        try:
            coroutine = self._invoke(function, message)
            # A compromised worker may start a function that is not a coroutine function.
            self._begin(promise, coroutine)
        except BaseException as raised:
            self._settle_promise(promise, False, raised)
            if isinstance(raised, (KeyboardInterrupt, SystemExit)):
                raise

    def function_settled(self, call: int, ok: bool, message: Message) -> None:
        _settle(self._calls.pop(call, None), ok, message, self)

    def promise_settled(self, number: int, ok: bool, message: Message) -> None:
        # The value may contain the promise itself, so the number is valid until the value is read.
        _settle(self._sandbox_promises.get(number), ok, message, self)
        self._sandbox_promises.pop(number, None)

    def settled(self) -> None:
        """Ends the run with its outcome, which has been read."""
        outcome, self._outcome = self._outcome, None
        reports = self._reports.copy()
        if outcome is None:
            self.end(ended_elsewhere(_FORKED, reports))
        elif isinstance(outcome, Exception):
            self.end(unreadable(outcome, reports))
        else:
            self.end(read_result(outcome, reports, self._throws))

    def end(self, result: CodeExecutionResult) -> None:
        """Keeps the result, wakes all waiters, and releases the objects of the run."""
        with self.lock:
            self.result = result
            self._reports = result.reports.copy()
            waiters, self.waiters = self.waiters, []
        for loop, waiter in waiters:
            if loop is self._loop:
                _wake(waiter)
            else:
                _tell(loop, waiter)
        futures = collections.deque((*self._calls.values(), *self._sandbox_promises.values()))
        _disappoint(futures, self._loop)
        self._calls.clear()
        self._sandbox_promises.clear()
        self._own_promises.clear()
        self._numbers.clear()
        self.held_up.clear()
        self._throws.clear()
        self.remote.end()

    def give_up(self, waiter: Waiter) -> bool:
        """Removes a waiter; returns whether there is no other one."""
        with self.lock:
            if waiter in self.waiters:
                self.waiters.remove(waiter)
            return not self.waiters

    def move(self, bridge: Bridge, number: int) -> None:
        """Moves the run to another loop, because its own does not run any more."""
        self.held_up = collections.deque((number, *event[1:]) for event in self.held_up)
        self.bridge = weakref.ref(bridge)
        self._loop = bridge.own_loop
        self.lost = False

    def lose(self, reason: str) -> None:
        """Ends the run when its loop has closed, and wakes the waiters on other loops. One of these
        loops takes the run over."""
        self.terminate(reason)
        with self.lock:
            self.lost = True
            waiters = tuple(self.waiters)
        for loop, waiter in waiters:
            if loop is not self._loop:
                _tell(loop, waiter)

    def fork(self, own_thread: bool) -> None:
        """Ends the run in a forked child."""
        # The lock may be held by a thread that exists only in the parent, as do the waiters on
        # other threads.
        self.lock = threading.RLock()
        if not own_thread:
            self.waiters = []
            self._calls = {}
            self._sandbox_promises = {}
        if self.result is None:
            self.end(ended_elsewhere(_FORKED, self._reports.copy()))

    def check_fork(self) -> None:
        """Ends the run in a child that was forked without a call of the fork handlers."""
        if self.result is None and self.remote.forked():
            self.fork(own_thread=False)

    def _invoke(self, number: int, message: Message) -> Any:
        function = None if self.terminating else self.remote.function(number)
        if function is None:
            raise RuntimeError(_SETTLED)
        return self._context.copy().run(function, *message.read(self))

    def _report(self) -> Any:
        """Passes the next report to the sink. It has been read, perhaps for the handle."""
        if self.terminating or self._sink is None:
            raise RuntimeError(_SETTLED)
        index = self._delivered
        self._delivered += 1
        with self.lock:
            if index >= len(self._reports):
                self._fetch_reports()
            value = self._reports[index]
        return self._context.copy().run(self._sink, value)

    def _future(self) -> asyncio.Future[Any]:
        return self.loop.create_future()

    def _expect_events(self) -> None:
        bridge = self.bridge()
        if bridge is not None:
            bridge.expect_events()


def _outcome(future: asyncio.Future[Any]) -> tuple[bool, Any]:
    if future.cancelled():
        try:
            future.result()
        except asyncio.CancelledError as cancelled:
            if cancelled.args:
                return False, cancelled
        return False, asyncio.CancelledError("the host cancelled it")
    raised = future.exception()
    return (True, future.result()) if raised is None else (False, raised)


def _settle(future: asyncio.Future[Any] | None, ok: bool, message: Message, run: Run) -> None:
    if future is None or future.done():
        return
    try:
        value = message.read(run)
        if not ok and not isinstance(value, SandboxError):
            value = SandboxError.of(value)
    except Exception as failure:
        _fail(future, failure)
        return
    if ok:
        future.set_result(value)
    else:
        _fail(future, value)


def _fail(future: asyncio.Future[Any], raised: BaseException) -> None:
    future.set_exception(raised)
    # asyncio logs exceptions that are never retrieved. This one is the sandbox's, not the host's.
    future.exception()


def _disappoint(
    futures: collections.deque[asyncio.Future[Any]], loop: asyncio.AbstractEventLoop | None
) -> None:
    """Fails futures that will never settle, some in each turn of the loop: there may be many."""
    for _ in range(min(len(futures), _MOST_FUTURES)):
        future = futures.popleft()
        if not future.done() and not future.get_loop().is_closed():
            _fail(future, RuntimeError(_SETTLED))
    if futures and loop is not None and not loop.is_closed():
        loop.call_soon(_disappoint, futures, loop)


def _wake(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def _tell(loop: asyncio.AbstractEventLoop, future: asyncio.Future[None]) -> None:
    # Nothing waits on a loop that has closed.
    with contextlib.suppress(RuntimeError):
        loop.call_soon_threadsafe(_wake, future)
