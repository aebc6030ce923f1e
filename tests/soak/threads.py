"""Runs where the system has few threads left, or none.

In: how many more threads this process may have; no limit if absent. Out: how many runs came to their
result and how many were refused, and a non-zero exit code for anything else. Root is above the limit.
"""

from __future__ import annotations

import asyncio
import os
import resource
import sys
import threading

import isolane

RUNS = 200
CEILING_S = 60.0


def allow(more: int) -> None:
    """Lets this user have that many threads more."""
    uid = os.getuid()
    have = 0
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.stat(f"/proc/{pid}").st_uid == uid:
                have += len(os.listdir(f"/proc/{pid}/task"))
        except OSError:
            continue
    resource.setrlimit(resource.RLIMIT_NPROC, (have + more, have + more))


async def main() -> int:
    runtime = isolane.Runtime(max_concurrent_runs=4)
    done = refused = wrong = 0
    busy = []

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
    # Some that do not end, beside others: with one thread nothing else goes on, but they can be ended.
    for _ in range(3):
        try:
            busy.append(runtime.run_code("for (;;);"))
        except RuntimeError:
            refused += 1
    await asyncio.sleep(0.1)
    queued = []
    for _ in range(10):
        try:
            queued.append(runtime.run_code("export default 1"))
        except RuntimeError:
            refused += 1
    await asyncio.sleep(0.1)
    for run in busy:
        run.terminate()
    for run in busy:
        wrong += (await asyncio.wait_for(run, CEILING_S)).status != "terminated"
    for run in queued:
        wrong += (await asyncio.wait_for(run, CEILING_S)).result != 1
    await asyncio.wait_for(runtime.aclose(), CEILING_S)
    print(f"threads: {threading.active_count()} of Python; done {done}, refused {refused}, wrong {wrong}")
    return 0 if wrong == 0 and done + refused >= RUNS else 1


if __name__ == "__main__":
    if len(sys.argv) > 1:
        allow(int(sys.argv[1]))
    sys.exit(asyncio.run(main()))
