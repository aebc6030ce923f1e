"""The options of runs and sessions, as types for a type checker and for `help`, declared once for
all functions that take them. The core checks the values."""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Concatenate, Literal, ParamSpec, Protocol, TypeAlias, TypedDict, TypeVar

from . import _isolane

Language: TypeAlias = Literal["javascript", "typescript"]
"""The language of the sources. Types are erased, not checked."""


class Execute(TypedDict, total=False):
    """The export that is the result, and its arguments."""

    fn: str
    """The name of the export; `default` when absent."""
    args: Sequence[Any]
    """The arguments, if the export is a function; they are cloned. None when absent."""


Cells: TypeAlias = Literal["queue", "interleave"]
"""Whether the cells of a session run one at a time, or the next one starts as soon as those before
wait for the host."""

Imports: TypeAlias = Mapping[str, Mapping[str, Any]]
Modules: TypeAlias = Mapping[str, str]
Globals: TypeAlias = Mapping[str, Any]
Report: TypeAlias = Callable[[Any], Any]

Default: TypeAlias = Callable[[Any], Any]
"""Converts a value that cannot be cloned, as the `default` of `json.dumps` does: it returns another
value, which crosses in its place, or raises."""

Parameters = ParamSpec("Parameters")
Returned = TypeVar("Returned")
Owner = TypeVar("Owner")


def run_arguments(
    source: str,
    *,
    execute: Execute | None = None,
    imports: Imports | None = None,
    modules: Modules | None = None,
    globals: Globals | None = None,
    language: Language = "typescript",
    memory_limit_bytes: int | None = None,
    filename: str | None = None,
    report: Report | None = None,
    default: Default | None = None,
) -> dict[str, Any]:
    """The arguments of a function that starts a run, by name."""
    return locals()


def runtime_arguments(
    *,
    isolation: Literal["thread", "process"] = "thread",
    safety_cap_ms: int | None = None,
    max_concurrent_runs: int | None = None,
    max_queued_runs: int | None = None,
    max_stuck_threads: int | None = None,
    ready_isolates: int | None = None,
    compile_cache_bytes: int | None = None,
    worker: str | os.PathLike[str] | None = None,
    runs_per_worker: int | None = None,
    worker_idle_ms: int | None = None,
    default: Default | None = None,
) -> dict[str, Any]:
    """The options of a runtime, by name."""
    return locals()


def session_arguments(
    *,
    imports: Imports | None = None,
    modules: Modules | None = None,
    globals: Globals | None = None,
    language: Language = "typescript",
    memory_limit_bytes: int | None = None,
    report: Report | None = None,
    cells: Cells = "queue",
    checkpoint_bytes: int | None = None,
    default: Default | None = None,
) -> dict[str, Any]:
    """The options of a session, by name."""
    return locals()


def cell_arguments(
    source: str,
    *,
    filename: str | None = None,
    language: Language | None = None,
    report: Report | None = None,
    timeout_ms: int | None = None,
) -> dict[str, Any]:
    """The arguments of a cell, by name."""
    return locals()


def call_arguments(
    name: str,
    /,
    *args: Any,
    report: Report | None = None,
    timeout_ms: int | None = None,
) -> dict[str, Any]:
    """The arguments of a call, by name."""
    return locals()


def update_arguments(
    *,
    globals: Globals | None = None,
    imports: Mapping[str, Mapping[str, Any] | None] | None = None,
    modules: Mapping[str, str | None] | None = None,
) -> dict[str, Any]:
    """The parts of an update, by name."""
    return locals()


# The core's names for those of its sets of options that have remedies.
_SETS = {
    run_arguments: "run",
    runtime_arguments: "runtime",
    session_arguments: "session",
    cell_arguments: "cell",
    call_arguments: "call",
}


def bound(
    shown: Callable[..., dict[str, Any]],
    called: str,
    args: tuple[Any, ...],
    options: dict[str, Any],
) -> dict[str, Any]:
    """The arguments of a call by name; `called` is the name by which the caller called it.

    Raises:
        TypeError: Python would not bind them to the parameters of `shown`.
    """
    try:
        return shown(*args, **options)
    except TypeError as raised:
        refused = raised
    parameters = inspect.signature(shown).parameters
    for key in options:
        if key not in parameters:
            names = [each.name for each in parameters.values() if each.kind is each.KEYWORD_ONLY]
            raise _isolane.unknown_keyword(called, key, _SETS.get(shown, ""), names)
    # Python's own words, with the name of the caller's function.
    raise TypeError(str(refused).replace(f"{shown.__qualname__}()", f"{called}()", 1))


def refuses_unknown(
    called: str,
) -> Callable[[Callable[Parameters, Returned]], Callable[Parameters, Returned]]:
    """Decorates a constructor whose options are keywords. The error for an unknown one has the
    name by which the caller called it, and the hint of `bound`."""

    def decorate(function: Callable[Parameters, Returned]) -> Callable[Parameters, Returned]:
        parameters = inspect.signature(function).parameters
        names = [each.name for each in parameters.values() if each.kind is each.KEYWORD_ONLY]

        @functools.wraps(function)
        def constructed(*args: Parameters.args, **options: Parameters.kwargs) -> Returned:
            for key in options:
                if key not in parameters:
                    raise _isolane.unknown_keyword(called, key, "", names)
            return function(*args, **options)

        return constructed

    return decorate


class _HasDefault(Protocol):
    _default: Default | None


def default_of(arguments: Mapping[str, Any], runtime: _HasDefault | None) -> Default | None:
    """The hook among the arguments, or else that of a runtime or of a kit."""
    own: Default | None = arguments["default"]
    return runtime._default if own is None and runtime is not None else own


def as_function(
    shown: Callable[Parameters, object],
) -> Callable[[Callable[..., Returned]], Callable[Parameters, Returned]]:
    """Decorates a function with the parameters of another one."""

    def decorate(function: Callable[..., Returned]) -> Callable[Parameters, Returned]:
        _show(function, shown, [])
        return function

    return decorate


def as_method(
    shown: Callable[Parameters, object],
) -> Callable[
    [Callable[Concatenate[Owner, ...], Returned]],
    Callable[Concatenate[Owner, Parameters], Returned],
]:
    """Decorates a method with the parameters of a function."""

    def decorate(
        method: Callable[Concatenate[Owner, ...], Returned],
    ) -> Callable[Concatenate[Owner, Parameters], Returned]:
        _show(method, shown, [inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)])
        return method

    return decorate


def _show(function: Any, shown: Callable[..., object], before: list[inspect.Parameter]) -> None:
    """Has `help` show the parameters of `shown`, after those in `before`."""
    signature = inspect.signature(shown)
    function.__signature__ = signature.replace(
        parameters=[*before, *signature.parameters.values()],
        return_annotation=function.__annotations__["return"],
    )
