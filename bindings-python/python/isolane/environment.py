"""Environments that run code of clients, and the service that keeps their processes.

In: options, code, environments and tools of the caller. Out: records, streams and events, as
dictionaries with the fields of HTTP. The native side checks everything, keeps all state and words
all messages.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, Protocol, TypeAlias, TypedDict, cast, final

from ._door import Door, as_error
from ._options import refuses_unknown
from ._runtime import Runtime
from ._undefined import Undefined, undefined

__all__ = [
    "EXECUTION_EXIT_STATES",
    "EXECUTION_STATES",
    "Environment",
    "EnvironmentBindings",
    "ExecutionInput",
    "ExecutionOptions",
    "ProcessError",
    "ProcessEvent",
    "ProcessList",
    "ProcessRecord",
    "ProcessServer",
    "ProcessService",
    "StreamInfo",
    "ToolContext",
    "ToolInfo",
    "TypeScriptEnvironment",
]

ExecutionState: TypeAlias = Literal["queued", "running"]
ExecutionExitState: TypeAlias = Literal["failed", "success", "timeout", "canceled"]
ProcessState: TypeAlias = Literal["idle", "queued", "running", "terminating"]

EXECUTION_STATES: Final = ("queued", "running")
"""The states that an environment reports."""
EXECUTION_EXIT_STATES: Final = ("failed", "success", "timeout", "canceled")
"""The ends of an execution."""


@dataclass(frozen=True)
class ExecutionOptions:
    """The options of an execution."""

    timeout_ms: int
    """The milliseconds after which the environment ends the execution, as `timeout`."""


@dataclass(frozen=True)
class ExecutionInput:
    """The work of an environment: one piece of code."""

    eid: int
    """The number of the execution, which is the pid of its process."""
    code: str
    """The code as it was posted."""
    options: ExecutionOptions | None = None
    """`None` where no default is configured; the environment's own default counts then."""


class StreamInfo(TypedDict):
    """The length of a stream."""

    bytes: int
    truncated: bool


class _Record(TypedDict):
    pid: int
    state: ProcessState
    exitState: ExecutionExitState | None
    error: str | None
    errorDetails: dict[str, Any] | None
    timeoutMs: int | None
    createdAt: str
    startedAt: str | None
    finishedAt: str | None
    stdout: StreamInfo
    stderr: StreamInfo


class ProcessRecord(_Record, total=False):
    """The record of a process. A field that is not known is `None`."""

    output: dict[str, Any]
    """Not in lists and events."""


class ProcessList(TypedDict):
    """A page of a list: newest first."""

    items: list[ProcessRecord]
    next: int | None
    """For `before`: where the next page begins; `None` after the last one."""


class ProcessEvent(TypedDict):
    """An event of a process."""

    id: int
    event: Literal["state", "stdout", "stderr", "output", "exit", "process"]
    data: dict[str, Any]


class ToolInfo(TypedDict, total=False):
    """A tool that is known."""

    service: str
    name: str
    identifier: str
    description: str
    inputSchema: dict[str, Any]
    outputSchema: dict[str, Any]


Tools: TypeAlias = list[ToolInfo]


@dataclass(frozen=True)
class ToolContext:
    """The execution that calls a tool."""

    eid: int
    signal: asyncio.Event
    """Set when the execution has ended before the answer."""


class ProcessError(Exception):
    """A call that the process service refused."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(code, message)
        self.code = code
        """The type of the problem: `not-found`, `not-idle`, `queue-full`, for example."""
        self.message = message

    def __str__(self) -> str:
        return self.message


class EnvironmentBindings(Protocol):
    """How an environment reports to its host. The bindings are of one execution: another `eid`
    raises a `TypeError`. After the execution has settled, calls do nothing."""

    def set_state(self, eid: int, state: ExecutionState) -> None:
        """A state that the table of states has not at this moment is ignored."""

    def stdout(self, eid: int, data: bytes | str) -> None:
        """At most 4 MiB in a call, else a `ValueError`."""

    def stderr(self, eid: int, data: bytes | str) -> None:
        """As `stdout`."""

    def output(self, eid: int, fields: Mapping[str, Any]) -> None:
        """Merges fields into the output: values of JSON."""

    def error(self, eid: int, error: str | Mapping[str, Any] | BaseException) -> None:
        """Why the execution fails; the last one counts."""

    async def invoke_tool(self, eid: int, name: str, args: Mapping[str, Any] | None = None) -> Any:
        """Calls a tool by its name, `service.tool`."""


class Environment(Protocol):
    """Runs code. It may also have `generate_docs()`, `generate_tool_docs(tool)` and
    `shutdown()`."""

    async def execute(
        self, input: ExecutionInput, bindings: EnvironmentBindings
    ) -> ExecutionExitState:
        """Runs code to its end. Says `running` when the code starts, keeps to the time limit, and
        returns promptly `canceled` after `kill`."""
        ...

    async def kill(self, eid: int) -> None:
        """Ends an execution. One that it does not know is no mistake."""


def _nothing(_: Any) -> None:
    return None


@final
class TypeScriptEnvironment:
    """Runs TypeScript and JavaScript: each execution is one cell in an isolate that nothing else
    ever uses."""

    __slots__ = ("_door",)

    @refuses_unknown("TypeScriptEnvironment")
    def __init__(
        self,
        *,
        isolation: Literal["thread", "process"] | None = None,
        concurrency: int | None = None,
        memory_limit_bytes: int | None = None,
        default_timeout_ms: int | None = None,
        globals: Mapping[str, Any] | None = None,
        imports: Mapping[str, Mapping[str, Any]] | None = None,
        modules: Mapping[str, str] | None = None,
        runtime: Runtime | None = None,
    ) -> None:
        """An environment.

        Args:
            isolation: Where the isolates live: `thread` by default.
            concurrency: Executions at once; 4 per core, at least 8, by default.
            memory_limit_bytes: The most memory of an execution; 128 MiB by default.
            default_timeout_ms: The time limit of an execution that has none; 30,000 by default.
            globals: Names that all code sees.
            imports: Bridged modules, by their specifiers.
            modules: Modules that code may import, by their relative specifiers.
            runtime: The runtime of the isolates. Not together with `isolation`.
        """
        options = {
            "isolation": isolation,
            "concurrency": concurrency,
            "memory_limit_bytes": memory_limit_bytes,
            "default_timeout_ms": default_timeout_ms,
            "globals": globals,
            "imports": imports,
            "modules": modules,
        }
        self._door = Door("typescript-environment", options, runtime)

    async def execute(
        self, input: ExecutionInput, bindings: EnvironmentBindings
    ) -> ExecutionExitState:
        """Runs code to its end."""
        given: dict[str, Any] = {"eid": input.eid, "code": input.code}
        if input.options is not None:
            given["options"] = {"timeoutMs": input.options.timeout_ms}
        functions = {
            "setState": bindings.set_state,
            "stdout": bindings.stdout,
            "stderr": bindings.stderr,
            "output": bindings.output,
            "error": bindings.error,
            "invokeTool": bindings.invoke_tool,
            "tools": getattr(bindings, "tools", None),
        }
        return cast(ExecutionExitState, await self._door.call("execute", given, functions))

    async def kill(self, eid: int) -> None:
        """Ends an execution. One that it does not know is no mistake."""
        await self._door.call("kill", eid, read=_nothing)

    async def generate_docs(self) -> str:
        """A description of the environment in Markdown, for a model that writes code."""
        return cast(str, await self._door.call("docs"))

    async def generate_tool_docs(self, tool: ToolInfo) -> str:
        """The description of a tool in Markdown, with how the code calls it."""
        return cast(str, await self._door.call("toolDocs", dict(tool)))

    async def shutdown(self) -> None:
        """Ends everything. From then on each execution settles as `canceled`."""
        await self._door.call("shutdown", read=_nothing)


ToolHandler: TypeAlias = Callable[[Any, ToolContext], Any | Awaitable[Any]]
"""Answers calls. The arguments fit the input schema; the answer is JSON."""


@final
class ProcessService:
    """Gives an environment work and keeps the records. Calls raise a `ProcessError`."""

    __slots__ = ("__weakref__", "_door", "_environment")

    @refuses_unknown("ProcessService")
    def __init__(
        self,
        *,
        environment: Environment | None = None,
        concurrency: int | None = None,
        max_queued: int | None = None,
        default_timeout_ms: int | Undefined | None = undefined,
        max_timeout_ms: int | None = None,
        kill_grace_ms: int | None = None,
        backstop_ms: int | Undefined | None = undefined,
        max_stream_bytes: int | None = None,
        max_output_bytes: int | None = None,
        retain_count: int | None = None,
        retain_ms: int | None = None,
        database: str | os.PathLike[str] | None = None,
    ) -> None:
        """A service.

        Args:
            environment: Runs the code; a `TypeScriptEnvironment` by default.
            concurrency: Executions at once; 4 per core, at least 8, by default.
            max_queued: Processes that wait for a place; 1,000 by default.
            default_timeout_ms: The time limit of processes that ask for none; 30,000 by default,
                `None` for none.
            max_timeout_ms: The longest time limit that may be asked for; 3,600,000 by default.
            kill_grace_ms: The time that a kill may take; 10,000 by default.
            backstop_ms: The time that an environment may take beyond the time limit; 60,000 by
                default, `None` for any.
            max_stream_bytes: The bytes that are kept of each stream; 8 MiB by default.
            max_output_bytes: The bytes of an output's JSON; 8 MiB by default.
            retain_count: Finished processes that are kept; 10,000 by default.
            retain_ms: How long finished processes are kept; 7 days by default.
            database: A file that keeps the processes, so that they outlive the service; it is
                made if there is none. One service has it at a time, until its `shutdown`. In
                memory by default.
        """
        options: dict[str, Any] = {
            "concurrency": concurrency,
            "max_queued": max_queued,
            "default_timeout_ms": default_timeout_ms,
            "max_timeout_ms": max_timeout_ms,
            "kill_grace_ms": kill_grace_ms,
            "backstop_ms": backstop_ms,
            "max_stream_bytes": max_stream_bytes,
            "max_output_bytes": max_output_bytes,
            "retain_count": retain_count,
            "retain_ms": retain_ms,
            "database": None if database is None else os.fspath(database),
        }
        door: list[weakref.ref[Door]] = []
        if isinstance(environment, TypeScriptEnvironment):
            # The service uses it without a way through Python, and it lives as long.
            options["environment"] = environment._door.ask("number")
        elif environment is not None:
            options["environment"] = _foreign(environment, door)
        self._environment = environment
        self._door = Door("process-service", options, as_error=_as_error)
        door.append(weakref.ref(self._door))

    async def create(
        self, code: str, *, timeout_ms: int | None = None, autorun: bool = True
    ) -> ProcessRecord:
        """Creates a process, and queues it unless `autorun` is false. With a database the process
        is saved when this returns, and outlives a crash."""
        process = {"code": code, "timeout_ms": timeout_ms, "autorun": autorun}
        return cast(ProcessRecord, await self._door.call("create", process))

    async def get(self, pid: int) -> ProcessRecord:
        """The record of a process."""
        return cast(ProcessRecord, await self._door.call("get", pid))

    async def list(
        self,
        *,
        state: ProcessState | None = None,
        exit_state: ExecutionExitState | None = None,
        limit: int | None = None,
        before: int | None = None,
    ) -> ProcessList:
        """The records of many processes, newest first."""
        query = {"state": state, "exit_state": exit_state, "limit": limit, "before": before}
        return cast(ProcessList, await self._door.call("list", query))

    async def wait(self, pid: int, longest_ms: int | None = None) -> ProcessRecord:
        """The record when the process is idle, or when that time is over."""
        return cast(ProcessRecord, await self._door.call("wait", pid, longest_ms))

    async def run(self, pid: int, *, force: bool = False) -> ProcessRecord:
        """Queues an idle process. `force` clears the results of an earlier execution."""
        return cast(ProcessRecord, await self._door.call("run", pid, {"force": force}))

    async def kill(self, pid: int) -> ProcessRecord:
        """Kills a process."""
        return cast(ProcessRecord, await self._door.call("kill", pid))

    async def delete(self, pid: int) -> None:
        """Forgets an idle process."""
        await self._door.call("delete", pid, read=_nothing)

    async def code(self, pid: int) -> str:
        """The code of a process."""
        return cast(str, await self._door.call("code", pid))

    async def stdout(self, pid: int) -> str:
        """The standard output so far."""
        return cast(str, await self._door.call("stdout", pid))

    async def stderr(self, pid: int) -> str:
        """The standard error so far."""
        return cast(str, await self._door.call("stderr", pid))

    async def output(self, pid: int) -> dict[str, Any]:
        """The output so far."""
        return cast("dict[str, Any]", await self._door.call("output", pid))

    async def events(
        self, pid: int | None = None, *, after: int | None = None
    ) -> AsyncIterator[ProcessEvent]:
        """The events of a process, those after an id or all, up to the end of its execution.
        Without a pid the changes of all processes."""
        reader = await self._door.call("events", pid, after)
        try:
            while (event := await self._door.call("nextEvent", reader)) is not None:
                yield cast(ProcessEvent, event)
        finally:
            self._door.ask("closeEvents", reader)

    def tool(
        self,
        service: str,
        name: str,
        description: Mapping[str, Any],
        handler: ToolHandler,
    ) -> None:
        """Adds a tool. Processes that start from now on have it.

        Args:
            service: The specifier of its import.
            name: Its name. One that is no identifier becomes camel case in the code.
            description: `description`, `inputSchema` and `outputSchema`.
            handler: Answers calls with JSON; may be a coroutine function.
        """
        signals: dict[int, asyncio.Event] = {}

        async def call(args: Any, eid: int, number: int) -> Any:
            signal = signals[number] = asyncio.Event()
            try:
                answer = handler(args, ToolContext(eid, signal))
                return await answer if inspect.isawaitable(answer) else answer
            finally:
                del signals[number]

        # Errors about its answer have this name.
        call.__name__ = call.__qualname__ = f"{service}.{name}"

        def abort(number: int) -> None:
            if number in signals:
                signals[number].set()

        given = call if callable(handler) else handler
        self._door.register("tool", service, name, dict(description), given, abort)

    def tools(self) -> Tools:
        """All tools."""
        return cast(Tools, self._door.ask("tools"))

    def tool_types(self) -> str:
        """The declarations of all tools in TypeScript."""
        return cast(str, self._door.ask("toolTypes"))

    async def tool_docs(self, service: str, name: str) -> str:
        """The description of a tool in Markdown, by the environment."""
        return cast(str, await self._door.call("toolDocs", service, name))

    async def environment_docs(self) -> str:
        """The description of the environment in Markdown."""
        return cast(str, await self._door.call("environmentDocs"))

    async def listen(
        self,
        *,
        host: str | None = None,
        port: int | None = None,
        token: str | None = None,
        max_body_bytes: int | None = None,
        rate_limit: Mapping[str, float] | Undefined | None = undefined,
    ) -> ProcessServer:
        """Answers clients over HTTP, with a page for people at `/`.

        Args:
            host: The address: 127.0.0.1 by default. One that is not loopback needs a `token`.
            port: 4765 by default; 0 for a free one.
            token: At least 16 characters, which clients send as `Authorization: Bearer`. Without
                one only programs of this machine can reach the server.
            max_body_bytes: The bytes of a request's body; 1 MiB by default.
            rate_limit: The POST requests of a token or an address, `per_second` and `burst`; 50 a
                second and 200 at once by default, `None` for any number.

        Raises:
            TypeError, ValueError: an option is not valid.
            RuntimeError: the address is taken.
        """
        options: dict[str, Any] = {
            "host": host,
            "port": port,
            "token": token,
            "max_body_bytes": max_body_bytes,
            "rate_limit": rate_limit,
            "service": self._door.ask("number"),
        }
        door = Door("http-server", options)
        listening = await door.call("listen")
        return ProcessServer(door, listening["url"])

    async def shutdown(self) -> None:
        """Refuses new work, cancels the queue, kills what runs, and shuts the environment down."""
        await self._door.call("shutdown", read=_nothing)

    async def __aenter__(self) -> ProcessService:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.shutdown()


@final
class ProcessServer:
    """A service that answers over HTTP."""

    __slots__ = ("_door", "url")

    def __init__(self, door: Door, url: str) -> None:
        self._door = door
        self.url = url
        """The address, such as `http://127.0.0.1:4765`."""

    async def close(self) -> None:
        """Ends streams, waits for open requests up to 5 seconds, and returns when nothing listens
        any more."""
        await self._door.call("close", read=_nothing)

    async def wait_closed(self) -> None:
        """Returns when the server has been closed."""
        await self._door.call("closed", read=_nothing)

    async def __aenter__(self) -> ProcessServer:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


class _Bindings:
    """The bindings of one execution; the native side knows them by their number."""

    __slots__ = ("_door", "_number")

    def __init__(self, door: list[weakref.ref[Door]], number: int) -> None:
        self._door = door[0]()
        self._number = number

    def set_state(self, eid: int, state: ExecutionState) -> None:
        self._ask("setState", eid, state)

    def stdout(self, eid: int, data: bytes | str) -> None:
        self._ask("stdout", eid, data)

    def stderr(self, eid: int, data: bytes | str) -> None:
        self._ask("stderr", eid, data)

    def output(self, eid: int, fields: Mapping[str, Any]) -> None:
        self._ask("output", eid, fields)

    def error(self, eid: int, error: str | Mapping[str, Any] | BaseException) -> None:
        if isinstance(error, BaseException):
            error = {"name": type(error).__name__, "message": str(error)}
        self._ask("error", eid, error)

    async def invoke_tool(self, eid: int, name: str, args: Mapping[str, Any] | None = None) -> Any:
        if self._door is None:
            return None
        return await self._door.call("invokeTool", self._number, eid, name, args)

    def _ask(self, method: str, eid: int, value: Any) -> None:
        if self._door is not None:
            self._door.ask(method, self._number, eid, value)


def _foreign(environment: Any, door: list[weakref.ref[Door]]) -> Any:
    """An environment of the caller, as functions of the native side: `execute` gets the number of
    its bindings."""

    async def execute(given: dict[str, Any], number: int) -> Any:
        options = given.get("options")
        limit = None if options is None else ExecutionOptions(options["timeoutMs"])
        work = ExecutionInput(given["eid"], given["code"], limit)
        return await _awaited(environment.execute(work, _Bindings(door, number)))

    methods = {"kill": "kill", "docs": "generate_docs", "toolDocs": "generate_tool_docs"}
    methods["shutdown"] = "shutdown"
    functions: dict[str, Any] = {}
    if callable(getattr(environment, "execute", None)):
        functions["execute"] = execute
    for name, method in methods.items():
        function = getattr(environment, method, None)
        if callable(function):
            functions[name] = _coroutine(function)
    return functions


def _coroutine(function: Callable[..., Any]) -> Callable[..., Awaitable[Any]]:
    async def call(*args: Any) -> Any:
        return await _awaited(function(*args))

    return call


async def _awaited(answer: Any) -> Any:
    return await answer if inspect.isawaitable(answer) else answer


def _as_error(thrown: Any) -> BaseException:
    if isinstance(thrown, Mapping):
        return ProcessError(thrown["code"], thrown["message"])
    return as_error(thrown)
