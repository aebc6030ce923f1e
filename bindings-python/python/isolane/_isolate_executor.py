"""The executor of JavaScript and TypeScript: each call is a cell in an isolate of Isolane.

In: code, and files. Out: what its console printed, its value, the files that it wrote, and an exit
code.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeAlias

from ._closing import AsyncClosing
from ._executor_call import finish
from ._executors import OUTPUT_LIMIT_BYTES, TIMEOUT_MS, LibraryExecutor, given
from ._host_sessions import HostSessions
from ._options import Language, refuses_unknown
from ._runtime import Runtime

Isolation: TypeAlias = Literal["thread", "process"]
"""Where isolates live."""


class IsolateCodeExecutor(LibraryExecutor, AsyncClosing):
    """Runs JavaScript and TypeScript in an isolate, with exactly the capabilities that it is given.

    The code needs no export: `return` and top-level `await` work, and the value of the last
    expression is printed. It has the files of the call in a module `files`. Under isolation by
    thread a bug of the engine's C code is a bug of this process: run code of strangers with
    `isolation="process"`. A context manager for `with` and `async with`.
    """

    __slots__ = ("_opener",)

    @refuses_unknown("IsolateCodeExecutor")
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
        own: dict[str, Any] = {
            "timeout_ms": timeout_ms,
            "stateful": stateful,
            "show_value": show_value,
            "retry_attempts": retry_attempts,
            "output_limit_bytes": output_limit_bytes,
        }
        if runtime is not None and not isinstance(runtime, Runtime):
            raise TypeError(f"runtime must be a Runtime, got {type(runtime).__name__}")
        self._opener = HostSessions(
            runtime,
            {
                "imports": imports,
                "modules": modules,
                "globals": globals,
                "language": language,
                "memory_limit_bytes": memory_limit_bytes,
                "report": report,
            },
        )
        options = {"options": given(own), "isolation": isolation}
        super().__init__("isolate-executor", options, runtime, self._opener)

    def close(self) -> None:
        """Closes all sessions, ends the calls in them, and closes the runtime of `isolation`. A
        later call begins anew."""
        self._door.wait_for("close")

    async def aclose(self) -> None:
        """As `close`, without blocking the event loop."""
        await finish(self._door, "close")
