"""Programs that repeat a kind of run or of cell, whose kind is their first argument.

Each is a part of a program: the part before imports the modules, and the part after calls `repeat`
and compares what the process holds.
"""

from __future__ import annotations

KINDS_OF_RUNS = [
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
]

RUNS = """
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
"""

KINDS_OF_CELLS = ["cells", "rolled_back", "sessions", "forks", "in_sync"]

CELLS = """
    PAYLOAD = {"rows": [{"id": n, "text": "x" * 50} for n in range(20)]}

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
"""
