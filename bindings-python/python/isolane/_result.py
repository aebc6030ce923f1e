"""The result of a run: plain data, with the same fields and messages in every language."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, TypeVar

from ._errors import status_error
from ._throws import Answered

Status: TypeAlias = Literal["success", "error", "memory", "terminated", "link_error"]
"""The way in which a run ended.

`success`: the export resolved. `error`: the code threw. `memory`: the run hit its limit.
`terminated`: the caller or a cap of the runtime ended it. `link_error`: an import does not resolve,
a source does not parse, or the selected export is missing.
"""

LogLevel: TypeAlias = Literal["log", "info", "warn", "error", "debug"]


@dataclass(frozen=True)
class CodeExecutionLog:
    """One call of the sandbox's console."""

    level: LogLevel
    args: list[Any]
    """The arguments, cloned; text replaces those that cannot be cloned."""
    timestamp: float
    """Epoch milliseconds."""


@dataclass(frozen=True)
class CodeExecutionError:
    """The error of a run that did not succeed. Positions are those of the original source."""

    name: str
    message: str
    stack: str | None = None
    """`Name: message`, below it the frames of the sandbox, one `    at name (file:line:col)` in a
    line, and below them the errors that it was made from (`cause`, `errors`)."""
    specifier: str | None = None
    """The specifier that could not be linked."""
    filename: str | None = None
    """The file of `line` and `column`."""
    line: int | None = None
    """From 1."""
    column: int | None = None
    """From 1, in UTF-16 code units."""

    @property
    def cause(self) -> BaseException | None:
        """The exception of the host that caused the error: the same object that a host function or
        an awaitable raised, if the sandbox did not catch it or threw it again; an `OSError` if no
        worker could be started. It is not a field, so no copy and no pickle of the result has it.
        Only the exceptions of the last few calls are recognized. The traceback has no frames of
        this package."""
        return self.__dict__.get("_cause")

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_cause"}


@dataclass(frozen=True)
class CodeExecutionResult:
    """The result of a run. It can be pickled if its values can."""

    status: Status
    result: Any = None
    """The value of the export, when the status is `success`; else `None`."""
    reports: list[Any] = field(default_factory=list)
    """The values that the sandbox passed to `report`, in the order of the calls."""
    logs: list[CodeExecutionLog] = field(default_factory=list)
    """Calls of the built-in console; empty when `globals` has a `console`."""
    error: CodeExecutionError | None = None
    """The error of a run that did not succeed; `None` only on success."""
    duration_ms: float = 0.0
    """Milliseconds from the call of `run_code` to settlement, with fractions."""
    memory_used_bytes: int | None = None
    """The peak of all bytes that counted against the limit."""

    def raise_for_status(self) -> CodeExecutionResult:
        """Returns this result if it is a success.

        Raises:
            UncaughtError, MemoryLimitError, TerminatedError, LinkError: by the status; each is a
                `StatusError` with the result attached, and the cause of the result's error as its
                `__cause__`.
        """
        if self.status == "success":
            return self
        raise status_error(self)


class _ByStatus(type):
    """The class of classes whose instances are the results of another class with some statuses: a
    checker narrows their union by `status`, and `isinstance` and `match` know them."""

    def __instancecheck__(cls, value: object) -> bool:
        if not isinstance(value, CodeExecutionResult):
            return False
        statuses: tuple[Status, ...] = cls._statuses  # type: ignore[attr-defined]
        return value.status in statuses and isinstance(value, cls.__bases__[-1])


class CodeExecutionSuccess(CodeExecutionResult, metaclass=_ByStatus):
    """The result of a run that succeeded: every `CodeExecutionResult` with that status is one."""

    _statuses = ("success",)
    status: Literal["success"]
    error: None


class CodeExecutionFailure(CodeExecutionResult, metaclass=_ByStatus):
    """The result of a run that did not succeed: every `CodeExecutionResult` with one of these
    statuses is one."""

    _statuses = ("error", "memory", "terminated", "link_error")
    status: Literal["error", "memory", "terminated", "link_error"]
    error: CodeExecutionError


class Received:
    """The result of a run and the reports so far. The handle keeps them, and a settled run does
    not: a function or an exception that the host keeps may keep the run."""

    __slots__ = ("reports", "result")

    def __init__(self) -> None:
        self.reports: list[Any] = []
        self.result: CodeExecutionResult | None = None

    def take(self) -> CodeExecutionResult:
        """Returns the result, and keeps nothing."""
        result, self.result, self.reports = self.result, None, []
        assert result is not None, "settled: it was waited for"
        return result


SessionState: TypeAlias = Literal["kept", "rolledBack", "reset"]
"""The effect of a cell on its session. The words are those of every language."""

ValueFrom: TypeAlias = Literal["return", "default", "expression", "completion"]
"""The part of a cell that its value is from."""


@dataclass(frozen=True)
class CellExecutionResult(CodeExecutionResult):
    """The result of a cell: that of a run, and besides what only a session has."""

    session: SessionState = "kept"
    """`kept`: everything that the cell did is there. `rolledBack`: the state is the one from before
    the cell. `reset`: the session is as if new, with its capabilities."""
    text: str | None = None
    """On success, what a console would show of the value; `None` for `undefined`."""
    uncloned: str | None = None
    """On success with a value that cannot cross: the message of the SerializationError."""
    value_from: ValueFrom | None = None
    """On success, the part of the cell that the value is from. `expression`: the last statement is
    one. `completion`: the value of any other statement. `None` if there is no value."""


class CellExecutionSuccess(CodeExecutionSuccess, CellExecutionResult):
    """As a `CodeExecutionSuccess`, of a cell."""


class CellExecutionFailure(CodeExecutionFailure, CellExecutionResult):
    """As a `CodeExecutionFailure`, of a cell."""


AnyResult: TypeAlias = CodeExecutionSuccess | CodeExecutionFailure
"""The result of a run."""

AnyCellResult: TypeAlias = CellExecutionSuccess | CellExecutionFailure
"""The result of a cell."""


@dataclass(frozen=True)
class KitCall:
    """A call that a run made of a capability of its kit."""

    name: str
    """The function, such as `db.sql`."""
    started: float
    """Epoch milliseconds."""
    duration_ms: float
    ok: bool
    bytes: int
    """The bytes both ways."""
    summary: str
    """For a person, at most 1 KiB: `GET https://y.org/v1/items 200`. Without queries, parameters
    and texts that are typed."""
    error: str | None = None
    """The name of the error; `Aborted` at the end of the run."""


@dataclass(frozen=True)
class KitResult(CodeExecutionResult):
    """The result of a run with a kit. Values of secrets are replaced by `[secret NAME]` in all of
    it."""

    json: str | None = None
    """On success of a tool, the JSON text of its value."""
    calls: list[KitCall] = field(default_factory=list)
    """The calls of capabilities, in order."""
    calls_dropped: int = 0
    """The number of calls beyond `max_recorded_calls`."""


@dataclass(frozen=True)
class KitCellResult(CellExecutionResult):
    """The result of a cell with a kit."""

    calls: list[KitCall] = field(default_factory=list)
    """As in a `KitResult`."""
    calls_dropped: int = 0
    """As in a `KitResult`."""


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
    tuple[SessionState, str | None, str | None, ValueFrom | None] | None,
    dict[str, Any] | None,
]


FindThrow: TypeAlias = Callable[[Answered], BaseException | None]
"""The exception of the host that answered a call or a promise, if it is known."""


def read_result(outcome: Outcome, reports: list[Any], find_throw: FindThrow) -> CodeExecutionResult:
    """Makes the result of the native side's outcome and of the reports that were read before."""
    status, result, more, logs, error, duration_ms, memory_used_bytes, cell, extra = outcome
    caused = (
        None if error is None else _caused(CodeExecutionError(*error[:-1]), error[-1], find_throw)
    )
    run = (status, result, reports + more, logs, caused, duration_ms, memory_used_bytes)
    if extra is not None:
        calls = [KitCall(**fields) for fields in extra["calls"]]
        if cell is None:
            return KitResult(*run, extra.get("json"), calls, extra["calls_dropped"])
        return KitCellResult(*run, *cell, calls, extra["calls_dropped"])
    return CodeExecutionResult(*run) if cell is None else CellExecutionResult(*run, *cell)


Kind = TypeVar("Kind", bound=CodeExecutionResult)


def as_kind(kind: type[Kind], result: CodeExecutionResult) -> Kind:
    """The result of a run of that kind, also of one that ended where no more is known of it."""
    return result if isinstance(result, kind) else kind(**result.__dict__)


def _caused(
    error: CodeExecutionError, cause: Cause | None, find_throw: FindThrow
) -> CodeExecutionError:
    raised = find_throw(cause) if isinstance(cause, tuple) else cause
    if raised is not None:
        error.__dict__["_cause"] = raised
    return error


def ended_elsewhere(message: str, reports: list[Any]) -> CodeExecutionResult:
    """The result of a run that ends in another process."""
    error = CodeExecutionError("Terminated", message)
    return CodeExecutionResult("terminated", None, reports, [], error)


def unreadable(raised: Exception, reports: list[Any]) -> CodeExecutionResult:
    """The result of a run whose values this process could not read, for example for lack of
    memory."""
    error = CodeExecutionError(type(raised).__name__, f"the result cannot be read: {raised}")
    error.__dict__["_cause"] = raised
    return CodeExecutionResult("error", None, reports, [], error)
