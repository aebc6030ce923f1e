"""The host's side of one session: all that its cells share, and the events outside of cells.

In: values that are handed over between cells, calls of functions that the host holds, and the ends
of cells. Out: requests for the core, and the outcomes of those calls. A session belongs to no loop:
a call belongs to the loop where it is made. While calls are pending, one of their loops fetches the
events.
"""

from __future__ import annotations

import asyncio
import contextvars
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from ._bridge import bridge_of
from ._errors import SandboxError
from ._futures import fail, fail_everywhere, on_loop
from ._isolane import HostCall, Message, RunHandle, Runtime, Session, System
from ._promises import Watched
from ._run import Event, Run, no_bridge
from ._sandbox import Sandbox

if TYPE_CHECKING:
    from ._cell import Cell
    from ._page import PageDriver


def _closed() -> Exception:
    return SandboxError("SessionClosed", "the session was closed")


def _reset() -> Exception:
    return SandboxError("SessionReset", "the session was reset")


def _rolled_back() -> Exception:
    return SandboxError("SessionRolledBack", "the cell that gave this was rolled back")


class SessionHost(Run):
    """The common part of the cells of a session. Its session and sandbox functions hold it."""

    def __init__(
        self,
        owner: Runtime | System | None,
        report: Callable[[Any], Any] | None,
        known: weakref.WeakSet[SessionHost] | None,
        *,
        interleaves: bool,
    ) -> None:
        super().__init__(None, owner, report, Sandbox(of_session=True))
        self.is_of_kit = isinstance(owner, System)
        self.sink = report
        # That of its kit.
        self.page: PageDriver | None = None
        # Cells that have not settled.
        self.cells: set[Cell] = set()
        # The open sessions of the runtime.
        self._known = known
        self._places = 0
        self._interleaves = interleaves

    @property
    def native(self) -> Session:
        """The core's handle on the session."""
        return cast(Session, self._remote)

    def was_ended(self) -> bool:
        # Limits end cells. Calls between them go on for as long as the session is open.
        return False

    def opened(self, native: Session) -> None:
        """Records that the session is open."""
        # It has the methods of the handle on a run that are used outside of cells.
        self.began(cast(RunHandle, native))
        if self._known is not None:
            self._known.add(self)

    def watched(self) -> list[Watched]:
        """The awaitables of the host that are pending."""
        return self._promises.watched()

    def copy(self, native: Session, watched: list[Watched]) -> SessionHost:
        """The host's side of a copy of the session. `watched` are the awaitables that were pending
        when the copy was asked for: it receives their completions, too."""
        copied = SessionHost(self._owner, self.sink, self._known, interleaves=self._interleaves)
        copied.opened(native)
        copied.page = self.page
        copied.default = self.default
        copied.sandbox.promises.copy_from(self._promises, watched, copied)
        # No object here stands for a function of the copy.
        self.sandbox.functions.release_all(native.release_function)
        return copied

    def update(self, arguments: dict[str, object]) -> None:
        """Hands over more, from the next cell on."""
        given = self._promises.given
        try:
            self.native.update(self, arguments)
        except BaseException:
            self._promises.forget(self, given)
            raise

    def next_place(self) -> int:
        """The place of a new cell in the order of the cells."""
        self._places += 1
        return self._places

    # In place of a run's.

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        loop = asyncio._get_running_loop()
        if loop is None:
            message = "an awaitable can be handed over only where an event loop is running"
            raise RuntimeError(message)
        return loop

    @property
    def reference(self) -> weakref.ref[Run]:
        # An awaitable of the host does not keep a session.
        return weakref.ref(self)

    @property
    def origin(self) -> Run:
        return self

    @property
    def place(self) -> int:
        return self._places

    def visits_loop(self) -> None:
        bridge_of(self.loop).visit(self)

    def expect_events(self) -> None:
        if self._sandbox_functions.pending():
            super().expect_events()

    # Functions of the sandbox.

    def call_sandbox(self, number: int, args: tuple[Any, ...]) -> asyncio.Future[Any]:
        loop = asyncio.get_running_loop()
        if self.has_ended or not self.remote.running():
            future = loop.create_future()
            fail(future, _closed())
            return future
        self._listen(loop)
        try:
            call = self._sandbox_functions.call(self, number, args)
        finally:
            self.rest()
        call.origin, call.caller = self, contextvars.copy_context()
        return call

    def _listen(self, loop: asyncio.AbstractEventLoop) -> None:
        """Has a loop fetch the events, unless another one does that and is running."""
        bridge = self.bridge()
        if bridge is None or bridge.own_loop is None or not bridge.own_loop.is_running():
            bridge_of(loop).adopt(self)

    def rest(self) -> None:
        """Has no loop fetch events any more, if no call is pending."""
        if not self._sandbox_functions.pending():
            bridge, self.bridge = self.bridge(), no_bridge
            if bridge is not None:
                bridge.forget(self)

    # Events outside of cells.

    def is_ready(self, _: Event) -> bool:
        return True

    def awaits_turn(self, _: Event) -> bool:
        return False

    def ignores(self, _: str, __: bool) -> bool:
        return False

    def called(self, function: int, message: Message, call: HostCall) -> None:
        # One call runs at a time, in the order of the calls.
        for pending in tuple(self._sandbox_functions.pending()):
            if pending.caller is not None:
                self.context = pending.caller
                break
        super().called(function, message, call)

    def _report(self, call: HostCall) -> Any:
        if self.sink is None:
            raise _closed()
        return self.context.copy().run(self.sink, call.take_report(self))

    def function_settled(self, call: int, ok: bool, message: Message) -> None:
        super().function_settled(call, ok, message)
        self.rest()

    def settled(self) -> None:
        self.finish()

    # Ends.

    def cell_ended(self, cell: Cell, session: str) -> None:
        """Fails the promises of the sandbox that went with the end of a cell."""
        self.cells.discard(cell)
        if session == "rolledBack":
            self._promises.lose(lambda future: future.origin is cell, _rolled_back)
            # Where cells interleave, a later one may have completed, and have what this one was
            # given.
            if not self._interleaves:
                self._promises.take_back(lambda run: run is cell)
                self.native.take_back(cell.place, cell.place)
        elif session == "reset":
            self.was_reset(cell.place)
        if not self.cells:
            self._promises.forget_early()

    def was_reset(self, place: int) -> None:
        """Fails the promises of the sandbox from before a reset, which came after that place."""
        self._promises.lose(lambda future: future.place <= place, _reset)
        self._promises.cancel_calls(lambda run: run is not self and run.place <= place)
        self._promises.take_back(lambda run: run is not self and run.place <= place)
        self.native.take_back(1, place)

    def finish(self) -> None:
        """Releases everything, because the session is closed."""
        if self.has_ended:
            return
        self.has_ended = True
        self._promises.lose(lambda _: True, _closed)
        if not self.remote.forked():
            self._promises.cancel_calls(lambda _: True)
            self.native.end()
        self._release()
        self.sink = None
        if self._known is not None:
            self._known.discard(self)

    def orphan(self, _: str) -> None:
        """The loop that fetched events has closed: another loop with a call does that from now."""
        self.bridge = no_bridge
        self._sandbox_functions.forget_closed()
        for pending in tuple(self._sandbox_functions.pending()):
            if pending.get_loop().is_running():
                on_loop(pending.get_loop(), self._listen, pending.get_loop())
                return

    def fork(self, own_thread: bool) -> None:
        """Ends the session in a forked child."""
        if own_thread:
            fail_everywhere(self._sandbox_functions.pending(), _closed)
        self._sandbox_functions.leave()
        self._promises.leave()
        self.finish()
