"""The way into every system: environments, notebooks, executors and those that follow.

In: options and arguments as the caller wrote them, with functions and awaitables. Out: a handle on
a system, whose calls can be awaited or waited for, and ended, and whose answers are there at once.
The native side checks everything and words all messages.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import threading
import weakref
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, final

from . import _isolane
from ._bridge import Bridge, bridge_of
from ._errors import SandboxError
from ._execution import Execution
from ._futures import finish
from ._isolane import Message
from ._result import CodeExecutionResult
from ._run import CALLS, Run, begin
from ._runtime import FOLDER, Runtime
from ._sync import close_loop, outside_of_loops, wait

if TYPE_CHECKING:
    from ._host_sessions import HostSessions
    from ._page import PageDriver

AsError: TypeAlias = Callable[[Any], BaseException]
"""Makes the exception of a thrown value."""


def as_error(thrown: Any) -> BaseException:
    """The exception of Python for a thrown value: of an error, that with its name."""
    if not isinstance(thrown, SandboxError):
        return RuntimeError(str(thrown))
    match thrown.name:
        case "TypeError":
            return TypeError(thrown.message)
        case "RangeError":
            return ValueError(thrown.message)
        case _:
            return RuntimeError(thrown.message)


@final
class DoorCall(Execution[Any]):
    """A call of a system. Await it for its value, in any event loop and as often as you like.

    Cancelling the task that awaits it ends the call, unless another task awaits it too.
    """

    __slots__ = ("_as_error", "_read")

    def __init__(self, run: Run, as_error: AsError, read: Callable[[Any], Any] | None) -> None:
        super().__init__(run)
        self._as_error = as_error
        self._read = read

    def __await__(self) -> Generator[Any, Any, Any]:
        result = yield from super().__await__()
        return _value_of(result, self._as_error, self._read)


class _Call(Run):
    """A call, which may start any function of the host and await its outcome."""

    def async_called(self, function: int, message: Message, promise: int) -> None:
        self.throws.is_called()
        try:
            value = self._invoke(function, message, promise)
            if inspect.isawaitable(value):
                coroutine = value if inspect.iscoroutine(value) else _awaited(value)
                self._promises.begin(self, promise, coroutine)
            else:
                self._promises.send(self, promise, True, value)
        except BaseException as raised:
            self._promises.send(self, promise, False, raised)
            if isinstance(raised, (KeyboardInterrupt, SystemExit)):
                raise

    def ignores(self, kind: str, is_large: bool) -> bool:
        # News of the call from before its end is heard, also if the message was read after that.
        return super().ignores(kind, is_large and kind not in CALLS)

    def _is_awaited(self, kind: str, what: int) -> bool:
        return super()._is_awaited(kind, what) if kind not in CALLS else not self.terminating

    def adopted(self) -> None:
        self.remote.lose_host(False)

    def orphan(self, reason: str) -> None:
        super().orphan(reason)
        self.remote.lose_host(True)


async def _awaited(value: Awaitable[Any]) -> Any:
    return await value


class _LastingCall(_Call):
    """A call that lasts as long as its system, on the loop that used the system last."""

    def orphan(self, reason: str) -> None:  # noqa: ARG002
        with self.lock:
            self.orphaned = True
        self.remote.lose_host(True)


class Door:
    """An open system."""

    def __init__(
        self,
        system: str,
        options: Mapping[str, Any],
        runtime: Runtime | None = None,
        as_error: AsError = as_error,
        sessions: HostSessions | None = None,
        nests: bool = False,
        parent: Door | None = None,
        names: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        """Opens the system with that name.

        Args:
            system: The name.
            options: The options that are given, without the runtime.
            runtime: The runtime of the system's runs.
            as_error: Makes the exception of a thrown value.
            sessions: Opens the sessions of the system that see values of the caller.
            nests: Whether a function of a system may wait for a call of this one, which needs
                functions of that system again.
            parent: The system whose functions this one may call besides its own.
            names: The names of arguments by methods, for errors.
        """
        if runtime is not None and not isinstance(runtime, Runtime):
            raise TypeError(f"runtime must be a Runtime, got {type(runtime).__name__}")
        self._as_error = as_error
        self._sessions = sessions
        self._nests, self._parent = nests, parent
        self._names = names or {}
        # A page of the host's, whose loop a call that waits does not block.
        self.page: PageDriver | None = None if parent is None else parent.page
        # The runs that last as long as the system: functions among the options belong to the first.
        self._lasting: weakref.WeakSet[Run] = weakref.WeakSet()
        bridge = _running_bridge() or Bridge()
        # A bridge without a loop has no other owner.
        self._bridge = bridge if bridge.own_loop is None else None
        self._run = _LastingCall(bridge, None, None)
        self._default = self._run.default = None if runtime is None else runtime._default

        def opened(number: int) -> _isolane.RunHandle:
            self._native, remote = _isolane.open_system(
                system,
                None if runtime is None else runtime._native,
                FOLDER,
                bridge.mailbox,
                number,
                self._run,
                dict(options),
                None if sessions is None else weakref.ref(sessions),
            )
            return remote

        begin(bridge, self._run, opened)
        self._lasting.add(self._run)

    def call(
        self,
        method: str,
        *args: Any,
        read: Callable[[Any], Any] | None = None,
        uses_page: bool = False,
    ) -> DoorCall:
        """Begins a call of a method on the running event loop. Misuse is raised at once.

        Args:
            method: The method.
            args: Its arguments.
            read: Makes the caller's value of the system's.
            uses_page: Whether the call may have tasks for the page. Then its last argument is a
                function that does them.
        """
        bridge = _running_bridge()
        if bridge is None:
            message = f"{method} needs a running event loop; without one, call {method}_sync"
            raise RuntimeError(message)
        if uses_page:
            args = self._with_page(bridge, args)
        return DoorCall(self._begin(bridge, method, args), self._as_error, read)

    def call_sync(
        self,
        method: str,
        *args: Any,
        read: Callable[[Any], Any] | None = None,
        uses_page: bool = False,
    ) -> Any:
        """As `call`, and waits for the value."""
        with outside_of_loops(f"{method}_sync", method, self.page):
            bridge = Bridge()
            try:
                if uses_page:
                    args = self._with_page(bridge, args)
                with _waiting_on(bridge, self._nests):
                    result = wait(bridge, self._begin(bridge, method, args))
            finally:
                close_loop(bridge)
        return _value_of(result, self._as_error, read)

    def _with_page(self, bridge: Bridge, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arguments with a function that does tasks for the page, if there is one."""
        return args if self.page is None else (*args, self.page.server(bridge))

    def wait_for(self, method: str, *args: Any) -> Any:
        """As `call_sync`, for a call that needs nothing of Python: also while an event loop is
        running on this thread."""
        bridge = Bridge()
        return _value_of(wait(bridge, self._begin(bridge, method, args)), self._as_error, None)

    def answer(self, method: str, *args: Any) -> asyncio.Future[Any]:
        """The answer of a method whose arguments are data. Misuse is raised at once."""
        loop = asyncio.get_running_loop()
        bridge = bridge_of(loop)
        future: asyncio.Future[Any] = loop.create_future()

        number = bridge.on_closed(lambda: finish(future, lambda: self._taken(answer)))
        answer = self._begin_answer(bridge, number, method, args)
        future.add_done_callback(lambda future: answer.cancel() if future.cancelled() else None)
        return future

    def answer_sync(self, method: str, *args: Any) -> Any:
        """As `answer`, and waits for it."""
        with outside_of_loops(f"{method}_sync", method, self.page):
            return self.wait_for_answer(method, *args)

    def wait_for_answer(self, method: str, *args: Any) -> Any:
        """As `answer_sync`, also while an event loop is running on this thread."""
        bridge = Bridge()
        arrived: list[None] = []
        number = bridge.on_closed(lambda: arrived.append(None))
        answer = self._begin_answer(bridge, number, method, args)
        try:
            bridge.wait_until(lambda: bool(arrived))
        except BaseException:
            # Such as a `KeyboardInterrupt`.
            answer.cancel()
            raise
        return self._taken(answer)

    def _begin_answer(
        self, bridge: Bridge, number: int, method: str, args: tuple[Any, ...]
    ) -> _isolane.Answer:
        names = self._names.get(method, ())
        return self._native.answer(bridge.mailbox, number, method, args, names)

    def _taken(self, answer: _isolane.Answer) -> Any:
        is_value, value = answer.take()
        if is_value:
            return value
        raise self._as_error(value)

    def register(self, method: str, *args: Any) -> None:
        """Begins a call that lasts as long as the system, with or without an event loop."""
        bridge = _running_bridge() or self._bridge
        if bridge is None:
            bridge = self._bridge = Bridge()
        self._begin(bridge, method, args, is_lasting=True)

    def ask(self, method: str, *args: Any) -> Any:
        """The answer of a method that has it at once."""
        return self._native.ask(self._run, method, args, self._names.get(method, ()))

    @property
    def native(self) -> _isolane.System:
        """The system, which starts runs and sessions whose requests it amends."""
        return self._native

    def close(self) -> None:
        """Lets go of the system, which ends once no call of it goes on."""
        self._native.close()

    def _begin(
        self, bridge: Bridge, method: str, args: tuple[Any, ...], is_lasting: bool = False
    ) -> Run:
        for lasting in tuple(self._lasting):
            if lasting.bridge() is not bridge and not lasting.has_ended:
                bridge.adopt(lasting)
        self._adopt_from_parents(bridge)
        run = _LastingCall(bridge, None, None) if is_lasting else _Call(bridge, self._native, None)
        run.default = self._default

        def call(number: int) -> _isolane.RunHandle:
            with self._sessions.during(bridge) if self._sessions else contextlib.nullcontext():
                # The native side says the same of `is_lasting`.
                remote, _ = self._native.call(bridge.mailbox, number, run, method, args)
                return remote

        begin(bridge, run, call)
        if is_lasting:
            self._lasting.add(run)
        return run

    def _adopt_from_parents(self, bridge: Bridge) -> None:
        """Has functions of parents be called here, unless a loop or a thread serves them."""
        door = self._parent
        while door is not None:
            for lasting in tuple(door._lasting):
                served = lasting.bridge()
                if not lasting.has_ended and (served is None or not _is_served(served)):
                    bridge.adopt(lasting)
            door = door._parent


class _Waiting(threading.local):
    """The bridges for whose calls this thread waits, the innermost last."""

    def __init__(self) -> None:
        self.bridges: list[Bridge] = []


_waiting = _Waiting()
# The bridges for whose calls any thread waits.
_waited_for: weakref.WeakSet[Bridge] = weakref.WeakSet()


def _is_served(bridge: Bridge) -> bool:
    """Whether a loop runs that handles the events of the bridge, or a thread waits for them."""
    loop = bridge.own_loop
    return bridge in _waited_for or (loop is not None and loop.is_running())


@contextlib.contextmanager
def _waiting_on(bridge: Bridge, nests: bool) -> Generator[None]:
    """This thread waits for a call on the bridge. If `nests`, the bridge serves the functions of
    systems meanwhile whose own bridge is blocked by that."""
    outer = _waiting.bridges[-1] if _waiting.bridges and nests else None
    lent = [] if outer is None else [run for run in outer.runs() if isinstance(run, _LastingCall)]
    for run in lent:
        bridge.adopt(run)
    _waiting.bridges.append(bridge)
    _waited_for.add(bridge)
    try:
        yield
    finally:
        _waiting.bridges.pop()
        _waited_for.discard(bridge)
        if outer is not None:
            for run in lent:
                if not run.has_ended:
                    outer.adopt(run)


def _running_bridge() -> Bridge | None:
    loop = asyncio._get_running_loop()
    return None if loop is None else bridge_of(loop)


def _value_of(
    result: CodeExecutionResult, as_error: AsError, read: Callable[[Any], Any] | None
) -> Any:
    if result.status == "success":
        return result.result if read is None else read(result.result)
    if result.error is not None:
        raise RuntimeError(result.error.message)
    raise as_error(result.result)
