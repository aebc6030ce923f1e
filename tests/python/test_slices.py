"""Messages that take long to read: the loop keeps running, and the value arrives unchanged."""

from __future__ import annotations

import asyncio
import itertools
import sys
from collections.abc import Callable
from typing import Any

import isolane
import pytest

from ceilings import CEILING_S, in_loop

# The least turns of a loop while one of these values is read. On the slowest machine they are more:
# a slice ends by the clock. `tests/campaign` measures how long the longest turn takes.
LEAST_TURNS = 1
LIMIT_BYTES = 2 << 30

VALUES = {
    "text": "'\u20ac'.repeat(30e6)",
    "bytes": "new Uint8Array(200e6)",
    "floats": "new Float64Array(20e6)",
    "lists": "Array.from({ length: 4e5 }, (_, i) => [i])",
    "objects": "Array.from({ length: 2e5 }, (_, i) => ({ a: i, ['k' + i]: 'text' }))",
    "members": "new Set(Array.from({ length: 5e5 }, (_, i) => i))",
    "error": "new Error('x'.repeat(50e6))",
}
WAYS = {
    "result": "export default value",
    "report": "report(value); export default 1",
    "log": "console.log(value); export default 1",
    "argument": "take(value); export default 1",
    "coroutine": "await later(value); export default 1",
    "promise": "await wait(Promise.resolve(value)); export default 1",
    "rejection": "await wait(Promise.reject(value)); export default 1",
    "answer": "await call(() => value); export default 1",
}


async def turns_of_reading(run: isolane.CodeExecution) -> int:
    """How often the loop has a turn while a message of the run has been read in part."""
    turns = 0
    while run.running:
        turns += len(run._run.held_up) > 0
        await asyncio.sleep(0)
    return turns


async def _wait(promise: Any) -> None:
    await asyncio.wait([promise])


async def _call(function: Callable[[], Any]) -> None:
    await function()


async def _later(_: Any) -> None:
    await asyncio.sleep(0)


def _start(source: str) -> isolane.CodeExecution:
    return isolane.run_code(
        source,
        globals={"take": lambda _: None, "later": _later, "wait": _wait, "call": _call},
        report=lambda _: None,
        memory_limit_bytes=LIMIT_BYTES,
        language="javascript",
    )


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("value", ["text", "lists"])
def test_no_way_out_stops_the_loop(way: str, value: str) -> None:
    _check(VALUES[value], WAYS[way])


@pytest.mark.parametrize("value", VALUES)
def test_no_value_stops_the_loop(value: str) -> None:
    _check(VALUES[value], WAYS["result"])


def _check(value: str, give: str) -> None:
    @in_loop
    async def check() -> None:
        run = _start(f"const value = {value}; {give}")
        assert await turns_of_reading(run) >= LEAST_TURNS
        assert (await run).status == "success", (await run).error

    check()


@in_loop
async def test_very_much_that_is_left_unsettled_does_not_stop_the_loop() -> None:
    kept: list[Any] = []
    source = """
        for (let i = 0; i < 200; i++) {
            keep(Array.from({ length: 500 }, () => new Promise(() => {})));
        }
    """
    run = isolane.run_code(
        source + "export default 1", globals={"keep": kept.append}, memory_limit_bytes=LIMIT_BYTES
    )
    await run
    futures = [future for some in kept for future in some]
    # Each turn of the loop rejects a part of them.
    rejected = [0]
    while rejected[-1] < len(futures):
        rejected.append(sum(future.done() for future in futures))
        await asyncio.sleep(0)
    assert max(after - before for before, after in itertools.pairwise(rejected)) <= 2_000
    assert {str(future.exception()) for future in futures} == {
        "the run has settled; nothing in its sandbox can be called any more"
    }


@in_loop
async def test_very_many_functions_and_promises_do_not_stop_the_loop() -> None:
    source = """
        take(Array.from({ length: 50000 }, (_, i) => () => i));
        take(Array.from({ length: 50000 }, (_, i) => Promise.resolve(i)));
        export default 1;
    """
    run = _start(source)
    assert await turns_of_reading(run) >= LEAST_TURNS
    assert (await run).status == "success"


def test_without_a_loop_all_is_read() -> None:
    source = f"export default {VALUES['objects']}"
    result = isolane.run_code_sync(source, memory_limit_bytes=LIMIT_BYTES).result
    assert [result[0], len(result)] == [{"a": 0, "k0": "text"}, 200_000]
    assert result[-1] == {"a": 199_999, "k199999": "text"}


# Values longer than this are read in pieces.

LONG = 6 << 20


def joined(text: str) -> str:
    """The text as UTF-16 has it."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


FIRST = ["a", "\U0001f600", "\udc00"]
BODY = ["a", "\u00e9", "\u20ac", "\ud83d"]
LAST = ["a", "\u00ff", "\U00010000", "\ude00"]

# Each body with each first; each last comes with three of the bodies.
LONG_TEXTS = [
    (first, body, LAST[(at + number) % len(LAST)])
    for at, first in enumerate(FIRST)
    for number, body in enumerate(BODY)
]


@pytest.mark.parametrize(("first", "body", "last"), LONG_TEXTS)
def test_a_long_text_is_what_it_was(first: str, body: str, last: str) -> None:
    text = first + body * (LONG + 7) + last
    result = isolane.run_code_sync("export default x", globals={"x": text}).result
    # Two halves are one character: at the ends, as a long body has none.
    expected = joined(first + body * 2) + body * (LONG + 3) + joined(body * 2 + last)
    assert result == expected
    assert hash(result) == hash(expected)
    assert result.isascii() == expected.isascii()
    assert {result: 1}[expected] == 1


def test_many_lone_surrogates_are_what_they_were() -> None:
    source = """
        const pair = '\\u{1f600}', text = 'a\\udc00' + pair + '\\ud800'.repeat(7000);
        export default Array.from({ length: 100 }, (_, at) => text + at);
    """
    result = isolane.run_code_sync(source).raise_for_status().result
    text = "a\udc00\U0001f600" + "\ud800" * 7000
    assert result == [f"{text}{at}" for at in range(100)]


def test_long_texts_stand_in_all_places() -> None:
    source = f"""
        const long = (letter) => letter.repeat({LONG + 1});
        const error = Object.assign(new RangeError(long('m')), {{ code: long('c') }});
        error.name = long('n');
        const same = {{}};
        export default [
            long('a'), same, error, {{ k: long('v') }}, new Map([[1, long('x')]]),
            new Set([long('s')]), same, new Uint8Array({LONG + 1}).fill(1), same, [, long('h')],
        ];
    """
    result = isolane.run_code_sync(source, memory_limit_bytes=LIMIT_BYTES).result
    long = LONG + 1
    assert result[0] == "a" * long
    assert result[1] is result[6] is result[8]
    error = result[2]
    assert (error.name, error.message, error.code) == ("n" * long, "m" * long, "c" * long)
    assert result[3] == {"k": "v" * long}
    assert result[4] == {1: "x" * long}
    assert result[5] == {"s" * long}
    assert result[7] == b"\1" * long
    assert result[9] == [None, "h" * long]


def test_long_buffers_are_what_they_were() -> None:
    source = f"""
        const bytes = Uint8Array.from({{ length: {LONG + 8} }}, (_, i) => i % 251);
        const b = bytes.buffer;
        export default [b, new Uint16Array(b), new Uint8Array(b, 1), new Int8Array(b, 8, 16)];
    """
    whole, shorts, part, few = isolane.run_code_sync(source, memory_limit_bytes=LIMIT_BYTES).result
    assert whole == bytes(i % 251 for i in range(LONG + 8))
    assert (shorts.format, shorts.tobytes()) == ("H", whole)
    assert part == whole[1:]
    assert few.tolist() == list(range(8, 24))


# Events during the reading.


@in_loop
async def test_events_of_a_run_keep_their_order() -> None:
    seen: list[Any] = []

    async def later(value: Any) -> None:
        seen.append(value if isinstance(value, int) else "large")

    source = """
        const large = 'x'.repeat(100e6);
        const all = [later(1), later(large), later(2), later(large), later(3)];
        await Promise.all(all);
        export default large;
    """
    globals = {"later": later}
    large = isolane.run_code(source, globals=globals, memory_limit_bytes=LIMIT_BYTES)
    small = [isolane.run_code("export default 1") for _ in range(20)]
    assert [(await run).result for run in small] == [1] * 20
    assert len((await large).raise_for_status().result) == 100_000_000
    assert seen == [1, "large", 2, "large", 3]


async def _until_it_is_read(run: isolane.CodeExecution) -> None:
    while not run._run.held_up:  # noqa: ASYNC110 (nothing tells of it)
        await asyncio.sleep(0)


@in_loop
async def test_a_call_whose_run_was_ended_while_it_was_read_is_not_made() -> None:
    calls: list[Any] = []
    for give in ("take(value)", "await later(value)"):
        source = f"const value = {VALUES['lists']}; {give}; export default 1"
        globals = {"take": calls.append, "later": calls.append}
        run = isolane.run_code(source, globals=globals, memory_limit_bytes=LIMIT_BYTES)
        await _until_it_is_read(run)
        run.terminate("enough")
        result = await run
        assert result.error is not None
        assert (result.status, result.error.message) == ("terminated", "enough")
    assert calls == []


@in_loop
async def test_a_report_is_shown_once_it_has_been_read() -> None:
    run = _start(f"report(1); report({VALUES['lists']}); report(2); export default 1")
    shown = set()
    while run.running:
        shown.add(len(run.reports))
        await asyncio.sleep(0)
    assert shown <= {0, 1, 2, 3}
    assert [len(run.reports), run.reports[0], len(run.reports[1]), run.reports[2]] == [
        3,
        1,
        400_000,
        2,
    ]
    assert (await run).reports == run.reports


@in_loop
async def test_a_promise_that_settled_before_the_end_has_its_value() -> None:
    kept: list[Any] = []
    source = f"const value = {VALUES['lists']}; keep(Promise.resolve(value)); export default 1"
    run = isolane.run_code(source, globals={"keep": kept.append}, memory_limit_bytes=LIMIT_BYTES)
    await run
    assert len(await kept[0]) == 400_000


def test_a_run_whose_message_is_being_read_can_be_awaited_in_another_loop() -> None:
    source = f"take({VALUES['lists']}); export default 1"
    first = asyncio.new_event_loop()

    async def begin() -> isolane.CodeExecution:
        run = _start(source)
        await _until_it_is_read(run)
        return run

    run = first.run_until_complete(begin())

    async def end() -> isolane.CodeExecutionResult:
        return await run

    second = asyncio.new_event_loop()
    assert second.run_until_complete(asyncio.wait_for(end(), CEILING_S)).status in (
        "success",
        "terminated",
    )
    second.close()
    first.close()


@in_loop
async def test_what_nobody_will_read_on_in_is_freed_in_slices() -> None:
    run = isolane.run_code(
        "take(Array.from({ length: 3e6 }, (_, i) => [i])); export default 1",
        globals={"take": lambda _: None},
        memory_limit_bytes=LIMIT_BYTES,
    )
    await _until_it_is_read(run)
    bridge = run._run.bridge()
    assert bridge is not None
    # Until much of the value has been read.
    empty = sys.getallocatedblocks()
    while sys.getallocatedblocks() < empty + 4_000_000:  # noqa: ASYNC110 (nothing tells of it)
        await asyncio.sleep(0)
    run.terminate()
    await run
    held = [sys.getallocatedblocks()]
    while bridge._discarded:
        await asyncio.sleep(0)
        held.append(sys.getallocatedblocks())
    # No turn frees most of it.
    turns = [before - after for before, after in itertools.pairwise(held)]
    assert max(turns) < sum(turns) / 2 + 1, turns
