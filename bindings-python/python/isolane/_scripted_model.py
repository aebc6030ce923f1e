"""A model for tests, which gives the replies that it was told to give."""

from __future__ import annotations

import collections
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any

from ._executor_data import code_part, text_part


class ScriptedModel:
    """A model for tests. With no reply left it raises a `RuntimeError`."""

    def __init__(self) -> None:
        self._replies: collections.deque[Callable[[], Any]] = collections.deque()
        self._requests: list[dict[str, Any]] = []

    def push_text(self, text: str) -> None:
        """Replies with a text."""
        self.push_parts([text_part(text)])

    def push_code(self, language: str, code: str) -> None:
        """Replies with a program."""
        self.push_parts([code_part(language, code)])

    def push_parts(self, parts: Sequence[Mapping[str, Any]]) -> None:
        """Replies with parts."""
        self._replies.append(lambda: list(parts))

    def push_stream(
        self, parts: Sequence[Mapping[str, Any] | str], error: Exception | str | None = None
    ) -> None:
        """Replies with a stream of parts, which ends with that error if there is one."""

        async def stream() -> AsyncIterator[Any]:
            for part in parts:
                yield part
            if error is not None:
                raise _exception(error)

        self._replies.append(stream)

    def push_error(self, error: Exception | str) -> None:
        """Raises an exception; for a text a `RuntimeError`."""

        def fail() -> Any:
            raise _exception(error)

        self._replies.append(fail)

    def requests(self) -> list[dict[str, Any]]:
        """The requests so far: the `instruction` and the `contents` of each call."""
        return list(self._requests)

    async def generate(self, *, instruction: str, contents: list[dict[str, Any]]) -> Any:
        """The next reply."""
        self._requests.append({"instruction": instruction, "contents": contents})
        if not self._replies:
            call = len(self._requests)
            raise RuntimeError(f"the scripted model has no reply left (call {call})")
        return self._replies.popleft()()


def _exception(error: Exception | str) -> Exception:
    return RuntimeError(error) if isinstance(error, str) else error
