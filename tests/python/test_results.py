"""Results: plain data that can be compared, copied, pickled and raised."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from typing import Any

import isolane
import pytest
from isolane import (
    CodeExecutionError,
    CodeExecutionLog,
    CodeExecutionResult,
    LinkError,
    MemoryLimitError,
    Runtime,
    StatusError,
    TerminatedError,
    UncaughtError,
    run_code_sync,
)

from isolation import ISOLATION


def terminated() -> CodeExecutionResult:
    """A run that its own host function ends."""
    runtime = Runtime()
    return runtime.run_code_sync("close()", globals={"close": runtime.close})


def of_each_status() -> list[CodeExecutionResult]:
    """A result of each status."""
    return [
        run_code_sync("console.log('a', 1); report([1]); export default { a: 1 }", report=len),
        run_code_sync("const a = 1;\n  throw new TypeError('no')", filename="a.ts"),
        run_code_sync("const a = []; for (;;) a.push([])", memory_limit_bytes=4_000_000),
        terminated(),
        run_code_sync("import { a } from 'b'"),
    ]


def test_reprs() -> None:
    success, error, *_ = of_each_status()
    assert repr(success).startswith(
        "CodeExecutionResult(status='success', result={'a': 1}, reports=[[1]], "
        "logs=[CodeExecutionLog(level='log', args=['a', 1], timestamp="
    )
    assert repr(error.error) == (
        "CodeExecutionError(name='TypeError', message='no', "
        "stack='TypeError: no\\n    at <anonymous> (a.ts:2:13)', specifier=None, "
        "filename='a.ts', line=2, column=13)"
    )


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_results_can_be_pickled(protocol: int) -> None:
    for result in of_each_status():
        assert pickle.loads(pickle.dumps(result, protocol)) == result
        assert copy.deepcopy(result) == copy.copy(result) == result
        assert dataclasses.replace(result) == result


def test_results_are_of_dataclasses() -> None:
    success, error, *_ = of_each_status()
    assert dataclasses.asdict(success)["logs"][0]["args"] == ["a", 1]
    for instance in (success, error.error, success.logs[0]):
        assert instance is not None
        with pytest.raises(dataclasses.FrozenInstanceError):
            instance.name = "x"  # type: ignore[misc,union-attr]
    assert isinstance(success.logs[0], CodeExecutionLog)
    assert isinstance(error.error, CodeExecutionError)


def test_results_can_be_matched() -> None:
    match run_code_sync("throw new Error('no')"):
        case CodeExecutionResult(status="error", error=CodeExecutionError(name="Error", message=m)):
            assert m == "no"
        case other:
            pytest.fail(repr(other))


def test_raise_for_status() -> None:
    success, *failures = of_each_status()
    assert success.raise_for_status() is success
    classes = [UncaughtError, MemoryLimitError, TerminatedError, LinkError]
    for result, expected in zip(failures, classes, strict=True):
        with pytest.raises(StatusError) as caught:
            result.raise_for_status()
        assert type(caught.value) is expected
        assert caught.value.result is result
        assert caught.value.status == result.status
        assert result.error is not None
        assert str(caught.value).startswith(f"{result.error.name}: {result.error.message}")


def test_what_it_raises_says_where() -> None:
    with pytest.raises(UncaughtError, match=r"^TypeError: no \(a\.ts:2:13\)$"):
        of_each_status()[1].raise_for_status()
    with pytest.raises(TerminatedError, match=r"^Terminated: runtime closed( \(<runCode>:1:1\))?$"):
        terminated().raise_for_status()


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_what_it_raises_can_be_pickled(protocol: int) -> None:
    for result in of_each_status()[1:]:
        with pytest.raises(StatusError) as caught:
            result.raise_for_status()
        again = pickle.loads(pickle.dumps(caught.value, protocol))
        assert type(again) is type(caught.value)
        assert again.result == result
        assert str(again) == str(caught.value)
        assert copy.copy(caught.value).result == result


def test_numbers_of_a_result() -> None:
    result = run_code_sync("console.warn(1); export default null")
    assert isinstance(result.duration_ms, float)
    assert 0 < result.duration_ms < 10_000
    assert isinstance(result.memory_used_bytes, int)
    assert 1_500_000_000_000 < result.logs[0].timestamp < 5_000_000_000_000
    assert result.result is None
    assert result.error is None


@pytest.mark.skipif(ISOLATION == "process", reason="what was put in place of the API is no API")
def test_the_api_says_what_it_is() -> None:
    for name in isolane.__all__:
        value: Any = getattr(isolane, name)
        if isinstance(value, type) or inspect.isfunction(value):
            assert value.__doc__, name
            assert value.__module__.startswith("isolane"), name
    assert isolane.__doc__ is not None
