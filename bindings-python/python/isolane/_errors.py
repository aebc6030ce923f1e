"""The exceptions of the package.

A run itself never raises: its outcome is a result. These exceptions are for a value that cannot
cross, for an error that a sandbox function threw at its caller, and for `raise_for_status`.
"""

from __future__ import annotations

import itertools
import reprlib
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from ._result import CodeExecutionResult, Status


class SerializationError(TypeError):
    """A value cannot be cloned. The message names its path and its kind:
    `globals.db.pool: an instance of Pool cannot be cloned`."""


class QueueFullError(RuntimeError):
    """As many runs are queued as the runtime allows. The same call may succeed later."""

    code: Literal["QUEUE_FULL"] = "QUEUE_FULL"


class RuntimeClosedError(RuntimeError):
    """The runtime is closed, and starts nothing any more."""

    code: Literal["RUNTIME_CLOSED"] = "RUNTIME_CLOSED"


# JavaScript's error classes, indexed by their numbers.
_CLASSES = (
    "Error",
    "RangeError",
    "ReferenceError",
    "SyntaxError",
    "TypeError",
    "URIError",
    "EvalError",
)


class _Brief(reprlib.Repr):
    """Writes a value of the sandbox as a text of bounded length. The value may nest without end,
    contain itself many times, or be an integer with more digits than Python converts."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlevel = 3
        self.maxlist = self.maxdict = self.maxset = 10
        self.maxstring = self.maxother = 100
        self.maxlong = 200

    def repr_int(self, x: int, level: int) -> str:
        bits = x.bit_length()
        return super().repr_int(x, level) if bits < 512 else f"<int of {bits} bits>"

    def repr_instance(self, x: Any, level: int) -> str:
        shown = x[: self.maxother] if isinstance(x, bytes) else x
        return super().repr_instance(shown, level)

    def repr_dict(self, x: dict[Any, Any], level: int) -> str:
        if level <= 0 < len(x):
            return "{...}"
        texts = [
            f"{self.repr1(key, level - 1)}: {self.repr1(value, level - 1)}"
            for key, value in itertools.islice(x.items(), self.maxdict)
        ]
        return f"{{{', '.join(texts + ['...'] * (len(x) > self.maxdict))}}}"


_brief = _Brief()


class SandboxError(Exception):
    """An `Error` of JavaScript, as a value or as the exception of a sandbox function.

    In the sandbox it becomes an `Error` of the same class again. A host function may raise one of
    its own: `raise SandboxError("RangeError", "no such page")`.
    """

    name: str
    """The error's name, such as `TypeError`."""
    message: str
    """The error's message."""
    stack: str | None
    """`Name: message`, below it the frames of the sandbox, one `    at name (file:line:col)` in a
    line, and below them the errors that it was made from (`cause`, `errors`)."""
    code: str | int | float | None
    """The error's own `code`, if it has one that is text or a number."""
    value: Any
    """The thrown value, if it was no `Error`. Then `name` is `Error`, and `message` is its text."""

    def __init__(
        self,
        name: str,
        message: str,
        stack: str | None = None,
        code: str | int | float | None = None,
        _class: int | None = None,
    ) -> None:
        """An error for the sandbox. If its name is that of a JavaScript class, such as
        `RangeError`, it becomes an instance of that class."""
        super().__init__(name, message, stack, code, _class)
        self.name = name
        self.message = message
        self.stack = stack
        self.code = code
        self.value = None
        self._class = _CLASSES.index(name) if _class is None and name in _CLASSES else _class or 0
        self._is_value = False

    @classmethod
    def of(cls, value: Any) -> SandboxError:
        """The exception for a thrown value that is no `Error`. If a host function raises it, the
        sandbox throws the value itself."""
        error = cls("Error", value if isinstance(value, str) else _brief.repr(value))
        error.value = value
        error._is_value = True
        return error

    def __str__(self) -> str:
        return f"{self.name}: {self.message}" if self.message else self.name

    def __repr__(self) -> str:
        code = "" if self.code is None else f", code={self.code!r}"
        return f"{type(self).__name__}(name={self.name!r}, message={self.message!r}{code})"


class StatusError(Exception):
    """A run did not succeed; only `CodeExecutionResult.raise_for_status` raises it."""

    result: CodeExecutionResult
    """The whole result of the run."""

    def __init__(self, result: CodeExecutionResult) -> None:
        super().__init__(result)
        self.result = result

    @property
    def status(self) -> Status:
        """How the run ended."""
        return self.result.status

    def __str__(self) -> str:
        error = self.result.error
        if error is None:
            return self.result.status
        where = "" if error.line is None else f" ({error.filename}:{error.line}:{error.column})"
        return f"{error.name}: {error.message}{where}"


class UncaughtError(StatusError):
    """The code threw, or its result cannot leave the sandbox: status `error`."""


class MemoryLimitError(StatusError):
    """The memory limit was hit: status `memory`."""


class TerminatedError(StatusError):
    """The caller, or a cap of the runtime, ended the run: status `terminated`."""


class LinkError(StatusError):
    """A source does not parse, or an import or the selected export is missing: status
    `link_error`."""


def status_error(result: CodeExecutionResult) -> StatusError:
    """The exception for a result without success."""
    raised = _STATUS_ERRORS[result.status](result)
    if result.error is not None and result.error.cause is not None:
        raised.__cause__ = result.error.cause
    return raised


_STATUS_ERRORS: dict[Status, type[StatusError]] = {
    "error": UncaughtError,
    "memory": MemoryLimitError,
    "terminated": TerminatedError,
    "link_error": LinkError,
}
