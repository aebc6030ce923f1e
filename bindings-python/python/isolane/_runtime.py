"""Where runs are started: the default runtime of the process, or one of the caller's own."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

from . import _isolane
from ._bridge import Bridge, bridge_of
from ._execution import CodeExecution
from ._options import as_function, as_method, run_arguments
from ._result import CodeExecutionResult, Status
from ._run import Run
from ._sync import close_loop, outside_of_loops, wait

#: Where the wheel has the executable of worker processes.
_FOLDER = Path(__file__).parent


@as_function(run_arguments)
def run_code(*args: Any, **options: Any) -> CodeExecution:
    """Runs `source` as an ECMAScript module in a fresh isolate of the default runtime.

    Returns at once; await the handle for the result. Host functions run on the calling event loop,
    each in a copy of the context variables as they are now; one that returns an awaitable returns a
    promise inside.

    Args:
        source: JavaScript or TypeScript.
        execute: Which export is the result, and its arguments. Default: `default`, none.
        imports: Bridged modules: bare specifier, then named exports. Values are cloned, functions
            can be called from inside and run out here.
        modules: Further source modules, by a relative specifier such as `./math.js`.
        globals: Names that every module sees, though they are not on `globalThis`.
        language: `typescript`, whose types are erased and not checked, or `javascript`.
        memory_limit_bytes: Limit on all that the run holds. Default 128 MiB.
        filename: The label of the source in stacks and errors. Default `<runCode>`.
        report: Gives the sandbox a function `report`, and is called with each value given to it.
            What it returns, or raises, is what `report` returns or throws inside.

    Raises:
        TypeError, ValueError: an option is not valid; nothing has started.
        SerializationError: a value cannot be cloned; the message says where it stands.
        RuntimeError: no event loop is running here (use `run_code_sync`).
    """
    return _start(None, run_arguments(*args, **options))


@as_function(run_arguments)
def run_code_sync(*args: Any, **options: Any) -> CodeExecutionResult:
    """Runs `source` and waits for the result: `run_code` for callers without an event loop.

    Host functions run on the calling thread; those that are coroutine functions on a loop of their
    own there. The interpreter's lock is free while the sandbox computes. Ctrl-C ends the run and
    raises `KeyboardInterrupt`.

    Args:
        source, execute, imports, modules, globals, language, memory_limit_bytes, filename, report:
            as for `run_code`.

    Raises:
        TypeError, ValueError, SerializationError: as for `run_code`.
        RuntimeError: an event loop is running on this thread (await `run_code`).
    """
    return _start_and_wait(None, run_arguments(*args, **options))


@dataclass(frozen=True)
class Confinement:
    """What workers are kept from. An item that is false could not be had on this machine: what it
    is for is then possible as far as the other items leave it. What is said here of each is how
    Linux keeps it; `SECURITY.md` says what macOS and Windows have in its place, and which they
    never have."""

    environment: bool
    """No variable of the host's environment; the time zone was read before."""
    descriptors: bool
    """No descriptor but the worker's own socket."""
    privileges: bool
    """No program that it might start has more privileges than it has (`no_new_privs`)."""
    user: bool
    """A user namespace of its own: what it may do as a user ends there."""
    capabilities: bool
    """No capability, and not root."""
    network: bool
    """A network namespace of its own, with nothing in it."""
    file_system: bool
    """Its root is an empty directory."""
    processes: bool
    """A process namespace of its own: it can name no process but those that it was forked
    beside."""
    ipc: bool
    """No System V object and no message queue of others."""
    landlock: bool
    """No right that Landlock knows of, whatever else fails: files, TCP, abstract sockets,
    signals."""
    system_calls: bool
    """The few system calls that computing takes; any other one ends the process."""
    resources: bool
    """Limits of the system on its memory, its time, and on all that it might make."""


@dataclass(frozen=True)
class Stats:
    """Counts of a runtime, as of one moment."""

    computing: int
    """Runs that compute."""
    parked: int
    """Runs that wait for their host; they hold no thread."""
    queued: int
    """Runs that wait for their turn."""
    settled: dict[Status, int]
    """Runs that have settled since the runtime was made, by status."""
    ready_isolates: int
    """Isolates that are pristine and wait for a run."""
    threads: int
    """Threads of the runtime in this process."""
    stuck_threads: int
    """Threads that do not return from a builtin, although their run has settled. They have the
    lowest priority."""
    compile_cache_bytes: int
    """Bytes of compiled modules that are kept."""
    workers: int
    """Processes that run isolates or wait for a run, under isolation by process."""
    confinement: Confinement | None
    """What workers are kept from on this machine. `None` until the first is on its way, and without
    isolation by process."""


class Runtime:
    """A place to run code in, with caps of its own. A context manager, with `with` and
    `async with`."""

    def __init__(
        self,
        *,
        isolation: Literal["thread", "process"] = "thread",
        safety_cap_ms: int | None = None,
        max_concurrent_runs: int | None = None,
        max_queued_runs: int | None = None,
        max_stuck_threads: int | None = None,
        ready_isolates: int | None = None,
        compile_cache_bytes: int | None = None,
        worker: str | os.PathLike[str] | None = None,
        runs_per_worker: int | None = None,
        worker_idle_ms: int | None = None,
    ) -> None:
        """Makes a runtime; its threads start with its first run, its workers at once.

        Args:
            isolation: Isolates on threads of this process, or in worker processes that hold nothing
                and can be killed, on Linux, macOS and Windows.
            safety_cap_ms: CPU time of one run; waiting for the host does not count. Default
                300,000.
            max_concurrent_runs: Runs that compute at once. Default 4 per core, at least 8.
            max_queued_runs: Runs that may wait for their turn; beyond it `run_code` raises.
                Default: any number.
            max_stuck_threads: Threads that may be lost to builtins that do not return when their
                run has ended. At that number each new run is `terminated`, by a `SafetyCap`, until
                one returns; at twice that number so is each run that resumes. Default 32.
            ready_isolates: Isolates kept ready ahead of need, each in a worker of its own under
                `process`. Each costs some hundred KiB.
            compile_cache_bytes: Bytes of compiled code kept for sources that come again. Workers
                keep none.
            worker: Under `process`: the path of the executable `isolane-worker`. Default: what the
                environment variable `ISOLANE_WORKER` names, or else the one that came with this
                package.
            runs_per_worker: Runs that a worker serves, one after another, before it ends. Default
                1: none ever sees two.
            worker_idle_ms: For how long workers are kept ready while there are no runs. Default
                60,000.

        Raises:
            TypeError, ValueError: an option is not valid.
        """
        # Before there is any other local name.
        options = {name: given for name, given in locals().items() if name != "self"}
        self._native = _isolane.Runtime(_FOLDER, options)

    @as_method(run_arguments)
    def run_code(self, *args: Any, **options: Any) -> CodeExecution:
        """As the free `run_code`.

        Raises:
            RuntimeError: also when the runtime is closed, or its queue full.
        """
        return _start(self._native, run_arguments(*args, **options))

    @as_method(run_arguments)
    def run_code_sync(self, *args: Any, **options: Any) -> CodeExecutionResult:
        """As the free `run_code_sync`.

        Raises:
            RuntimeError: also when the runtime is closed, or its queue full.
        """
        return _start_and_wait(self._native, run_arguments(*args, **options))

    def close(self) -> None:
        """Refuses new runs, ends live ones with the reason `runtime closed`, and returns when all
        that they held is freed: within some 250 ms. May be called again."""
        bridge = Bridge()
        closed: list[None] = []
        self._native.close(bridge.mailbox, bridge.on_closed(lambda: closed.append(None)))
        bridge.wait_until(lambda: bool(closed))

    async def aclose(self) -> None:
        """As `close`, without blocking the event loop."""
        bridge = bridge_of(asyncio.get_running_loop())
        closed = asyncio.Event()
        self._native.close(bridge.mailbox, bridge.on_closed(closed.set))
        await closed.wait()

    def stats(self) -> Stats:
        """Counts as of now."""
        counts = self._native.stats()
        confinement = counts.pop("confinement")
        return Stats(**counts, confinement=confinement and Confinement(**confinement))

    def __enter__(self) -> Runtime:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        raised: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    async def __aenter__(self) -> Runtime:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        raised: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()


def _start(runtime: _isolane.Runtime | None, arguments: dict[str, Any]) -> CodeExecution:
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        message = "run_code needs a running event loop; without one, call run_code_sync"
        raise RuntimeError(message) from None
    return CodeExecution(_begin(runtime, bridge_of(loop), arguments))


def _start_and_wait(
    runtime: _isolane.Runtime | None, arguments: dict[str, Any]
) -> CodeExecutionResult:
    with outside_of_loops():
        bridge = Bridge()
        try:
            return wait(bridge, _begin(runtime, bridge, arguments))
        finally:
            close_loop(bridge)


def _begin(runtime: _isolane.Runtime | None, bridge: Bridge, arguments: dict[str, Any]) -> Run:
    run = Run(bridge, arguments["report"])
    number = bridge.number()
    try:
        remote = _isolane.start(runtime, bridge.mailbox, number, run, arguments)
    except BaseException:
        run.failed()
        raise
    run.began(remote)
    bridge.attach(number, run)
    return run
