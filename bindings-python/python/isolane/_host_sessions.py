"""Sessions that a system opens, with the values and functions of the caller.

In: the arguments of sessions as the caller wrote them. Out: the host's side of each session, and of
the cells in it. The native half asks for sessions and cells on the thread that makes a call; their
events come to its loop, as those of any session.
"""

from __future__ import annotations

import contextlib
import threading
import weakref
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from . import _isolane
from ._cell import Cell
from ._isolane import CellEnd
from ._options import Language
from ._run import Event, begin
from ._runtime import Runtime
from ._session_host import SessionHost

if TYPE_CHECKING:
    from ._bridge import Bridge


class _HostCell(Cell):
    """A cell whose result goes to the native half, which makes the result of the call of it."""

    def __init__(self, bridge: Bridge, session: SessionHost, end: CellEnd) -> None:
        super().__init__(bridge, session, None)
        self._end = end

    def is_ready(self, event: Event) -> bool:
        return event[1] == "settled" or super().is_ready(event)

    def settled(self) -> None:
        state = self._end.settle(self.remote)
        with self.lock:
            self.has_ended = True
        self._is_undone = state != "kept"
        self._end_in_session(state)
        self.held_up.clear()
        self._release()


class HostSessions:
    """Opens the sessions of one system, and starts the cells in them."""

    def __init__(self, runtime: Runtime | None, arguments: dict[str, Any]) -> None:
        """Checks the arguments of the sessions. Nothing is opened."""
        self._runtime = runtime
        default = None if runtime is None else runtime._default
        self._arguments = {**arguments, "cells": "queue", "checkpoint_bytes": None}
        self._arguments["default"] = default
        self._report = arguments["report"]
        # One call begins at a time. The bridge is that of its loop.
        self._lock = threading.RLock()
        # The native half has weak references to them alone, so that they can be collected.
        self._hosts: set[SessionHost] = set()
        self._bridge: Bridge | None = None
        host = self._host(None)
        try:
            _isolane.check_session(host, self._arguments)
        finally:
            host.failed()

    @contextlib.contextmanager
    def during(self, bridge: Bridge) -> Iterator[None]:
        """While a call of that bridge begins."""
        with self._lock:
            before, self._bridge = self._bridge, bridge
            try:
                yield
            finally:
                self._bridge = before

    def open(self) -> tuple[SessionHost, weakref.ref[SessionHost], dict[str, Any]]:
        """The host's side of a new session, a weak reference to it, and the arguments of the
        session."""
        host = self._host(None if self._runtime is None else self._runtime._native)
        for known in tuple(self._hosts):
            if not known.has_started:
                # It could not be opened: sessions open one at a time.
                self._hosts.discard(known)
                known.failed()
            elif not known.native.running():
                self._hosts.discard(known)
                known.finish()
        self._hosts.add(host)
        return host, weakref.ref(host), dict(self._arguments)

    def start_cell(
        self,
        host: SessionHost,
        end: CellEnd,
        code: str,
        language: Language | None,
        timeout_ms: int | None,
    ) -> _isolane.RunHandle:
        """Queues a cell."""
        bridge = self._bridge
        assert bridge is not None, "a cell starts in a call"
        cell = _HostCell(bridge, host, end)
        arguments: dict[str, object] = {
            "source": code,
            "filename": None,
            "language": language,
            "report": None,
            "timeout_ms": timeout_ms,
        }
        native = host.native
        return begin(
            bridge, cell, lambda number: native.run(bridge.mailbox, number, cell, arguments)
        )

    def _host(self, native: _isolane.Runtime | None) -> SessionHost:
        interleaves = self._arguments["cells"] == "interleave"
        host = SessionHost(native, self._report, None, interleaves=interleaves)
        host.default = self._arguments["default"]
        return host
