"""Host functions that take an object of the sandbox as their keyword arguments."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any, ParamSpec, TypeVar

Parameters = ParamSpec("Parameters")
Returned = TypeVar("Returned")


def by_name(function: Callable[Parameters, Returned]) -> Callable[..., Returned]:
    """A host function that code calls with one object: its properties are the keyword arguments of
    `function`. Also a decorator. Models write `search({ query: 'a', limit: 5 })` for a function
    with several parameters.

    A call with other arguments than one object passes them on by position. A property that
    `function` does not take is a `TypeError` in the sandbox.
    """

    def arguments(args: tuple[Any, ...]) -> tuple[tuple[Any, ...], Mapping[str, Any]]:
        if len(args) == 1 and isinstance(args[0], Mapping):
            return (), args[0]
        return args, {}

    # The class of a callable object says whether its calls return coroutines.
    of_class = inspect.getattr_static(type(function), "__call__", None)
    is_async = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(of_class)
    call: Callable[..., Any] = function
    if is_async:

        @functools.wraps(function)
        async def called_async(*args: Any) -> Any:
            positional, named = arguments(args)
            return await call(*positional, **named)

        return called_async  # type: ignore[return-value]

    @functools.wraps(function)
    def called(*args: Any) -> Any:
        positional, named = arguments(args)
        return call(*positional, **named)

    return called
