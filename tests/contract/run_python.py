"""The contract table, run through the Python face.

In: the tables next to this file. Out: one test per case, and at the end the numbers of cases that
ran and of those that were skipped (conftest.py). Cases whose host does nothing during the run go
through `run_code_sync` as well, which is not counted.
"""

from __future__ import annotations

import asyncio
import dataclasses
import os
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import isolane
import pytest

from compare_python import mismatch, mismatch_of_some
from host_python import host_functions, turn
from parse import Case, Json, cases
from tags_python import Values, is_absent, tag_of

# Builds with a sanitizer are slow and set this variable.
CEILING_S = 60 * int(os.environ.get("ISOLANE_TEST_PATIENCE", "1"))
ALL = cases(Path(__file__).parent)

# Names of options and of fields with another spelling in Python.
SPELLED = {
    "memoryLimitBytes": "memory_limit_bytes",
    "memoryUsedBytes": "memory_used_bytes",
    "durationMs": "duration_ms",
    "timeoutMs": "timeout_ms",
    "checkpointBytes": "checkpoint_bytes",
    "safetyCapMs": "safety_cap_ms",
    "valueFrom": "value_from",
}

# Python's exceptions for mistakes of the caller.
MISUSE: dict[str, type[Exception]] = {
    "TypeError": TypeError,
    "RangeError": ValueError,
    "SerializationError": isolane.SerializationError,
}


def parameters(chosen: Iterable[Case]) -> list[Any]:
    """The cases as pytest parameters, each under its file and heading."""
    return [
        pytest.param(
            case,
            id=f"{case.file}::{case.heading}",
            marks=[pytest.mark.skip(case.skip["python"])] if "python" in case.skip else [],
        )
        for case in chosen
    ]


def needs_handle(case: Case) -> bool:
    """Whether the host does something to the run while it is running."""
    return bool(case.handle) or "'$fn': 'terminate'" in repr(case.options)


@pytest.mark.parametrize("case", parameters(ALL))
def test_case(case: Case) -> None:
    asyncio.run(asyncio.wait_for(check(case), CEILING_S))


@pytest.mark.parametrize("case", parameters(case for case in ALL if not needs_handle(case)))
def test_case_without_a_loop(case: Case) -> None:
    # On a thread of its own, so that a run that never returns fails only its own test.
    failures: list[BaseException] = []

    def work() -> None:
        try:
            check_sync(case)
        except BaseException as failure:
            failures.append(failure)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(CEILING_S)
    assert not thread.is_alive(), f"no result after {CEILING_S} s"
    if failures:
        raise failures[0]


async def check(case: Case) -> None:
    """Runs a case on this loop and executes the steps of its host."""
    complaints: list[object] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: complaints.append(context))
    handle: isolane.CodeExecution

    options = options_of(case, lambda: handle)
    if case.misuse is not None:
        expect_misuse(case.misuse, lambda: isolane.run_code(case.source, **options))
        return
    handle = isolane.run_code(case.source, **options)
    for step in case.handle:
        await take(step, handle)
    result = await handle
    assert handle.running is False
    expect_result(case, result)
    assert complaints == [], "the loop was told of exceptions that nobody took"


def check_sync(case: Case) -> None:
    """Runs a case without a loop."""

    def no_handle() -> isolane.CodeExecution:
        raise AssertionError("there is no handle here")

    options = options_of(case, no_handle)
    if case.misuse is not None:
        expect_misuse(case.misuse, lambda: isolane.run_code_sync(case.source, **options))
    else:
        expect_result(case, isolane.run_code_sync(case.source, **options))


def options_of(case: Case, handle: Callable[[], isolane.CodeExecution]) -> dict[str, Any]:
    """The keyword arguments of a case, without undefined options."""
    given = {key: said for key, said in case.options.items() if tag_of(said) != "$undefined"}
    values = Values(host_functions(handle))
    options = {in_python(key): values.untag(said) for key, said in given.items()}
    if case.language != "typescript":
        options.setdefault("language", case.language)
    if case.modules:
        options["modules"] = {**options.get("modules", {}), **case.modules}
    if options.get("report") is True:
        options["report"] = lambda _: isolane.undefined
    return options


def expect_misuse(said: dict[str, Json], call: Callable[[], object]) -> None:
    with pytest.raises(Exception) as raised:  # noqa: PT011
        call()
    error = raised.value
    if tag_of(said["name"]) != "$any":
        assert type(error) is MISUSE[said["name"]], repr(error)
    why = misuse_mismatch(str(error), said["message"])
    assert why is None, why


def misuse_mismatch(message: str, said: Json) -> str | None:
    """Compares without the wrong value itself, which the message shows in the words of the
    language."""
    if tag_of(said) == "$match":
        return mismatch(message, {"$match": in_python(said["$match"])}, "message")
    if not isinstance(said, str):
        return mismatch(message, said, "message")
    # Only Python has that option, and only there the refusal of an instance names it.
    message = message.removesuffix("; default= can convert it")
    said, wrong_type, _ = said.partition(", got ")
    if wrong_type:
        message, _, given = message.partition(", got ")
        if not given:
            return f"{message!r} does not say what was given"
    return mismatch(message, in_python(said), "message")


def expect_result(case: Case, result: isolane.CodeExecutionResult) -> None:
    assert case.result is not None
    said = {in_python(key): expected for key, expected in case.result.items()}
    error = said.pop("error", {})
    why = mismatch_of_some(record(result), said, "outcome") or errors_mismatch(result, error)
    assert why is None, f"{why}\nin {result!r:.3000}"
    assert (result.error is None) == (result.status == "success")
    assert result.result is None or result.status == "success"


def errors_mismatch(result: isolane.CodeExecutionResult, error: dict[str, Json]) -> str | None:
    """The difference between the error of a result and the keys that a case gives."""
    if is_absent(error):
        return None if result.error is None else "error is there"
    if not error:
        return None
    if result.error is None:
        return "error is not there"
    return mismatch_of_some(record(result.error), error, "error")


def record(outcome: Any) -> dict[str, Any]:
    """The fields of an outcome in the table's form: None is absent, except for a result."""
    fields = {field.name: getattr(outcome, field.name) for field in dataclasses.fields(outcome)}
    if "logs" in fields:
        fields["logs"] = [record(log) for log in outcome.logs]
    keep_result = getattr(outcome, "status", None) == "success"
    return {
        name: value
        for name, value in fields.items()
        if value is not None or (name == "result" and keep_result)
    }


async def take(step: dict[str, Json], handle: isolane.CodeExecution) -> None:
    """Executes a step of the host."""
    match step:
        case {"terminate": None}:
            handle.terminate()
        case {"terminate": reason}:
            handle.terminate(Values({}).untag(reason))
        case {"reports": count}:
            # Only the handle reports this, at a read.
            while handle.running and len(handle.reports) < count:  # noqa: ASYNC110
                await asyncio.sleep(0.001)
            assert len(handle.reports) >= count, "the run settled before that many reports"
        case {"turns": count}:
            for _ in range(count):
                await turn()
        case {"expectReports": reports}:
            why = mismatch(handle.reports, reports, "handle.reports")
            assert why is None, why
        case {"expectRunning": running}:
            assert handle.running is running
        case _:
            raise ValueError(f"unknown step {step}")


def in_python(text: str) -> str:
    """A text with the names of options and fields in Python's spelling."""
    for name, spelled in SPELLED.items():
        text = text.replace(name, spelled)
    return text
