"""The executor of isolates: the cases that all languages share, in both isolations, and what Python
alone can see."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import re
import sys
import time
import weakref
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from isolane import Runtime
from isolane.executors import (
    CodeExecutionInput,
    CodeExecutionResult,
    ExecFile,
    ExecutorError,
    InvocationContext,
    IsolateCodeExecutor,
)

from ceilings import CEILING_S
from processes import Known, descendants, until

CASES = Path(__file__).parents[2] / "crates/executors/tests/cases/isolate.md"


def read_cases() -> list[dict[str, Any]]:
    cases: list[dict[str, Any]] = []
    lines = iter(CASES.read_text().split("\n"))
    for line in lines:
        if line.startswith("## "):
            cases.append({"name": line[3:], "options": {}, "files": {}, "steps": []})
        if not line.startswith("```"):
            continue
        tag, body = line[3:], []
        for inner in lines:
            if inner == "```":
                break
            body.append(inner)
        text, case = "\n".join(body), cases[-1]
        word = "" if tag == "code" else tag[5:] if tag.startswith("code ") else tag
        if tag in ("js", "ts", "code") or tag.startswith("code "):
            step = {"language": word, "code": text, "stdout": "", "stderr": "", "files": {}}
            case["steps"].append({**step, "exit": "0"})
        elif tag == "json options":
            case["options"] = json.loads(text)
        elif tag == "json files":
            case["files"] = json.loads(text)
        elif tag == "json files out":
            case["steps"][-1]["files"] = json.loads(text)
        else:
            assert tag in ("stdout", "stderr", "exit"), tag
            case["steps"][-1][tag] = text
    return cases


cases = read_cases()


def matches(expected: str, actual: str) -> bool:
    """Whether a text is as expected, where a line `…` stands for any lines."""
    actual = actual.removesuffix("\n")
    expected = expected.replace("\\u{0}", "\0").replace("\\u{1b}", "\x1b")
    parts = [part.strip("\n") for part in expected.split("…")]
    if len(parts) == 1:
        return actual == expected
    is_framed = actual.startswith(parts[0]) and actual.endswith(parts[-1])
    return is_framed and all(part in actual for part in parts)


def snake(name: str) -> str:
    return re.sub("[A-Z]", lambda letter: "_" + letter.group().lower(), name)


def test_there_are_cases() -> None:
    assert len(cases) > 30


@pytest.mark.parametrize("isolation", ["thread", "process"])
@pytest.mark.parametrize("case", cases, ids=[case["name"] for case in cases])
def test_case(case: dict[str, Any], isolation: Any, runtimes: dict[str, Runtime]) -> None:
    options = {snake(name): value for name, value in case["options"].items()}
    executor = IsolateCodeExecutor(runtime=runtimes[isolation], **options)
    files = [ExecFile(name, text.encode()) for name, text in case["files"].items()]
    for step in case["steps"]:
        given = CodeExecutionInput(step["code"], step["language"], files, "an id")
        files = []
        result = executor.execute_code_sync(None, given)
        assert matches(step["stdout"], result.stdout), result
        assert matches(step["stderr"], result.stderr), result
        if isinstance(step["files"], str):
            assert f"{len(result.output_files)} files" == step["files"]
        else:
            written = {file.name: file.content.decode() for file in result.output_files}
            assert written == step["files"]
        assert str("null" if result.exit_code is None else result.exit_code) == step["exit"]
    executor.close()


@pytest.fixture(scope="module")
def runtimes() -> dict[str, Runtime]:
    return {"thread": Runtime(isolation="thread"), "process": Runtime(isolation="process")}


def run(executor: IsolateCodeExecutor, code: str, **fields: Any) -> CodeExecutionResult:
    return executor.execute_code_sync(None, CodeExecutionInput(code, **fields))


def test_functions_of_the_host() -> None:
    async def slow(text: str) -> str:
        await asyncio.sleep(0.01)
        return text.upper()

    reports: list[Any] = []
    executor = IsolateCodeExecutor(
        globals={"slow": slow, "add": lambda one, two: one + two},
        imports={"tools": {"name": lambda: "Ada"}},
        report=reports.append,
    )
    code = "import { name } from 'tools'; report({ n: 1 }); (await slow(name())) + add(1, 2)"
    expected = CodeExecutionResult("ADA3\n", "", [], 0)
    assert run(executor, code) == expected
    assert asyncio.run(executor.execute_code(None, CodeExecutionInput(code))) == expected
    assert reports == [{"n": 1}, {"n": 1}]


def test_an_exception_of_the_host_is_an_error_of_the_code() -> None:
    def fail() -> None:
        raise LookupError("no such thing")

    result = run(IsolateCodeExecutor(globals={"fail": fail}), "fail()")
    assert result.exit_code == 1
    assert "no such thing" in result.stderr


@pytest.mark.parametrize("isolation", ["thread", "process"])
def test_a_state_outlives_loops(isolation: Any) -> None:
    calls = 0

    async def count() -> int:
        nonlocal calls
        calls += 1
        return calls

    with IsolateCodeExecutor(
        globals={"count": count}, stateful=True, isolation=isolation
    ) as executor:
        assert executor.stateful
        assert run(executor, "const a = await count(); a", execution_id="x").stdout == "1\n"
        assert run(executor, "a + await count()", execution_id="x").stdout == "3\n"
        assert run(executor, "typeof a", execution_id="y").stdout == "undefined\n"
        executor.close()
        assert run(executor, "typeof a", execution_id="x").stdout == "undefined\n"


def test_cancelling_ends_the_cell() -> None:
    async def main() -> None:
        started = asyncio.Event()

        async def wait() -> None:
            started.set()
            await asyncio.Event().wait()

        executor = IsolateCodeExecutor(globals={"wait": wait}, stateful=True)
        given = CodeExecutionInput("const kept = 1; await wait();", execution_id="x")
        task = asyncio.create_task(executor.execute_code(None, given))
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        # The session goes on.
        after = CodeExecutionInput("1 + 1", execution_id="x")
        assert (await executor.execute_code(None, after)).stdout == "2\n"
        endless = asyncio.create_task(
            executor.execute_code(None, CodeExecutionInput("for (;;) {}", execution_id="x"))
        )
        await asyncio.sleep(0.05)
        endless.cancel()
        with pytest.raises(asyncio.CancelledError):
            await endless
        assert (await executor.execute_code(None, after)).stdout == "2\n"
        await executor.aclose()

    asyncio.run(main())


def test_the_loop_is_free_meanwhile() -> None:
    async def main() -> None:
        started = asyncio.Event()
        executor = IsolateCodeExecutor(timeout_ms=600_000, globals={"started": started.set})
        given = CodeExecutionInput("started(); for (;;) {}")
        call = asyncio.create_task(executor.execute_code(None, given))
        await started.wait()
        for _ in range(6):
            await asyncio.sleep(0.01)
        assert not call.done()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        limited = IsolateCodeExecutor(timeout_ms=300)
        result = await limited.execute_code(None, CodeExecutionInput("for (;;) {}"))
        assert result.exit_code is None
        assert result.stderr.endswith("isolate execution timed out after 300ms\n")

    asyncio.run(main())


def test_output_is_live() -> None:
    async def main() -> None:
        printed, seen = asyncio.Event(), b""

        def stdout(data: bytes) -> None:
            nonlocal seen
            seen += data
            printed.set()

        executor = IsolateCodeExecutor(globals={"wait": printed.wait}, show_value=False)
        code = "console.log('first'); console.warn(await wait())"
        given = CodeExecutionInput(code)
        result = await executor.execute_code(InvocationContext(stdout=stdout), given)
        assert (result.stdout, result.stderr, seen) == ("first\n", "true\n", b"first\n")

    asyncio.run(main())


def test_calls_overlap() -> None:
    async def main() -> None:
        arrived, both = 0, asyncio.Event()

        async def meet() -> None:
            nonlocal arrived
            arrived += 1
            if arrived == 2:
                both.set()
            await both.wait()

        executor = IsolateCodeExecutor(globals={"meet": meet})
        given = CodeExecutionInput("await meet(); 'met'")
        results = await asyncio.gather(*(executor.execute_code(None, given) for _ in range(2)))
        assert [result.stdout for result in results] == ["met\n", "met\n"]

    asyncio.run(main())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"timeout_ms": 0}, "timeout_ms must be a positive number of milliseconds, got 0"),
        ({"timeout_ms": float("inf")}, "must be a positive number of milliseconds, got Infinity"),
        ({"timeout_ms": float("nan")}, "must be a positive number of milliseconds, got NaN"),
        ({"timeout_ms": "1"}, "timeout_ms must be a number or None, got str"),
        ({"timeout_ms": timedelta(seconds=1)}, "must be a number of milliseconds, got timedelta"),
        ({"retry_attempts": 1.5}, "retry_attempts must be a whole number of at least 0, got 1.5"),
        ({"stateful": 1}, "stateful must be a boolean, got int"),
        ({"memory_limit_bytes": float("inf")}, "memory_limit_bytes"),
        ({"memory_limit_bytes": 0}, "memory_limit_bytes"),
        ({"language": "python"}, "language"),
        ({"globals": {"a-b": 1}}, "a-b"),
        ({"globals": {"a": object()}}, "object"),
        ({"runtime": 1}, "runtime must be a Runtime, got int"),
        ({"isolation": "none"}, "isolation"),
        ({"timeout": 1}, "unexpected keyword argument 'timeout'"),
    ],
)
def test_misuse(options: dict[str, Any], message: str) -> None:
    with pytest.raises(Exception, match=re.escape(message)) as raised:
        IsolateCodeExecutor(**options)
    assert type(raised.value).__name__ in ("TypeError", "ValueError", "SerializationError")


def test_a_runtime_excludes_an_isolation() -> None:
    with pytest.raises(TypeError, match="runtime and isolation exclude each other"):
        IsolateCodeExecutor(runtime=Runtime(), isolation="process")


def test_a_closed_runtime_is_an_error() -> None:
    runtime = Runtime()
    executor = IsolateCodeExecutor(runtime=runtime)
    runtime.close()
    for _ in range(4):
        with pytest.raises(ExecutorError) as raised:
            run(executor, "1")
        assert raised.value.kind == "other"
    assert len(executor._opener._hosts) <= 1


@pytest.mark.parametrize("stateful", [False, True])
def test_executors_are_freed_with_all_that_refers_to_them(stateful: bool) -> None:
    class Owner:
        def __init__(self) -> None:
            self.executor = IsolateCodeExecutor(globals={"name": self.name}, stateful=stateful)

        def name(self) -> str:
            return "Ada"

    owner = Owner()
    for _ in range(6):
        assert run(owner.executor, "name()", execution_id="x").stdout == "Ada\n"
    deadline = time.monotonic() + CEILING_S
    # A session ends a little after its call, and is forgotten when the next one opens.
    while len(owner.executor._opener._hosts) > 3 and time.monotonic() < deadline:
        assert run(owner.executor, "name()", execution_id="x").stdout == "Ada\n"
    assert len(owner.executor._opener._hosts) <= 3
    known = weakref.ref(owner)
    del owner
    deadline = time.monotonic() + CEILING_S
    while known() is not None and time.monotonic() < deadline:
        gc.collect()
        time.sleep(0.01)
    assert known() is None


def test_no_coroutine_function_starts_once_its_time_is_over() -> None:
    calls = 0

    async def slow() -> None:
        nonlocal calls
        calls += 1
        began = time.perf_counter()
        while time.perf_counter() - began < 0.1:
            pass

    async def main(**options: Any) -> None:
        nonlocal calls
        for stateful in (False, True):
            calls = 0
            executor = IsolateCodeExecutor(
                globals={"slow": slow}, timeout_ms=300, stateful=stateful, **options
            )
            source = CodeExecutionInput("for (;;) { slow(); }", execution_id="id")
            result = await executor.execute_code(None, source)
            assert result.exit_code is None
            settled = calls
            await asyncio.sleep(0.1)
            # A drain has 64 of them, which would take more than six seconds. A few start before
            # the end.
            assert calls < 60
            assert calls == settled

    asyncio.run(main())


def test_coroutine_functions_that_code_has_called_before_it_ended_by_itself_start() -> None:
    calls = 0

    async def slow() -> None:
        nonlocal calls
        calls += 1
        began = time.perf_counter()
        while time.perf_counter() - began < 0.002:
            pass

    executor = IsolateCodeExecutor(globals={"slow": slow})
    source = CodeExecutionInput("for (let i = 0; i < 50; i += 1) slow(); 1")
    assert asyncio.run(executor.execute_code(None, source)).stdout == "1\n"
    assert calls == 50


def test_no_end_of_code_that_goes_on_calling_leaves_an_exception() -> None:
    async def late() -> None:
        await asyncio.sleep(0)
        raise ValueError("late")

    async def main() -> None:
        loop, logged = asyncio.get_running_loop(), []
        loop.set_exception_handler(lambda _, context: logged.append(context["message"]))
        for end in ("close", "cancel"):
            executor = IsolateCodeExecutor(globals={"late": late})
            source = CodeExecutionInput("for (;;) { late(); }")
            call = asyncio.ensure_future(executor.execute_code(None, source))
            await asyncio.sleep(0.2)
            if end == "close":
                await executor.aclose()
            else:
                call.cancel()
            await asyncio.wait([call])
            call.cancelled() or call.exception()
            await asyncio.sleep(0.1)
            gc.collect()
        assert logged == []

    asyncio.run(main())


@pytest.mark.skipif(sys.platform != "linux", reason="looks at processes as Linux lists them")
def test_the_runtime_of_an_isolation_ends_with_close() -> None:
    before = {one.pid for one in descendants(os.getpid())}

    def own() -> list[Known]:
        return [one for one in descendants(os.getpid()) if one.pid not in before]

    executor = IsolateCodeExecutor(isolation="process")
    for _ in range(2):
        assert executor.execute_code_sync(None, CodeExecutionInput("1 + 1")).stdout == "2\n"
        assert own()
        executor.close()
        until(lambda: not own())
