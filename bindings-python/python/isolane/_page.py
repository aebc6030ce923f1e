"""The page of a kit, driven with Playwright.

In: the host's page or context, or a function that gives one; tasks of runs. Out: their answers. The
kit has judged each task before, and bounds and redacts each answer after. Synchronous pages are
used on the thread that waits for the run, asynchronous ones on the loop of the run's caller.
"""

from __future__ import annotations

import asyncio
import inspect
import weakref
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from . import _isolane
from ._bridge import Bridge
from ._sync import is_driven

if TYPE_CHECKING:
    from ._door import Door

# The kind of an answer, and its fields.
_Answer: TypeAlias = tuple[str, dict[str, Any]]

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
    """The kind of a value: a page, a context, a function that gives one, or nothing of these."""
    if callable(getattr(value, "goto", None)):
        return "page"
    if callable(getattr(value, "new_page", None)):
        return "context"
    return "function" if callable(value) else None


class PageDriver:
    """Does the tasks of runs on the host's page."""

    def __init__(self, source: Any, door: Door) -> None:
        self._source = source
        self._door = door
        self._found: Any = None
        # The loop that a synchronous page runs for its calls: Playwright has it as the running one
        # of its thread at all times.
        self._loop: asyncio.AbstractEventLoop | None = None
        if kind_of_source(source) != "function":
            self._learn_loop(source)
        self._numbers: weakref.WeakKeyDictionary[Bridge, int] = weakref.WeakKeyDictionary()
        self._tasks: set[asyncio.Task[None]] = set()

    def attach(self, bridge: Bridge, run: _isolane.RunHandle) -> None:
        """Has the bridge serve the tasks of that run."""
        number = self._numbers.get(bridge)
        if number is None:
            # A page does not keep a bridge, nor a bridge a page.
            page, at = weakref.ref(self), weakref.ref(bridge)

            def notice() -> None:
                driver, here = page(), at()
                if driver is not None and here is not None:
                    driver._serve(here)

            number = self._numbers[bridge] = bridge.on_notice(notice)
        run.announce(bridge.mailbox, number)
        if self._loop is not None and is_driven(bridge):
            # An earlier run, for which nothing waits any more, may have left a task: to leave the
            # page.
            self._serve(bridge)

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

        if self._loop is not None and is_driven(bridge):
            # As in `attach`.
            self._serve(bridge)
        return serve

    def _learn_loop(self, found: Any) -> None:
        """Notes the loop of a page that is there, on its thread."""
        if not _is_async(found):
            self._loop = asyncio._get_running_loop()

    def _serve(self, bridge: Bridge) -> None:
        while (task := self._door.ask("page.next")) is not None:
            number, kind, timeout_ms, fields = task
            work = self._answer(bridge, kind, timeout_ms, fields)
            if is_driven(bridge):
                answer: _Answer = "failed", {"text": "the page was interrupted"}
                try:
                    answer = _finish(work, self.loop)
                finally:
                    # Such as a `KeyboardInterrupt`: later commands wait for an answer.
                    self._send(number, answer)
            else:
                running = asyncio.ensure_future(self._serve_later(number, timeout_ms, work))
                self._tasks.add(running)
                running.add_done_callback(self._tasks.discard)

    async def _serve_later(self, number: int, timeout_ms: float, work: Awaitable[_Answer]) -> None:
        try:
            answer = await asyncio.wait_for(work, timeout_ms / 1e3)
        except asyncio.TimeoutError:
            answer = "timeout", {}
        self._send(number, answer)

    def _send(self, number: int, answer: _Answer) -> None:
        kind, fields = answer
        self._door.ask("page.answer", number, {"kind": kind, **fields})

    async def _answer(
        self, bridge: Bridge, kind: str, timeout_ms: float, fields: dict[str, Any]
    ) -> _Answer:
        try:
            page = await self._page(bridge)
            return await _PERFORM[kind](page, timeout_ms, **fields)
        except asyncio.CancelledError:
            raise
        except Exception as raised:
            if type(raised).__name__ == "TimeoutError":
                return "timeout", {}
            return "failed", {"text": str(raised) or type(raised).__name__}

    async def _page(self, bridge: Bridge) -> Any:
        """The page: that of the host, of a context the newest one. A new one if there is none any
        more."""
        if self._found is None:
            self._found = await self._find(bridge)
            if self._loop is None:
                self._learn_loop(self._found)
        found = self._found
        if _is_async(found) and is_driven(bridge):
            raise TypeError("the page is asynchronous: await run_tool, not run_tool_sync")
        if not _is_async(found) and not is_driven(bridge):
            raise TypeError("the page is synchronous: call run_tool_sync, not run_tool")
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
        found = await _done(self._source(proxy))
        if kind_of_source(found) in ("page", "context"):
            return found
        message = "the function of the option browser must give a page or a context of Playwright"
        raise TypeError(message)


async def _navigate(page: Any, timeout: float, url: str, wait_until: str) -> _Answer:
    response = await _done(page.goto(url, wait_until=wait_until, timeout=timeout))
    title = await _evaluated(page, timeout, "document.title")
    status = 0 if response is None else response.status
    return "arrived", {"url": page.url, "title": title, "status": status}


async def _screenshot(page: Any, timeout: float, selector: str | None, full_page: bool) -> _Answer:
    if selector is None:
        taken = page.screenshot(full_page=full_page, timeout=timeout, type="png")
    else:
        taken = page.locator(selector).first.screenshot(timeout=timeout, type="png")
    return "bytes", {"bytes": await _done(taken)}


async def _click(page: Any, timeout: float, selector: str) -> _Answer:
    await _done(page.locator(selector).first.click(timeout=timeout))
    return "nothing", {}


async def _type(page: Any, timeout: float, selector: str, text: str, clear_first: bool) -> _Answer:
    element = page.locator(selector).first
    if clear_first:
        await _done(element.fill(text, timeout=timeout))
    else:
        await _done(element.evaluate(_TO_END, timeout=timeout))
        await _done(element.press_sequentially(text, timeout=timeout))
    return "nothing", {}


async def _read(
    page: Any, timeout: float, selector: str, property: str, most_units: int
) -> _Answer:
    element = page.locator(selector).first
    text = await _done(element.evaluate(_READ, [property, most_units], timeout=timeout))
    return ("text", {"text": text}) if isinstance(text, str) else ("tooLarge", {})


async def _evaluate(page: Any, timeout: float, expression: str) -> _Answer:
    return "text", {"text": str(await _evaluated(page, timeout, expression))}


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


async def _done(given: Any) -> Any:
    """The value of a call: that of an asynchronous page is awaited."""
    return await given if inspect.isawaitable(given) else given


async def _evaluated(page: Any, timeout: float, expression: str) -> Any:
    """The value of an expression. The caller of an asynchronous page has a time limit. Of a
    synchronous one only waiting has one: for a list, which is there as soon as the value is."""
    if _is_async(page):
        return await page.evaluate(expression)
    listed = f"(async () => [await ({expression})])()"
    return page.wait_for_function(listed, timeout=timeout).json_value()[0]


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
