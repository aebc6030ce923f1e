"""Coroutine functions of the host, for whose start the sandbox does not wait."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import threading
import warnings
from collections.abc import Coroutine
from typing import Any

import isolane
import pytest

from ceilings import in_loop


@pytest.mark.parametrize("end", ["export default 1", "throw new Error('over')"])
@in_loop
async def test_calls_that_nobody_awaits_have_all_started_when_the_run_settles(end: str) -> None:
    started: list[int] = []

    all_started = asyncio.Event()

    async def f(n: int) -> None:
        started.append(n)
        if len(started) == 300:
            all_started.set()

    def g(n: int) -> None:
        called.append(n)

    called: list[int] = []
    source = f"for (let i = 0; i < 600; i += 2) {{ f(i); g(i + 1) }} {end}"
    await isolane.run_code(source, globals={"f": f, "g": g})
    assert called == list(range(1, 600, 2))
    # They run as tasks of the loop, which gives each its turn.
    await all_started.wait()
    assert started == list(range(0, 600, 2))


@in_loop
async def test_what_they_come_to_is_theirs_in_any_order() -> None:
    class Tools:
        async def late(self, n: int) -> dict[str, int]:
            await asyncio.sleep((20 - n) / 1000)
            if n % 2 == 1:
                raise ValueError(f"no {n}")
            return {"n": n}

    outcome = await isolane.run_code(
        """const all = await Promise.allSettled(Array.from({ length: 20 }, (_, i) => late(i)));
           export default all.map(({ value, reason }) => value?.n ?? reason.message)""",
        globals={"late": Tools().late},
    )
    assert outcome.result == [f"no {n}" if n % 2 == 1 else n for n in range(20)]


@in_loop
async def test_none_starts_once_the_run_was_told_to_end() -> None:
    started = 0

    async def f() -> None:
        nonlocal started
        started += 1

    def g() -> None:
        handle.terminate()

    handle: isolane.CodeExecution = isolane.run_code(
        "for (;;) { f(); g() }", globals={"f": f, "g": g}
    )
    assert (await handle).status == "terminated"
    await asyncio.sleep(0)
    assert started <= 1


@pytest.mark.parametrize("is_async", [True, False])
@in_loop
async def test_no_body_begins_after_the_call_that_ends_the_run(is_async: bool) -> None:
    begun: list[int] = []

    async def pay(i: int) -> None:
        if i >= 2:
            handle.terminate("budget")
        begun.append(i)

    def pay_later(i: int) -> Coroutine[Any, Any, None]:
        return pay(i)

    function = pay if is_async else pay_later
    source = "for (let i = 0; i < 10; i++) pay(i); await new Promise(() => {})"
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        handle: isolane.CodeExecution = isolane.run_code(source, globals={"pay": function})
        result = await handle
        await asyncio.sleep(0)
        gc.collect()
    assert result.status == "terminated"
    assert begun == [0, 1, 2]
    assert caught == []


@in_loop
async def test_no_body_begins_once_another_thread_has_ended_the_run() -> None:
    begun: list[int] = []

    async def pay(i: int) -> None:
        begun.append(i)

    def end() -> list[int]:
        thread = threading.Thread(target=handle.terminate)
        thread.start()
        thread.join()
        return begun.copy()

    source = "for (let i = 0; i < 10; i++) pay(i); end(); await new Promise(() => {})"
    ended: list[list[int]] = []
    globals = {"pay": pay, "end": lambda: ended.append(end())}
    handle: isolane.CodeExecution = isolane.run_code(source, globals=globals)
    assert (await handle).status == "terminated"
    await asyncio.sleep(0)
    assert ended == [begun]


@pytest.mark.parametrize("call", ["pay()", "pay('x'.repeat(1_000_000))"])
@pytest.mark.parametrize("end", ["export default 1", "throw new Error('over')"])
@in_loop
async def test_a_body_that_nobody_awaits_begins_while_the_run_is_running(
    call: str, end: str
) -> None:
    begun: list[tuple[bool, int]] = []

    async def pay(*_: Any) -> None:
        begun.append((handle.running, len(handle.reports)))

    handle: isolane.CodeExecution = isolane.run_code(
        f"report(1); {call}; {end}", globals={"pay": pay}, report=lambda _: None
    )
    await handle
    assert begun == [(True, 1)]


def test_without_a_loop_a_body_that_nobody_awaits_begins_while_the_run_is_running() -> None:
    begun: list[int] = []

    async def pay(i: int) -> None:
        begun.append(i)

    source = "for (let i = 0; i < 10; i++) pay(i); export default 1"
    assert isolane.run_code_sync(source, globals={"pay": pay}).result == 1
    assert begun == list(range(10))


@in_loop
async def test_a_task_that_is_cancelled_before_its_first_step_closes_its_coroutine() -> None:
    begun: list[int] = []

    async def pay(i: int) -> None:
        begun.append(i)

    def cancel() -> None:
        for task in asyncio.all_tasks() - before:
            task.cancel()

    before = asyncio.all_tasks()

    def pay_later(i: int) -> Coroutine[Any, Any, None]:
        # Before the first step of the task that is about to be made.
        asyncio.get_running_loop().call_soon(cancel)
        return pay(i)

    source = "export default await pay(1).catch((error) => error.name)"
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = await isolane.run_code(source, globals={"pay": pay_later})
        gc.collect()
    assert result.result == "CancelledError", result
    assert begun == []
    assert caught == []


@in_loop
async def test_wrong_arguments_reject_the_promise() -> None:
    async def f(n: int) -> int:
        return n

    outcome = await isolane.run_code(
        "let promise = f(); export default await promise.catch((error) => error.name)",
        globals={"f": f},
    )
    assert outcome.result == "TypeError"


@in_loop
async def test_they_run_in_the_context_of_the_call() -> None:
    variable = contextvars.ContextVar("variable", default="another's")
    variable.set("mine")

    async def f() -> str:
        return variable.get()

    handle = isolane.run_code("export default await f()", globals={"f": f})
    variable.set("another's")
    assert (await handle).result == "mine"


@in_loop
async def test_a_flood_of_them_is_held_by_the_memory_limit() -> None:
    async def f(_: Any) -> None:
        await asyncio.Event().wait()

    for argument in ["1", "'x'.repeat(10_000)", "'x'.repeat(100_000)"]:
        outcome = await isolane.run_code(
            f"for (;;) f({argument})", globals={"f": f}, memory_limit_bytes=8 << 20
        )
        assert outcome.status == "memory", argument


def test_without_a_loop_they_are_driven_on_the_calling_thread() -> None:
    async def f(n: int) -> int:
        await asyncio.sleep(0)
        return n + 1

    source = "let n = 0; for (let i = 0; i < 50; i++) n = await f(n); export default n"
    assert isolane.run_code_sync(source, globals={"f": f}).result == 50
