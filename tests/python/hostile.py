"""Hostile values of a host, and the ways in for them.

In: a value, made anew for each way. Out: the value as the sandbox sees it, or the words of its
refusal.
"""

from __future__ import annotations

import collections
import datetime as dt
from collections.abc import Callable
from typing import Any, NoReturn

from isolane import Runtime, SerializationError

Make = Callable[[], Any]

SEE = """
    const kinds = { Map: (v) => [...v], Set: (v) => [...v], Uint8Array: (v) => v.join(),
        Date: (v) => +v, Error: (v) => `${v.name}: ${v.message}` };
    const see = (v) => {
        const kind = Object.prototype.toString.call(v).slice(8, -1);
        const shown = typeof v === 'bigint' ? String(v) : (kinds[kind] ?? ((v) => v))(v);
        return `${kind} ${JSON.stringify(shown)}`;
    };
"""
TRIED = """
    const tried = async (f) => {
        try { return see(await f()); } catch (e) { return `${e.name}: ${e.message}`; }
    };
"""


def read_in(runtime: Runtime, way: str, make: Make, see: str = SEE) -> str:
    """The value as the sandbox sees it after that way in, or the reason why it is refused."""

    async def later() -> Any:
        return make()

    async def call(function: Callable[[Any], Any]) -> Any:
        return await function(make())

    sources = {
        "imports": "import { v } from 'm'; export default see(v);",
        "args": "export default see;",
        "answer": "export default await tried(f);",
        "promise": "export default await tried(later);",
        "callback": "export default await call(see).catch((e) => `${e.name}: ${e.message}`);",
    }
    inputs: dict[str, Any] = {"globals": {"f": make, "later": later, "call": call}}
    if way == "globals":
        inputs["globals"]["v"] = make()
    elif way == "imports":
        inputs["imports"] = {"m": {"v": make()}}
    elif way == "args":
        inputs["execute"] = {"args": [make()]}
    source = see + TRIED + sources.get(way, "export default see(v);")
    try:
        result = runtime.run_code_sync(source, **inputs)
    except SerializationError as refused:
        return f"SerializationError: {refused}"
    seen = str(result.raise_for_status().result)
    assert runtime.run_code_sync("export default 1 + 1").result == 2
    return seen


PLACES = {
    "globals": "globals.v",
    "imports": "imports.m.v",
    "args": "execute.args[0]",
    "answer": "the answer of f",
    "promise": "the answer of later",
    "callback": "arguments[0]",
}


def raises(*_: Any, **__: Any) -> NoReturn:
    raise RuntimeError("code of the value ran")


LIES = """
    __iter__ __len__ __getitem__ __contains__ __hash__ __eq__ __bool__ __index__ __int__ __float__
    __str__ __repr__ __bytes__ __buffer__ __getattr__ __getattribute__ __reduce__ __reversed__
    __call__ __await__ __aiter__ __next__ __lt__ __abs__ __neg__ __sub__ __format__ __dir__
    keys items values copy tobytes utcoffset timestamp astimezone encode to_bytes bit_length
"""


def lying(base: type, *args: Any, claims: type = int) -> Any:
    """An instance of a subclass whose every method raises and which claims to be of another
    class."""
    own = dict.fromkeys(LIES.split(), raises) | {"__class__": property(lambda _: claims)}
    if issubclass(base, BaseException):
        own = dict.fromkeys(("__str__", "__repr__", "__getattribute__", "__reduce__"), raises)
    return type("Liar", (base,), own)(*args)


class Hook(dt.tzinfo):
    """A zone that does something when a datetime is read."""

    dst = tzname = None  # type: ignore[assignment]

    def __init__(self, act: Callable[[], Any]) -> None:
        self.act = act

    def utcoffset(self, _: dt.datetime | None) -> dt.timedelta:
        self.act()
        return dt.timedelta()


def hooked(kind: str, act: Callable[[], Any]) -> Any:
    """A value that acts when it is read."""

    class ToldError(Exception):
        def __str__(self) -> str:
            act()
            return "told"

    class CodedError(Exception):
        @property
        def code(self) -> str:
            act()
            return "code"

    class Named:
        @property
        def __name__(self) -> str:
            act()
            return "named"

        def __call__(self) -> None: ...

    class Key(str):
        known = False

        def __hash__(self) -> int:
            if self.known:
                act()
            return hash("key")

    def keyed() -> Any:
        key = Key("key")
        table = collections.OrderedDict([(key, 1)])
        key.known = True
        return table

    kinds: dict[str, Make] = {
        "zone": lambda: dt.datetime(1970, 1, 1, tzinfo=Hook(act)),
        "text": ToldError,
        "code": CodedError,
        "name": Named,
        "key": keyed,
    }
    return kinds[kind]()


def nested(levels: int, wrap: Callable[[Any], Any]) -> Any:
    value: Any = 0
    for _ in range(levels):
        value = wrap(value)
    return value
