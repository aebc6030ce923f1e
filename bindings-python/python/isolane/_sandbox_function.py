"""Functions of the sandbox, for callers in the host."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, final

if TYPE_CHECKING:
    from ._run import Run


@final
class SandboxFunction:
    """A function of the sandbox. A call returns a future of its value.

    If the run has settled, the future raises. The function belongs to the event loop of the run.
    The same sandbox function is the same object while that object is alive.
    """

    __slots__ = ("__name__", "__weakref__", "_number", "_run", "_times")

    __name__: str

    def __init__(self, run: Run, number: int, name: str) -> None:
        self._run = run
        self._number = number
        self._times = 1
        self.__name__ = name

    def __call__(self, *args: Any) -> asyncio.Future[Any]:
        """Calls the function with a clone of the arguments.

        Raises:
            SerializationError: an argument cannot be cloned.
            RuntimeError: on another thread than that of the run's event loop.
        """
        return self._run.call_sandbox(self._number, args)

    def __repr__(self) -> str:
        return f"<function {self.__name__ or 'anonymous'} of a sandbox>"

    def __del__(self) -> None:
        # The sandbox can free its function, too.
        self._run.release_sandbox_function(self._number, self._times)
