"""Cells of Python and JavaScript in kernels that keep their state, as a tool for a model.

In: options and the arguments of tool calls. Out: results of tools. The native side checks
everything, keeps all state and words all messages.
"""

from __future__ import annotations

import asyncio
import inspect
import weakref
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, final

from ._door import Door, DoorCall
from ._notebook_misuse import paths as _paths
from ._notebook_options import (
    ArtifactsOptions,
    CellTool,
    ChildOptions,
    FilesOptions,
    HostFunction,
    JsOptions,
    Limits,
    NotebookOptions,
    PyOptions,
    RequiredItem,
    ToolFunction,
)
from ._notebook_render import render_call, render_html, render_terminal, to_ipynb
from ._page import PageDriver
from ._runtime import Runtime
from .kit import Kit

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = [
    "ArtifactsOptions",
    "CallResult",
    "CellTool",
    "ChildOptions",
    "FilesOptions",
    "HostFunction",
    "JsOptions",
    "Limits",
    "Notebook",
    "NotebookOptions",
    "PyOptions",
    "Registry",
    "RequiredItem",
    "ToolFunction",
    "Update",
    "render_call",
    "render_html",
    "render_terminal",
    "to_ipynb",
]

Language: TypeAlias = Literal["py", "js"]

# The pages of kits by the keys of these. A page is kept by its kit and by notebooks.
_pages: weakref.WeakValueDictionary[str, PageDriver] = weakref.WeakValueDictionary()


@dataclass(frozen=True)
class Update:
    """The result of a call so far."""

    content: list[dict[str, Any]]
    """One text block, then images: `{"type": "image", "data": ..., "mime_type": ...}`."""
    details: dict[str, Any]
    """Everything that is not for the model, with `is_error` and `images`."""


@dataclass(frozen=True)
class CallResult:
    """The result of a call."""

    content: list[dict[str, Any]]
    """For the model: one text block, then images."""
    details: dict[str, Any]
    """Everything that is not for the model: `cells`, `languages`, `notice`, `meta`, for example."""
    is_error: bool
    """Whether a cell failed or was ended from outside."""

    @property
    def text(self) -> str:
        """The text block."""
        text: str = self.content[0]["text"]
        return text


@final
class Registry:
    """The sessions of notebooks by their names, and the bounds of their kernels.

    Notebooks of one registry that name the same session share its kernels.
    """

    __slots__ = ("_door",)

    def __init__(
        self,
        *,
        max_kernels: int | None = None,
        max_running_kernels: int | None = None,
        idle_timeout_ms: int | None = None,
        sweep_ms: int | None = None,
        heartbeat_ms: int | None = None,
    ) -> None:
        """A registry without sessions.

        Args:
            max_kernels: The most kernels of Python, 4 by default. Beyond them the one that was
                used least recently ends, if no cell runs in it.
            max_running_kernels: The most kernels of Python that run at once, those with cells too,
                16 by default. Beyond them a cell fails.
            idle_timeout_ms: The time without a cell after which a kernel of Python ends, 300,000
                by default; 0: never.
            sweep_ms: The time between two looks at kernels, 30,000 by default.
            heartbeat_ms: The time between two heartbeats of a kernel of Python, 5,000 by default:
                one without a cell that misses two is dead. Its memory is looked at in the same
                time.

        Raises:
            TypeError, ValueError: an option is not valid. `path` names it.
        """
        options = {
            "max_kernels": max_kernels,
            "max_running_kernels": max_running_kernels,
            "idle_timeout_ms": idle_timeout_ms,
            "sweep_ms": sweep_ms,
            "heartbeat_ms": heartbeat_ms,
        }
        with _paths():
            self._door = Door("notebook-registry", options)


@final
class Notebook:
    """Runs a model's cells, of Python and JavaScript, in kernels that keep their state.

    Calls run one at a time, in their order. Kernels start with their first cell. A context manager
    for `with` and `async with`.
    """

    __slots__ = ("__weakref__", "_door", "_parent")

    def __init__(self, **options: Unpack[NotebookOptions]) -> None:
        """Opens a notebook.

        Args:
            options: `js` and `py`, a mapping of options or `False`; `session_id` and `registry`,
                to share kernels with other notebooks; `env`, the variables that
                cells see; `files`, the folder whose files cells use; `artifacts`, the folder for
                what is too long for a result; `tools`, functions of one dict by their names, or
                mappings with `call`, `description`, `input` and `stops_clock`; `llm`, a function of
                a prompt and options; `agent`, likewise, with a notebook for a subagent among the
                options; `limits`. Functions may be coroutine functions, which are cancelled when
                their cell is ended. `NotebookOptions` has them all.

        Raises:
            TypeError, ValueError: an option is not valid. `path` names it.
        """
        self._parent: Notebook | None = None
        with _paths():
            given, runtime = _without_handles(options)
            if isinstance(registry := given.get("registry"), Registry):
                del given["registry"]
                given["$registry"] = registry._door.ask("key")
            functions = _cancelled(given, weakref.ref(self))
            self._door = Door("notebook", functions, runtime, nests=True)
            # A notebook that joins a session has the kit of the first one.
            self._door.page = _pages.get(self._door.ask("kit"))

    @classmethod
    def _of(cls, options: dict[str, Any], parent: Notebook | None) -> Notebook:
        """A notebook with the kernels of another one, which a key among the options names."""
        notebook = cls.__new__(cls)
        # It ends when nobody holds its parent.
        notebook._parent = parent
        functions = _cancelled(options, weakref.ref(notebook))
        above = None if parent is None else parent._door
        notebook._door = Door("notebook", functions, nests=True, parent=above)
        return notebook

    def child(self, **options: Unpack[ChildOptions]) -> Notebook:
        """A notebook for a subagent, with the same kernels, and so the same state.

        Its calls run while a cell of this notebook waits for a function of the host. It ends with
        this notebook.

        Args:
            options: `tools`, `llm`, `agent`, `artifacts` and `limits`. Those that are left out are
                as in this notebook; `False` in place of functions is none.

        Raises:
            TypeError, ValueError: an option is not valid, or the notebook is closed.
        """
        with _paths():
            return Notebook._of({**options, "$parent": self._door.ask("key")}, self)

    def execute(
        self,
        args: Mapping[str, Any],
        *,
        on_update: Callable[[Update], Any] | None = None,
    ) -> DoorCall:
        """Runs the cells of a tool call when the calls before it are done.

        Returns at once; await it for a `CallResult`. It never raises. Cancelling the task that
        awaits it ends the call, and so does `terminate(reason)`.

        Args:
            args: The argument object of the model's tool call, as it came.
            on_update: Receives the result so far: at once, then at most every
                `limits.update_interval_ms`, and before the call settles.

        Raises:
            TypeError, ValueError: misuse of the arguments, whose place `path` names; the notebook
                is closed.
            RuntimeError: no event loop is running here (use `execute_sync`).
        """
        with _paths():
            options = _options(on_update)
            return self._door.call("execute", args, options, read=_result, uses_page=True)

    def execute_sync(
        self,
        args: Mapping[str, Any],
        *,
        on_update: Callable[[Update], Any] | None = None,
    ) -> CallResult:
        """As `execute`, and waits for the result. Ctrl-C ends the call."""
        with _paths():
            result: CallResult = self._door.call_sync(
                "execute", args, _options(on_update), read=_result, uses_page=True
            )
        return result

    def tool(self) -> dict[str, Any]:
        """The tool as a model sees it: `name`, `description`, `input_schema`."""
        tool: dict[str, Any] = self._door.ask("tool")
        return tool

    def available(self) -> DoorCall:
        """Which backends can run cells: await it for `{"js": ..., "py": {"ok": ...}}`."""
        return self._door.call("available")

    def available_sync(self) -> dict[str, Any]:
        """As `available`, and waits."""
        available: dict[str, Any] = self._door.call_sync("available")
        return available

    def reset(self, language: Language) -> DoorCall:
        """Ends the cells that run in a kernel, and gives the next one an empty kernel. Await it."""
        with _paths():
            return self._door.call("reset", language)

    def reset_sync(self, language: Language) -> None:
        """As `reset`, and waits."""
        with _paths():
            self._door.call_sync("reset", language)

    def stats(self) -> dict[str, Any]:
        """The kernels: `{"confinement": {...}, "kernels": [...]}`.

        `confinement` has each protection of Python kernels and whether it holds: `None` before the
        first kernel, unless `available` has tried, and with `isolation` `"none"`.
        """
        stats: dict[str, Any] = self._door.ask("stats")
        return stats

    def close(self) -> DoorCall:
        """Ends all calls, children and kernels; of a child its calls and its own children. Await
        it. From now on calls are refused."""
        return self._door.call("close")

    def close_sync(self) -> None:
        """As `close`, and waits."""
        self._door.call_sync("close")

    def __enter__(self) -> Notebook:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close_sync()

    async def __aenter__(self) -> Notebook:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()


def _result(given: dict[str, Any]) -> CallResult:
    return CallResult(**given)


def _options(on_update: Callable[[Update], Any] | None) -> dict[str, Any]:
    if on_update is None:
        return {}
    if not callable(on_update):
        return {"on_update": on_update}

    def receive(update: dict[str, Any]) -> Any:
        return on_update(Update(**update))

    return {"on_update": receive}


def _without_handles(options: Mapping[str, Any]) -> tuple[dict[str, Any], Runtime | None]:
    """The options without the runtime and the kit of JavaScript, which are no values; the kit's key
    is in its place."""
    js = options.get("js")
    if not isinstance(js, Mapping):
        return dict(options), None
    rest, runtime = dict(js), None
    if isinstance(js.get("runtime"), Runtime):
        runtime = rest.pop("runtime")
    if isinstance(kit := js.get("kit"), Kit):
        del rest["kit"]
        rest["$kit"] = key = kit._door.ask("key")
        if kit._door.page is not None:
            _pages[key] = kit._door.page
    return {**options, "js": rest}, runtime


def _cancelled(
    options: dict[str, Any], owner: Callable[[], Notebook | None] = lambda: None
) -> dict[str, Any]:
    """The options with functions whose last argument is the number of a call, and one that cancels
    it. `owner` gives the notebook."""
    tools, llm, agent = (options.get(name) for name in ("tools", "llm", "agent"))
    if tools is None and llm is None and agent is None:
        return options
    calls: dict[int, _Call] = {}

    def numbered(function: Any) -> Any:
        if not callable(function):
            return function

        def call(*args: Any) -> Any:
            *args_of_function, number = args
            answer = function(*args_of_function)
            if not inspect.isawaitable(answer):
                return answer
            # Here, and not when the loop begins with it: the call may be cancelled before.
            known = calls[number] = _Call(answer)
            return known.outcome(lambda: calls.pop(number, None))

        return call

    def tool(given: Any) -> Any:
        if isinstance(given, Mapping):
            return {**given, "call": numbered(given.get("call"))}
        return numbered(given)

    def with_notebook(function: Any) -> Any:
        if not callable(function):
            return function

        def call(prompt: str, given: dict[str, Any]) -> Any:
            notebook = Notebook._of({"$same": given["notebook"]}, owner())
            return function(prompt, {**given, "notebook": notebook})

        return call

    def abort(number: int) -> None:
        if number in calls:
            calls[number].cancel()

    if isinstance(tools, Mapping):
        tools = {name: tool(given) for name, given in tools.items()}
    functions = {"tools": tools, "llm": numbered(llm), "agent": numbered(with_notebook(agent))}
    given = {name: function for name, function in functions.items() if function is not None}
    return {**options, **given, "$abort": abort}


class _Call:
    """A call of a function of the host, from its beginning to its answer."""

    def __init__(self, answer: Awaitable[Any]) -> None:
        self._answer = answer
        self._task: asyncio.Future[Any] | None = None
        self._is_cancelled = False

    def cancel(self) -> None:
        """Nobody waits for the answer any more."""
        self._is_cancelled = True
        if self._task is not None:
            self._task.cancel()

    async def outcome(self, ended: Callable[[], Any]) -> Any:
        try:
            self._task = asyncio.ensure_future(self._answer)
            if self._task is not self._answer:
                # The cell may end before it, and the loop with the cell.
                self._task._log_destroy_pending = False  # type: ignore[attr-defined]
            if self._is_cancelled:
                self._task.cancel()
            return await self._task
        finally:
            ended()
