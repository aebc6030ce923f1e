"""Values that only Python has: the results of its classes, numbers and texts in both directions."""

from __future__ import annotations

import array
import collections
import copy
import datetime
import enum
import gc
import itertools
import math
import pickle
import re
import sys
import types
from collections.abc import Iterator
from typing import Any, NamedTuple, NoReturn
from unittest import mock

import isolane
import pytest
from isolane import SandboxError, SerializationError, run_code_sync, undefined

UTC = datetime.timezone.utc


def crossed(value: Any, source: str = "export default x") -> Any:
    """The result of a source with a value, by default the value itself in both directions."""
    return run_code_sync(source, globals={"x": value}).raise_for_status().result


def refused(value: Any) -> str:
    """The reason why a value cannot enter."""
    with pytest.raises(SerializationError) as caught:
        run_code_sync("export default 1", globals={"x": value})
    return str(caught.value)


def refused_out(source: str) -> str:
    """The reason why a result cannot leave."""
    error = run_code_sync(source).error
    assert error is not None
    assert error.name == "SerializationError"
    return error.message


def same(left: Any, right: Any) -> bool:
    """Whether two values are equal and of the same classes; distinguishes NaN and -0."""
    if type(left) is not type(right):
        return False
    if isinstance(left, float):
        return math.copysign(1, left) == math.copysign(1, right) and (
            left == right or (math.isnan(left) and math.isnan(right))
        )
    if isinstance(left, list):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, dict):
        return same(list(left), list(right)) and same(list(left.values()), list(right.values()))
    return bool(left == right)


# Numbers.


class Colour(enum.IntEnum):
    RED = 1


class Word(str, enum.Enum):
    YES = "yes"


class Hostile(int):
    """An int whose methods lie about it."""

    def _lie(self, *_: Any) -> NoReturn:
        raise RuntimeError("an overridden method ran")

    __lt__ = __abs__ = __index__ = __int__ = __neg__ = __hash__ = __repr__ = _lie
    __eq__ = __bool__ = bit_length = to_bytes = _lie  # type: ignore[assignment]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (2**53 - 1, 2**53 - 1),
        (1 - 2**53, 1 - 2**53),
        (2**53, 2**53),
        (-(2**53), -(2**53)),
        (2**64, 2**64),
        (10**5000, 10**5000),
        (-(10**5000), -(10**5000)),
        (0.0, 0),
        (-0.0, -0.0),
        (1e300, 1e300),
        (3.0, 3),
        (0.5, 0.5),
        (math.nan, math.nan),
        (-math.inf, -math.inf),
        (True, True),
        (Colour.RED, 1),
        (Word.YES, "yes"),
        (Hostile(7), 7),
        (Hostile(-(2**80)), -(2**80)),
    ],
    ids=itertools.count(),
)
def test_numbers(value: Any, expected: Any) -> None:
    assert same(crossed(value), expected)


def test_which_numbers_are_bigints_inside() -> None:
    kinds = crossed(
        [2**53 - 1, 2**53, 1 - 2**53, -(2**53), 2.0**60, True],
        "export default x.map((x) => typeof x)",
    )
    assert kinds == ["number", "bigint", "number", "bigint", "number", "boolean"]


def test_numbers_out_of_json_are_ints() -> None:
    assert same(
        crossed(None, "export default JSON.parse('[1, 1.0, 1.5, -0, 1e21]')"),
        [1, 1, 1.5, -0.0, 1e21],
    )


# Texts.


@pytest.mark.parametrize(
    "text", ["", "\0", "é", "😀", "\ud800", "a\udc00b", "\udc00\ud800", "\ud83d" * 3]
)
def test_texts_and_keys_with_lone_surrogates(text: str) -> None:
    assert crossed([text, {text: text}]) == [text, {text: text}]


def test_two_halves_are_one_character() -> None:
    # Python keeps two surrogates apart; JavaScript has only code units.
    assert crossed("\ud83d\ude00") == "😀"


@pytest.mark.parametrize(
    ("source", "line", "column"), [("\ud800", 1, 1), ("1\n  '\udfff'", 2, 4), ("'😀\ud800'", 1, 4)]
)
def test_a_source_with_a_lone_surrogate(source: str, line: int, column: int) -> None:
    result = run_code_sync(source)
    assert result.status == "link_error"
    assert result.error is not None
    assert (result.error.name, result.error.line, result.error.column) == (
        "SyntaxError",
        line,
        column,
    )
    inside = run_code_sync("import './a.js'", modules={"./a.js": source})
    assert inside.error is not None
    assert (inside.error.filename, inside.error.line, inside.error.column) == ("a.js", line, column)


class Loud(str):
    """A text whose methods must not run."""

    def __hash__(self) -> int:
        return 5

    def __eq__(self, other: object) -> bool:
        return False

    def __str__(self) -> str:
        raise RuntimeError("an overridden method ran")

    encode = __len__ = __str__  # type: ignore[assignment]


def test_texts_of_a_subclass() -> None:
    value = {Loud("a"): Loud("\ud800"), Loud("b"): 2}
    result = crossed(value)
    assert type(result) is dict
    assert [(type(key), key) for key in result] == [(str, "a"), (str, "b")]
    assert result["a"] == "\ud800"
    # The same key twice, which only a subclass can have: the last one stays.
    assert crossed({Loud("a"): 1, "b": 2, Loud("a"): 3}) == {"a": 3, "b": 2}


# Containers.


class Point(NamedTuple):
    x: int
    y: int


class LyingList(list[Any]):
    def __iter__(self) -> Iterator[Any]:
        raise RuntimeError("an overridden method ran")

    __len__ = __getitem__ = __iter__  # type: ignore[assignment]


class LyingTuple(tuple[Any, ...]):
    __slots__ = ()
    __len__ = __getitem__ = __iter__ = LyingList.__iter__  # type: ignore[assignment]


class LyingDict(dict[Any, Any]):
    items = keys = values = __len__ = __getitem__ = __iter__ = LyingList.__iter__  # type: ignore[assignment]


class LyingSet(set[Any]):
    __len__ = __contains__ = __iter__ = LyingList.__iter__  # type: ignore[assignment]


class LyingFrozenSet(frozenset[Any]):
    __len__ = __contains__ = __iter__ = LyingList.__iter__  # type: ignore[assignment]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (Point(1, 2), [1, 2]),
        ((1, (2,)), [1, [2]]),
        (collections.OrderedDict(a=1, b=2), {"a": 1, "b": 2}),
        (collections.defaultdict(list, {"a": [1]}), {"a": [1]}),
        (collections.Counter("aab"), {"a": 2, "b": 1}),
        (LyingList([1, 2]), [1, 2]),
        (LyingTuple([1, 2]), [1, 2]),
        (LyingDict(a=1), {"a": 1}),
        (LyingSet([1]), {1}),
        (LyingFrozenSet([1]), {1}),
        (frozenset([1]), {1}),
        ({1: "a", "b": 2}, {1: "a", "b": 2}),
        ({None: 1, 2.5: 2}, {None: 1, 2.5: 2}),
        ({True: 1}, {True: 1}),
    ],
    ids=itertools.count(),
)
def test_containers(value: Any, expected: Any) -> None:
    assert same(crossed(value), expected)


def test_an_ordered_dict_keeps_its_own_order() -> None:
    value = collections.OrderedDict(a=1, b=2, c=3)
    value.move_to_end("a")
    value.move_to_end("c", last=False)
    assert list(crossed(value).items()) == [("c", 3), ("b", 2), ("a", 1)]


def test_dicts_with_other_keys_are_maps_inside() -> None:
    source = "export default x.map((x) => x instanceof Map ? [...x.keys()] : Object.keys(x))"
    assert crossed([{}, {"a": 1}, {1: 1}, {"a": 1, b"b": 2}], source) == [
        [],
        ["a"],
        [1],
        ["a", b"b"],
    ]


def test_identity_within_a_message() -> None:
    inner: list[Any] = []
    inner.append(inner)
    result = (
        run_code_sync(
            """
            import { c } from 'm';
            export default (d) =>
                ({ a, b, c, d, same: a === b.deep && b.deep === c && c === d })
            """,
            globals={"a": inner, "b": {"deep": inner}},
            imports={"m": {"c": inner}},
            execute={"args": [inner]},
        )
        .raise_for_status()
        .result
    )
    assert result["same"] is True
    assert result["a"] is result["a"][0] is result["b"]["deep"] is result["c"] is result["d"]


def test_cycles_through_every_container() -> None:
    cycle: dict[Any, Any] = {}
    cycle["list"] = [cycle, {1: cycle}]
    result = crossed(cycle)
    assert result["list"][0] is result
    assert result["list"][1][1] is result


def depth(value: Any) -> int:
    """The depth of a value's nesting."""
    levels = 0
    while isinstance(value, (list, dict)) and value:
        value = next(iter(value.values() if isinstance(value, dict) else value))
        levels += 1
    return levels


def test_a_hundred_thousand_levels_both_ways() -> None:
    value: Any = []
    for level in range(100_000):
        value = [value] if level % 2 else {"k": value}
    assert depth(crossed(value)) == 100_000
    assert (
        depth(
            crossed(None, "let y = 1; for (let i = 0; i < 100000; i++) y = { y }; export default y")
        )
        == 100_000
    )
    bad: Any = object()
    for _ in range(100_000):
        bad = [bad]
    message = refused(bad)
    assert message.startswith("globals.x[0][0]")
    assert message.endswith(
        "[0][0]: an instance of object cannot be cloned; default= can convert it"
    )
    assert len(message) < 1000


def test_a_million_elements() -> None:
    assert crossed(list(range(1_000_000))) == list(range(1_000_000))


def test_containers_that_change_while_they_are_read() -> None:
    class Zone(datetime.tzinfo):
        dst = tzname = None  # type: ignore[assignment]

        def utcoffset(self, _: datetime.datetime | None) -> datetime.timedelta:
            row.clear()
            table.clear()
            members.clear()
            gc.collect()
            return datetime.timedelta()

    moment = datetime.datetime(2020, 1, 1, tzinfo=Zone())
    row: list[Any] = [moment, [1], [2]]
    table: dict[str, Any] = {"row": row, "after": ["a"]}
    members: set[Any] = {1, 2}
    expected = {"row": [datetime.datetime(2020, 1, 1, tzinfo=UTC), [1], [2]], "after": ["a"]}
    assert crossed([table, members]) == [expected, set()]


# Bytes.


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (b"\x00\xff", b"\x00\xff"),
        (bytearray(b"ab"), b"ab"),
        (memoryview(b"abcdef")[::2], b"ace"),
        (memoryview(b"abcdef")[::-1], b"fedcba"),
        (memoryview(array.array("i", [1])), array.array("i", [1]).tobytes()),
        (memoryview(b"abcdef").cast("B", (2, 3)), b"abcdef"),
        (memoryview(b""), b""),
    ],
)
def test_bytes(value: Any, expected: bytes) -> None:
    assert same(crossed(value), expected)
    assert crossed(value, "export default x.constructor.name") == "Uint8Array"


def test_a_released_memoryview_is_refused() -> None:
    released = memoryview(b"ab")
    released.release()
    assert refused([released]) == "globals.x[0]: a released memoryview cannot be cloned"


def test_views_arrive_with_their_format() -> None:
    source = """
        const buffer = new ArrayBuffer(16);
        new Uint8Array(buffer).set([1, 2, 3, 4, 5, 6, 7, 8]);
        export default [
            new Int8Array(buffer, 1, 2), new Int16Array(buffer, 2, 1), new Float64Array(buffer),
            new BigUint64Array([2n ** 64n - 1n]), new Uint8Array(buffer, 7, 1),
            new DataView(buffer, 0, 2), new Uint8ClampedArray([300]), new Float32Array([0.5]),
            new Uint32Array(0),
        ]
    """
    result = run_code_sync(source).raise_for_status().result
    kinds = [
        view.format if isinstance(view, memoryview) else type(view).__name__ for view in result
    ]
    assert kinds == ["b", "h", "d", "Q", "bytes", "bytes", "bytes", "f", "I"]
    assert result[0].tolist() == [2, 3]
    assert result[3].tolist() == [2**64 - 1]
    assert result[4:7] == [b"\x08", b"\x01\x02", b"\xff"]
    assert result[7].tolist() == [0.5]
    assert result[8].tolist() == []


# Dates.


def test_datetimes() -> None:
    aware = datetime.datetime(
        2020, 5, 17, 1, 2, 3, 4999, tzinfo=datetime.timezone(datetime.timedelta(hours=5))
    )
    result = crossed(aware)
    assert result == datetime.datetime(2020, 5, 16, 20, 2, 3, 4000, tzinfo=UTC)
    assert result.tzinfo is UTC
    naive = datetime.datetime(2020, 1, 1)
    assert crossed(naive) == naive.astimezone()
    assert (
        crossed(
            datetime.datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC), "export default +x"
        )
        == -1
    )
    for moment in (datetime.datetime.min, datetime.datetime.max):
        there = crossed(moment.replace(tzinfo=UTC))
        assert there == moment.replace(tzinfo=UTC, microsecond=moment.microsecond // 1000 * 1000)


def test_the_second_time_of_an_hour_that_comes_twice() -> None:
    zoneinfo = pytest.importorskip("zoneinfo")
    try:
        zone = zoneinfo.ZoneInfo("Europe/Berlin")
    except zoneinfo.ZoneInfoNotFoundError:
        pytest.skip("no time zones on this system")
    first = datetime.datetime(2020, 10, 25, 2, 30, tzinfo=zone)
    assert crossed([first, first.replace(fold=1)], "export default (x[1] - x[0]) / 60000") == 60


class Zone(datetime.tzinfo):
    """A zone with a given offset, which is raised if it is an exception."""

    dst = tzname = None  # type: ignore[assignment]

    def __init__(self, offset: datetime.timedelta | BaseException | None) -> None:
        self.offset = offset

    def utcoffset(self, _: datetime.datetime | None) -> datetime.timedelta | None:
        if isinstance(self.offset, BaseException):
            raise self.offset
        return self.offset


def test_zones_of_the_callers_own() -> None:
    moment = datetime.datetime(2020, 1, 1)
    # Without an offset it is local time, as in Python.
    assert crossed(moment.replace(tzinfo=Zone(None))) == moment.astimezone()
    with pytest.raises(ZeroDivisionError, match="no zone"):
        crossed(moment.replace(tzinfo=Zone(ZeroDivisionError("no zone"))))


def test_dates_that_python_does_not_have() -> None:
    assert (
        refused_out("export default [new Date(NaN)]")
        == "result[0]: an invalid Date cannot be cloned"
    )
    message = "result: a Date outside of the years 1 to 9999 cannot be cloned"
    assert refused_out("export default new Date(8.64e15)") == message
    assert refused_out("export default new Date(-62135596800001)") == message
    assert crossed(None, "export default new Date(-62135596800000)") == datetime.datetime(
        1, 1, 1, tzinfo=UTC
    )


# Keys of maps and members of sets.


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("new Map([[{}, 1]])", "result: a Map with an unhashable key cannot be cloned"),
        ("[new Map([[new Map(), 1]])]", "result[0]: a Map with an unhashable key cannot be cloned"),
        ("new Map([[1, 1], [true, 2]])", "result: a Map whose keys collide cannot be cloned"),
        ("new Map([[1, 1], [1n, 2]])", "result: a Map whose keys collide cannot be cloned"),
        (
            "new Map([[2 ** 60, 1], [2n ** 60n, 2]])",
            "result: a Map whose keys collide cannot be cloned",
        ),
        (
            "new Map([[null, 1], [undefined, 2]])",
            "result: a Map whose keys collide cannot be cloned",
        ),
        (
            "new Map([[new Date(0), 1], [new Date(0), 2]])",
            "result: a Map whose keys collide cannot be cloned",
        ),
        (
            "new Map([[new Uint8Array([1]), 1], [new Uint8Array([1]).buffer, 2]])",
            "result: a Map whose keys collide cannot be cloned",
        ),
        ("{ s: new Set([[]]) }", "result.s: a Set with an unhashable member cannot be cloned"),
        ("new Set([0, false])", "result: a Set whose members collide cannot be cloned"),
        ("new Set([new Int8Array(1)])", "result: a Set with an unhashable member cannot be cloned"),
    ],
)
def test_keys_that_python_cannot_tell_apart(source: str, message: str) -> None:
    assert refused_out(f"export default {source}") == message


def test_keys_that_python_can_tell_apart() -> None:
    result = (
        run_code_sync(
            """
            const keys = [NaN, '1', 1, -1, 0.5, null, Infinity];
            export default new Map(keys.map((key) => [key, 1]))
            """
        )
        .raise_for_status()
        .result
    )
    keys = list(result)
    assert math.isnan(keys[0])
    assert keys[1:] == ["1", 1, -1, 0.5, None, math.inf]
    assert crossed({math.nan: 1}, "export default x.get(NaN)") == 1


@pytest.mark.parametrize(
    "source",
    [
        # Whole numbers that are equal modulo the prime of Python's hash.
        "for (let i = 1n; i < 100000n; i++) keys.add(i * (2n ** 61n - 1n))",
        # Fractions with the same hash: powers of two have equal hashes 61 exponents apart.
        """
        for (let i = 0; i < 3000; i++)
            for (let e = -976; e < 0; e += 61) keys.add((2 * i + 1) * 2 ** e)
        """,
        "for (let e = -1074; e < 1023; e++) keys.add(2 ** e + 2 ** (e - 1))",
    ],
)
@pytest.mark.parametrize("made", ["keys", "new Map([...keys].map((key) => [key, 1]))"])
def test_keys_made_to_collide_take_bounded_time(source: str, made: str) -> None:
    # Without a bound this takes longer than a test may.
    result = run_code_sync(f"const keys = new Set(); {source}; export default {made}")
    assert result.status in ("success", "error")


def test_fractions_made_to_collide_are_refused() -> None:
    # One hash rotated within 61 bits, at each place where it is the mantissa of a float: there are
    # six such places, with 16 exponents each.
    prime, target = 2**61 - 1, sum(2**bit for bit in range(0, 60, 10))
    turns = [(turn, target * 2**turn % prime) for turn in range(61)]
    floats = [
        float(mantissa) * 2.0**exponent
        for turn, mantissa in turns
        if mantissa < 2**53 and mantissa % 2
        for exponent in range(-turn - 976, -turn - 60, 61)
    ]
    assert len({hash(value) for value in floats}) == 1
    assert len(set(floats)) > 64
    assert len(crossed(floats[:64], "export default new Set(x)")) == 64
    error = run_code_sync("export default new Set(x)", globals={"x": floats}).error
    assert error is not None
    assert error.message == "result: a Set whose members collide cannot be cloned"


def test_arrays_of_holes() -> None:
    assert crossed(None, "export default [, 1, , 2]") == [None, 1, None, 2]
    assert crossed(None, "const a = []; a[9] = 1; export default a") == [None] * 9 + [1]
    message = "result.a: an array of so many holes cannot be cloned"
    assert refused_out("export default { a: new Array(2 ** 32 - 1) }") == message
    message = "result[1]: an array of so many holes cannot be cloned"
    assert refused_out("const a = []; a.length = 6e4; export default [a, a.slice()]") == message


# Values without a counterpart on the other side.


class Plain:
    """An instance of a class of the caller."""


class Angry:
    """Raises on every access."""

    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError(f"asked for {name}")


class AngryMeta(type):
    def __getattribute__(cls, name: str) -> Any:
        raise RuntimeError(f"asked for {name}")


class AngryClass(metaclass=AngryMeta):
    """A class that raises on every access."""


@pytest.mark.parametrize(
    ("value", "what"),
    [
        (Plain(), "an instance of Plain"),
        (Angry(), "an instance of Angry"),
        (object.__new__(AngryClass), "an instance of AngryClass"),
        (re.compile("a"), "a re.Pattern"),
        ((n for n in [1]), "a generator"),
        (iter([]), "an instance of list_iterator"),
        (1j, "an instance of complex"),
        (range(3), "an instance of range"),
        (collections.deque([1]), "an instance of deque"),
        (types.MappingProxyType({}), "an instance of mappingproxy"),
        (sys, "an instance of module"),
        ({}.keys(), "an instance of dict_keys"),
        (mock.NonCallableMock(), "an instance of NonCallableMock"),
        (mock.NonCallableMock(spec=datetime.datetime), "an instance of NonCallableMock"),
        (mock.NonCallableMock(spec=isolane.SandboxFunction), "an instance of NonCallableMock"),
        (mock.NonCallableMock(spec=isolane.Undefined), "an instance of NonCallableMock"),
        (mock.NonCallableMock(spec=memoryview), "an instance of NonCallableMock"),
        (mock.NonCallableMock(spec=SandboxError), "an instance of NonCallableMock"),
        (mock.NonCallableMock(spec=collections.OrderedDict), "an instance of NonCallableMock"),
    ],
    ids=itertools.count(),
)
def test_instances_are_refused_with_their_path(value: Any, what: str) -> None:
    end = f"{what} cannot be cloned; default= can convert it"
    assert refused(value) == f"globals.x: {end}"
    assert refused({"a": [(1, {"b c": value})]}) == f'globals.x.a[0][1]["b c"]: {end}'


def test_every_way_in_names_its_path() -> None:
    value = {"deep": [Plain()]}
    with pytest.raises(
        SerializationError,
        match=r"^imports\.m\.a\.deep\[0\]: an instance of Plain cannot be cloned; default= can",
    ):
        run_code_sync("1", imports={"m": {"a": value}})
    with pytest.raises(
        SerializationError, match=r"^execute\.args\[1\]\.deep\[0\]: an instance of Plain cannot be"
    ):
        run_code_sync("1", execute={"args": [1, value]})
    assert refused({1: {"a": Plain()}}).startswith("globals.x")
    assert issubclass(SerializationError, TypeError)


def test_what_does_not_come_out() -> None:
    assert refused_out("export default [/a/g]") == "result[0]: a RegExp cannot be cloned"
    assert refused_out("export default Symbol('a')").startswith("result: ")
    assert refused_out("export default { f() {} }").startswith("result.f: ")


def test_a_float16_array_crosses_where_memoryviews_have_its_format() -> None:
    source = "export default { a: [new Float16Array([1.5])] }"
    if sys.version_info >= (3, 12):
        [view] = run_code_sync(source).raise_for_status().result["a"]
        assert (view.format, view.tolist()) == ("e", [1.5])
    else:
        assert refused_out(source) == "result.a[0]: a Float16Array cannot be cloned"


def test_mocks_and_classes_are_callables() -> None:
    source = "export default [typeof x.mock, typeof x.cls, typeof x.angry, x.mock(1)]"
    tool = mock.Mock(return_value=5)
    assert crossed({"mock": tool, "cls": Plain, "angry": AngryClass}, source) == [
        "function",
        "function",
        "function",
        5,
    ]
    tool.assert_called_once_with(1)


# Undefined.


def test_undefined() -> None:
    assert crossed([undefined, None], "export default x.map(String)") == ["undefined", "null"]
    assert crossed({"a": undefined}, "export default ['a' in x, x.a === undefined]") == [True, True]
    assert crossed([undefined]) == [None]
    assert repr(undefined) == "undefined"
    assert not undefined
    assert isolane.Undefined() is undefined
    assert copy.deepcopy([undefined])[0] is undefined
    assert pickle.loads(pickle.dumps(undefined)) is undefined


# Errors.


def test_errors_as_values() -> None:
    source = """
        class Own extends RangeError { name = 'Own'; code = 'E_OWN' }
        export default [new TypeError('a'), new Own('b'), Object.assign(new Error(''), { code: 7 })]
    """
    errors = run_code_sync(source).raise_for_status().result
    assert [repr(error) for error in errors] == [
        "SandboxError(name='TypeError', message='a')",
        "SandboxError(name='Own', message='b', code='E_OWN')",
        "SandboxError(name='Error', message='', code=7)",
    ]
    assert [str(error) for error in errors] == ["TypeError: a", "Own: b", "Error"]
    assert all("\n    at " in error.stack for error in errors)
    back = """export default x.map((e) =>
        [e instanceof RangeError, e instanceof TypeError, e.name, e.message, e.code])"""
    assert crossed(errors, back) == [
        [False, True, "TypeError", "a", None],
        [True, False, "Own", "b", "E_OWN"],
        [False, False, "Error", "", 7],
    ]


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda e: pickle.loads(pickle.dumps(e))]
)
def test_errors_can_be_copied(copied: Any) -> None:
    error = run_code_sync("export default Object.assign(new RangeError('m'), { code: 1 })").result
    again = copied(error)
    assert type(again) is SandboxError
    assert repr(again) == repr(error)
    assert again.stack == error.stack
    assert crossed(again, "export default x instanceof RangeError && x.code === 1")
    thrown = copied(SandboxError.of({"a": 1}))
    assert thrown.value == {"a": 1}
    assert str(thrown) == "Error: {'a': 1}"


class CodedError(Exception):
    def __init__(self, code: Any) -> None:
        super().__init__("m")
        self.code = code


@pytest.mark.parametrize(
    ("code", "there"),
    [
        ("E", "E"),
        (5, 5),
        (0.5, 0.5),
        (True, None),
        (None, None),
        (2**2000, None),
        ([], None),
        (Colour.RED, 1),
    ],
    ids=itertools.count(),
)
def test_the_code_of_an_exception(code: Any, there: Any) -> None:
    assert crossed(CodedError(code), "export default [x.name, x.message, x.code]") == [
        "CodedError",
        "m",
        there,
    ]


def test_exceptions_as_values() -> None:
    source = "export default x.map((e) => [e.name, e.message, e instanceof TypeError, e.cause])"
    values = [
        TypeError("t"),
        SyntaxError("s"),
        KeyError("k"),
        SystemExit(3),
        UnicodeDecodeError("utf-8", b"", 0, 1, "r"),
    ]
    got = crossed(values, source)
    assert [row[:3] for row in got[:4]] == [
        ["TypeError", "t", True],
        ["SyntaxError", "s", False],
        ["KeyError", "'k'", False],
        ["SystemExit", "3", False],
    ]
    assert [row[3] for row in got] == [None] * 5
