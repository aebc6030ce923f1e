"""Functions of the sandbox, as the host sees them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, final

if TYPE_CHECKING:
    from ._run import Run


@final
class SandboxFunction:
    """A function of the sandbox: called, it returns a future of what it returns.

    Valid while its run is running; called later, the future raises. It belongs to the event loop
    of the run. The same function is the same object for as long as someone holds it.
    """

    __slots__ = ("__name__", "__weakref__", "_number", "_run", "_times")

    __name__: str

    def __init__(self, run: Run, number: int, name: str) -> None:
        self._run = run
        self._number = number
        self._times = 1
        self.__name__ = name

    def __call__(self, *args: Any) -> asyncio.Future[Any]:
        """Calls it with a clone of the arguments.

        Raises:
            SerializationError: an argument cannot be cloned.
            RuntimeError: on another thread than that of the run's event loop.
        """
        return self._run.call_sandbox(self._number, args)

    def __repr__(self) -> str:
        return f"<function {self.__name__ or 'anonymous'} of a sandbox>"

    def __del__(self) -> None:
        # Nobody here holds the function any more: the sandbox may let go of it, too.
        self._run.release_sandbox_function(self._number, self._times)
