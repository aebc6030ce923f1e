"""The page of a kit: which thread and which loop does which task, and when a task is given up.

In: the host's page or context, or a function that gives one; tasks of runs. Out: their answers. The
kit has judged each task before, and bounds and redacts each answer after. Synchronous pages are
used on the thread that waits for the run, asynchronous ones on the loop of the run's caller. A
thread that waits for several runs, one within the other, does the tasks of all of them. The
commands themselves are in `_page_commands`.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import logging
import threading
import time
import weakref
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from . import _isolane
from ._bridge import Bridge
from ._page_commands import (
    OTHER_THREAD,
    PERFORM,
    REST_MS,
    Answer,
    GivenUpError,
    Loading,
    answers,
    begins_navigation,
    bounded,
    done,
    failure,
    session_of,
    stop,
)
from ._sync import is_driven

if TYPE_CHECKING:
    from ._door import Door

_CELL_ENDED = "the cell ended before the browser was done with its call"

_log = logging.getLogger("isolane")


def kind_of_source(value: Any) -> str | None:
    """The kind of a value: a page, a context, a browser, a function that gives a page, or nothing
    of these."""
    if callable(getattr(value, "goto", None)):
        return "page"
    if callable(getattr(value, "new_page", None)):
        return "browser" if hasattr(value, "contexts") else "context"
    return "function" if callable(value) else None


class _Work:
    """A task under way on a loop."""

    def __init__(self, number: int, kind: str) -> None:
        self.number = number
        self.kind = kind
        self.page: Any = None
        self.session: Any = None
        # The navigations to which it leads by the way.
        self.loading: Loading | None = None
        self.task: asyncio.Task[None] | None = None
        self.has_begun = False
        # The page on its way to rest: nobody waits for the task any more.
        self.rest: asyncio.Task[Answer] | None = None

    @property
    def is_loading(self) -> bool:
        """Whether the page goes elsewhere by the way."""
        if self.kind == "navigate" or self.loading is None:
            return False
        return self.loading.is_pending

    def end(self) -> None:
        if self.loading is not None:
            self.loading.end()


def _is_of_kit(kind: str, fields: dict[str, Any]) -> bool:
    """Whether the kit itself stops or leaves the page. It does so after the end of a call, too."""
    return kind == "halt" or (kind == "navigate" and fields["url"] == "about:blank")


class _Cell:
    """A cell for which the thread of a synchronous page waits."""

    def __init__(self, run: _isolane.RunHandle) -> None:
        self._run = run
        self._settled_at: float | None = None

    def has_left(self) -> bool:
        """Whether the thread has waited long enough, after its end, for a call that it did not
        await."""
        if self._settled_at is None:
            if self._run.running():
                return False
            self._settled_at = time.monotonic()
        return time.monotonic() - self._settled_at >= REST_MS / 1e3


class PageDriver:
    """Does the tasks of runs on the host's page."""

    def __init__(self, source: Any, door: Door) -> None:
        self._source = source
        self._door = door
        self._found: Any = None
        # The loop that a synchronous page runs for its calls: Playwright has it as the running one
        # of its thread at all times.
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: int | None = None
        if kind_of_source(source) != "function":
            self._learn_loop(source)
        self._numbers: weakref.WeakKeyDictionary[Bridge, int] = weakref.WeakKeyDictionary()
        self._works: set[_Work] = set()
        # The calls of a cell may outlive it; those of another run do not.
        self._cells: weakref.WeakKeyDictionary[Bridge, _Cell] = weakref.WeakKeyDictionary()
        # The bridges with runs for which the thread of a synchronous page waits.
        self._waiting: weakref.WeakSet[Bridge] = weakref.WeakSet()

    def attach(self, bridge: Bridge, run: _isolane.RunHandle, is_cell: bool) -> None:
        """Has the bridge serve the tasks of that run."""
        if is_cell:
            self._cells[bridge] = _Cell(run)
        number = self._numbers.get(bridge)
        if number is None:
            # A page does not keep a bridge, nor a bridge a page.
            page, at = weakref.ref(self), weakref.ref(bridge)

            def notice() -> None:
                driver, here = page(), at()
                if driver is not None and here is not None:
                    driver._serve(here)

            number = self._numbers[bridge] = bridge.on_notice(notice)
        self._wait_on(bridge)
        run.announce(bridge.mailbox, number)
        if is_driven(bridge) and self._may_be_here():
            # An earlier run, for which nothing waits any more, may have left a task: to leave the
            # page, or a call that a cell did not await.
            self._serve(bridge)

    def _may_be_here(self) -> bool:
        """Whether a thread that waits for a run may use the page."""
        if self._loop is not None:
            return self._thread == threading.get_ident()
        return self._found is None and not inspect.iscoroutinefunction(self._source)

    @property
    def loop(self) -> asyncio.AbstractEventLoop | None:
        """The loop that a synchronous page runs for its calls, if the page is there."""
        return self._loop

    def server(self, bridge: Bridge) -> Callable[[], None]:
        """A function that does the tasks of runs for which a call of another system waits. It is
        called where the bridge has its events, while the call has not ended."""
        at = weakref.ref(bridge)

        def serve() -> None:
            here = at()
            if here is not None:
                self._serve(here)

        self._wait_on(bridge)
        if is_driven(bridge) and self._may_be_here():
            # As in `attach`.
            self._serve(bridge)
        return serve

    def _learn_loop(self, found: Any) -> None:
        """Notes the loop of a page that is there, and the thread that runs it."""
        if not _is_async(found):
            loop = getattr(found, "_loop", None)
            is_loop = isinstance(loop, asyncio.AbstractEventLoop)
            self._loop = loop if is_loop else asyncio._get_running_loop()
            self._thread = getattr(self._loop, "_thread_id", None)
        else:
            # No thread waits in a call of the page.
            self._door.ask("page.is_asynchronous")

    def _wait_on(self, bridge: Bridge) -> None:
        """Notes that the thread of the page waits for a run of that bridge."""
        is_here = is_driven(bridge) and self._thread == threading.get_ident()
        if self._loop is None or not is_here or bridge in self._waiting:
            return
        self._waiting.add(bridge)
        page, at = weakref.ref(self), weakref.ref(bridge)

        def end() -> None:
            driver, here = page(), at()
            if driver is not None and here is not None:
                driver._waiting.discard(here)
                if not driver._waiting:
                    # Other threads have left their tasks to this one.
                    driver._door.ask("page.again")

        bridge.at_end(end)

    def _may_take(self, bridge: Bridge) -> bool:
        """Whether tasks are taken here. Those for a page of another thread are left to that one
        while it waits for a run, and are refused here otherwise."""
        is_here = is_driven(bridge) and self._thread == threading.get_ident()
        return self._loop is None or is_here or not self._waiting

    def _serve(self, bridge: Bridge) -> None:
        while self._may_take(bridge) and (task := self._door.ask("page.next")) is not None:
            number, kind, timeout_ms, fields = task
            work = _Work(number, kind)
            performing = self._answer(bridge, work, timeout_ms, fields)
            if is_driven(bridge):
                answer: Answer = "failed", {"text": "the page was interrupted"}
                try:
                    answer = _finish(performing, self.loop)
                except BaseException:
                    # Such as a `KeyboardInterrupt`. Another one may come meanwhile.
                    _finish(self._to_rest(work), self.loop)
                    raise
                finally:
                    # Later commands wait for an answer.
                    self._send(number, answer)
            else:
                work.task = asyncio.ensure_future(self._serve_later(work, timeout_ms, performing))
                self._works.add(work)
        for work in tuple(self._works):
            if work.rest is None and not self._is_awaited(work):
                self._give_up(work)

    def _give_up(self, work: _Work) -> None:
        """Gives up a task on a loop. The order to stop a navigation is sent before the host hears
        of the end of the run, and may navigate itself."""
        task = work.task
        # One that has not begun sees for itself that it is given up.
        if task is None or not work.has_begun:
            return
        if task.get_loop() is not asyncio._get_running_loop():
            return
        stopping = None
        stops = work.kind == "navigate" or work.is_loading
        if stops and work.session is not None:
            # Its first step sends the order, and comes before the next one of the host.
            stopping = task.get_loop().create_task(work.session.send("Page.stopLoading"))
        work.rest = task.get_loop().create_task(self._to_rest_unless_left(work, stopping))
        task.cancel()

    def _why_ended(self, work: _Work, cell: _Cell | None) -> str | None:
        """Why a task of a synchronous page ends that has time left. `cell`: the one that asked for
        it."""
        if not self._is_awaited(work):
            return "it is given up"
        if cell is not None and cell.has_left():
            return _CELL_ENDED
        return None

    def _is_awaited(self, work: _Work) -> bool:
        return bool(self._door.ask("page.is_awaited", work.number))

    async def _serve_later(
        self, work: _Work, timeout_ms: float, performing: Awaitable[Answer]
    ) -> None:
        work.has_begun = True
        # The loop may end.
        answer: Answer = "failed", {"text": "the page is gone"}
        try:
            try:
                answer = await asyncio.wait_for(performing, timeout_ms / 1e3)
            except asyncio.TimeoutError:
                answer = "timeout", {}
            except asyncio.CancelledError:
                if work.rest is None:
                    raise
                answer = await work.rest
            if answer[0] == "timeout" and work.rest is None:
                answer = await self._to_rest_unless_left(work)
        finally:
            self._works.discard(work)
            work.end()
            self._send(work.number, answer)

    def _send(self, number: int, answer: Answer) -> None:
        kind, fields = answer
        self._door.ask("page.answer", number, {"kind": kind, **fields})

    async def _answer(
        self, bridge: Bridge, work: _Work, timeout_ms: float, fields: dict[str, Any]
    ) -> Answer:
        try:
            page = await self._page(bridge)
            if _is_async(page) or self._loop is None:
                return await self._perform(page, work, timeout_ms, fields)
            cell = None if _is_of_kit(work.kind, fields) else self._cells.get(bridge)
            why = functools.partial(self._why_ended, work, cell)
            with bounded(self._loop, timeout_ms, why) as ends:
                try:
                    answer = await self._perform(page, work, timeout_ms, fields)
                except asyncio.CancelledError:
                    if not ends:
                        raise
                    answer = "timeout", {}
            try:
                # The thread is the host's again after the run, and so is the page.
                rest = await self._to_rest(work) if answer[0] == "timeout" else answer
            finally:
                work.end()
            has_left = answer[0] == "timeout" and _CELL_ENDED in ends
            return ("failed", {"text": _CELL_ENDED}) if has_left else rest
        except asyncio.CancelledError:
            raise
        except Exception as raised:
            return failure(raised)

    async def _perform(
        self, page: Any, work: _Work, timeout_ms: float, fields: dict[str, Any]
    ) -> Answer:
        work.page, work.session = page, await session_of(page)

        def check() -> None:
            # Nothing begins for a run that has ended.
            if not self._is_awaited(work):
                raise GivenUpError

        check()
        if work.kind not in ("halt", "close"):
            work.loading = Loading(page, fields.get("url"))
        try:
            if work.kind == "halt":
                kind, given = await stop(self._loop, page, work.session)
                if kind != "stopped":
                    return kind, given
                return "arrived", {**given, "title": "", "status": 0}
            perform = PERFORM[work.kind]
            if work.kind in ("click", "type"):
                fields = {**fields, "check": check}
            return await perform(page, timeout_ms, **fields)
        except Exception as raised:
            return failure(raised)

    async def _to_rest_unless_left(
        self, work: _Work, stopping: Awaitable[Any] | None = None
    ) -> Answer:
        """Brings an asynchronous page to rest, unless the host navigates after the end of the run:
        its navigation is left alone, and the page is judged before code sees it."""
        page = work.page
        if page is None:
            return "timeout", {}
        left = asyncio.get_running_loop().create_future()

        def note(request: Any) -> None:
            # While code waits for its page, a navigation is the page's own.
            # So is one with a referrer, such as that of a page that another page sends elsewhere.
            if left.done() or not begins_navigation(request) or self._is_awaited(work):
                return
            is_own = work.loading is not None and work.loading.is_own(request)
            if not is_own and "referer" not in request.headers:
                left.set_result(None)

        page.on("request", note)
        rest = asyncio.ensure_future(self._to_rest(work, stopping))
        try:
            await asyncio.wait((rest, left), return_when=asyncio.FIRST_COMPLETED)
            if rest.done():
                return rest.result()
            return ("nothing" if work.kind == "navigate" else "timeout"), {}
        finally:
            rest.cancel()
            page.remove_listener("request", note)

    async def _to_rest(self, work: _Work, stopping: Awaitable[Any] | None = None) -> Answer:
        """Brings a page to rest whose task was given up: it answers, and loads nothing."""
        if work.session is None or work.kind in ("halt", "close"):
            return "timeout", {}
        if work.kind == "navigate":
            return await stop(self._loop, work.page, work.session, stopping)
        if stopping is not None or work.is_loading:
            # A document that never arrives is no answer to the command.
            await stop(self._loop, work.page, work.session, stopping)
        else:
            await answers(self._loop, work.page, work.session)
        return "timeout", {}

    async def _page(self, bridge: Bridge) -> Any:
        """The page: that of the host, of a context the newest one. A new one if there is none any
        more."""
        if self._found is None:
            self._found = await self._find(bridge)
            if self._loop is None:
                self._learn_loop(self._found)
                if self._loop is not None:
                    # Until the end of this command.
                    asyncio._set_running_loop(self._loop)
                    self._wait_on(bridge)
        found = self._found
        if _is_async(found) and is_driven(bridge):
            raise TypeError("the page is asynchronous: await run_tool, not run_tool_sync")
        if not _is_async(found) and not is_driven(bridge):
            raise TypeError("the page is synchronous: call run_tool_sync, not run_tool")
        if self._thread not in (None, threading.get_ident()):
            raise TypeError(OTHER_THREAD)
        if kind_of_source(found) == "context":
            pages = [page for page in found.pages if not page.is_closed()]
            return pages[-1] if pages else await done(found.new_page())
        if not found.is_closed():
            return found
        self._found = None
        if kind_of_source(self._source) == "function":
            return await self._page(bridge)
        # The context of `browser.new_page()` refuses: its page cannot be followed by another one
        # with the same options.
        self._found = await done(found.context.new_page())
        return self._found

    async def _find(self, bridge: Bridge) -> Any:
        if kind_of_source(self._source) != "function":
            return self._source
        door, is_waiting = self._door, is_driven(bridge)
        proxy = door.wait_for_answer("proxy") if is_waiting else await door.answer("proxy")
        try:
            found = await done(self._source(proxy))
        except Exception as raised:
            # It is the host's affair, and may have paths.
            _log.error("the function of the option browser failed", exc_info=raised)
            raise TypeError("the function of the option browser failed") from None
        if kind_of_source(found) in ("page", "context"):
            return found
        message = "the function of the option browser must give a page or a context of Playwright"
        raise TypeError(message)


def _is_async(found: Any) -> bool:
    call = getattr(found, "goto", None) or getattr(found, "new_page", None)
    return inspect.iscoroutinefunction(call)


def _finish(work: Any, loop: asyncio.AbstractEventLoop | None) -> Answer:
    """Runs a coroutine that only uses synchronous functions. Playwright works only while its own
    loop is the running one, and starts only while none is."""
    running = asyncio._get_running_loop()
    asyncio._set_running_loop(loop)
    try:
        work.send(None)
    except StopIteration as finished:
        answer: Answer = finished.value
        return answer
    finally:
        asyncio._set_running_loop(running)
        work.close()
    return "failed", {"text": "the page is asynchronous: await run_tool, not run_tool_sync"}
