"""Runs JavaScript and TypeScript that a model wrote, in an isolate with exactly the capabilities
that its host hands over.

`run_code` starts a run and returns a handle to await; `run_code_sync` is for callers without an
event loop. The outcome of any run is one `CodeExecutionResult`. A `Runtime` has caps of its own. A
`Session` is an isolate that stays, for cells that build on one another.
"""

# First: its error says how to get the compiled part.
try:
    from . import _compiled  # noqa: F401
except ImportError:
    import os

    # In a folder that it may not list, Python finds no module at all.
    _folder = os.path.dirname(__file__)
    if os.access(_folder, os.R_OK) or not os.path.isdir(_folder):
        raise
    raise ImportError(
        "isolane cannot be imported: the user of this process may not read the folder"
        f" {_folder}. Install isolane as that user, or permit it to read the folder."
    ) from None
from ._by_name import by_name
from ._describe import describe
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
from ._isolane import __version__
from ._options import Cells, Execute, Language
from ._result import (
    AnyCellResult,
    AnyResult,
    CellExecutionFailure,
    CellExecutionResult,
    CellExecutionSuccess,
    CodeExecutionError,
    CodeExecutionFailure,
    CodeExecutionLog,
    CodeExecutionResult,
    CodeExecutionSuccess,
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
    "AnyCellResult",
    "AnyResult",
    "CellExecution",
    "CellExecutionFailure",
    "CellExecutionResult",
    "CellExecutionSuccess",
    "Cells",
    "CodeExecution",
    "CodeExecutionError",
    "CodeExecutionFailure",
    "CodeExecutionLog",
    "CodeExecutionResult",
    "CodeExecutionSuccess",
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
    "__version__",
    "by_name",
    "describe",
    "run_code",
    "run_code_sync",
    "undefined",
]
