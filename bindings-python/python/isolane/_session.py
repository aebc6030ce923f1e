"""Sessions: isolates that stay, in which cells run one after another."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeAlias, TypeVar, cast, final

from . import _isolane
from ._bridge import Bridge, bridge_of
from ._cell import Cell
from ._closing import AsyncClosing
from ._execution import CellExecution, Execution, KitCellExecution
from ._futures import finish
from ._options import (
    as_method,
    bound,
    call_arguments,
    cell_arguments,
    default_of,
    session_arguments,
    update_arguments,
)
from ._promises import Watched
from ._result import AnyCellResult, CellExecutionResult, KitCellResult
from ._run import begin
from ._session_host import SessionHost
from ._sync import close_loop, outside_of_loops, wait

if TYPE_CHECKING:
    import weakref

    from ._runtime import Runtime

NameKind: TypeAlias = Literal[
    "const", "let", "var", "function", "class", "import", "enum", "namespace"
]
"""The kind of declaration that a name is from."""

Value = TypeVar("Value")
Handle = TypeVar("Handle", bound=Execution[Any])
Result = TypeVar("Result", bound=CellExecutionResult)
Own = TypeVar("Own", bound="AnySession[Any, Any]")

# A method of the native session that starts a cell.
_Start: TypeAlias = Callable[[_isolane.Mailbox, int, Any, dict[str, object]], _isolane.RunHandle]

# A method of the native session whose answer arrives later.
_Ask: TypeAlias = Callable[[_isolane.Mailbox, int], _isolane.Answer]


@dataclass(frozen=True)
class SessionName:
    """A name that cells of a session have declared."""

    name: str
    kind: NameKind
    """The kind of its latest declaration."""
    type: str
    """The `typeof` of its value, or the class for objects, such as `Map`; `uninitialized` if it has
    no value yet."""
    size: int | None = None
    """The length of an array or a string, the size of a Map or Set; `None` for all else."""


class AnySession(AsyncClosing, Generic[Handle, Result]):
    """An isolate that stays: its cells run one after another, and find what earlier ones left. A
    context manager for `with` and `async with`.

    It belongs to no event loop: its cells may come from any thread and any loop. A session that
    nothing refers to is closed; a function of its sandbox refers to it.
    """

    __slots__ = ("__weakref__", "_host")

    _host: SessionHost

    def _handle(self, cell: Cell) -> Handle:
        raise NotImplementedError

    @as_method(cell_arguments)
    def run(self, *args: Any, **options: Any) -> Handle:
        """Runs `source` as the next cell.

        Returns at once; await the handle for the result. Host functions run on the calling event
        loop, each in a copy of the present context variables.

        Args:
            source: JavaScript or TypeScript: the code of a module. Its value is that of `return`,
                of `export default`, or of its last statement.
            filename: The label of the cell in stacks and errors. Default `<cell N>`.
            language: In place of the session's.
            report: In place of the session's.
            timeout_ms: The time after which the cell is ended. It counts from the start of the
                cell, and not while the cell waits in the queue.

        Raises:
            TypeError, ValueError: an option is not valid; nothing has started.
            RuntimeError: the session is closed; or no event loop is running here (use `run_sync`).
        """
        arguments = bound(cell_arguments, "run", args, options)
        return self._start(self._host.native.run, arguments, "run")

    @as_method(cell_arguments)
    def run_sync(self, *args: Any, **options: Any) -> Result:
        """Runs `source` as the next cell and waits for the result: `run` for callers without an
        event loop.

        Host functions run on the calling thread; coroutine functions run there on a loop of their
        own. Those of their calls that are unanswered at the end of the cell are cancelled, and
        reject in the cell that runs next.

        Args:
            source, filename, language, report, timeout_ms: as for `run`.

        Raises:
            TypeError, ValueError: as for `run`.
            RuntimeError: the session is closed; or an event loop is running on this thread (await
                `run`).
        """
        arguments = bound(cell_arguments, "run_sync", args, options)
        return self._wait(self._host.native.run, arguments, "run")

    @as_method(call_arguments)
    def call(self, *args: Any, **options: Any) -> Handle:
        """Calls a function that a cell declared or imported, as a cell of its own.

        Args:
            name: The name of the function.
            args: The arguments; they are cloned.
            report, timeout_ms: as for `run`.

        Raises:
            TypeError, ValueError, RuntimeError: as for `run`.
            SerializationError: an argument cannot be cloned.
        """
        arguments = bound(call_arguments, "call", args, options)
        return self._start(self._host.native.call, arguments, "call")

    @as_method(call_arguments)
    def call_sync(self, *args: Any, **options: Any) -> Result:
        """As `call`, and waits for the result as `run_sync` does.

        Args:
            name, args, report, timeout_ms: as for `call`.

        Raises:
            TypeError, ValueError, SerializationError: as for `call`.
            RuntimeError: as for `run_sync`.
        """
        arguments = bound(call_arguments, "call_sync", args, options)
        return self._wait(self._host.native.call, arguments, "call")

    @as_method(update_arguments)
    def update(self, **options: Any) -> None:
        """Hands over more, from the next cell on that starts.

        Args:
            globals, imports, modules: as for the session. They are added, or replace those of the
                same name; `None` takes the name away.

        Raises:
            TypeError, SerializationError: as for the session; nothing has changed.
            RuntimeError: the session is closed.
        """
        self._host.update(bound(update_arguments, "update", (), options))

    def names(self) -> asyncio.Future[list[SessionName]]:
        """The names that cells have declared, in the order of their first declarations, as soon as
        the cells before are done. No getter and no trap runs for it.

        Raises:
            SandboxError: `SessionReset` or `SessionClosed`, if the session is reset or closed
                before that.
            RuntimeError: the session is closed.
        """
        return self._ask(self._host.native.names, _names)

    def names_sync(self) -> list[SessionName]:
        """As `names`, and waits for it."""
        with outside_of_loops("names_sync", "names", self._host.page):
            return _names(self._ask_sync(self._host.native.names))

    def reset(self) -> asyncio.Future[None]:
        """Ends the cells that run or wait, as `terminated` with the name `SessionReset`, and
        forgets all names and modules. Everything that was handed over stays."""
        place = self._host.place
        return self._ask(self._host.native.reset, lambda _: self._host.was_reset(place))

    def reset_sync(self) -> None:
        """As `reset`, and waits for it."""
        with outside_of_loops("reset_sync", "reset", self._host.page):
            place = self._host.place
            self._ask_sync(self._host.native.reset)
            self._host.was_reset(place)

    def fork(self: Own) -> asyncio.Future[Own]:
        """A second session with the same state, as soon as the cells before are done. From then on
        neither sees the other. Host functions are the same host functions.

        Raises:
            RuntimeError: calls of the host are unanswered, or the session is closed.
            SandboxError: as for `names`.
        """
        watched = self._host.watched()
        return self._ask(self._host.native.fork, lambda native: self._copy(native, watched))

    def fork_sync(self: Own) -> Own:
        """As `fork`, and waits for it.

        Raises:
            RuntimeError: as for `fork`.
        """
        with outside_of_loops("fork_sync", "fork", self._host.page):
            watched = self._host.watched()
            return self._copy(self._ask_sync(self._host.native.fork), watched)

    def close(self) -> None:
        """Ends the cells that run or wait, as `terminated` with the name `SessionClosed`, and frees
        everything. May be called again."""
        bridge = Bridge()
        closed: list[None] = []
        number = bridge.on_closed(lambda: closed.append(None))
        self._host.native.close(bridge.mailbox, number)
        bridge.wait_until(lambda: bool(closed))
        self._host.finish()

    async def aclose(self) -> None:
        """As `close`, without blocking the event loop."""
        bridge = bridge_of(asyncio.get_running_loop())
        closed = asyncio.Event()
        self._host.native.close(bridge.mailbox, bridge.on_closed(closed.set))
        await closed.wait()
        self._host.finish()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {'open' if self._host.native.running() else 'closed'}>"

    def _start(self, start: _Start, arguments: dict[str, Any], name: str) -> Handle:
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            message = f"{name} needs a running event loop; without one, call {name}_sync"
            raise RuntimeError(message) from None
        return self._handle(self._begin(bridge_of(loop), start, arguments))

    def _wait(self, start: _Start, arguments: dict[str, Any], name: str) -> Result:
        with outside_of_loops(f"{name}_sync", name, self._host.page):
            bridge = Bridge()
            try:
                cell = self._begin(bridge, start, arguments)
                # The exception of a host function refers to the frames that wait.
                arguments.clear()
                return cast(Result, wait(bridge, cell))
            finally:
                close_loop(bridge)

    def _begin(self, bridge: Bridge, start: _Start, arguments: dict[str, Any]) -> Cell:
        cell = Cell(bridge, self._host, arguments["report"])
        begin(
            bridge,
            cell,
            lambda number: start(bridge.mailbox, number, cell, arguments),
            self._host.page,
        )
        return cell

    def _ask(self, ask: _Ask, read: Callable[[Any], Value]) -> asyncio.Future[Value]:
        loop = asyncio.get_running_loop()
        bridge = bridge_of(loop)
        future: asyncio.Future[Value] = loop.create_future()

        number = bridge.on_closed(lambda: finish(future, lambda: read(answer.take())))
        answer = ask(bridge.mailbox, number)
        return future

    def _ask_sync(self, ask: _Ask) -> Any:
        bridge = Bridge()
        arrived: list[None] = []
        answer = ask(bridge.mailbox, bridge.on_closed(lambda: arrived.append(None)))
        bridge.wait_until(lambda: bool(arrived))
        return answer.take()

    def _copy(self: Own, native: _isolane.Session, watched: list[Watched]) -> Own:
        return _session_of(type(self), self._host.copy(native, watched))


@final
class Session(AnySession[CellExecution, AnyCellResult]):
    """An isolate that stays: its cells run one after another, and find what earlier ones left. A
    context manager for `with` and `async with`.

    It belongs to no event loop: its cells may come from any thread and any loop. A session that
    nothing refers to is closed; a function of its sandbox refers to it.
    """

    __slots__ = ()

    @as_method(session_arguments)
    def __init__(self, **options: Any) -> None:
        """Opens a session of the default runtime.

        Args:
            imports, modules, globals: as for `run_code`, for all cells. `update` changes them.
            language: That of cells without one of their own.
            memory_limit_bytes: Limit on all memory that the session holds. Default 128 MiB.
            report: As for `run_code`, for all cells without one of their own.
            cells: With `queue`, cells run one at a time, in the order of their calls. With
                `interleave`, the next one starts as soon as those before wait for the host.
            checkpoint_bytes: The size of the largest state that a session keeps a copy of while a
                cell runs, so that a cell which is ended can be undone. Default 64 MiB; 0 keeps
                none. Without the copy the session is reset instead.
            default: As for `run_code`: converts values that cannot be cloned.

        Raises:
            TypeError, ValueError: an option is not valid; nothing is open.
            SerializationError: a value cannot be cloned; the message has its path.
            RuntimeError: the runtime is closed, or it isolates by process and `cells` is
                `interleave`.
        """
        self._host = _open(None, None, bound(session_arguments, "Session", (), options))

    def _handle(self, cell: Cell) -> CellExecution:
        return CellExecution(cell)


@final
class KitSession(AnySession[KitCellExecution, KitCellResult]):
    """A session whose cells have the capabilities of a kit, which opens it: see `Kit.session`. All
    that holds for a `Session` holds for it, too."""

    __slots__ = ()

    def _handle(self, cell: Cell) -> KitCellExecution:
        return KitCellExecution(cell)


def open_session(
    runtime: Runtime, known: weakref.WeakSet[SessionHost], arguments: dict[str, Any]
) -> Session:
    """Opens a session of a runtime, which notes it among those that it knows."""
    return _session_of(Session, _open(runtime, known, arguments))


def kit_session_of(host: SessionHost) -> KitSession:
    """The session of a kit with that side of the host."""
    return _session_of(KitSession, host)


def _session_of(kind: type[Own], host: SessionHost) -> Own:
    session = kind.__new__(kind)
    session._host = host
    return session


def _open(
    runtime: Runtime | None,
    known: weakref.WeakSet[SessionHost] | None,
    arguments: dict[str, Any],
) -> SessionHost:
    owner = None if runtime is None else runtime._native
    interleaves = arguments["cells"] == "interleave"
    host = SessionHost(owner, arguments["report"], known, interleaves=interleaves)
    host.default = default_of(arguments, runtime)
    try:
        native = _isolane.open_session(owner, host, arguments)
    except BaseException:
        host.failed()
        raise
    host.opened(native)
    return host


def _names(answer: list[tuple[str, NameKind, str, int | None]]) -> list[SessionName]:
    return [SessionName(*fields) for fields in answer]
