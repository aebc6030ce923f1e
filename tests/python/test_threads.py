"""The interpreter's lock: free while a sandbox computes, and while one waits for it."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from isolane import Runtime, run_code, run_code_sync

from ceilings import run_program


def test_a_spinning_sandbox_leaves_python_alone() -> None:
    with Runtime() as runtime:
        begun = threading.Event()
        results: list[Any] = []

        def spin() -> None:
            source = "begun(); for (;;);"
            results.append(runtime.run_code_sync(source, globals={"begun": begun.set}))

        thread = threading.Thread(target=spin)
        thread.start()
        begun.wait()
        for _ in range(1_000_000):
            pass
        assert thread.is_alive()
        runtime.close()
        thread.join()
    assert results[0].status == "terminated"


def test_a_spinning_sandbox_leaves_its_loop_alone() -> None:
    async def main() -> None:
        handle = run_code("for (;;);")
        for _ in range(1_000):
            await asyncio.sleep(0)
        assert handle.running
        handle.terminate()
        await handle

    asyncio.run(main())


@pytest.mark.parametrize("in_loop", [False, True])
def test_handing_over_a_large_message_while_others_run(in_loop: bool) -> None:
    text = "x" * 10_000_000
    source = "export default (x) => x.length"

    async def main() -> Any:
        return (await run_code(source, execute={"args": [text]})).result

    if in_loop:
        assert asyncio.run(main()) == len(text)
    else:
        assert run_code_sync(source, execute={"args": [text]}).result == len(text)


def test_many_threads_at_once() -> None:
    failures: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for n in range(40):
                got = run_code_sync(
                    "export default async (n) => [n, f(n), await g(n)]",
                    globals={"f": lambda n: (n, threading.get_ident()), "g": later},
                    execute={"args": [n]},
                ).raise_for_status()
                assert got.result == [n, [n, threading.get_ident()], n + number - number]
        except BaseException as failure:
            failures.append(failure)

    async def later(n: int) -> int:
        await asyncio.sleep(0)
        return n

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_threads_that_die_with_runs_live() -> None:
    program = """
        import asyncio, gc, isolane, threading, time
        runtime = isolane.Runtime()
        handles = []
        def work():
            loop = asyncio.new_event_loop()
            async def start():
                async def never():
                    await asyncio.get_running_loop().create_future()
                handles.append(runtime.run_code("for (;;);"))
                handles.append(runtime.run_code("await f()", globals={"f": never}))
            loop.run_until_complete(start())
            # The loop is neither closed nor run again.
            loops.append(loop)
        loops = []
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        assert all(handle.running for handle in handles)
        for handle in handles: handle.terminate("dead")
        async def wait():
            return {(await handle).error.message for handle in handles}
        print(asyncio.run(asyncio.wait_for(wait(), 60)))
        for loop in loops:
            for task in asyncio.all_tasks(loop): task.cancel()
            loop.run_until_complete(asyncio.sleep(0))
            loop.close()
        del handles
        gc.collect()
        runtime.close()
        print(runtime.stats().settled["terminated"])
    """
    assert run_program(program) == ["{'dead'}", "8"]
