"""Values of Python as canonical text, so that values are compared as text.

In: a result of a run. Out: JSON in which each value has one spelling, the same as `pythonic.mjs`
makes of the other faces' values. Objects with an identity in Python are numbered in order of
occurrence within one message; a repeated one is a `$ref`.
"""

from __future__ import annotations

import asyncio
import math
import struct
from datetime import datetime, timedelta, timezone
from typing import Any

from isolane import SandboxError

MAX_SAFE_INTEGER = 2**53 - 1
EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def canonical(value: Any) -> str:
    """One message."""
    return _Canonical().write(value)


def text(value: str) -> str:
    """Printable ASCII unchanged, every other character by its code units."""
    units = value.encode("utf-16-be", "surrogatepass")
    return '"' + "".join(_unit(unit) for (unit,) in struct.iter_unpack(">H", units)) + '"'


def _unit(unit: int) -> str:
    return chr(unit) if 0x20 <= unit <= 0x7E and unit not in (0x22, 0x5C) else f"\\u{unit:04x}"


class _Canonical:
    def __init__(self) -> None:
        # Kept alive, so that no other object gets the address of a known one.
        self._seen: dict[int, tuple[int, Any]] = {}

    def write(self, value: Any) -> str:
        match value:
            case None:
                return "null"
            case bool():
                return "true" if value else "false"
            case int():
                if abs(value) <= MAX_SAFE_INTEGER:
                    return str(value)
                return f'{{"$bigint":"{"-" if value < 0 else ""}{abs(value):x}"}}'
            case float():
                bits = "NaN" if math.isnan(value) else struct.pack(">d", value).hex()
                return f'{{"$f64":"{bits}"}}'
            case str():
                return text(value)
            case bytes():
                return f'{{"$buffer":[{",".join(map(str, value))}]}}'
            case memoryview():
                own = ",".join(map(str, value.tobytes()))
                return f'{{"$memoryview":["{value.format}",[{own}]]}}'
            case datetime():
                since = value - EPOCH
                exact = since.microseconds % 1000 == 0 and value.tzinfo is timezone.utc
                milliseconds = since // timedelta(milliseconds=1)
                return f'{{"$date":{milliseconds}}}' if exact else text(repr(value))
            case asyncio.Future():
                return '{"$promise":true}'
            case _ if callable(value) and not isinstance(value, type):
                return '{"$function":true}'
        return self._object(value)

    def _object(self, value: Any) -> str:
        if id(value) in self._seen:
            return f'{{"$ref":{self._seen[id(value)][0]}}}'
        self._seen[id(value)] = (len(self._seen), value)
        match value:
            case list():
                return f"[{self._list(value)}]"
            case set():
                return f'{{"$set":[{self._list(value)}]}}'
            case dict():
                return (
                    f'{{"$dict":[{",".join(f"[{self._list(entry)}]" for entry in value.items())}]}}'
                )
            case SandboxError():
                fields = (value.name, value.message, getattr(value, "code", None))
                return f'{{"$error":[{self._list(fields)}]}}'
            case _:
                return f'{{"$instance":{text(type(value).__name__)}}}'

    def _list(self, values: Any) -> str:
        return ",".join(self.write(value) for value in values)
