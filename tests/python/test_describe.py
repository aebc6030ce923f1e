"""The text of a value: that of a console, for all that crosses and for objects of Python."""

from __future__ import annotations

import asyncio
import dataclasses
import datetime
import enum
from decimal import Decimal
from typing import Any

import isolane
import pytest
from isolane import describe

UTC = datetime.timezone.utc


@dataclasses.dataclass
class Acc:
    total: Decimal
    inner: Any = None


class Pool:
    def __repr__(self) -> str:
        raise AssertionError("it is not asked")


class Hostile:
    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError(name)


class Model:
    def model_dump(self, *, mode: str) -> object:
        return {"mode": mode}


class Broken:
    def model_dump(self, *, mode: str) -> object:
        raise ValueError(mode)


class Zone(datetime.tzinfo):
    dst = tzname = None  # type: ignore[assignment]

    def utcoffset(self, _: datetime.datetime | None) -> datetime.timedelta:
        raise OSError("no zone")


class Color(enum.Enum):
    RED = "red"


def scan() -> None: ...


VALUES: list[tuple[Any, str]] = [
    (None, "null"),
    (isolane.undefined, "undefined"),
    ("it's", "it's"),
    (["it's", True, 1.5, 2**70, -0.0], '[ "it\'s", true, 1.5, 1180591620717411303424n, -0 ]'),
    ({"a": (1, {2}), "b-c": b"x"}, "{ a: [ 1, Set(1) { 2 } ], 'b-c': Uint8Array(1) [ 120 ] }"),
    ({1: "x"}, "Map(1) { 1 => 'x' }"),
    (datetime.datetime(2026, 11, 28, tzinfo=UTC), "2026-11-28T00:00:00.000Z"),
    ([datetime.date(2026, 11, 28), Color.RED], "[ '2026-11-28', 'red' ]"),
    (Acc(Decimal(3)), "Acc { total: 3, inner: null }"),
    (
        [Acc(Decimal("1.5"), Acc(Decimal(2)))],
        "[ Acc { total: 1.5, inner: Acc { total: 2, inner: null } } ]",
    ),
    (Model(), "Model { mode: 'python' }"),
    ([Pool(), Hostile(), Broken()], "[ [Pool], [Hostile], [Broken] ]"),
    ({"at": datetime.datetime(2020, 1, 1, tzinfo=Zone())}, "{ at: [datetime] }"),
    ([scan, Pool, len], "[ [Function: scan], [class Pool], [Function: len] ]"),
    ([ValueError("no")], "[ [ValueError: no] ]"),
    ([[[[[1]]]]], "[ [ [ [Array] ] ] ]"),
    (list(range(3000)), None),  # type: ignore[list-item]
]


@pytest.mark.parametrize("number", range(len(VALUES)))
def test_a_value_has_a_text(number: int) -> None:
    value, expected = VALUES[number]
    text = describe(value)
    if expected is None:
        assert text.startswith("[ 0, 1, 2, ")
        assert text.endswith(" 98, 99, ... 2900 more items ]")
    else:
        assert text == expected


def test_circles_and_shared_values() -> None:
    circle: list[Any] = [{"a": 1}]
    circle += [circle[0], circle]
    assert describe(circle) == "<ref *1> [ { a: 1 }, { a: 1 }, [Circular *1] ]"
    own = Acc(Decimal(1))
    own.inner = own
    assert describe(own) == "<ref *1> Acc { total: 1, inner: [Circular *1] }"


def test_the_text_has_a_limit() -> None:
    assert describe([1, 2, 3], limit=8) == "[ 1, …"
    assert len(describe("x" * 20_000).encode()) == 10_000
    with pytest.raises(ValueError, match=r"^limit must be a whole number from 1"):
        describe(1, limit=0)
    with pytest.raises(TypeError, match=r"^limit must be an int, got str|got 'x'$"):
        describe(1, limit="x")  # type: ignore[arg-type]


def test_an_interrupt_passes_through() -> None:
    class Interrupts:
        def model_dump(self, *, mode: str) -> object:
            raise KeyboardInterrupt(mode)

    with pytest.raises(KeyboardInterrupt):
        describe([Interrupts()])


def test_results_have_texts() -> None:
    source = "console.log(new (class Acc { total = 3 })()); export default { when: new Date(0) }"
    result = isolane.run_code_sync(source)
    assert describe(result.result) == "{ when: 1970-01-01T00:00:00.000Z }"
    assert result.logs[0].args == ["Acc { total: 3 }"]
    assert describe(result).startswith("CodeExecutionResult { status: 'success', result: { when: ")


def test_awaitables_and_functions_of_a_sandbox_have_texts() -> None:
    async def main() -> None:
        seen: list[str] = []
        source = "see(function act() {}, Promise.resolve(1)); export default 1"
        run = isolane.run_code(source, globals={"see": lambda *got: seen.append(describe(got))})
        await run
        assert seen == ["[ [Function: act], [Promise] ]"]

    asyncio.run(main())
