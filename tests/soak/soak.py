"""The soak: a mix of all kinds of runs and of all operations on them, many at once, for a long
time.

In: `--runs`, `--width` (how many at once), `--seed`. Out: figures, and a non-zero exit code if a
run was lost or had a wrong result, or if the process holds more at the end than before. One in ten
of the runs that need no loop goes through `run_code_sync`, from several threads.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from array import array
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import isolane
from mix import KINDS, SOON_S, Case, Random, pick
from samples import HEADER, Samples, threads

sys.path.insert(0, str(Path(__file__).parent.parent / "contract"))

from isolation import install

install()

SAMPLES = 20
LOST_S = 120.0
"""A run that has not settled by then is lost. The longest run takes about a hundredth of this."""
THREADS_END_S = 60.0
"""Threads without work end after 5 s; those in a builtin end after it."""
SHOWN = 20
SYNC_SHARE = 0.1
SYNC_THREADS = 4


class Soak:
    def __init__(self, runs: int, width: int, seed: int) -> None:
        self.runs, self.width, self.seed = runs, width, seed
        self.statuses = dict.fromkeys(("success", "error", "memory", "terminated", "link_error"), 0)
        # Allocated at the start, so that these records of the runs do not look like a leak.
        self.kinds = array("B", bytes([255]) * runs)
        self.took_ms = array("d", bytes(8 * runs))
        self.wrong: list[str] = []
        self.grown: list[str] = []
        self.started = self.dropped = self.lost = self.sync = 0
        self.seconds = 0.0
        self.runtime = isolane.Runtime()
        self.pool = ThreadPoolExecutor(SYNC_THREADS)

    async def main(self) -> None:
        threads_before = threads()
        samples = Samples()
        version = sys.version.split()[0]
        print(f"python {version}: {self.runs} runs, {self.width} at once, seed {self.seed}")
        print(HEADER)
        print(samples.take(0))
        began = time.perf_counter()
        for part in range(SAMPLES):
            end = self.runs * (part + 1) // SAMPLES
            numbers = iter(range(self.runs * part // SAMPLES, end))

            async def worker(numbers: object = numbers) -> None:
                for n in numbers:  # type: ignore[attr-defined]
                    await self.one(n)

            await asyncio.gather(*(worker() for _ in range(self.width)))
            await self.settled()
            print(samples.take(end, self.runtime.stats().compile_cache_bytes), flush=True)
        self.seconds = time.perf_counter() - began
        settled = sum(self.runtime.stats().settled.values())
        await self.runtime.aclose()
        self.pool.shutdown()
        left = _threads_left(threads_before)
        if settled != self.started:
            self.wrong.append(f"the runtime counts {settled} settled of {self.started} started")
        self.grown = samples.grown()
        if left > 0:
            self.grown.append(f"threads: {left} more than before")

    async def one(self, n: int) -> None:
        kind, following = pick(self.seed, n)
        self.kinds[n] = kind
        case = Case(kind, n, following)
        started = time.perf_counter()
        if case.fields.get("close"):
            await self.closed(n)
        elif case.fields.get("drop"):
            # No one awaits it; the runtime's counts show that it settles.
            self.started += 1
            self.dropped += 1
            self.runtime.run_code(case.source, **case.options)
        elif not case.needs_loop and following() < SYNC_SHARE:
            self.started += 1
            self.sync += 1
            loop = asyncio.get_running_loop()
            waiting = loop.run_in_executor(self.pool, self.run_sync, case)
            self.expect(case, await asyncio.wait_for(waiting, LOST_S))
        else:
            self.started += 1
            await self.run(case, following)
        self.took_ms[n] = (time.perf_counter() - started) * 1e3

    def run_sync(self, case: Case) -> isolane.CodeExecutionResult:
        return self.runtime.run_code_sync(case.source, **case.options)

    async def run(self, case: Case, following: Random) -> None:
        case.handle = self.runtime.run_code(case.source, **case.options)
        terminate = case.fields.get("terminate")
        if terminate == "at once":
            case.terminate()
        if terminate == "soon":
            asyncio.get_running_loop().call_later(following() * SOON_S, case.terminate)
        done, _ = await asyncio.wait({asyncio.ensure_future(case.handle)}, timeout=LOST_S)
        if not done:
            self.lost += 1
            self.wrong.append(f"lost: {case.name} ({case.n})")
            return
        if case.handle.running:
            self.wrong.append(f"{case.name} ({case.n}): running after it settled")
        self.expect(case, done.pop().result())

    def expect(self, case: Case, result: isolane.CodeExecutionResult) -> None:
        """Checks the result of a run."""
        self.statuses[result.status] += 1
        problem = case.check(result)
        if problem:
            self.wrong.append(f"{case.name} ({case.n}): {problem}")

    async def closed(self, n: int) -> None:
        """A runtime that is closed while runs compute, wait and queue in it."""
        own = isolane.Runtime(max_concurrent_runs=2, ready_isolates=1)
        never = asyncio.get_running_loop().create_future
        sources = ("for (;;);", "for (;;);", "await never()", "for (;;) await 0;", "for (;;);")
        live = [own.run_code(source, globals={"never": never}) for source in sources]
        await own.run_code("export default 1")
        end = asyncio.ensure_future(own.aclose())
        for result in await asyncio.gather(*live):
            self.statuses[result.status] += 1
            if result.error is None or result.error.message != "runtime closed":
                self.wrong.append(f"closed ({n}): {result}")
        await end
        stats = own.stats()
        # A thread that the system delayed was given up on, and has not noticed its termination yet.
        computing = max(0, stats.computing - stats.stuck_threads)
        if computing + stats.parked + stats.queued + stats.ready_isolates > 0:
            self.wrong.append(f"closed ({n}): {stats}")

    async def settled(self) -> None:
        """Waits until every started run has settled, including those that no one awaits."""
        deadline = time.monotonic() + LOST_S
        while sum(self.runtime.stats().settled.values()) < self.started:
            if time.monotonic() > deadline:
                return
            await asyncio.sleep(0.005)

    def report(self) -> None:
        counts = ", ".join(f"{status} {count}" for status, count in self.statuses.items())
        rate = self.runs / self.seconds
        print(f"\n{rate:.0f} runs/s; {counts}, dropped {self.dropped}; sync {self.sync}")
        print("\n    runs   p50 ms   p99 ms   max ms  kind")
        for kind, fields in enumerate(KINDS):
            took = sorted(ms for n, ms in enumerate(self.took_ms) if self.kinds[n] == kind)
            at = [
                took[min(len(took) - 1, int(len(took) * share))] for share in (0.5, 0.99, 1) if took
            ]
            cells = " ".join(f"{ms:8.1f}" for ms in at)
            print(f"{len(took):8} {cells:26}  {fields['name']}")
        grown = "; ".join(self.grown) or "nothing"
        print(f"\nlost: {self.lost}; wrong: {len(self.wrong)}; grown: {grown}")
        for line in self.wrong[:SHOWN]:
            print(f"  {line}")


def _threads_left(before: int) -> int:
    deadline = time.monotonic() + THREADS_END_S
    while threads() > before and time.monotonic() < deadline:
        time.sleep(0.05)
    return max(0, threads() - before)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    soak = Soak(options.runs, options.width, options.seed)
    asyncio.run(soak.main())
    soak.report()
    return 0 if not (soak.lost or soak.wrong or soak.grown) else 1


if __name__ == "__main__":
    sys.exit(main())
