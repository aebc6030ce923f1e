"""Values that Python gets from a sandbox, where the outcome is Python's own.

In: expressions of JavaScript. Out: values of Python; or the SerializationError that the sandbox
gets, for values that Python cannot hold or that would cost it far more than the sandbox.
"""

from __future__ import annotations

import datetime as dt
import itertools
import random
import tracemalloc
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import isolane
import pytest

from expressions import assert_exactly, evaluate, refusal_of, value_of

UTC = dt.timezone.utc
SAFE = 2**53 - 1


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("null", None),
        ("undefined", None),
        ("[undefined, null]", [None, None]),
        ("{ a: undefined }", {"a": None}),
        ("true", True),
        ("1", 1),
        ("1.5", 1.5),
        ("0", 0),
        ("-0", -0.0),
        ("2 ** 31", 2**31),
        ("Number.MAX_SAFE_INTEGER", SAFE),
        ("Number.MAX_SAFE_INTEGER + 1", float(SAFE + 1)),
        ("1e300", 1e300),
        ("NaN", float("nan")),
        ("Infinity", float("inf")),
        ("5n", 5),
        ("0n", 0),
        ("-(2n ** 64n)", -(2**64)),
        ("'\\uD800a'", "\ud800a"),
        ("'😀'", "😀"),
        ("[1, [2]]", [1, [2]]),
        ("[, 'x', ,]", [None, "x", None]),
        ("{ b: 1, 10: 2, a: 3, 2: 4 }", {"2": 4, "10": 2, "b": 1, "a": 3}),
        ("new Map()", {}),
        ("new Map([['a', 1], [2, 'b'], [null, 3]])", {"a": 1, 2: "b", None: 3}),
        ("new Map([[0.5, 1], [1n, 2], [true, 3]].slice(0, 2))", {0.5: 1, 1: 2}),
        ("new Map([['1', 'text'], [1, 'number']])", {"1": "text", 1: "number"}),
        ("new Map([[new Date(0), 1]])", {dt.datetime(1970, 1, 1, tzinfo=UTC): 1}),
        ("new Map([[new Uint8Array([1]), 1]])", {b"\1": 1}),
        ("new Set(['a'])", {"a"}),
        ("new Set()", set()),
        ("new Date(0)", dt.datetime(1970, 1, 1, tzinfo=UTC)),
        ("new Date(-1)", dt.datetime(1969, 12, 31, 23, 59, 59, 999000, UTC)),
        ("new Date(-62135596800000)", dt.datetime(1, 1, 1, tzinfo=UTC)),
        ("new Date(253402300799999)", dt.datetime(9999, 12, 31, 23, 59, 59, 999000, UTC)),
        ("new Uint8Array([1, 2])", b"\1\2"),
        ("new Uint8Array([1, 2, 3]).subarray(1, 2)", b"\2"),
        ("new Uint8ClampedArray([300, -5])", b"\xff\0"),
        ("new DataView(new Uint8Array([9, 8, 7]).buffer, 1)", b"\x08\x07"),
        ("new Uint8Array([7, 8]).buffer", b"\7\10"),
        ("new ArrayBuffer(0)", b""),
    ],
)
def test_a_value_comes_out(expression: str, value: object) -> None:
    assert_exactly(value_of(expression), value)


@pytest.mark.parametrize(
    ("expression", "form", "elements"),
    [
        ("new Int8Array([1, -1])", "b", [1, -1]),
        ("new Int16Array([1, -1])", "h", [1, -1]),
        ("new Uint16Array([1, 65535])", "H", [1, 65535]),
        ("new Int32Array([1, -1])", "i", [1, -1]),
        ("new Uint32Array([1, 2 ** 32 - 1])", "I", [1, 2**32 - 1]),
        ("new Float32Array([0.5])", "f", [0.5]),
        ("new Float64Array([0.1])", "d", [0.1]),
        ("new BigInt64Array([-1n])", "q", [-1]),
        ("new BigUint64Array([2n ** 64n - 1n])", "Q", [2**64 - 1]),
        ("new Int16Array([1, 2, 3]).subarray(1)", "h", [2, 3]),
        ("new Int16Array(0)", "h", []),
    ],
)
def test_a_view_comes_out_as_a_memoryview(
    expression: str, form: str, elements: list[float]
) -> None:
    view = value_of(expression)
    assert type(view) is memoryview
    assert (view.format, view.tolist()) == (form, elements)


def test_an_error_comes_out_as_an_exception() -> None:
    error = value_of("Object.assign(new RangeError('too far'), { code: 'E_FAR' })")
    assert type(error) is isolane.SandboxError
    assert (error.name, error.message, error.code) == ("RangeError", "too far", "E_FAR")
    assert str(error) == "RangeError: too far"
    assert error.stack is not None
    assert "<runCode>" in error.stack


def test_an_error_that_goes_back_is_of_its_class() -> None:
    seen = "[echo(e) instanceof RangeError, echo(e).name, echo(e).message, echo(e).code]"
    error = "Object.assign(new RangeError('too far'), { name: 'FarError', code: 7 })"
    back = value_of(f"((e) => {seen})({error})", echo=lambda e: e)
    assert back == [True, "FarError", "too far", 7]


def test_only_exceptions_can_be_raised() -> None:
    def fail_value(value: Any) -> None:
        raise value

    caught = "(() => { try { fail({ a: 1 }); } catch (error) { return error.name; } })()"
    assert value_of(caught, fail=fail_value) == "TypeError"


def test_a_thrown_value_reaches_the_host_as_an_exception() -> None:
    raised: list[BaseException] = []

    async def call(f: Callable[[], Awaitable[Any]]) -> None:
        try:
            await f()
        except Exception as error:
            raised.append(error)

    value_of("call(() => { throw { code: 7 }; }).then(() => 'told')", call=call)
    [error] = raised
    assert type(error) is isolane.SandboxError
    assert (error.name, error.value) == ("Error", {"code": 7})


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("/a(b+)/giu", "result: a RegExp"),
        ("{ list: [0, /a/] }", "result.list[1]: a RegExp"),
        ("new Map([[1, { re: /a/ }]])", "result.values()[0].re: a RegExp"),
        ("new Date(NaN)", "result: an invalid Date"),
        ("[new Date(-62135596800001)]", "result[0]: a Date outside of the years 1 to 9999"),
        ("[new Date(253402300800000)]", "result[0]: a Date outside of the years 1 to 9999"),
        ("new Map([[{ id: 1 }, 'a']])", "result: a Map with an unhashable key"),
        ("{ m: new Map([[1, 'a'], [[2], 'b']]) }", "result.m: a Map with an unhashable key"),
        ("new Map([[new Int16Array(1), 'a']])", "result: a Map with an unhashable key"),
        ("new Map([[1, 'a'], [true, 'b']])", "result: a Map whose keys collide"),
        ("new Map([[0, 'a'], [false, 'b']])", "result: a Map whose keys collide"),
        ("new Map([[1, 'a'], [1n, 'b']])", "result: a Map whose keys collide"),
        ("new Map([[2 ** 60, 'a'], [2n ** 60n, 'b']])", "result: a Map whose keys collide"),
        ("new Map([[null, 'a'], [undefined, 'b']])", "result: a Map whose keys collide"),
        (
            "new Map([[new Date(0), 'a'], [new Date(0), 'b']])",
            "result: a Map whose keys collide",
        ),
        (
            "new Map([[new Uint8Array([1]), 1], [new Uint8Array([1]).buffer, 2]])",
            "result: a Map whose keys collide",
        ),
        ("new Set([{ a: 1 }])", "result: a Set with an unhashable member"),
        ("[new Set([[2]])]", "result[0]: a Set with an unhashable member"),
        ("new Set([1, true])", "result: a Set whose members collide"),
        ("Object.assign([], { 4294967293: 'x' })", "result: an array of so many holes"),
    ],
)
def test_what_python_cannot_hold_is_refused(expression: str, words: str) -> None:
    assert refusal_of(expression) == f"{words} cannot be cloned"


@pytest.mark.parametrize(
    ("send", "path"),
    [
        ("echo(/a/)", "arguments[0]"),
        ("echo(1, { when: [/a/] })", "arguments[1].when[0]"),
        ("report({ pattern: /a/ })", "report.pattern"),
        ("await call(() => [/a/])", "result[0]"),
    ],
)
def test_a_refusal_is_told_to_the_sandbox(send: str, path: str) -> None:
    source = f"""
        let told;
        const look = (error) => [error instanceof TypeError, error.name, error.message];
        try {{ {send}; }} catch (error) {{ told = look(error); }}
        export default told;
    """
    functions = {"echo": lambda *a: a, "call": lambda f: f()}
    result = isolane.run_code_sync(source, globals=functions, report=lambda _: None)
    assert result.result == [True, "SerializationError", f"{path}: a RegExp cannot be cloned"]
    assert result.reports == []


def test_what_cannot_be_held_is_text_in_a_log() -> None:
    result = isolane.run_code_sync("console.log('a', /b/g, [1]); export default 1")
    assert [log.args for log in result.logs] == [["a", "/b/g", [1]]]


def test_keys_that_are_made_to_collide_are_refused() -> None:
    # All of them have one hash, so inserting n of them into a dict takes n² steps.
    colliding = "Array.from({ length: 20000 }, (_, i) => [1n + BigInt(i) * (2n ** 61n - 1n), i])"
    assert (
        refusal_of(f"new Map({colliding})") == "result: a Map whose keys collide cannot be cloned"
    )


def test_keys_that_are_made_to_collide_in_a_hash_without_a_secret_cross() -> None:
    # Fx multiplies by the rest of the first eight bytes after its seed, which is zero here.
    seed = "0x243f6a8885a308d3n"
    keys = f"{{ length: 100000 }}, (_, i) => [((2n ** 63n + BigInt(i)) << 64n) + {seed}, i]"
    assert list(value_of(f"new Map(Array.from({keys}))").values()) == list(range(100_000))


def _numbers_on_one_way() -> list[int]:
    """Numbers with unique hashes, the last of which probe past most of the others in a dict."""
    mask, taken = (1 << 14) - 1, 10_000
    # First a long chain of places, in the order of a dict's probing.
    row = list(itertools.islice(_accumulate(mask), taken))
    places = {place: number for number, place in enumerate(row)}
    random_, numbers = random.Random(1), list(row)
    while len(numbers) < taken + 600:
        number = random_.randrange(1 << 60)
        place, rest = number & mask, number
        while rest and place in places:
            rest >>= 5
            place = (5 * place + rest + 1) & mask
        if rest == 0 and places.get(place, taken) < taken // 2:
            numbers.append(number)
    return numbers


def _accumulate(mask: int) -> Iterator[int]:
    place = 0
    while True:
        yield place
        place = (5 * place + 1) & mask


def test_numbers_that_are_made_to_pass_by_each_other_are_refused() -> None:
    numbers = _numbers_on_one_way()
    assert len({hash(number) for number in numbers}) == len(numbers)
    source = "export default (numbers) => new Map(numbers.map((number) => [number, 1]))"
    result = isolane.run_code_sync(source, execute={"args": [numbers]})
    assert result.error is not None
    assert result.error.message == "result: a Map whose keys collide cannot be cloned"


@pytest.mark.parametrize(
    "number", ["i", "-i", "i * 1000", "i * 2 ** 20", "i * 2 ** 33 + 5", "i / 7", "BigInt(i) << 64n"]
)
def test_numbers_that_were_not_chosen_cross(number: str) -> None:
    entries = f"Array.from({{ length: 50000 }}, (_, i) => [{number}, i])"
    assert list(value_of(f"new Map({entries})").values()) == list(range(50_000))
    members = f"Array.from({{ length: 50000 }}, (_, i) => {number})"
    assert len(value_of(f"new Set({members})")) == 50_000


def test_a_map_of_very_many_entries_is_refused() -> None:
    source = """
        const map = new Map();
        for (let i = 0; i <= 2e6; i++) map.set(i, 1);
        export default map;
    """
    result = isolane.run_code_sync(source, memory_limit_bytes=1 << 30)
    assert result.error is not None
    assert result.error.message == "result: a Map of 2000001 entries cannot be cloned"


def test_a_key_that_takes_long_to_hash_is_refused() -> None:
    for make, what in [
        ("new Set([long])", "a Set with a member"),
        ("new Map([[long, 1]])", "a Map with a key"),
        ("new Set([new Uint8Array(2 ** 26 + 1)])", "a Set with a member"),
    ]:
        source = f"const long = 'a'.repeat(2 ** 26 + 1); export default {make};"
        result = isolane.run_code_sync(source, memory_limit_bytes=1 << 30)
        assert result.error is not None
        assert result.error.message == f"result: {what} of more than 64 MiB cannot be cloned"


def test_a_host_function_is_no_key() -> None:
    class Tool:
        """Its hash is code of the host, which the sandbox must not be able to run."""

        def __call__(self) -> None:
            pass

        def __hash__(self) -> int:
            raise LookupError("hashed")

    map_message = refusal_of("new Map([[tool, 1]])", tool=Tool())
    assert map_message == "result: a Map with an unhashable key cannot be cloned"
    set_message = refusal_of("new Set([tool])", tool=Tool())
    assert set_message == "result: a Set with an unhashable member cannot be cloned"


def test_a_long_list_of_holes_is_a_list_of_none() -> None:
    assert value_of("Object.assign([], { 60000: 'end' })") == [None] * 60_000 + ["end"]


def test_holes_of_all_messages_are_bounded_together() -> None:
    # A list takes eight bytes for each element, although they cost the sandbox almost nothing.
    source = """
        const list = Object.assign([], { 60000: 'end' });
        console.log(list);
        const told = [];
        for (const send of [report, echo]) {
          try { send(list); } catch (error) { told.push(error.message); }
        }
        export default told;
    """
    echo = {"echo": lambda v: v}
    result = isolane.run_code_sync(source, globals=echo, report=lambda _: None)
    assert result.result == [
        "report: an array of so many holes cannot be cloned",
        "arguments[0]: an array of so many holes cannot be cloned",
    ]
    assert [len(log.args[0]) for log in result.logs] == [60_001]


def test_what_shows_a_whole_buffer_shares_it() -> None:
    shown = value_of(
        "(() => { const b = new ArrayBuffer(4 << 20); return [b, new Int32Array(b, 4, 2),"
        " ...Array.from({ length: 200 }, () => new Uint8Array(b)), new DataView(b)] })()"
    )
    assert {len(part) for part in shown} == {4 << 20, 2}
    assert all(part is shown[0] for part in shown[2:])
    assert shown[1].obj is shown[0]


def test_parts_of_a_buffer_are_bounded() -> None:
    # Each is a `bytes` object of its own here, and costs the sandbox almost nothing.
    parts = (
        "const b = new ArrayBuffer(4 << 20); const parts = (n) => Array.from({ length: n }, () =>"
        " new Uint8Array(b, 1));"
    )
    lengths = [len(part) for part in value_of(f"(() => {{ {parts} return [b, ...parts(1)] }})()")]
    assert lengths == [4 << 20, (4 << 20) - 1]
    result = isolane.run_code_sync(f"{parts} export default [b, ...parts(200)]")
    assert result.error is not None
    assert result.error.message == "result[2]: a buffer that so many others share cannot be cloned"

    # In a log, one text represents all of them.
    result = isolane.run_code_sync(f"{parts} console.log(b, ...parts(200)); export default 1")
    assert len(result.logs[0].args) == 1
    assert result.logs[0].args == ["[values that share too much]"]


def test_what_a_log_shares_is_bounded() -> None:
    log = "const big = ['x'.repeat(8 << 20)]; console.log(/x/, ...Array(200).fill(big))"
    tracemalloc.start()
    try:
        result = isolane.run_code_sync(log + "; export default 1")
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(result.logs[0].args) == 1
    # The bytes that Python has allocated; without a bound some 1,600 MiB.
    assert peak_bytes < 64 << 20


def test_a_run_settles_even_if_its_result_cannot_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_memory(*_: object) -> None:
        raise MemoryError("none left")

    monkeypatch.setattr(isolane.SandboxError, "__init__", no_memory)
    result = evaluate("new Error('x')")
    assert result.status == "error"
    assert result.result is None
    assert result.error == isolane.CodeExecutionError(
        "MemoryError", "the result cannot be read: none left"
    )
