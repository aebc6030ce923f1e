"""Features of isolation by process: workers that are seen, killed, forked beside and outlived."""

from __future__ import annotations

import asyncio
import dataclasses
import gc
import os
import re
import signal
import subprocess
import sys
import textwrap
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import isolane
import pytest
from isolane import CodeExecution, Confinement, Runtime

from ceilings import in_loop, run_program
from isolation import ISOLATION
from processes import alive, descendants, until, workers_of

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="looks at processes as Linux lists them"),
    pytest.mark.skipif(
        ISOLATION == "process", reason="the same again, beside workers of other tests"
    ),
]

WORKER = Path(isolane.__file__).parent / "isolane-worker"
LONG = "Array.prototype.reverse.call({ length: 2 ** 53 })"

FORKED = (
    "the runtime was made before this process was forked, which runtimes do not survive: "
    "make a new one"
)

HOST = f"""
    import asyncio, isolane, os, signal, sys, threading, time, warnings
    warnings.simplefilter("ignore", DeprecationWarning)
    sys.path.insert(0, {str(Path(__file__).parent)!r})
    from processes import alive, descendants, until, workers_of

    def computing(runtime, source="f(); for (;;);"):
        "A thread with a run in it, which has begun."
        begun = threading.Event()
        def work():
            runtime.run_code_sync(source, globals={{"f": begun.set}})
        threading.Thread(target=work, daemon=True).start()
        assert begun.wait(60)
"""


async def begin(runtime: Runtime, source: str, **globals: Any) -> CodeExecution:
    """A run that has begun."""
    begun = asyncio.Event()
    run = runtime.run_code(f"begun(); {source}", globals={"begun": begun.set, **globals})
    await begun.wait()
    return run


async def never() -> None:
    await asyncio.get_running_loop().create_future()


@in_loop
async def test_counts_tell_the_workers_and_what_they_are_kept_from() -> None:
    with Runtime(isolation="thread") as threads:
        stats = threads.stats()
        assert (stats.workers, stats.confinement) == (0, None)

    async with Runtime(isolation="process", ready_isolates=2) as runtime:
        run = await begin(runtime, "await never()", never=never)
        # Only the runtime reports counts, when it is asked.
        while (stats := runtime.stats()).parked < 1 or stats.ready_isolates < 2:  # noqa: ASYNC110
            await asyncio.sleep(0.005)
        assert stats.workers == 3
        assert len(workers_of(os.getpid())) == 3
        confinement = stats.confinement
        assert isinstance(confinement, Confinement)
        items = dataclasses.asdict(confinement)
        assert len(items) == 12
        assert all(type(item) is bool for item in items.values())
        # Every machine has these.
        assert confinement.environment
        assert confinement.descriptors
        assert confinement.privileges
        run.terminate()
        assert (await run).status == "terminated"
    assert runtime.stats().workers == 0
    assert descendants(os.getpid()) == []


@pytest.mark.parametrize("source", ["for (;;);", "await never()", LONG])
@in_loop
async def test_a_worker_that_is_killed_takes_its_run_with_it_and_no_other(source: str) -> None:
    # None is kept ready: the first worker serves the first run.
    async with Runtime(isolation="process", ready_isolates=0) as runtime:
        run = await begin(runtime, source, never=never)
        [victim] = workers_of(os.getpid())
        gate = asyncio.get_running_loop().create_future()
        beside = await begin(runtime, "export default await later()", later=lambda: gate)
        os.kill(victim.pid, signal.SIGKILL)
        result = await run
        assert result.status == "error"
        assert result.error is not None
        assert (result.error.name, result.error.message) == ("WorkerLost", "the worker was killed")
        assert beside.running
        gate.set_result("well")
        assert (await beside).result == "well"


def test_run_code_sync_is_told_of_a_lost_worker() -> None:
    with Runtime(isolation="process", ready_isolates=0) as runtime:

        def kill() -> None:
            [victim] = workers_of(os.getpid())
            os.kill(victim.pid, signal.SIGKILL)

        result = runtime.run_code_sync("kill(); for (;;);", globals={"kill": kill})
        assert result.error is not None
        assert (result.status, result.error.name) == ("error", "WorkerLost")
        with pytest.raises(isolane.UncaughtError, match="WorkerLost: the worker was killed"):
            result.raise_for_status()


def test_close_leaves_no_process() -> None:
    assert run_program(f"""{HOST}
    runtime = isolane.Runtime(isolation="process", ready_isolates=2)
    computing(runtime)
    computing(runtime, "f(); {LONG}")
    below = descendants(os.getpid())
    assert len(below) >= 4, below
    runtime.close()
    print(alive(below), runtime.stats().workers)
    """) == ["[] 0"]


def test_a_runtime_that_is_dropped_leaves_no_process_in_the_end() -> None:
    assert run_program(f"""{HOST}
    runtime = isolane.Runtime(isolation="process")
    assert runtime.run_code_sync("export default 1").result == 1
    assert descendants(os.getpid())
    del runtime
    until(lambda: not descendants(os.getpid()))
    print("none")
    """) == ["none"]


@pytest.mark.parametrize("end", ["sys.exit()", "os._exit(0)", "os.kill(os.getpid(), 9)"])
@pytest.mark.parametrize("forks", [False, True])
def test_the_end_of_a_host_is_that_of_its_workers(end: str, forks: bool) -> None:
    # A child that lives on has all descriptors of the host: these must not keep the workers alive.
    program = f"""{HOST}
    runtime = isolane.Runtime(isolation="process")
    computing(runtime)
    computing(runtime, "f(); {LONG}")
    child = 0
    if {forks}:
        child = os.fork()
        if child == 0:
            time.sleep(300)
            os._exit(0)
    print(child, flush=True)
    input()
    {end}
    """
    with host(program) as process:
        child = int(read_line(process))
        below = [one for one in descendants(process.pid) if one.pid != child]
        assert len(below) >= 4, below
        process.stdin.write("go\n")
        process.stdin.flush()
        process.wait(60)
        until(lambda: not alive(below))
        if forks:
            # It has lived on, so there is a process to kill.
            os.kill(child, signal.SIGKILL)


def test_an_interrupt_of_the_process_group_does_not_reach_the_workers() -> None:
    program = f"""{HOST}
    interrupted = threading.Event()
    signal.signal(signal.SIGINT, lambda *_: interrupted.set())
    runtime = isolane.Runtime(isolation="process", ready_isolates=2)
    def wait():
        print("ready", flush=True)
        assert interrupted.wait(60)
        return "well"
    result = runtime.run_code_sync("export default wait()", globals={{"wait": wait}})
    print(result.result, runtime.run_code_sync("export default 1").result)
    runtime.close()
    """
    with host(program, start_new_session=True) as process:
        assert read_line(process) == "ready"
        os.killpg(process.pid, signal.SIGINT)
        assert read_line(process) == "well 1"
        assert process.wait(60) == 0


def test_a_forked_child_has_runtimes_of_its_own_and_not_those_of_its_parent() -> None:
    assert run_program(f"""{HOST}
    runtime = isolane.Runtime(isolation="process")
    computing(runtime)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            try:
                runtime.run_code_sync("export default 1")
            except RuntimeError as error:
                print(error, flush=True)
            runtime.close()
            with isolane.Runtime(isolation="process") as own:
                print(own.run_code_sync("export default f(1)", globals={{"f": lambda n: n}}).result)
            assert not descendants(os.getpid())
            sys.stdout.flush()
            code = 0
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    # Here all continues.
    assert runtime.stats().computing == 1
    print(runtime.run_code_sync("export default 2").result)
    runtime.close()
    print(descendants(os.getpid()))
    """) == [FORKED, "1", "2", "[]"]


def test_the_executable_is_named_by_the_option_by_the_environment_or_in_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = tmp_path / "named"
    named.symlink_to(WORKER)

    def works(worker: str | Path | None = None) -> None:
        with Runtime(isolation="process", worker=worker) as runtime:
            assert runtime.run_code_sync("export default 1").result == 1

    works(named)
    works(str(named))
    monkeypatch.setenv("ISOLANE_WORKER", str(tmp_path / "absent"))
    works(named)
    with pytest.raises(TypeError, match=re.escape(f"ISOLANE_WORKER: there is no file {tmp_path}")):
        Runtime(isolation="process")
    monkeypatch.setenv("ISOLANE_WORKER", str(named))
    works()
    monkeypatch.delenv("ISOLANE_WORKER")
    works()
    monkeypatch.chdir(tmp_path)
    works("named")


class NoPath:
    def __fspath__(self) -> str:
        raise LookupError("no path")


@pytest.mark.parametrize(
    ("options", "expected", "message"),
    [
        ({"worker": 1}, TypeError, "worker must be a path, got int"),
        ({"worker": NoPath()}, LookupError, "no path"),
        ({"worker": "/absent"}, TypeError, "worker: there is no file /absent"),
        ({"runs_per_worker": 0}, ValueError, "runs_per_worker must be a whole number from 1"),
        ({"runs_per_worker": 1.0}, TypeError, "runs_per_worker must be an int, got float"),
        ({"worker_idle_ms": -1}, ValueError, "worker_idle_ms must be a whole number from 0"),
    ],
)
def test_misuse(options: dict[str, Any], expected: type[Exception], message: str) -> None:
    with pytest.raises(expected, match=message):
        Runtime(isolation="process", **options)


@contextmanager
def host(program: str, **options: Any) -> Generator[Any]:
    """A host in a process of its own."""
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        **options,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def read_line(process: Any) -> str:
    line: str = process.stdout.readline()
    return line.rstrip("\n")


@in_loop
async def test_a_live_run_keeps_the_workers_of_its_runtime_and_no_settled_one_does() -> None:
    started = asyncio.Event()

    async def ready() -> int:
        started.set()
        gc.collect()
        assert workers_of(os.getpid()) != []
        return 6

    globals = {"ready": ready}
    handle = Runtime(isolation="process").run_code("export default await ready()", globals=globals)
    gc.collect()
    await started.wait()
    assert (await handle).status == "success"
    await asyncio.to_thread(until, lambda: workers_of(os.getpid()) == [])
    assert not handle.running
