"""Tagged JSON of the contract table, as the values that a Python caller hands over.

In: JSON with `$` keys, as README.md lists them. Out: its value in Python. A value that only
JavaScript has (a hole, a symbol, a pattern) raises; a case that needs it has a `skip` line.
"""

from __future__ import annotations

import asyncio
import builtins
from collections.abc import Awaitable, Callable, Iterable, Mapping
from datetime import datetime, timedelta, timezone
from struct import calcsize
from typing import Any

from isolane import undefined

from parse import Json

EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)

#: The format of a memoryview for each kind of view that arrives as one.
FORMATS = {
    "Int8Array": "b",
    "Int16Array": "h",
    "Uint16Array": "H",
    "Int32Array": "i",
    "Uint32Array": "I",
    "Float32Array": "f",
    "Float64Array": "d",
    "BigInt64Array": "q",
    "BigUint64Array": "Q",
}

# fmt: off
TAGS = frozenset((
    "$undefined", "$number", "$bigint", "$string", "$date", "$map", "$set", "$regexp", "$error",
    "$bytes", "$view", "$buffer", "$sparse", "$id", "$ref", "$entries", "$fn", "$promise",
    "$rejected", "$instance", "$symbol", "$absent", "$any", "$match", "$repeat",
))
# fmt: on


def tag_of(json: Json) -> str | None:
    """The tag of a tagged object."""
    if not isinstance(json, dict):
        return None
    first = next(iter(json), None)
    return first if first in TAGS else None


def is_absent(json: Json) -> bool:
    """Whether a key must be absent."""
    return tag_of(json) == "$absent"


class Values:
    """Reads the values of one message: objects are shared by their `$id`."""

    def __init__(self, functions: Mapping[str, Callable[..., Any]]) -> None:
        self._functions = functions
        self._shared: dict[str, Any] = {}

    def untag(self, json: Json) -> Any:
        """The value of tagged JSON."""
        if isinstance(json, list):
            return [self.untag(element) for element in json]
        if not isinstance(json, dict):
            return json
        tag = tag_of(json)
        if tag is None:
            return self._dict(json.items())
        if tag in LEAVES:
            return LEAVES[tag](json[tag])
        return self._tagged(tag, json)

    def _tagged(self, tag: str, json: dict[str, Json]) -> Any:
        said = json[tag]
        match tag:
            case "$map" | "$entries":
                return self._dict(said)
            case "$set":
                return {self.untag(member) for member in said}
            case "$error":
                return exception(said)
            case "$id":
                return self._identified(said, json["$value"])
            case "$ref":
                return self._shared[said]
            case "$fn":
                return self._functions[said]
            case "$promise":
                return promise(self.untag(said))
            case "$rejected":
                return promise(rejection=self.untag(said))
            case _:
                raise ValueError(f"the tag {tag} says nothing of a value of Python")

    def _dict(self, entries: Iterable[tuple[Json, Json]]) -> dict[Any, Any]:
        return {self.untag(key): self.untag(value) for key, value in entries}

    def _identified(self, name: str, json: Json) -> Any:
        # Filled after it has its name, so that it can contain itself.
        if isinstance(json, list):
            elements: list[Any] = []
            self._shared[name] = elements
            elements.extend(self.untag(element) for element in json)
            return elements
        if isinstance(json, dict) and tag_of(json) in (None, "$map", "$entries"):
            entries: dict[Any, Any] = {}
            self._shared[name] = entries
            entries.update(self.untag(json))
            return entries
        value = self._shared[name] = self.untag(json)
        return value


def promise(value: Any = None, *, rejection: BaseException | None = None) -> Awaitable[Any]:
    """A promise that is settled: a future of the loop, or a coroutine where none runs yet."""
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        return _settled(value, rejection)
    future: asyncio.Future[Any] = loop.create_future()
    if rejection is None:
        future.set_result(value)
    else:
        future.set_exception(rejection)
    return future


async def _settled(value: Any, rejection: BaseException | None) -> Any:
    if rejection is not None:
        raise rejection
    return value


def exception(said: dict[str, Json]) -> Exception:
    """An exception that crosses as that error: its class gives class and name."""
    known = getattr(builtins, said["class"], Exception)
    name = said.get("name", said["class"])
    raised = known if known.__name__ == name else type(str(name), (known,), {})
    made: Exception = raised(said.get("message", ""))
    if "code" in said:
        vars(made)["code"] = said["code"]
    return made


def view(said: list[Json]) -> bytes | memoryview:
    """A view of JavaScript in Python: its own bytes, with a format if it has one."""
    kind, offset, length, whole = said
    if kind not in FORMATS:
        return bytes(whole[offset : offset + length])
    form: Any = FORMATS[kind]
    own = bytes(whole[offset : offset + length * calcsize(form)])
    return memoryview(own).cast(form)


def text(units: list[int]) -> str:
    """A string by its UTF-16 code units, lone surrogates kept."""
    utf16 = b"".join(unit.to_bytes(2, "little") for unit in units)
    return utf16.decode("utf-16-le", "surrogatepass")


def moment(milliseconds: int | None) -> datetime:
    """A date by epoch milliseconds."""
    if milliseconds is None:
        raise ValueError("there is no invalid datetime")
    return EPOCH + timedelta(milliseconds=milliseconds)


#: Tags with no values in them.
LEAVES: dict[str, Callable[[Any], Any]] = {
    "$undefined": lambda _: undefined,
    "$number": float,
    "$bigint": int,
    "$string": text,
    "$date": moment,
    "$bytes": bytes,
    "$view": view,
    "$buffer": bytes,
    "$instance": lambda name: type(name, (), {})(),
    "$repeat": lambda said: said[0] * said[1],
}
