"""The executor of JavaScript and TypeScript: each call is a cell in an isolate of Isolane.

In: code, and files. Out: what its console printed, its value, the files that it wrote, and an exit
code. The native half asks for sessions and cells on the thread that makes a call; their events come
to its loop, as those of any session.
"""

from __future__ import annotations

import json
import threading
import weakref
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Literal, TypeAlias

from . import _isolane
from ._bridge import Bridge
from ._cell import Cell
from ._executor_call import Begin, finish
from ._executor_data import InvocationContext
from ._executors import OUTPUT_LIMIT_BYTES, TIMEOUT_MS, NativeExecutor
from ._isolane import CellEnd
from ._options import Language
from ._run import Event
from ._runtime import FOLDER, Runtime
from ._session_host import SessionHost

Isolation: TypeAlias = Literal["thread", "process"]
"""Where isolates live."""


class _ExecutorCell(Cell):
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


class Opener:
    """Opens the sessions of one executor, and starts the cells in them."""

    def __init__(self, runtime: Runtime | None, arguments: dict[str, Any]) -> None:
        self.runtime = runtime
        self._arguments = arguments
        self._report = arguments["report"]
        # One call begins at a time. The bridge is that of its loop.
        self.lock = threading.RLock()
        # The native half has weak references to them alone, so that they can be collected.
        self._hosts: set[SessionHost] = set()
        self.bridge: Bridge | None = None

    def open(self) -> tuple[SessionHost, weakref.ref[SessionHost], dict[str, Any]]:
        """The host's side of a new session, a weak reference to it, and the arguments of the
        session."""
        native = None if self.runtime is None else self.runtime._native
        host = SessionHost(native, self._report, None)
        host.default = self._arguments["default"]
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
        bridge = self.bridge
        assert bridge is not None, "a cell starts in a call"
        cell = _ExecutorCell(bridge, host, end)
        number = bridge.number()
        arguments: dict[str, object] = {
            "source": code,
            "filename": None,
            "language": language,
            "report": None,
            "timeout_ms": timeout_ms,
        }
        try:
            remote = host.native.run(bridge.mailbox, number, cell, arguments)
        except BaseException:
            cell.failed()
            raise
        cell.began(remote)
        bridge.attach(number, cell)
        return remote


class IsolateCodeExecutor(NativeExecutor):
    """Runs JavaScript and TypeScript in an isolate, with exactly the capabilities that it is given.

    The code needs no export: `return` and top-level `await` work, and the value of the last
    expression is printed. It has the files of the call in a module `files`. Under isolation by
    thread a bug of the engine's C code is a bug of this process: run code of strangers with
    `isolation="process"`. A context manager for `with` and `async with`.
    """

    __slots__ = ("_opener",)

    def __init__(
        self,
        *,
        language: Language = "typescript",
        globals: Mapping[str, Any] | None = None,
        imports: Mapping[str, Mapping[str, Any]] | None = None,
        modules: Mapping[str, str] | None = None,
        memory_limit_bytes: int | None = None,
        runtime: Runtime | None = None,
        isolation: Isolation | None = None,
        timeout_ms: float | None = TIMEOUT_MS,
        stateful: bool = False,
        report: Callable[[Any], Any] | None = None,
        show_value: bool = True,
        retry_attempts: int = 2,
        output_limit_bytes: int = OUTPUT_LIMIT_BYTES,
    ) -> None:
        """Makes an executor.

        Args:
            language: The language of code that names none.
            globals, imports, modules: Capabilities, as those of `isolane.Session`. An import
                `files` takes the place of the executor's own.
            memory_limit_bytes: The most memory of an isolate. Default 128 MiB.
            runtime: The runtime of the isolates. Default: that of the process.
            isolation: Where isolates live, in a runtime of this executor.
            timeout_ms: The time of a call. `None`: no limit but the runtime's cap on CPU time.
            stateful: Whether calls with the same `execution_id` share an isolate. At most 100 stay,
                each for 30 minutes without use.
            report: The receiver of reported values. Reports are in no stream.
            show_value: Whether the value of the code is the last line of its output.
            retry_attempts: How often the loop tries in all if the code does not start.
            output_limit_bytes: The bytes of each stream that are kept.

        Raises:
            TypeError, ValueError: an option is not valid.
            SerializationError: a value cannot be cloned.
        """
        numbers = {
            "timeout_ms": timeout_ms,
            "stateful": stateful,
            "show_value": show_value,
            "retry_attempts": retry_attempts,
            "output_limit_bytes": output_limit_bytes,
        }
        try:
            options = json.dumps(numbers, allow_nan=False)
        except ValueError:
            raise ValueError("timeout_ms and the other limits must be finite numbers") from None
        if runtime is not None and isolation is not None:
            raise TypeError("runtime and isolation exclude each other")
        if runtime is not None and not isinstance(runtime, Runtime):
            raise TypeError(f"runtime must be a Runtime, got {type(runtime).__name__}")
        arguments = {
            "imports": imports,
            "modules": modules,
            "globals": globals,
            "language": language,
            "memory_limit_bytes": memory_limit_bytes,
            "report": report,
            "cells": "queue",
            "checkpoint_bytes": None,
            "default": None if runtime is None else runtime._default,
        }
        _check(arguments)
        own: dict[str, object] | None = None if isolation is None else {"isolation": isolation}
        self._opener = Opener(runtime, arguments)
        native = None if runtime is None else runtime._native
        opener = weakref.ref(self._opener)
        super().__init__(_isolane.CodeExecutor.isolate(native, own, FOLDER, opener, options))

    def close(self) -> None:
        """Closes all sessions, ends the calls in them, and closes the runtime of `isolation`. A
        later call begins anew."""
        bridge = Bridge()
        closed: list[None] = []

        def news() -> None:
            if call.take()[1] is not None:
                closed.append(None)

        call = self._native.close(bridge.mailbox, bridge.on_notice(news))
        bridge.wait_until(lambda: bool(closed))

    async def aclose(self) -> None:
        """As `close`, without blocking the event loop."""
        await finish(lambda bridge, number: self._native.close(bridge.mailbox, number))

    def __enter__(self) -> IsolateCodeExecutor:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        raised: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    async def __aenter__(self) -> IsolateCodeExecutor:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        raised: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()

    def _begin(self, context: InvocationContext, fields: Any) -> Begin:
        start = super()._begin(context, fields)

        def begin(bridge: Bridge, number: int) -> _isolane.ExecutorCall:
            opener = self._opener
            with opener.lock:
                before, opener.bridge = opener.bridge, bridge
                try:
                    return start(bridge, number)
                finally:
                    opener.bridge = before

        return begin


def _check(arguments: dict[str, Any]) -> None:
    """Refuses arguments of which no session can be made."""
    host = SessionHost(None, arguments["report"], None)
    host.default = arguments["default"]
    try:
        _isolane.check_session(host, arguments)
    finally:
        host.failed()
