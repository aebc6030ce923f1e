"""Inputs, results, contexts and errors of executors.

In: objects of these classes, or mappings with the same names. Out: what the native half takes and
gives.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal, TypeAlias, cast

from . import _isolane

ExecutorErrorKind: TypeAlias = Literal[
    "bad_input",
    "engine_missing",
    "engine_failed",
    "spawn",
    "staging",
    "unsupported",
    "cancelled",
    "other",
]
"""The reason why a program did not start."""

Outcome: TypeAlias = Literal[
    "OUTCOME_UNSPECIFIED", "OUTCOME_OK", "OUTCOME_FAILED", "OUTCOME_DEADLINE_EXCEEDED"
]
"""The outcome of a call, as a model is told."""

NativeFile: TypeAlias = tuple[str, bytes, "str | None"]
NativeInput: TypeAlias = tuple[str, str, list[NativeFile], "str | None"]
NativeResult: TypeAlias = tuple[str, str, list[NativeFile], "int | None"]

# The words of JSON in camel case.
_CAMEL = {
    "inputFiles": "input_files",
    "executionId": "execution_id",
    "outputFiles": "output_files",
    "exitCode": "exit_code",
    "mimeType": "mime_type",
    "invocationId": "invocation_id",
}


class ExecutorError(Exception):
    """A program did not start, or its call was cancelled. An event after the start is a
    result."""

    def __init__(self, kind: ExecutorErrorKind, message: str) -> None:
        super().__init__(kind, message)
        self.kind: ExecutorErrorKind = kind
        """`bad_input` and `cancelled` are not retried by the loop; all others are."""
        self.message = message

    def __str__(self) -> str:
        return self.message


@dataclass
class ExecFile:
    """A file that a program finds in its working folder, or that it left there."""

    name: str
    """Without a folder."""
    content: bytes
    mime_type: str | None = None

    @classmethod
    def from_json(cls, json: Mapping[str, Any]) -> ExecFile:
        """A file of its JSON form, in which the content is base64."""
        return _file(json, "file")

    def to_json(self) -> dict[str, Any]:
        """The JSON form."""
        content = base64.b64encode(self.content).decode()
        return {"name": self.name, "content": content, "mime_type": self.mime_type}


@dataclass
class CodeExecutionInput:
    """A program to run."""

    code: str = ""
    language: str = ""
    """In lower case: `python`, `shell`. Empty is the executor's own."""
    input_files: Sequence[ExecFile | Mapping[str, Any]] = ()
    execution_id: str | None = None
    """The state in which it runs, for executors that have one."""

    @classmethod
    def from_json(cls, json: Mapping[str, Any]) -> CodeExecutionInput:
        """An input of its JSON form."""
        code, language, files, execution_id = native_input(json)
        return cls(code, language, [ExecFile(*file) for file in files], execution_id)

    def to_json(self) -> dict[str, Any]:
        """The JSON form."""
        code, language, files, execution_id = native_input(self)
        return {
            "code": code,
            "language": language,
            "input_files": [ExecFile(*file).to_json() for file in files],
            "execution_id": execution_id,
        }


@dataclass
class CodeExecutionResult:
    """The result of a program."""

    stdout: str = ""
    stderr: str = ""
    output_files: list[ExecFile] = field(default_factory=list)
    """The files that it made or changed."""
    exit_code: int | None = None
    """128 + N after signal N. `None` after a timeout, or where it is not known."""

    def is_success(self) -> bool:
        """Whether the exit code is 0, or there is neither an exit code nor text in `stderr`."""
        return self.stderr == "" if self.exit_code is None else self.exit_code == 0

    def combined_output(self) -> str:
        """Both streams as one text, with a line between them unless one is empty."""
        if not self.stderr:
            return self.stdout
        if not self.stdout:
            return self.stderr
        return f"{self.stdout}\n--- stderr ---\n{self.stderr}"

    @classmethod
    def from_json(cls, json: Mapping[str, Any]) -> CodeExecutionResult:
        """A result of its JSON form."""
        return result_of(native_result(json))

    def to_json(self) -> dict[str, Any]:
        """The JSON form."""
        return {
            "stdout": self.stdout,
            "stderr": self.stderr,
            "output_files": [file.to_json() for file in self.output_files],
            "exit_code": self.exit_code,
        }


def never() -> bool:
    """Whether a call by itself is cancelled: never."""
    return False


@dataclass
class InvocationContext:
    """The context of a call."""

    invocation_id: str = ""
    """The run of the loop to which the call belongs, or an empty text."""
    turn: int = 0
    """The turn of the loop, from 1; 0 outside of a loop."""
    attempt: int = 1
    """The attempt, from 1."""
    cancelled: Callable[[], bool] = never
    """Whether the call is to end. One that does raises an error of the kind `cancelled`."""
    stdout: Callable[[bytes], object] | None = None
    """The receiver of the standard output as it comes: a function or a coroutine function, for
    which the next piece waits."""
    stderr: Callable[[bytes], object] | None = None
    """The same for the standard error."""


def context_of(given: InvocationContext | Mapping[str, Any] | None) -> InvocationContext:
    """The context that was given, or that of a call by itself."""
    if given is None:
        return InvocationContext()
    if isinstance(given, InvocationContext):
        return given
    if not isinstance(given, Mapping):
        raise TypeError(
            f"the context must be an InvocationContext or None, got {type(given).__name__}"
        )
    _refuse_unknown(given, InvocationContext)
    return InvocationContext(**{_CAMEL.get(name, name): value for name, value in given.items()})


def native_input(given: CodeExecutionInput | Mapping[str, Any]) -> NativeInput:
    """The fields of an input, checked."""
    get = _fields(given, CodeExecutionInput, "the input")
    code = _text(get("code", ""), "code")
    language = _text(get("language", ""), "language")
    files = native_files(get("input_files", ()), "input_files")
    return code, language, files, _maybe_text(get("execution_id", None), "execution_id")


def native_result(given: CodeExecutionResult | Mapping[str, Any]) -> NativeResult:
    """The fields of a result, checked."""
    get = _fields(given, CodeExecutionResult, "the result of an executor")
    exit_code = get("exit_code", None)
    if exit_code is not None:
        if isinstance(exit_code, bool) or not isinstance(exit_code, int):
            raise TypeError(f"exit_code must be an int or None, got {type(exit_code).__name__}")
        if not -(2**31) <= exit_code < 2**31:
            raise ValueError(f"exit_code must be an int of 32 bits, got {exit_code}")
    stdout = _text(get("stdout", ""), "stdout")
    stderr = _text(get("stderr", ""), "stderr")
    return stdout, stderr, native_files(get("output_files", ()), "output_files"), exit_code


def native_files(given: Any, place: str) -> list[NativeFile]:
    """The fields of files, checked."""
    if given is None:
        return []
    if isinstance(given, (str, bytes, Mapping)) or not hasattr(given, "__iter__"):
        raise TypeError(f"{place} must be a list of files, got {type(given).__name__}")
    files = [_file(file, f"{place}[{index}]") for index, file in enumerate(given)]
    return [(file.name, file.content, file.mime_type) for file in files]


def input_of(native: NativeInput) -> CodeExecutionInput:
    """The input with those fields."""
    code, language, files, execution_id = native
    return CodeExecutionInput(code, language, [ExecFile(*file) for file in files], execution_id)


def result_of(native: NativeResult) -> CodeExecutionResult:
    """The result with those fields."""
    stdout, stderr, files, exit_code = native
    return CodeExecutionResult(stdout, stderr, [ExecFile(*file) for file in files], exit_code)


def _file(given: Any, place: str) -> ExecFile:
    get = _fields(given, ExecFile, place)
    name = _text(get("name", None), f"{place}.name")
    content = get("content", None)
    if isinstance(content, str) and isinstance(given, Mapping):
        try:
            content = base64.b64decode(content, validate=True)
        except (binascii.Error, ValueError) as error:
            raise ValueError(f"{place}.content is no base64: {error}") from None
    if not isinstance(content, (bytes, bytearray, memoryview)):
        raise TypeError(f"{place}.content must be bytes, got {type(content).__name__}")
    mime_type = _maybe_text(get("mime_type", None), f"{place}.mime_type")
    return ExecFile(name, bytes(content), mime_type)


def _fields(given: Any, expected: type, place: str) -> Callable[[str, Any], Any]:
    """The fields of an object or a mapping. `None` in a mapping is as if not given."""
    if isinstance(given, Mapping):
        _refuse_unknown(given, expected)
        found = {
            _CAMEL.get(name, name): value for name, value in given.items() if value is not None
        }
        return found.get
    if not isinstance(given, expected):
        raise TypeError(
            f"{place} must be a {expected.__name__} or a mapping, got {type(given).__name__}"
        )
    return lambda name, default: getattr(given, name, default)


def _refuse_unknown(given: Mapping[str, Any], expected: type) -> None:
    names = [field.name for field in fields(expected)]
    for name in given:
        if _CAMEL.get(name, name) not in names:
            raise _isolane.unknown_keyword(expected.__name__, str(name), "", names)


def _text(given: Any, place: str) -> str:
    if not isinstance(given, str):
        raise TypeError(f"{place} must be a string, got {type(given).__name__}")
    return given


def _maybe_text(given: Any, place: str) -> str | None:
    return None if given is None else _text(given, place)


def error_of(fields: tuple[str, str]) -> ExecutorError:
    """The error with that kind and message."""
    kind, message = fields
    return ExecutorError(cast(ExecutorErrorKind, kind), message)


def text_part(text: str) -> dict[str, Any]:
    """A part that is a text."""
    return {"text": text}


def code_part(language: str, code: str) -> dict[str, Any]:
    """A part that is a program. An empty language is none in particular."""
    word = language.upper() or "LANGUAGE_UNSPECIFIED"
    return {"executableCode": {"language": word, "code": code}}
