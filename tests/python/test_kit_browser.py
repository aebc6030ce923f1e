"""`browser` on pages of Chromium, through Playwright, and the proxy of the kit in front of them."""

from __future__ import annotations

import asyncio
import contextlib
import http.server
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest
from isolane import _page_commands
from isolane._page import PageDriver
from isolane.kit import Kit, Proxy
from playwright.async_api import Page, async_playwright
from playwright.sync_api import Browser, sync_playwright

import isolation

CHROMIUM = os.environ.get("ISOLANE_CHROMIUM", "/usr/bin/chromium")
# Continuous integration has it.
needs_chromium = pytest.mark.skipif(
    not os.path.exists(CHROMIUM) and "CI" not in os.environ, reason="there is no Chromium here"
)

PAGE = """<!doctype html><title>a page</title><body><p>one</p>
<button onclick="this.textContent = 'clicked'">button</button><input value="before"></body>"""

FAILS = """const fails = async (call) => {
  try { return await call } catch (e) { return [e.name, e.message] }
};"""

TOUR = """
const arrived = await browser.navigate(args.url);
await browser.click('button');
await browser.type('input', ' after');
const added = await browser.evaluate("document.querySelector('input').value");
await browser.type('input', 'anew', { clear_first: true });
const shot = await browser.screenshot();
return [
  arrived.title, arrived.status, added,
  await browser.evaluate("return document.querySelector('input').value"),
  await browser.extractText('p'), await browser.extractHtml('p', { outer: true }),
  (await browser.extractText()).includes('clicked'),
  shot.image.startsWith('iVBORw0KGgo'), shot.width,
];
"""
TOURED = ["a page", 200, "before after", "anew", "one", "<p>one</p>", True, True, 1280]


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.server.seen.append(f"{self.headers['Host'].split(':')[0]}{self.path}")  # type: ignore[attr-defined]
        port = self.connection.getsockname()[1]
        body = f'<img src="http://127.0.0.2:{port}/x">' if self.path == "/probe" else PAGE
        if self.path == "/elsewhere":
            self.send_response(302)
            self.send_header("location", f"http://localhost:{port}/hang")
            self.send_header("content-length", "0")
            self.end_headers()
            return
        if self.path == "/asked":
            self.server.is_asked.wait()  # type: ignore[attr-defined]
        if self.path == "/slow":
            time.sleep(6)
        if self.path == "/silent":
            self.server.is_asked.set()  # type: ignore[attr-defined]
            # It ends when the client goes away.
            self.rfile.read(1)
            return
        if self.path == "/hang":
            self.server.is_asked.set()  # type: ignore[attr-defined]
            self.send_response(200)
            self.send_header("content-type", "text/html")
            # It is never done: it ends when the client goes away.
            self.send_header("content-length", "1000000")
            self.end_headers()
            self.wfile.write(b"<p>begun</p>".ljust(4096))
            self.rfile.read(1)
            return
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture(scope="module")
def server() -> Iterator[Any]:
    # 127.0.0.2 is an address of the same host that no kit here lets through.
    server = http.server.ThreadingHTTPServer(("0.0.0.0", 0), Handler)
    server.seen = []  # type: ignore[attr-defined]
    # Set once the server is asked for something that never comes.
    server.is_asked = threading.Event()  # type: ignore[attr-defined]
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()


@pytest.fixture
def options(server: Any) -> Iterator[dict[str, Any]]:
    server.seen.clear()
    server.is_asked.clear()
    allow = [f"http://127.0.0.1:{server.server_address[1]}/*"]
    with isolation.Runtime() as runtime:
        yield {
            "runtime": runtime,
            "fetch": {"allow": allow, "allow_addresses": ["127.0.0.1"]},
            "state": True,
        }


def url(server: Any, path: str = "/") -> str:
    return f"http://127.0.0.1:{server.server_address[1]}{path}"


def in_thread(act: Callable[[], None]) -> None:
    """Runs the function on a thread of its own: Playwright leaves its loop on the thread."""
    raised: list[BaseException] = []

    def run() -> None:
        try:
            act()
        except BaseException as caught:
            raised.append(caught)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if raised:
        raise raised[0]


def with_browser(act: Callable[[Browser], None]) -> None:
    def run() -> None:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=CHROMIUM)
            act(browser)
            browser.close()

    in_thread(run)


@contextlib.asynccontextmanager
async def asynchronous_page() -> AsyncIterator[Page]:
    """A page of asynchronous Playwright, in a browser of its own."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM)
        yield await browser.new_page()
        await browser.close()


@needs_chromium
def test_code_uses_a_synchronous_page(server: Any, options: dict[str, Any]) -> None:
    def act(browser: Browser) -> None:
        page = browser.new_page()
        with Kit(browser=page, **options) as kit:
            done = kit.run_tool_sync(TOUR, args={"url": url(server)})
            assert done.result == TOURED, done.error
            assert page.text_content("button") == "clicked"
            # All other functions that wait work beside Playwright's loop, too.
            kit.state.set_sync("k", 1)
            assert "browser" in kit.describe_sync()
            with kit.session() as session:
                first = session.run_sync("const title = await browser.evaluate('document.title')")
                assert first.status == "success", first.error
                assert session.run_sync("title").result == "a page"
            # A coroutine function makes a loop of the run's own.
            double = kit.run_tool_sync(
                "return [await double(2), await browser.extractText('p'), await double(3)]",
                globals={"double": doubled},
            )
            assert double.result == [4, "one", 6], double.error

    with_browser(act)


@needs_chromium
def test_a_navigation_that_takes_too_long_is_judged(server: Any, options: dict[str, Any]) -> None:
    def act(browser: Browser) -> None:
        page = browser.new_page()
        with Kit(browser={"page": page, "timeout_ms": 10_000}, **options) as kit:
            source = f"{FAILS} const late = await fails(browser.navigate(args.url));"
            source += " return [late[0], await browser.extractText()]"
            for path, expected in [("/hang", url(server, "/hang")), ("/elsewhere", "about:blank")]:
                done = kit.run_tool_sync(source, args={"url": url(server, path)})
                text = "begun" if path == "/hang" else ""
                assert (done.result, page.url) == (["BrowserTimeout", text], expected), done.error

    with_browser(act)


@needs_chromium
def test_a_navigation_without_an_answer_leaves_the_page_as_it_was(
    server: Any, options: dict[str, Any]
) -> None:
    def act(browser: Browser) -> None:
        page = browser.new_page()
        with Kit(browser={"page": page, "timeout_ms": 10_000}, **options) as kit:
            source = f"""{FAILS} await browser.navigate(args.url);
              const late = await fails(browser.navigate(args.url + 'silent'));
              return [late[0], await browser.evaluate('location.href'),
                await browser.extractText('p')]"""
            done = kit.run_tool_sync(source, args={"url": url(server)})
            assert done.result == ["BrowserTimeout", url(server), "one"], done.error
            # Nobody waited for the browser: each call after the navigation had an answer at once.
            assert [call.error for call in done.calls] == [None, "BrowserTimeout", None, None]

    with_browser(act)


@needs_chromium
def test_a_run_that_ends_leaves_its_page(server: Any, options: dict[str, Any]) -> None:
    """The commands would take an hour by themselves."""

    def act(browser: Browser) -> None:
        page = browser.new_page()
        with Kit(browser={"page": page, "timeout_ms": 3_600_000}, **options) as kit:
            kit.run_tool_sync("await browser.navigate(args.url)", args={"url": url(server)})
            for call in (
                "click('#none')",
                "evaluate('new Promise(() => {})')",
                f"navigate('{url(server, '/silent')}')",
                "evaluate('for (;;) ;')",
            ):
                ended = kit.run_tool_sync(f"await browser.{call}", timeout_ms=300)
                assert ended.error is not None
                assert (ended.status, ended.error.name) == ("terminated", "Timeout")
                # The host's page is the host's again, and the next run's.
                assert page.text_content("p") == "one"
                ended = kit.run_tool_sync(f"await browser.{call}", timeout_ms=300)
                assert kit.run_tool_sync("return await browser.extractText('p')").result == "one"
                with kit.session() as session:
                    cell = session.run_sync(f"await browser.{call}", timeout_ms=300)
                    assert cell.error is not None
                    assert (cell.status, cell.error.name) == ("terminated", "Timeout")
                    cell = session.run_sync("await browser.extractText('p')")
                    assert cell.result == "one", cell.error
            # The page tells of the call, and then the kit is closed.
            closing = threading.Thread(target=kit.close)
            page.expose_function("begun", closing.start)
            waits = "await browser.evaluate('begun(); return new Promise(() => {})')"
            ended = kit.run_tool_sync(waits)
            assert ended.error is not None
            assert (ended.status, ended.error.message) == ("terminated", "kit closed")
            closing.join()
            assert page.text_content("p") == "one"

    with_browser(act)


@needs_chromium
def test_a_call_that_a_cell_did_not_await_goes_on(server: Any, options: dict[str, Any]) -> None:
    def act(browser: Browser) -> None:
        with (
            Kit(browser=browser.new_page(), **options) as kit,
            kit.session() as session,
        ):
            session.run_sync(f"await browser.navigate('{url(server)}')")
            cell = session.run_sync("const title = browser.evaluate('document.title'); 1")
            assert cell.result == 1, cell.error
            cell = session.run_sync("[await title, await browser.extractText('p')]")
            assert cell.result == ["a page", "one"], cell.error

    with_browser(act)


@needs_chromium
def test_a_cell_does_not_wait_for_ever_for_a_call_that_it_did_not_await(
    server: Any, options: dict[str, Any]
) -> None:
    """The calls would take an hour by themselves."""

    def act(browser: Browser) -> None:
        page = browser.new_page()
        with (
            Kit(browser={"page": page, "timeout_ms": 3_600_000}, **options) as kit,
            kit.session() as session,
        ):
            session.run_sync(f"{FAILS} await browser.navigate('{url(server)}')")
            message = "the cell ended before the browser was done with its call"
            waits = f"fetch('{url(server, '/silent')}'); return new Promise(() => {{}})"
            calls = (f"navigate('{url(server, '/silent')}')", f'evaluate("{waits}")')
            for number, call in enumerate(calls):
                server.is_asked.clear()
                # The call is under way before the cell ends.
                source = f"const c{number} = fails(browser.{call});"
                cell = session.run_sync(f"{source} await fetch('{url(server, '/asked')}'); 1")
                assert cell.result == 1, cell.error
                assert page.text_content("p") == "one"
                cell = session.run_sync(f"[await c{number}, await browser.extractText('p')]")
                assert cell.result == [["BrowserError", message], "one"], cell.error

    with_browser(act)


@needs_chromium
def test_a_page_stays_that_stops_after_its_cell(
    server: Any, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The thread of the cell gets the kit's order to stop the page, and the page takes long."""
    send = PageDriver._send

    def send_and_wait(driver: PageDriver, number: int, answer: Any) -> None:
        send(driver, number, answer)
        if answer[0] == "failed":
            time.sleep(1)

    monkeypatch.setattr(PageDriver, "_send", send_and_wait)
    monkeypatch.setattr(_page_commands, "_LOOK_S", 0)

    def act(browser: Browser) -> None:
        page = browser.new_page()
        with (
            Kit(browser={"page": page, "timeout_ms": 3_600_000}, **options) as kit,
            kit.session() as session,
        ):
            session.run_sync(f"await browser.navigate('{url(server)}')")
            goes = f"browser.navigate('{url(server, '/silent')}').catch(() => {{}})"
            cell = session.run_sync(f"{goes}; await fetch('{url(server, '/asked')}'); 1")
            assert cell.result == 1, cell.error
            assert session.run_sync("await browser.extractText('body > p')").result == "one"

    with_browser(act)


INTERRUPTED = """
import http.server, os, signal, sys, threading
from isolane.kit import Kit
from playwright.sync_api import sync_playwright

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"<p>one</p>")
        if self.path == "/begun":
            os.kill(os.getpid(), signal.SIGINT)

    def log_message(self, format, *args):
        pass

server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
TOOL = '''
await browser.evaluate(`
  const request = new XMLHttpRequest();
  request.open("GET", "/begun", false);
  request.send();
  for (;;) ;
`)
'''
with sync_playwright() as playwright:
    browser = playwright.chromium.launch(executable_path=sys.argv[1])
    page = browser.new_page()
    page.goto(f"http://127.0.0.1:{server.server_address[1]}/")
    with Kit(browser={"page": page, "timeout_ms": 20_000}) as kit:
        try:
            kit.run_tool_sync(TOOL)
        except KeyboardInterrupt:
            print("interrupted")
        print(kit.run_tool_sync("return await browser.extractText('p')").result)
        print(page.text_content("p"))
    browser.close()
"""


@needs_chromium
@pytest.mark.skipif(sys.platform == "win32", reason="no process there can interrupt itself so")
def test_a_ctrl_c_frees_a_synchronous_page() -> None:
    arguments = [sys.executable, "-c", INTERRUPTED, CHROMIUM]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=300, check=False)
    assert done.stdout.split() == ["interrupted", "one", "one"], done.stderr


@needs_chromium
def test_playwright_blocks_no_kit_without_a_page(options: dict[str, Any]) -> None:
    def act(browser: Browser) -> None:
        page = browser.new_page()
        with Kit(**options) as kit, isolation.Runtime() as runtime:
            assert kit.run_tool_sync("return 1").result == 1
            kit.state.set_sync("k", 2)
            assert kit.state.get_sync("k") == 2
            with kit.session() as session:
                assert session.run_sync("3").result == 3
            double = kit.run_tool_sync("return await double(2)", globals={"double": doubled})
            assert double.result == 4, double.error
            assert runtime.run_code_sync("export default 5").result == 5
            # Playwright goes on, and a loop that runs is blocked by nothing.
            assert page.evaluate("6") == 6
        with Kit(browser=lambda _: page, **options) as kit:
            assert kit.run_tool_sync("return await browser.evaluate('7')").result == 7
            assert page.evaluate("8") == 8

    with_browser(act)


@needs_chromium
def test_another_thread_cannot_use_a_synchronous_page(options: dict[str, Any]) -> None:
    def act(browser: Browser) -> None:
        source = f"{FAILS} return await fails(browser.evaluate('1'))"
        message = "the page is synchronous: use it on the thread of its Playwright"
        page = browser.new_page()
        with Kit(browser=page, **options) as kit:
            done = []
            in_thread(lambda: done.append(kit.run_tool_sync(source)))
            assert done[0].result == ["BrowserError", message]
            assert kit.run_tool_sync(source).result == 1
            kits: list[Kit] = []
            in_thread(lambda: kits.append(Kit(browser=page, **options)))
            in_thread(lambda: done.append(kits[0].run_tool_sync(source)))
            assert done[1].result == ["BrowserError", message]
            kits[0].close()
        assert page.evaluate("2") == 2

    with_browser(act)


@needs_chromium
def test_an_error_of_the_function_is_the_affair_of_the_host(
    options: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    def launch(_: Proxy) -> Any:
        raise RuntimeError("no browser in /root/secret")

    with Kit(browser=launch, **options) as kit:
        done = kit.run_tool_sync(f"{FAILS} return await fails(browser.extractText())")
    assert done.result == ["BrowserError", "the function of the option browser failed"]
    (record,) = caplog.records
    assert str(record.exc_info[1]) == "no browser in /root/secret"  # type: ignore[index]


async def doubled(number: int) -> int:
    await asyncio.sleep(0.01)
    return 2 * number


@needs_chromium
def test_time_limits_hold_in_a_page_that_never_rests(options: dict[str, Any]) -> None:
    def act(browser: Browser) -> None:
        with Kit(browser={"page": browser.new_page(), "timeout_ms": 700}, **options) as kit:
            calls = (
                "await fails(browser.click('#none')), await fails(browser.evaluate('for (;;) ;'))"
            )
            done = kit.run_tool_sync(f"{FAILS} return [{calls}]")
            message = ["BrowserTimeout", "the browser took longer than 700 ms"]
            assert done.result == [message, message], done.error

    with_browser(act)


@needs_chromium
def test_of_a_context_the_newest_page_is_used(server: Any, options: dict[str, Any]) -> None:
    def act(browser: Browser) -> None:
        context = browser.new_context()
        with Kit(browser=context, **options) as kit:
            assert kit.run_tool_sync(TOUR, args={"url": url(server)}).result == TOURED
            context.new_page().set_content("<p>newest</p>")
            assert kit.run_tool_sync("return await browser.extractText('p')").result == "newest"
            kit.run_tool_sync("await browser.close()")
            assert len(context.pages) == 1

    with_browser(act)


@needs_chromium
def test_code_uses_an_asynchronous_page_behind_the_proxy(
    server: Any, options: dict[str, Any]
) -> None:
    async def main() -> None:
        async with async_playwright() as playwright:
            launched = []
            given: list[Proxy] = []

            async def launch(proxy: Proxy) -> Any:
                given.append(proxy)
                browser = await playwright.chromium.launch(
                    executable_path=CHROMIUM,
                    proxy=proxy,  # type: ignore[arg-type]
                    args=proxy["args"],
                )
                launched.append(browser)
                return await browser.new_page()

            async with Kit(browser=launch, **options) as kit:
                assert (await kit.run_tool(TOUR, args={"url": url(server)})).result == TOURED
                tool = "return await browser.navigate(args.url, { wait_until: 'networkidle' })"
                probed = await kit.run_tool(tool, args={"url": url(server, "/probe")})
                assert probed.status == "success", probed.error
                assert "127.0.0.1/probe" in server.seen
                assert "127.0.0.2/x" not in server.seen
                assert given == [await kit.proxy()]
                async with kit.session() as session:
                    cell = await session.run("await browser.evaluate('1 + 1')")
                    assert cell.result == 2
            await launched[0].close()

    asyncio.run(main())


@needs_chromium
def test_a_run_that_is_cancelled_leaves_an_asynchronous_page(
    server: Any, options: dict[str, Any]
) -> None:
    """The commands would take an hour by themselves."""

    async def main() -> None:
        async with asynchronous_page() as page:
            begun = asyncio.Event()
            await page.expose_function("begun", begun.set)
            calls = [
                f"navigate('{url(server, '/silent')}')",
                "evaluate('begun(); return new Promise(() => {})')",
                "evaluate('begun(); for (;;) ;')",
            ]

            async def under_way(call: str) -> None:
                if call.startswith("navigate"):
                    await asyncio.to_thread(server.is_asked.wait)
                else:
                    await begun.wait()
                server.is_asked.clear()
                begun.clear()

            async with Kit(browser={"page": page, "timeout_ms": 3_600_000}, **options) as kit:
                for call in calls:
                    await page.goto(url(server))
                    for ends in ("cancelled", "terminated"):
                        run = kit.run_tool(f"await browser.{call}")
                        task = asyncio.ensure_future(run)
                        await under_way(call)
                        if ends == "cancelled":
                            task.cancel()
                        else:
                            run.terminate()
                        await asyncio.wait([task])
                        assert task.cancelled() == (ends == "cancelled")
                        text = await kit.run_tool("return await browser.extractText('p')")
                        assert text.result == "one", (call, text.error)
                run = kit.run_tool(f"await browser.{calls[0]}")
                await under_way(calls[0])
            assert (await run).status == "terminated"
            assert await page.evaluate("1 + 1") == 2
            answer = await page.goto(url(server))
            assert answer is not None
            assert answer.status == 200

    asyncio.run(main())


@needs_chromium
def test_the_navigation_of_the_host_after_the_end_of_a_run_arrives(
    server: Any, options: dict[str, Any]
) -> None:
    async def main() -> None:
        async with (
            asynchronous_page() as page,
            Kit(browser={"page": page, "timeout_ms": 3_600_000}, **options) as kit,
        ):
            for path in (*(f"/{number}" for number in range(24)), "/slow"):
                run = kit.run_tool(f"await browser.navigate('{url(server, '/silent')}')")
                task = asyncio.ensure_future(run)
                await asyncio.to_thread(server.is_asked.wait)
                server.is_asked.clear()
                if len(path) % 2 == 0:
                    run.terminate()
                else:
                    task.cancel()
                await asyncio.wait([task])
                answer = await page.goto(url(server, path), timeout=60_000)
                assert answer is not None
                assert answer.status == 200
                text = await kit.run_tool("return await browser.extractText('p')")
                assert (text.result, page.url) == ("one", url(server, path)), text.error

    asyncio.run(main())


@needs_chromium
def test_the_navigation_of_the_host_arrives_beside_a_document_that_was_arriving(
    server: Any, options: dict[str, Any]
) -> None:
    async def main() -> None:
        async with (
            asynchronous_page() as page,
            Kit(browser={"page": page, "timeout_ms": 3_600_000}, **options) as kit,
        ):
            for number in range(20):
                await page.goto("about:blank")
                await page.goto(url(server))
                server.is_asked.clear()
                run = kit.run_tool(f"await browser.navigate('{url(server, '/hang')}')")
                task = asyncio.ensure_future(run)
                await asyncio.to_thread(server.is_asked.wait)
                run.terminate()
                await task
                answer = await page.goto(url(server, f"/{number}"))
                assert answer is not None
                assert (answer.status, page.url) == (200, url(server, f"/{number}"))

    asyncio.run(main())


HOSTILE = """{fails} await browser.navigate(args.url);
const long = `'\\\\u0001'.repeat(95e6)`;
const ends = await fails(browser.evaluate(`JSON.stringify = () => ${long}`));
await browser.navigate(args.url);
await fails(browser.evaluate(`Promise.prototype.then = (done) => done(${long}); 1`));
const after = await browser.evaluate('1 + 1');
await browser.navigate(args.url);
await browser.evaluate("window.String = () => ({ a: 1 }); 1");
const text = await browser.extractText('p');
const property = "Object.defineProperty(HTMLElement.prototype, 'innerText', ";
await browser.evaluate(`${property}{ get: () => ${long}, configurable: true }); 1`);
const most = await fails(browser.extractText('p'));
await browser.evaluate(`${property}{ get() { throw { toString: () => ${long} } } }); 1`);
return [ends[0], after, text, most[0], await browser.extractText('p'),
  await browser.evaluate('const x = 5; x'), await browser.evaluate('document.title;')];
"""
HARMLESS = ["BrowserLimit", 2, "one", "BrowserLimit", "", 5, "a page"]

REFUSED = """{fails}
const dead = await fails(browser.navigate(args.dead));
return [dead, await fails(browser.navigate(args.dead)), (await browser.navigate(args.url)).status];
"""


def dead_url() -> str:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{closed.getsockname()[1]}/"


def expect_refused(result: Any, dead: str) -> None:
    refused = ["BrowserError", f"net::ERR_CONNECTION_REFUSED at {dead}"]
    assert result == [refused, refused, 200]


@needs_chromium
def test_a_synchronous_page_gives_no_more_than_the_limit(
    server: Any, options: dict[str, Any]
) -> None:
    allow = {"allow": ["http://127.0.0.1:*/*"], "allow_addresses": ["127.0.0.1"]}

    def act(browser: Browser) -> None:
        page = browser.new_page()
        with Kit(browser=page, **{**options, "fetch": allow}) as kit:
            source = HOSTILE.replace("{fails}", FAILS)
            given = kit.run_tool_sync(source, args={"url": url(server)})
            assert given.result == HARMLESS, given.error
            dead = dead_url()
            for _ in range(5):
                args = {"dead": dead, "url": url(server)}
                done = kit.run_tool_sync(REFUSED.replace("{fails}", FAILS), args=args)
                expect_refused(done.result, dead)
            # A navigation that a click began is stopped with its run.
            page.set_content(f"<p>two</p><a href='{url(server, '/silent')}'>go</a>")
            ended = kit.run_tool_sync("await browser.click('a')", timeout_ms=2_000)
            assert ended.status in ("terminated", "success")
            done = kit.run_tool_sync("return await browser.extractText('p')")
            assert done.result == "two", done.error

    with_browser(act)


@needs_chromium
def test_an_asynchronous_page_gives_no_more_than_the_limit(
    server: Any, options: dict[str, Any]
) -> None:
    allow = {"allow": ["http://127.0.0.1:*/*"], "allow_addresses": ["127.0.0.1"]}

    async def main() -> None:
        async with async_playwright() as playwright:
            browser = await playwright.chromium.launch(executable_path=CHROMIUM)
            page = await browser.new_page()
            async with Kit(browser=page, **{**options, "fetch": allow}) as kit:
                source = HOSTILE.replace("{fails}", FAILS)
                given = await kit.run_tool(source, args={"url": url(server)})
                assert given.result == HARMLESS, given.error
                dead = dead_url()
                for _ in range(5):
                    args = {"dead": dead, "url": url(server)}
                    done = await kit.run_tool(REFUSED.replace("{fails}", FAILS), args=args)
                    expect_refused(done.result, dead)
                # A navigation that a click began is stopped with its run.
                await page.set_content(f"<p>two</p><a href='{url(server, '/silent')}'>go</a>")
                async with page.expect_request(url(server, "/silent")):
                    run = kit.run_tool("await browser.click('a')")
                    task = asyncio.ensure_future(run)
                run.terminate()
                await task
                done = await kit.run_tool("return await browser.extractText('p')")
                assert done.result == "two", done.error
            await browser.close()

    asyncio.run(main())


@needs_chromium
def test_a_script_that_computes_is_ended_before_the_host_hears_of_the_end(
    server: Any, options: dict[str, Any]
) -> None:
    async def main() -> None:
        async with async_playwright() as playwright:
            browser = await playwright.chromium.launch(executable_path=CHROMIUM)
            page = await browser.new_page()
            begun = asyncio.Event()
            await page.expose_function("begun", begun.set)
            async with Kit(browser={"page": page, "timeout_ms": 3_600_000}, **options) as kit:
                for _ in range(2):
                    await page.goto(url(server))
                    begun.clear()
                    run = kit.run_tool("await browser.evaluate('begun(); for (;;) ;')")
                    task = asyncio.ensure_future(run)
                    await begun.wait()
                    run.terminate()
                    await task
                    answer = await page.goto(url(server, "/host"))
                    assert answer is not None
                    assert answer.status == 200
                    done = await kit.run_tool("return await browser.extractText('p')")
                    assert done.result == "one", done.error
            await browser.close()

    asyncio.run(main())


@needs_chromium
def test_the_host_has_its_synchronous_page_once_the_kit_is_closed(
    server: Any, options: dict[str, Any]
) -> None:
    def act(browser: Browser) -> None:
        page = browser.new_page()
        kit = Kit(browser={"page": page, "timeout_ms": 3_600_000}, **options)

        def close() -> None:
            server.is_asked.wait()
            kit.close()

        closing = threading.Thread(target=close)
        closing.start()
        ended = kit.run_tool_sync(
            "await browser.navigate(args.url)", args={"url": url(server, "/silent")}
        )
        closing.join()
        assert ended.error is not None
        assert ended.error.message == "kit closed"
        assert page.evaluate("1 + 1") == 2
        answer = page.goto(url(server))
        assert answer is not None
        assert answer.status == 200

    with_browser(act)


@needs_chromium
def test_runs_of_other_threads_take_no_commands_of_a_synchronous_page(
    options: dict[str, Any],
) -> None:
    def act(browser: Browser) -> None:
        page = browser.new_page()
        with Kit(browser=page, **options) as kit:
            waits, goes_on = threading.Event(), threading.Event()

            def wait() -> None:
                waits.set()
                goes_on.wait()

            others: list[Any] = []

            def run() -> None:
                others.append(kit.run_tool_sync("await wait(); return 1", globals={"wait": wait}))

            thread = threading.Thread(target=run)
            thread.start()
            waits.wait()
            source = "let n = 0; while (n < 20) n += await browser.evaluate('1'); return n"
            assert kit.run_tool_sync(source).result == 20
            goes_on.set()
            thread.join()
            assert others[0].result == 1

    with_browser(act)


@needs_chromium
def test_pages_of_the_other_kind_say_so(options: dict[str, Any]) -> None:
    source = f"{FAILS} return await fails(browser.extractText())"

    async def main() -> None:
        async with asynchronous_page() as page:
            with Kit(browser=page, **options) as kit:
                done = await asyncio.to_thread(kit.run_tool_sync, source)
            message = "the page is asynchronous: await run_tool, not run_tool_sync"
            assert done.result == ["BrowserError", message]

    asyncio.run(main())

    def act(browser: Browser) -> None:
        with Kit(browser=browser.new_page(), **options) as kit:
            done = []

            async def run() -> None:
                done.append(await kit.run_tool(source))

            in_thread(lambda: asyncio.run(run()))
        message = "the page is synchronous: call run_tool_sync, not run_tool"
        assert done[0].result == ["BrowserError", message]

    with_browser(act)


@needs_chromium
def test_a_function_launches_a_synchronous_browser(server: Any, options: dict[str, Any]) -> None:
    def run() -> None:
        started = []

        def launch(proxy: Proxy) -> Any:
            playwright = sync_playwright().start()
            started.append(playwright)
            browser = playwright.chromium.launch(
                executable_path=CHROMIUM,
                proxy=proxy,  # type: ignore[arg-type]
                args=proxy["args"],
            )
            return browser.new_page()

        with Kit(browser=launch, **options) as kit:
            assert kit.run_tool_sync(TOUR, args={"url": url(server)}).result == TOURED
            assert kit.run_tool_sync("return await browser.extractText('p')").result == "one"
        started[0].stop()

    in_thread(run)


def test_what_is_no_page_is_misuse() -> None:
    class Page:
        def goto(self) -> None: ...

    class Context:
        def new_page(self) -> None: ...

    class Launched(Context):
        contexts: tuple[()] = ()

    wrong: list[tuple[Any, str]] = [
        (1, "browser must be a page or a context of Playwright, or a function"),
        ({}, "browser must be a page or a context"),
        ({"page": Page(), "context": Context()}, "browser has both page and context"),
        ({"page": Context()}, "browser.page must be a page of Playwright"),
        ({"context": Page()}, "browser.context must be a context of Playwright"),
        ({"page": 5}, "browser.page must be a page of Playwright, or a function that gives one"),
        (Launched(), "browser must be a page or a context, got a Browser of Playwright"),
        ({"context": Launched()}, "browser.context must be a page or a context, got a Browser"),
        ({"page": Page(), "timeout": 1}, ".*browser.timeout"),
        ({"page": Page(), "allow": "all"}, "browser.allow must be"),
    ]
    for browser, message in wrong:
        with pytest.raises(TypeError, match=f"^{message}"):
            Kit(browser=browser)
    with pytest.raises(ValueError, match=r"^browser\.timeout_ms must be"):
        Kit(browser={"page": Page(), "timeout_ms": 0})
