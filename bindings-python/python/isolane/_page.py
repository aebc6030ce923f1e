"""The page of a kit, driven with Playwright.

In: the host's page or context, or a function that gives one; tasks of runs. Out: their answers. The
kit has judged each task before, and bounds and redacts each answer after. Synchronous pages are
used on the thread that waits for the run, asynchronous ones on the loop of the run's caller. A
thread that waits for several runs, one within the other, does the tasks of all of them.
"""

from __future__ import annotations

import asyncio
import collections
import contextlib
import functools
import inspect
import logging
import threading
import time
import weakref
from collections.abc import Awaitable, Callable, Generator
from typing import TYPE_CHECKING, Any, TypeAlias

from . import _isolane
from ._bridge import Bridge
from ._sync import is_driven

if TYPE_CHECKING:
    from ._door import Door

# The kind of an answer, and its fields.
_Answer: TypeAlias = tuple[str, dict[str, Any]]

# The time between two looks at whether a command of a synchronous page is still awaited.
_LOOK_S = 0.02

# The longest wait for an answer of a page at rest, on a busy machine, too, milliseconds. One that
# computes does not answer.
_REST_MS = 2_000

# Chromium has no answer soon.
_LATE = object()

# Sessions of Chromium's protocol by their pages, which have nothing of the kind elsewhere. One is
# there before a page computes: a later one has no answer from a script that never ends.
_sessions: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()

# Attributes of the tasks that are calls of synchronous Playwright, in its releases.
_MARKS = ("__pw_caller_frame__", "__pw_stack__")

_CELL_ENDED = "the cell ended before the browser was done with its call"

_OTHER_THREAD = "the page is synchronous: use it on the thread of its Playwright"

_log = logging.getLogger("isolane")

# These two functions run in the page.

# Moves the caret of an element to its end. Some kinds of inputs have no selection.
_TO_END = """(element) => {
  element.focus?.();
  const end = typeof element.value === 'string' ? element.value.length : 0;
  try { element.setSelectionRange?.(end, end) } catch {}
}"""

# A property of an element as a text, or nothing if it has too many units.
_READ = """(element, [property, mostUnits]) => {
  const text = String(element[property] ?? element.textContent ?? '');
  return text.length > mostUnits ? null : text;
}"""


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
        self.task: asyncio.Task[None] | None = None
        self.has_begun = False
        # The page on its way to rest: nobody waits for the task any more.
        self.rest: asyncio.Task[_Answer] | None = None


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
        return time.monotonic() - self._settled_at >= _REST_MS / 1e3


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
                answer: _Answer = "failed", {"text": "the page was interrupted"}
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
        if work.kind == "navigate" and work.session is not None:
            # Its first step sends the order, and comes before the next one of the host.
            stopping = task.get_loop().create_task(work.session.send("Page.stopLoading"))
        work.rest = task.get_loop().create_task(self._to_rest_unless_left(work, stopping))
        task.cancel()

    def _why_ended(self, work: _Work, cell: _Cell | None) -> str | None:
        """Why a call of a synchronous page ends that has time left."""
        if not self._is_awaited(work):
            return "it is given up"
        if cell is not None and cell.has_left():
            return _CELL_ENDED
        return None

    def _is_awaited(self, work: _Work) -> bool:
        return bool(self._door.ask("page.is_awaited", work.number))

    async def _serve_later(
        self, work: _Work, timeout_ms: float, performing: Awaitable[_Answer]
    ) -> None:
        work.has_begun = True
        # The loop may end.
        answer: _Answer = "failed", {"text": "the page is gone"}
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
            self._send(work.number, answer)

    def _send(self, number: int, answer: _Answer) -> None:
        kind, fields = answer
        self._door.ask("page.answer", number, {"kind": kind, **fields})

    async def _answer(
        self, bridge: Bridge, work: _Work, timeout_ms: float, fields: dict[str, Any]
    ) -> _Answer:
        try:
            page = await self._page(bridge)
            if _is_async(page) or self._loop is None:
                return await self._perform(page, work, timeout_ms, fields)
            why = functools.partial(self._why_ended, work, self._cells.get(bridge))
            with self._bounded(self._loop, timeout_ms, why) as ends:
                try:
                    answer = await self._perform(page, work, timeout_ms, fields)
                except asyncio.CancelledError:
                    if not ends:
                        raise
                    answer = "timeout", {}
            # The thread is the host's again after the run, and so is the page.
            if answer[0] != "timeout":
                return answer
            rest = await self._to_rest(work)
            return ("failed", {"text": _CELL_ENDED}) if _CELL_ENDED in ends else rest
        except asyncio.CancelledError:
            raise
        except Exception as raised:
            return _failure(raised)

    async def _perform(
        self, page: Any, work: _Work, timeout_ms: float, fields: dict[str, Any]
    ) -> _Answer:
        work.page, work.session = page, await _session_of(page)

        def check() -> None:
            # Nothing begins for a run that has ended.
            if not self._is_awaited(work):
                raise _GivenUpError

        check()
        try:
            if work.kind == "halt":
                kind, given = await self._stop(work.session)
                if kind != "stopped":
                    return kind, given
                return "arrived", {**given, "title": "", "status": 0}
            perform = _PERFORM[work.kind]
            if work.kind in ("click", "type"):
                fields = {**fields, "check": check}
            return await perform(page, timeout_ms, **fields)
        except Exception as raised:
            return _failure(raised)

    async def _to_rest_unless_left(
        self, work: _Work, stopping: Awaitable[Any] | None = None
    ) -> _Answer:
        """Brings an asynchronous page to rest, unless the host navigates after the end of the run:
        its navigation is left alone, and the page is judged before code sees it."""
        page = work.page
        if page is None:
            return "timeout", {}
        left = asyncio.get_running_loop().create_future()

        def note(request: Any) -> None:
            # While code waits for its page, a navigation is the page's own.
            if not left.done() and _begins_navigation(request) and not self._is_awaited(work):
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

    async def _to_rest(self, work: _Work, stopping: Awaitable[Any] | None = None) -> _Answer:
        """Brings a page to rest whose task was given up: it answers, and loads nothing."""
        if work.session is None or work.kind in ("halt", "close"):
            return "timeout", {}
        if work.kind == "navigate":
            return await self._stop(work.session, stopping)
        await self._answers(work.session)
        return "timeout", {}

    async def _stop(self, session: Any, stopping: Awaitable[Any] | None = None) -> _Answer:
        """Stops what a page loads, and says where it is. Playwright itself has no way to stop a
        navigation, and Chromium lets nobody evaluate while one begins; so this works in Chromium
        alone. Elsewhere it fails, and the kit leaves the page. `stopping` is an order to stop that
        was sent before."""
        if session is None:
            return "failed", {"text": "the browser cannot stop a page"}
        if stopping is None:
            await self._sent(session, "Page.stopLoading")
        else:
            with contextlib.suppress(Exception):
                await asyncio.wait_for(stopping, _REST_MS / 1e3)
        # A document that is about to be shown is there once the page answers.
        await self._answers(session)
        history = await self._sent(session, "Page.getNavigationHistory")
        if history is None or history is _LATE:
            return "timeout", {}
        return "stopped", {"url": history["entries"][history["currentIndex"]]["url"]}

    async def _answers(self, session: Any) -> None:
        """Has the page answer. A script that never ends is ended. Where that does not help, since
        scripts begin again and again, or one began before its page could be told anything, the page
        is left for one of another process."""
        zero = {"expression": "0"}
        if await self._sent(session, "Runtime.evaluate", zero) is not _LATE:
            return
        # The next one may begin in a moment.
        later = {"expression": "new Promise((done) => setTimeout(done, 50))", "awaitPromise": True}
        if (
            await self._sent(session, "Runtime.terminateExecution") is _LATE
            or await self._sent(session, "Runtime.evaluate", later) is _LATE
        ):
            await self._sent(session, "Page.navigate", {"url": "data:,"})
            # Before that is there, the next one would be the old process's.
            await self._sent(session, "Runtime.evaluate", zero)
            await self._sent(session, "Page.navigate", {"url": "about:blank"})

    async def _sent(self, session: Any, method: str, params: Any = None) -> Any:
        """The answer of Chromium, or `_LATE` if it has none soon. `None` is an error, such as that
        of a page that was closed, or of a document that another one follows meanwhile."""
        try:
            if self._loop is None:
                return await asyncio.wait_for(session.send(method, params), _REST_MS / 1e3)
            with self._bounded(self._loop, _REST_MS) as ends:
                try:
                    return session.send(method, params)
                except asyncio.CancelledError:
                    if not ends:
                        raise
                    return _LATE
        except asyncio.TimeoutError:
            return _LATE
        except Exception:
            return None

    @contextlib.contextmanager
    def _bounded(
        self,
        loop: asyncio.AbstractEventLoop,
        timeout_ms: float,
        why_ended: Callable[[], str | None] = lambda: None,
    ) -> Generator[list[str]]:
        """Ends the calls of a synchronous page when their time is over, or nobody awaits the
        command any more. Gives why. Playwright's loop runs only during such a call, and has it as a
        task."""
        ends: list[str] = []
        others = asyncio.all_tasks(loop)
        deadline = time.monotonic() + timeout_ms / 1e3

        def look() -> None:
            looks.append(loop.call_later(_LOOK_S, look))
            if not ends and time.monotonic() >= deadline:
                ends.append("its time is over")
            if not ends and (why := why_ended()) is not None:
                ends.append(why)
            if ends:
                # Again and again: a command may have several calls.
                new = asyncio.all_tasks(loop) - others
                # Others belong to events of the page.
                calls = {task for task in new if any(hasattr(task, mark) for mark in _MARKS)}
                for task in calls or new:
                    task.cancel()

        # The last one is to come.
        looks = collections.deque([loop.call_later(_LOOK_S, look)], maxlen=1)
        try:
            yield ends
        finally:
            looks.pop().cancel()

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
            raise TypeError(_OTHER_THREAD)
        if kind_of_source(found) == "context":
            pages = [page for page in found.pages if not page.is_closed()]
            return pages[-1] if pages else await _done(found.new_page())
        if not found.is_closed():
            return found
        self._found = None
        if kind_of_source(self._source) == "function":
            return await self._page(bridge)
        # The context of `browser.new_page()` refuses: its page cannot be followed by another one
        # with the same options.
        self._found = await _done(found.context.new_page())
        return self._found

    async def _find(self, bridge: Bridge) -> Any:
        if kind_of_source(self._source) != "function":
            return self._source
        door, is_waiting = self._door, is_driven(bridge)
        proxy = door.wait_for_answer("proxy") if is_waiting else await door.answer("proxy")
        try:
            found = await _done(self._source(proxy))
        except Exception as raised:
            # It is the host's affair, and may have paths.
            _log.error("the function of the option browser failed", exc_info=raised)
            raise TypeError("the function of the option browser failed") from None
        if kind_of_source(found) in ("page", "context"):
            return found
        message = "the function of the option browser must give a page or a context of Playwright"
        raise TypeError(message)


async def _navigate(page: Any, timeout: float, url: str, wait_until: str) -> _Answer:
    response = await _done(page.goto(url, wait_until=wait_until, timeout=timeout))
    title = await _done(page.evaluate("document.title"))
    status = 0 if response is None else response.status
    return "arrived", {"url": page.url, "title": title, "status": status}


async def _screenshot(page: Any, timeout: float, selector: str | None, full_page: bool) -> _Answer:
    if selector is None:
        taken = page.screenshot(full_page=full_page, timeout=timeout, type="png")
    else:
        taken = page.locator(selector).first.screenshot(timeout=timeout, type="png")
    return "bytes", {"bytes": await _done(taken)}


async def _click(page: Any, timeout: float, selector: str, check: Callable[[], None]) -> _Answer:
    element = page.locator(selector).first
    # Playwright itself would wait for the element, and click it, after the end of the run, too.
    await _done(element.wait_for(timeout=timeout))
    check()
    await _done(element.click(timeout=timeout))
    return "nothing", {}


async def _type(
    page: Any,
    timeout: float,
    selector: str,
    text: str,
    clear_first: bool,
    check: Callable[[], None],
) -> _Answer:
    element = page.locator(selector).first
    if clear_first:
        await _done(element.wait_for(timeout=timeout))
        check()
        await _done(element.fill(text, timeout=timeout))
    else:
        await _done(element.evaluate(_TO_END, timeout=timeout))
        check()
        await _done(element.press_sequentially(text, timeout=timeout))
    return "nothing", {}


async def _read(
    page: Any, timeout: float, selector: str, property: str, most_units: int
) -> _Answer:
    element = page.locator(selector).first
    text = await _done(element.evaluate(_READ, [property, most_units], timeout=timeout))
    return ("text", {"text": text}) if isinstance(text, str) else ("tooLarge", {})


async def _evaluate(page: Any, _: float, expression: str) -> _Answer:
    return "text", {"text": str(await _done(page.evaluate(expression)))}


async def _close(page: Any, _: float) -> _Answer:
    await _done(page.close())
    return "nothing", {}


_PERFORM: dict[str, Callable[..., Awaitable[_Answer]]] = {
    "navigate": _navigate,
    "screenshot": _screenshot,
    "click": _click,
    "type": _type,
    "read": _read,
    "evaluate": _evaluate,
    "close": _close,
}


def _is_async(found: Any) -> bool:
    call = getattr(found, "goto", None) or getattr(found, "new_page", None)
    return inspect.iscoroutinefunction(call)


def _begins_navigation(request: Any) -> bool:
    """Whether a request begins a navigation of a page itself. A redirect goes on with one."""
    try:
        return (
            request.is_navigation_request()
            and request.redirected_from is None
            and request.frame.parent_frame is None
        )
    except Exception:
        # The frame is gone.
        return False


class _GivenUpError(Exception):
    """Nobody waits for the task any more."""


async def _session_of(page: Any) -> Any:
    """The session of a page; none elsewhere than in Chromium."""
    if page not in _sessions:
        session = None
        with contextlib.suppress(Exception):
            session = await _done(page.context.new_cdp_session(page))
        _sessions[page] = session
    return _sessions[page]


def _failure(raised: Exception) -> _Answer:
    kind = type(raised)
    if kind is _GivenUpError:
        return "timeout", {}
    if kind.__name__ == "TimeoutError":
        return "timeout", {}
    if kind.__module__.partition(".")[0] == "greenlet":
        # Its greenlets belong to one thread.
        return "failed", {"text": _OTHER_THREAD}
    return "failed", {"text": str(raised) or kind.__name__}


async def _done(given: Any) -> Any:
    """The value of a call: that of an asynchronous page is awaited."""
    return await given if inspect.isawaitable(given) else given


def _finish(work: Any, loop: asyncio.AbstractEventLoop | None) -> _Answer:
    """Runs a coroutine that only uses synchronous functions. Playwright works only while its own
    loop is the running one, and starts only while none is."""
    running = asyncio._get_running_loop()
    asyncio._set_running_loop(loop)
    try:
        work.send(None)
    except StopIteration as finished:
        answer: _Answer = finished.value
        return answer
    finally:
        asyncio._set_running_loop(running)
        work.close()
    return "failed", {"text": "the page is asynchronous: await run_tool, not run_tool_sync"}
