"""`browser` in cells of notebooks, on pages of Chromium that Python drives through Playwright."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import Any

from isolane.kit import Kit
from isolane.notebook import Notebook, Registry
from playwright.async_api import async_playwright
from playwright.sync_api import Browser

from test_kit_browser import (
    CHROMIUM,
    TOUR,
    TOURED,
    doubled,
    needs_chromium,
    options,
    server,
    url,
    with_browser,
)

__all__ = ["options", "server"]

# The limit of cells that would not end by themselves.
LIMIT_S = 1

TEXT = "await browser.extractText('p')"


def js(code: str, seconds: int = 30) -> dict[str, Any]:
    return {"cells": [{"language": "js", "code": code, "timeout": seconds}]}


def tour(of: Any) -> dict[str, Any]:
    return js(TOUR.replace("args.url", json.dumps(url(of))))


@needs_chromium
def test_cells_use_a_synchronous_page(server: Any, options: dict[str, Any]) -> None:
    def act(browser: Browser) -> None:
        page, registry = browser.new_page(), Registry()
        kit = Kit(browser=page, **options)

        def ask(prompt: str, given: dict[str, Any]) -> str:
            said: str = given["notebook"].execute_sync(js(prompt)).text
            return said

        with (
            kit,
            Notebook(
                js={"kit": kit},
                py=False,
                registry=registry,
                session_id="a",
                tools={"double": lambda given: doubled(given["n"])},
                agent=ask,
            ) as notebook,
        ):
            toured = notebook.execute_sync(tour(server))
            assert toured.details["json_outputs"] == [TOURED], toured.text
            assert page.text_content("button") == "clicked"
            # Calls of the page among those of functions of this loop.
            mixed = f"[await tool.double({{ n: 2 }}), {TEXT}, await tool.double({{ n: 3 }})]"
            assert notebook.execute_sync(js(mixed)).text == '[4,"one",6]'
            assert notebook.child().execute_sync(js(TEXT)).text == "one"
            assert notebook.execute_sync(js(f"await agent(`{TEXT}`)")).text == "one"
            with Notebook(registry=registry, session_id="a", py=False) as joined:
                assert joined.execute_sync(js(TEXT)).text == "one"
            notebook.reset_sync("js")
            assert notebook.execute_sync(js(TEXT)).text == "one"
            ended = notebook.execute_sync(js(f"{TEXT}; for (;;);", seconds=LIMIT_S))
            assert "Command timed out after 1 second" in ended.text
            assert notebook.execute_sync(js(TEXT)).text == "one"

    with_browser(act)


@needs_chromium
def test_a_cell_that_ends_leaves_its_page(server: Any, options: dict[str, Any]) -> None:
    """The commands would take an hour by themselves."""

    def act(browser: Browser) -> None:
        page = browser.new_page()
        page.goto(url(server))
        kit = Kit(browser={"page": page, "timeout_ms": 3_600_000}, **options)
        with kit, Notebook(js={"kit": kit}, py=False) as notebook:
            for call in (
                "click('#none')",
                "evaluate('new Promise(() => {})')",
                f"navigate('{url(server, '/silent')}')",
            ):
                ended = notebook.execute_sync(js(f"await browser.{call}", seconds=LIMIT_S))
                assert "Command timed out after 1 second" in ended.text
                assert notebook.execute_sync(js(TEXT)).text == "one"
            # The page tells of the call, and then the kit is closed.
            closing = threading.Thread(target=kit.close)
            page.expose_function("begun", closing.start)
            waits = "await browser.evaluate('begun(); return new Promise(() => {})')"
            assert "one" not in notebook.execute_sync(js(waits)).text
            closing.join()
            assert page.text_content("p") == "one"

    with_browser(act)


@needs_chromium
def test_agents_at_once_use_a_synchronous_page(server: Any, options: dict[str, Any]) -> None:
    """The thread of the page waits for all of them, one within the other."""

    def act(browser: Browser) -> None:
        page = browser.new_page()
        page.goto(url(server))

        def ask(prompt: str, given: dict[str, Any]) -> str:
            said: str = given["notebook"].execute_sync(js(prompt)).text
            return said

        async def ask_later(prompt: str, given: dict[str, Any]) -> str:
            said: str = (await given["notebook"].execute(js(prompt))).text
            return said

        for agent in (ask, ask_later):
            kit = Kit(browser={"page": page, "timeout_ms": 3_600_000}, **options)
            with kit, Notebook(js={"kit": kit}, py=False, agent=agent) as notebook:
                asked = f"Array.from({{ length: 5 }}, () => agent(`{TEXT}`))"
                result = notebook.execute_sync(js(f"await Promise.all({asked})", seconds=300))
                assert result.details["json_outputs"] == [["one"] * 5], result.text

    with_browser(act)


@needs_chromium
def test_cells_use_an_asynchronous_page(server: Any, options: dict[str, Any]) -> None:
    async def main() -> None:
        async with async_playwright() as playwright:
            browser = await playwright.chromium.launch(executable_path=CHROMIUM)
            page = await browser.new_page()

            async def ask(prompt: str, given: dict[str, Any]) -> str:
                said: str = (await given["notebook"].execute(js(prompt))).text
                return said

            async with (
                Kit(browser=page, **options) as kit,
                Notebook(js={"kit": kit}, py=False, agent=ask) as notebook,
            ):
                toured = await notebook.execute(tour(server))
                assert toured.details["json_outputs"] == [TOURED], toured.text
                both = asyncio.gather(
                    notebook.execute(js(TEXT)), notebook.child().execute(js(TEXT))
                )
                assert [result.text for result in await both] == ["one", "one"]
                asked = await notebook.execute(js(f"await agent(`{TEXT}`)"))
                assert asked.text == "one"
                # A thread that waits has no such page.
                wrong = f"try {{ {TEXT} }} catch (e) {{ print(e.name) }}"
                refused = await asyncio.to_thread(notebook.execute_sync, js(wrong))
                assert refused.text == "BrowserError"
            await browser.close()

    asyncio.run(main())
