"""Interpreters: those that may import the package, and the end of one with live runs."""

from __future__ import annotations

import importlib.util

import pytest

from ceilings import run_program

SUB_INTERPRETER = """
    import os, sys
    first = sys.argv[1] == "first"
    try:
        import _interpreters
        def in_another(source):
            number = _interpreters.create("legacy" if sys.argv[2] == "legacy" else "isolated")
            failure = _interpreters.run_string(number, source)
            _interpreters.destroy(number)
            return None if failure is None else failure.formatted
    except ImportError:
        import _xxsubinterpreters
        def in_another(source):
            number = _xxsubinterpreters.create(isolated=sys.argv[2] == "isolated")
            _xxsubinterpreters.run_string(number, source)
            _xxsubinterpreters.destroy(number)

    path = f"import sys; sys.path[:] = {sys.path!r}"
    if first:
        import isolane
        assert isolane.run_code_sync("export default 1").result == 1
    attempt = (
        "try: import isolane\\n"
        "except ImportError as refusal: assert 'interpreter' in str(refusal), refusal\\n"
        "else: raise AssertionError('imported')\\n"
    )
    for _ in range(2):
        failure = in_another(path + "\\n" + attempt)
        assert failure is None, failure
    import isolane
    print(isolane.run_code_sync("export default 2").result, flush=True)
    # Some versions of Python abort at their end when a sub-interpreter has imported asyncio.
    os._exit(0)
"""


@pytest.mark.skipif(
    importlib.util.find_spec("_interpreters") is None
    and importlib.util.find_spec("_xxsubinterpreters") is None,
    reason="this Python has no sub-interpreters",
)
@pytest.mark.parametrize("kind", ["isolated", "legacy"])
@pytest.mark.parametrize("order", ["first", "last"])
def test_a_sub_interpreter_is_refused(order: str, kind: str) -> None:
    assert run_program(SUB_INTERPRETER, order, kind) == ["2"]


EXIT = """
    import asyncio, atexit, isolane, sys, threading

    loop = asyncio.new_event_loop()

    async def start(source, **globals):
        return isolane.run_code(source, globals=globals, report=lambda value: reported.set())

    async def never():
        await asyncio.get_running_loop().create_future()

    reported = threading.Event()
    kind = sys.argv[1]
    if kind == "spinning":
        handle = loop.run_until_complete(start("report(1); for (;;);"))
    elif kind == "parked":
        async def park():
            handle = await start("report(1); await never()", never=never)
            while not handle.reports:
                await asyncio.sleep(0)
            return handle
        handle = loop.run_until_complete(park())
    elif kind == "queued":
        handles = [loop.run_until_complete(start("for (;;);")) for _ in range(100)]
    elif kind == "holding":
        kept = []
        async def hold():
            handle = await start("take(() => 1, new Promise(() => {})); await never()",
                                 never=never, take=lambda *values: kept.append(values))
            while not kept:
                await asyncio.sleep(0)
            return handle
        handle = loop.run_until_complete(hold())
    elif kind == "in a host call":
        def leave():
            print("left")
            loop.close()
            sys.exit()
        isolane.run_code_sync("leave()", globals={"leave": leave})
    elif kind == "in a coroutine":
        async def leave():
            print("left")
            loop.close()
            sys.exit()
        isolane.run_code_sync("await leave()", globals={"leave": leave})
    elif kind == "daemon thread":
        begun = threading.Event()
        def work():
            isolane.run_code_sync("begun(); for (;;);", globals={"begun": begun.set})
        threading.Thread(target=work, daemon=True).start()
        begun.wait()
    elif kind == "daemon thread without a loop":
        threading.Thread(target=isolane.run_code_sync, args=("for (;;);",), daemon=True).start()
    elif kind == "daemon thread in a host call":
        begun = threading.Event()
        def block():
            begun.set()
            threading.Event().wait()
        def work():
            isolane.run_code_sync("block()", globals={"block": block})
        threading.Thread(target=work, daemon=True).start()
        begun.wait()
    elif kind == "runtime":
        runtime = isolane.Runtime()
        async def own():
            return runtime.run_code("for (;;);")
        handle = loop.run_until_complete(own())
    elif kind == "atexit":
        atexit.register(lambda: print(isolane.run_code_sync("export default 1").result))
    elif kind == "finalizer":
        class Late:
            def __del__(self):
                handle.terminate("late")
                print(handle.reports)
        handle = loop.run_until_complete(start("for (;;);"))
        sys.modules["late"] = Late()
    loop.close()
    print("end")
"""


@pytest.mark.parametrize(
    ("kind", "printed"),
    [
        ("spinning", ["end"]),
        ("parked", ["end"]),
        ("queued", ["end"]),
        ("holding", ["end"]),
        ("in a host call", ["left"]),
        ("in a coroutine", ["left"]),
        ("daemon thread", ["end"]),
        ("daemon thread without a loop", ["end"]),
        ("daemon thread in a host call", ["end"]),
        ("runtime", ["end"]),
        ("atexit", ["end", "1"]),
        ("finalizer", ["end", "[]"]),
    ],
)
def test_the_interpreter_ends_with_runs_live(kind: str, printed: list[str]) -> None:
    assert run_program(EXIT, kind) == printed


def test_the_interpreter_ends_without_closing_its_loop() -> None:
    program = """
        import asyncio, isolane, warnings
        warnings.simplefilter("ignore")
        loop = asyncio.new_event_loop()
        async def start():
            return isolane.run_code("for (;;);")
        handle = loop.run_until_complete(start())
        kept = loop, asyncio, isolane
        print("end")
    """
    assert run_program(program) == ["end"]


def test_asyncio_run_ends_with_runs_live() -> None:
    program = """
        import asyncio, isolane
        async def main():
            global handle
            handle = isolane.run_code("for (;;);")
            other = asyncio.ensure_future(isolane.run_code("for (;;);"))
            await asyncio.sleep(0)
        asyncio.run(main())
        print(asyncio.run(asyncio.wait_for(handle, 60)).error.message)
    """
    assert run_program(program) == ["the event loop that started the run has closed"]


def test_debug_mode_of_asyncio_finds_nothing() -> None:
    program = """
        import asyncio, isolane, logging, sys
        sys.stderr = sys.stdout  # slow callbacks are reported there
        async def twice(x):
            return 2 * x
        async def main():
            source = "export default await twice(21)"
            handles = [isolane.run_code(source, globals={"twice": twice}) for _ in range(3)]
            tasks = [asyncio.create_task(handle) for handle in handles]
            assert "CodeExecution" in repr(tasks[0]), tasks
            tasks[0].print_stack()
            tasks[0].get_stack()
            return [result.result for result in await asyncio.gather(*tasks)]
        print(asyncio.run(main(), debug=True))
        source = "export default await twice(4)"
        print(isolane.run_code_sync(source, globals={"twice": twice}).result)
    """
    assert run_program(program)[-2:] == ["[42, 42, 42]", "8"]
