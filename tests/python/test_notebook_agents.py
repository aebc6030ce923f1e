"""Agents and children of notebooks, as only Python sees them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from isolane.notebook import CallResult, Notebook

with Notebook() as _notebook:
    LANGUAGES = ["js", "py"] if _notebook.available_sync()["py"]["ok"] else ["js"]


def cell(language: str, code: str) -> dict[str, Any]:
    return {"cells": [{"language": language, "code": code}]}


AGENT = {"js": "await agent('go', { label: 'l' })", "py": "print(agent('go', label='l'))"}


@pytest.mark.parametrize("language", LANGUAGES)
def test_an_agent_gets_a_notebook_with_the_same_state(language: str) -> None:
    seen: list[dict[str, Any]] = []

    async def upper(args: dict[str, str]) -> str:
        await asyncio.sleep(0)
        return args["text"].upper()

    async def agent(prompt: str, options: dict[str, Any]) -> str:
        notebook: Notebook = options.pop("notebook")
        seen.append(options)
        child = notebook.child(tools={"lower": lambda args: args["text"].lower()}, agent=False)
        code = {"js": "rows.push(await tool.lower({ text: 'A' }))", "py": "rows.append('a')"}
        await child.execute(cell(language, code[language]))
        code = {"js": "await tool.upper({ text: rows[0] })", "py": "print(tool.upper(text='a'))"}
        result: CallResult = await notebook.execute(cell(language, code[language]))
        return f"{prompt}: {result.text}"

    async def main() -> None:
        async with Notebook(agent=agent, tools={"upper": upper}) as notebook:
            code = {"js": "let rows = []", "py": "rows = []"}
            await notebook.execute(cell(language, code[language]))
            result: CallResult = await notebook.execute(cell(language, AGENT[language]))
            assert result.text == "go: A"
            session_id = notebook.stats()["kernels"][0]["session_id"]
        keys = {"agent_type": "task", "label": "l", "depth": 1, "session_id": session_id}
        assert seen == [keys]

    asyncio.run(main())


@pytest.mark.parametrize("language", LANGUAGES)
def test_an_agent_that_is_no_coroutine_waits_for_its_notebook(language: str) -> None:
    """Tools of the parent are served while the thread waits in the agent."""

    async def later(args: dict[str, str]) -> str:
        await asyncio.sleep(0)
        return args["text"] + "!"

    def agent(_prompt: str, options: dict[str, Any]) -> str:
        tool = {"js": "await tool.%s({ text: 'a' })", "py": "print(tool.%s(text='a'))"}[language]
        notebook: Notebook = options["notebook"]
        calls = (cell(language, tool % name) for name in ("now", "later"))
        texts = [notebook.execute_sync(call).text for call in calls]
        return ", ".join(texts)

    tools = {"now": lambda args: args["text"], "later": later}
    with Notebook(agent=agent, tools=tools) as notebook:
        result = notebook.execute_sync(cell(language, AGENT[language]))
        assert result.text == "a, a!"
        after = {"js": "await tool.later({ text: 'b' })", "py": "print(tool.later(text='b'))"}
        assert notebook.execute_sync(cell(language, after[language])).text == "b!"


@pytest.mark.parametrize("language", LANGUAGES)
def test_agents_that_are_no_coroutines_wait_beside_each_other(language: str) -> None:
    code = {"js": "'%s' + '!'", "py": "print('%s!')"}
    calls = {
        "js": "(await Promise.all(['a', 'b', 'c', 'd'].map((p) => agent(p)))).join()",
        "py": "print(','.join(parallel([lambda p=p: agent(p) for p in 'abcd'])))",
    }

    def agent(prompt: str, options: dict[str, Any]) -> str:
        notebook: Notebook = options["notebook"]
        result = notebook.execute_sync(cell(language, code[language] % prompt))
        with Notebook() as other:
            other.execute_sync(cell("js", "1"))
        return result.text

    with Notebook(agent=agent) as notebook:
        result = notebook.execute_sync(cell(language, calls[language]))
        assert result.text == "a!,b!,c!,d!"


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_end_of_a_cell_cancels_its_agent(language: str) -> None:
    async def main() -> None:
        called, cancelled = asyncio.Event(), asyncio.Event()

        async def agent(_prompt: str, _options: dict[str, Any]) -> str:
            called.set()
            try:
                await asyncio.Event().wait()
            finally:
                cancelled.set()
            return ""

        async with Notebook(agent=agent) as notebook:
            execution = notebook.execute(cell(language, AGENT[language]))
            await called.wait()
            execution.terminate("enough")
            result = await execution
            assert result.text.startswith("Command aborted: enough\nCell aborted.")
            assert result.details["status_events"][0]["status"] == "error"
            await cancelled.wait()

    asyncio.run(main())


def test_a_child_ends_with_its_parent() -> None:
    parent = Notebook(llm=lambda *_: "yes")
    child = parent.child()
    assert child.execute_sync(cell("js", "const x = 1; await llm('?')")).text == "yes"
    with pytest.raises(TypeError, match=r"^js: unknown option 'js'") as misuse:
        parent.child(js=False)  # type: ignore[call-arg]
    assert getattr(misuse.value, "path", None) == "js"
    with parent.child(llm=False) as other:
        assert "llm is not available" in other.execute_sync(cell("js", "await llm('?')")).text
    assert child.execute_sync(cell("js", "x")).text == "1"
    parent.close_sync()
    with pytest.raises(TypeError, match=r"^notebook is closed$"):
        child.execute_sync(cell("js", "1"))
    with pytest.raises(TypeError, match=r"^notebook is closed$"):
        parent.child()
