"""Memory of settled runs: nothing large stays, whatever the host keeps of them.

In: runs with a report, a sink and a context variable, each of which has a weak reference here. Out:
after settlement those are gone, without the garbage collector, while the host keeps one object.
"""

from __future__ import annotations

import asyncio
import contextvars
import gc
import weakref
from collections.abc import Generator
from typing import Any

import isolane
import pytest
from isolane import CodeExecution, SandboxError, SerializationError

from ceilings import in_loop

VARIABLE: contextvars.ContextVar[Any] = contextvars.ContextVar("VARIABLE")

# A set can have a weak reference; text cannot.
REPORT = "report(new Set(['x']));"


@pytest.fixture(autouse=True)
def _without_collector() -> Generator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


class Value:
    """A value of a context variable."""


class Sink:
    """A sink, which also sees the reports."""

    def __init__(self, known: list[weakref.ref[Any]]) -> None:
        self._known = known

    def __call__(self, report: Any) -> None:
        self._known.append(weakref.ref(report))


class Watched:
    """A run, with weak references to the things that it must let go."""

    def __init__(self, source: str, **globals: Any) -> None:
        self.known: list[weakref.ref[Any]] = []
        sink, value = Sink(self.known), Value()
        self.known += [weakref.ref(sink), weakref.ref(value)]
        context = contextvars.copy_context()
        context.run(VARIABLE.set, value)
        self.handle: CodeExecution = context.run(
            isolane.run_code, REPORT + source, globals=globals, report=sink
        )

    async def end(self, *left: type) -> list[Any]:
        """Waits for the run, and returns those that are alive when nothing is kept of its handle
        and of its result: those of the classes `left`, if all is well."""
        result = await self.handle
        assert len(result.reports) == len(self.handle.reports) == 1, result
        del result, self.handle
        return await self.left(*left)

    async def left(self, *left: type) -> list[Any]:
        """Returns those that are alive as soon as they are of the classes `left`."""
        # The loop has callbacks for a moment: those of the futures that settled last, and polling,
        # which has the context of the run that it was begun for.
        loop = asyncio.get_running_loop()
        deadline = loop.time() + 60
        while loop.time() < deadline:
            if [type(alive) for alive in self.alive()] == [*left]:
                break
            await asyncio.sleep(0)
        return self.alive()

    def alive(self) -> list[Any]:
        return [ref() for ref in self.known if ref() is not None]


async def first_run() -> None:
    """A run, so that the loop's own callbacks have no context of a later one."""
    await isolane.run_code("report(1)", report=lambda _: None)


@in_loop
async def test_a_pending_future_of_the_host_keeps_nothing() -> None:
    await first_run()
    ready = asyncio.get_running_loop().create_future()
    for source in ["export default 1", "ready.then(report)", "throw 1", "await get(ready)"]:
        watched = Watched(source, ready=ready, get=lambda _: 1)
        assert await watched.end() == [], source
    ready.set_result(1)


@in_loop
async def test_a_pending_future_that_a_function_returned_keeps_nothing() -> None:
    await first_run()

    class OwnFuture(asyncio.Future[int]):
        pass

    for kind in (asyncio.Future[int], OwnFuture):
        ready = kind()
        for _ in range(2):
            watched = Watched("get().then(report); export default 1", get=iter([ready]).__next__)
            assert await watched.end() == []
        assert ready._callbacks in (None, [])
        ready.set_result(1)


@in_loop
async def test_a_pending_coroutine_of_the_host_goes_on_and_keeps_no_report() -> None:
    await first_run()
    ready, ended = asyncio.Event(), asyncio.Event()

    async def wait() -> None:
        await ready.wait()
        ended.set()
        raise ValueError("nobody retrieves it")

    failures: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, failure: failures.append(failure))
    watched = Watched("wait(); export default 1", wait=wait)
    # A task has a context of its own.
    assert [type(alive) for alive in await watched.end(Value)] == [Value]
    ready.set()
    await ended.wait()
    assert await watched.left() == []
    gc.collect()
    assert failures == []


@in_loop
async def test_a_function_and_a_promise_of_the_sandbox_keep_nothing() -> None:
    await first_run()
    kept: list[Any] = []
    source = "keep(() => 1); keep(new Promise(() => {})); export default 1"
    assert await Watched(source, keep=kept.append).end() == []
    function, promise = kept
    with pytest.raises(RuntimeError, match="the run has settled"):
        await function()
    with pytest.raises(RuntimeError, match="the run has settled"):
        await promise


@in_loop
async def test_an_exception_of_the_host_keeps_nothing() -> None:
    await first_run()
    kept: list[BaseException] = []

    def fail() -> None:
        kept.append(ValueError("over"))
        raise kept[-1]

    async def fail_later() -> None:
        await asyncio.sleep(0)
        fail()

    for source in ["fail()", "try { fail() } catch {}", "await failLater()"]:
        watched = Watched(f"{source}; export default 1", fail=fail, failLater=fail_later)
        assert await watched.end() == [], source
        assert kept[-1].__traceback__ is not None


@in_loop
async def test_an_error_of_the_sandbox_keeps_nothing() -> None:
    await first_run()
    kept: list[BaseException] = []

    async def call(function: Any) -> None:
        try:
            await function()
        except SandboxError as raised:
            kept.append(raised)

    source = "await call(() => { throw new Error('over') }); export default 1"
    assert await Watched(source, call=call).end() == []
    assert len(kept) == 1


def test_an_exception_keeps_no_report_without_a_loop() -> None:
    kept: list[BaseException] = []
    known: list[weakref.ref[Any]] = []

    def fail() -> None:
        kept.append(ValueError("over"))
        raise kept[-1]

    sink = Sink(known)
    known.append(weakref.ref(sink))
    with isolane.Runtime() as runtime:
        result = runtime.run_code_sync(REPORT + "fail()", globals={"fail": fail}, report=sink)
    assert result.error is not None
    assert result.error.cause is kept[0]
    assert len(known) == 2
    del result, sink
    assert [ref() for ref in known if ref() is not None] == []


@in_loop
async def test_a_handle_has_the_reports_of_its_run() -> None:
    handle = isolane.run_code("report([1]); report(2); export default 1", report=lambda _: None)
    result = await handle
    assert handle.reports == result.reports == [[1], 2]
    assert handle.reports[0] is result.reports[0]
    result.reports.clear()
    handle.reports.clear()
    assert handle.reports == [[1], 2]


@in_loop
async def test_a_run_that_cannot_start_keeps_nothing() -> None:
    ready = asyncio.get_running_loop().create_future()
    known: list[weakref.ref[Any]] = []

    def start() -> None:
        sink = Sink(known)
        known.append(weakref.ref(sink))
        isolane.run_code("1", globals={"ready": ready, "other": object()}, report=sink)

    with pytest.raises(SerializationError):
        start()
    # The exception and its frames were a cycle.
    gc.collect()
    assert known[0]() is None
    assert ready._callbacks in (None, [])
    assert not ready.done()


@in_loop
async def test_a_shared_future_holds_no_reports() -> None:
    await first_run()
    ready = asyncio.get_running_loop().create_future()

    async def wait() -> None:
        await ready

    for _ in range(20):
        # A task has a context of its own.
        watched = Watched("wait(); export default 1", ready=ready, wait=wait)
        assert [type(alive) for alive in await watched.end(Value)] == [Value]
    ready.set_result(1)
