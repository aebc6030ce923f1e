"""The options of notebooks, as a type checker sees them.

In: nothing. Out: types. The native side checks options, and tells of misuse.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict

if TYPE_CHECKING:
    from ._options import Language
    from ._runtime import Runtime
    from .kit import Kit
    from .notebook import Registry

RequiredItem: TypeAlias = Literal[
    "privileges", "network", "file_system", "system_calls", "processes", "resources"
]
"""A protection of a confined kernel that can be required."""

ToolFunction: TypeAlias = Callable[[Any], Any]
"""A function behind a tool, of one dict. It may be a coroutine function."""

HostFunction: TypeAlias = Callable[[str, dict[str, Any]], Any]
"""The function behind `llm` or `agent`, of a prompt and options. It may be a coroutine function."""


class _CellTool(TypedDict):
    call: ToolFunction


class CellTool(_CellTool, total=False):
    """A tool with a description."""

    description: str
    """For the model."""
    input: Mapping[str, Any]
    """The JSON Schema of the arguments: they are checked, and its defaults are filled in."""
    stops_clock: bool
    """Whether the clock of a cell stands still while a call is unanswered. Default false."""


class _FilesOptions(TypedDict):
    root: str


class FilesOptions(_FilesOptions, total=False):
    """The files of a notebook: those below the folder `root`, which must be there."""

    write: bool
    """Whether cells may write. Default false."""
    max_read_bytes: int
    """The bytes that one `read` or `diff` gives. Default 16 MiB."""
    max_write_bytes: int
    """The bytes that one `write` or `append` takes. Default 16 MiB."""
    max_tree_entries: int
    """The entries of one `tree`. Default 2,000."""


class _ArtifactsOptions(TypedDict):
    dir: str


class ArtifactsOptions(_ArtifactsOptions, total=False):
    """The artifacts of a notebook, in the folder `dir`, which is for artifacts alone."""

    max_bytes: int
    """The bytes of one file; the rest is dropped and counted. Default 256 MiB."""


class JsOptions(TypedDict, total=False):
    """The options of JavaScript cells."""

    runtime: Runtime
    """The runtime of the session. Default: that of the kit, else that of the process."""
    language: Language
    """Default `typescript`."""
    memory_limit_bytes: int
    """The memory of the session. Default: that of the kit, else 128 MiB."""
    checkpoint_bytes: int
    """The largest state that is kept for rolling back. Default 64 MiB."""
    globals: Mapping[str, Any]
    """Names that every cell sees. Functions among them are asynchronous inside."""
    imports: Mapping[str, Mapping[str, Any]]
    """Bridged modules: bare specifier, and its named exports."""
    modules: Mapping[str, str]
    """Modules that cells may import, by a relative specifier."""
    kit: Kit
    """Capabilities of cells. The clocks are the notebook's: the kit's `timeout_ms` does not
    count."""
    idle_timeout_ms: int
    """The time without a cell after which the session ends; 0: never. Default 0."""


class PyOptions(TypedDict, total=False):
    """The options of Python cells. Those from `required` to `scratch_bytes` are for kernels that
    are confined."""

    interpreter: str
    """The interpreter, 3.10 or newer. Default: that of `VIRTUAL_ENV`, else `python3`."""
    mode: Literal["session", "per-call"]
    """`per-call`: one kernel for each cell. Default `session`."""
    isolation: Literal["confined", "none"]
    """`none`: the rights of this process. Default `confined`."""
    required: Sequence[RequiredItem]
    """The protections without which no cell runs. Default `file_system` and, without `network`,
    `network`."""
    network: bool
    """Whether a kernel has the network of this machine, unfiltered. Default false."""
    processes: bool
    """Whether a kernel may start processes. Default true."""
    max_processes: int
    """The most processes and threads of a kernel. Default 256."""
    readable: Sequence[str]
    """Files and folders that a kernel may read, beside its interpreter, `path` and the system's
    folders."""
    scratch_bytes: int
    """The bytes of a kernel's own folders. Default 256 MiB."""
    path: Sequence[str]
    """Folders that are added to `sys.path`."""
    memory_limit_bytes: int
    """Default 2 GiB."""
    frame_bytes: int
    """The longest frame of a kernel. Default 64 MiB."""
    start_timeout_ms: int
    """Default 30,000."""
    interrupt_grace_ms: int
    """The time that an interrupted cell has to end before its kernel is killed. Default 2,000."""
    shutdown_grace_ms: int
    """Default 2,000."""
    restarts: int
    """How often a kernel that died by itself is replaced. Default 1."""


class Limits(TypedDict, total=False):
    """The limits of calls and cells."""

    timeout_seconds: int
    """Default 30."""
    max_timeout_seconds: int
    """Default 600."""
    max_cell_seconds: int
    """Wall time that ends any cell. Default 3,600."""
    max_cells: int
    """Default 64."""
    code_bytes: int
    """Default 1 MiB."""
    output_bytes: int
    """The bytes of the text block. Default 50 KB."""
    output_lines: int
    """The lines of the text block. Default 3,000."""
    window: Literal["tail", "head", "ends"]
    """The part of a long text that is shown. Default `tail`."""
    live_bytes: int
    """The bytes of the text of an update. Default 100 KB."""
    update_interval_ms: int
    """Default 50."""
    display_bytes: int
    """The bytes of one display in the text. Default 8,000."""
    json_bytes: int
    """The bytes of the JSON values of a cell. Default 1 MiB."""
    image_bytes: int
    """The bytes of an image. Default 5 MiB."""
    images: int
    """The images of a call. Default 16."""
    status_events: int
    """The status events of a cell that are kept, the newest. Default 1,000."""
    host_calls: int
    """The calls of host functions that one cell has at work at once; more wait. Default 64."""
    llm_calls: int
    """The calls of `llm` in one cell. Default 200."""
    agent_calls: int
    """The calls of `agent` in one cell. Default 50."""
    agent_depth: int
    """The agents above one another. Default 3."""
    concurrency: int
    """The functions that `parallel` and `pipeline` run at once, unless their cell says otherwise.
    Default 4."""
    max_concurrency: int
    """The most that a cell may say. Default 16."""


class NotebookOptions(TypedDict, total=False):
    """The options of a notebook."""

    js: bool | JsOptions
    """JavaScript cells; `False` switches them off."""
    py: bool | PyOptions
    """Python cells; `False` switches them off."""
    session_id: str
    """The name of the session. Default: a fresh one. Notebooks that name the same one in a registry
    share its kernels."""
    registry: Registry
    """Where the session is. Default: the registry of this process."""
    env: Mapping[str, str]
    """The variables that cells see."""
    files: FilesOptions
    """The files that cells may use."""
    artifacts: ArtifactsOptions
    """The folder for what is too long for a result."""
    tools: Mapping[str, ToolFunction | CellTool]
    """Functions that cells call as `tool.<name>(args)`."""
    llm: HostFunction
    """The function behind `llm`."""
    agent: HostFunction
    """The function behind `agent`."""
    limits: Limits


class ChildOptions(TypedDict, total=False):
    """The options of a child. `False` is no function; those left out are as in the notebook."""

    tools: Mapping[str, ToolFunction | CellTool] | Literal[False]
    llm: HostFunction | Literal[False]
    agent: HostFunction | Literal[False]
    artifacts: ArtifactsOptions
    limits: Limits
