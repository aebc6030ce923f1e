"""Costs of a run from Python, as ratios to references measured in the same process.

In: `--quick` for few samples. Out: a table in Markdown, with the rows of `node.mjs`. There are no
bounds: machines and their noise differ, so a figure means something only beside its reference.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import threading
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import isolane

HERE = Path(__file__).parent
ECHO = "export default (value) => value"
ONE = "export default 1 + 1"
FRESH = "a fresh run of `1 + 1`, awaited"
SLEEP = "`await asyncio.sleep(0)`"
JSON = "`json` there and back"
FEWEST = 3
LOOP = "export default async (n) => { for (let i = 0; i < n; i++) CALL; }"
ALL = """const calls = (n) => Array.from({ length: n }, (_, i) => add(i, 1));
export default async (n) => (await Promise.all(calls(n))).length"""

Act = Callable[[int], Awaitable[object]]


def micros(seconds: float) -> str:
    return f"{_digits(seconds * 1e6)} µs"


def per_second(count: float) -> str:
    return f"{_digits(count)} runs/s"


def kib(count: float) -> str:
    return f"{_digits(count / 1024)} KiB"


def _digits(value: float) -> str:
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def succeed(outcome: isolane.CodeExecutionResult) -> None:
    if outcome.error is not None:
        raise RuntimeError(f"{outcome.status}: {outcome.error.message}")


async def run(source: str, **options: Any) -> None:
    succeed(await isolane.run_code(source, **options))


def run_sync(source: str, **options: Any) -> None:
    succeed(isolane.run_code_sync(source, **options))


def resident_bytes() -> int:
    pages = Path("/proc/self/statm").read_text().split()[1]
    return int(pages) * 4096


class Samples:
    """The durations of something that is repeated until the time for it is over. A tenth of the
    time is warm-up."""

    def __init__(self, budget_s: float) -> None:
        self.budget_s, self.count = budget_s, 0
        self.took: list[float] = []
        self.began = self.start = time.perf_counter()

    def wants_more(self) -> bool:
        passed = time.perf_counter() - self.began
        return passed < self.budget_s or len(self.took) < FEWEST

    def __enter__(self) -> None:
        self.start = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        now = time.perf_counter()
        self.count += 1
        if now - self.began >= self.budget_s / 10:
            self.took.append(now - self.start)

    def median(self) -> float:
        return statistics.median(self.took)


class Bench:
    def __init__(self, quick: bool) -> None:
        self.budget_s = 0.06 if quick else 0.8
        self.calls = 1_000 if quick else 10_000
        self.parked = 100 if quick else 1_000
        self.ended = 5 if quick else 50
        self.sleep = 0.0
        self.rows: list[str] = []

    def row(
        self,
        what: str,
        cost: float,
        reference: str,
        cost0: float,
        unit: Callable[[float], str] = micros,
    ) -> None:
        ratio = f"{cost / cost0:.2f}"
        self.rows.append(f"| {what} | {unit(cost)} | {reference} | {unit(cost0)} | {ratio} |")

    async def time(self, act: Act) -> float:
        samples = Samples(self.budget_s)
        while samples.wants_more():
            with samples:
                await act(samples.count)
        return samples.median()

    def time_sync(self, act: Callable[[int], object]) -> float:
        samples = Samples(self.budget_s)
        while samples.wants_more():
            with samples:
                act(samples.count)
        return samples.median()

    async def rate(self, lanes: int, act: Act) -> float:
        """The rate of `act` per second, with so many at once."""
        done, began = 0, time.perf_counter()

        async def lane() -> None:
            nonlocal done
            while time.perf_counter() - began < self.budget_s:
                await act(done)
                done += 1

        await asyncio.gather(*(lane() for _ in range(lanes)))
        return done / (time.perf_counter() - began)

    async def main(self) -> None:
        # This comes first: memory that the others leave behind would hide the memory of runs.
        await self.waiting()
        memory = self.rows.pop()
        self.sleep = await self.time(lambda _: asyncio.sleep(0))
        await self.fresh()
        await self.host_calls()
        await self.values()
        await self.agent()
        await self.endless()
        self.rows.append(memory)

    async def fresh(self) -> None:
        cost = await self.time(lambda _: run(ONE))
        self.row(FRESH, cost, SLEEP, self.sleep)
        single = await self.rate(1, lambda _: run(ONE))
        for lanes in (2, 16):
            rate = await self.rate(lanes, lambda _: run(ONE))
            self.row(f"{lanes} at once", rate, "one after another", single, per_second)
        lines = (HERE / "fifty.ts").read_text()
        seen = await self.time(lambda _: run(lines))
        self.row("50 lines of TypeScript, seen before", seen, FRESH, cost)

        def edited(edition: int) -> str:
            return lines.replace("edition: number = 0", f"edition: number = {edition + 1}")

        unseen = await self.time(lambda edition: run(edited(edition)))
        self.row("50 lines, never seen", unseen, FRESH, cost)

    def without_loop(self) -> None:
        cost = self.time_sync(lambda _: run_sync(ONE))
        compiled = self.time_sync(lambda _: eval(compile("1 + 1", "-", "eval"), {}))
        self.row("`run_code_sync` of `1 + 1`", cost, "`1 + 1` compiled and run by Python", compiled)
        value = records(100_000)
        cost = self.time_sync(lambda _: run_sync(ECHO, execute={"args": [value]}))
        self.row("`run_code_sync`, 100 KB in and out", cost, JSON, self.json(value))

    async def host_calls(self) -> None:
        async def later(a: int, b: int) -> int:
            return a + b

        def now(a: int, b: int) -> int:
            return a + b

        async def each(source: str, add: Callable[[int, int], object]) -> float:
            execute = {"args": [self.calls]}
            whole = await self.time(lambda _: run(source, globals={"add": add}, execute=execute))
            return whole / self.calls

        synchronous = await each(LOOP.replace("CALL", "add(i, 1)"), now)
        self.row("a synchronous host call", synchronous, SLEEP, self.sleep)
        successive = await each(LOOP.replace("CALL", "await add(i, 1)"), later)
        self.row("an asynchronous one, one after another", successive, SLEEP, self.sleep)
        together = await each(ALL, later)
        self.row("an asynchronous one, all at once", together, SLEEP, self.sleep)

    async def values(self) -> None:
        async def there(value: object) -> float:
            return await self.time(lambda _: run(ECHO, execute={"args": [value]}))

        for what, size in (("1 KB", 1_000), ("100 KB", 100_000), ("5 MB", 5_000_000)):
            value = records(size)
            cost = await there(value)
            self.row(f"{what} of records, in and out", cost, JSON, self.json(value))
        data = b"\7" * 10_000_000
        cost = await there(data)
        twice = self.time_sync(lambda _: bytearray(bytearray(data)))
        self.row("10 MB of bytes, in and out", cost, "copied twice", twice)

    def json(self, value: object) -> float:
        return self.time_sync(lambda _: json.loads(json.dumps(value)))

    async def agent(self) -> None:
        regions = ("north", "east", "south", "west")
        table = [
            {
                "id": id,
                "region": regions[id % 4],
                "product": f"product {id % 37}",
                "units": id % 100,
                "price": id / 7,
                "note": "as agreed" if id % 9 else "urgent",
            }
            for id in range(2_000)
        ]

        async def tax_of(_region: str) -> float:
            return 0.25

        program = (HERE / "agent.ts").read_text()
        options = {"globals": {"taxOf": tax_of}, "execute": {"args": [table]}}
        whole = await self.time(lambda _: run(program, **options))
        what = "8 host calls and 200 KB in, TypeScript"
        self.row(what, whole, f"{JSON}, of the 200 KB", self.json(table))

    async def endless(self) -> None:
        """From `terminate()` to settlement."""
        samples = []
        for _ in range(self.ended):
            started = asyncio.Event()
            handle = isolane.run_code("started(); for (;;);", globals={"started": started.set})
            await started.wait()
            began = time.perf_counter()
            handle.terminate()
            status = (await handle).status
            samples.append(time.perf_counter() - began)
            if status != "terminated":
                raise RuntimeError(status)
        self.row("ending an endless loop", statistics.median(samples), SLEEP, self.sleep)

    async def waiting(self) -> None:
        """The memory of a run that waits for its host."""
        thread = held_by_a_thread()
        runtime = isolane.Runtime()
        succeed(await runtime.run_code(ONE))
        at_gate, full, opened = 0, asyncio.Event(), asyncio.Event()

        async def gate() -> None:
            nonlocal at_gate
            at_gate += 1
            if at_gate == self.parked:
                full.set()
            await opened.wait()

        def wait() -> Awaitable[isolane.CodeExecutionResult]:
            return runtime.run_code("export default await gate()", globals={"gate": gate})

        before = resident_bytes()
        handles = [wait() for _ in range(self.parked)]
        await full.wait()
        each = (resident_bytes() - before) / self.parked
        opened.set()
        for handle in handles:
            succeed(await handle)
        await runtime.aclose()
        what = f"held by a run that waits, of {self.parked:,}"
        self.row(what, each, "by a thread that sleeps", thread, kib)


def records(size: int) -> list[dict[str, object]]:
    """Records with so many bytes as JSON."""

    def record(id: int) -> dict[str, object]:
        return {"id": id, "name": f"record {id}", "tags": ["a", "b"], "score": id * 1.5}

    count = -(-size // len(json.dumps(record(1000), separators=(",", ":"))))
    return [record(id) for id in range(count)]


def held_by_a_thread() -> float:
    end = threading.Event()
    threads = [threading.Thread(target=end.wait) for _ in range(100)]
    before = resident_bytes()
    for thread in threads:
        thread.start()
    each = (resident_bytes() - before) / len(threads)
    end.set()
    for thread in threads:
        thread.join()
    return each


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    bench = Bench(parser.parse_args().quick)
    asyncio.run(bench.main())
    bench.without_loop()
    head = "| what | figure | reference | figure | ratio |\n|---|--:|---|--:|--:|"
    print("### A run from Python\n", head, *bench.rows, "", sep="\n")


if __name__ == "__main__":
    main()
