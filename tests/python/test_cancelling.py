"""Coroutine functions of the host whose run, or whose cell, is ended while they wait."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import isolane
import pytest
from isolane import Runtime, Session, run_code

from ceilings import in_loop


class Calls:
    """A host function that waits, and the ends of its calls in their order."""

    def __init__(self) -> None:
        self.begun: asyncio.Queue[None] = asyncio.Queue()
        self.ends: asyncio.Queue[str] = asyncio.Queue()
        self.go_on = asyncio.Event()

    async def wait(self) -> str:
        self.begun.put_nowait(None)
        try:
            await self.go_on.wait()
        except asyncio.CancelledError:
            self.ends.put_nowait("cancelled")
            raise
        self.ends.put_nowait("done")
        return "done"


@in_loop
async def test_a_connection_of_a_run_that_is_terminated_is_closed() -> None:
    requested = asyncio.Event()
    closed = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        requested.set()
        # No answer comes: the client leaves.
        assert await reader.read() == b""
        closed.set()
        writer.close()

    async def fetch() -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            writer.write(b"GET /\n")
            return await reader.read()
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    handle = run_code("await fetch()", globals={"fetch": fetch})
    await requested.wait()
    handle.terminate("the client has gone")
    assert (await handle).status == "terminated"
    await closed.wait()
    server.close()


async def cancel_the_task(handle: isolane.CodeExecution, _: Runtime) -> None:
    task = asyncio.ensure_future(handle)
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])


async def terminate(handle: isolane.CodeExecution, _: Runtime) -> None:
    handle.terminate()


async def close(_: isolane.CodeExecution, runtime: Runtime) -> None:
    await runtime.aclose()


@pytest.mark.parametrize("end", [terminate, cancel_the_task, close])
@in_loop
async def test_the_ends_of_a_run_cancel_its_calls(
    end: Callable[[isolane.CodeExecution, Runtime], Awaitable[None]],
) -> None:
    calls = Calls()
    async with Runtime() as runtime:
        source = "await Promise.all([wait(), wait()])"
        handle = runtime.run_code(source, globals={"wait": calls.wait})
        for _ in range(2):
            await calls.begun.get()
        await end(handle, runtime)
        assert [await calls.ends.get() for _ in range(2)] == ["cancelled"] * 2


@in_loop
async def test_the_memory_limit_cancels() -> None:
    calls = Calls()
    source = "let all = []; wait(); await begun(); for (;;) all.push(new Array(1e5).fill(1));"
    globals = {"wait": calls.wait, "begun": calls.begun.get}
    result = await run_code(source, globals=globals, memory_limit_bytes=16 << 20)
    assert result.status == "memory"
    assert await calls.ends.get() == "cancelled"


@in_loop
async def test_a_synchronous_function_that_gives_a_coroutine() -> None:
    calls = Calls()

    def give() -> Awaitable[str]:
        return calls.wait()

    handle = run_code("await wait()", globals={"wait": give})
    await calls.begun.get()
    handle.terminate()
    assert await calls.ends.get() == "cancelled"


@in_loop
async def test_a_run_that_ends_by_itself_lets_its_calls_go_on() -> None:
    for source in ("wait(); export default 1", "wait(); throw new Error('x')"):
        calls = Calls()
        result = await run_code(source, globals={"wait": calls.wait})
        assert result.status in ("success", "error")
        await calls.begun.get()
        calls.go_on.set()
        assert await calls.ends.get() == "done"


@in_loop
async def test_a_shield_and_a_task_of_the_caller_go_on() -> None:
    calls = Calls()
    own = asyncio.ensure_future(calls.wait())

    async def shielded() -> str:
        return await asyncio.shield(calls.wait())

    globals = {"shielded": shielded, "own": lambda: own}
    handle = run_code("await Promise.all([shielded(), own()])", globals=globals)
    for _ in range(2):
        await calls.begun.get()
    handle.terminate()
    await handle
    calls.go_on.set()
    assert [await calls.ends.get() for _ in range(2)] == ["done"] * 2
    assert await own == "done"


@in_loop
async def test_a_cell_that_is_ended_cancels_its_calls_and_no_others() -> None:
    first, second = Calls(), Calls()
    async with Session(globals={"first": first.wait, "second": second.wait}) as session:
        assert (await session.run("const page = first(); 1")).session == "kept"
        cell = session.run("await second()")
        await second.begun.get()
        cell.terminate()
        assert (await cell).session == "rolledBack"
        assert await second.ends.get() == "cancelled"
        first.go_on.set()
        assert (await session.run("await page")).result == "done"


async def reset(session: Session) -> None:
    await session.reset()


async def close_it(session: Session) -> None:
    await session.aclose()


@pytest.mark.parametrize("end", [reset, close_it])
@in_loop
async def test_the_end_of_a_session_cancels_the_calls_of_its_cells(
    end: Callable[[Session], Awaitable[Any]],
) -> None:
    calls = Calls()
    async with Session(globals={"wait": calls.wait}) as session:
        assert (await session.run("const page = wait(); 1")).session == "kept"
        await calls.begun.get()
        await end(session)
        assert await calls.ends.get() == "cancelled"


@in_loop
async def test_more_calls_than_a_turn_cancels() -> None:
    calls = Calls()
    source = "await Promise.all(Array.from({ length: 2500 }, () => wait()))"
    handle = run_code(source, globals={"wait": calls.wait})
    for _ in range(2500):
        await calls.begun.get()
    handle.terminate()
    assert {await calls.ends.get() for _ in range(2500)} == {"cancelled"}
