"""The stage on which a case of sessions plays, in Python: its sessions, its cells in flight and its
host functions.

In: a case of session_cases.py. Out: sessions that are open, cells that were started.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable
from contextvars import ContextVar
from typing import Any

import isolane

from host_python import HostFunction, host_functions
from run_python import in_python
from session_cases import Case, Cell, Json
from tags_python import Values, tag_of

CELL: ContextVar[str | None] = ContextVar("CELL", default=None)


class Asked:
    """A call of `ask`, whether it has arrived yet or not."""

    def __init__(self) -> None:
        self.arrived = asyncio.Event()
        self.answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    def call(self) -> Awaitable[Any]:
        self.arrived.set()
        return self.answer


class Stage:
    def __init__(self, case: Case) -> None:
        self.cells: dict[str, isolane.CellExecution] = {}
        self.later: list[asyncio.Future[None]] = []
        self.runtime: isolane.Runtime | None = None
        self._case = case
        self._sessions: dict[str, Any] = {}
        self._last: isolane.CellExecution | None = None
        self._asked: dict[str, Asked] = {}
        if case.runtime is not None:
            self.runtime = isolane.Runtime(**self.options(case.runtime, {}))
        self.functions: dict[str, HostFunction] = {
            **host_functions(self._last_cell),
            "ask": lambda key, *_: self.asked(key).call(),
            "run": self._run,
            "who": lambda *_: CELL.get(),
        }

    def open(self) -> None:
        """Opens the session of the case; raises for misuse."""
        options = self.options(self._case.options, self.functions)
        if self._case.modules:
            options["modules"] = {**options.get("modules", {}), **self._case.modules}
        opens = isolane.Session if self.runtime is None else self.runtime.session
        self.add("main", opens(**options))

    def add(self, name: str, session: Any) -> None:
        """Names a session, or the future of one."""
        self._sessions[name] = session

    async def session(self, name: str) -> isolane.Session:
        opened = self._sessions[name]
        if asyncio.isfuture(opened):
            opened = self._sessions[name] = await opened
        session: isolane.Session = opened
        return session

    def start(self, session: isolane.Session, act: Cell) -> isolane.CellExecution:
        """Starts a cell; raises for misuse."""
        tagged = {key: value for key, value in act.options.items() if key not in ("as", "in")}
        options = self.options(tagged, self.functions)
        if act.source is not None and act.language != "typescript":
            options.setdefault("language", act.language)
        name = act.options.get("as")
        # Host functions run in a copy of the context in which the cell was started.
        token = CELL.set(name)
        try:
            if act.source is None:
                args = Values(self.functions).untag(act.args)
                cell = session.call(act.called, *args, **options)
            else:
                cell = session.run(act.source, **options)
        finally:
            CELL.reset(token)
        self._last = cell
        if name is not None:
            self.cells[name] = cell
        return cell

    def options(
        self, tagged: dict[str, Json], functions: dict[str, HostFunction]
    ) -> dict[str, Any]:
        """Keyword arguments, without undefined options."""
        given = {key: said for key, said in tagged.items() if tag_of(said) != "$undefined"}
        values = Values(functions)
        options = {in_python(key): values.untag(said) for key, said in given.items()}
        if options.get("report") is True:
            options["report"] = lambda _: isolane.undefined
        return options

    def asked(self, key: str) -> Asked:
        """The call of `ask` with this key."""
        return self._asked.setdefault(key, Asked())

    async def clear(self) -> None:
        for name in list(self._sessions):
            with contextlib.suppress(Exception):
                await (await self.session(name)).aclose()
        if self.runtime is not None:
            await self.runtime.aclose()
        for asked in self._asked.values():
            asked.answer.cancel()

    def _last_cell(self) -> isolane.CellExecution:
        assert self._last is not None, "no cell was started"
        return self._last

    async def _run(self, source: str) -> dict[str, Any]:
        result = await self._sessions["main"].run(source)
        if result.status != "success":
            return {"status": result.status}
        return {"status": result.status, "result": result.result}
