"""Effects of a hostile or odd value of the host on a crossing, at every way in.

In: values that lie, raise, change while they are read, or start and end runs meanwhile. Out: their
values by type, or an exception that names the place; never a crash, no leak, and a runtime that
works as before.
"""

from __future__ import annotations

import array
import asyncio
import collections
import contextlib
import ctypes
import datetime as dt
import enum
import gc
import mmap
import sys
import threading
import weakref
from collections.abc import AsyncGenerator, Callable
from typing import Any

import pytest
from isolane import Runtime, SandboxError

from hostile import PLACES, Make, hooked, lying, nested, raises, read_in

# Classes that lie about themselves.


LIARS: list[tuple[Make, str]] = [
    (lambda: lying(dict, {"a": 1}, claims=list), 'Object {"a":1}'),
    (lambda: lying(dict, {1: 2}, claims=str), "Map [[1,2]]"),
    (lambda: lying(collections.OrderedDict, {"b": 1, "a": 2}), 'Object {"b":1,"a":2}'),
    (lambda: lying(collections.defaultdict, list, {"a": 1}), 'Object {"a":1}'),
    (lambda: lying(list, [1, 2], claims=dict), "Array [1,2]"),
    (lambda: lying(tuple, (1, 2), claims=set), "Array [1,2]"),
    (lambda: lying(set, {1}, claims=Exception), "Set [1]"),
    (lambda: lying(frozenset, {1}, claims=dt.datetime), "Set [1]"),
    (lambda: lying(str, "text", claims=type(None)), 'String "text"'),
    (lambda: lying(int, 7, claims=bool), "Number 7"),
    (lambda: lying(int, -(2**70), claims=float), f'BigInt "{-(2**70)}"'),
    (lambda: lying(float, 0.5, claims=int), "Number 0.5"),
    (lambda: lying(bytes, b"\1\2", claims=str), 'Uint8Array "1,2"'),
    (lambda: lying(bytearray, b"\1\2", claims=memoryview), 'Uint8Array "1,2"'),
    (lambda: lying(dt.datetime, 1970, 1, 1, 0, 0, 1, 0, dt.timezone.utc), "Date 1000"),
    (lambda: lying(Exception, "m"), 'Error "Liar: "'),
    (lambda: lying(SandboxError, "RangeError", "m"), "RuntimeError: code of the value ran"),
]


@pytest.mark.parametrize("way", PLACES)
@pytest.mark.parametrize("liar", range(len(LIARS)))
def test_what_lies_crosses_as_what_it_is(runtime: Runtime, way: str, liar: int) -> None:
    make, seen = LIARS[liar]
    if seen.startswith("RuntimeError") and way in ("globals", "imports", "args"):
        with pytest.raises(RuntimeError, match="code of the value ran"):
            read_in(runtime, way, make)
    else:
        assert read_in(runtime, way, make) == seen


class Plain(enum.Enum):
    A = object()


class Claims:
    """Claims to be of a class that crosses."""

    def __init__(self, claimed: type) -> None:
        object.__setattr__(self, "claimed", claimed)

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return object.__getattribute__(self, "claimed")

    __getattr__ = raises


class RaisesClass:
    __class__ = property(raises)


async def stepwise() -> AsyncGenerator[int, None]:
    yield 1


STRANGERS: list[tuple[Make, str]] = [
    (lambda: Claims(dict), "{}: an instance of Claims cannot be cloned"),
    (lambda: Claims(str), "{}: an instance of Claims cannot be cloned"),
    (lambda: Claims(Exception), "{}: an instance of Claims cannot be cloned"),
    (RaisesClass, "{}: an instance of RaisesClass cannot be cloned"),
    (lambda: Plain.A, "{}: an instance of object cannot be cloned"),
    (stepwise, "{}: an instance of async_generator cannot be cloned"),
    (ctypes.c_int * 2, "{}: an instance of c_int_Array_2 cannot be cloned"),
    (lambda: array.array("i"), "{}: an instance of array cannot be cloned"),
    (lambda: weakref.ref(Plain), "Function "),
    (lambda: [lying(dict, {"a": object()})], "{}[0].a: an instance of object cannot be cloned"),
    (lambda: [(lying(set, {object()}),)], "{}[0][0].values()[0]: an instance of object cannot be"),
]


@pytest.mark.parametrize("way", PLACES)
@pytest.mark.parametrize("stranger", range(len(STRANGERS)))
def test_what_cannot_cross_is_told_by_its_place(runtime: Runtime, way: str, stranger: int) -> None:
    make, seen = STRANGERS[stranger]
    told = read_in(runtime, way, make)
    expected = f"SerializationError: {seen.format(PLACES[way])}" if "{}" in seen else seen
    assert told.startswith(expected)


# Code of the value that runs while the value is read.


KINDS = ("zone", "text", "code", "name", "key")


@pytest.mark.parametrize("way", PLACES)
@pytest.mark.parametrize("kind", KINDS)
def test_what_changes_while_it_is_read(runtime: Runtime, way: str, kind: str) -> None:
    def make() -> Any:
        rows: list[Any] = []
        table: dict[Any, Any] = {"rows": rows}
        members: set[Any] = {1}
        blob = bytearray(100)

        def act() -> None:
            for container in (rows, table, members, blob):
                container.clear()
            gc.collect()
            rows.extend([object()] * 1000)
            # In a task of the loop, this is refused.
            with contextlib.suppress(RuntimeError):
                runtime.run_code_sync("export default 1", globals={"v": [rows[:0]]})

        rows += [hooked(kind, act), ["after"]]
        table |= {"members": members, "blob": blob}
        return [table]

    told = read_in(runtime, way, make)
    assert told.startswith('Array [{"rows":['), told
    assert '["after"]]' in told


@pytest.mark.parametrize("way", ["answer", "promise", "callback"])
@pytest.mark.parametrize("kind", KINDS)
def test_what_ends_its_own_run_while_it_is_read(runtime: Runtime, way: str, kind: str) -> None:
    async def main() -> Any:
        def value() -> Any:
            return hooked(kind, lambda: handle.terminate("by the value"))

        async def later() -> Any:
            return value()

        async def call(function: Callable[[Any], Any]) -> Any:
            return await function(value())

        calls = {"answer": "f()", "promise": "await later()", "callback": "await call(() => 1)"}
        functions = {"f": value, "later": later, "call": call}
        handle = runtime.run_code(f"{calls[way]}; for (;;);", globals=functions)
        return await handle

    result = asyncio.run(main())
    assert (result.status, result.error and result.error.message) == ("terminated", "by the value")


@pytest.mark.parametrize("way", PLACES)
@pytest.mark.parametrize(
    "raised", [KeyboardInterrupt, SystemExit, GeneratorExit, asyncio.CancelledError]
)
def test_what_ends_the_program_while_it_is_read(
    runtime: Runtime, way: str, raised: type[BaseException]
) -> None:
    def act() -> None:
        raise raised("now")

    if way in ("answer", "promise", "callback") and raised not in (KeyboardInterrupt, SystemExit):
        # The loop receives the exception; the sandbox gets an error.
        assert read_in(runtime, way, lambda: hooked("zone", act)) == f"{raised.__name__}: now"
        return
    with pytest.raises(raised, match="now"):
        read_in(runtime, way, lambda: hooked("zone", act))


# Large and deep values.


WRAPS: dict[str, Callable[[Any], Any]] = {
    "lists": lambda value: [value],
    "tuples": lambda value: (value,),
    "dicts": lambda value: {"k": value},
    "dicts that are Maps": lambda value: {1: value},
    "frozensets": lambda value: frozenset([value]),
}

DEPTH = """
    const see = (v) => {
        let levels = 0;
        for (; v !== 0; levels += 1)
            v = v instanceof Map ? v.get(1) : v instanceof Set ? [...v][0] : (v.k ?? v[0]);
        return String(levels);
    };
"""


@pytest.mark.parametrize("way", PLACES)
@pytest.mark.parametrize("wrap", WRAPS)
def test_what_nests_deep(runtime: Runtime, way: str, wrap: str) -> None:
    assert read_in(runtime, way, lambda: nested(30_000, WRAPS[wrap]), DEPTH) == "30000"


@pytest.mark.parametrize("wrap", WRAPS)
def test_more_levels_than_the_limit_holds(runtime: Runtime, wrap: str) -> None:
    value = nested(300_000, WRAPS[wrap])
    result = runtime.run_code_sync("1", globals={"v": value}, memory_limit_bytes=8 << 20)
    assert result.status == "memory"


# Buffers.


def closed_map() -> Any:
    mapped = mmap.mmap(-1, 8)
    mapped.write(b"mapped!!")
    return memoryview(mapped)


BUFFERS: list[tuple[Make, bytes]] = [
    (closed_map, b"mapped!!"),
    (lambda: memoryview((ctypes.c_uint16 * 3)(1, 2, 3)), b"\1\0\2\0\3\0"),
    (lambda: memoryview(((ctypes.c_uint8 * 2) * 2).from_buffer_copy(b"\1\2\3\4")), b"\1\2\3\4"),
    (lambda: memoryview(ctypes.c_uint32(7)), b"\7\0\0\0"),
    (lambda: memoryview(array.array("d", [0.0, 1.0]))[1:], b"\0\0\0\0\0\0\xf0\x3f"),
    (lambda: memoryview(array.array("H", [1, 2, 3]))[::-2], b"\3\0\1\0"),
    (lambda: memoryview(bytearray(b"abc")).toreadonly(), b"abc"),
]


@pytest.mark.parametrize("way", PLACES)
@pytest.mark.parametrize("buffer", range(len(BUFFERS)))
def test_what_exports_a_buffer(runtime: Runtime, way: str, buffer: int) -> None:
    make, seen = BUFFERS[buffer]
    assert read_in(runtime, way, make) == f'Uint8Array "{",".join(map(str, seen))}"'


def test_a_buffer_that_changes_while_others_are_read(runtime: Runtime) -> None:
    blob = bytearray(b"abcd")
    view = memoryview(blob)

    def act() -> None:
        view.release()
        blob.extend(bytes(1 << 20))
        del blob[2:]

    value = [hooked("zone", act), blob]
    assert read_in(runtime, "globals", lambda: value) == (
        'Array ["1970-01-01T00:00:00.000Z",{"0":97,"1":98}]'
    )
    blob += b"cd"
    view = memoryview(blob)
    value = [hooked("zone", act), view]
    told = "SerializationError: globals.v[1]: a released memoryview cannot be cloned"
    assert read_in(runtime, "globals", lambda: value) == told


# Other threads, and memory that is kept.


def test_containers_that_another_thread_changes(runtime: Runtime) -> None:
    table: dict[str, Any] = {"rows": [], "blob": bytearray(10)}
    over = threading.Event()

    def change() -> None:
        step = 0
        while not over.is_set():
            step += 1
            table[f"k{step % 50}"] = [step]
            table.pop(f"k{(step + 25) % 50}", None)
            table["rows"][:] = [{"a": step}] * (step % 40)
            del table["blob"][step % 5 :]
            table["blob"].extend(bytes(step % 7))

    thread = threading.Thread(target=change)
    thread.start()
    try:
        for _ in range(300):
            source = "export default v.rows.every((row) => row.a > 0)"
            assert runtime.run_code_sync(source, globals={"v": table}).result is True
    finally:
        over.set()
        thread.join()


class Kept:
    """An object that can be observed."""

    def __init__(self) -> None:
        self.me = self

    def __call__(self, *_: Any) -> Any:
        return [self.__call__]


@pytest.mark.parametrize("way", PLACES)
@pytest.mark.parametrize("refused", [False, True])
def test_nothing_is_kept_of_what_was_read(runtime: Runtime, way: str, refused: bool) -> None:
    watched: list[weakref.ref[Any]] = []
    text, counted = "".join(["a text", " of its own"]), []

    def make() -> Any:
        kept = Kept()
        watched.append(weakref.ref(kept))
        value: list[Any] = [kept, {"k": kept}, {1: text}, hooked("zone", gc.collect), text]
        return [*value, object()] if refused else value

    for _ in range(5):
        read_in(runtime, way, make)
        gc.collect()
        counted.append(sys.getrefcount(text))
    assert [ref() for ref in watched] == [None] * 5
    assert counted == counted[:1] * 5
