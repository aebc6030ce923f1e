"""Objects that a `with` block closes.

In: the end of a block, by whatever it ends. Out: a call of `close`, or of `aclose` in `async with`.
"""

from __future__ import annotations

from types import TracebackType
from typing import TypeVar

Own = TypeVar("Own", bound="Closing")


class Closing:
    """An object whose `close` returns at once, or blocks the loop for a moment."""

    __slots__ = ()

    def close(self) -> None:
        raise NotImplementedError

    def __enter__(self: Own) -> Own:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        raised: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    async def __aenter__(self: Own) -> Own:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        raised: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


class AsyncClosing(Closing):
    """An object that also closes without blocking the event loop."""

    __slots__ = ()

    async def aclose(self) -> None:
        raise NotImplementedError

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        raised: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()
