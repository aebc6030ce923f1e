"""Sessions in processes of their own: interruptions, forks, memory, and the end of the process."""

from __future__ import annotations

import multiprocessing

import pytest

from ceilings import run_program
from repeated import CELLS, KINDS_OF_CELLS

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
        except isolane.SandboxError as refused:
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
        "SessionClosed: the session was closed <Session closed>",
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


COUNTS = """
    import asyncio, gc, isolane, sys, tracemalloc

    ALLOWED_OBJECTS, ALLOWED_BYTES = 100, 200_000

    def counts():
        gc.collect()
        return len(gc.get_objects()), tracemalloc.get_traced_memory()[0]
"""

MEMORY = """
    tracemalloc.start()
    repeat(100)
    before = counts()
    repeat(200)
    objects, allocated = (after - base for after, base in zip(counts(), before))
    is_fine = objects < ALLOWED_OBJECTS and allocated < ALLOWED_BYTES
    print("fine" if is_fine else f"{objects} objects, {allocated} bytes")
"""


@pytest.mark.parametrize("kind", KINDS_OF_CELLS)
def test_sessions_leave_nothing(kind: str) -> None:
    assert run_program(COUNTS + CELLS + MEMORY, kind) == ["fine"]
