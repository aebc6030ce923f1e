"""One run, on the event loop that started it.

In: the events of its sandbox. Out: answers, the reports so far and the result. Host functions run
on the loop, in a copy of the context of the `run_code` call. No host function of a run starts after
a call of `terminate`. Calls for which a cell does not wait are calls of its session: they start
unless the cell is undone.
"""

from __future__ import annotations

import asyncio
import collections
import contextvars
import threading
import weakref
from collections.abc import Awaitable, Callable, Generator
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from ._futures import SETTLED, fail_all, wake, wake_on
from ._isolane import REPORT_SINK, HostCall, Message, RunHandle, Runtime, System
from ._result import (
    CodeExecutionResult,
    Outcome,
    Received,
    ended_elsewhere,
    read_result,
    unreadable,
)
from ._sandbox import Sandbox
from ._sandbox_function import SandboxFunction
from ._throws import Answered

if TYPE_CHECKING:
    from ._bridge import Bridge
    from ._page import PageDriver

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

CALLS = ("call", "start")
"""The kinds of events that call the host."""

_FORKED = "this process was forked while the run was running; the parent process continues it"


def no_bridge() -> None:
    """In place of a reference to a bridge."""


class Run:
    """The state of a run. Its loop calls all methods, except that any thread may call `terminate`,
    `running` and `reports`."""

    is_cell = False

    def __init__(
        self,
        bridge: Bridge | None,
        owner: Runtime | System | None,
        report: Callable[[Any], Any] | None,
        sandbox: Sandbox | None = None,
    ) -> None:
        # The core closes a runtime or a system that nothing refers to, and ends its runs.
        self._owner = owner
        # None until the run has started.
        self._remote: RunHandle | None = None
        self.bridge: Callable[[], Bridge | None] = no_bridge
        if bridge is not None:
            self.bridge = weakref.ref(bridge)
        self.has_ended = False
        # Empty again when the run has ended.
        self.received = Received()
        # Whether no loop fetches the events of this run.
        self.orphaned = False
        # Reentrant: a finalizer may ask for reports while they are read.
        self.lock = threading.RLock()
        self.waiters: list[Waiter] = []
        self._loop = None if bridge is None else bridge.own_loop
        self._sink = report
        # The encoder reads it.
        self.default: Callable[[Any], Any] | None = None
        self.context = contextvars.copy_context()
        self.terminating = False
        # Whether its code may use a page of the host's.
        self.has_page = False
        self._delivered = 0
        self._fetching = False
        # Whether all reports that have arrived have been read.
        self._fetched = True
        # The outcome once it has been read; None if the run ends in another process.
        self._outcome: Outcome | Exception | None = None
        # An event whose message is being read, and the later events of the run.
        self.held_up: collections.deque[Event] = collections.deque()
        self.sandbox = Sandbox() if sandbox is None else sandbox
        self._promises = self.sandbox.promises
        self._sandbox_functions = self.sandbox.functions
        self.throws = self.sandbox.throws

    @property
    def remote(self) -> RunHandle:
        """The core's handle on the run."""
        assert self._remote is not None, "the run has started"
        return self._remote

    @property
    def has_started(self) -> bool:
        return self._remote is not None

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
        """Ends a run that could not be started, and cancels its tasks."""
        self.has_ended = True
        self._promises.forget(self)
        self._release()

    @property
    def is_over(self) -> bool:
        """Whether nothing in its sandbox can be reached any more."""
        return self.has_ended

    @property
    def reference(self) -> Run | weakref.ref[Run]:
        """The reference to this that an awaitable of the host holds."""
        return self

    @property
    def origin(self) -> Run | None:
        """For a session: the owner of the promises that are received."""
        return None

    @property
    def place(self) -> int:
        """For a session: the place of the cell in the order of the cells."""
        return 0

    @property
    def receiver(self) -> int:
        """The place of the cell that receives answers; 0 if the whole session does."""
        return 0

    # For the handle, on any thread.

    def terminate(self, reason: Any) -> None:
        if not self.has_ended:
            self.terminating = True
            self.remote.terminate(reason)

    @property
    def running(self) -> bool:
        if self.has_ended:
            return False
        return not (self.orphaned or self.remote.forked()) or self.remote.running()

    def read_reports(self) -> None:
        """Reads the reports that have arrived, in the order of the calls. Each is the object that
        the sink gets. A large report appears when it has been read."""
        with self.lock:
            self._fetch_reports()

    def _fetch_reports(self) -> None:
        if self.has_ended or self._sink is None or self._fetching:
            return
        # Reading may run a finalizer that asks for reports. That gets those read so far.
        self._fetching = True
        try:
            known = self.received.reports
            reports, self._fetched = self.remote.reports_since(len(known), self)
            known += reports
        finally:
            self._fetching = False

    # For the encoder and the decoder.

    def host_function(self, number: int) -> Any:
        return self.remote.function(number)

    def sandbox_function(self, number: int, name: str) -> SandboxFunction:
        return self._sandbox_functions.function(self, number, name)

    def sandbox_number(self, function: SandboxFunction) -> int | None:
        return function._number if function._run is self else None

    def host_promise(self, awaitable: Awaitable[Any]) -> int:
        return self._promises.number(self, awaitable)

    def own_promise(self, number: int) -> asyncio.Future[Any] | None:
        return self._promises.own(number)

    def host_settled(self, number: int, future: asyncio.Future[Any]) -> None:
        self._promises.done(self, number, future)

    def host_abandoned(self, number: int, future: asyncio.Future[Any]) -> None:
        self._promises.reject(self, number, future)

    def sandbox_promise(self, number: int) -> asyncio.Future[Any]:
        return self._promises.of_sandbox(self, number)

    # For functions of the sandbox and promises.

    def visits_loop(self) -> None:
        """Notes that an awaitable of the loop stands for one of the sandbox, or the reverse."""

    def was_ended(self) -> bool:
        """Whether somebody or a limit has ended it: no host function of it starts any more."""
        return self.remote.was_ended()

    def refuses(self, _: bool) -> bool:
        """Whether calls are refused: those for which the sandbox does not wait, or the others."""
        return self.terminating

    def is_undecided(self) -> bool:
        """Whether it shows later if calls start for which the sandbox does not wait."""
        return False

    async def decided(self) -> None:
        """Waits until that shows, which is at the end of the run."""
        while self.is_undecided():
            loop = asyncio.get_running_loop()
            waiter = (loop, loop.create_future())
            with self.lock:
                if self.has_ended:
                    return
                self.waiters.append(waiter)
            try:
                await waiter[1]
            finally:
                self.remove_waiter(waiter)

    def awaits_end(self, event: Event) -> bool:
        """Whether an event waits for the end of the run."""
        return event[1] == "start" and self.is_undecided()

    def begins(self) -> bool:
        """Whether a coroutine of the host may begin. Its task asks in its first step."""
        self._promises.beginning -= 1
        return not (self.terminating or self.has_ended or self.was_ended())

    def expect_events(self) -> None:
        bridge = self.bridge()
        if bridge is not None:
            bridge.expect_events()

    def call_sandbox(self, number: int, args: tuple[Any, ...]) -> asyncio.Future[Any]:
        if asyncio.get_running_loop() is not self.loop:
            raise RuntimeError("a function of the sandbox has to be called on the loop of its run")
        return self._sandbox_functions.call(self, number, args)

    def release_sandbox_function(self, number: int, times: int) -> None:
        if not self.has_ended and not self.orphaned:
            self.remote.release_function(number, times)

    # Events.

    def is_ready(self, event: Event) -> bool:
        """Whether an event can be handled. If its message is large, this reads one slice of it."""
        _, kind, what, _, message, _, is_large = event
        if is_large:
            self.throws.received_large()
        if kind == "settled":
            return self._is_outcome_read()
        if kind == "call" and what == REPORT_SINK:
            return self.terminating or self._is_report_read()
        return not is_large or not self._is_awaited(kind, what) or message.ready(self)

    def awaits_turn(self, event: Event) -> bool:
        """Whether an event waits for the next turn of the loop: the end of a run does, once, if
        coroutines of the host have not begun that the sandbox called before."""
        if event[1] != "settled" or self.terminating or self._promises.beginning <= 0:
            return False
        self._promises.beginning = 0
        return True

    def ignores(self, kind: str, is_large: bool) -> bool:
        """Whether an event needs no handling any more: the run is about to end, and only its end
        matters; or it was ended, or settled while the message was read, and no host function starts
        any more."""
        if kind == "start" and self.was_ended():
            return True
        if kind in CALLS and is_large and not self.remote.running():
            return True
        return self.terminating and kind != "call"

    def _is_awaited(self, kind: str, what: int) -> bool:
        """Whether the message of an event is still needed."""
        if self.terminating:
            return False
        if kind in CALLS:
            return self.remote.running()
        if kind == "function":
            return self._sandbox_functions.is_awaited(what)
        return self._promises.is_awaited(what)

    def _is_report_read(self) -> bool:
        with self.lock:
            if self._delivered >= len(self.received.reports):
                self._fetch_reports()
            return self._fetched or self._delivered < len(self.received.reports)

    def _is_outcome_read(self) -> bool:
        with self.lock:
            try:
                outcome = self.remote.take_result(len(self.received.reports), self)
            except Exception as raised:  # The run settles with a result that says so.
                self._outcome = raised
                return True
        if outcome is False:
            return False
        self._outcome = outcome
        return True

    def called(self, function: int, message: Message, call: HostCall) -> None:
        """The sandbox called a host function and waits for the answer."""
        answered = self.throws.number_call()
        # No local variable holds the kept exception: its traceback would hold this frame, and the
        # frame the exception.
        try:
            is_report = function == REPORT_SINK
            value = self._report(call) if is_report else self._invoke(function, message)
        except (KeyboardInterrupt, SystemExit) as raised:
            self.remote.reply(call, function, False, raised, self)
            raise
        except BaseException as raised:
            self.throws.keep(answered, self.remote.reply(call, function, False, raised, self))
        else:
            self.throws.keep(answered, self.remote.reply(call, function, True, value, self))

    def async_called(self, function: int, message: Message, promise: int) -> None:
        """The sandbox called a coroutine function of the host and continues."""
        self.throws.is_called()
        try:
            coroutine = self._invoke(function, message, promise)
            # A compromised worker may start a function that is not a coroutine function.
            self._promises.begin(self, promise, coroutine)
        except BaseException as raised:
            self._promises.send(self, promise, False, raised)
            if isinstance(raised, (KeyboardInterrupt, SystemExit)):
                raise

    def function_settled(self, call: int, ok: bool, message: Message) -> None:
        self._sandbox_functions.settle(self, call, ok, message)

    def promise_settled(self, number: int, ok: bool, message: Message) -> None:
        self._promises.settle(self, number, ok, message)

    def settled(self) -> None:
        """Ends the run with its outcome, which has been read."""
        outcome, self._outcome = self._outcome, None
        reports = self.received.reports.copy()
        if outcome is None:
            self.end(ended_elsewhere(_FORKED, reports))
        elif isinstance(outcome, Exception):
            self.end(unreadable(outcome, reports))
        else:
            result = read_result(outcome, reports, self.find_throw)
            if self.gives_calls_up(result):
                self._promises.cancel_calls(lambda run: run is self)
            self.end(result)

    def gives_calls_up(self, result: CodeExecutionResult) -> bool:
        """Whether the calls of the run are cancelled, because the run was ended. A run that ends by
        itself lets them go on."""
        return result.status in ("terminated", "memory")

    def find_throw(self, answered: Answered) -> BaseException | None:
        """The exception that answered a call, or that a promise was rejected with."""
        return self.throws.find(answered)

    def end(self, result: CodeExecutionResult) -> None:
        """Hands over the result, wakes all waiters, and releases the objects of the run."""
        with self.lock:
            self.has_ended = True
            received, self.received = self.received, Received()
            received.reports = result.reports.copy()
            received.result = result
            waiters, self.waiters = self.waiters, []
        for loop, waiter in waiters:
            if loop is self._loop:
                wake(waiter)
            else:
                wake_on(loop, waiter)
        self._leave(result)

    def _leave(self, _: CodeExecutionResult) -> None:
        """Releases the objects of the run."""
        pending = (*self._sandbox_functions.pending(), *self._promises.pending())
        fail_all(collections.deque(pending), self._loop)
        self._sandbox_functions.clear()
        self.held_up.clear()
        self.remote.end()
        self._release()

    def _release(self) -> None:
        """Releases all that is large. The functions and the exceptions of a run may keep it."""
        self._owner = None
        self._sink = None
        self.default = None
        self._outcome = None
        self.context = contextvars.Context()
        self.throws.clear()
        self._promises.clear()

    def until_ended(self, loop: asyncio.AbstractEventLoop) -> Generator[Any, Any, None]:
        """Waits for the end of the run, on its own loop."""
        with self.lock:
            if self.has_ended or self.orphaned or loop is not self._loop:
                return
            waiter = (loop, loop.create_future())
            self.waiters.append(waiter)
        try:
            yield from waiter[1]
        finally:
            self.remove_waiter(waiter)

    def remove_waiter(self, waiter: Waiter) -> bool:
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
        self.orphaned = False

    def adopted(self) -> None:
        """Called when the events come to another loop."""

    def orphan(self, reason: str) -> None:
        """Ends the run when its loop has closed, and wakes the waiters on other loops. One of these
        loops takes the run over."""
        self.terminate(reason)
        with self.lock:
            self.orphaned = True
            waiters = tuple(self.waiters)
        for loop, waiter in waiters:
            if loop is not self._loop:
                wake_on(loop, waiter)

    def fork(self, own_thread: bool) -> None:
        """Ends the run in a forked child."""
        # The lock may be held by a thread that exists only in the parent, as do the waiters on
        # other threads.
        self.lock = threading.RLock()
        if not own_thread:
            self.waiters = []
            self._sandbox_functions.leave()
            self._promises.leave()
        if not self.has_ended:
            self.end(ended_elsewhere(_FORKED, self.received.reports.copy()))

    def check_fork(self) -> None:
        """Ends the run in a child that was forked without a call of the fork handlers."""
        if not self.has_ended and self.remote.forked():
            self.fork(own_thread=False)

    def _invoke(self, number: int, message: Message, promise: int | None = None) -> Any:
        refuses = self.refuses(promise is not None)
        function = None if refuses else self.remote.function(number, promise)
        if function is None:
            raise RuntimeError(SETTLED)
        return self.context.copy().run(function, *message.read(self))

    def _report(self, _: HostCall) -> Any:
        """Passes the next report to the sink."""
        if self.terminating or self._sink is None:
            raise RuntimeError(SETTLED)
        # No local variable holds the report: an exception of the sink may keep this frame.
        return self.context.copy().run(self._sink, self._next_report())

    def _next_report(self) -> Any:
        """The next report for the sink. It has been read, perhaps for the handle."""
        index = self._delivered
        self._delivered += 1
        with self.lock:
            if index >= len(self.received.reports):
                self._fetch_reports()
            return self.received.reports[index]


def begin(
    bridge: Bridge, run: Run, start: Callable[[int], RunHandle], page: PageDriver | None = None
) -> RunHandle:
    """Starts a run with a native call that takes its number. From then on it receives its events,
    and `page` the tasks of its code."""
    number = bridge.number()
    try:
        remote = start(number)
    except BaseException:
        run.failed()
        raise
    run.began(remote)
    if page is not None:
        run.has_page = True
        page.attach(bridge, remote, run.is_cell)
    bridge.attach(number, run)
    return remote
