"""Models and executors of one's own in the loop: what Python alone can see."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import AsyncIterator, Iterator
from typing import Any, cast

import pytest
from isolane.executors import (
    CodeExecutionInput,
    CodeExecutionResult,
    CodeLoop,
    ExecFile,
    ExecutorError,
    InvocationContext,
    IsolateCodeExecutor,
    LocalCodeExecutor,
    LoopResult,
    ScriptedModel,
)

from ceilings import CEILING_S
from processes import until

CODE = {"executableCode": {"language": "PYTHON", "code": "1"}}


def echo(_: Any, input: CodeExecutionInput) -> CodeExecutionResult:
    return CodeExecutionResult(stdout=input.code, exit_code=0)


class Replies:
    """A model that gives what a function says."""

    def __init__(self, *replies: Any) -> None:
        self.replies = list(replies)

    async def generate(self, *, instruction: str, contents: list[dict[str, Any]]) -> Any:
        reply = self.replies.pop(0)
        return reply(instruction, contents) if callable(reply) else reply


def outputs(result: LoopResult) -> list[tuple[str, str]]:
    parts = [part for content in result.contents for part in content["parts"]]
    results = [part["codeExecutionResult"] for part in parts if "codeExecutionResult" in part]
    return [(one["outcome"], one["output"]) for one in results]


def test_a_function_is_an_executor_and_runs_on_a_thread() -> None:
    threads: list[int] = []

    def execute(ctx: InvocationContext, input: CodeExecutionInput) -> dict[str, Any]:
        threads.append(threading.get_ident())
        assert ctx.turn == 1
        assert ctx.attempt == 1
        assert ctx.invocation_id
        assert not ctx.cancelled()
        return {"stdout": input.code, "exit_code": 0}

    result = CodeLoop(Replies([CODE], "Done."), execute).run_sync("go")
    assert (result.reason, result.text, result.turns) == ("answered", "Done.", 2)
    assert outputs(result) == [("OUTCOME_OK", "1")]
    assert threading.get_ident() not in threads


def test_a_coroutine_function_is_an_executor_and_runs_on_the_loop() -> None:
    variable = contextvars.ContextVar("variable", default="none")

    async def main() -> None:
        loop, thread = asyncio.get_running_loop(), threading.get_ident()

        async def execute(_: Any, input: CodeExecutionInput) -> CodeExecutionResult:
            assert asyncio.get_running_loop() is loop
            assert threading.get_ident() == thread
            return CodeExecutionResult(stdout=input.code, exit_code=0)

        variable.set("mine")
        assert outputs(await CodeLoop(Replies([CODE], "x"), execute).run("go")) == [
            ("OUTCOME_OK", "1")
        ]

    asyncio.run(main())


def test_plain_models_and_iterators_run_on_threads() -> None:
    class Plain:
        def __init__(self) -> None:
            self.turn = 0

        def generate(self, *, instruction: str, contents: list[dict[str, Any]]) -> Any:
            assert instruction == "Be brief."
            self.turn += 1
            return self.parts() if self.turn == 1 else {"text": f"{len(contents)} contents"}

        def parts(self) -> Iterator[Any]:
            yield "I "
            time.sleep(0.01)
            yield {"text": "compute."}
            yield [CODE]

    result = CodeLoop(Plain(), echo, instruction="Be brief.").run_sync("go")
    assert result.text == "3 contents"
    assert result.contents[1] == {"role": "model", "parts": [{"text": "I compute."}, CODE]}


def test_an_exception_of_the_model_comes_back_as_raised() -> None:
    class ModelError(Exception):
        pass

    error = ModelError("no quota")

    def fail(*_: Any) -> Any:
        raise error

    async def stream() -> AsyncIterator[Any]:
        yield "a"
        raise error

    async def read(code_loop: CodeLoop) -> list[str]:
        events = code_loop.stream("go")
        types: list[str] = [(await anext(events))["type"], (await anext(events))["type"]]
        with pytest.raises(ModelError) as raised:
            await anext(events)
        assert raised.value is error
        assert events.result is None
        with pytest.raises(StopAsyncIteration):
            await anext(events)
        return types

    for reply in (fail, lambda *_: stream()):
        with pytest.raises(ModelError) as raised:
            CodeLoop(Replies(reply), echo).run_sync("go")
        assert raised.value is error
    assert asyncio.run(read(CodeLoop(Replies(lambda *_: stream()), echo))) == ["turn", "text"]


def test_a_content_is_a_reply() -> None:
    content = {"role": "model", "parts": [{"text": "of Gemini"}]}
    assert CodeLoop(Replies(content), echo).run_sync("go").text == "of Gemini"


def test_unknown_names_in_mappings_are_misuse() -> None:
    spelled = CodeLoop(Replies([CODE], "x"), lambda *_: {"stdot": "x"}).run_sync("go")
    assert outputs(spelled) == [
        (
            "OUTCOME_FAILED",
            (
                "the executor failed: CodeExecutionResult() got an unexpected keyword argument "
                "'stdot'; did you mean 'stdout'?"
            ),
        )
    ]
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'kode'.*'code'"):
        CodeExecutionInput.from_json({"kode": "1"})
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'turns'.*'turn'"):
        LocalCodeExecutor().execute_code_sync({"turns": 1}, CodeExecutionInput("1"))


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        ([{}], "parts[0] has no field"),
        ([{"text": None}], "parts[0] has no field"),
        ([{"text": 5}], "parts[0].text must be a string, got a number"),
        ({"executableCode": 1}, "part.executableCode must be an object, got a number"),
        (None, "a reply must be a text, a part or a list of parts, got null"),
        (7, "a reply must be a text, a part or a list of parts, got a number"),
        (
            {"role": "assistant", "content": "4"},
            "got the message of an API, with 'content': return its text",
        ),
        ([object()], "the reply of the model is not plain data"),
        ([{"x": float("nan")}], "the reply of the model is not plain data"),
        ([{"x": float("inf")}], "the reply of the model is not plain data"),
        ([{"text": "\ud800"}], "this is no JSON"),
        ([{"x": b"bytes"}], "the reply of the model is not plain data"),
    ],
)
def test_hostile_parts_are_misuse(reply: Any, message: str) -> None:
    with pytest.raises(TypeError) as raised:
        CodeLoop(Replies(reply), echo).run_sync("go")
    assert message in str(raised.value)


def test_deep_and_circular_parts_are_misuse() -> None:
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    circle: list[Any] = []
    circle.append(circle)
    less_deep: Any = []
    for _ in range(300):
        less_deep = [less_deep]
    for part in (deep, circle, less_deep):
        with pytest.raises(TypeError):
            CodeLoop(Replies([{"x": part}]), echo).run_sync("go")


@pytest.mark.parametrize(
    ("raised", "output"),
    [
        (ExecutorError("bad_input", "no such language"), "no such language"),
        (LookupError("lost"), "the executor failed: lost"),
        (LookupError(), "the executor failed: LookupError"),
    ],
)
def test_errors_of_executors_are_told_to_the_model(raised: Exception, output: str) -> None:
    def execute(*_: Any) -> CodeExecutionResult:
        raise raised

    result = CodeLoop(Replies([CODE], "x"), execute).run_sync("go")
    assert outputs(result) == [("OUTCOME_FAILED", output)]


@pytest.mark.parametrize(
    "returned",
    [None, 1, {"exit_code": "0"}, {"exit_code": 2**40}, {"stdout": b""}, {"output_files": [1]}],
)
def test_what_is_no_result_has_failed(returned: Any) -> None:
    result = CodeLoop(Replies([CODE], "x"), lambda *_: returned).run_sync("go")
    [(outcome, output)] = outputs(result)
    assert outcome == "OUTCOME_FAILED"
    assert output.startswith("the executor failed: ")


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (
            None,
            "the result of an executor must be a CodeExecutionResult or a mapping, got NoneType",
        ),
        ({"exit_code": "0"}, "exit_code must be an int or None, got str"),
        (
            {"output_files": [{"name": "../../x", "content": b""}]},
            'output_files: "../../x" is not a',
        ),
        ({"output_files": [{"name": "a/b", "content": b""}]}, 'output_files: "a/b" is not a valid'),
        ({"output_files": [{"name": "", "content": b""}]}, 'output_files: "" is not a valid name'),
    ],
)
def test_a_wrong_result_is_not_retried(returned: Any, message: str) -> None:
    calls: list[Any] = [returned, {"stdout": "fine", "exit_code": 0}]
    result = CodeLoop(Replies([CODE], [CODE], "x"), lambda *_: calls.pop(0)).run_sync("go")
    [(outcome, output), following] = outputs(result)
    assert (outcome, following, result.files) == ("OUTCOME_FAILED", ("OUTCOME_OK", "fine"), [])
    assert output.startswith(f"the executor failed: {message}"), output


def test_errors_are_retried() -> None:
    attempts: list[int] = []

    class Flaky:
        error_retry_attempts = 3

        def execute_code(
            self, ctx: InvocationContext, _: CodeExecutionInput, /
        ) -> CodeExecutionResult:
            attempts.append(ctx.attempt)
            if ctx.attempt < 3:
                raise ExecutorError("spawn", "busy")
            return CodeExecutionResult(stdout="ok", exit_code=0)

    assert outputs(CodeLoop(Replies([CODE], "x"), Flaky()).run_sync("go")) == [("OUTCOME_OK", "ok")]
    assert attempts == [1, 2, 3]


def test_the_executors_of_the_library_in_the_loop() -> None:
    model = ScriptedModel()
    model.push_text("```tool_code\nprint(open('in').read())\nopen('out', 'w').write('left')\n```")
    model.push_text("Done.")
    executor = LocalCodeExecutor(interpreter=sys.executable)
    code_loop = CodeLoop(model, executor, files=[ExecFile("in", b"given")])
    result = code_loop.run_sync("go")
    assert result.files == [ExecFile("out", b"left")]
    told = model.requests()[1]["contents"][2]["parts"][0]["text"]
    assert told == "```tool_output\ngiven\n\n```"

    async def double(number: int) -> int:
        await asyncio.sleep(0)
        return 2 * number

    model.push_text("```ts\nconst kept = await double(4); kept\n```")
    model.push_text("```ts\nkept + 1\n```")
    model.push_text("Done.")
    isolates = IsolateCodeExecutor(globals={"double": double}, stateful=True)
    CodeLoop(model, isolates).run_sync("go")
    told = model.requests()[-1]["contents"][-1]["parts"][0]["text"]
    assert told == "```tool_output\n9\n\n```"
    with pytest.raises(RuntimeError, match=r"no reply left \(call 6\)"):
        CodeLoop(model, isolates).run_sync("go")


def test_a_scripted_model_pushes_all_kinds() -> None:
    model = ScriptedModel()
    model.push_code("python", "1")
    model.push_stream(["a", {"text": "b"}])
    model.push_error("broken")
    model.push_error(LookupError("lost"))
    model.push_stream(["a"], "broken")
    code_loop = CodeLoop(model, echo)
    assert code_loop.run_sync("go").text == "ab"
    for kind in (RuntimeError, LookupError, RuntimeError):
        with pytest.raises(kind):
            code_loop.run_sync("go")


def test_live_output_becomes_events() -> None:
    async def main() -> None:
        def execute(ctx: InvocationContext, _: Any) -> CodeExecutionResult:
            assert ctx.stdout is not None
            assert ctx.stderr is not None
            ctx.stdout(b"out")
            ctx.stderr(b"err")
            return CodeExecutionResult("out", "err", [], 0)

        stream = CodeLoop(Replies([CODE], "x"), execute).stream("go")
        events = [event async for event in stream]
        told = [(event["stream"], event["text"]) for event in events if event["type"] == "output"]
        assert told == [("stdout", "out"), ("stderr", "err")]
        [done] = [event for event in events if event["type"] == "result"]
        assert done["result"] == CodeExecutionResult("out", "err", [], 0)
        assert done["duration_ms"] >= 0
        assert stream.result is not None
        assert stream.result.reason == "answered"

    asyncio.run(main())


def test_cancelling_the_task_ends_everything() -> None:
    async def main() -> None:
        events: list[str] = []
        running = asyncio.Event()

        async def execute(*_: Any) -> CodeExecutionResult:
            running.set()
            try:
                await asyncio.Event().wait()
            finally:
                events.append("executor")
            raise AssertionError

        task = asyncio.create_task(CodeLoop(Replies([CODE]), execute).run("go"))
        await running.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert events == ["executor"]

    asyncio.run(main())


def test_a_function_that_blocks_sees_that_it_is_cancelled() -> None:
    async def main() -> None:
        running, seen = threading.Event(), threading.Event()

        def execute(ctx: InvocationContext, _: Any) -> CodeExecutionResult:
            running.set()
            deadline = time.monotonic() + CEILING_S
            while not ctx.cancelled() and time.monotonic() < deadline:
                time.sleep(0.005)
            if ctx.cancelled():
                seen.set()
            raise ExecutorError("cancelled", "ended")

        stream = CodeLoop(Replies([CODE]), execute).stream("go")
        async for event in stream:
            if event["type"] == "code":
                await asyncio.to_thread(running.wait, CEILING_S)
                stream.cancel()
        assert stream.result is not None
        assert stream.result.reason == "cancelled"
        assert await asyncio.to_thread(seen.wait, CEILING_S)

    asyncio.run(main())


def test_an_executor_that_hangs_is_given_up() -> None:
    async def main() -> None:
        cancelled = asyncio.Event()

        class Hangs:
            timeout_ms = 1

            async def execute_code(self, *_: Any) -> CodeExecutionResult:
                try:
                    await asyncio.Event().wait()
                finally:
                    cancelled.set()
                raise AssertionError

        result = await CodeLoop(Replies([CODE], "x"), Hangs()).run("go")
        assert outputs(result) == [
            ("OUTCOME_DEADLINE_EXCEEDED", "the executor did not return within 5001ms")
        ]
        await asyncio.wait_for(cancelled.wait(), CEILING_S)

    asyncio.run(main())


@pytest.mark.parametrize("how", ["close", "with", "drop"])
def test_a_stream_that_is_left_ends_the_run(how: str) -> None:
    async def main() -> None:
        begun = asyncio.Event()
        ended = asyncio.Event()
        closed = asyncio.Event()

        async def parts() -> AsyncIterator[Any]:
            try:
                yield "a"
                await asyncio.Event().wait()
            finally:
                closed.set()

        async def execute(*_: Any) -> CodeExecutionResult:
            begun.set()
            try:
                await asyncio.Event().wait()
            finally:
                ended.set()
            raise AssertionError

        async def is_last(event: Any, last: str) -> bool:
            if event["type"] == "code":
                # A stream that is left before its program has begun starts no program.
                await begun.wait()
            return bool(event["type"] == last)

        def made(reply: Any) -> CodeLoop:
            return CodeLoop(Replies(reply), execute)

        for code_loop, last, sign in (
            (made(lambda *_: parts()), "text", closed),
            (made([CODE]), "code", ended),
        ):
            stream = code_loop.stream("go")
            if how == "with":
                async with stream:
                    async for event in stream:
                        if await is_last(event, last):
                            break
            else:
                async for event in stream:
                    if await is_last(event, last):
                        break
            if how == "close":
                await stream.aclose()
                await stream.aclose()
            del stream
            gc.collect()
            await asyncio.wait_for(sign.wait(), CEILING_S)

    asyncio.run(main())


def test_a_stream_that_nobody_reads_does_nothing() -> None:
    async def main() -> None:
        model = ScriptedModel()
        stream = CodeLoop(model, echo).stream("go")
        await asyncio.sleep(0.02)
        del stream
        gc.collect()
        await asyncio.sleep(0.02)
        assert model.requests() == []
        from isolane._bridge import bridge_of

        assert bridge_of(asyncio.get_running_loop())._noticing == {}

    asyncio.run(main())


def test_nothing_is_left_of_a_run() -> None:
    async def main() -> weakref.ref[Any]:
        model, known = Replies([CODE], "x"), None
        known = weakref.ref(model)
        await CodeLoop(model, echo).run("go")
        from isolane._bridge import bridge_of

        assert bridge_of(asyncio.get_running_loop())._noticing == {}
        return known

    known = asyncio.run(main())

    def is_freed() -> bool:
        gc.collect()
        return known() is None

    until(is_freed)


def test_runs_overlap() -> None:
    async def main() -> None:
        async def execute(_: Any, input: CodeExecutionInput) -> CodeExecutionResult:
            await asyncio.sleep(0.01)
            return CodeExecutionResult(stdout=input.code, exit_code=0)

        async def one(index: int) -> None:
            code = {"executableCode": {"language": "PYTHON", "code": str(index)}}
            code_loop = CodeLoop(Replies([code], [code, code], "x"), execute)
            result = await code_loop.run("go")
            assert outputs(result) == [("OUTCOME_OK", str(index))] * 3

        await asyncio.gather(*(one(index) for index in range(40)))

    asyncio.run(main())


def test_many_events_that_nobody_reads_yet() -> None:
    async def main() -> None:
        async def parts() -> AsyncIterator[Any]:
            for index in range(3000):
                yield {"text": f"{index},", "x": index}

        stream = CodeLoop(Replies(lambda *_: parts()), echo).stream("go")
        await anext(stream)
        await asyncio.sleep(0.2)
        text = ""
        async for event in stream:
            if event["type"] == "text":
                text += event["text"]
        assert text == "".join(f"{index}," for index in range(3000))

    asyncio.run(main())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"model": object()}, "model must have a method generate, got object"),
        ({"executor": 1}, "executor must have a method execute_code, or be a function, got int"),
        ({"model": Replies}, "model must have a method generate, got the class Replies"),
        ({"executor": LocalCodeExecutor}, "be a function, got the class LocalCodeExecutor"),
        ({"max_turns": 0}, "max_turns must be a whole number of at least 1, got 0"),
        ({"max_turns": float("nan")}, "an option is not plain data"),
        ({"max_turns": float("inf")}, "an option is not plain data"),
        ({"as_text": "yes"}, "as_text must be 'auto' or a boolean, got a string"),
        ({"instruction": 1}, "instruction must be a string, got a number"),
        ({"code_blocks": [("", "x")]}, "delimiters must not be empty"),
        ({"files": [{"name": "a/b", "content": b""}]}, "is not a valid name of a file"),
        ({"files": [{"name": "a", "content": 1}]}, "files[0].content must be bytes, got int"),
    ],
)
def test_misuse(arguments: dict[str, Any], message: str) -> None:
    options = {"model": Replies(), "executor": echo, **arguments}
    with pytest.raises((TypeError, ValueError)) as raised:
        CodeLoop(**options)
    assert message in str(raised.value)


def test_a_class_with_static_methods_is_a_party() -> None:
    class Parties:
        @staticmethod
        def generate(*, instruction: str, contents: list[dict[str, Any]]) -> Any:
            assert instruction == ""
            return [CODE] if len(contents) == 1 else "done"

        @classmethod
        def execute_code(cls, _: Any, input: CodeExecutionInput) -> CodeExecutionResult:
            return CodeExecutionResult(stdout=cls.__name__ + input.code, exit_code=0)

    result = CodeLoop(Parties, Parties).run_sync("go")
    assert (outputs(result), result.text) == ([("OUTCOME_OK", "Parties1")], "done")


@pytest.mark.parametrize("raised", [SystemExit(3), KeyboardInterrupt()])
@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("where", ["executor", "model", "stream"])
def test_an_exit_ends_the_event_loop(
    where: str, is_async: bool, raised: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: Any, **__: Any) -> Any:
        raise raised

    async def fail_later(*_: Any, **__: Any) -> Any:
        raise raised

    def stream(*_: Any, **__: Any) -> Iterator[str]:
        yield "a"
        raise raised

    async def stream_later(*_: Any, **__: Any) -> AsyncIterator[str]:
        yield "a"
        raise raised

    class Failing:
        generate = staticmethod(
            {
                ("model", False): fail,
                ("model", True): fail_later,
                ("stream", False): stream,
                ("stream", True): stream_later,
            }.get((where, is_async), fail)
        )

    model: Any = Replies([CODE], "x") if where == "executor" else Failing()
    execute = fail_later if is_async else fail
    with pytest.raises(type(raised)) as seen:
        CodeLoop(model, execute if where == "executor" else echo).run_sync("go")
    assert seen.value is raised
    gc.collect()
    assert [record.message for record in caplog.records] == []


def test_a_stream_is_read_in_its_own_event_loop() -> None:
    async def make() -> Any:
        return CodeLoop(Replies("x"), echo).stream("go")

    async def read(stream: Any) -> Any:
        return await anext(stream)

    own = asyncio.new_event_loop()
    stream = own.run_until_complete(make())
    with pytest.raises(RuntimeError, match="in the event loop in which it was made"):
        asyncio.run(read(stream))
    assert own.run_until_complete(read(stream))["type"] == "turn"
    own.run_until_complete(stream.aclose())
    own.close()


@pytest.mark.parametrize(
    ("name", "value", "kind"),
    [
        ("timeout_ms", float("inf"), ValueError),
        ("timeout_ms", float("nan"), ValueError),
        ("timeout_ms", 0, ValueError),
        ("timeout_ms", "1", TypeError),
        ("stateful", 1, TypeError),
        ("error_retry_attempts", -1, ValueError),
        ("error_retry_attempts", 1.5, TypeError),
    ],
)
def test_misuse_of_an_executor(name: str, value: Any, kind: type[Exception]) -> None:
    class Own:
        def execute_code(self, *_: Any) -> CodeExecutionResult:
            raise AssertionError

    executor = Own()
    setattr(executor, name, value)
    with pytest.raises(kind, match=name):
        CodeLoop(Replies(), executor)


def test_the_sync_form_refuses_a_running_loop() -> None:
    async def main() -> None:
        with pytest.raises(RuntimeError, match="await run instead"):
            CodeLoop(Replies("x"), echo).run_sync("go")

    asyncio.run(main())
    with pytest.raises(RuntimeError, match="no running event loop"):
        CodeLoop(Replies("x"), echo).stream("go")


def test_a_keyboard_interrupt_ends_the_sync_form() -> None:
    program = """
import time
from isolane.executors import CodeLoop, ScriptedModel
model = ScriptedModel()
model.push_code("python", "1")
def execute(ctx, input):
    print("runs", flush=True)
    while not ctx.cancelled():
        time.sleep(0.005)
    raise SystemExit
try:
    CodeLoop(model, execute).run_sync("go")
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"runs\n"
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == b"interrupted\n"
        assert process.wait(CEILING_S) == 0


def test_large_files_of_programs_arrive() -> None:
    code = "for i in range(4): open(f'{i}.bin', 'wb').write(b'x' * (7 << 20))"
    sizes = [7 << 20] * 4

    async def main() -> None:
        model = ScriptedModel()
        for _ in range(2):
            model.push_code("python", code)
            model.push_text("Done.")
        code_loop = CodeLoop(model, LocalCodeExecutor(timeout_ms=None))
        result = await code_loop.run("Go.")
        assert [len(file.content) for file in result.files] == sizes
        events = [event async for event in code_loop.stream("Go.")]
        [done] = [event for event in events if event["type"] == "result"]
        assert [len(file.content) for file in done["result"].output_files] == sizes

    asyncio.run(main())


def test_each_run_has_the_context_variables_of_its_caller() -> None:
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable")
    seen: list[tuple[str, str]] = []

    def note(place: str) -> None:
        seen.append((place, variable.get("none")))

    class Noting:
        async def generate(self, *, contents: list[dict[str, Any]], **_: Any) -> Any:
            note("model")
            return "Done." if len(contents) > 1 else [CODE]

    async def executes(_ctx: InvocationContext, _input: Any) -> CodeExecutionResult:
        note("coroutine")
        return CodeExecutionResult(exit_code=0)

    def blocks(_ctx: InvocationContext, _input: Any) -> CodeExecutionResult:
        note("thread")
        return CodeExecutionResult(exit_code=0)

    async def act(name: str) -> None:
        variable.set(name)
        await CodeLoop(Noting(), executes).run("Go.")
        await CodeLoop(Noting(), blocks).run("Go.")
        isolate = IsolateCodeExecutor(globals={"note": note})
        context = InvocationContext(stdout=lambda _data: note("stdout"))
        await isolate.execute_code(context, {"code": "note('function'); console.log(1)"})
        model = ScriptedModel()
        model.push_code("typescript", "note('function in a loop')")
        model.push_text("Done.")
        await CodeLoop(model, isolate).run("Go.")

    async def main() -> None:
        for name in ("a", "b", "c"):
            await asyncio.create_task(act(name))

    asyncio.run(main())
    places = {place for place, _ in seen}
    assert places == {
        "model",
        "coroutine",
        "thread",
        "stdout",
        "function",
        "function in a loop",
    }
    for place in places:
        assert {name for known, name in seen if known == place} == {"a", "b", "c"}, seen


class _UnshownError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


@pytest.mark.parametrize(
    ("raised", "told"),
    [
        (RuntimeError("cannot read \udcff"), "the executor failed: cannot read \\udcff"),
        (_UnshownError(), "the executor failed: _UnshownError"),
        (ExecutorError("other", cast("Any", 5)), "ExecutorError"),
        (ExecutorError(cast("Any", None), "m"), "m"),
        (ExecutorError("spawn", "\ud800"), "\\ud800"),
    ],
)
def test_any_exception_of_an_executor_is_an_answer(raised: Exception, told: str) -> None:
    def executor(_ctx: InvocationContext, _input: Any) -> CodeExecutionResult:
        raise raised

    model = ScriptedModel()
    model.push_code("python", "1")
    model.push_text("Done.")

    async def main() -> list[Any]:
        stream = CodeLoop(model, executor).stream("Go.")
        return [event async for event in stream]

    [event] = [event for event in asyncio.run(main()) if event["type"] == "result"]
    assert event["outcome"] == "OUTCOME_FAILED"
    assert told in event["result"].stderr


def test_fields_of_a_context_are_checked() -> None:
    executor = LocalCodeExecutor()

    def fails() -> bool:
        raise LookupError("no flag")

    context = InvocationContext(cancelled=fails)
    with pytest.raises(LookupError, match="no flag"):
        executor.execute_code_sync(context, {"code": "import time; time.sleep(20)"})
    with pytest.raises(TypeError, match="cancelled must be a function"):
        executor.execute_code_sync({"cancelled": True}, {"code": ""})

    def prints(ctx: InvocationContext, _input: Any) -> CodeExecutionResult:
        assert ctx.stdout is not None
        with pytest.raises(TypeError):
            ctx.stdout(cast("Any", 3))
        return CodeExecutionResult(exit_code=0)

    model = ScriptedModel()
    model.push_code("python", "1")
    model.push_text("Done.")
    assert (
        CodeLoop(model, prints)
        .run_sync("Go.")
        .contents[2]["parts"][0]["codeExecutionResult"]["outcome"]
        == "OUTCOME_OK"
    )


def test_a_subclass_may_change_its_properties() -> None:
    class Own(LocalCodeExecutor):
        code_block_delimiters = cast("Any", [("<run>", "</run>")])

    model = ScriptedModel()
    model.push_text("<run>print(6 * 7)</run>")
    model.push_text("Done.")
    result = CodeLoop(model, Own()).run_sync("Go.")
    assert "42" in str(result.contents)

    class Wrong(LocalCodeExecutor):
        code_block_delimiters = cast("Any", [(1, 2)])

    with pytest.raises(TypeError, match="pairs of strings"):
        CodeLoop(ScriptedModel(), Wrong())


def test_a_run_that_waits_for_its_reader_can_be_cancelled() -> None:
    async def texts() -> AsyncIterator[str]:
        for _ in range(1000):
            yield "x" * (1 << 20)

    async def main() -> None:
        stream = CodeLoop(Replies(lambda *_: texts()), echo).stream("Go.")
        await anext(stream)
        await asyncio.sleep(0.5)
        # One of 256 KiB counts as five of 256 events.
        assert len(stream._run.events) < 60
        stream.cancel()
        events = [event async for event in stream]
        assert events[-1]["type"] == "finish"
        assert stream.result is not None
        assert stream.result.reason == "cancelled"

    asyncio.run(asyncio.wait_for(main(), CEILING_S))


def test_calls_that_wait_for_their_turn_in_an_isolate_have_their_whole_time() -> None:
    # Two of them take longer than the limit, and each far less.
    executor = IsolateCodeExecutor(stateful=True, timeout_ms=9000, globals={"here": lambda: 1})

    async def run(milliseconds: int) -> list[str]:
        code = f"const end = Date.now() + {milliseconds}; while (Date.now() < end) ; here()"
        model = ScriptedModel()
        model.push_code("typescript", code)
        model.push_text("Done.")
        result = await CodeLoop(model, executor, execution_id="one").run("Go.")
        return [outcome for outcome, _ in outputs(result)]

    async def main() -> list[list[str]]:
        return await asyncio.gather(*(run(milliseconds) for milliseconds in (5000, 5000, 1)))

    with executor:
        assert asyncio.run(main()) == [["OUTCOME_OK"]] * 3
