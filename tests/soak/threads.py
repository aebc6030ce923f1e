"""Runs where the system has few threads left, or none.

In: the number of additional threads for this process; no limit if absent. Out: the numbers of runs
that had their result and of refused ones, and a non-zero exit code for anything else.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import sys
import time
from pathlib import Path

import isolane

RUNS = 200
CEILING_S = 60.0
NOBODY = 65_534


def allow(more: int) -> None:
    """Allows this process that many additional threads; as root it becomes another user first."""
    if os.getuid() == 0:
        os.setgid(NOBODY)
        os.setuid(NOBODY)
    uid = os.getuid()
    have = 0
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if process.stat().st_uid == uid:
                have += len(list((process / "task").iterdir()))
    resource.setrlimit(resource.RLIMIT_NPROC, (have + more, have + more))


async def main() -> int:
    runtime = isolane.Runtime(max_concurrent_runs=4)
    done = refused = wrong = 0

    async def one(n: int) -> None:
        nonlocal done, refused, wrong
        try:
            run = runtime.run_code(f"export default await f({n})", globals={"f": later})
        except RuntimeError:
            refused += 1
            await asyncio.sleep(0.01)
            return
        result = await asyncio.wait_for(run, CEILING_S)
        done += result.result == n
        wrong += result.result != n

    async def later(value: int) -> int:
        await asyncio.sleep(0.001)
        return value

    for first in range(0, RUNS, 10):
        await asyncio.gather(*(one(first + n) for n in range(10)))

    def start(source: str, count: int) -> list[isolane.CodeExecution]:
        nonlocal refused
        runs: list[isolane.CodeExecution] = []
        for _ in range(count):
            try:
                runs.append(runtime.run_code(source))
            except RuntimeError:  # noqa: PERF203
                refused += 1
        return runs

    # With one thread no other run makes progress beside an endless one, which can be ended.
    busy = start("for (;;);", 3)
    await asyncio.sleep(0.1)
    queued = start("export default 1", 10)
    await asyncio.sleep(0.1)
    for run in busy:
        run.terminate()
    for run in busy:
        wrong += (await asyncio.wait_for(run, CEILING_S)).status != "terminated"
    for run in queued:
        wrong += (await asyncio.wait_for(run, CEILING_S)).result != 1
    await asyncio.wait_for(runtime.aclose(), CEILING_S)
    print(f"threads: done {done}, refused {refused}, wrong {wrong}")
    return 0 if wrong == 0 and done + refused >= RUNS else 1


def warm_up() -> None:
    """Loads everything that a run needs, which another user may be unable to load."""
    with isolane.Runtime() as runtime:
        runtime.run_code_sync("export default f(1)", globals={"f": lambda x: x})
    while len(os.listdir("/proc/self/task")) > 1:
        time.sleep(0.01)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        warm_up()
        allow(int(sys.argv[1]))
    sys.exit(asyncio.run(main()))
