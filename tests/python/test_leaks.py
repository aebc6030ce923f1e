"""Memory: a process holds as much after hundreds of runs as after a few.

Each kind of run is repeated in a process of its own. In: the kind. Out: how much the number of
Python's objects, the bytes that Python has allocated, and the open files have grown since the first
part. `tests/campaign` measures the whole process, over thousands of runs.
"""

from __future__ import annotations

import sys

import pytest

from ceilings import run_program

needs_proc = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")

# What all programs have. A run that left one object or one payload behind would exceed these.
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
    BATCH = 50
    # A socket for each worker, of which there are now more and now fewer.
    ALLOWED_FILES = 16 if os.environ.get("ISOLANE_ISOLATION") == "process" else 0

    def descriptors():
        return len(os.listdir("/proc/self/fd"))

    class Tool:
        # A cycle, so that nothing is freed by chance.
        def __init__(self):
            self.me = self
            self.bytes = bytearray(10_000)
        def __call__(self, value):
            return value
        async def later(self, value):
            await asyncio.sleep(0)
            return value

    PAYLOAD = {"rows": [{"id": n, "text": "x" * 50, "more": [1.5, None, True]} for n in range(20)]}

    def start(kind):
        if kind == "plain":
            return isolane.run_code("export default 1")
        if kind == "values":
            source = "report(x); console.log(x); export default x"
            return isolane.run_code(source, globals={"x": PAYLOAD}, report=len)
        if kind == "failing":
            return isolane.run_code("throw new Error('x'.repeat(1000))")
        if kind == "not linking":
            return isolane.run_code("import { a } from 'b'")
        if kind == "refused":
            try:
                isolane.run_code("1", globals={"x": PAYLOAD, "f": Tool(), "y": object()})
            except TypeError:
                pass
            return isolane.run_code("export default new Map([[{}, 1]])")
        if kind == "calls":
            tool = Tool()
            source = "export default [f(1), await g(2), f(x)]"
            globals = {"f": tool, "g": tool.later, "x": PAYLOAD}
            return isolane.run_code(source, globals=globals)
        if kind == "callbacks":
            kept = []
            async def use(function):
                kept.append(function)
                return await function(PAYLOAD)
            source = "export default await use((x) => x.rows.length)"
            return isolane.run_code(source, globals={"use": use})
        if kind == "promises":
            async def use(promise):
                return await promise
            source = "const p = Promise.resolve(1); await use(p); export default await use(p)"
            return isolane.run_code(source, globals={"use": use})
        if kind == "terminated":
            handle = isolane.run_code("for (;;);", globals={"f": Tool()})
            handle.terminate("enough")
            return handle
        if kind == "dropped":
            never = asyncio.get_running_loop().create_future()
            handle = isolane.run_code("await f", globals={"f": never})
            asyncio.get_running_loop().call_soon(handle.terminate)
            return handle

    async def batch(kind):
        await asyncio.gather(*(start(kind) for _ in range(BATCH)))

    def sync(kind):
        async def later(value):
            return value
        for _ in range(BATCH):
            if kind == "sync":
                isolane.run_code_sync("export default f(1)", globals={"f": Tool()})
            elif kind == "sync coroutines":
                isolane.run_code_sync("export default await f(1)", globals={"f": later})
            else:
                isolane.run_code_sync("export default x", globals={"x": PAYLOAD})

    async def in_one_loop(kind, batches):
        for _ in range(batches):
            await batch(kind)

    def repeat(kind, batches):
        if kind.startswith("sync"):
            for _ in range(batches):
                sync(kind)
        elif kind == "loops":
            for _ in range(batches):
                asyncio.run(batch("calls"))
        elif kind == "runtimes":
            for _ in range(batches):
                with isolane.Runtime() as runtime:
                    for _ in range(10):
                        assert runtime.run_code_sync("export default 1").result == 1
            # The threads of a closed runtime end a little later.
            while len(os.listdir("/proc/self/task")) > 1:
                time.sleep(0.05)
        else:
            asyncio.run(in_one_loop(kind, batches))

    kind = sys.argv[1]
    repeat(kind, 6)
    before, open_before = counts(), descriptors()
    repeat(kind, 14)
    tell(before, counts())
    opened = descriptors() - open_before
    print("fine" if opened <= ALLOWED_FILES else f"{opened} files")
"""


@needs_proc
@pytest.mark.parametrize(
    "kind",
    [
        "plain",
        "values",
        "failing",
        "not linking",
        "refused",
        "calls",
        "callbacks",
        "promises",
        "terminated",
        "dropped",
        "loops",
        "runtimes",
        "sync",
        "sync coroutines",
        "sync values",
    ],
)
def test_runs_leave_nothing(kind: str) -> None:
    assert run_program(COUNTS + PROGRAM, kind) == ["fine", "fine"]


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
