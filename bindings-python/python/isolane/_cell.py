"""One cell of a session, on the event loop that started it.

In: the events of the session while the cell runs. Out: as for a run. The functions and promises
that cross are the session's: those of earlier cells settle here, and those that are pending at the
end stay.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ._futures import SETTLED
from ._result import CellExecutionResult, CodeExecutionResult, KitCellResult, as_kind
from ._run import Event, Run
from ._sandbox_function import SandboxFunction
from ._session_host import SessionHost
from ._throws import Answered, Throws

if TYPE_CHECKING:
    from ._bridge import Bridge
    from ._isolane import Message


class Cell(Run):
    """The state of a cell. It keeps its session until it has ended; afterwards only the answers to
    its calls refer to it."""

    is_cell = True

    def __init__(
        self, bridge: Bridge, session: SessionHost, report: Callable[[Any], Any] | None
    ) -> None:
        super().__init__(bridge, None, report or session.sink, session.sandbox)
        # Calls are counted in each cell. Promises have numbers of the session.
        self.throws = Throws()
        self._session: SessionHost | None = session
        self._known_session = weakref.ref(session)
        self._place = session.next_place()
        self._is_undone = False
        self.default = session.default
        self._kind = KitCellResult if session.is_of_kit else CellExecutionResult
        session.cells.add(self)

    @property
    def is_over(self) -> bool:
        session = self._known_session()
        return session is None or session.has_ended

    @property
    def origin(self) -> Run:
        return self

    @property
    def place(self) -> int:
        return self._place

    @property
    def receiver(self) -> int:
        return self._place

    def refuses(self, is_start: bool) -> bool:
        # A call for which a cell does not wait is a call of the session.
        return self.terminating and not is_start

    def is_undecided(self) -> bool:
        # Such a call starts unless the cell is undone, which shows at the end of the cell.
        return self.terminating and not self.has_ended and self.remote.running()

    def begins(self) -> bool:
        self._promises.beginning -= 1
        if self._is_undone or self.is_over:
            return False
        return not self.was_ended()

    def expect_events(self) -> None:
        if not self.has_ended:
            super().expect_events()

    def visits_loop(self) -> None:
        session, bridge = self._known_session(), self.bridge()
        if session is not None and bridge is not None:
            bridge.visit(session)

    # For the encoder and the decoder.

    def sandbox_function(self, number: int, name: str) -> SandboxFunction:
        session = self._known_session()
        if session is None:
            raise RuntimeError(SETTLED)
        return self._sandbox_functions.function(session, number, name)

    def sandbox_number(self, function: SandboxFunction) -> int | None:
        return function._number if function._run is self._known_session() else None

    # Events.

    def is_ready(self, event: Event) -> bool:
        # These may belong to another loop, which reads them itself.
        return event[1] in ("function", "promise") or super().is_ready(event)

    def ignores(self, kind: str, is_large: bool) -> bool:
        if kind == "start" and self.was_ended():
            return True
        if kind == "call" and is_large and not self.remote.running():
            self.throws.number_call()
            return True
        # A call that the cell did not wait for is a call of the session.
        return False

    def _is_awaited(self, kind: str, what: int) -> bool:
        return kind == "start" or super()._is_awaited(kind, what)

    def function_settled(self, call: int, ok: bool, message: Message) -> None:
        super().function_settled(call, ok, message)
        session = self._known_session()
        if session is not None:
            session.rest()

    def find_throw(self, answered: Answered) -> BaseException | None:
        kind, _ = answered
        return self.throws.find(answered) if kind == "call" else self.sandbox.throws.find(answered)

    # Ends.

    def failed(self) -> None:
        super().failed()
        self._end_in_session("kept")

    def end(self, result: CodeExecutionResult) -> None:
        super().end(as_kind(self._kind, result))

    def gives_calls_up(self, result: CodeExecutionResult) -> bool:
        # The calls of a cell belong to the session, unless that is as if the cell had not been.
        return as_kind(CellExecutionResult, result).session != "kept"

    def orphan(self, reason: str) -> None:
        super().orphan(reason)
        session = self._known_session()
        if session is not None:
            session.cells.discard(self)

    def _leave(self, result: CodeExecutionResult) -> None:
        state = as_kind(CellExecutionResult, result).session
        self._is_undone = state != "kept"
        self._end_in_session(state)
        self.held_up.clear()
        self._release()

    def _release(self) -> None:
        # The context stays: calls of the cell may be pending.
        self._owner = None
        self._sink = None
        self._outcome = None
        self.throws.clear()

    def _end_in_session(self, state: str) -> None:
        session, self._session = self._session, None
        if session is not None:
            session.cell_ended(self, state)
