"""Resident memory: a process holds as much after thousands of runs as after a few.

Each kind of run is repeated thousands of times in a process of its own, the commonest 20,000 times.
The resident set is read after the first part and at the end.
"""

from __future__ import annotations

import sys

import pytest

from ceilings import run_program
from median import judge
from repeated import CELLS, KINDS_OF_CELLS, KINDS_OF_RUNS, RUNS

# A run that leaves one payload behind exceeds these.
MOST_OF_RUNS, MOST_OF_VALUES, MOST_OF_REPORTS = 24e6, 60e6, 100e6

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


def last(source: str, *args: str) -> float:
    """The number that a program prints."""
    return float(run_program(source, *args)[-1])


RESIDENT = """
    import asyncio, gc, isolane, os, sys, time

    def resident_bytes():
        gc.collect()
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * 4096
"""

PROGRAM = """
    kind = sys.argv[1]
    COMMON = ("plain", "failing", "calls")
    RUNS = {"runtimes": 1_250, **dict.fromkeys(COMMON, 20_000)}.get(kind, 5_000)
    repeat(kind, RUNS // BATCH // 4)
    before, open_before = resident_bytes(), descriptors()
    repeat(kind, RUNS // BATCH * 3 // 4)
    grown, opened = resident_bytes() - before, descriptors() - open_before
    assert opened <= ALLOWED_FILES, opened
    print(grown)
"""


@pytest.mark.parametrize("kind", KINDS_OF_RUNS)
def test_runs_leave_nothing(kind: str) -> None:
    judge(f"bytes of runs, {kind}", lambda: last(RESIDENT + RUNS + PROGRAM, kind), MOST_OF_RUNS)


PROMISES = '''
    import asyncio, gc, isolane

    ROUNDS, BYTES = 400, 1_000_000

    def resident_bytes():
        gc.collect()
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * 4096

    async def main():
        resident = []
        source = f"""
            const value = 'x'.repeat({BYTES});
            for (let round = 0; round < {ROUNDS}; round++) {{
                take(Promise.resolve(value));
                await turn();
            }}
            export default 1;
        """
        async def turn():
            await asyncio.sleep(0)
            resident.append(resident_bytes())
        globals = {"take": lambda _: None, "turn": turn}
        result = await isolane.run_code(source, globals=globals, memory_limit_bytes=64 << 20)
        result.raise_for_status()
        grown = resident[-1] - resident[ROUNDS // 4]
        print(grown)

    asyncio.run(main())
'''


def test_values_of_promises_that_nobody_keeps_are_not_kept() -> None:
    """The run is charged for each value that it holds itself: the host must not hold more."""
    judge("bytes of promises", lambda: last(PROMISES), MOST_OF_VALUES)


REJECTIONS = '''
    import asyncio, gc, isolane

    ROUNDS, BYTES = 400, 1_000_000
    gc.disable()

    def resident_bytes():
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * 4096

    async def main():
        resident = []
        source = f"""
            const value = new Uint8Array({BYTES});
            for (let round = 0; round < {ROUNDS}; round++) {{
                await catches(Promise.reject(value));
                await catches_later(Promise.reject(value));
                await gathers(Promise.reject(value));
                await calls(() => {{ throw value; }});
                await passes(Promise.reject(value)).catch(() => {{}});
                await turn();
            }}
            export default 1;
        """
        async def catches(promise):
            try:
                await promise
            except isolane.SandboxError as error:
                assert error.value == bytes(BYTES)
        async def catches_later(promise):
            while not promise.done():
                await asyncio.sleep(0)
            await catches(promise)
            assert promise.exception().value == bytes(BYTES)
        async def gathers(promise):
            (error,) = await asyncio.gather(promise, return_exceptions=True)
            await catches(asyncio.shield(promise))
        async def calls(function):
            future = function()
            await catches(future)
            await catches(future)
        async def passes(promise):
            await promise
        async def turn():
            resident.append(resident_bytes())
        result = await isolane.run_code(
            source,
            globals={f.__name__: f for f in (catches, catches_later, gathers, calls, passes, turn)},
            memory_limit_bytes=64 << 20,
        )
        result.raise_for_status()
        grown = resident[-1] - resident[ROUNDS // 4]
        print(grown)

    asyncio.run(main())
'''


def test_exceptions_that_were_caught_are_not_kept() -> None:
    """Nor without the garbage collector: it does not know how large an exception's value is."""
    judge("bytes of rejections", lambda: last(REJECTIONS), MOST_OF_VALUES)


SESSIONS = """
    repeat(500)
    before = resident_bytes()
    repeat(1500)
    grown = resident_bytes() - before
    print(grown)
"""


@pytest.mark.parametrize("kind", KINDS_OF_CELLS)
def test_sessions_leave_nothing(kind: str) -> None:
    judge(
        f"bytes of sessions, {kind}", lambda: last(RESIDENT + CELLS + SESSIONS, kind), MOST_OF_RUNS
    )


SHARED = """
    import asyncio, isolane

    RUNS, BYTES = 60, 15_000_000

    def resident_bytes():
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * 4096

    async def main():
        ready = asyncio.get_running_loop().create_future()
        async def wait():
            await ready
        source = f"wait(); report('x'.repeat({BYTES})); export default 1"
        before = resident_bytes()
        for _ in range(RUNS):
            globals = {"ready": ready, "wait": wait}
            result = await isolane.run_code(source, globals=globals, report=len)
            result.raise_for_status()
            assert len(result.reports[0]) == BYTES
        grown = resident_bytes() - before
        ready.set_result(1)
        print(grown)

    asyncio.run(main())
"""


def test_a_shared_future_holds_no_reports() -> None:
    judge("bytes of reports beside a shared future", lambda: last(SHARED), MOST_OF_REPORTS)


LOG = """
    import isolane
    log = "const big = ['x'.repeat(8 << 20)]; console.log(/x/, ...Array(200).fill(big))"
    result = isolane.run_code_sync(log + "; export default 1")
    assert len(result.logs[0].args) == 1
    # `getrusage` would count the peak of the process of the tests, too.
    with open('/proc/self/status') as file:
        status = file.read()
    print(status.split('VmHWM:')[1].split()[0])
"""


def test_what_a_log_shares_is_bounded() -> None:
    # The limit, and about as much for Python and its modules; without a bound some 1,600 MiB.
    judge("peak in KiB of what a log shares", lambda: last(LOG), 600 << 10)
