"""Ready-made capabilities for code that a model wrote: requests, state, a database, libraries and
secrets. They are answered in Rust; none of them crosses into Python.

A `Kit` runs tools, modules and sessions whose code has the capabilities, and gives the host itself
the same ones.
"""

from __future__ import annotations

import asyncio
import os
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeAlias, TypedDict, TypeVar, cast, final

from ._bridge import Bridge, bridge_of
from ._closing import AsyncClosing
from ._door import Door, as_error
from ._execution import KitCellExecution, KitExecution
from ._options import (
    Default,
    Execute,
    Language,
    as_method,
    bound,
    default_of,
    refuses_unknown,
    session_arguments,
)
from ._page import PageDriver, kind_of_source
from ._result import CodeExecutionResult, KitCall, KitCellResult, KitResult, as_kind
from ._run import Run, begin
from ._runtime import Runtime
from ._session import KitSession, kit_session_of
from ._session_host import SessionHost
from ._sync import close_loop, outside_of_loops, wait

__all__ = [
    "Kit",
    "KitCall",
    "KitCellExecution",
    "KitCellResult",
    "KitDb",
    "KitError",
    "KitExecution",
    "KitLibraries",
    "KitResult",
    "KitSecrets",
    "KitSession",
    "KitState",
    "Library",
    "LibrarySummary",
    "Proxy",
    "Secret",
]

Params = Sequence[Any] | Mapping[str, Any] | None
Value = TypeVar("Value")
Limits = Mapping[str, Any]
BrowserSource: TypeAlias = Any
"""A page or a context of Playwright, or a function of a `Proxy` that gives one."""


class KitError(Exception):
    """An error of a capability, when the host uses it: with the name and the message that code
    would see."""

    def __init__(
        self,
        name: str,
        message: str,
        code: str | None = None,
        filename: str | None = None,
        line: int | None = None,
        column: int | None = None,
    ) -> None:
        super().__init__(name, message, code, filename, line, column)
        self.name = name
        """Such as `DbError`."""
        self.message = message
        self.code = code
        """That of a `DbError`: SQLite's, such as `SQLITE_CONSTRAINT`."""
        self.filename = filename
        """The file of the position, such as `library:utils`, if a source does not parse."""
        self.line = line
        """From 1."""
        self.column = column
        """From 1, in UTF-16 code units."""

    # A host function that raises it throws an error of that name and message into the sandbox.
    _is_named = True

    def __str__(self) -> str:
        return f"{self.name}: {self.message}"


class Secret(TypedDict, total=False):
    """A secret. With `hosts` code sees a placeholder, which becomes the value in requests to
    them."""

    value: str
    """8 to 8,192 bytes."""
    hosts: Sequence[str]
    """Patterns of the hosts that may see the value."""
    reveal: bool
    """Whether code sees the value itself."""
    # `in` is a key as well: the parts of a request in which the value may stand, of `url`,
    # `header` and `body`. Python has no way to declare that name in a class.


class Proxy(TypedDict):
    """A proxy in the form in which Playwright takes it."""

    server: str
    """`http://127.0.0.1:PORT`."""
    username: str
    password: str
    """It is random."""
    args: list[str]
    """The switches that Chromium needs beside it, for Playwright's `args`: without them WebRTC
    passes it by."""


class LibrarySummary(TypedDict):
    """A library without its source."""

    name: str
    language: Language
    description: str
    modifiedOn: str
    """The time of its last change, as ISO text in UTC."""


class Library(LibrarySummary):
    """A library."""

    source: str


_NAMES = {
    "state.get": ("key",),
    "state.set": ("key", "value"),
    "state.delete": ("key",),
    "state.keys": ("prefix",),
    "db.sql": ("sql", "params"),
    "db.batch": ("statements",),
    "libraries.create": ("name", "source", "options"),
    "libraries.update": ("name", "source", "options"),
    "libraries.delete": ("name",),
    "libraries.get": ("name",),
    "secrets.set": ("name", "secret"),
    "secrets.delete": ("name",),
}


class _Side:
    """A group of functions of the host's side."""

    __slots__ = ("_door",)

    def __init__(self, door: Door) -> None:
        self._door = door


@final
class KitState(_Side):
    """An agent's values by name, as code has them.

    All functions raise a `KitError` where code would be thrown one, and a `RuntimeError` if the kit
    has no state, or is closed.
    """

    __slots__ = ()

    async def get(self, key: str) -> Any:
        """The value; `None` if there is none."""
        return await self._door.answer("state.get", key)

    async def set(self, key: str, value: Any) -> None:
        """Keeps a value in JSON form."""
        await self._door.answer("state.set", key, value)

    async def delete(self, key: str) -> bool:
        """Forgets a value. Returns whether there was one."""
        return bool(await self._door.answer("state.delete", key))

    async def keys(self, prefix: str = "") -> list[str]:
        """The keys that begin so, in the order of their bytes."""
        return list(await self._door.answer("state.keys", prefix))

    def get_sync(self, key: str) -> Any:
        """As `get`, and waits for it."""
        return self._door.answer_sync("state.get", key)

    def set_sync(self, key: str, value: Any) -> None:
        """As `set`, and waits for it."""
        self._door.answer_sync("state.set", key, value)

    def delete_sync(self, key: str) -> bool:
        """As `delete`, and waits for it."""
        return bool(self._door.answer_sync("state.delete", key))

    def keys_sync(self, prefix: str = "") -> list[str]:
        """As `keys`, and waits for it."""
        return list(self._door.answer_sync("state.keys", prefix))


@final
class KitDb(_Side):
    """The database, as code has it. Errors are as those of `KitState`."""

    __slots__ = ()

    async def sql(self, sql: str, params: Params = None) -> dict[str, Any]:
        """Runs one statement. A read gives `columns`, `rows`, `row_count` and `truncated`; a write
        `changes` and `last_insert_rowid`."""
        return dict(await self._door.answer("db.sql", sql, *_given(params)))

    async def batch(self, statements: Sequence[Sequence[Any]]) -> list[dict[str, Any]]:
        """Runs statements, each with its parameters if it has any, in one transaction: all or
        none."""
        return list(await self._door.answer("db.batch", statements))

    async def schema(self) -> dict[str, Any]:
        """The tables with their columns."""
        return dict(await self._door.answer("db.schema"))

    def sql_sync(self, sql: str, params: Params = None) -> dict[str, Any]:
        """As `sql`, and waits for it."""
        return dict(self._door.answer_sync("db.sql", sql, *_given(params)))

    def batch_sync(self, statements: Sequence[Sequence[Any]]) -> list[dict[str, Any]]:
        """As `batch`, and waits for it."""
        return list(self._door.answer_sync("db.batch", statements))

    def schema_sync(self) -> dict[str, Any]:
        """As `schema`, and waits for it."""
        return dict(self._door.answer_sync("db.schema"))


@final
class KitLibraries(_Side):
    """The libraries that code can `require`. Errors are as those of `KitState`; that of a source
    that does not parse has its place."""

    __slots__ = ()

    async def create(
        self, name: str, source: str, *, language: Language = "typescript", description: str = ""
    ) -> None:
        """Adds a library, of which there must be none of that name."""
        options = {"language": language, "description": description}
        await self._door.answer("libraries.create", name, source, options)

    async def update(
        self,
        name: str,
        source: str | None = None,
        *,
        language: Language | None = None,
        description: str | None = None,
    ) -> None:
        """Changes a library; what is not given stays."""
        await self._door.answer("libraries.update", name, source, _options(language, description))

    async def delete(self, name: str) -> bool:
        """Removes a library. Returns whether there was one."""
        return bool(await self._door.answer("libraries.delete", name))

    async def get(self, name: str) -> Library | None:
        """A library; `None` if there is none of that name."""
        return _library(await self._door.answer("libraries.get", name))

    async def list(self) -> list[LibrarySummary]:
        """All libraries by name, without sources."""
        return [*(await self._door.answer("libraries.list"))]

    def create_sync(
        self, name: str, source: str, *, language: Language = "typescript", description: str = ""
    ) -> None:
        """As `create`, and waits for it."""
        options = {"language": language, "description": description}
        self._door.answer_sync("libraries.create", name, source, options)

    def update_sync(
        self,
        name: str,
        source: str | None = None,
        *,
        language: Language | None = None,
        description: str | None = None,
    ) -> None:
        """As `update`, and waits for it."""
        self._door.answer_sync("libraries.update", name, source, _options(language, description))

    def delete_sync(self, name: str) -> bool:
        """As `delete`, and waits for it."""
        return bool(self._door.answer_sync("libraries.delete", name))

    def get_sync(self, name: str) -> Library | None:
        """As `get`, and waits for it."""
        return _library(self._door.answer_sync("libraries.get", name))

    def list_sync(self) -> Sequence[LibrarySummary]:
        """As `list`, and waits for it."""
        return [*self._door.answer_sync("libraries.list")]


@final
class KitSecrets:
    """The secrets of a kit. Requests see a change at once; names change with the next run or
    session. All functions raise a `RuntimeError` if the kit has no secrets, or is closed."""

    __slots__ = ("_door",)

    def __init__(self, door: Door) -> None:
        self._door = door

    def set(self, name: str, secret: Secret | Mapping[str, Any]) -> None:
        """Gives a secret, or another one of that name."""
        given = dict(secret) if isinstance(secret, Mapping) else secret
        self._door.ask("secrets.set", name, given)

    def delete(self, name: str) -> bool:
        """Takes a secret away. Returns whether there was one. It stays redacted."""
        return bool(self._door.ask("secrets.delete", name))

    def names(self) -> list[str]:
        """The names, in order."""
        return list(self._door.ask("secrets.names"))


def tool_arguments(
    source: str,
    *,
    args: Mapping[str, Any] | None = None,
    globals: Mapping[str, Any] | None = None,
    report: Callable[[Any], Any] | None = None,
    language: Language = "typescript",
    filename: str | None = None,
    memory_limit_bytes: int | None = None,
    timeout_ms: int | None = None,
    default: Default | None = None,
) -> dict[str, Any]:
    """The arguments of a tool, by name."""
    return locals()


def code_arguments(
    source: str,
    *,
    execute: Execute | None = None,
    imports: Mapping[str, Mapping[str, Any]] | None = None,
    modules: Mapping[str, str] | None = None,
    globals: Mapping[str, Any] | None = None,
    language: Language = "typescript",
    memory_limit_bytes: int | None = None,
    filename: str | None = None,
    report: Callable[[Any], Any] | None = None,
    timeout_ms: int | None = None,
    default: Default | None = None,
) -> dict[str, Any]:
    """The arguments of a module, by name."""
    return locals()


@final
class Kit(AsyncClosing):
    """Capabilities for runs. A context manager for `with` and `async with`. An open kit keeps no
    thread and no process alive."""

    __slots__ = (
        "__weakref__",
        "_default",
        "_door",
        "_sessions",
        "db",
        "libraries",
        "secrets",
        "state",
    )

    @refuses_unknown("Kit")
    def __init__(
        self,
        *,
        agent: str | None = None,
        file: str | os.PathLike[str] | None = None,
        state: Literal[True] | Limits | None = None,
        libraries: Literal[True] | Limits | None = None,
        db: Literal[True] | Limits | None = None,
        fetch: Literal["public"] | Sequence[Any] | Limits | None = None,
        secrets: Mapping[str, Secret | Mapping[str, Any]] | None = None,
        browser: BrowserSource | Mapping[str, Any] | None = None,
        web: bool | None = None,
        timers: Limits | None = None,
        runtime: Runtime | None = None,
        timeout_ms: int | None = None,
        memory_limit_bytes: int | None = None,
        max_calls: int | None = None,
        max_recorded_calls: int | None = None,
    ) -> None:
        """Opens a kit. A capability that is not given does not exist inside.

        Args:
            agent: The owner of state and libraries; agents never see each other's. Default
                `default`.
            file: The SQLite file of state and libraries. It is made if it is missing. Default: in
                memory.
            state: Gives code `state`; `True`, or limits: `max_key_bytes`, `max_value_bytes`,
                `max_total_bytes`.
            libraries: Gives code `require`; `True`, or limits: `max_depth`, `max_source_bytes`,
                `max_count`.
            db: Gives code `db`; `True` for a database in memory, or options: `file`, `read_only`,
                `timeout_ms`, `max_rows`, `max_result_bytes`, `max_value_bytes`,
                `max_statement_bytes`, `max_file_bytes`.
            fetch: Gives code `fetch`: `public`, a list of what is allowed, or options: `allow`,
                `allow_addresses`, `ca`, `timeout_ms`, `max_redirects`, `max_request_bytes`,
                `max_response_bytes`, `max_in_flight`, `max_calls`, `max_total_bytes`.
            secrets: Gives code `secrets`.
            browser: Gives code `browser`: a page or a context of Playwright, or a function of a
                proxy that gives one, which is called when code uses `browser` for the first time;
                or options: one of `page` and `context`, `allow` (default: as `fetch`; without it
                `public`), `timeout_ms`, `max_result_bytes`. Synchronous pages work in runs that are
                waited for, asynchronous ones in runs that are awaited.
            web: Gives code the classes of the web, such as `URL`. Default `True`.
            timers: Limits of timers: `max_delay_ms`, `max_pending`.
            runtime: The runtime of the runs. Default: that of the process.
            timeout_ms: The time after which a run ends as `terminated`, with the name `Timeout`.
                Default 30,000.
            memory_limit_bytes: The limit of runs that give none. Default 128 MiB.
            max_calls: The calls of capabilities in one run. Default 10,000.
            max_recorded_calls: The calls that a result lists. Default 1,000.

        Raises:
            TypeError, ValueError: an option is not valid; nothing is open.
            RuntimeError: a file is no such database; the message names it.
        """
        # `locals()` has only the parameters here.
        options = {
            name: given
            for name, given in locals().items()
            if name not in ("self", "runtime", "browser") and given is not None
        }
        if isinstance(file, os.PathLike):
            options["file"] = os.fspath(file)
        if isinstance(db, Mapping) and isinstance(db.get("file"), os.PathLike):
            options["db"] = {**db, "file": os.fspath(db["file"])}
        source = None
        if browser is not None:
            source, options["browser"] = _read_browser(browser)
        door = Door("kit", options, runtime, _error_of, names=_NAMES)
        if source is not None:
            door.page = PageDriver(source, door)
        self._door = door
        self._default = None if runtime is None else runtime._default
        self._sessions: weakref.WeakSet[SessionHost] = weakref.WeakSet()
        self.state = KitState(door)
        self.db = KitDb(door)
        self.libraries = KitLibraries(door)
        self.secrets = KitSecrets(door)

    @as_method(tool_arguments)
    def run_tool(self, *args: Any, **options: Any) -> KitExecution:
        """Runs a tool: TypeScript or JavaScript with top-level `await` and `return`.

        Returns at once; await the handle for the result. Host functions run on the calling event
        loop, each in a copy of the present context variables.

        Args:
            source: The tool.
            args: The `args` of the tool, a plain mapping. It is cloned.
            globals, report, language: as for `isolane.run_code`; reports are redacted.
            filename: The label of the source in stacks and errors. Default `<tool>`.
            memory_limit_bytes, timeout_ms: in place of those of the kit.
            default: as for `isolane.run_code`. Default: that of the runtime of the kit.

        Raises:
            TypeError, ValueError: an option is not valid; nothing has started.
            SerializationError: a value cannot be cloned; the message has its path.
            RuntimeError: the kit is closed; or no event loop is running here (use
                `run_tool_sync`).
        """
        return self._start(bound(tool_arguments, "run_tool", args, options), "tool")

    @as_method(tool_arguments)
    def run_tool_sync(self, *args: Any, **options: Any) -> KitResult:
        """As `run_tool`, and waits for the result."""
        return self._start_and_wait(bound(tool_arguments, "run_tool_sync", args, options), "tool")

    @as_method(code_arguments)
    def run_code(self, *args: Any, **options: Any) -> KitExecution:
        """Runs a module, as `isolane.run_code` does, with the capabilities of the kit."""
        return self._start(bound(code_arguments, "run_code", args, options), "code")

    @as_method(code_arguments)
    def run_code_sync(self, *args: Any, **options: Any) -> KitResult:
        """As `run_code`, and waits for the result."""
        return self._start_and_wait(bound(code_arguments, "run_code_sync", args, options), "code")

    @as_method(session_arguments)
    def session(self, **options: Any) -> KitSession:
        """Opens a session whose cells have the capabilities of the kit. The result of a cell is a
        `KitCellResult`."""
        arguments = bound(session_arguments, "session", (), options)
        interleaves = arguments["cells"] == "interleave"
        system = self._door.native
        host = SessionHost(system, arguments["report"], self._sessions, interleaves=interleaves)
        host.page = self._door.page
        host.default = default_of(arguments, self)
        try:
            native = system.session(host, arguments)
        except BaseException:
            host.failed()
            raise
        host.opened(native)
        return kit_session_of(host)

    async def describe(self) -> str:
        """The TypeScript declarations of all that code sees, for a prompt."""
        return str(await self._door.answer("describe"))

    def describe_sync(self) -> str:
        """As `describe`, and waits for it."""
        return str(self._door.answer_sync("describe"))

    async def proxy(self) -> Proxy:
        """A proxy on loopback for a browser, in the form of Playwright's option `proxy`. It judges
        every request of the pages as `browser.navigate` is judged; over https it judges origins
        alone. It ends with the kit."""
        return cast(Proxy, await self._door.answer("proxy"))

    def proxy_sync(self) -> Proxy:
        """As `proxy`, and waits for it."""
        return cast(Proxy, self._door.answer_sync("proxy"))

    def close(self) -> None:
        """Refuses new runs, ends live ones with the reason `kit closed`, and closes its sessions
        and files. May be called again."""
        self._door.ask("close")
        for session in tuple(self._sessions):
            session.finish()

    async def aclose(self) -> None:
        """As `close`, and waits until the page of `browser` is the host's again: what a run had it
        load is stopped."""
        self.close()
        if self._door.page is not None:
            await self._door.answer("page.rest")

    def _start(self, arguments: dict[str, Any], kind: str) -> KitExecution:
        name = f"run_{kind}"
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            message = f"{name} needs a running event loop; without one, call {name}_sync"
            raise RuntimeError(message) from None
        return KitExecution(self._begin(bridge_of(loop), arguments, kind))

    def _start_and_wait(self, arguments: dict[str, Any], kind: str) -> KitResult:
        name = f"run_{kind}"
        with outside_of_loops(f"{name}_sync", name, self._door.page):
            bridge = Bridge()
            try:
                run = self._begin(bridge, arguments, kind)
                # The exception of a host function refers to the frames that wait.
                arguments.clear()
                return cast(KitResult, wait(bridge, run))
            finally:
                close_loop(bridge)

    def _begin(self, bridge: Bridge, arguments: dict[str, Any], kind: str) -> Run:
        native, page = self._door.native, self._door.page
        run = _KitRun(bridge, native, arguments["report"])
        run.default = default_of(arguments, self)
        begin(
            bridge,
            run,
            lambda number: native.start(bridge.mailbox, number, run, arguments, kind),
            page,
        )
        return run


class _KitRun(Run):
    """A run, whose result is always one of a kit."""

    def end(self, result: CodeExecutionResult) -> None:
        super().end(as_kind(KitResult, result))


def _error_of(thrown: Any) -> BaseException:
    """The exception for the fields of an error of a capability: that of the language for wrong
    arguments."""
    if not isinstance(thrown, dict):
        return as_error(thrown)
    match thrown["name"]:
        case "TypeError":
            return TypeError(thrown["message"])
        case "RangeError":
            return ValueError(thrown["message"])
        case _:
            return KitError(**thrown)


def _read_browser(given: Any) -> tuple[Any, Any]:
    """The page of the option `browser`, and its other options."""
    expected = "a page or a context of Playwright, or a function that gives one"
    _refuse_browser(given, "browser")
    if kind_of_source(given) is not None:
        return given, {}
    if not isinstance(given, Mapping):
        # The native side refuses it.
        return None, given
    options = dict(given)
    found = {name: options.pop(name) for name in ("page", "context") if name in options}
    if len(found) == 2:
        raise TypeError("browser has both page and context; give one of them")
    for name, source in found.items():
        _refuse_browser(source, f"browser.{name}")
        if kind_of_source(source) not in (name, "function"):
            expected = f"a {name} of Playwright, or a function that gives one"
            got = "nothing" if source is None else f"an instance of {type(source).__name__}"
            raise TypeError(f"browser.{name} must be {expected}, got {got}")
        return source, options
    raise TypeError(f"browser must be {expected}, got an object")


def _refuse_browser(given: Any, name: str) -> None:
    """Refuses a browser, which looks like a context: it has no page that code and host share."""
    if kind_of_source(given) == "browser":
        raise TypeError(
            f"{name} must be a page or a context, got a Browser of Playwright: give one of its"
            " contexts, or a function"
        )


def _given(params: Params) -> tuple[Any, ...]:
    return () if params is None else (params,)


def _options(language: Language | None, description: str | None) -> dict[str, str]:
    given = {"language": language, "description": description}
    return {name: value for name, value in given.items() if value is not None}


def _library(found: dict[str, Any] | None) -> Library | None:
    return None if found is None else Library(**found)  # type: ignore[typeddict-item]
