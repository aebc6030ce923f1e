"""Sessions: their faces in Python, the loops and threads that cells come from, and misuse."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any

import isolane
import pytest
from isolane import (
    CellExecution,
    CellExecutionResult,
    CodeExecution,
    CodeExecutionResult,
    SandboxError,
    Session,
    SessionName,
)
from isolane._bridge import bridge_of
from isolane._cell import Cell

from ceilings import in_loop, run_in


def value_of(result: CellExecutionResult) -> Any:
    """The value of a cell that succeeded."""
    assert result.error is None, result.error
    assert result.status == "success"
    assert result.session == "kept"
    return result.result


def until_freed(runtime: isolane.Runtime) -> None:
    """Waits until no session is open. The thread of the last cell may still hold one."""
    while runtime.stats().sessions > 0:
        time.sleep(0.001)


# The faces.


def test_cells_without_a_loop() -> None:
    with Session() as session:
        assert value_of(session.run_sync("const x = 20; let y = 1;")) is None
        assert value_of(session.run_sync("y += 1; x + y")) == 22
        session.run_sync("function add(a: number, b: number) { return a + b + x }")
        assert value_of(session.call_sync("add", 1, 2)) == 23
        assert [name.name for name in session.names_sync()] == ["x", "y", "add"]
        assert repr(session) == "<Session open>"
    assert repr(session) == "<Session closed>"


@in_loop
async def test_cells_in_a_loop() -> None:
    async with Session() as session:
        first, second = session.run("const x = 20"), session.run("x + 1")
        assert isinstance(first, CellExecution)
        assert isinstance(first, CodeExecution)
        assert repr(first) == "<CellExecution running>"
        assert value_of(await second) == 21
        assert value_of(await first) is None
        assert repr(first) == "<CellExecution success>"
        await session.run("function double(value: number) { return 2 * value }")
        assert value_of(await asyncio.create_task(session.call("double", 4))) == 8
    with pytest.raises(RuntimeError, match=r"^the session is closed$"):
        session.run("1")
    await session.aclose()
    session.close()


def test_the_result_of_a_cell_is_that_of_a_run_and_more() -> None:
    with Session() as session:
        result = session.run_sync("({ a: [1, 'b'] })")
        assert isinstance(result, CodeExecutionResult)
        assert result.result == {"a": [1, "b"]}
        assert result.text == "{ a: [ 1, 'b' ] }"
        assert result.uncloned is None
        assert result.value_from == "expression"
        assert result.raise_for_status() is result
        function = session.run_sync("return () => 1")
        assert function.status == "success"
        assert function.result is None
        assert function.uncloned is not None
        assert function.value_from == "return"
        nothing = session.run_sync("const z = 1")
        assert (nothing.text, nothing.value_from) == (None, None)


def test_the_names_of_a_session() -> None:
    with Session() as session:
        session.run_sync(
            "const list = [1, 2]; let later; class Order {}; const order = new Order()"
        )
        assert session.names_sync() == [
            SessionName("list", "const", "Array", 2),
            SessionName("later", "let", "undefined"),
            SessionName("Order", "class", "function"),
            SessionName("order", "const", "Order"),
        ]


@in_loop
async def test_questions_wait_for_the_cells_before_and_not_for_those_after() -> None:
    async with Session() as session:
        handles = [session.run("const a = 1")]
        names = session.names()
        handles.append(session.run("const b = 2"))
        assert [name.name for name in await names] == ["a"]
        await asyncio.gather(*handles)
        assert [name.name for name in await session.names()] == ["a", "b"]


@in_loop
async def test_a_reset_ends_the_cells_before_it() -> None:
    async with Session(globals={"kept": 1}) as session:
        await session.run("const a = 1")
        spinning, waiting = session.run("for (;;);"), session.run("2")
        done = session.reset()
        after = session.run("typeof a + kept")
        for handle in (spinning, waiting):
            ended = await handle
            assert ended.status == "terminated"
            assert ended.error is not None
            assert ended.error.name == "SessionReset"
        await done
        assert value_of(await after) == "undefined1"


def test_a_copy_goes_its_own_way() -> None:
    with Session(globals={"double": lambda x: 2 * x}) as session:
        session.run_sync("let x = 1")
        with session.fork_sync() as copy:
            copy.run_sync("x = double(21)")
            assert value_of(copy.run_sync("x")) == 42
            assert value_of(session.run_sync("x")) == 1


@in_loop
async def test_an_awaitable_that_was_handed_over_settles_in_the_copy_too() -> None:
    future = asyncio.get_running_loop().create_future()
    async with Session(globals={"page": future}) as session, await session.fork() as copy:
        future.set_result("here")
        assert value_of(await session.run("await page")) == "here"
        assert value_of(await copy.run("await page")) == "here"


@in_loop
async def test_a_copy_is_refused_while_a_call_is_unanswered() -> None:
    async def never() -> None:
        await asyncio.get_running_loop().create_future()

    async with Session(globals={"never": never}) as session:
        await session.run("never(); never(); 0")
        with pytest.raises(RuntimeError, match="2"):
            await session.fork()


def test_an_update_adds_replaces_and_takes_away() -> None:
    with Session(globals={"a": 1, "b": 2}, modules={"./m.ts": "export const m = 1"}) as session:
        assert value_of(session.run_sync("import { m } from './m.ts'; [a, b, m]")) == [1, 2, 1]
        session.update(
            globals={"a": 10, "b": None},
            imports={"host": {"add": lambda a, b: a + b}},
            modules={"./m.ts": "export const m = 2"},
        )
        source = "import { m } from './m.ts'; import { add } from 'host'; [a, typeof b, add(m, 1)]"
        assert value_of(session.run_sync(source)) == [10, "undefined", 3]
        session.update(imports={"host": None})
        assert session.run_sync("import { add } from 'host'").status == "link_error"


def test_a_runtime_has_sessions_and_closes_them() -> None:
    with isolane.Runtime() as runtime:
        session = runtime.session(globals={"x": 1})
        assert value_of(session.run_sync("x")) == 1
        assert runtime.stats().sessions == 1
    with pytest.raises(RuntimeError):
        session.run_sync("x")
    assert repr(session) == "<Session closed>"


# Misuse.


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"filename": "a"}, TypeError, "unexpected keyword argument 'filename'"),
        ({"cells": "stack"}, TypeError, "cells must be 'queue' or 'interleave', got 'stack'"),
        ({"checkpoint_bytes": -1}, ValueError, "checkpoint_bytes must be a safe integer"),
        ({"checkpoint_bytes": "1"}, TypeError, "checkpoint_bytes must be an int, got '1'"),
        ({"memory_limit_bytes": 0}, ValueError, "memory_limit_bytes must be a safe integer"),
        ({"globals": {"a": object()}}, isolane.SerializationError, "globals.a"),
        ({"report": 1}, TypeError, "report must be a callable, got int"),
    ],
)
def test_a_wrong_option_of_a_session(options: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message), isolane.Runtime() as runtime:
        runtime.session(**options)
    with pytest.raises(error, match=message):
        Session(**options)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"globals": {}}, TypeError, "unexpected keyword argument 'globals'"),
        ({"filename": 1}, TypeError, "filename must be a str, got int"),
        ({"language": "ts"}, TypeError, "language must be 'javascript' or 'typescript', got 'ts'"),
        ({"report": 1}, TypeError, "report must be a callable, got int"),
        ({"timeout_ms": 1.5}, TypeError, "timeout_ms must be an int, got float"),
        ({"timeout_ms": 0}, ValueError, "timeout_ms must be a safe integer of at least 1"),
    ],
)
def test_a_wrong_option_of_a_cell(options: Any, error: type[Exception], message: str) -> None:
    with Session() as session:
        with pytest.raises(error, match=message):
            session.run_sync("1", **options)
        assert value_of(session.run_sync("2", timeout_ms=None)) == 2


def test_misuse_of_a_call_and_of_an_update() -> None:
    with Session() as session:
        call: Any = session.call_sync
        update: Any = session.update
        with pytest.raises(TypeError, match="name must be a str, got int"):
            call(1)
        with pytest.raises(TypeError, match="unexpected keyword argument 'filename'"):
            call("f", filename="a")
        with pytest.raises(isolane.SerializationError, match=r"^args\[0\]: "):
            call("f", object())
        with pytest.raises(TypeError, match="unexpected keyword argument 'global'"):
            update(**{"global": {}})
        with pytest.raises(TypeError, match="globals must be a dict, got int"):
            update(globals=1)


@in_loop
async def test_what_is_refused_leaves_no_coroutine() -> None:
    begun: list[int] = []

    async def work() -> None:
        begun.append(1)

    async with Session() as session:
        values: dict[str, Any] = {"page": work(), "pool": object()}
        with pytest.raises(isolane.SerializationError):
            session.update(globals=values)
        with pytest.raises(isolane.SerializationError):
            session.call("f", work(), object())
        with pytest.raises(isolane.SerializationError):
            Session(globals={"page": work(), "pool": object()})
        await asyncio.sleep(0)
        assert begun == []
        assert value_of(await session.run("typeof page")) == "undefined"


def test_a_coroutine_function_that_is_handed_over_while_a_cell_waits() -> None:
    async def answer() -> int:
        await asyncio.sleep(0)
        return 5

    with Session() as session:
        begun, go_on = threading.Event(), threading.Event()

        def hold() -> None:
            begun.set()
            go_on.wait()

        session.update(globals={"hold": hold})
        first = threading.Thread(target=session.run_sync, args=("hold()",))
        first.start()
        begun.wait()
        results: list[Any] = []
        waiting = threading.Thread(
            target=lambda: results.append(session.run_sync("await answer()"))
        )
        waiting.start()
        while len(session._host.cells) < 2:
            time.sleep(0.001)
        session.update(globals={"answer": answer})
        go_on.set()
        first.join()
        waiting.join()
        assert value_of(results[0]) == 5


def test_a_cell_needs_a_loop_or_none() -> None:
    with Session() as session:
        message = "^run needs a running event loop; without one, call run_sync$"
        with pytest.raises(RuntimeError, match=message):
            session.run("1")

        async def main() -> None:
            for name in ("run_sync", "call_sync", "names_sync", "reset_sync", "fork_sync"):
                arguments = ["1"] if name in ("run_sync", "call_sync") else []
                with pytest.raises(RuntimeError, match=f"^{name} cannot be called while"):
                    getattr(session, name)(*arguments)

        asyncio.run(main())


# Calls of the host.


@in_loop
async def test_a_call_that_no_cell_awaits_is_answered_in_a_later_cell() -> None:
    asked = asyncio.Event()
    answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def load(page: int) -> str:
        asked.set()
        return f"{await answer} {page}"

    async with Session(globals={"load": load}) as session:
        await session.run("const page = load(1)")
        await asked.wait()
        answer.set_result("page")
        await asyncio.sleep(0)
        assert value_of(await session.run("await page")) == "page 1"


@in_loop
async def test_a_call_at_the_very_end_of_a_cell_is_made() -> None:
    calls: list[int] = []

    async def note(number: int) -> int:
        calls.append(number)
        return number

    async with Session(globals={"note": note}) as session:
        for number in range(20):
            await session.run(f"var last = note({number})")
        assert value_of(await session.run("await last")) == 19
        assert calls == list(range(20))


def test_a_call_that_run_sync_leaves_is_cancelled_and_rejects() -> None:
    cancelled: list[int] = []

    async def load(page: int) -> None:
        try:
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            cancelled.append(page)
            raise

    def forgotten() -> asyncio.Future[None]:
        return asyncio.get_running_loop().create_future()

    with Session(globals={"load": load, "forgotten": forgotten}) as session:
        session.run_sync("const page = load(1); const future = forgotten()")
        assert cancelled == [1]
        gc.collect()
        caught = session.run_sync("try { await page } catch (error) { error.name }")
        assert value_of(caught) == "CancelledError"
        caught = session.run_sync("try { await future } catch (error) { error.name }")
        assert value_of(caught) == "CancelledError"


@in_loop
async def test_a_host_function_has_the_context_of_its_cell() -> None:
    user: contextvars.ContextVar[str] = contextvars.ContextVar("user")

    async def later() -> str:
        await asyncio.sleep(0)
        return user.get()

    async with Session(globals={"who": user.get, "later": later}) as session:
        handles = []
        for name in ("ann", "bob"):
            user.set(name)
            handles.append(session.run("[who(), await later()]"))
        user.set("eve")
        assert [value_of(await handle) for handle in handles] == [["ann"] * 2, ["bob"] * 2]


def test_cells_from_two_loops_and_from_none() -> None:
    async def answer() -> str:
        await asyncio.sleep(0)
        return threading.current_thread().name

    session = Session(globals={"answer": answer})
    source = "var n = (typeof n === 'undefined' ? 0 : n) + 1; [n, await answer()]"

    async def cell() -> Any:
        return value_of(await session.run(source))

    main = threading.current_thread().name
    assert asyncio.run(cell()) == [1, main]
    assert asyncio.run(cell()) == [2, main]
    assert value_of(session.run_sync(source)) == [3, main]
    elsewhere: list[Any] = []
    thread = threading.Thread(target=lambda: elsewhere.append(asyncio.run(cell())), name="other")
    thread.start()
    thread.join()
    assert elsewhere == [[4, "other"]]
    session.close()


def test_threads_take_turns() -> None:
    with Session(globals={"step": lambda x: x + 1}) as session:
        session.run_sync("let n = 0")
        failures: list[BaseException] = []

        def work() -> None:
            try:
                for _ in range(50):
                    value_of(session.run_sync("n = step(n)"))
            except BaseException as failure:
                failures.append(failure)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failures == []
        assert value_of(session.run_sync("n")) == 200


# Functions and promises of the sandbox.


@in_loop
async def test_a_function_of_the_sandbox_stays_valid_between_cells() -> None:
    kept: list[Callable[..., asyncio.Future[Any]]] = []
    async with Session(globals={"keep": kept.append, "double": lambda x: 2 * x}) as session:
        await session.run("let n = 1; keep((by) => { n += double(by); return n })")
        assert await kept[0](1) == 3
        assert value_of(await session.run("n")) == 3
        assert list(await asyncio.gather(kept[0](1), kept[0](1))) == [5, 7]
        await session.run("keep(() => { throw new RangeError('no') })")
        with pytest.raises(SandboxError, match="no"):
            await kept[1]()


def test_a_function_of_the_sandbox_can_be_called_on_another_loop() -> None:
    kept: list[Callable[..., asyncio.Future[Any]]] = []
    session = Session(globals={"keep": kept.append})
    session.run_sync("keep((x) => x + 1)")

    async def call() -> Any:
        return await kept[0](1)

    assert asyncio.run(call()) == 2
    assert asyncio.run(call()) == 2
    with pytest.raises(RuntimeError):
        kept[0](1)
    session.close()

    async def call_closed() -> None:
        with pytest.raises(SandboxError, match=r"^SessionClosed: "):
            await kept[0](1)

    asyncio.run(call_closed())


@in_loop
async def test_a_function_that_is_called_between_cells_has_the_context_of_its_call() -> None:
    user: contextvars.ContextVar[str] = contextvars.ContextVar("user")
    kept: list[Callable[..., asyncio.Future[Any]]] = []
    user.set("cell")
    async with Session(globals={"who": user.get, "keep": kept.append}) as session:
        await session.run("keep(() => who())")
        user.set("call")
        assert await kept[0]() == "call"


@in_loop
async def test_a_promise_of_the_sandbox_settles_in_a_later_cell() -> None:
    kept: list[asyncio.Future[Any]] = []
    async with Session(globals={"keep": kept.append}) as session:
        await session.run("let go; keep({ p: new Promise((resolve) => { go = resolve }) })")
        promise: asyncio.Future[Any] = kept[0]["p"]  # type: ignore[index]
        assert not promise.done()
        await session.run("go(5)")
        assert await promise == 5


def test_a_promise_that_a_closed_loop_received_is_received_anew() -> None:
    received: list[asyncio.Future[Any]] = []
    with Session(globals={"take": received.append}) as session:
        session.run_sync("let settle; const promise = new Promise((done) => { settle = done });")
        session.run_sync("take(promise)")

        async def main() -> None:
            await session.run("take(promise)")
            await session.run("settle(5)")
            first, second = received
            assert first is not second
            assert await second == 5

        run_in(asyncio.new_event_loop(), main())


@in_loop
async def test_a_promise_of_a_cell_that_was_rolled_back_fails() -> None:
    kept: list[Any] = []
    asked = asyncio.Event()

    def keep(value: Any) -> None:
        kept.append(value)
        if len(kept) == 2:
            asked.set()

    async with Session(globals={"keep": keep}) as session:
        await session.run("keep({ p: new Promise(() => {}) })")
        handle = session.run("keep({ p: new Promise(() => {}) }); for (;;);")
        await asked.wait()
        handle.terminate("enough")
        ended = await handle
        assert (ended.status, ended.session) == ("terminated", "rolledBack")
        with pytest.raises(SandboxError, match=r"^SessionRolledBack: "):
            await kept[1]["p"]
        assert not kept[0]["p"].done()
        await session.reset()
        with pytest.raises(SandboxError, match=r"^SessionReset: "):
            await kept[0]["p"]


@in_loop
async def test_the_reports_of_a_cell_and_of_a_session() -> None:
    seen: list[tuple[str, Any]] = []
    kept: list[Callable[..., asyncio.Future[Any]]] = []
    async with Session(
        report=lambda value: seen.append(("session", value)), globals={"keep": kept.append}
    ) as session:
        handle = session.run("report(1)")
        await handle
        assert handle.reports == [1]
        await session.run("report(2)", report=lambda value: seen.append(("cell", value)))
        await session.run("keep(() => report(3))")
        await kept[0]()
        assert seen == [("session", 1), ("cell", 2), ("session", 3)]


# Ends.


@in_loop
async def test_an_endless_cell_costs_a_cell() -> None:
    async with Session() as session:
        await session.run("let n = 1")
        ended = await session.run("n = 2; for (;;);", timeout_ms=30)
        assert ended.status == "terminated"
        assert ended.session == "rolledBack"
        assert ended.error is not None
        assert (ended.error.name, ended.error.message) == (
            "Timeout",
            "the cell took longer than 30 ms",
        )
        assert value_of(await session.run("n")) == 1


@in_loop
async def test_the_cause_of_a_cells_error_is_the_hosts_exception() -> None:
    def fail(message: str) -> None:
        raise ValueError(message)

    async with Session(globals={"fail": fail}) as session:
        for message in ("one", "two"):
            result = await session.run(f"fail('{message}')")
            assert result.error is not None
            assert isinstance(result.error.cause, ValueError)
            assert result.error.cause.args == (message,)


def test_a_session_that_nothing_refers_to_is_closed() -> None:
    with isolane.Runtime() as runtime:
        session = runtime.session()
        session.run_sync("1")
        assert runtime.stats().sessions == 1
        gone = weakref.ref(session)
        del session
        gc.collect()
        assert gone() is None
        until_freed(runtime)


def test_a_host_function_that_holds_its_session_does_not_keep_it() -> None:
    with isolane.Runtime() as runtime:

        def open_session() -> weakref.ref[Session]:
            holder: dict[str, Session] = {}
            session = runtime.session(globals={"inner": lambda: holder})
            holder["session"] = session
            session.run_sync("1")
            return weakref.ref(session)

        gone = open_session()
        gc.collect()
        assert gone() is None
        until_freed(runtime)


@in_loop
async def test_a_function_of_the_sandbox_keeps_its_session() -> None:
    kept: list[Callable[..., asyncio.Future[Any]]] = []
    with isolane.Runtime() as runtime:
        session = runtime.session(globals={"keep": kept.append})
        await session.run("keep(() => 7)")
        del session
        gc.collect()
        assert runtime.stats().sessions == 1
        assert await kept[0]() == 7
        kept.clear()
        gc.collect()
        until_freed(runtime)


@in_loop
async def test_the_host_lets_go_of_what_an_undone_cell_was_given() -> None:
    given: list[weakref.ref[Any]] = []

    def make() -> dict[str, Any]:
        def function() -> int:
            return 1

        future = asyncio.get_running_loop().create_future()
        given.extend((weakref.ref(function), weakref.ref(future)))
        return {"fn": function, "promise": future}

    async def load() -> dict[str, Any]:
        return make()

    async with Session(globals={"make": make, "load": load, "keep": lambda _: None}) as session:
        await session.run("const kept = make(); const loaded = await load()")
        kept, given[:] = list(given), []
        undone = await session.run("make(); await load(); keep(kept.fn); for (;;);", timeout_ms=300)
        assert undone.session == "rolledBack"
        del undone
        await asyncio.sleep(0)
        gc.collect()
        assert [reference() for reference in given] == [None] * 4
        assert all(reference() is not None for reference in kept)
        assert value_of(await session.run("kept.fn() + loaded.fn()")) == 2
        await session.reset()
        gc.collect()
        assert [reference() for reference in kept] == [None] * 4


def test_a_cell_of_a_session_that_was_dropped_ends_as_it_would() -> None:
    async def main() -> None:
        handle = Session(globals={"f": lambda: 3}).run("await 0; f()")
        gc.collect()
        assert value_of(await handle) == 3

    asyncio.run(main())


# Ends.

# A builtin that takes some time, in which nothing ends its cell.
_BUILTIN = "Array.prototype.reverse.call({ length: 20_000_000 })"


def looks_at_cells(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """The answers to each question whether calls of a cell start that was told to end."""
    looks: list[bool] = []
    undecided = Cell.is_undecided

    def look(cell: Cell) -> bool:
        looks.append(undecided(cell))
        return looks[-1]

    monkeypatch.setattr(Cell, "is_undecided", look)
    return looks


@in_loop
async def test_a_task_that_waits_for_the_end_of_its_cell_keeps_no_loop_busy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looks = looks_at_cells(monkeypatch)

    async def work() -> None:
        pass

    def begin() -> Any:
        # Before the first step of the task that is made of the coroutine.
        asyncio.get_running_loop().call_soon(cell.terminate)
        return work()

    async with Session(globals={"begin": begin}) as session:
        cell = session.run(f"begin(); {_BUILTIN}")
        await cell
    assert len(looks) < 20


@in_loop
async def test_a_call_that_waits_for_the_end_of_its_cell_keeps_no_loop_busy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looks = looks_at_cells(monkeypatch)

    async def work() -> None:
        pass

    bridge = bridge_of(asyncio.get_running_loop())
    async with Session(globals={"work": work}) as session:
        cell = session.run(f"work(); {_BUILTIN}")
        # The call has arrived, and the loop has not handled it.
        while not (arrived := bridge.mailbox.drain()):
            pass
        cell.terminate()
        bridge._pending.extend(arrived)
        asyncio.get_running_loop().call_soon(bridge._receive)
        await cell
    assert len(looks) < 20
