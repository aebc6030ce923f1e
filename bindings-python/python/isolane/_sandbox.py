"""The functions, promises and exceptions that cross between the host and one sandbox.

In: those of the host, and numbers that the sandbox gave out. Out: numbers, and futures and
functions. A run has a sandbox of its own; the cells of a session share one.
"""

from __future__ import annotations

from ._promises import Promises
from ._sandbox_function import SandboxFunctions
from ._throws import Throws


class Sandbox:
    """The tables of one sandbox."""

    __slots__ = ("functions", "promises", "throws")

    def __init__(self, *, of_session: bool = False) -> None:
        self.promises = Promises(of_session=of_session)
        self.functions = SandboxFunctions()
        self.throws = Throws()
