"""The host functions of the contract table, in Python; README.md describes each.

They are written as a user of Python would write them: plain functions, coroutines, exceptions. An
argument that JavaScript may leave out is `undefined` then, and additional ones are ignored.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any, NoReturn, TypeAlias

from isolane import CellExecution, CodeExecution, SandboxError, undefined

from compare_python import MAX_SAFE_INTEGER
from tags_python import FORMATS

HostFunction: TypeAlias = Callable[..., Any]

SETTLE_TURNS = 10
VIEWS = {form: kind for kind, form in FORMATS.items()}


class Error(Exception):
    """The exception where the table has `Error`: an exception crosses under its class's name."""

    code: object


class Pool:
    """A class of which no instance can be cloned."""


def host_functions(handle: Callable[[], CodeExecution | CellExecution]) -> dict[str, HostFunction]:
    """The functions for one run. `handle()` returns the handle of that run."""
    kept: list[HostFunction] = []

    # Made for this run alone, so that `isSame` never compares with another run's value.
    def echo(x: Any = undefined, *_: Any) -> Any:
        return x

    def call_kept(*a: Any) -> Any:
        return kept[-1](*a)

    def terminate(reason: str | None = None) -> None:
        if reason is None:
            handle().terminate()
        else:
            handle().terminate(reason)

    return {
        "echo": echo,
        "add": lambda a, b: a + b,
        "args": lambda *a: a,
        "fail": fail,
        "failType": fail_type,
        "failCode": fail_code,
        "failValue": fail_value,
        "later": later,
        "laterFail": later_fail,
        "never": never,
        "fnLater": lambda: {"promise": later(42)},
        "makeAdder": lambda n: lambda m: n + m,
        "call": lambda f, *a: f(*a),
        "callTwice": call_twice,
        "keep": kept.append,
        "callKept": call_kept,
        "isSame": lambda f: f is echo,
        "describe": describe,
        "terminate": terminate,
        "instance": instance,
        "big": lambda n: "x" * n,
        "settle": settle,
    }


def fail(message: str) -> NoReturn:
    raise Error(message)


def fail_type(message: str) -> NoReturn:
    raise TypeError(message)


def fail_code(message: str, code: object) -> NoReturn:
    error = Error(message)
    error.code = code
    raise error


def fail_value(value: Any) -> NoReturn:
    raise value if isinstance(value, BaseException) else SandboxError.of(value)


async def later(x: Any = undefined, *_: Any) -> Any:
    await turn()
    return x


async def later_fail(message: str) -> NoReturn:
    await turn()
    raise Error(message)


def instance() -> Pool:
    return Pool()


def never() -> asyncio.Future[Any]:
    return asyncio.get_running_loop().create_future()


async def call_twice(f: Callable[[Any], Awaitable[Any]], x: Any) -> Any:
    return await f(await f(x))


async def settle() -> None:
    for _ in range(SETTLE_TURNS):
        await turn()


async def turn() -> None:
    """A turn of the event loop."""
    await asyncio.sleep(0)


def describe(value: Any) -> str:
    """The kind of an argument, in the words of JavaScript as far as Python still knows it."""
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "number" if abs(value) <= MAX_SAFE_INTEGER else "bigint"
        case float():
            return "-0" if repr(value) == "-0.0" else "number"
        case str():
            return "string"
        case bytes():
            return f"Uint8Array({len(value)})"
        case memoryview():
            return f"{VIEWS[value.format]}({len(value)})"
        case list():
            return f"Array({len(value)})"
        case set():
            return f"Set({len(value)})"
        case dict() if all(isinstance(key, str) for key in value):
            return f"Object({','.join(value)})"
        case dict():
            return f"Map({len(value)})"
        case datetime():
            return "Date"
        case SandboxError():
            return value.name
        case asyncio.Future():
            return "Promise"
        case _ if callable(value):
            return "function"
        case _:
            return type(value).__name__
