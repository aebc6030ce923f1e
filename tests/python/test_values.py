"""Values that Python hands to a sandbox, where the outcome is Python's own.

In: values of Python. Out: the value as the sandbox sees it, or the SerializationError with its
path. The cases that the contract table leaves out for Python (`skip: python`) have their outcome
here, in test_values_out.py and in test_misuse.py.
"""

from __future__ import annotations

import collections
import dataclasses
import datetime as dt
import enum
import pathlib
import re
from typing import Any, NamedTuple

import isolane
import pytest
from isolane import SerializationError, undefined

from expressions import assert_exactly, evaluate, value_of

UTC = dt.timezone.utc
SAFE = 2**53 - 1


class Pool:
    """A class that no sandbox can hold."""


class Pattern:
    """A Pattern of another module than `re`."""


class Color(enum.IntEnum):
    RED = 1


class Word(str, enum.Enum):
    HELLO = "hello"


class Point(NamedTuple):
    x: int
    y: int


class Count(int):
    """Pretends to be another number."""

    def __repr__(self) -> str:
        return "forged"

    def __abs__(self) -> int:
        return 0


class Names(dict[str, int]):
    """Pretends to be empty."""

    def items(self) -> Any:
        return {}.items()


@dataclasses.dataclass
class User:
    name: str


class QuotaError(Exception):
    def __init__(self, message: str, code: object) -> None:
        super().__init__(message)
        self.code = code


@pytest.mark.parametrize(
    ("value", "holds"),
    [
        (None, "v === null"),
        (undefined, "v === undefined"),
        ([undefined], "v.length === 1 && 0 in v && v[0] === undefined"),
        (True, "v === true"),
        (0, "Object.is(v, 0)"),
        (SAFE, "v === 9007199254740991"),
        (-SAFE, "v === -9007199254740991"),
        (SAFE + 1, "v === 9007199254740992n"),
        (-SAFE - 1, "v === -9007199254740992n"),
        (-(2**64), "v === -(2n ** 64n)"),
        (10**300, "v === 10n ** 300n"),
        (1.0, "v === 1"),
        (float(2**53), "v === 9007199254740992"),
        (-0.0, "Object.is(v, -0)"),
        (float("nan"), "Number.isNaN(v)"),
        (float("-inf"), "v === -Infinity"),
        ("größer 😀 \0", "v === 'größer 😀 \\0'"),
        ("\ud800", "v === '\\uD800'"),
        ("\ud83d\ude00", "v === '😀'"),
        (Color.RED, "v === 1"),
        (Word.HELLO, "v === 'hello'"),
        (Count(2**60), "v === 2n ** 60n"),
        (b"\1\2", "v instanceof Uint8Array && v.join() === '1,2'"),
        (bytearray(b"\1\2"), "v instanceof Uint8Array && v.join() === '1,2'"),
        (memoryview(b"\1\2"), "v instanceof Uint8Array && v.join() === '1,2'"),
        (memoryview(b"\1\2\3\4")[1::2], "v instanceof Uint8Array && v.join() === '2,4'"),
        (memoryview(b"\1\0").cast("h"), "v instanceof Uint8Array && v.join() === '1,0'"),
        ((1, (2,)), "Array.isArray(v) && JSON.stringify(v) === '[1,[2]]'"),
        (Point(1, 2), "Array.isArray(v) && v.join() === '1,2'"),
        ({}, "Object.getPrototypeOf(v) === Object.prototype && Object.keys(v).length === 0"),
        ({"b": 1, "a": 2}, "Object.keys(v).join() === 'b,a' && v.a === 2"),
        ({"\ud800": 1}, "v['\\uD800'] === 1"),
        (collections.OrderedDict(b=1, a=2), 'JSON.stringify(v) === \'{"b":1,"a":2}\''),
        (collections.defaultdict(list, a=[1]), "JSON.stringify(v) === '{\"a\":[1]}'"),
        (Names(a=1), "JSON.stringify(v) === '{\"a\":1}'"),
        ({1: "a"}, "v instanceof Map && v.get(1) === 'a'"),
        ({1: "a", "b": 2}, "v instanceof Map && [...v.keys()].join() === '1,b'"),
        ({None: 1, (1, 2): 3}, "v instanceof Map && v.get(null) === 1 && v.size === 2"),
        ({1, 2}, "v instanceof Set && v.size === 2 && v.has(1) && v.has(2)"),
        (frozenset({"a"}), "v instanceof Set && v.has('a')"),
        (dt.datetime(2023, 11, 14, 22, 13, 20, 123999, UTC), "v.getTime() === 1700000000123"),
        (dt.datetime(1969, 12, 31, 23, 59, 59, 999999, UTC), "v.getTime() === -1"),
        (
            dt.datetime(2000, 1, 1, 2, tzinfo=dt.timezone(dt.timedelta(hours=2))),
            "v.toISOString() === '2000-01-01T00:00:00.000Z'",
        ),
        (dt.datetime.min.replace(tzinfo=UTC), "v.toISOString() === '0001-01-01T00:00:00.000Z'"),
        (dt.datetime.max.replace(tzinfo=UTC), "v.toISOString() === '9999-12-31T23:59:59.999Z'"),
    ],
)
def test_a_value_arrives(value: object, holds: str) -> None:
    assert value_of(holds, v=value) is True


def test_a_naive_datetime_is_local_time() -> None:
    local = dt.datetime(2024, 7, 1, 12)
    assert value_of("v.getTime()", v=local) == round(local.timestamp() * 1000)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ValueError("bad"), ["Error", "ValueError", "bad", None]),
        (TypeError("bad"), ["TypeError", "TypeError", "bad", None]),
        (SyntaxError("bad"), ["SyntaxError", "SyntaxError", "bad", None]),
        (SerializationError("bad"), ["TypeError", "SerializationError", "bad", None]),
        (KeyError("k"), ["Error", "KeyError", "'k'", None]),
        (Exception(), ["Error", "Exception", "", None]),
        (QuotaError("over", "E_QUOTA"), ["Error", "QuotaError", "over", "E_QUOTA"]),
        (QuotaError("over", 429), ["Error", "QuotaError", "over", 429]),
        (QuotaError("over", 4.5), ["Error", "QuotaError", "over", 4.5]),
        (QuotaError("over", True), ["Error", "QuotaError", "over", None]),
        (QuotaError("over", [1]), ["Error", "QuotaError", "over", None]),
    ],
)
def test_an_exception_arrives_as_an_error(error: Exception, said: list[object]) -> None:
    seen = "[Object.getPrototypeOf(e).constructor.name, e.name, e.message, e.code]"
    assert_exactly(value_of(seen, e=error), said)


def test_a_dict_that_holds_itself_arrives() -> None:
    node: dict[str, Any] = {"children": []}
    node["children"].append({"parent": node})
    assert value_of("node.children[0].parent === node", node=node) is True


def test_equal_values_stay_two_and_one_stays_one() -> None:
    shared = [1]
    assert value_of("v[0] === v[1]", v=[shared, shared]) is True
    assert value_of("v[0] === v[1]", v=[[1], [1]]) is False


def test_what_crosses_twice_is_the_same() -> None:
    value = {
        "list": [None, True, 1, -0.0, 2**70, "\ud800", b"\0"],
        "map": {1: {2: {"a"}}},
        "when": dt.datetime(2024, 1, 1, tzinfo=UTC),
    }
    assert_exactly(value_of("echo(v)", v=value, echo=lambda v: v), value)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (Pool(), "an instance of Pool"),
        (object(), "an instance of object"),
        (1j, "an instance of complex"),
        (range(3), "an instance of range"),
        (pathlib.PurePosixPath("/"), "an instance of PurePosixPath"),
        (collections.deque(), "an instance of deque"),
        ((n for n in [1]), "a generator"),
        (re.compile("a"), "a re.Pattern"),
        (Pattern(), "an instance of Pattern"),
    ],
)
def test_an_instance_is_refused(value: object, words: str) -> None:
    with pytest.raises(SerializationError) as refused:
        evaluate("1", v=value)
    assert str(refused.value) == f"globals.v: {words} cannot be cloned; default= can convert it"


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ({"a": [0, {"b c": Pool()}]}, 'globals.v.a[1]["b c"]'),
        ((0, (Pool(),)), "globals.v[1][0]"),
        ({1: Pool()}, "globals.v[1]"),
        ({1: {"a": Pool()}}, "globals.v[1].a"),
        ({(1, 2): [Pool()]}, "globals.v[(1, 2)][0]"),
        ({(1, Pool()): 2}, "globals.v.keys()[0][1]"),
        ({Pool()}, "globals.v.values()[0]"),
    ],
)
def test_a_refusal_names_the_path(value: object, path: str) -> None:
    with pytest.raises(SerializationError) as refused:
        evaluate("1", v=value)
    end = "an instance of Pool cannot be cloned; default= can convert it"
    assert str(refused.value) == f"{path}: {end}"


def test_a_refusal_in_arguments_names_the_argument() -> None:
    with pytest.raises(SerializationError) as refused:
        isolane.run_code_sync("export default 1", execute={"args": [1, {2: Pool()}]})
    end = "an instance of Pool cannot be cloned; default= can convert it"
    assert str(refused.value) == f"execute.args[1][2]: {end}"


def test_a_local_time_that_is_no_time_is_refused() -> None:
    # It would be in the year 0, in any zone.
    with pytest.raises(SerializationError) as refused:
        evaluate("1", v=dt.datetime.min)
    assert str(refused.value) == "globals.v: a datetime that is out of range cannot be cloned"


def test_a_datetime_whose_zone_raises_raises() -> None:
    class Nowhere(dt.tzinfo):
        def utcoffset(self, _: dt.datetime | None) -> dt.timedelta:
            raise LookupError("nowhere")

        dst = utcoffset

        def tzname(self, _: dt.datetime | None) -> str:
            return "nowhere"

    with pytest.raises(LookupError, match=r"^nowhere$"):
        evaluate("1", v=dt.datetime(2000, 1, 1, tzinfo=Nowhere()))


def test_a_value_nested_deep_crosses_or_is_refused() -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    depth = "(() => { let n = 0; for (let at = v; at.length > 0; at = at[0]) n += 1; return n; })()"
    assert value_of(depth, v=deep) == 100_000
    out = value_of("(() => { let d = []; for (let i = 0; i < 1e5; i += 1) d = [d]; return d; })()")
    steps = 0
    while out:
        out, steps = out[0], steps + 1
    assert steps == 100_000


def test_a_function_that_returns_nothing_gives_null() -> None:
    assert value_of("nothing() === null", nothing=lambda: None) is True
    assert value_of("nothing() === undefined", nothing=lambda: undefined) is True
