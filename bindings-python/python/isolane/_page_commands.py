"""The commands of a kit's page, as Playwright has them.

In: a page, the fields of a command and its time. Out: an answer. A page that does not rest is
stopped by Chromium's own protocol. Calls of synchronous Playwright are ended from the loop that
runs these calls.
"""

from __future__ import annotations

import asyncio
import collections
import contextlib
import inspect
import time
import weakref
from collections.abc import Awaitable, Callable, Generator
from typing import Any, TypeAlias

# The kind of an answer, and its fields.
Answer: TypeAlias = tuple[str, dict[str, Any]]

# The time between two looks at whether a command of a synchronous page is still awaited.
_LOOK_S = 0.02

# The longest wait for an answer of a page at rest, on a busy machine, too, milliseconds. One that
# computes does not answer.
REST_MS = 2_000

# Chromium has no answer soon.
_LATE = object()

# Sessions of Chromium's protocol by their pages, which have nothing of the kind elsewhere. One is
# there before a page computes: a later one has no answer from a script that never ends.
_sessions: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()

# Attributes of the tasks that are calls of synchronous Playwright, in its releases.
_MARKS = ("__pw_caller_frame__", "__pw_stack__")

OTHER_THREAD = "the page is synchronous: use it on the thread of its Playwright"

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


class GivenUpError(Exception):
    """Nobody waits for the task any more."""


async def _navigate(page: Any, timeout: float, url: str, wait_until: str) -> Answer:
    response = await done(page.goto(url, wait_until=wait_until, timeout=timeout))
    title = await done(page.evaluate("document.title"))
    status = 0 if response is None else response.status
    return "arrived", {"url": page.url, "title": title, "status": status}


async def _screenshot(page: Any, timeout: float, selector: str | None, full_page: bool) -> Answer:
    if selector is None:
        taken = page.screenshot(full_page=full_page, timeout=timeout, type="png")
    else:
        taken = page.locator(selector).first.screenshot(timeout=timeout, type="png")
    return "bytes", {"bytes": await done(taken)}


async def _click(page: Any, timeout: float, selector: str, check: Callable[[], None]) -> Answer:
    element = page.locator(selector).first
    # Playwright itself would wait for the element, and click it, after the end of the run, too.
    await done(element.wait_for(timeout=timeout))
    check()
    await done(element.click(timeout=timeout))
    return "nothing", {}


async def _type(
    page: Any,
    timeout: float,
    selector: str,
    text: str,
    clear_first: bool,
    check: Callable[[], None],
) -> Answer:
    element = page.locator(selector).first
    if clear_first:
        await done(element.wait_for(timeout=timeout))
        check()
        await done(element.fill(text, timeout=timeout))
    else:
        await done(element.evaluate(_TO_END, timeout=timeout))
        check()
        await done(element.press_sequentially(text, timeout=timeout))
    return "nothing", {}


async def _read(page: Any, timeout: float, selector: str, property: str, most_units: int) -> Answer:
    element = page.locator(selector).first
    text = await done(element.evaluate(_READ, [property, most_units], timeout=timeout))
    return ("text", {"text": text}) if isinstance(text, str) else ("tooLarge", {})


async def _evaluate(page: Any, _: float, expression: str) -> Answer:
    return "text", {"text": str(await done(page.evaluate(expression)))}


async def _close(page: Any, _: float) -> Answer:
    await done(page.close())
    return "nothing", {}


PERFORM: dict[str, Callable[..., Awaitable[Answer]]] = {
    "navigate": _navigate,
    "screenshot": _screenshot,
    "click": _click,
    "type": _type,
    "read": _read,
    "evaluate": _evaluate,
    "close": _close,
}


def failure(raised: Exception) -> Answer:
    kind = type(raised)
    if kind is GivenUpError:
        return "timeout", {}
    if kind.__name__ == "TimeoutError":
        return "timeout", {}
    if kind.__module__.partition(".")[0] == "greenlet":
        # Its greenlets belong to one thread.
        return "failed", {"text": OTHER_THREAD}
    return "failed", {"text": str(raised) or kind.__name__}


async def done(given: Any) -> Any:
    """The value of a call: that of an asynchronous page is awaited."""
    return await given if inspect.isawaitable(given) else given


async def session_of(page: Any) -> Any:
    """The session of a page; none elsewhere than in Chromium."""
    if page not in _sessions:
        session = None
        with contextlib.suppress(Exception):
            session = await done(page.context.new_cdp_session(page))
        _sessions[page] = session
    return _sessions[page]


async def stop(
    loop: asyncio.AbstractEventLoop | None, session: Any, stopping: Awaitable[Any] | None = None
) -> Answer:
    """Stops what a page loads, and says where it is. Playwright itself has no way to stop a
    navigation, and Chromium lets nobody evaluate while one begins; so this works in Chromium
    alone. Elsewhere it fails, and the kit leaves the page. `stopping` is an order to stop that
    was sent before."""
    if session is None:
        return "failed", {"text": "the browser cannot stop a page"}
    if stopping is None:
        await _sent(loop, session, "Page.stopLoading")
    else:
        with contextlib.suppress(Exception):
            await asyncio.wait_for(stopping, REST_MS / 1e3)
    # A document that is about to be shown is there once the page answers.
    await answers(loop, session)
    history = await _sent(loop, session, "Page.getNavigationHistory")
    if history is None or history is _LATE:
        return "timeout", {}
    return "stopped", {"url": history["entries"][history["currentIndex"]]["url"]}


async def answers(loop: asyncio.AbstractEventLoop | None, session: Any) -> None:
    """Has the page answer. A script that never ends is ended. Where that does not help, since
    scripts begin again and again, or one began before its page could be told anything, the page
    is left for one of another process."""
    zero = {"expression": "0"}
    if await _sent(loop, session, "Runtime.evaluate", zero) is not _LATE:
        return
    # The next one may begin in a moment.
    later = {"expression": "new Promise((done) => setTimeout(done, 50))", "awaitPromise": True}
    if (
        await _sent(loop, session, "Runtime.terminateExecution") is _LATE
        or await _sent(loop, session, "Runtime.evaluate", later) is _LATE
    ):
        await _sent(loop, session, "Page.navigate", {"url": "data:,"})
        # Before that is there, the next one would be the old process's.
        await _sent(loop, session, "Runtime.evaluate", zero)
        await _sent(loop, session, "Page.navigate", {"url": "about:blank"})


async def _sent(
    loop: asyncio.AbstractEventLoop | None, session: Any, method: str, params: Any = None
) -> Any:
    """The answer of Chromium, or `_LATE` if it has none soon. `None` is an error, such as that
    of a page that was closed, or of a document that another one follows meanwhile."""
    try:
        if loop is None:
            return await asyncio.wait_for(session.send(method, params), REST_MS / 1e3)
        with bounded(loop, REST_MS) as ends:
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
def bounded(
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
