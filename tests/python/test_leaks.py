"""Memory: a process holds as much after hundreds of runs as after a few.

Each kind of run is repeated in a process of its own. In: the kind. Out: how much the number of
Python's objects, the bytes that Python has allocated, and the open files have grown since the first
part. `tests/campaign` measures the whole process, over thousands of runs.
"""

from __future__ import annotations

import sys

import pytest

from ceilings import run_program
from repeated import KINDS_OF_RUNS, RUNS

needs_proc = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")

# The leftovers of all programs. A run that left one object or payload behind would exceed these.
COUNTS = """
    import asyncio, gc, isolane, os, sys, time, tracemalloc

    ALLOWED_OBJECTS, ALLOWED_BYTES = 200, 300_000

    def counts():
        gc.collect()
        return len(gc.get_objects()), tracemalloc.get_traced_memory()[0]

    def tell(before, after):
        objects, allocated = (after[at] - before[at] for at in range(2))
        is_fine = objects < ALLOWED_OBJECTS and allocated < ALLOWED_BYTES
        print("fine" if is_fine else f"{objects} objects, {allocated} bytes")

    tracemalloc.start()
"""

PROGRAM = """
    kind = sys.argv[1]
    repeat(kind, 6)
    before, open_before = counts(), descriptors()
    repeat(kind, 14)
    tell(before, counts())
    opened = descriptors() - open_before
    print("fine" if opened <= ALLOWED_FILES else f"{opened} files")
"""


@needs_proc
@pytest.mark.parametrize("kind", KINDS_OF_RUNS)
def test_runs_leave_nothing(kind: str) -> None:
    assert run_program(COUNTS + RUNS + PROGRAM, kind) == ["fine", "fine"]


PROMISES = """
    ROUNDS, BYTES = 40, 1_000_000

    async def main():
        seen = []
        source = f\"\"\"
            const value = 'x'.repeat({BYTES});
            for (let round = 0; round < {ROUNDS}; round++) {{
                take(Promise.resolve(value));
                await turn();
            }}
            export default 1;
        \"\"\"
        async def turn():
            await asyncio.sleep(0)
            seen.append(counts())
        globals = {"take": lambda _: None, "turn": turn}
        result = await isolane.run_code(source, globals=globals, memory_limit_bytes=64 << 20)
        result.raise_for_status()
        # One value may be on its way.
        tell(seen[1], (seen[-1][0], seen[-1][1] - BYTES))

    asyncio.run(main())
"""


def test_values_of_promises_that_nobody_keeps_are_not_kept() -> None:
    """The run is charged for each value that it holds itself: the host must not hold more."""
    assert run_program(COUNTS + PROMISES) == ["fine"]


REJECTIONS = '''
    ROUNDS, BYTES = 20, 1_000_000
    gc.disable()

    async def main():
        seen = []
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
            seen.append(tracemalloc.get_traced_memory()[0])
        result = await isolane.run_code(
            source,
            globals={f.__name__: f for f in (catches, catches_later, gathers, calls, passes, turn)},
            memory_limit_bytes=64 << 20,
        )
        result.raise_for_status()
        # Some of the last values may be there.
        grown = seen[-1] - seen[1]
        print("fine" if grown < 6 * BYTES else f"{grown} bytes")

    asyncio.run(main())
'''


def test_exceptions_that_were_caught_are_not_kept() -> None:
    """Nor without the garbage collector: it does not know how large an exception's value is."""
    assert run_program(COUNTS + REJECTIONS) == ["fine"]
