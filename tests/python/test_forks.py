"""Forks: the rights of a child process, before and after its parent's first run, with live runs.

A run belongs to the process that started it. In a child, handles of its parent are over,
terminating them has no effect, and new runs work as anywhere else.
"""

from __future__ import annotations

import multiprocessing
import textwrap
from pathlib import Path

import pytest

from ceilings import run_file, run_program

pytestmark = pytest.mark.skipif(
    "fork" not in multiprocessing.get_all_start_methods(), reason="this system does not fork"
)

PRELUDE = """
    import asyncio, isolane, gc, multiprocessing, os, sys, threading, time, warnings

    # Python itself warns of forks with threads, from 3.12 on.
    warnings.simplefilter("ignore", DeprecationWarning)

    def in_child(work):
        "Runs something in a child that is forked off; true when it came to its end there."
        child = os.fork()
        if child == 0:
            code = 1
            try:
                work()
                code = 0
            except BaseException:
                import traceback
                traceback.print_exc()
            finally:
                sys.stdout.flush()
                os._exit(code)
        # A child that hangs must not outlive the test.
        for _ in range(6000):
            done, status = os.waitpid(child, os.WNOHANG)
            if done:
                return os.waitstatus_to_exitcode(status) == 0
            time.sleep(0.01)
        os.kill(child, 9)
        os.waitpid(child, 0)
        return "hangs"

    def run():
        "A run of each kind, in this process."
        async def twice(value):
            await asyncio.sleep(0)
            return 2 * value
        async def main():
            source = "export default await twice(4)"
            return (await isolane.run_code(source, globals={"twice": twice})).result
        assert isolane.run_code_sync("export default 1").result == 1
        result = isolane.run_code_sync("export default await twice(2)", globals={"twice": twice})
        assert result.result == 4, result
        assert asyncio.run(asyncio.wait_for(main(), 60)) == 8
"""

FORKED = "this process was forked while the run was running; the parent process continues it"


def forking(program: str) -> list[str]:
    """The lines of a program that begins with the prelude."""
    return run_program(f"{PRELUDE}\n{program}")


def test_a_child_forked_before_the_first_run() -> None:
    assert forking("""
    print(in_child(run))
    run()
    print(in_child(lambda: None))
    """) == ["True", "True"]


def test_a_child_forked_after_the_first_run() -> None:
    assert forking("""
    run()
    print(in_child(run))
    run()
    print(in_child(lambda: in_child(run) or sys.exit(1)))
    """) == ["True", "True"]


def test_a_child_with_a_runtime_of_its_own() -> None:
    assert forking("""
    run()
    def own():
        with isolane.Runtime() as runtime:
            assert runtime.run_code_sync("export default 1").result == 1
    print(in_child(own))
    run()
    """) == ["True"]


def test_a_child_says_that_a_kit_is_of_its_parent() -> None:
    assert forking("""
    from isolane.kit import Kit
    kit = Kit(state=True, db=True, libraries=True, secrets={})
    kit.state.set_sync("k", 1)
    FORKED = (
        "the kit was opened before this process was forked, which kits do not survive:"
        " open a new one"
    )
    def refused():
        calls = [
            lambda: kit.state.get_sync("k"), lambda: kit.db.sql_sync("SELECT 1"),
            kit.libraries.list_sync, kit.describe_sync, kit.secrets.names, kit.session,
            lambda: kit.run_tool_sync("1"), lambda: kit.run_code_sync("1"),
        ]
        for call in calls:
            try:
                call()
            except RuntimeError as raised:
                assert str(raised) == FORKED, raised
            else:
                raise AssertionError(call)
        kit.close()
        with Kit(state=True) as own:
            assert own.state.get_sync("k") is None
    print(in_child(refused))
    print(kit.state.get_sync("k"), kit.run_tool_sync("return await state.get('k')").result)
    kit.close()
    """) == ["True", "1 1"]


HANDLES_OF_THE_PARENT = """
    async def main():
        loop = asyncio.get_running_loop()
        reported = asyncio.Event()
        def never():
            return loop.create_future()
        spinning = isolane.run_code("report(1); for (;;);", report=lambda value: reported.set())
        parked = isolane.run_code("await never()", globals={"never": never})
        await reported.wait()
        waiting = asyncio.ensure_future(parked)
        await asyncio.sleep(0)

        def child():
            kind = sys.argv[1]
            if kind == "looks":
                assert not spinning.running and not parked.running
                assert spinning.reports == [1] and parked.reports == []
                repr(spinning)
            elif kind == "terminates":
                spinning.terminate("in the child")
                parked.terminate()
                assert not spinning.running
            elif kind == "awaits":
                async def both():
                    return await spinning, await parked
                results = asyncio.run(asyncio.wait_for(both(), 60))
                assert {(r.status, r.error.message) for r in results} == {("terminated", FORKED)}
                assert results[0].reports == [1]
            elif kind == "runs":
                run()
        child_is_well = in_child(child)
        if sys.argv[1] == "drops":
            child = os.fork()
            if child == 0:
                del spinning, parked, waiting
                gc.collect()
                os._exit(0)
            child_is_well = os.waitpid(child, 0)[1] == 0
        print(child_is_well)
        # Here all continues.
        assert spinning.running and parked.running
        spinning.terminate("here")
        parked.terminate("here, too")
        print((await spinning).error.message, "|", (await waiting).error.message)
    asyncio.run(main())
"""


@pytest.mark.parametrize("kind", ["looks", "terminates", "awaits", "drops", "runs"])
def test_handles_of_the_parent_in_the_child(kind: str) -> None:
    program = f"{PRELUDE}\n    FORKED = {FORKED!r}\n{HANDLES_OF_THE_PARENT}"
    assert run_program(program, kind) == ["True", "here | here, too"]


@pytest.mark.parametrize("way", ["returns", "exits", "raises", "exits at once"])
@pytest.mark.parametrize("callee", ["def", "async def"])
def test_a_host_function_that_forks(way: str, callee: str) -> None:
    # The child also leaves the host function, in each possible way; its parent notices nothing.
    leave = {
        "returns": "return 0",
        "exits": "sys.exit(7)",
        "raises": "raise KeyError",
        "exits at once": "os._exit(7)",
    }[way]
    lines = forking(f"""
    here = os.getpid()
    {callee} host():
        child = os.fork()
        if child == 0:
            {leave}
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    result = isolane.run_code_sync(
        "export default [await host(), await after()]",
        globals={{"host": host, "after": lambda: asyncio.sleep(0.01, "after")}},
    )
    if os.getpid() == here:
        print(result.result)
        run()
    else:
        assert result.error.message == {FORKED!r}, result
        os._exit(7)
    """)
    assert lines == ["[7, 'after']"]


def test_a_thread_forks_while_others_run() -> None:
    assert forking("""
    stop = threading.Event()
    def work():
        while not stop.is_set():
            assert isolane.run_code_sync("export default f()", globals={"f": lambda: 1}).result == 1
    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    fine = [in_child(gc.collect) for _ in range(20)]
    stop.set()
    for thread in threads:
        thread.join()
    print(all(done is True for done in fine))
    run()
    """) == ["True"]


def test_a_handler_of_signals_that_forks() -> None:
    assert forking(f"""
    import signal
    here = os.getpid()
    def fork(*_):
        global child
        child = os.fork()
        forked.set()
    forked = threading.Event()
    signal.signal(signal.SIGUSR1, fork)
    with isolane.Runtime() as runtime:
        def act():
            while runtime.stats().computing < 1:
                time.sleep(0.001)
            os.kill(here, signal.SIGUSR1)
            forked.wait()
            runtime.close()
        acting = threading.Thread(target=act)
        acting.start()
        result = runtime.run_code_sync("for (;;);")
        if os.getpid() != here:
            os._exit(0 if result.error.message == {FORKED!r} else 1)
        acting.join()
    print(os.waitpid(child, 0)[1], result.error.message)
    """) == ["0 runtime closed"]


POOL = """
    import asyncio, isolane, multiprocessing, sys, warnings
    warnings.simplefilter("ignore", DeprecationWarning)

    def work(number):
        async def main():
            source = "export default (n) => n * 2"
            return (await isolane.run_code(source, execute={"args": [number]})).result
        source = "export default (n) => n + 1"
        return [isolane.run_code_sync(source, execute={"args": [number]}), asyncio.run(main())]

    if __name__ == "__main__":
        if sys.argv[2] == "after":
            work(1)
        with multiprocessing.get_context(sys.argv[1]).Pool(2) as pool:
            results = pool.map_async(work, range(4)).get(90)
            print([[sync.result, doubled] for sync, doubled in results])
        work(2)
"""


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_multiprocessing(method: str, when: str, tmp_path: Path) -> None:
    # A spawned child imports the program, so it has to be a file.
    program = tmp_path / "program.py"
    program.write_text(textwrap.dedent(POOL))
    lines = run_file(program, method, when)
    assert lines == ["[[1, 0], [2, 2], [3, 4], [4, 6]]"]


def test_a_subprocess_that_runs_a_function_first() -> None:
    assert forking("""
    import subprocess
    async def main():
        handle = isolane.run_code("for (;;);")
        await asyncio.to_thread(
            subprocess.run, [sys.executable, "-c", ""], preexec_fn=lambda: None, check=True
        )
        assert handle.running
        handle.terminate("end")
        print((await handle).status)
    asyncio.run(main())
    """) == ["terminated"]
