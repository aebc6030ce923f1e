"""Resident memory: a process holds as much after thousands of runs as after a few.

Each kind of run is repeated thousands of times in a process of its own, the commonest 20,000 times.
The resident set is read after the first part and at the end.
"""

from __future__ import annotations

import sys

import pytest

from ceilings import run_program
from median import judge

# A run that leaves one payload behind exceeds these.
MOST_OF_RUNS, MOST_OF_VALUES, MOST_OF_REPORTS = 24e6, 60e6, 100e6

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


def last(source: str, *args: str) -> float:
    """The number that a program prints."""
    return float(run_program(source, *args)[-1])


PROGRAM = """
    import asyncio, gc, isolane, os, sys, time

    COMMON = ("plain", "failing", "calls")
    BATCH = 50
    # A socket for each worker, of which there are now more and now fewer.
    ALLOWED_FILES = 16 if os.environ.get("ISOLANE_ISOLATION") == "process" else 0

    def resident_bytes():
        gc.collect()
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * 4096

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
            for _ in range(batches // 4):
                with isolane.Runtime() as runtime:
                    for _ in range(10):
                        assert runtime.run_code_sync("export default 1").result == 1
            # The threads of a closed runtime end a little later.
            while len(os.listdir("/proc/self/task")) > 1:
                time.sleep(0.05)
        else:
            asyncio.run(in_one_loop(kind, batches))

    kind = sys.argv[1]
    RUNS = 20_000 if kind in COMMON else 5_000
    repeat(kind, RUNS // BATCH // 4)
    before, open_before = resident_bytes(), descriptors()
    repeat(kind, RUNS // BATCH * 3 // 4)
    grown, opened = resident_bytes() - before, descriptors() - open_before
    assert opened <= ALLOWED_FILES, opened
    print(grown)
"""


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
    judge(f"bytes of runs, {kind}", lambda: last(PROGRAM, kind), MOST_OF_RUNS)


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
    import asyncio, gc, isolane, sys, time

    PAYLOAD = {"rows": [{"id": n, "text": "x" * 50} for n in range(20)]}

    def resident_bytes():
        gc.collect()
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * 4096

    class Tool:
        # A cycle, so that nothing is freed by chance.
        def __init__(self):
            self.me = self
            self.bytes = bytearray(10_000)
        async def __call__(self, value):
            await asyncio.sleep(0)
            return value

    async def use(function):
        return await function(PAYLOAD)

    def fail():
        raise ValueError("x" * 1000)

    async def cells(times):
        for number in range(times):
            if number % 100 == 0:
                # Each cell leaves its code in the session.
                await one.reset()
            await one.run("globalThis.x = await f(x); await use((x) => x.rows.length)")
            await one.run("try { fail() } catch {} ; f(1); report(x)", report=len)
            await one.run("fail()")

    async def rolled_back(times):
        for _ in range(times // 4):
            handle = one.run("const y = f(x); await use(() => new Promise(() => {}))")
            await asyncio.sleep(0)
            handle.terminate("enough")
            await handle

    async def sessions(times):
        for number in range(times):
            holder = []
            values = {"f": Tool(), "x": PAYLOAD, "me": lambda holder=holder: holder}
            session = isolane.Session(globals=values)
            holder.append(session)
            await session.run("let y = await f(x); f(1); 1")
            if number % 2:
                await session.aclose()
            if number % 50 == 0:
                # Python does not know how much memory a session holds.
                gc.collect()

    async def forks(times):
        for _ in range(times):
            copy = await one.fork()
            await copy.run("f(x)")

    def in_sync(times):
        for _ in range(times):
            one.run_sync("f(x); use((x) => 1); 1")
            one.names_sync()

    def repeat(times):
        if kind == "in_sync":
            in_sync(times)
        else:
            asyncio.run(globals()[kind](times))

    kind = sys.argv[1]
    one = isolane.Session(globals={"f": Tool(), "x": PAYLOAD, "use": use, "fail": fail})
    repeat(500)
    before = resident_bytes()
    repeat(1500)
    grown = resident_bytes() - before
    print(grown)
"""


@pytest.mark.parametrize("kind", ["cells", "rolled_back", "sessions", "forks", "in_sync"])
def test_sessions_leave_nothing(kind: str) -> None:
    judge(f"bytes of sessions, {kind}", lambda: last(SESSIONS, kind), MOST_OF_RUNS)


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
