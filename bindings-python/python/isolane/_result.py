"""What a run comes to: plain data, the same fields and words in every language."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from ._errors import status_error
from ._throws import Answered, Throws

Status: TypeAlias = Literal["success", "error", "memory", "terminated", "link_error"]
"""How a run ended.

`success`: the export resolved. `error`: the code threw. `memory`: the limit was hit.
`terminated`: by the caller, or by a cap of the runtime. `link_error`: the modules do not fit
together, a source does not parse, or the selected export is missing.
"""

LogLevel: TypeAlias = Literal["log", "info", "warn", "error", "debug"]


@dataclass(frozen=True)
class CodeExecutionLog:
    """One call of the sandbox's console."""

    level: LogLevel
    args: list[Any]
    """The arguments, cloned; what cannot be cloned is there as text."""
    timestamp: float
    """Epoch milliseconds."""


@dataclass(frozen=True)
class CodeExecutionError:
    """Why a run did not succeed. Positions are those of the original source."""

    name: str
    message: str
    stack: str | None = None
    """Frames of the sandbox only."""
    specifier: str | None = None
    """The specifier that could not be linked."""
    filename: str | None = None
    """The file that `line` and `column` belong to."""
    line: int | None = None
    """From 1."""
    column: int | None = None
    """From 1, in UTF-16 code units."""

    @property
    def cause(self) -> BaseException | None:
        """What the error was made out of, on this side: the very exception that a host function or
        an awaitable raised, if the sandbox did not catch it, or threw the same one again; an
        `OSError` where no worker could be started. It is no field: no copy and no pickle of the
        result has it. The exceptions of the last few calls are told apart, earlier ones are not.
        Its traceback has no frames of this package."""
        return self.__dict__.get("_cause")

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_cause"}


@dataclass(frozen=True)
class CodeExecutionResult:
    """Everything that a run came to. Can be pickled when the values in it can."""

    status: Status
    result: Any = None
    """The value of the export, when the status is `success`; else `None`."""
    reports: list[Any] = field(default_factory=list)
    """What went through the built-in `report`, in call order."""
    logs: list[CodeExecutionLog] = field(default_factory=list)
    """Calls of the built-in console; empty when `globals` has a `console`."""
    error: CodeExecutionError | None = None
    """Why the run did not succeed; `None` exactly on success."""
    duration_ms: float = 0.0
    """Milliseconds from the call of `run_code` to settlement, with fractions."""
    memory_used_bytes: int | None = None
    """The peak of all bytes that counted against the limit."""

    def raise_for_status(self) -> CodeExecutionResult:
        """Returns this very result if it is a success.

        Raises:
            UncaughtError, MemoryLimitError, TerminatedError, LinkError: by the status; each is a
                `StatusError` with the result attached, and the cause of the result's error as its
                `__cause__`.
        """
        if self.status == "success":
            return self
        raise status_error(self)


Cause: TypeAlias = Answered | BaseException

Outcome: TypeAlias = tuple[
    Status,
    Any,
    list[Any],
    list[CodeExecutionLog],
    tuple[str, str, str | None, str | None, str | None, int | None, int | None, Cause | None]
    | None,
    float,
    int | None,
]


def read_result(outcome: Outcome, reports: list[Any], throws: Throws) -> CodeExecutionResult:
    """The result, from what the native side says and from the reports that were read before."""
    status, result, more, logs, error, duration_ms, memory_used_bytes = outcome
    return CodeExecutionResult(
        status,
        result,
        reports + more,
        logs,
        None if error is None else _caused(CodeExecutionError(*error[:-1]), error[-1], throws),
        duration_ms,
        memory_used_bytes,
    )


def _caused(error: CodeExecutionError, cause: Cause | None, throws: Throws) -> CodeExecutionError:
    raised = throws.find(cause) if isinstance(cause, tuple) else cause
    if raised is not None:
        error.__dict__["_cause"] = raised
    return error


def ended_elsewhere(message: str, reports: list[Any]) -> CodeExecutionResult:
    """The result of a run whose end nobody in this process will ever hear of."""
    error = CodeExecutionError("Terminated", message)
    return CodeExecutionResult("terminated", None, reports, [], error)


def unreadable(raised: Exception, reports: list[Any]) -> CodeExecutionResult:
    """The result of a run whose values this process could not take, such as for want of memory."""
    error = CodeExecutionError(type(raised).__name__, f"the result cannot be read: {raised}")
    error.__dict__["_cause"] = raised
    return CodeExecutionResult("error", None, reports, [], error)
