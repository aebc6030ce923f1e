"""Runs JavaScript and TypeScript that a model wrote, in an isolate with exactly the capabilities
that its host hands over.

`run_code` starts a run and returns a handle to await; `run_code_sync` is for callers without an
event loop. The outcome of any run is one `CodeExecutionResult`. A `Runtime` has caps of its own.
"""

from ._errors import (
    LinkError,
    MemoryLimitError,
    SandboxError,
    SerializationError,
    StatusError,
    TerminatedError,
    UncaughtError,
)
from ._execution import CodeExecution
from ._options import Execute, Language
from ._result import (
    CodeExecutionError,
    CodeExecutionLog,
    CodeExecutionResult,
    LogLevel,
    Status,
)
from ._runtime import Confinement, Runtime, Stats, run_code, run_code_sync
from ._sandbox_function import SandboxFunction
from ._undefined import Undefined, undefined

__all__ = [
    "CodeExecution",
    "CodeExecutionError",
    "CodeExecutionLog",
    "CodeExecutionResult",
    "Confinement",
    "Execute",
    "Language",
    "LinkError",
    "LogLevel",
    "MemoryLimitError",
    "Runtime",
    "SandboxError",
    "SandboxFunction",
    "SerializationError",
    "Stats",
    "Status",
    "StatusError",
    "TerminatedError",
    "UncaughtError",
    "Undefined",
    "run_code",
    "run_code_sync",
    "undefined",
]
