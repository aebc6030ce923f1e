"""Hostile awaitables and exceptions of a host, and hostile exceptions of a sandbox.

In: objects that claim to be futures, raise when they are asked, or have no end. Out: a promise that
settles, an error in the sandbox, a text of bounded length; never a run that waits for ever.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncGenerator, Callable
from typing import Any, NoReturn

import pytest
from isolane import Runtime, SandboxError

from ceilings import CEILING_S
from hostile import SEE, TRIED, Make, lying, nested, raises, read_in

# Awaitables.


async def stepwise() -> AsyncGenerator[int, None]:
    yield 1


def exhausted() -> Any:
    coroutine = asyncio.sleep(0)
    coroutine.close()
    return coroutine


class Blank:
    """Claims to be a future."""

    _asyncio_future_blocking = False

    def __init__(self, ends: str) -> None:
        self.ends = ends

    def get_loop(self) -> asyncio.AbstractEventLoop:
        return asyncio.get_running_loop()

    def __await__(self) -> Any:
        return iter(())

    def add_done_callback(self, done: Callable[[Any], None]) -> None:
        done(self)
        done(self)
        if self.ends == "in another thread, too":
            thread = threading.Thread(target=done, args=[self])
            thread.start()
            thread.join()

    def cancelled(self) -> bool:
        return False

    def exception(self) -> None: ...

    def result(self) -> str:
        return self.ends


def future(method: str) -> Any:
    """A future that has a result, and one of whose methods raises."""
    made: Any = type("Own", (asyncio.Future,), {method: raises})(loop=asyncio.get_running_loop())
    asyncio.Future.set_result(made, 1)
    return made


def awaitable(method: Callable[[Any], Any]) -> Any:
    return type("Odd", (), {"__await__": method})()


AWAITABLES: list[tuple[Make, str]] = [
    (lambda: Blank("twice"), 'String "twice"'),
    (lambda: Blank("in another thread, too"), 'String "in another thread, too"'),
    (lambda: future("cancelled"), "RuntimeError: code of the value ran"),
    (lambda: future("exception"), "RuntimeError: code of the value ran"),
    (lambda: future("result"), "RuntimeError: code of the value ran"),
    (lambda: future("add_done_callback"), "RuntimeError: code of the value ran"),
    (lambda: awaitable(raises), "RuntimeError: code of the value ran"),
    (lambda: awaitable(lambda _: None), "TypeError: "),
    (lambda: awaitable(lambda self: self), "TypeError: "),
    (lambda: awaitable(lambda _: iter([7])), "RuntimeError: Task got bad yield: 7"),
    (lambda: awaitable(lambda _: iter([None] * 3)), "Null null"),
    (exhausted, "RuntimeError: cannot reuse already awaited coroutine"),
    (lambda: stepwise().__anext__(), "Number 1"),
]


@pytest.mark.parametrize("odd", range(len(AWAITABLES)))
@pytest.mark.parametrize("way", ["answer", "promise", "deep"])
def test_odd_awaitables_settle_their_promises(runtime: Runtime, way: str, odd: int) -> None:
    make, seen = AWAITABLES[odd]

    async def main() -> Any:
        async def later() -> Any:
            return {"deep": make()}

        source = {
            "answer": "tried(f)",
            "promise": "tried(async () => await (await later()).deep)",
            "deep": "tried(async () => await g().a[0])",
        }[way]
        functions = {"f": make, "later": later, "g": lambda: {"a": [make()]}}
        source = f"{SEE}{TRIED}export default await {source};"
        handle = runtime.run_code(source, globals=functions)
        return (await asyncio.wait_for(handle, CEILING_S)).raise_for_status().result

    assert asyncio.run(main()).startswith(seen)


# Exceptions of the sandbox in functions that the host calls.

THROWN = {
    "a number that Python does not write": ("10n ** 5000n", "<int of 16610 bits>"),
    "what nests deep": ("deep((d) => [d], 1e5)", "[[[[...]]]]"),
    "objects that nest deep": ("deep((d) => ({ d }), 1e5)", "{'d': {'d': {'d': {...}}}}"),
    "what has 2 ** 60 paths": ("deep((d) => [d, d], 60)", "[[["),
    "a long list": ("new Array(1e6).fill(1)", "[1, 1, 1, 1, 1, 1, 1, 1, 1, 1, ...]"),
    "many bytes": ("new Uint8Array(1 << 24)", r"b'\x00\x00"),
    "many keys": ("Object.fromEntries('abcdefghijk'.split('').entries())", "{'0': 'a',"),
}


@pytest.mark.parametrize("thrown", THROWN)
@pytest.mark.parametrize("way", ["callback", "promise"])
def test_what_is_thrown_at_the_host_has_a_text_of_some_length(
    runtime: Runtime, way: str, thrown: str
) -> None:
    expression, text = THROWN[thrown]
    caught: list[SandboxError] = []

    async def main() -> Any:
        async def called(given: Any) -> None:
            try:
                await (given() if way == "callback" else given)
            except SandboxError as error:
                caught.append(error)

        given = {"callback": "() => { throw made(); }", "promise": "Promise.reject(made())"}[way]
        source = f"""
            const deep = (f, n) => {{ let d = 0; while (n-- > 0) d = f(d); return d; }};
            const made = () => {expression};
            await called({given});
        """
        handle = runtime.run_code(source + "export default 1;", globals={"called": called})
        return await asyncio.wait_for(handle, CEILING_S)

    assert asyncio.run(main()).result == 1
    assert caught[0].message.startswith(text)
    assert len(caught[0].message) < 200_000


# Exceptions.


def chained(length: int) -> Exception:
    first = last = ValueError("first")
    for _ in range(length):
        last.__cause__ = ValueError("cause")
        last = last.__cause__
    last.__cause__ = first
    return first


def tampered(**fields: Any) -> Exception:
    error = ValueError("m")
    for name, value in fields.items():
        setattr(error, name, value)
    return error


EXCEPTIONS: list[tuple[Callable[[], BaseException], str]] = [
    (lambda: chained(100_000), "ValueError: first"),
    (lambda: tampered(args=(nested(10_000, lambda d: [d]),)), "ValueError: "),
    (lambda: tampered(args=()), "ValueError: "),
    (lambda: tampered(args=("\ud800",)), "ValueError: \ud800"),
    (lambda: tampered(code=lying(str, "E"), name=object(), message=raises), "ValueError: m"),
    (lambda: tampered(__notes__=object()), "ValueError: m"),
    (lambda: KeyError(object), "KeyError: <class 'object'>"),
    (lambda: OSError(2, "no", object()), "FileNotFoundError: "),
    (lambda: UnicodeEncodeError("x" * 10_000, "y", 0, 1, "z"), "UnicodeEncodeError: "),
    (lambda: lying(BaseException, "m"), "Liar: "),
]


@pytest.mark.parametrize("way", ["globals", "answer", "raised", "raised later"])
@pytest.mark.parametrize("exception", range(len(EXCEPTIONS)))
def test_hostile_exceptions(runtime: Runtime, way: str, exception: int) -> None:
    make, seen = EXCEPTIONS[exception]

    def fail() -> NoReturn:
        raise make()

    async def fail_later() -> NoReturn:
        raise make()

    if way in ("globals", "answer"):
        assert json.loads(read_in(runtime, way, make).removeprefix("Error ")).startswith(seen)
        return
    source = f"{TRIED}const see = String; export default await tried(f);"
    function = fail if way == "raised" else fail_later
    assert runtime.run_code_sync(source, globals={"f": function}).result.startswith(seen)
