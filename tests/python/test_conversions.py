"""Objects without a counterpart in the sandbox: the standard library's, those of pydantic and numpy
by the form of their classes, and the hook `default`.

Neither library is needed: the classes here have the methods by which both are known.
"""

from __future__ import annotations

import asyncio
import dataclasses
import datetime
import enum
import json
import uuid
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import PurePosixPath
from typing import Any

import isolane
import pytest
from isolane import SerializationError, run_code_sync
from isolane import kit as kits
from isolane.environment import ProcessService, TypeScriptEnvironment
from isolane.notebook import Notebook

UTC = datetime.timezone.utc
IDENTITY = uuid.UUID("12345678-1234-5678-1234-567812345678")


class Color(enum.Enum):
    RED = "red"
    NESTED = datetime.date(2024, 5, 6)
    PAIR = (1, "b")


class Level(enum.IntEnum):
    HIGH = 3


class Right(enum.Flag):
    READ = 1
    WRITE = 2


@dataclasses.dataclass
class Line:
    sku: str
    price: Decimal
    hidden: dataclasses.InitVar[int] = 0
    total: float = dataclasses.field(default=0.5, repr=False)


@dataclasses.dataclass(frozen=True)
class Order:
    id: uuid.UUID
    lines: list[Line]
    color: Color = Color.RED


@dataclasses.dataclass
class Node:
    next: Any = None


class Model:
    """A model of pydantic, as far as this package knows it."""

    def __init__(self, dumped: object) -> None:
        self._dumped = dumped

    def model_dump(self, *, mode: str) -> object:
        assert mode == "python"
        if isinstance(self._dumped, BaseException):
            raise self._dumped
        return self._dumped


class Dtype:
    kind = "f"


class Scalar:
    """A scalar or an array of numpy, as far as this package knows them."""

    dtype = Dtype()
    shape: tuple[int, ...] = ()

    def __init__(self, value: object, shape: tuple[int, ...] = ()) -> None:
        self.value = value
        self.shape = shape

    def item(self) -> object:
        return self if self.value is self else self.value

    def tolist(self) -> object:
        return self.value


def crossed(value: Any, expression: str = "x", **options: Any) -> Any:
    source = f"export default {expression};"
    return run_code_sync(source, globals={"x": value}, **options).raise_for_status().result


def refused(value: Any, **options: Any) -> SerializationError:
    with pytest.raises(SerializationError) as caught:
        run_code_sync("export default 1", globals={"x": value}, **options)
    return caught.value


CONVERSIONS: list[tuple[Any, Any]] = [
    (datetime.date(2024, 5, 6), "2024-05-06"),
    (datetime.date.min, "0001-01-01"),
    (datetime.time(12, 30), "12:30:00"),
    (datetime.time(1, 2, 3, 40, tzinfo=UTC), "01:02:03.000040+00:00"),
    (datetime.timedelta(days=1, seconds=1.5), 86_401.5),
    (datetime.timedelta(seconds=-90), -90),
    (datetime.timedelta.max, 86_399_999_999_999.999999),
    (Decimal("19.90"), 19.9),
    (Decimal("-0.1"), -0.1),
    (Decimal(7), 7),
    (Decimal("9007199254740991"), 9007199254740991),
    (Decimal("12345678901234567890"), 12345678901234567890),
    (Decimal("1E+25"), 10**25),
    (Decimal("-1E+400"), -(10**400)),
    (Decimal("1E-400"), 0),
    (Decimal(1) / Decimal(3), 1 / 3),
    (Decimal("12345678901234567890.5"), float("12345678901234567890.5")),
    (Decimal("Infinity"), float("inf")),
    (IDENTITY, "12345678-1234-5678-1234-567812345678"),
    (Color.RED, "red"),
    (Color.NESTED, "2024-05-06"),
    (Color.PAIR, [1, "b"]),
    (Level.HIGH, 3),
    (Right.READ | Right.WRITE, 3),
    (Line("a", Decimal("1.5")), {"sku": "a", "price": 1.5, "total": 0.5}),
    (
        Order(IDENTITY, [Line("a", Decimal(2))]),
        {
            "id": str(IDENTITY),
            "lines": [{"sku": "a", "price": 2, "total": 0.5}],
            "color": "red",
        },
    ),
    (
        Model({"when": datetime.date(2024, 5, 6), "m": Model([Decimal(1)])}),
        {"when": "2024-05-06", "m": [1]},
    ),
    (Model(5), 5),
    (Scalar(1.5), 1.5),
    (Scalar((1, Scalar(True))), [1, True]),
]


@pytest.mark.parametrize("number", range(len(CONVERSIONS)))
def test_a_value_crosses_in_its_json_sense(number: int) -> None:
    value, expected = CONVERSIONS[number]
    assert crossed([value, {"a": value}, "after"]) == [expected, {"a": expected}, "after"]
    assert crossed(value) == expected


@pytest.mark.parametrize("nan", ["NaN", "sNaN", "-NaN"])
def test_a_decimal_without_a_number(nan: str) -> None:
    assert crossed(Decimal(nan), "[typeof x, Number.isNaN(x)]") == ["number", True]


def test_subclasses_cross_as_their_base() -> None:
    class Day(datetime.date):
        def isoformat(self) -> str:
            raise AssertionError("it is not asked")

    class Money(Decimal):
        def __float__(self) -> float:
            raise AssertionError("it is not asked")

    assert crossed([Day(2024, 5, 6), Money("1.5")]) == ["2024-05-06", 1.5]


def test_keys_are_converted_too() -> None:
    value = {Color.PAIR: 1, datetime.date(2024, 5, 6): 2, Level.HIGH: 3}
    assert crossed(value, "[...x.keys()]") == [[1, "b"], "2024-05-06", 3]


def test_keys_that_cross_as_texts_are_names() -> None:
    noon = datetime.time(12)
    value = {Color.RED: 1, datetime.date(2024, 5, 6): 2, IDENTITY: 3, noon: 4, "a": 5}
    expected = {"red": 1, "2024-05-06": 2, str(IDENTITY): 3, "12:00:00": 4, "a": 5}
    assert crossed(value) == expected
    assert json.loads(crossed(value, "JSON.stringify(x)")) == expected
    # Two keys of one text cannot both be names, and a moment is a Date.
    assert crossed({Color.RED: 1, "red": 2}, "x instanceof Map") is True
    moment = datetime.datetime(2024, 5, 6, tzinfo=UTC)
    assert crossed({moment: 1}, "[x instanceof Map, [...x.keys()]]") == [True, [moment]]


def test_identity_is_kept_also_around_a_circle() -> None:
    first, second = Node(), Node()
    first.next, second.next = second, first
    shared = Line("a", Decimal(1))
    model = Model({"a": 1})
    value = [first, shared, shared, model, model, IDENTITY, IDENTITY]
    source = "[x[0].next.next === x[0], x[1] === x[2], x[3] === x[4], x[5], x[6]]"
    assert crossed(value, source) == [True, True, True, str(IDENTITY), str(IDENTITY)]
    kept: list[Any] = []
    circle = Model(kept)
    kept.append(circle)
    assert crossed(circle, "x[0] === x") is True


def test_data_classes_may_be_deep() -> None:
    chain: Any = None
    for _ in range(5000):
        chain = Node(chain)
    source = "let n = 0; for (let at = x; at; at = at.next) n++; export default n;"
    result = run_code_sync(source, globals={"x": chain})
    assert result.raise_for_status().result == 5000


# Failures, with their place.


class HostileError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


class Lazy:
    """A data class whose fields raise."""

    __dataclass_fields__ = Line.__dataclass_fields__

    def __getattribute__(self, name: str) -> Any:
        raise KeyError(name)


class Zone(datetime.tzinfo):
    dst = tzname = None  # type: ignore[assignment]

    def utcoffset(self, _: datetime.datetime | None) -> datetime.timedelta:
        raise OSError("no zone")


FAILURES: list[tuple[Callable[[], Any], str]] = [
    (
        lambda: Model(ValueError("Circular reference detected")),
        "an instance of Model cannot be cloned: model_dump raised ValueError: Circular reference",
    ),
    (
        lambda: Model(HostileError()),
        "an instance of Model cannot be cloned: model_dump raised HostileError",
    ),
    (
        lambda: Model(ValueError("x" * 1000)),
        "an instance of Model cannot be cloned: model_dump raised ValueError: " + "x" * 300 + "…",
    ),
    (
        Lazy,
        "an instance of Lazy cannot be cloned: reading its field sku raised KeyError: 'sku'",
    ),
    (
        lambda: datetime.time(1, tzinfo=Zone()),
        "an instance of time cannot be cloned: isoformat raised OSError: no zone",
    ),
    (
        lambda: object.__new__(uuid.UUID),
        "an instance of UUID cannot be cloned: __str__ raised AttributeError: ",
    ),
    (lambda: Decimal("1E+999999"), "a Decimal that is out of range cannot be cloned"),
    (lambda: Scalar([1], (1,)), "an instance of Scalar cannot be cloned; hand over its .tolist()"),
]


@pytest.mark.parametrize("number", range(len(FAILURES)))
def test_a_conversion_that_fails_names_the_place(number: int) -> None:
    make, message = FAILURES[number]
    error = refused({"a": [make()]})
    assert str(error).startswith(f"globals.x.a[0]: {message}")
    cause = error.__cause__
    assert (cause is None) == (" raised " not in message)


def test_an_interrupt_passes_through() -> None:
    with pytest.raises(KeyboardInterrupt):
        run_code_sync("1", globals={"x": [Model(KeyboardInterrupt())]})


def test_a_scalar_that_is_its_own_item_is_refused() -> None:
    own = Scalar(None)
    own.value = own
    message = "globals.x: an instance of Scalar cannot be cloned; default= can convert it"
    assert str(refused(own)) == message


def test_a_count_of_nanoseconds_is_refused() -> None:
    class Moment(Scalar):
        dtype = type("Dtype", (), {"kind": "M"})()

    assert str(refused(Moment(1_700_000_000_000_000_000))).endswith("default= can convert it")
    moment = datetime.datetime(2024, 5, 6, tzinfo=UTC)
    assert crossed(Moment(moment), "x.getTime()") == 1_714_953_600_000


def test_a_model_that_changes_its_containers_while_it_is_read() -> None:
    rows: list[Any] = []

    class Clears(Model):
        def model_dump(self, *, mode: str) -> object:
            rows.clear()
            return super().model_dump(mode=mode)

    rows += [Clears(1), "after", {"a": 2}]
    assert crossed(rows) == [1, "after", {"a": 2}]


# The hook.


def convert(value: Any) -> Any:
    if isinstance(value, Fraction | PurePosixPath):
        return str(value)
    if isinstance(value, range):
        return list(value)
    raise TypeError(f"no rule for {type(value).__name__}")


def test_the_hook_takes_the_rest() -> None:
    value = {"f": Fraction(1, 3), "r": [range(3)], "d": datetime.date(2024, 5, 6)}
    expected = {"f": "1/3", "r": [[0, 1, 2]], "d": "2024-05-06"}
    assert crossed(value, default=convert) == expected


def test_a_refusal_names_the_hook_or_its_exception() -> None:
    message = "globals.x[0]: an instance of Fraction cannot be cloned; default= can convert it"
    assert str(refused([Fraction(1, 3)])) == message
    error = refused([1j], default=convert)
    assert str(error) == (
        "globals.x[0]: an instance of complex cannot be cloned: "
        "default raised TypeError: no rule for complex"
    )
    assert isinstance(error.__cause__, TypeError)


@pytest.mark.parametrize("endless", [lambda value: value, lambda _: object(), lambda _: [object()]])
def test_a_hook_without_an_end_is_refused(endless: Callable[[Any], Any]) -> None:
    message = str(refused(object(), default=endless))
    assert message.startswith("globals.x")
    assert message.endswith("its conversion gives another object again and again")


def test_a_hook_that_is_no_callable_is_misuse() -> None:
    with pytest.raises(TypeError, match=r"^default must be a callable, got int$"):
        run_code_sync("1", default=5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"^default must be a callable, got int$"):
        isolane.Runtime(default=5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"^default must be a callable, got int$"):
        isolane.Session(default=5)  # type: ignore[arg-type]


def test_answers_have_the_hook_of_the_run() -> None:
    def ratio() -> Fraction:
        return Fraction(1, 3)

    async def later() -> Fraction:
        return Fraction(2, 3)

    source = "export default [ratio(), await later()];"
    given = {"ratio": ratio, "later": later}
    assert run_code_sync(source, globals=given, default=convert).result == ["1/3", "2/3"]
    # The sandbox cannot give a hook, so the refusal does not name it.
    error = run_code_sync("export default ratio();", globals=given).error
    assert error is not None
    assert error.message == "the answer of ratio: an instance of Fraction cannot be cloned"


def test_a_runtime_has_a_hook_for_all_that_it_runs() -> None:
    value = Fraction(1, 3)
    with isolane.Runtime(default=convert) as runtime:
        assert runtime.run_code_sync("export default x", globals={"x": value}).result == "1/3"
        own = runtime.run_code_sync("export default x", globals={"x": value}, default=float)
        assert own.result == 1 / 3
        with runtime.session(globals={"x": value, "f": lambda: value}) as session:
            assert session.run_sync("[x, f()]").result == ["1/3", "1/3"]
            session.update(globals={"y": value})
            copy = session.fork_sync()
            session.run_sync("function show(v) { return [v, f()]; }")
            assert session.call_sync("show", value).result == ["1/3", "1/3"]
            with copy:
                assert copy.run_sync("[y, f()]").result == ["1/3", "1/3"]
        with kits.Kit(runtime=runtime) as kit:
            assert kit.run_tool_sync("return args.v", args={"v": value}).result == "1/3"
            tool = kit.run_tool_sync("return args.v", args={"v": value}, default=float)
            assert tool.result == 1 / 3
            with kit.session(globals={"x": value}) as cells:
                assert cells.run_sync("x").result == "1/3"
    with isolane.Session(globals={"x": value}, default=convert) as session:
        assert session.run_sync("x").result == "1/3"


def test_a_function_of_the_sandbox_gets_converted_arguments() -> None:
    async def call(function: Any) -> Any:
        return await function(Fraction(1, 3), datetime.date(2024, 5, 6))

    async def main() -> Any:
        return await isolane.run_code(
            "export default await call((a, b) => [a, b]);", globals={"call": call}, default=convert
        )

    assert asyncio.run(main()).result == ["1/3", "2024-05-06"]


# Keyword arguments.


def test_an_object_gives_the_keyword_arguments() -> None:
    def search(query: str, limit: int = 10) -> str:
        return f"{query} {limit}"

    @isolane.by_name
    async def later(query: str, *, limit: int = 10) -> str:
        return f"{query} {limit}"

    given = {"search": isolane.by_name(search), "later": later}
    source = """export default [
        search({ query: 'a' }), search({ query: 'b', limit: 2 }), search('c', 3), search('d'),
        await later({ query: 'e', limit: 4 }),
    ];"""
    result = run_code_sync(source, globals=given).raise_for_status().result
    assert result == ["a 10", "b 2", "c 3", "d 10", "e 4"]
    error = run_code_sync("search({ quary: 'a' })", globals=given).error
    assert error is not None
    assert error.name == "TypeError"
    assert "quary" in error.message
    assert later.__name__ == "later"


def test_an_object_gives_the_keyword_arguments_of_any_callable() -> None:
    class Tool:
        def __call__(self, a: int, b: int) -> int:
            return a - b

        async def call(self, a: int, b: int) -> int:
            return a * b

    class AsyncTool:
        async def __call__(self, a: int, b: int) -> int:
            return a + b

    given = {
        "tool": isolane.by_name(Tool()),
        "method": isolane.by_name(Tool().call),
        "later": isolane.by_name(AsyncTool()),
    }
    source = "const v = { b: 2, a: 5 }; export default [tool(v), await method(v), await later(v)];"
    assert run_code_sync(source, globals=given).raise_for_status().result == [3, 10, 7]


def test_systems_convert_by_their_runtime() -> None:
    async def ratio() -> Fraction:
        return Fraction(1, 3)

    async def main() -> None:
        given = {"ratio": ratio, "half": Fraction(1, 2), "day": datetime.date(2024, 5, 6)}
        async with isolane.Runtime(default=convert) as runtime:
            environment = TypeScriptEnvironment(globals=given, runtime=runtime)
            async with ProcessService(environment=environment) as service:
                created = await service.create("return [half, day, await ratio()]")
                record: Any = await service.wait(created["pid"])
                assert record["output"] == {"result": ["1/2", "2024-05-06", "1/3"]}, record
            async with Notebook(js={"globals": given, "runtime": runtime}) as notebook:
                cell = {"language": "js", "code": "half + day + await ratio()"}
                assert (await notebook.execute({"cells": [cell]})).text == "1/22024-05-061/3"

    asyncio.run(main())
