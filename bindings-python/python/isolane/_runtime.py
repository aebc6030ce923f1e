"""Runtimes, which start runs: the default one of the process, and those of the caller."""

from __future__ import annotations

import asyncio
import weakref
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from . import _isolane
from ._bridge import Bridge, bridge_of
from ._closing import AsyncClosing
from ._execution import CodeExecution
from ._options import (
    as_function,
    as_method,
    bound,
    default_of,
    run_arguments,
    runtime_arguments,
    session_arguments,
)
from ._result import AnyResult, Status
from ._run import Run, begin
from ._session import Session, open_session
from ._session_host import SessionHost
from ._sync import close_loop, outside_of_loops, wait

#: The folder of the wheel that has the executable of worker processes.
FOLDER = Path(__file__).parent


@as_function(run_arguments)
def run_code(*args: Any, **options: Any) -> CodeExecution:
    """Runs `source` as an ECMAScript module in a fresh isolate of the default runtime.

    Returns at once; await the handle for the result. Host functions run on the calling event loop,
    each in a copy of the present context variables. A host function that returns an awaitable
    returns a promise inside.

    Args:
        source: JavaScript or TypeScript.
        execute: The export that is the result, and its arguments. Default: `default`, none.
        imports: Bridged modules: bare specifier, then named exports. Values are cloned. Functions
            run in the host when the sandbox calls them.
        modules: Further source modules, by a relative specifier such as `./math.js`.
        globals: Names that every module sees, though they are not on `globalThis`.
        language: `typescript`, whose types are erased and not checked, or `javascript`.
        memory_limit_bytes: Limit on all memory that the run holds. Default 128 MiB.
        filename: The label of the source in stacks and errors. Default `<runCode>`.
        report: Gives the sandbox a function `report`, and is called with each value passed to it.
            Its return value or its exception is that of `report` inside.
        default: Converts values that cannot be cloned, as the `default` of `json.dumps` does: it
            is called with each of them, and returns another value or raises. Default: that of the
            runtime.

    Raises:
        TypeError, ValueError: an option is not valid; nothing has started.
        SerializationError: a value cannot be cloned; the message has its path.
        RuntimeError: no event loop is running here (use `run_code_sync`).
    """
    return _start(None, args, options)


@as_function(run_arguments)
def run_code_sync(*args: Any, **options: Any) -> AnyResult:
    """Runs `source` and waits for the result: `run_code` for callers without an event loop.

    Host functions run on the calling thread. Coroutine functions run there on a loop of their own.
    The interpreter's lock is free while the sandbox computes. Ctrl-C ends the run and raises
    `KeyboardInterrupt`.

    Args:
        source, execute, imports, modules, globals, language, memory_limit_bytes, filename, report,
            default: as for `run_code`.

    Raises:
        TypeError, ValueError, SerializationError: as for `run_code`.
        RuntimeError: an event loop is running on this thread (await `run_code`).
    """
    return _start_and_wait(None, args, options)


@dataclass(frozen=True)
class Confinement:
    """The protections of workers. An item is false if this machine does not support it. Then only
    the other items restrict the acts that it would prevent. The descriptions are those of Linux;
    `SECURITY.md` describes macOS and Windows, and the items that they never have."""

    environment: bool
    """No variable of the host's environment; the worker has read the time zone before."""
    descriptors: bool
    """No descriptor but the worker's own socket."""
    privileges: bool
    """A program that the worker starts cannot gain privileges (`no_new_privs`)."""
    user: bool
    """A user namespace of its own: the worker's rights as a user end there."""
    capabilities: bool
    """No capability, and not root."""
    network: bool
    """An empty network namespace of its own."""
    file_system: bool
    """The worker's root is an empty directory."""
    processes: bool
    """A process namespace of its own: the worker can name no process outside of it."""
    ipc: bool
    """No System V object and no message queue of other processes."""
    landlock: bool
    """No right that Landlock controls, even if other items fail: files, TCP, abstract sockets,
    signals."""
    system_calls: bool
    """Only the few system calls that computing needs; any other one ends the process."""
    resources: bool
    """Limits of the system on the worker's memory, time and new objects."""


@dataclass(frozen=True)
class Stats:
    """Counts of a runtime, as of one moment."""

    computing: int
    """Runs that compute."""
    parked: int
    """Runs that wait for their host; they hold no thread."""
    queued: int
    """Runs that wait for a permit to compute."""
    settled: dict[Status, int]
    """Runs that have settled since the runtime was made, by status."""
    sessions: int
    """Sessions that are open."""
    ready_isolates: int
    """Pristine isolates that wait for a run."""
    threads: int
    """Threads of the runtime in this process."""
    stuck_threads: int
    """Threads that do not return from a builtin, although their run has settled. They have the
    lowest priority."""
    compile_cache_bytes: int
    """Bytes of compiled modules in the cache."""
    uncached_modules: int
    """Modules that were compiled and not kept, because each takes more than half of the option
    `compile_cache_bytes`. Each run compiles them again."""
    workers: int
    """Processes that run isolates or wait for a run, under isolation by process."""
    confinement: Confinement | None
    """The protections of workers on this machine. `None` before the first worker has started, and
    without isolation by process."""


class Runtime(AsyncClosing):
    """Runs code with caps of its own. A context manager for `with` and `async with`."""

    @as_method(runtime_arguments)
    def __init__(self, **options: Any) -> None:
        """Makes a runtime; its threads start with its first run, its workers at once.

        Args:
            isolation: Isolates on threads of this process, or in worker processes on Linux, macOS
                and Windows. A worker holds no secrets and can be killed.
            safety_cap_ms: CPU time of one run; waiting for the host does not count. Default
                300,000.
            max_concurrent_runs: Runs that compute at once. Default 4 per core, at least 8.
            max_queued_runs: Runs that may wait to compute; beyond that `run_code` raises a
                `QueueFullError`. Default: any number.
            max_stuck_threads: Threads that may be stuck in builtins after their run has ended. At
                that number each new run is `terminated`, by a `SafetyCap`, until one returns; at
                twice that number so is each run that resumes. Default 32.
            ready_isolates: Isolates that are made ahead of need, each in a worker of its own under
                `process`. Each takes some hundred KiB.
            compile_cache_bytes: Bytes of compiled code kept for repeated sources. Workers keep
                none.
            worker: Under `process`: the path of the executable `isolane-worker`. Default: the value
                of the environment variable `ISOLANE_WORKER`, or else the executable of this
                package.
            runs_per_worker: Runs that a worker serves, one after another, before it ends. Default
                1: no worker serves two runs.
            worker_idle_ms: The time for which workers are kept ready without runs. Default 60,000.
            default: Converts values that cannot be cloned, as for `run_code`, in all runs,
                sessions and systems of the runtime that have none of their own.

        Raises:
            TypeError, ValueError: an option is not valid.
        """
        given = bound(runtime_arguments, "Runtime", (), options)
        self._native = _isolane.Runtime(FOLDER, given)
        self._default = given["default"]
        self._sessions: weakref.WeakSet[SessionHost] = weakref.WeakSet()

    @as_method(run_arguments)
    def run_code(self, *args: Any, **options: Any) -> CodeExecution:
        """As the free `run_code`.

        Raises:
            RuntimeClosedError, QueueFullError: also when the runtime is closed, or its queue full.
        """
        return _start(self, args, options)

    @as_method(run_arguments)
    def run_code_sync(self, *args: Any, **options: Any) -> AnyResult:
        """As the free `run_code_sync`.

        Raises:
            RuntimeClosedError, QueueFullError: also when the runtime is closed, or its queue full.
        """
        return _start_and_wait(self, args, options)

    @as_method(session_arguments)
    def session(self, **options: Any) -> Session:
        """Opens a session, as `Session` does.

        Raises:
            RuntimeClosedError: also when the runtime is closed.
        """
        arguments = bound(session_arguments, "session", (), options)
        return open_session(self, self._sessions, arguments)

    def close(self) -> None:
        """Refuses new runs, ends live ones with the reason `runtime closed`, and closes its
        sessions. Returns when their memory is freed, within some 250 ms. May be called again."""
        bridge = Bridge()
        closed: list[None] = []
        self._native.close(bridge.mailbox, bridge.on_closed(lambda: closed.append(None)))
        bridge.wait_until(lambda: bool(closed))
        self._finish_sessions()

    async def aclose(self) -> None:
        """As `close`, without blocking the event loop."""
        bridge = bridge_of(asyncio.get_running_loop())
        closed = asyncio.Event()
        self._native.close(bridge.mailbox, bridge.on_closed(closed.set))
        await closed.wait()
        self._finish_sessions()

    def _finish_sessions(self) -> None:
        for session in tuple(self._sessions):
            session.finish()

    def stats(self) -> Stats:
        """Counts as of now."""
        counts = self._native.stats()
        confinement = counts.pop("confinement")
        return Stats(**counts, confinement=confinement and Confinement(**confinement))


def _start(
    runtime: Runtime | None, args: tuple[Any, ...], options: dict[str, Any]
) -> CodeExecution:
    arguments = bound(run_arguments, "run_code", args, options)
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        message = "run_code needs a running event loop; without one, call run_code_sync"
        raise RuntimeError(message) from None
    return CodeExecution(_begin(runtime, bridge_of(loop), arguments))


def _start_and_wait(
    runtime: Runtime | None, args: tuple[Any, ...], options: dict[str, Any]
) -> AnyResult:
    arguments = bound(run_arguments, "run_code_sync", args, options)
    with outside_of_loops():
        bridge = Bridge()
        try:
            run = _begin(runtime, bridge, arguments)
            # The exception of a host function refers to the frames that wait.
            arguments.clear()
            options.clear()
            return cast(AnyResult, wait(bridge, run))
        finally:
            close_loop(bridge)


def _begin(runtime: Runtime | None, bridge: Bridge, arguments: dict[str, Any]) -> Run:
    native = None if runtime is None else runtime._native
    run = Run(bridge, native, arguments["report"])
    run.default = default_of(arguments, runtime)
    begin(
        bridge, run, lambda number: _isolane.start(native, bridge.mailbox, number, run, arguments)
    )
    return run
