"""Executors of the library: subprocesses, containers, confined subprocesses.

In: options and inputs. Out: results. The native side checks all options and words all messages.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from ._door import Door
from ._executor_call import executor_error, finish, run_here
from ._executor_data import (
    CodeExecutionInput,
    CodeExecutionResult,
    InvocationContext,
    context_of,
    native_input,
    result_of,
)
from ._options import refuses_unknown

if TYPE_CHECKING:
    from ._host_sessions import HostSessions
    from ._runtime import Runtime

RequiredItem: TypeAlias = Literal[
    "privileges", "network", "file_system", "system_calls", "processes", "resources"
]
"""An item of the confinement of a program."""

Context: TypeAlias = InvocationContext | Mapping[str, Any] | None
Input: TypeAlias = CodeExecutionInput | Mapping[str, Any]

# The times and bytes that are the defaults of all executors.
TIMEOUT_MS = 30_000
OUTPUT_LIMIT_BYTES = 1 << 20


class LibraryExecutor:
    """An executor of the library."""

    __slots__ = ("_door",)

    def __init__(
        self,
        system: str,
        options: Mapping[str, Any],
        runtime: Runtime | None = None,
        sessions: HostSessions | None = None,
    ) -> None:
        self._door = Door(system, options, runtime, executor_error, sessions)

    async def execute_code(self, ctx: Context, input: Input) -> CodeExecutionResult:
        """Runs the code of the input to its end. Cancelling the task ends the program.

        Args:
            ctx: The context: receivers of live output, for example. `None` will do.
            input: The code, its language, its files and its state.

        Raises:
            ExecutorError: the program did not start, or the context cancelled the call.
            TypeError, ValueError: a field has not its type.
        """
        context = context_of(ctx)
        code, language, files, execution_id = native_input(input)
        given = {"code": code, "language": language, "files": files, "executionId": execution_id}
        return result_of(await finish(self._door, "execute", context, given))

    def execute_code_sync(self, ctx: Context, input: Input) -> CodeExecutionResult:
        """As `execute_code`, and waits for the result.

        Raises:
            RuntimeError: an event loop is running on this thread (await `execute_code`).
        """
        return run_here("execute_code_sync", "execute_code", lambda: self.execute_code(ctx, input))

    @property
    def stateful(self) -> bool:
        """Whether calls with the same `execution_id` share a state."""
        return self._traits()[0]

    @property
    def error_retry_attempts(self) -> int:
        """How often the loop tries in all if the program does not start."""
        return self._traits()[1]

    @property
    def timeout_ms(self) -> float | None:
        """The wall time of a call; `None` has no limit."""
        return self._traits()[2]

    @property
    def code_block_delimiters(self) -> list[tuple[str, str]]:
        """The fences between which the loop finds code in a text."""
        return [(opening, closing) for opening, closing in self._traits()[4]]

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    def _traits(self) -> tuple[bool, int, float | None, bool, list[tuple[str, str]]]:
        traits: tuple[bool, int, float | None, bool, list[tuple[str, str]]]
        traits = self._door.ask("traits")
        return traits


class LocalCodeExecutor(LibraryExecutor):
    """Runs each call in a subprocess: `python3 -`, unless told otherwise.

    The program has a fresh working folder, a group of processes, which is killed at the end of the
    call, and a short environment. It is not kept from anything that its caller may do: it is for
    code that you would run yourself.
    """

    __slots__ = ()

    @refuses_unknown("LocalCodeExecutor")
    def __init__(
        self,
        *,
        interpreter: str = "python3",
        args: Sequence[str] = ("-",),
        timeout_ms: float | None = TIMEOUT_MS,
        retry_attempts: int = 2,
        env: Mapping[str, str] | None = None,
        inherit_env: bool = False,
        output_limit_bytes: int = OUTPUT_LIMIT_BYTES,
    ) -> None:
        """Makes an executor.

        Args:
            interpreter: The program, by its path or from `PATH`. The code is its standard input.
            args: Its arguments.
            timeout_ms: The wall time of a call, from the start of the program. `None`: no limit.
            retry_attempts: How often the loop tries in all if the program does not start.
            env: Variables, in place of the caller's of that name.
            inherit_env: Gives the program the caller's whole environment, with all keys in it.
            output_limit_bytes: The bytes of each stream that are kept.

        Raises:
            TypeError, ValueError: an option is not valid.
        """
        super().__init__("local-executor", given(locals()))


class ContainerCodeExecutor(LibraryExecutor):
    """Runs each call in a fresh container, without network, without capabilities, as nobody, on a
    file system that it cannot write to but for `/tmp`.

    The engine is `docker` if it is on `PATH` and its daemon answers, else `podman`. It does not
    protect from bugs of the kernel and the engine.
    """

    __slots__ = ()

    @refuses_unknown("ContainerCodeExecutor")
    def __init__(
        self,
        image: str = "python:3.12-slim",
        *,
        argv: Sequence[str] = ("python3", "-"),
        timeout_ms: float | None = TIMEOUT_MS,
        retry_attempts: int = 2,
        memory: str = "256m",
        cpus: str | float = "1.0",
        pids_limit: int = 128,
        user: str = "65534:65534",
        drop_capabilities: bool = True,
        extra_args: Sequence[str] = (),
        engine: str | None = None,
        output_files: bool = False,
        output_limit_bytes: int = OUTPUT_LIMIT_BYTES,
    ) -> None:
        """Makes an executor.

        Args:
            image: The image. It is pulled before the first call if it is not there.
            argv: The program and its arguments. It reads the code from its standard input.
            timeout_ms: The wall time of a call, the start of the container included.
            retry_attempts: How often the loop tries in all if the program does not start.
            memory: The most memory: `256m`. Swap is none.
            cpus: The most processors: `0.5`.
            pids_limit: The most processes and threads.
            user: The user and group.
            drop_capabilities: Whether all capabilities are dropped, and no program may gain
                privileges. Without it for debugging only.
            extra_args: Arguments before the image. They can loosen everything.
            engine: The engine's command line, by its path or from `PATH`.
            output_files: Whether a call without input files has a working folder, too, and so
                output files.
            output_limit_bytes: The bytes of each stream that are kept.

        Raises:
            TypeError, ValueError: an option is not valid.
        """
        super().__init__("container-executor", given(locals()))

    def build_run_args(self, name: str) -> list[str]:
        """The arguments of the engine for a container of that name."""
        args: list[str] = self._door.ask("build_run_args", name)
        return args

    def build_run_args_staged(self, name: str, folder: str | os.PathLike[str]) -> list[str]:
        """The same, with that folder as the container's working folder."""
        args: list[str] = self._door.ask("build_run_args", name, os.fspath(folder))
        return args

    async def prepare(self) -> None:
        """Looks for the engine, and pulls the image if it is not there, which may take 10 minutes.
        The first call does it otherwise, outside of its time.

        Raises:
            ExecutorError: `engine_missing` or `engine_failed`.
        """
        await finish(self._door, "prepare")

    def prepare_sync(self) -> None:
        """As `prepare`, and waits for it."""
        run_here("prepare_sync", "prepare", self.prepare)


class ConfinedCodeExecutor(LibraryExecutor):
    """Runs each call in a subprocess that is confined as Isolane's workers are: `python3 -`, unless
    told otherwise. It works on Linux; elsewhere each call is an error of the kind `unsupported`.

    The program reads the system's folders, its interpreter and the paths that it was given, and
    nothing else of this machine. It may write to `/work`, where it starts, and to `/tmp`. It does
    not protect from bugs of the kernel in the calls that interpreters need.
    """

    __slots__ = ()

    @refuses_unknown("ConfinedCodeExecutor")
    def __init__(
        self,
        *,
        interpreter: str = "python3",
        args: Sequence[str] = ("-",),
        timeout_ms: float | None = TIMEOUT_MS,
        retry_attempts: int = 2,
        memory: str = "256m",
        pids_limit: int = 128,
        env: Mapping[str, str] | None = None,
        readable: Sequence[str | os.PathLike[str]] = (),
        required: Sequence[RequiredItem] | None = None,
        output_limit_bytes: int = OUTPUT_LIMIT_BYTES,
    ) -> None:
        """Makes an executor.

        Args:
            interpreter: The program, by its path or from `PATH`. The code is its standard input.
            args: Its arguments.
            timeout_ms: The wall time of a call, from the start of the program.
            retry_attempts: How often the loop tries in all if the program does not start.
            memory: A number of bytes, or one with `k`, `m` or `g`.
            pids_limit: The most processes and threads of a program at a time.
            env: Variables beside `PATH`, `HOME`, `TMPDIR` and `LANG`, or in their place.
            readable: Files and folders that the program may read, as absolute paths outside of
                `/work`, `/proc` and `/dev`.
            required: The items without which no program runs. Default: all.
            output_limit_bytes: The bytes of each stream that are kept.

        Raises:
            TypeError, ValueError: an option is not valid.
        """
        super().__init__("confined-executor", given(locals()))

    async def confinement(self) -> dict[str, bool | str]:
        """The confinement that a program has on this machine: each item by its name, and `memory`,
        which is `group` or `process`. It starts a trial, and no program.

        Raises:
            ExecutorError: `unsupported`, or `spawn` if there is no `isolane-worker`.
        """
        confinement: dict[str, bool | str] = await finish(self._door, "confinement")
        return confinement

    def confinement_sync(self) -> dict[str, bool | str]:
        """As `confinement`, and waits for it."""
        return run_here("confinement_sync", "confinement", self.confinement)


def given(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options among the local variables of a constructor, as values that cross.

    Raises:
        TypeError: an option is a `timedelta`, which would cross as a number of seconds.
    """
    for name, value in options.items():
        if isinstance(value, timedelta):
            raise TypeError(f"{name} must be a number of milliseconds, got timedelta")
    return {
        name: _plain(value) for name, value in options.items() if name not in ("self", "__class__")
    }


def _plain(value: Any) -> Any:
    """A mapping as a dict, a sequence as a list, a path as a text."""
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        return [os.fspath(item) if isinstance(item, os.PathLike) else item for item in value]
    return value
