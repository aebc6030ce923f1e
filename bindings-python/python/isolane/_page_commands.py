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

# How often a page is asked that is about to show another document.
_MOST_TRIES = 5

# The page that Chromium shows in place of one that cannot be reached.
_ERROR_PAGE = "chrome-error:"

# Chromium has no answer soon.
_LATE = object()

# Sessions of Chromium's protocol by their pages, which have nothing of the kind elsewhere. One is
# there before a page computes: a later one has no answer from a script that never ends.
_sessions: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()

# Attributes of the tasks that are calls of synchronous Playwright, in its releases.
_MARKS = ("__pw_caller_frame__", "__pw_stack__")

OTHER_THREAD = "the page is synchronous: use it on the thread of its Playwright"

# These texts run in the page, which may have changed all functions: syntax alone bounds what
# leaves it.

# The title of the page; none if it is longer than any title.
_TITLE = """(() => {
  try {
    const text = document.title;
    return typeof text === 'string' && text.length <= 1048576 ? text : '';
  } catch { return '' }
})()"""

# Moves the caret of an element to its end. Some kinds of inputs have no selection.
_TO_END = """(element) => {
  try {
    element.focus?.();
    const end = typeof element.value === 'string' ? element.value.length : 0;
    element.setSelectionRange?.(end, end);
  } catch {}
}"""

# A property of an element as a text, or nothing if it has too many units.
_READ = """(element) => {
  try {
    const text = element.%s ?? element.textContent ?? '';
    return typeof text !== 'string' ? '' : text.length > %d ? null : text;
  } catch { return '' }
}"""


class GivenUpError(Exception):
    """Nobody waits for the task any more."""


async def _navigate(page: Any, timeout: float, url: str, wait_until: str) -> Answer:
    response = await _arrived(page, url, wait_until=wait_until, timeout=timeout)
    title = ""
    # A page that has gone on meanwhile has none.
    with contextlib.suppress(Exception):
        title = await _evaluated(page, _TITLE)
    status = 0 if response is None else response.status
    return "arrived", {"url": page.url, "title": title, "status": status}


async def _arrived(page: Any, url: str, **options: Any) -> Any:
    """Goes to a URL. Chromium shows a page of its own for one that cannot be reached, a moment
    after it has said so: the page is given on once that is there, as it would interrupt the next
    navigation."""
    is_shown = False

    def is_main(frame: Any) -> bool:
        return bool(frame == page.main_frame)

    def note(frame: Any) -> None:
        nonlocal is_shown
        is_shown = is_shown or is_main(frame)

    page.on("framenavigated", note)
    try:
        return await done(page.goto(url, **options))
    except Exception as raised:
        message = str(raised)
        if "net::ERR_" in message and "net::ERR_ABORTED" not in message and not is_shown:
            # Where there is none, the page is as it was.
            with contextlib.suppress(Exception):
                await done(
                    page.wait_for_event("framenavigated", predicate=is_main, timeout=REST_MS)
                )
        raise
    finally:
        page.remove_listener("framenavigated", note)


async def _evaluated(page: Any, expression: str) -> str:
    """The text of an expression that gives one or an object that is awaited. In Chromium no
    function of the page's is called on the way, as Playwright's own would be."""
    session = await session_of(page)
    if session is None:
        text = await done(page.evaluate(expression))
    else:
        params = {
            "expression": expression,
            "awaitPromise": True,
            "returnByValue": True,
            "userGesture": True,
        }
        given = await done(session.send("Runtime.evaluate", params))
        text = given["result"].get("value")
    return text if isinstance(text, str) else ""


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
    text = await done(element.evaluate(_READ % (property, most_units), timeout=timeout))
    return ("text", {"text": text}) if isinstance(text, str) else ("tooLarge", {})


async def _evaluate(page: Any, _: float, expression: str) -> Answer:
    return "text", {"text": await _evaluated(page, expression)}


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
    return "failed", {"text": str(raised)[:2_000] or kind.__name__}


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


class Loading:
    """The navigations of a page itself, as long as a task acts on it."""

    def __init__(self, page: Any, url: str | None) -> None:
        """`url`: the place to which the task goes. Its request may be told of late, when the task
        is given up."""
        self._page = page
        self._place = None if url is None else url.partition("#")[0]
        self._request: Any = None
        # That of the task itself.
        self._own: Any = None
        page.on("request", self._on_request)
        page.on("framenavigated", self._on_arrival)

    @property
    def is_pending(self) -> bool:
        """Whether one has begun whose document is not there."""
        return self._request is not None and self._request.failure is None

    def is_own(self, request: Any) -> bool:
        return bool(request == self._own)

    def end(self) -> None:
        self._page.remove_listener("request", self._on_request)
        self._page.remove_listener("framenavigated", self._on_arrival)

    def _on_request(self, request: Any) -> None:
        if not begins_navigation(request):
            return
        self._request = request
        if self._own is None and request.url == self._place:
            self._own = request

    def _on_arrival(self, frame: Any) -> None:
        if frame == self._page.main_frame:
            self._request = None


def begins_navigation(request: Any) -> bool:
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


async def stop(
    loop: asyncio.AbstractEventLoop | None,
    page: Any,
    session: Any,
    stopping: Awaitable[Any] | None = None,
) -> Answer:
    """Stops what a page loads, and says where it is. Playwright itself has no way to stop a
    navigation, and Chromium lets nobody evaluate while one begins; so this works in Chromium
    alone. Elsewhere it fails, and the kit leaves the page. `stopping` is an order to stop that
    was sent before."""
    if session is None:
        return "failed", {"text": "the browser cannot stop a page"}
    stopped: Any = None
    if stopping is not None:
        with contextlib.suppress(Exception):
            stopped = await asyncio.wait_for(stopping, REST_MS / 1e3)
    for _ in range(_MOST_TRIES):
        if stopped is None:
            stopped = await _sent(loop, session, "Page.stopLoading")
        # A document that is about to be shown is there once the page answers. Chromium stops none
        # at that moment.
        await answers(loop, page, session)
        if stopped is not None:
            break
    history = await _sent(loop, session, "Page.getNavigationHistory")
    if history is None or history is _LATE:
        return "timeout", {}
    url = history["entries"][history["currentIndex"]]["url"]
    if page.url != url and not page.url.startswith(_ERROR_PAGE):
        # Playwright hears of a document a moment later, and would take it for one that interrupts
        # the next navigation.
        await _shows(loop, page, lambda now: now == url)
    return "stopped", {"url": url}


async def answers(loop: asyncio.AbstractEventLoop | None, page: Any, session: Any) -> None:
    """Has the page answer. A script that never ends is ended. Where that does not help, since
    scripts begin again and again, or one began before its page could be told anything, the page
    is left for one of another process."""
    zero = {"expression": "0"}
    # Chromium gives an error while documents follow each other.
    for _ in range(_MOST_TRIES):
        heard = await _sent(loop, session, "Runtime.evaluate", zero)
        if heard is _LATE:
            break
        if heard is not None:
            return
    # While a document is awaited, Chromium passes nothing on to the page. One that computes lets
    # none arrive.
    await _sent(loop, session, "Page.stopLoading")
    if await _sent(loop, session, "Runtime.evaluate", zero, REST_MS / 2) is not _LATE:
        return
    await _sent(loop, session, "Page.stopLoading")
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
        await _shows(loop, page, "about:blank")


async def _shows(loop: asyncio.AbstractEventLoop | None, page: Any, url: Any) -> None:
    """Waits until Playwright sees a page at that URL."""

    def wait() -> Any:
        return page.wait_for_url(url, wait_until="commit", timeout=REST_MS)

    with contextlib.suppress(Exception):
        if loop is None:
            await wait()
            return
        with bounded(loop, 2 * REST_MS) as ends:
            try:
                wait()
            except asyncio.CancelledError:
                if not ends:
                    raise


async def _sent(
    loop: asyncio.AbstractEventLoop | None,
    session: Any,
    method: str,
    params: Any = None,
    timeout_ms: float = REST_MS,
) -> Any:
    """The answer of Chromium, or `_LATE` if it has none soon. `None` is an error, such as that
    of a page that was closed, or of a document that another one follows meanwhile."""
    try:
        if loop is None:
            return await asyncio.wait_for(session.send(method, params), timeout_ms / 1e3)
        with bounded(loop, timeout_ms) as ends:
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
