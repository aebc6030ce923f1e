"""Sessions in processes of their own: interruptions, forks, memory, and the end of the process."""

from __future__ import annotations

import multiprocessing

import pytest

from ceilings import run_program

needs_fork = pytest.mark.skipif(
    "fork" not in multiprocessing.get_all_start_methods(), reason="this system does not fork"
)

INTERRUPTED = """
    import isolane, os, signal, threading

    def interrupt():
        # Once the sandbox spins.
        threading.Timer(0.1, os.kill, [os.getpid(), signal.SIGINT]).start()

    session = isolane.Session(globals={"interrupt": interrupt})
    session.run_sync("let n = 1")
    waits = "n = 3; interrupt(); await new Promise(() => {})"
    for source in ("n = 2; interrupt(); for (;;);", waits):
        try:
            session.run_sync(source)
        except KeyboardInterrupt:
            print("interrupted", session.run_sync("n").result)
    session.close()
"""


def test_an_interrupted_cell_is_rolled_back() -> None:
    assert run_program(INTERRUPTED) == ["interrupted 1", "interrupted 1"]


FORKED = """
    import asyncio, gc, isolane, os, sys, warnings

    # Python itself warns of forks with threads, from 3.12 on.
    warnings.simplefilter("ignore", DeprecationWarning)

    kept = []
    session = isolane.Session(globals={"keep": kept.append, "f": lambda: 1})
    session.run_sync("let n = 1; keep(() => n)")
    sys.stdout.flush()

    async def call():
        try:
            return await kept[0]()
        except RuntimeError as refused:
            return str(refused)

    if child := os.fork():
        os.waitpid(child, 0)
        print("parent:", session.run_sync("n").result, asyncio.run(call()))
        session.close()
    else:
        try:
            session.run_sync("n")
        except RuntimeError as refused:
            print("child:", str(refused).partition(",")[0])
        print(asyncio.run(call()), session)
        session.close()
        with isolane.Session() as own:
            print(own.run_sync("'own'").result)
        kept.clear()
        del session
        gc.collect()
        sys.stdout.flush()
        os._exit(0)
"""


@needs_fork
def test_a_session_is_over_in_a_forked_child() -> None:
    assert run_program(FORKED) == [
        "child: the session was opened before this process was forked",
        "the session is closed; nothing in its sandbox can be called any more <Session closed>",
        "own",
        "parent: 1 1",
    ]


CELL_FORKED = """
    import asyncio, isolane, os, sys, warnings

    warnings.simplefilter("ignore", DeprecationWarning)

    async def main():
        begun = asyncio.Event()

        async def never():
            begun.set()
            await asyncio.get_running_loop().create_future()

        session = isolane.Session(globals={"never": never})
        handle = session.run("await never()")
        await begun.wait()
        if child := os.fork():
            os.waitpid(child, 0)
            handle.terminate("enough")
            result = await handle
            print("parent:", result.status, result.session)
            await session.aclose()
        else:
            result = await handle
            print("child:", result.status, type(result).__name__)
            sys.stdout.flush()
            os._exit(0)

    asyncio.run(main())
"""


@needs_fork
def test_a_cell_is_over_in_a_forked_child() -> None:
    assert run_program(CELL_FORKED) == [
        "child: terminated CellExecutionResult",
        "parent: terminated rolledBack",
    ]


EXIT = """
    import asyncio, isolane

    async def never():
        await asyncio.get_running_loop().create_future()

    async def main():
        sessions = [isolane.Session(globals={"never": never}) for _ in range(3)]
        await sessions[0].run("let n = 1")
        await sessions[1].run("never(); 1")
        sessions[2].run("for (;;);")
        print("left", flush=True)
        return sessions

    kept = asyncio.run(main())
"""


def test_open_sessions_do_not_keep_the_process() -> None:
    assert run_program(EXIT) == ["left"]


MEMORY = """
    import asyncio, gc, isolane, sys, tracemalloc

    ALLOWED_OBJECTS, ALLOWED_BYTES = 100, 200_000
    PAYLOAD = {"rows": [{"id": n, "text": "x" * 50} for n in range(20)]}

    def counts():
        gc.collect()
        return len(gc.get_objects()), tracemalloc.get_traced_memory()[0]

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
    tracemalloc.start()
    repeat(100)
    before = counts()
    repeat(200)
    objects, allocated = (after - base for after, base in zip(counts(), before))
    is_fine = objects < ALLOWED_OBJECTS and allocated < ALLOWED_BYTES
    print("fine" if is_fine else f"{objects} objects, {allocated} bytes")
"""


@pytest.mark.parametrize("kind", ["cells", "rolled_back", "sessions", "forks", "in_sync"])
def test_sessions_leave_nothing(kind: str) -> None:
    assert run_program(MEMORY, kind) == ["fine"]
