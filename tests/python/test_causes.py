"""Errors keep their causes: those of a run's error and of the exception of `raise_for_status`."""

from __future__ import annotations

import asyncio
import copy
import gc
import pickle
import sys
import traceback
import weakref
from collections.abc import Callable
from typing import Any

import isolane
import pytest
from isolane import CodeExecutionResult, Runtime, SerializationError, StatusError
from isolane._isolane import kit_function

LARGE = 1 << 17
BUFFER = f"() => new Uint8Array({LARGE})"
PROMISE = f"Promise.resolve('x'.repeat({LARGE}))"
FAIL = "try { fail() } catch {}"


class BrokenError(Exception):
    """The exception that the host functions raise."""


def host(raised: list[BaseException]) -> dict[str, Any]:
    """Host functions that raise, and keep their exceptions."""

    def fail(*_: Any) -> None:
        raised.append(BrokenError("over"))
        raise raised[-1]

    async def fail_later(*args: Any) -> None:
        fail(*args)

    async def fail_soon(*args: Any) -> None:
        await asyncio.sleep(0.001)
        fail(*args)

    def future(*args: Any) -> asyncio.Future[Any]:
        return asyncio.ensure_future(fail_soon(*args))

    async def call(function: Any) -> Any:
        return await function()

    async def get(promise: Any) -> None:
        await promise

    return {
        "fail": fail,
        "get": get,
        "failLater": fail_later,
        "failSoon": fail_soon,
        "future": future,
        "native": kit_function("atob"),
        "fine": lambda *_: None,
        "call": call,
    }


# Sources that end by the last thing that the host raised.
CAUSED = [
    "fail()",
    "await failLater()",
    "await failSoon()",
    "await future()",
    "report(1)",
    "export default failSoon()",
    "export default () => fail()",
    "try { native('*') } catch {} try { fail() } catch {} try { native('*') } catch {} fail()",
    f"fail('x'.repeat({LARGE}))",
    f"await failLater('x'.repeat({LARGE}))",
    f"await future('x'.repeat({LARGE}))",
    "for (let i = 0; i < 100; i++) try { fail() } catch {} fail()",
    "try { fail() } catch (e) { fine(); await null; e.message = 'said otherwise'; throw e }",
    "await failLater(fail.name)",
    "fine({ get f() { return fail() } })",
    "let k; try { fail() } catch (e) { k = e } fine('small'); await call(() => 1); fine(); throw k",
    # The latest is kept after a large message of a function or of a promise.
    f"try {{ fail() }} catch {{}} try {{ fail() }} catch (e) {{ await call({BUFFER}); throw e }}",
    f"try {{ fail() }} catch {{}} try {{ fail() }} catch (e) {{ await get({PROMISE}); throw e }}",
]

# Sources that end by something else.
UNCAUSED = [
    "throw new Error('over')",
    "try { fail() } catch (e) { throw new Error(e.message) }",
    "try { fail() } catch (e) { throw { name: e.name, message: e.message } }",
    "const all = []; for (let i = 9; i--; ) try { fail() } catch (e) { all.push(e) } throw all[0]",
    f"try {{ fail('x'.repeat({LARGE})) }} catch (e) {{ fine(); throw e }}",
    f"try {{ await future('x'.repeat({LARGE})) }} catch (e) {{ fine(); throw e }}",
    # After a large message only the latest is kept, until the next call.
    f"let k; try {{ fail() }} catch (e) {{ k = e }} fine('x'.repeat({LARGE})); fine(); throw k",
    f"let k; try {{ fail() }} catch (e) {{ k = e }} await call({BUFFER}); fine(); throw k",
    f"try {{ fail() }} catch (e) {{ fine('x'.repeat({LARGE})); throw e }}",
    # The message itself makes it the only one.
    f"let k; try {{ fail() }} catch (e) {{ k = e }} {FAIL} await call({BUFFER}); throw k",
    f"let k; try {{ fail() }} catch (e) {{ k = e }} {FAIL} await get({PROMISE}); throw k",
    "import 'nowhere'",
    "native('*')",
    "try { fail() } catch {} native('*')",
    "report(() => {})",
]


def failed(source: str) -> tuple[CodeExecutionResult, list[BaseException]]:
    raised: list[BaseException] = []
    functions = host(raised)
    with Runtime() as runtime:
        result = runtime.run_code_sync(source, globals=functions, report=functions["fail"])
    assert result.status in ("error", "link_error"), result
    return result, raised


def raised_by(result: CodeExecutionResult) -> StatusError:
    with pytest.raises(StatusError) as caught:
        result.raise_for_status()
    return caught.value


@pytest.mark.parametrize("source", CAUSED)
def test_what_a_host_function_raised_is_the_cause(source: str) -> None:
    result, raised = failed(source)
    assert result.error is not None
    assert result.error.cause is raised[-1]
    assert raised_by(result).__cause__ is raised[-1]


@pytest.mark.parametrize("source", UNCAUSED)
def test_nothing_else_has_a_cause(source: str) -> None:
    result, _ = failed(source)
    assert result.error is not None
    assert result.error.cause is None
    assert raised_by(result).__cause__ is None


def test_the_traceback_shows_the_host_function_alone() -> None:
    for source in ("fail()", "await failSoon()"):
        result, raised = failed(source)
        frames = traceback.extract_tb(raised[-1].__traceback__)
        assert frames[-1].name == "fail"
        assert {frame.filename for frame in frames} == {__file__}
        assert "BrokenError: over" in "".join(traceback.format_exception(raised_by(result)))


@pytest.mark.parametrize(
    ("give", "message"),
    [
        (object, "the answer of give: an instance of object cannot be cloned"),
        (
            lambda: [{"a": iter([])}],
            "the answer of give[0].a: an instance of list_iterator cannot be cloned",
        ),
    ],
)
def test_a_result_that_cannot_be_cloned_is_the_cause(give: Callable[[], Any], message: str) -> None:
    with Runtime() as runtime:
        result = runtime.run_code_sync("give()", globals={"give": give})
    assert result.error is not None
    assert isinstance(result.error.cause, SerializationError)
    assert str(result.error.cause) == result.error.message == message


def test_what_the_sandbox_threw_through_the_host_keeps_its_exception() -> None:
    async def pass_on(function: Any) -> Any:
        return await function()

    source = "await passOn(() => { throw new RangeError('inside') })"
    with Runtime() as runtime:
        result = runtime.run_code_sync(source, globals={"passOn": pass_on})
    assert result.error is not None
    assert isinstance(result.error.cause, isolane.SandboxError)
    assert str(result.error.cause) == "RangeError: inside"


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_no_copy_of_a_result_has_it(protocol: int) -> None:
    result, _ = failed("fail()")
    for other in (pickle.loads(pickle.dumps(result, protocol)), copy.deepcopy(result)):
        assert other == result
        assert other.error is not None
        assert other.error.cause is None
    assert "cause" not in repr(result)


def test_a_cause_goes_with_its_result() -> None:
    result, raised = failed("fail()")
    known = weakref.ref(raised.pop())
    assert result.error is not None
    assert known() is result.error.cause
    del result
    # Its frames refer to their callers.
    gc.collect()
    assert known() is None


def test_what_was_caught_is_let_go_of() -> None:
    known: list[weakref.ref[BaseException]] = []

    def fail() -> None:
        error = BrokenError("over")
        known.append(weakref.ref(error))
        try:
            raise error
        finally:
            del error

    source = "for (let i = 0; i < 50; i++) try { fail() } catch {} export default alive()"
    alive = {"alive": lambda: sum(ref() is not None for ref in known), "fail": fail}
    with Runtime() as runtime:
        result = runtime.run_code_sync(source, globals=alive)
    assert result.result <= 8
    gc.collect()
    assert [ref for ref in known if ref() is not None] == []


@pytest.mark.skipif(sys.platform == "win32", reason="its wheel has no worker")
def test_a_worker_that_cannot_be_started() -> None:
    with Runtime(isolation="process", worker=__file__) as runtime:
        result = runtime.run_code_sync("export default 1")
    assert result.error is not None
    assert result.error.name == "WorkerLost"
    assert isinstance(result.error.cause, PermissionError)
    assert raised_by(result).__cause__ is result.error.cause
    with pytest.raises(TypeError, match="there is no file") as caught:
        Runtime(isolation="process", worker="/nowhere/isolane-worker")
    assert isinstance(caught.value.__cause__, FileNotFoundError)


def test_a_path_that_is_none() -> None:
    with pytest.raises(TypeError, match="worker must be a path, got int") as caught:
        Runtime(isolation="process", worker=7)  # type: ignore[arg-type]
    assert isinstance(caught.value.__cause__, TypeError)
