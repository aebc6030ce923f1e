"""Handles: awaiting, ending, cancelling, and the loops that a run may be awaited in."""

from __future__ import annotations

import asyncio
import gc
import sys
import threading
import weakref
from collections.abc import Callable
from typing import Any, Literal

import pytest
from isolane import CodeExecution, CodeExecutionResult, Runtime, run_code

from ceilings import CEILING_S, LOOPS, in_loop, new_uvloop, run_in, until

NewLoop = Callable[[], asyncio.AbstractEventLoop]

SPIN = "for (;;);"
ISOLATIONS: list[Literal["thread", "process"]] = ["thread", "process"]
ENDED_BY_CANCEL = "the task that awaited the run was cancelled"
ENDED_BY_CLOSE = "the event loop that started the run has closed"


def message_of(result: CodeExecutionResult) -> str:
    """The reason why a run was terminated."""
    assert result.status == "terminated"
    assert result.error is not None
    return result.error.message


@pytest.mark.parametrize("new_loop", LOOPS)
def test_a_run_succeeds_in_any_loop(new_loop: NewLoop) -> None:
    async def main() -> Any:
        async def twice(value: int) -> int:
            await asyncio.sleep(0)
            return 2 * value

        handle = run_code("export default await twice(21)", globals={"twice": twice})
        assert handle.running
        assert repr(handle) == "<CodeExecution running>"
        result = await handle
        assert not handle.running
        assert repr(handle) == "<CodeExecution success>"
        return result.result

    assert run_in(new_loop(), main()) == 42


def test_a_loop_that_watches_no_sockets_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        await run_code("export default 1")

    def refuse(*_: object) -> None:
        raise NotImplementedError

    # As the default loop on Windows.
    monkeypatch.setattr(asyncio.SelectorEventLoop, "add_reader", refuse)
    message = r"a loop that can watch a socket, and \w+ cannot; asyncio\.SelectorEventLoop can"
    for _ in range(2):
        with pytest.raises(RuntimeError, match=message):
            run_in(asyncio.SelectorEventLoop(), main())


@in_loop
async def test_awaited_again_it_is_the_same_result() -> None:
    handle = run_code("export default [1]")
    (first, second), third = await asyncio.gather(handle, handle), await handle
    assert first is second is third
    again = asyncio.gather(asyncio.create_task(handle), asyncio.wait_for(handle, CEILING_S))
    assert list(await again) == [
        first,
        first,
    ]


@in_loop
async def test_a_handle_never_raises() -> None:
    for source in (
        "throw new Error('no')",
        "import 'none'",
        "export default (",
        "export default 1",
    ):
        result = await run_code(source)
        assert isinstance(result, CodeExecutionResult)


@in_loop
async def test_a_hundred_runs_at_once() -> None:
    async def add(left: int, right: int) -> int:
        await asyncio.sleep(0)
        return left + right

    source = "export default async (n) => await add(n, 1)"
    handles = [
        run_code(source, globals={"add": add}, execute={"args": [number]}) for number in range(100)
    ]
    results = await asyncio.gather(*handles)
    assert [result.result for result in results] == list(range(1, 101))


@pytest.mark.skipif(sys.version_info < (3, 11), reason="asyncio.timeout came with 3.11")
@in_loop
async def test_asyncio_timeout_ends_the_run() -> None:
    handle = run_code(SPIN)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await handle
    assert message_of(await handle) == ENDED_BY_CANCEL


@in_loop
async def test_wait_for_ends_the_run() -> None:
    handle = run_code(SPIN)
    with pytest.raises(asyncio.TimeoutError):
        await asyncio.wait_for(handle, 0.05)
    assert message_of(await handle) == ENDED_BY_CANCEL


@in_loop
async def test_cancelling_one_of_two_who_wait_ends_nothing() -> None:
    called = asyncio.Event()
    answer = asyncio.get_running_loop().create_future()

    def ask() -> asyncio.Future[int]:
        called.set()
        return answer

    handle = run_code("export default await ask()", globals={"ask": ask})
    one, other = asyncio.create_task(handle), asyncio.create_task(handle)
    await called.wait()
    one.cancel()
    await asyncio.wait([one])
    assert one.cancelled()
    assert handle.running
    answer.set_result(1)
    assert (await other).result == 1


@in_loop
async def test_a_shielded_run_goes_on() -> None:
    answer = asyncio.get_running_loop().create_future()
    handle = run_code("export default await answer", globals={"answer": answer})
    with pytest.raises(asyncio.TimeoutError):
        await asyncio.wait_for(asyncio.shield(handle), 0.01)
    assert handle.running
    answer.set_result(7)
    assert (await handle).result == 7


if sys.version_info >= (3, 11):

    @in_loop
    async def test_a_task_group_ends_its_runs_when_one_fails() -> None:
        handles: list[CodeExecution] = []

        async def fail() -> None:
            raise KeyError("no")

        async def group_of_four() -> None:
            async with asyncio.TaskGroup() as group:
                for _ in range(3):
                    handles.append(run_code(SPIN))
                    group.create_task(handles[-1])
                group.create_task(fail())

        with pytest.raises(Exception, match="TaskGroup"):
            await group_of_four()
        assert [message_of(await handle) for handle in handles] == [ENDED_BY_CANCEL] * 3


@pytest.mark.skipif(sys.version_info < (3, 12), reason="eager tasks came with 3.12")
@in_loop
async def test_eager_tasks_may_be_made_of_a_handle() -> None:
    loop = asyncio.get_running_loop()
    loop.set_task_factory(asyncio.eager_task_factory)  # type: ignore[attr-defined,unused-ignore]
    handle = run_code("export default 3")
    tasks = [asyncio.create_task(handle), asyncio.create_task(handle)]
    assert [(await task).result for task in tasks] == [3, 3]


@in_loop
async def test_a_handle_that_nobody_keeps_runs_to_its_end() -> None:
    done = asyncio.Event()
    run_code("done()", globals={"done": done.set})
    gc.collect()
    await done.wait()


@in_loop
async def test_a_live_run_keeps_its_runtime() -> None:
    async def ready() -> int:
        gc.collect()
        return 6

    for isolation in ISOLATIONS:
        runtime = Runtime(isolation=isolation)
        handle = runtime.run_code("export default await ready() * 7", globals={"ready": ready})
        del runtime
        gc.collect()
        assert (await handle).raise_for_status().result == 42


def test_a_live_run_keeps_its_runtime_without_a_loop() -> None:
    for isolation in ISOLATIONS:
        runtimes = [Runtime(isolation=isolation)]

        def release(runtimes: list[Runtime] = runtimes) -> None:
            runtimes.clear()
            gc.collect()

        source = "release(); for (let i = 0; i < 1e5; i++); export default 42"
        result = runtimes[0].run_code_sync(source, globals={"release": release})
        assert result.raise_for_status().result == 42


@in_loop
async def test_what_a_settled_run_held_is_let_go() -> None:
    class Tool:
        def __call__(self) -> int:
            return 1

    tool = Tool()
    gone = weakref.ref(tool)
    handle = run_code("export default tool()", globals={"tool": tool})
    del tool
    assert (await handle).result == 1
    # The loop may have a callback with the context of the run.
    await until(lambda: gc.collect() >= 0 and gone() is None)
    assert handle.reports == []


class Unprintable:
    """A reason that is no text and cannot be converted to one."""

    def __str__(self) -> str:
        raise RuntimeError("no text")


@in_loop
async def test_reasons_that_are_no_text() -> None:
    async def reason(given: Any) -> str:
        handle = run_code(SPIN)
        handle.terminate(given)
        handle.terminate("too late")
        return message_of(await handle)

    assert await reason(None) == "terminated by the caller"
    assert await reason(3) == "3"
    assert await reason(["x"]) == "['x']"
    assert await reason("\ud800x") == "\ufffdx"
    assert await reason("") == ""
    assert await reason(Unprintable()) == "an instance of Unprintable"


@in_loop
async def test_terminate_from_many_threads() -> None:
    handle = run_code(SPIN)
    start = threading.Barrier(8)

    def end(number: int) -> None:
        start.wait()
        handle.terminate(f"thread {number}")
        handle.terminate(f"thread {number} again")
        assert isinstance(handle.running, bool)
        assert handle.reports == []

    threads = [threading.Thread(target=end, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    message = message_of(await handle)
    assert message in {f"thread {number}" for number in range(8)}
    for thread in threads:
        thread.join()
    handle.terminate("late")
    assert message_of(await handle) == message


@in_loop
async def test_terminate_before_the_first_instruction_and_in_a_host_function() -> None:
    calls: list[str] = []

    def end() -> None:
        calls.append("called")
        handle.terminate("in a host function")

    handle = run_code("end(); end();", globals={"end": end})
    assert message_of(await handle) == "in a host function"
    assert calls == ["called"]

    handle = run_code("end()", globals={"end": end})
    handle.terminate("at once")
    assert message_of(await handle) == "at once"
    assert calls == ["called"]


@in_loop
async def test_exceptions_in_done_callbacks_harm_no_run() -> None:
    heard: list[str] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: heard.append(str(context["exception"])))

    def fail(_: object) -> None:
        raise ValueError("in a callback")

    task = asyncio.create_task(run_code("export default 1"))
    task.add_done_callback(fail)
    assert (await task).result == 1
    assert (await run_code("export default 2")).result == 2
    assert heard == ["in a callback"]


# Other loops.


@pytest.mark.parametrize("new_loop", LOOPS)
def test_awaited_in_the_loop_of_another_thread(new_loop: NewLoop) -> None:
    async def main() -> None:
        answer = asyncio.get_running_loop().create_future()
        handle = run_code("export default await answer", globals={"answer": answer})
        started = threading.Event()
        results: list[Any] = []

        def elsewhere() -> None:
            async def wait() -> None:
                started.set()
                results.append(await handle)

            run_in(new_loop(), wait())

        thread = threading.Thread(target=elsewhere)
        thread.start()
        await asyncio.to_thread(started.wait)
        answer.set_result([1])
        result = await handle
        await asyncio.to_thread(thread.join)
        assert result.result == [1]
        assert results[0] is result

    run_in(new_loop(), main())


@pytest.mark.parametrize("new_loop", LOOPS)
def test_awaited_in_another_loop_after_the_first_has_stopped(new_loop: NewLoop) -> None:
    loop = new_loop()

    async def start() -> CodeExecution:
        return run_code("export default host() + await 2", globals={"host": lambda: 3})

    handle = loop.run_until_complete(start())

    async def wait() -> Any:
        return (await handle).result

    assert run_in(new_loop(), wait()) == 5
    # The first loop works as before.
    run_in(loop, asyncio.sleep(0))


@pytest.mark.parametrize("new_loop", LOOPS)
@pytest.mark.parametrize(
    "source", [SPIN, "await answer", "call()"], ids=["spinning", "parked", "calling"]
)
def test_the_runs_of_a_closed_loop_end(new_loop: NewLoop, source: str) -> None:
    with Runtime() as runtime:

        async def start() -> CodeExecution:
            answer = asyncio.get_running_loop().create_future()
            globals = {"answer": answer, "call": lambda: None}
            return runtime.run_code(source, globals=globals)

        loop = new_loop()
        handle = loop.run_until_complete(start())
        loop.close()
        gc.collect()

        async def wait() -> str:
            return message_of(await handle)

        assert run_in(new_loop(), wait()) == ENDED_BY_CLOSE
        assert not handle.running


@pytest.mark.parametrize("new_loop", LOOPS)
def test_who_awaits_in_another_thread_hears_of_a_closed_loop(new_loop: NewLoop) -> None:
    handles: list[CodeExecution] = []
    started, waiting = threading.Event(), threading.Event()

    def own() -> None:
        async def start() -> None:
            handles.append(run_code(SPIN))
            started.set()
            await asyncio.to_thread(waiting.wait)

        run_in(new_loop(), start())

    thread = threading.Thread(target=own)
    thread.start()
    started.wait()

    async def wait() -> str:
        task = asyncio.create_task(handles[0])
        await asyncio.sleep(0)
        waiting.set()
        return message_of(await task)

    assert run_in(new_loop(), wait()) == ENDED_BY_CLOSE
    thread.join()
    gc.collect()


def test_a_task_that_dies_with_its_loop_leaves_no_one_waiting() -> None:
    loop, other = asyncio.new_event_loop(), asyncio.new_event_loop()

    async def start() -> CodeExecution:
        return run_code(SPIN)

    handle = loop.run_until_complete(start())

    async def wait() -> CodeExecutionResult:
        return await handle

    async def look() -> None:
        task = asyncio.ensure_future(wait())
        await asyncio.sleep(0)
        # The frame of this coroutine is closed and never cancelled.
        coroutine = wait()
        coroutine.send(None)
        coroutine.close()
        assert handle.running
        task.cancel()
        await asyncio.wait([task])

    other.run_until_complete(look())
    assert message_of(run_in(asyncio.new_event_loop(), wait())) == ENDED_BY_CANCEL
    loop.close()
    other.close()


def test_many_loops_in_many_threads() -> None:
    answers: list[Any] = []

    def work(number: int, new_loop: NewLoop) -> None:
        async def main() -> Any:
            def here() -> bool:
                return threading.get_ident() == ident and asyncio.get_running_loop() is loop

            async def there() -> bool:
                return here()

            ident, loop = threading.get_ident(), asyncio.get_running_loop()
            source = "export default (n) => Promise.all([n, here(), there()])"
            handles = [
                run_code(source, globals={"here": here, "there": there}, execute={"args": [n]})
                for n in range(20)
            ]
            return [result.result for result in await asyncio.gather(*handles)]

        answers.append((number, run_in(new_loop(), main())))

    pytest.importorskip("uvloop")
    kinds = [asyncio.new_event_loop, new_uvloop]
    threads = [threading.Thread(target=work, args=(n, kinds[n % 2])) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answers) == [(n, [[k, True, True] for k in range(20)]) for n in range(8)]


# Reports.


@in_loop
async def test_reports_are_the_values_that_the_sink_got() -> None:
    got: list[Any] = []
    seen: list[list[Any]] = []

    def sink(value: Any) -> int:
        got.append(value)
        seen.append(handle.reports)
        return len(got)

    handle = run_code("export default [report([1]), report({ a: 2 })]", report=sink)
    result = await handle
    assert result.result == [1, 2]
    assert got == [[1], {"a": 2}]
    assert [len(reports) for reports in seen] == [1, 2]
    for reports in (result.reports, handle.reports, seen[1]):
        assert [mine is theirs for mine, theirs in zip(reports, got, strict=True)] == [True] * 2
    handle.reports.clear()
    assert len(handle.reports) == 2


@in_loop
async def test_a_finalizer_may_look_at_the_reports_that_are_being_read() -> None:
    class Watcher:
        def __init__(self) -> None:
            self.me = self

        def __del__(self) -> None:
            looks.append(len(handle.reports))

    looks: list[int] = []
    source = "for (let i = 0; i < 300; i++) report(Array.from({ length: 100 }, () => [i]))"

    def sink(_: Any) -> None:
        Watcher()

    handle = run_code(source, report=sink)
    result = await handle
    gc.collect()
    assert len(looks) == 300
    assert [report[0][0] for report in result.reports] == list(range(300))


@in_loop
async def test_reports_read_by_other_threads_meanwhile() -> None:
    stop = threading.Event()
    handles: list[CodeExecution] = []

    def look() -> None:
        while not stop.is_set():
            for handle in handles:
                reports = handle.reports
                assert reports == list(range(len(reports)))

    threads = [threading.Thread(target=look) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(20):
            handle = run_code("for (let i = 0; i < 50; i++) report(i)", report=lambda _: None)
            handles[:] = [handle]
            assert (await handle).reports == list(range(50))
    finally:
        stop.set()
        for thread in threads:
            thread.join()
