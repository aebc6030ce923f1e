"""Fairness of a sandbox that computes or sends a lot to other runs and to the event loop."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable
from typing import Any

import isolane
import pytest

from ceilings import in_loop

COUNT = 10_000
FLOOD = (
    f"take(Array.from({{ length: {COUNT} }}, (_, i) => Promise.resolve(i)));"
    " await go; export default 'over'"
)


class Flood:
    """A run that hands over promises by the thousand, and the number that has arrived."""

    def __init__(self, runtime: isolane.Runtime) -> None:
        loop = asyncio.get_running_loop()
        self.promises = self.turns = 0
        self.began = asyncio.Event()
        self.go: asyncio.Future[None] = loop.create_future()
        self.run = runtime.run_code(FLOOD, globals={"take": self._take, "go": self.go})

    def _take(self, promises: list[asyncio.Future[Any]]) -> None:
        for promise in promises:
            promise.add_done_callback(self._heard)

    def _heard(self, promise: asyncio.Future[Any]) -> None:
        if promise.exception() is None:
            if self.promises == 0:
                self._turn()
            self.promises += 1
            self.began.set()

    def _turn(self) -> None:
        self.turns += 1
        if self.promises < COUNT and self.run.running:
            asyncio.get_running_loop().call_soon(self._turn)


async def _later() -> int:
    return 1


@pytest.mark.parametrize(
    "source", ["for (;;);", "for (;;) f();", "for (;;) await g();", "for (;;) report(1);"]
)
@in_loop
async def test_64_runs_that_spin_keep_no_other_from_its_result(source: str) -> None:
    given: dict[str, Any] = {"globals": {"f": lambda: 1, "g": _later}, "report": lambda _: None}
    async with isolane.Runtime() as runtime:
        spinning: list[Awaitable[isolane.CodeExecutionResult]]
        spinning = [runtime.run_code(source, **given) for _ in range(64)]
        for _ in range(5):
            result = await runtime.run_code("export default f() + await g()", **given)
            assert result.result == 2
    for ended in await asyncio.gather(*spinning):
        assert ended.status == "terminated"


@in_loop
async def test_one_that_settles_promises_by_the_thousand_leaves_the_loop_its_turns() -> None:
    async with isolane.Runtime() as runtime:
        flood = Flood(runtime)
        await flood.began.wait()
        # Another run is handled before all of them.
        other = runtime.run_code("export default 1")
        # The loop has no turn until the other run is over.
        while runtime.stats().settled["success"] < 1:
            time.sleep(0.001)  # noqa: ASYNC251
        assert (await other).result == 1
        assert flood.promises < COUNT
        flood.go.set_result(None)
        assert (await flood.run).result == "over"
        assert flood.promises == COUNT
        assert flood.turns > COUNT / 1_000


@in_loop
async def test_one_that_has_told_a_lot_is_ended_before_all_of_that_is_heard() -> None:
    async with isolane.Runtime() as runtime:
        flood = Flood(runtime)
        await flood.began.wait()
        flood.run.terminate("enough")
        result = await flood.run
        assert result.error is not None
        assert result.error.message == "enough"
        assert flood.promises < COUNT


@in_loop
async def test_a_queue_of_thousands_is_ended_at_once_and_has_room_again() -> None:
    async with isolane.Runtime(max_concurrent_runs=1, max_queued_runs=3_000) as runtime:
        runs: list[isolane.CodeExecution] = []

        def fill() -> None:
            while True:
                runs.append(runtime.run_code("for (;;);"))

        with pytest.raises(RuntimeError, match="3000 runs are queued"):
            fill()
        assert runtime.stats().queued >= 2_999
        for run in runs:
            run.terminate("enough")
        for result in await asyncio.gather(*runs):
            assert result.status == "terminated"
        assert (await runtime.run_code("export default 1")).result == 1
        assert runtime.stats().queued == 0
