"""Comparison of a run's results with expected ones.

In: a value of Python, and tagged JSON with patterns. Out: nothing, or the first difference. Exact
up to the differences that Python can see: the type of each value, the order of keys, negative zero,
the identity of objects. Two values are treated as one only where Python has one: undefined and
null, an ArrayBuffer and bytes, an object and a Map with texts as keys.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from datetime import datetime, timezone
from typing import Any, TypeAlias

from isolane import SandboxError

from parse import Json
from tags_python import FORMATS, LEAVES, is_absent, tag_of

MAX_SAFE_INTEGER = 2**53 - 1

# Describes the difference of the whole value; only called if there is one.
_Wrong: TypeAlias = Callable[[], str]


def mismatch(actual: Any, json: Json, path: str = "result") -> str | None:
    """The difference between `actual` and tagged JSON, or None."""
    return _Comparison().value(actual, json, path)


def mismatch_of_some(actual: dict[str, Any], json: dict[str, Json], path: str) -> str | None:
    """The same for a record, of which only the keys of `json` are compared."""
    comparison = _Comparison()
    for key, expected in json.items():
        if is_absent(expected):
            if key in actual:
                return f"{path}.{key} is there: {_show(actual[key])}"
        elif key not in actual:
            return f"{path}.{key} is not there"
        elif why := comparison.value(actual[key], expected, f"{path}.{key}"):
            return why
    return None


class _Comparison:
    """One comparison, with the objects that were met: their names and places."""

    def __init__(self) -> None:
        self._ids: dict[str, Any] = {}
        self._seen: dict[int, str] = {}

    def value(self, actual: Any, json: Json, path: str) -> str | None:
        tag = tag_of(json)
        if tag == "$id":
            self._ids[json["$id"]] = actual
            return self.value(actual, json["$value"], path)
        if tag == "$ref":
            name = json["$ref"]
            same = name in self._ids and actual is self._ids[name]
            return None if same else f"{path} is not the same object as '{name}'"
        if tag == "$any":
            return None
        if isinstance(actual, (list, dict, set, memoryview, BaseException)):
            other = self._seen.setdefault(id(actual), path)
            if other != path:
                return f"{path} is the same object as {other}"

        def wrong() -> str:
            return f"{path} is {_show(actual)}, not {_show(json)}"

        match tag:
            case None if isinstance(json, list):
                return self._list(actual, json, path, wrong)
            case None if isinstance(json, dict):
                present = [(k, v) for k, v in json.items() if not is_absent(v)]
                return self._dict(actual, present, path, wrong)
            case None:
                return None if _same(actual, _scalar(json)) else wrong()
            case "$entries" | "$map":
                return self._dict(actual, json[tag], path, wrong)
            case "$set":
                same = type(actual) is set and _same_members(actual, json[tag])
                return None if same else wrong()
            case "$error":
                return self._error(actual, json[tag], path, wrong)
            case _:
                return None if _is_leaf(actual, tag, json[tag]) else wrong()

    def _list(self, actual: Any, json: list[Json], path: str, wrong: _Wrong) -> str | None:
        if type(actual) is not list or len(actual) != len(json):
            return wrong()
        pairs = enumerate(zip(actual, json, strict=True))
        return _first(self.value(item, said, f"{path}[{i}]") for i, (item, said) in pairs)

    def _dict(
        self, actual: Any, entries: list[tuple[Json, Json]], path: str, wrong: _Wrong
    ) -> str | None:
        if type(actual) is not dict or len(actual) != len(entries):
            return wrong()
        for (key, value), (said_key, said) in zip(actual.items(), entries, strict=True):
            if self.value(key, said_key, f"{path}.keys()") is not None:
                return f"{path} has the key {key!r} where {said_key!r} is due"
            if why := self.value(value, said, f"{path}[{key!r}]"):
                return why
        return None

    def _error(self, actual: Any, said: dict[str, Json], path: str, wrong: _Wrong) -> str | None:
        if not isinstance(actual, SandboxError):
            return wrong()
        # The class of JavaScript is not one of Python, so the name represents it.
        fields = {"name": said["class"], "code": None, **said}
        del fields["class"]
        return _first(
            self.value(getattr(actual, key), expected, f"{path}.{key}")
            for key, expected in fields.items()
        )


def _is_leaf(actual: Any, tag: str, said: Json) -> bool:
    match tag:
        case "$match":
            return isinstance(actual, str) and _pattern(said).search(actual) is not None
        case "$undefined":
            return actual is None
        case "$number":
            return _same(actual, _number(float(said)))
        case "$date":
            return (
                type(actual) is datetime
                and actual.tzinfo is timezone.utc
                and actual == LEAVES[tag](said)
            )
        case "$view" if said[0] in FORMATS:
            return _same_view(actual, LEAVES[tag](said))
        case "$regexp" | "$sparse" | "$symbol":
            return False
        case _:
            return _same(actual, LEAVES[tag](said))


def _same(actual: Any, expected: Any) -> bool:
    """Equal, of one type, and with the same sign of zero."""
    if type(actual) is not type(expected):
        return False
    if isinstance(expected, float):
        if math.isnan(expected):
            return math.isnan(actual)
        return bool(actual == expected and math.copysign(1, actual) == math.copysign(1, expected))
    return bool(actual == expected)


def _same_view(actual: Any, expected: memoryview) -> bool:
    return (
        type(actual) is memoryview
        and actual.format == expected.format
        and actual.shape == expected.shape
        and actual.tobytes() == expected.tobytes()
    )


def _same_members(actual: set[Any], json: list[Json]) -> bool:
    """A set of Python has no order: each member must equal one of the expected ones."""
    left = list(actual)
    for said in json:
        found = next((i for i, member in enumerate(left) if mismatch(member, said) is None), None)
        if found is None:
            return False
        del left[found]
    return not left


def _scalar(json: Json) -> Any:
    """The Python value of a scalar of JavaScript."""
    return json if json is None or isinstance(json, (bool, str)) else _number(json)


def _number(number: float) -> float:
    """An int if integral and safe, else a float."""
    if isinstance(number, float) and not number.is_integer():
        return number
    if abs(number) > MAX_SAFE_INTEGER or (number == 0 and math.copysign(1, number) < 0):
        return float(number)
    return int(number)


def _pattern(said: str) -> re.Pattern[str]:
    """A pattern of ECMAScript: `$` is the very end, and classes are those of ASCII."""
    end = re.compile(r"(\\.|\[(?:\\.|[^\]\\])*\])|\$", re.DOTALL)
    return re.compile(end.sub(lambda found: found[1] or r"\Z", said), re.ASCII)


def _first(reasons: Iterable[str | None]) -> str | None:
    return next((why for why in reasons if why is not None), None)


def _show(value: Any) -> str:
    try:
        shown = repr(value)
    except RecursionError:
        shown = object.__repr__(value)
    return shown if len(shown) <= 2000 else f"{shown[:2000]}…"
