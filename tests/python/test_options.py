"""Misuse that is refused before anything starts, with exceptions of Python."""

from __future__ import annotations

import asyncio
import collections
import types
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from isolane import (
    CodeExecution,
    QueueFullError,
    Runtime,
    RuntimeClosedError,
    SerializationError,
    run_code,
    run_code_sync,
)

from ceilings import CEILING_S, in_loop
from isolation import ISOLATION


class Lazy(Mapping[str, Any]):
    """A mapping that is no dict."""

    def __init__(self, **items: Any) -> None:
        self._items = items

    def __getitem__(self, key: str) -> Any:
        return self._items[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)


class Broken(Lazy):
    def __iter__(self) -> Iterator[str]:
        raise LookupError("broken")


MISUSE: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"source": 3}, TypeError, "source"),
    ({"source": None}, TypeError, "source"),
    ({"source": b"1"}, TypeError, "source"),
    ({"nope": 1}, TypeError, "nope"),
    ({"memoryLimitBytes": 1}, TypeError, "memoryLimitBytes"),
    ({"language": "python"}, TypeError, "language"),
    ({"language": 1}, TypeError, "language"),
    ({"execute": "default"}, TypeError, "execute"),
    ({"execute": {"function": "f"}}, TypeError, "execute"),
    ({"execute": {"fn": ""}}, TypeError, "execute.fn"),
    ({"execute": {"fn": 1}}, TypeError, "execute.fn"),
    ({"execute": {"args": "ab"}}, TypeError, "execute.args"),
    ({"execute": {"args": {1, 2}}}, TypeError, "execute.args"),
    ({"execute": {1: 2}}, TypeError, "execute"),
    ({"imports": []}, TypeError, "imports"),
    ({"imports": {"m": []}}, TypeError, "imports"),
    ({"imports": {"m": len}}, TypeError, "imports"),
    ({"imports": {"./m": {}}}, TypeError, "./m"),
    ({"imports": {1: {}}}, TypeError, "imports"),
    ({"modules": {"m": ""}}, TypeError, "m"),
    ({"modules": {"./m.js": 1}}, TypeError, "modules"),
    ({"modules": {"../m.js": ""}}, TypeError, "../m.js"),
    ({"modules": [("./m.js", "")]}, TypeError, "modules"),
    ({"globals": "x"}, TypeError, "globals"),
    ({"globals": {"not a name": 1}}, TypeError, "not a name"),
    ({"globals": {"undefined": 1}}, TypeError, "undefined"),
    ({"globals": {1: 1}}, TypeError, "globals"),
    ({"globals": {"\ud800": 1}}, TypeError, "globals"),
    ({"globals": {"a": object()}}, SerializationError, "globals.a: an instance of object"),
    ({"globals": Broken(a=1)}, LookupError, "broken"),
    ({"memory_limit_bytes": 0}, ValueError, "memory_limit_bytes"),
    ({"memory_limit_bytes": -1}, ValueError, "memory_limit_bytes"),
    ({"memory_limit_bytes": 2**53}, ValueError, "memory_limit_bytes"),
    ({"memory_limit_bytes": 10**5000}, ValueError, "memory_limit_bytes"),
    ({"memory_limit_bytes": -(10**5000)}, ValueError, "memory_limit_bytes"),
    ({"memory_limit_bytes": 1.5}, TypeError, "memory_limit_bytes"),
    ({"memory_limit_bytes": True}, TypeError, "memory_limit_bytes"),
    ({"memory_limit_bytes": "1"}, TypeError, "memory_limit_bytes"),
    ({"filename": ""}, TypeError, "filename"),
    ({"filename": b"a"}, TypeError, "filename"),
    ({"report": 1}, TypeError, "report"),
    ({"report": "print"}, TypeError, "report"),
]


@pytest.mark.parametrize(("options", "expected", "named"), MISUSE, ids=range(len(MISUSE)))
def test_misuse_is_raised_at_once(
    options: dict[str, Any], expected: type[Exception], named: str
) -> None:
    called: list[int] = []
    arguments = {"source": "f()", "globals": {"f": called.append}} | options

    async def main() -> None:
        with pytest.raises(expected) as caught:
            run_code(**arguments)
        assert named in str(caught.value)
        await asyncio.sleep(0)

    with pytest.raises(expected) as caught:
        run_code_sync(**arguments)
    assert named in str(caught.value)
    asyncio.run(main())
    assert called == []


@pytest.mark.parametrize(
    ("options", "expected", "named"),
    [
        ({"isolation": "planet"}, TypeError, "isolation"),
        ({"isolation": 1}, TypeError, "isolation"),
        ({"safety_cap_ms": 0}, ValueError, "safety_cap_ms"),
        ({"safety_cap_ms": "1"}, TypeError, "safety_cap_ms"),
        ({"max_concurrent_runs": 0}, ValueError, "max_concurrent_runs"),
        ({"max_queued_runs": -1}, ValueError, "max_queued_runs"),
        ({"max_stuck_threads": 0}, ValueError, "max_stuck_threads"),
        ({"ready_isolates": -1}, ValueError, "ready_isolates"),
        ({"compile_cache_bytes": -1}, ValueError, "compile_cache_bytes"),
        ({"max_runs": 1}, TypeError, "max_runs"),
    ],
)
def test_misuse_of_a_runtime(
    options: dict[str, Any], expected: type[Exception], named: str
) -> None:
    with pytest.raises(expected, match=named):
        Runtime(**options)


@pytest.mark.skipif(ISOLATION == "process", reason="processes keep no compiled modules")
def test_modules_that_are_too_large_for_the_cache_are_counted() -> None:
    with Runtime(compile_cache_bytes=8000) as runtime:
        large = f"'{'a' * 8000}'; export default 1"
        for source in ["export default 1", large, large]:
            assert runtime.run_code_sync(source).result == 1
        stats = runtime.stats()
    assert stats.uncached_modules == 2
    assert 0 < stats.compile_cache_bytes < 8000


def proxy(**items: Any) -> Mapping[str, Any]:
    return types.MappingProxyType(items)


def test_any_mapping_and_any_sequence_of_the_two() -> None:
    source = "import { a } from 'm'; import { b } from './b.js'; export default (c) => [a, b, c, d]"
    expected = [1, 2, 3, 4]
    makers: list[Any] = [dict, Lazy, collections.OrderedDict, proxy]
    for make in makers:
        result = run_code_sync(
            source,
            imports=make(m=make(a=1)),
            modules=make(**{"./b.js": "export const b = 2"}),
            globals=make(d=4),
            execute=make(args=(3,)),
        )
        assert result.raise_for_status().result == expected


def test_none_is_the_default() -> None:
    options: dict[str, Any] = dict.fromkeys(
        ("execute", "imports", "modules", "globals", "memory_limit_bytes", "filename", "report")
    )
    assert run_code_sync("export default 1", **options).result == 1
    options["execute"] = {"fn": None, "args": None}
    assert run_code_sync("export default 1", **options).result == 1


def test_a_full_queue_and_a_closed_runtime() -> None:
    async def main() -> None:
        async with Runtime(max_concurrent_runs=1, max_queued_runs=1) as runtime:
            handles: list[CodeExecution] = []

            def start_too_many() -> None:
                while len(handles) < 5:
                    handles.append(runtime.run_code("for (;;);"))

            with pytest.raises(QueueFullError, match="1 runs are queued") as full:
                start_too_many()
            assert full.value.code == "QUEUE_FULL"
            assert isinstance(full.value, RuntimeError)
        for handle in handles:
            result = await handle
            assert result.error is not None
            assert result.error.message == "runtime closed"
        with pytest.raises(RuntimeClosedError, match="the runtime is closed") as closed:
            runtime.run_code("export default 1")
        assert closed.value.code == "RUNTIME_CLOSED"
        assert isinstance(closed.value, RuntimeError)
        with pytest.raises(RuntimeClosedError):
            runtime.session()
        with pytest.raises(RuntimeClosedError):
            await asyncio.to_thread(runtime.run_code_sync, "export default 1")
        stats = runtime.stats()
        assert (stats.computing, stats.parked, stats.queued) == (0, 0, 0)
        assert stats.settled["terminated"] == len(handles)
        await runtime.aclose()
        await asyncio.to_thread(runtime.close)

    asyncio.run(asyncio.wait_for(main(), CEILING_S))


@in_loop
async def test_close_may_be_called_in_the_loop_of_its_runs() -> None:
    with Runtime() as runtime:
        handle = runtime.run_code("for (;;);")
    result = await handle
    assert result.status == "terminated"


@in_loop
async def test_an_exception_in_the_block_closes_the_runtime() -> None:
    handles: list[CodeExecution] = []

    async def fail() -> None:
        async with Runtime() as runtime:
            handles.append(runtime.run_code("for (;;);"))
            raise KeyError("no")

    with pytest.raises(KeyError, match="no"):
        await fail()
    assert (await handles[0]).status == "terminated"
