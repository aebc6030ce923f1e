"""Host functions: the kinds of callables, their threads, their results and their exceptions."""

from __future__ import annotations

import asyncio
import collections
import contextvars
import functools
import gc
import operator
import sys
import threading
import types
import warnings
from collections.abc import Awaitable, Callable, Generator
from typing import Any
from unittest import mock

import pytest
from isolane import (
    CodeExecution,
    Runtime,
    SandboxError,
    SandboxFunction,
    run_code,
    run_code_sync,
)

from ceilings import CEILING_S, LOOPS, in_loop, run_in, run_program

NewLoop = Callable[[], asyncio.AbstractEventLoop]


def called(function: Any, arguments: str = "2") -> Any:
    """The result of a call of a host function."""
    source = f"export default await f({arguments})"
    return run_code_sync(source, globals={"f": function}).raise_for_status().result


# The kinds of callables.


class Tool:
    """One callable of each kind that a class can have."""

    factor = 3

    def method(self, value: int) -> int:
        return value * self.factor

    async def coroutine(self, value: int) -> int:
        await asyncio.sleep(0)
        return value * self.factor

    @classmethod
    def of_class(cls, value: int) -> int:
        return value * cls.factor

    @staticmethod
    def of_none(value: int) -> int:
        return value * 3

    def __call__(self, value: int) -> int:
        return value * self.factor


class AsyncTool:
    async def __call__(self, value: int) -> int:
        await asyncio.sleep(0)
        return value * 3


class Later:
    """Awaitable by its class alone."""

    def __await__(self) -> Generator[Any, None, int]:
        yield from asyncio.sleep(0).__await__()
        return 6


@types.coroutine
def of_generator(value: int) -> Generator[Any, None, int]:
    yield from asyncio.sleep(0).__await__()
    return value * 3


def future(value: int) -> asyncio.Future[int]:
    done = asyncio.get_running_loop().create_future()
    done.set_result(value * 3)
    return done


async def add(left: int, right: int) -> int:
    return left + right


@pytest.mark.parametrize(
    "function",
    [
        Tool().method,
        Tool().coroutine,
        Tool.of_class,
        Tool.of_none,
        Tool(),
        AsyncTool(),
        lambda value: value * 3,
        lambda _: Later(),
        of_generator,
        future,
        lambda value: asyncio.ensure_future(add(value, 4)),
        lambda value: asyncio.gather(add(value, 4), return_exceptions=True),
        functools.partial(operator.mul, 3),
        functools.partial(add, 4),
        functools.partialmethod(Tool.method).__get__(Tool()),
        functools.lru_cache(lambda value: value * 3),
        functools.singledispatch(lambda value: value * 3),
        (3).__mul__,
        mock.Mock(return_value=6),
        mock.AsyncMock(return_value=6),
        operator.methodcaller("__mul__", 3),
    ],
)
def test_callables(function: Any) -> None:
    result = called(function)
    if isinstance(result, list):
        [result] = result
    assert result == 6


def test_builtins_and_classes() -> None:
    assert called(len, "[1, 2]") == 2
    assert called(print, "") is None
    assert called(max, "1, 5, 3") == 5
    assert called(dict, "[['a', 1]]") == {"a": 1}
    assert called(collections.OrderedDict, "[['a', 1]]") == {"a": 1}
    assert called({"a": 1}.get, "'a'") == 1
    values: list[int] = []
    assert called(values.append, "1") is None
    assert values == [1]


def test_sync_is_sync_inside_and_awaitables_are_promises() -> None:
    source = (
        "export default [f() instanceof Promise, g() instanceof Promise, h() instanceof Promise]"
    )
    globals = {"f": lambda: 1, "g": functools.partial(add, 1, 2), "h": Later}
    assert run_code_sync(source, globals=globals).result == [False, True, True]


def test_names_are_the_keys() -> None:
    source = "export default [f.name, o.key.name, m[0].name, f.length, 'prototype' in f]"
    globals = {"f": len, "o": {"key": Tool().method}, "m": [Tool.of_none]}
    result = run_code_sync(source, globals=globals).result
    assert result == ["f", "key", "of_none", 0, False]


def test_a_callable_comes_back_as_itself() -> None:
    tool, got = Tool(), list[Any]()
    method = tool.method
    source = "take(tool, method, method); export default give()(2)"
    globals = {
        "tool": tool,
        "method": method,
        "take": lambda *values: got.extend(values),
        "give": lambda: method,
    }
    assert run_code_sync(source, globals=globals).result == 6
    assert got[0] is tool
    assert got[1] is got[2] is method


def test_arguments_are_checked_by_python() -> None:
    source = """
        let m;
        try { f(1, 2, 3) } catch (e) { m = [e.name, e instanceof TypeError] }
        export default m
    """
    assert run_code_sync(source, globals={"f": lambda: None}).result == ["TypeError", True]


# Threads of host functions.

who: contextvars.ContextVar[str] = contextvars.ContextVar("who", default="nobody")


@pytest.mark.parametrize("new_loop", LOOPS)
def test_they_see_the_context_of_the_call(new_loop: NewLoop) -> None:
    async def main() -> None:
        async def later() -> str:
            await asyncio.sleep(0)
            before = who.get()
            who.set("later")
            return before

        def now() -> str:
            before = who.get()
            who.set("now")
            return before

        def sink(_: Any) -> str:
            return who.get()

        async def start(name: str) -> Any:
            who.set(name)
            source = (
                "export default [now(), now(), await later(), await later(), report(1), await late]"
            )
            globals = {"now": now, "later": later, "late": later()}
            handle = run_code(source, globals=globals, report=sink)
            who.set("after the call")
            return (await handle).result

        results = await asyncio.gather(*(asyncio.create_task(start(f"task {n}")) for n in range(5)))
        assert results == [[f"task {n}"] * 6 for n in range(5)]
        assert who.get() == "nobody"

    run_in(new_loop(), main())


def test_without_a_loop_they_run_on_the_calling_thread_in_its_context() -> None:
    async def later() -> tuple[int, str]:
        return threading.get_ident(), who.get()

    def now() -> tuple[int, str]:
        return threading.get_ident(), who.get()

    token = who.set("caller")
    try:
        source = "export default [now(), await later()]"
        result = run_code_sync(source, globals={"now": now, "later": later}).result
        assert result == [[threading.get_ident(), "caller"]] * 2
    finally:
        who.reset(token)


@pytest.mark.parametrize("new_loop", LOOPS)
def test_they_run_one_after_the_other_and_never_after_the_end(new_loop: NewLoop) -> None:
    async def main() -> None:
        calls: list[str] = []

        def end() -> None:
            calls.append("end")
            handle.terminate("enough")

        handle = run_code(
            "try { end() } catch {} log(); setInterval", globals={"end": end, "log": calls.append}
        )
        assert (await handle).status == "terminated"
        for _ in range(20):
            await asyncio.sleep(0)
        assert calls == ["end"]

    run_in(new_loop(), main())


# Exceptions.


class UnprintableError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")

    __repr__ = __str__


class UnreadableError(Exception):
    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError(f"asked for {name}")


class UncodedError(Exception):
    @property
    def code(self) -> str:
        raise RuntimeError("asked for the code")


class NotTextError(Exception):
    def _number(self) -> Any:
        return 3

    __str__ = _number


class BareError(BaseException):
    pass


RAISED: list[tuple[BaseException, list[Any]]] = [
    (Exception("m"), ["Exception", "m"]),
    (ValueError("m", 2), ["ValueError", "('m', 2)"]),
    (BareError("m"), ["BareError", "m"]),
    (StopIteration(3), ["StopIteration", "3"]),
    (StopAsyncIteration(3), ["StopAsyncIteration", "3"]),
    (GeneratorExit("m"), ["GeneratorExit", "m"]),
    (asyncio.CancelledError("m"), ["CancelledError", "m"]),
    (asyncio.TimeoutError(), ["TimeoutError", ""]),
    (MemoryError(), ["MemoryError", ""]),
    (RecursionError("m"), ["RecursionError", "m"]),
    (UnprintableError(), ["UnprintableError", ""]),
    (UnreadableError("m"), ["UnreadableError", "m"]),
    (UncodedError("m"), ["UncodedError", "m"]),
    (NotTextError(), ["NotTextError", ""]),
    (Exception("\ud800"), ["Exception", "\ud800"]),
    (SandboxError("RangeError", "m"), ["RangeError", "m"]),
]


@pytest.mark.parametrize(("raised", "seen"), RAISED, ids=[type(r).__name__ for r, _ in RAISED])
@pytest.mark.parametrize("kind", ["sync", "async", "future"])
def test_what_they_raise_is_thrown_inside(
    raised: BaseException, seen: list[Any], kind: str
) -> None:
    def fail() -> None:
        raise raised

    async def fail_later() -> None:
        await asyncio.sleep(0)
        raise raised

    def promise() -> Awaitable[None]:
        future = asyncio.get_running_loop().create_future()
        future.set_exception(raised)
        return future

    source = "let s; try { await f() } catch (e) { s = [e.name, e.message] } export default s"
    function: Any = {"sync": fail, "async": fail_later, "future": promise}[kind]
    heard: list[Any] = []

    async def main() -> Any:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: heard.append(context))
        return (await run_code(source, globals={"f": function})).result

    if type(raised) is asyncio.CancelledError and kind == "async" and sys.version_info < (3, 11):
        seen = ["CancelledError", "the host cancelled it"]  # A task has lost the message.
    if type(raised) is StopIteration and kind == "async":
        seen = ["RuntimeError", "coroutine raised StopIteration"]
    if type(raised) is StopIteration and kind == "future":
        seen = [mock.ANY, mock.ANY]  # Futures refuse it, with errors of their own.
    assert run_in(asyncio.new_event_loop(), main()) == seen
    assert run_code_sync(source, globals={"f": function}).result == seen
    gc.collect()
    # The loop must not report a failure that the sandbox has received.
    assert heard == []


@pytest.mark.parametrize("raised", [KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("kind", ["sync", "async"])
def test_what_ends_a_program_ends_it(raised: type[BaseException], kind: str) -> None:
    def fail() -> None:
        raise raised("now")

    async def fail_later() -> None:
        raise raised("now")

    source = "try { await f() } catch {} for (;;);"
    function: Any = {"sync": fail, "async": fail_later}[kind]
    with Runtime() as runtime, pytest.raises(raised, match="now"):
        runtime.run_code_sync(source, globals={"f": function})

    async def main() -> None:
        await run_code(source, globals={"f": function})

    with pytest.raises(raised, match="now"):
        asyncio.run(main())


def test_an_uncaught_exception_is_the_error_of_the_run() -> None:
    def fail() -> None:
        raise LookupError("nothing there")

    error = run_code_sync("fail()", globals={"fail": fail}).error
    assert error is not None
    assert (error.name, error.message) == ("LookupError", "nothing there")
    assert error.stack is not None
    assert __file__ not in error.stack


def test_classes_of_errors_hold_both_ways() -> None:
    caught: list[SandboxError] = []

    async def call(function: SandboxFunction) -> Any:
        try:
            await function()
        except SandboxError as error:
            caught.append(error)
            raise

    source = """
        class Own extends RangeError { name = 'Own' }
        const original = Object.assign(new Own('m'), { code: 'E' });
        let got;
        try { await call(() => { throw original }) } catch (e) { got = e }
        const same = got === original;
        export default [got instanceof RangeError, got.name, got.message, got.code, same]
    """
    result = run_code_sync(source, globals={"call": call}).raise_for_status().result
    assert result == [True, "Own", "m", "E", False]
    assert repr(caught[0]) == "SandboxError(name='Own', message='m', code='E')"


@pytest.mark.parametrize(
    "thrown", ["3", "'text'", "null", "undefined", "({ a: [1] })", "[1, 2n ** 70n]"]
)
def test_a_thrown_value_goes_through_the_host_as_it_is(thrown: str) -> None:
    async def call(function: SandboxFunction) -> Any:
        return await function()

    source = f"""
        let got;
        try {{ await call(() => {{ throw {thrown} }}) }} catch (e) {{ got = e }}
        export default [got, {thrown}]
    """
    result = run_code_sync(source, globals={"call": call}).raise_for_status().result
    assert result[0] == result[1]


# Results.


class Plain:
    pass


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (Plain(), "the answer of f: an instance of Plain cannot be cloned"),
        ({"a": [Plain()]}, "the answer of f.a[0]: an instance of Plain cannot be cloned"),
        ((x for x in [1]), "the answer of f: a generator cannot be cloned"),
    ],
)
@pytest.mark.parametrize("kind", ["sync", "async"])
def test_what_cannot_be_cloned_is_thrown_inside(value: Any, message: str, kind: str) -> None:
    async def later() -> Any:
        return value

    function: Any = later if kind == "async" else lambda: value
    source = """
        let s;
        try { await f() } catch (e) { s = [e.name, e.message, e instanceof TypeError] }
        export default s
    """
    result = run_code_sync(source, globals={"f": function}).result
    assert result == ["SerializationError", message, True]


def test_a_future_of_another_loop_is_refused() -> None:
    other = asyncio.new_event_loop()
    future = other.create_future()
    source = "let s; try { await f() } catch (e) { s = e.name } export default s"
    assert run_code_sync(source, globals={"f": lambda: future}).result == "ValueError"
    other.close()


@in_loop
async def test_one_that_never_returns_a_value_does_not_keep_the_run() -> None:
    handle = run_code(
        "await f()", globals={"f": lambda: asyncio.get_running_loop().create_future()}
    )
    await asyncio.sleep(0)
    handle.terminate("enough")
    result = await handle
    assert result.status == "terminated"


def test_one_that_blocks_does_not_keep_the_run() -> None:
    # The calling thread is in the host function; another one ends the run.
    begun, over = threading.Event(), threading.Event()
    with Runtime() as runtime:

        def block() -> None:
            begun.set()
            over.wait()

        def end() -> None:
            begun.wait()
            runtime.close()
            over.set()

        thread = threading.Thread(target=end)
        thread.start()
        result = runtime.run_code_sync("block()", globals={"block": block})
        thread.join()
    assert result.error is not None
    assert result.error.message == "runtime closed"


# Awaitables as values.


def test_awaitables_given_at_the_start() -> None:
    async def value() -> int:
        return 3

    source = "export default async (b) => [await a, await b, await b.then((x) => x)]"
    result = run_code_sync(source, globals={"a": value()}, execute={"args": [value()]})
    assert result.raise_for_status().result == [3, 3, 3]


@pytest.mark.parametrize("way", ["loop", "no loop"])
def test_awaitables_given_to_a_call_that_is_refused(way: str) -> None:
    ran: list[int] = []
    heard: list[Any] = []

    async def value() -> None:
        ran.append(1)

    async def main() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: heard.append(context))
        with pytest.raises(TypeError, match=r"globals\.b: an instance of Plain"):
            run_code("export default await a", globals={"a": value(), "b": Plain()})
        for _ in range(5):
            await asyncio.sleep(0)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        if way == "loop":
            run_in(asyncio.new_event_loop(), main())
        else:
            with pytest.raises(TypeError, match=r"globals\.b: an instance of Plain"):
                run_code_sync("export default await a", globals={"a": value(), "b": Plain()})
        gc.collect()
    assert heard == []
    assert ran == []


@in_loop
async def test_a_promise_that_crosses_again_can_be_awaited_again() -> None:
    got: list[Any] = []
    gate = asyncio.Event()

    async def value() -> int:
        await gate.wait()
        return 3

    async def take(promise: Awaitable[int]) -> int:
        got.append(promise)
        gate.set()
        if len(got) == 3:
            mine.set_result(7)
        return await promise + 1

    mine = asyncio.get_running_loop().create_future()
    source = "const p = value(); export default [await take(p), await take(p), await take(mine)]"
    handle = run_code(source, globals={"value": value, "take": take, "mine": mine})
    assert (await handle).result == [4, 4, 8]
    # A promise that has settled is a new promise when it crosses again.
    assert got[0] is not got[1]


# Functions of the sandbox.


@in_loop
async def test_functions_of_the_sandbox() -> None:
    source = "take(function double(x) { return x * 2 }); export default await done"
    loop = asyncio.get_running_loop()
    taken: asyncio.Future[SandboxFunction] = loop.create_future()
    done = loop.create_future()
    handle = run_code(source, globals={"take": taken.set_result, "done": done})
    double = await taken
    assert isinstance(double, SandboxFunction)
    assert (double.__name__, repr(double)) == ("double", "<function double of a sandbox>")
    assert await asyncio.gather(*(double(n) for n in range(50))) == [2 * n for n in range(50)]
    with pytest.raises(TypeError, match=r"arguments\[0\]\.a: an instance of Plain"):
        double({"a": Plain()})
    with pytest.raises(RuntimeError):
        await asyncio.to_thread(double, 1)
    pending = double(1)
    done.set_result(None)
    assert (await handle).status == "success"
    with pytest.raises(RuntimeError, match="the run has settled"):
        await double(1)
    await asyncio.wait([pending])


@in_loop
async def test_a_function_of_one_sandbox_in_another() -> None:
    async def lend(function: SandboxFunction) -> Any:
        other = await run_code("export default await f(20)", globals={"f": function})
        return other.raise_for_status().result

    source = "export default await lend((x) => x + 1)"
    result = await run_code(source, globals={"lend": lend})
    assert result.raise_for_status().result == 21


@in_loop
async def test_functions_that_are_let_go_of_in_any_thread() -> None:
    def drop(_: SandboxFunction) -> None:
        gc.collect(0)

    kept: list[Any] = []
    source = "for (let i = 0; i < 150; i++) { drop(() => i); keep(() => i) } export default 1"
    handle = run_code(source, globals={"drop": drop, "keep": kept.append})

    def release() -> None:
        while handle.running:
            if kept:
                kept.pop()

    thread = threading.Thread(target=release)
    thread.start()
    assert (await handle).result == 1
    thread.join()


# Runs within runs.


def test_run_code_sync_within_a_host_function_of_run_code_sync() -> None:
    def nested(level: int) -> Any:
        if level == 0:
            return 0
        source = "export default (n) => nested(n - 1) + 1"
        return (
            run_code_sync(source, globals={"nested": nested}, execute={"args": [level]})
            .raise_for_status()
            .result
        )

    assert nested(8) == 8


@in_loop
async def test_run_code_sync_is_refused_within_a_loop() -> None:
    with pytest.raises(RuntimeError, match="await run_code instead"):
        run_code_sync("export default 1")
    source = "let m; try { f() } catch (e) { m = [e.name, e.message] } export default m"
    result = await run_code(source, globals={"f": lambda: run_code_sync("export default 1")})
    assert result.result[0] == "RuntimeError"
    assert "await run_code instead" in result.result[1]


def test_run_code_is_refused_without_a_loop() -> None:
    with pytest.raises(RuntimeError, match="run_code_sync"):
        run_code("export default 1")


def test_run_code_within_a_host_function() -> None:
    async def inner(level: int) -> Any:
        if level == 0:
            return 0
        source = "export default async (n) => await inner(n - 1) + 1"
        return (await run_code(source, globals={"inner": inner}, execute={"args": [level]})).result

    assert run_in(asyncio.new_event_loop(), inner(8)) == 8
    source = "export default await inner(3)"
    assert run_code_sync(source, globals={"inner": inner}).result == 3


def test_a_loop_that_is_run_again_inside_a_host_function() -> None:
    # As in notebooks, whose loop is patched for this.
    pytest.importorskip("nest_asyncio")
    program = """
        import asyncio, isolane, nest_asyncio
        from isolane import run_code

        nest_asyncio.apply()

        async def twice(value):
            await asyncio.sleep(0)
            return 2 * value

        async def inner(value):
            source = "export default async (n) => await twice(n)"
            handle = run_code(source, globals={"twice": twice}, execute={"args": [value]})
            return (await handle).result

        def host(value):
            return asyncio.get_event_loop().run_until_complete(inner(value))

        async def main():
            source = "export default [1, 2, 3].map((n) => host(n))"
            handles = [run_code(source, globals={"host": host}) for _ in range(5)]
            return [result.result for result in await asyncio.gather(*handles)]

        for _ in range(20):
            assert asyncio.run(main()) == [[2, 4, 6]] * 5
        print("done")
    """
    assert run_program(program) == ["done"]


def test_host_functions_that_stop_or_close_their_loop() -> None:
    loop = asyncio.new_event_loop()
    handles: list[CodeExecution] = []

    async def start() -> None:
        def stop() -> str:
            loop.stop()
            with pytest.raises(RuntimeError):
                loop.close()
            return "stopped"

        handles.append(run_code("export default stop()", globals={"stop": stop}))
        await asyncio.get_running_loop().create_future()

    task = loop.create_task(start())
    loop.run_forever()

    async def wait() -> Any:
        return (await handles[0]).result

    assert loop.run_until_complete(asyncio.wait_for(wait(), CEILING_S)) == "stopped"
    task.cancel()
    loop.run_until_complete(asyncio.wait([task]))
    loop.close()


def test_a_runtime_closed_by_its_own_host_function() -> None:
    runtime = Runtime()
    result = runtime.run_code_sync("close(); for (;;);", globals={"close": runtime.close})
    assert result.error is not None
    assert result.error.message == "runtime closed"
    with pytest.raises(RuntimeError, match="the runtime is closed"):
        runtime.run_code_sync("export default 1")
    runtime.close()


def test_finalizers_that_start_runs() -> None:
    program = """
        import isolane, gc
        class Late:
            def __init__(self):
                self.me = self
            def __del__(self):
                try:
                    done.append(run("export default f()", lambda: 1))
                except RuntimeError as refusal:
                    # The collector came by in a task of the loop.
                    assert "await run_code instead" in str(refusal)
                    done.append(1)
        done = []
        def run(source, f):
            return isolane.run_code_sync(source, globals={"f": f}).result
        def make():
            Late()
            return [Late() for _ in range(3)] and 1
        gc.set_threshold(5)
        for _ in range(50):
            assert run("export default [1, 2, 3].map(f)", lambda *_: make()) == [1, 1, 1]
        gc.collect()
        print(len(done), set(done))
    """
    assert run_program(program) == ["600 {1}"]
