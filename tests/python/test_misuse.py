"""Mistakes of the caller, in the words of Python.

In: invalid options. Out: the exception that `run_code` raises before anything starts.
"""

from __future__ import annotations

import asyncio
from typing import Any

import isolane
import isolane.environment
import isolane.executors
import isolane.kit
import pytest
from isolane import SerializationError

from isolation import ISOLATION


def test_an_option_that_is_none_is_left_out() -> None:
    result = isolane.run_code_sync(
        "export default 'ok'",
        execute=None,
        imports=None,
        modules=None,
        globals=None,
        memory_limit_bytes=None,
        filename=None,
        report=None,
    )
    assert result.result == "ok"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"filename": 5}, "filename must be a str, got int"),
        ({"filename": b"a.js"}, "filename must be a str, got bytes"),
        ({"language": "ts"}, "language must be 'javascript' or 'typescript', got 'ts'"),
        ({"memory_limit_bytes": "64MB"}, "memory_limit_bytes must be an int, got '64MB'"),
        ({"memory_limit_bytes": 1.5}, "memory_limit_bytes must be an int, got float"),
        ({"memory_limit_bytes": float("nan")}, "memory_limit_bytes must be an int, got float"),
        ({"memory_limit_bytes": float("inf")}, "memory_limit_bytes must be an int, got float"),
        ({"memory_limit_bytes": True}, "memory_limit_bytes must be an int, got bool"),
        ({"report": "yes"}, "report must be a callable, got 'yes'"),
        ({"globals": [1]}, "globals must be a dict, got list"),
        ({"globals": {1: 2}}, "a key of globals must be a str, got int"),
        ({"imports": {"fs": None}}, "imports.fs must be a dict, got NoneType"),
        ({"modules": {"./a.js": 5}}, 'modules["./a.js"] must be a str, got int'),
        ({"execute": "main"}, "execute must be a dict, got 'main'"),
        ({"execute": {"fn": 1}}, "execute.fn must be a str, got int"),
        ({"execute": {"args": {"a": 1}}}, "execute.args must be a list, got dict"),
        ({"execute": {"arg": [1]}}, "unknown option 'execute.arg'; did you mean 'execute.args'?"),
    ],
)
def test_an_option_of_the_wrong_type_is_a_type_error(options: Any, message: str) -> None:
    with pytest.raises(TypeError) as refused:
        isolane.run_code_sync("export default 1", **options)
    assert type(refused.value) is TypeError
    assert str(refused.value) == message


def test_a_source_has_to_be_text() -> None:
    source: Any = b"export default 1"
    with pytest.raises(TypeError) as refused:
        isolane.run_code_sync(source)
    assert str(refused.value) == "source must be a str, got bytes"


@pytest.mark.parametrize("limit", [0, -1, 2**53, 10**400, -(10**400)])
def test_a_limit_out_of_range_is_a_value_error(limit: int) -> None:
    with pytest.raises(
        ValueError, match=r"^memory_limit_bytes must be a safe integer of at least 1"
    ):
        isolane.run_code_sync("export default 1", memory_limit_bytes=limit)


def test_an_int_is_a_limit_whatever_its_class() -> None:
    class Size(int):
        pass

    limit = Size(64 << 20)
    assert isolane.run_code_sync("export default 1", memory_limit_bytes=limit).result == 1


NEAREST = "; did you mean 'memory_limit_bytes'?"
IN_TIME = (
    "; a run has no time limit of its own: await it with asyncio.wait_for(), or run a cell of a "
    "session, which has 'timeout_ms'"
)


@pytest.mark.parametrize(
    ("key", "hint"), [("memory_limit", NEAREST), ("timeout", IN_TIME), ("timeout_ms", IN_TIME)]
)
@pytest.mark.parametrize("name", ["run_code", "run_code_sync"])
def test_an_unknown_option_of_a_run(name: str, key: str, hint: str) -> None:
    options: Any = {key: 1000}
    with isolane.Runtime() as runtime:
        for place in (isolane, runtime):
            with pytest.raises(TypeError) as refused:
                getattr(place, name)("export default 1", **options)
            said = f"{name}() got an unexpected keyword argument '{key}'{hint}"
            assert str(refused.value) == said


@pytest.mark.parametrize("name", ["run", "run_sync", "call", "call_sync"])
def test_an_unknown_option_of_a_cell(name: str) -> None:
    options: Any = {"timeout": 1000}
    with isolane.Session() as session:
        with pytest.raises(TypeError) as refused:
            getattr(session, name)("f", **options)
        said = f"{name}() got an unexpected keyword argument 'timeout'; did you mean 'timeout_ms'?"
        assert str(refused.value) == said


@pytest.mark.parametrize(
    ("name", "call", "key", "hint"),
    [
        ("run_tool", isolane.kit.Kit.run_tool, "timeout", "did you mean 'timeout_ms'?"),
        ("run_code_sync", isolane.kit.Kit.run_code_sync, "limit", "valid options are "),
        ("session", isolane.kit.Kit.session, "memory_limit", NEAREST[2:]),
    ],
)
def test_an_unknown_option_of_a_kit(name: str, call: Any, key: str, hint: str) -> None:
    args = () if name == "session" else ("1",)
    with isolane.kit.Kit() as kit, pytest.raises(TypeError) as refused:
        call(kit, *args, **{key: 1})
    said = f"{name}() got an unexpected keyword argument '{key}'; {hint}"
    assert str(refused.value).startswith(said)


@pytest.mark.parametrize(
    ("opened", "key", "hint"),
    [
        (isolane.kit.Kit, "timeout", "did you mean 'timeout_ms'?"),
        (isolane.kit.Kit, "memory_limit", NEAREST[2:]),
        (isolane.executors.IsolateCodeExecutor, "timeout", "did you mean 'timeout_ms'?"),
        (isolane.executors.LocalCodeExecutor, "timeout", "did you mean 'timeout_ms'?"),
        (isolane.executors.ConfinedCodeExecutor, "timeout", "did you mean 'timeout_ms'?"),
        (isolane.environment.TypeScriptEnvironment, "timeout", "valid options are isolation, "),
        (isolane.environment.ProcessService, "max_queue", "did you mean 'max_queued'?"),
    ],
)
def test_an_unknown_option_of_a_system(opened: Any, key: str, hint: str) -> None:
    with pytest.raises(TypeError) as refused:
        opened(**{key: 1})
    said = f"{opened.__name__}() got an unexpected keyword argument '{key}'; {hint}"
    assert str(refused.value).startswith(said)


def test_an_option_of_another_thing() -> None:
    options: Any = {"memory_limit_bytes": 1 << 24}
    with isolane.Session() as session, pytest.raises(TypeError) as refused:
        session.run_sync("1", **options)
    said = "got an unexpected keyword argument 'memory_limit_bytes'; 'memory_limit_bytes' is an"
    assert str(refused.value) == f"run_sync() {said} option of the session"
    with pytest.raises(TypeError) as refused:
        isolane.Runtime(**options)
    assert str(refused.value) == f"Runtime() {said} option of each run"


def test_an_unknown_option_of_what_stays() -> None:
    options: Any = {"memory_limit": 1}
    with pytest.raises(TypeError) as refused:
        isolane.Session(**options)
    said = "() got an unexpected keyword argument 'memory_limit'; did you mean"
    # Tests of processes open it by a method of a runtime.
    called = "Session" if ISOLATION == "thread" else "session"
    assert str(refused.value).startswith(f"{called}{said} 'memory_limit_bytes'?")
    options = {"max_runs": 1}
    with pytest.raises(TypeError, match=r"^Runtime\(\) .* did you mean 'max_queued_runs'\?$"):
        isolane.Runtime(**options)
    options = {"global": {}}
    with isolane.Session() as session, pytest.raises(TypeError) as refused:
        session.update(**options)
    said = "update() got an unexpected keyword argument 'global'; did you mean 'globals'?"
    assert str(refused.value) == said


def test_a_missing_source_names_the_call() -> None:
    for name in ("run_code", "run_code_sync"):
        with pytest.raises(TypeError) as refused:
            getattr(isolane, name)()
        said = f"{name}() missing 1 required positional argument: 'source'"
        assert str(refused.value) == said


def test_a_mistake_is_told_before_there_is_a_run() -> None:
    async def call() -> None:
        with pytest.raises(SerializationError):
            isolane.run_code("export default 1", globals={"pool": object()})

    asyncio.run(call())
