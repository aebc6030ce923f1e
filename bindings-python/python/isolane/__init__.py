"""Runs JavaScript and TypeScript that a model wrote, in an isolate with exactly the capabilities
that its host hands over.

`run_code` starts a run and returns a handle to await; `run_code_sync` is for callers without an
event loop. The outcome of any run is one `CodeExecutionResult`. A `Runtime` has caps of its own. A
`Session` is an isolate that stays, for cells that build on one another.
"""

from ._errors import (
    LinkError,
    MemoryLimitError,
    QueueFullError,
    RuntimeClosedError,
    SandboxError,
    SerializationError,
    StatusError,
    TerminatedError,
    UncaughtError,
)
from ._execution import CellExecution, CodeExecution
from ._options import Cells, Execute, Language
from ._result import (
    CellExecutionResult,
    CodeExecutionError,
    CodeExecutionLog,
    CodeExecutionResult,
    LogLevel,
    SessionState,
    Status,
    ValueFrom,
)
from ._runtime import Confinement, Runtime, Stats, run_code, run_code_sync
from ._sandbox_function import SandboxFunction
from ._session import NameKind, Session, SessionName
from ._undefined import Undefined, undefined

__all__ = [
    "CellExecution",
    "CellExecutionResult",
    "Cells",
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
    "NameKind",
    "QueueFullError",
    "Runtime",
    "RuntimeClosedError",
    "SandboxError",
    "SandboxFunction",
    "SerializationError",
    "Session",
    "SessionName",
    "SessionState",
    "Stats",
    "Status",
    "StatusError",
    "TerminatedError",
    "UncaughtError",
    "Undefined",
    "ValueFrom",
    "run_code",
    "run_code_sync",
    "undefined",
]
