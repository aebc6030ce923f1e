"""Types: a checker's judgement of a small program, right and wrong, and the output of `help`."""

from __future__ import annotations

import pydoc
import subprocess
import sys
from pathlib import Path

import isolane
import pytest

from isolation import ISOLATION

PROGRAM = """
import asyncio
from typing import Any

import isolane
import isolane.kit
from isolane.notebook import (
    CallResult, CellTool, Limits, Notebook, PyOptions, Registry, ToolFunction,
)
from isolane import CodeExecution, CodeExecutionResult, Runtime, Status, run_code, run_code_sync


async def fetch(url: str) -> dict[str, Any]:
    return {"url": url}


def sink(value: Any) -> None:
    print(value)


async def main() -> CodeExecutionResult:
    handle: CodeExecution = run_code(
        "export default await fetch('x')",
        execute={"fn": "default", "args": [1]},
        imports={"db": {"fetch": fetch}},
        modules={"./a.ts": "export const a = 1"},
        globals={"fetch": fetch},
        language="typescript",
        memory_limit_bytes=1_000_000,
        filename="a.ts",
        report=sink,
    )
    handle.terminate("enough")
    handle.terminate()
    running: bool = handle.running
    reports: list[Any] = handle.reports
    print(running, reports)
    task: asyncio.Task[CodeExecutionResult] = asyncio.create_task(handle)
    first, second = await asyncio.gather(handle, task)
    bounded: CodeExecutionResult = await asyncio.wait_for(handle, 60)
    status: Status = bounded.status
    if first.error is not None:
        print(status, first.error.line, second.raise_for_status().result)
    async with Runtime(safety_cap_ms=1000, max_concurrent_runs=2) as runtime:
        return await runtime.run_code("export default 1")


async def cells() -> isolane.CellExecutionResult:
    session = isolane.Session(globals={"fetch": fetch}, cells="queue", report=sink)
    with session, isolane.Runtime().session(checkpoint_bytes=0) as other:
        cell: isolane.CellExecution = session.run("const x = 1", filename="a.ts", timeout_ms=100)
        call: isolane.CellExecution = session.call("f", 1, "a", timeout_ms=100)
        result = await asyncio.create_task(cell)
        state: isolane.SessionState = result.session
        text: str | None = (await call).text
        print(state, text, result.value_from, other.run_sync("1").uncloned)
        session.update(globals={"a": None}, imports={"b": None}, modules={"./c.ts": None})
        names: list[isolane.SessionName] = await session.names()
        sizes: list[int | None] = [name.size for name in [*names, *other.names_sync()]]
        print(sizes, other.call_sync("f", report=sink).raise_for_status())
        await session.reset()
        copy: isolane.Session = await session.fork()
        async with copy, other.fork_sync() as third:
            return await third.run("2")


def by_status(outcome: isolane.AnyResult, cell: isolane.AnyCellResult) -> str:
    if outcome.status == "success":
        return str(outcome.result)
    if isinstance(cell, isolane.CellExecutionFailure):
        return f"{cell.session} {cell.error.message}"
    return outcome.error.message


async def statuses() -> str:
    handle = run_code("export default 1", default=str)
    outcome = await handle
    with isolane.Session(default=str) as session, Runtime(default=str):
        text: str = isolane.describe(outcome.result, limit=10)
        search = isolane.by_name(fetch)
        print(text, await search({"url": "x"}))
        return by_status(run_code_sync("1"), session.run_sync("1"))


def plain() -> int:
    with Runtime() as runtime:
        settled: dict[Status, int] = runtime.stats().settled
        print(settled, runtime.run_code_sync("1").duration_ms)
    try:
        run_code_sync("1").raise_for_status()
    except isolane.LinkError as error:
        print(error.result.error, error.status)
    except isolane.StatusError:
        pass
    return len(isolane.__all__)


async def kits() -> list[isolane.kit.KitCall]:
    with isolane.kit.Kit(state=True) as kit:
        tool: isolane.kit.KitResult = await kit.run_tool("1", args={})
        text: str | None = tool.json
        print(text, kit.run_code_sync("export default 1").calls_dropped)
        async with kit.session(cells="queue") as session:
            cell: isolane.kit.KitCellExecution = session.run("1", timeout_ms=100)
            result: isolane.kit.KitCellResult = await asyncio.create_task(cell)
            state: isolane.SessionState = result.session
            copy: isolane.kit.KitSession = await session.fork()
            print(state, copy.run_sync("2").calls_dropped, (await copy.call("f", 1)).calls)
            return [*result.calls, *session.call_sync("f").calls]


async def notebooks(kit: isolane.kit.Kit, limits: Limits) -> str:
    async def double(args: dict[str, Any]) -> int:
        return int(args["n"]) * 2

    tools: dict[str, ToolFunction | CellTool] = {
        "double": double,
        "search": {"call": lambda args: args["query"], "input": {}, "stops_clock": True},
    }
    py: PyOptions = {"isolation": "confined", "required": ["file_system"], "readable": ["/data"]}
    async with Notebook(
        js={"kit": kit, "language": "javascript", "globals": {"n": 1}},
        py=py,
        session_id="a",
        registry=Registry(max_kernels=1, max_running_kernels=2, heartbeat_ms=1000),
        env={"KEY": "value"},
        files={"root": "/data", "write": True},
        artifacts={"dir": "/artifacts"},
        tools=tools,
        llm=lambda prompt, options: prompt + options["model"],
        limits={"output_lines": 10, "window": "ends"},
    ) as notebook:
        child: Notebook = notebook.child(tools=False, llm=False, limits=limits)
        result: CallResult = await child.execute({"cells": []})
        with Notebook(py=False):
            return result.text


async def use(function: isolane.SandboxFunction) -> Any:
    try:
        return await function(1, "a")
    except isolane.SandboxError as error:
        return error.name, error.message, error.code, error.stack, error.value
"""

MISTAKES = [
    "run_code_sync(1)",
    "run_code_sync('', language='python')",
    "run_code_sync('', execute={'function': 'f'})",
    "run_code_sync('', modules={'./a.js': 1})",
    "run_code_sync('', memory_limit_bytes='1')",
    "run_code_sync('', nope=1)",
    "run_code_sync('', None)",
    "run_code_sync('').results",
    "run_code_sync('').status == 'succes'",
    "isolane.Runtime(isolation='planet')",
    "isolane.undefined.x",
    "isolane.Session(cell='queue')",
    "isolane.Session(cells='stack')",
    "isolane.Session().run_sync('', timeout=60)",
    "isolane.Session().run_sync('').session == 'rolled_back'",
    "isolane.Session().update(globals=1)",
    "run_code_sync('').session",
    "isolane.kit.Kit().session().run_sync('').json",
    "isolane.kit.Kit().session().run_sync('').call",
    "isolane.Session().run_sync('').calls",
    "isolane.kit.Kit().session().run_sync('', language='python')",
    "isolane.notebook.Notebook(limit={})",
    "isolane.notebook.Notebook(js={'kits': 1})",
    "isolane.notebook.Notebook(js={'kit': 1})",
    "isolane.notebook.Notebook(py={'isolation': 'process'})",
    "isolane.notebook.Notebook(py={'required': ['fileSystem']})",
    "isolane.notebook.Notebook(files={'write': True})",
    "isolane.notebook.Notebook(limits={'output_lines': '1'})",
    "isolane.notebook.Notebook(tools={'a': 1})",
    "isolane.notebook.Notebook(llm=lambda prompt: prompt)",
    "isolane.notebook.Notebook().child(js=False)",
    "isolane.notebook.Registry(max_kernel=1)",
]


def check(path: Path, source: str) -> subprocess.CompletedProcess[str]:
    """The output of mypy for a program."""
    pytest.importorskip("mypy")
    path.write_text(source)
    cache = path.parent / "cache"
    return subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(cache), str(path)],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
        cwd=path.parent,
    )


def test_a_program_that_is_right(tmp_path: Path) -> None:
    done = check(tmp_path / "program.py", PROGRAM)
    assert done.stdout == "Success: no issues found in 1 source file\n"


def test_mistakes_are_found(tmp_path: Path) -> None:
    head = ["import isolane.kit, isolane.notebook", "from isolane import run_code_sync"]
    lines = [*head, *MISTAKES]
    done = check(tmp_path / "program.py", "\n".join(lines) + "\n")
    found = {int(line.split(":")[1]) for line in done.stdout.splitlines() if ": error: " in line}
    # The error codes of mypy may change.
    assert found == set(range(3, 3 + len(MISTAKES))), done.stdout


@pytest.mark.skipif(ISOLATION != "thread", reason="another class stands for Session there")
def test_help() -> None:
    text = " ".join(pydoc.plain(pydoc.render_doc(isolane)).split())
    for piece in (
        "source: 'str', *, execute: 'Execute | None' = None, imports: 'Imports | None' = None",
        "class Runtime(",
        "class CodeExecutionResult(",
        "class Session(",
        "run(self, /, source: 'str', *, filename: 'str | None' = None",
        "call(self, name: 'str', /, *args: 'Any', report: 'Report | None' = None",
        "raise_for_status(self)",
        "Ends the run. It settles with status `terminated`",
    ):
        assert piece in text
