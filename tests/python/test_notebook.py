"""Notebooks through Python: the table of cases, and what only Python sees of them."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any, Literal, TypeAlias

import isolane
import pytest
from isolane.kit import Kit
from isolane.notebook import (
    CallResult,
    Limits,
    Notebook,
    PyOptions,
    Registry,
    Update,
    _cancelled,
)

Isolation: TypeAlias = Literal["confined", "none"]

CASES = Path(__file__).parents[2] / "crates/notebook/tests/cases"

cases: list[dict[str, Any]] = [
    case for name in ("cells.json", "files.json") for case in json.loads((CASES / name).read_text())
]


def backend(isolation: Isolation) -> dict[str, Any]:
    """What a notebook says of a kernel with that isolation."""
    with Notebook(py={"isolation": isolation}) as notebook:
        py: dict[str, Any] = notebook.available_sync()["py"]
        return py


# Kernels are confined where this machine can do that.
_CONFINED, _PY = backend("confined"), backend("none")
ISOLATION: Isolation = "confined" if _CONFINED["ok"] else "none"
needs_python = pytest.mark.skipif(not _PY["ok"], reason=f"no Python: {_PY.get('reason')}")
needs_confined = pytest.mark.skipif(
    not _CONFINED["ok"], reason=f"not confined: {_CONFINED.get('reason')}"
)

LOOP = "print('begun'); for (;;);"
TAIL = "Cell aborted.\nJavaScript state is as it was before this cell."


def snake(name: str) -> str:
    return re.sub("[A-Z]", lambda letter: "_" + letter.group().lower(), name)


def spelled(options: Any) -> Any:
    """Options of a case with the keys of Python. Names of variables are no keys."""
    if not isinstance(options, dict):
        return options
    return {snake(key): value if key == "env" else spelled(value) for key, value in options.items()}


async def add_up(args: dict[str, Any]) -> str:
    return f"{args['label']}: {sum(args['numbers'])}"


def fail(_args: dict[str, Any]) -> None:
    raise TypeError("no such row")


def answer(prompt: str, options: dict[str, Any]) -> str:
    if "schema" in options:
        return '{"n": 1}'
    system = f" ({options['system']})" if "system" in options else ""
    return prompt and f"{options['model']}: {prompt}{system}"


async def agent(prompt: str, options: dict[str, Any]) -> str:
    """Runs the cell of a prompt such as `js:1 + 1` or, with a timeout of a second, `py1:x`."""
    if "schema" in options:
        return '{"n": 1}'
    found = re.fullmatch(r"(js|py)(\d*):(.*)", prompt, re.DOTALL)
    if prompt == "" or found is None:
        model, label = options.get("model", "-"), options.get("label", "-")
        context = options.get("context")
        more = "" if context is None else f" {json.dumps(context, separators=(',', ':'))}"
        kind, depth = options["agent_type"], options["depth"]
        return prompt and f"{kind} {model} {label} {depth}: {prompt}{more}"
    cell: dict[str, Any] = {"language": found[1], "code": found[3]}
    if found[2]:
        cell["timeout"] = int(found[2])
    result: CallResult = await options["notebook"].execute({"cells": [cell]})
    return result.text


# The coroutines of calls that nobody answers. Some of them never begin. Python warns of such a
# coroutine if the collector frees it before its task, so a test closes each of them.
unanswered: list[Coroutine[Any, Any, Any]] = []


def never(_args: dict[str, Any]) -> Coroutine[Any, Any, Any]:
    unanswered.append(asyncio.Event().wait())
    return unanswered[-1]


ODD_PICTURE = [
    {"type": "text", "text": "a chart"},
    {"type": "image", "data": "AQID", "mime_type": "text/plain"},
]
PICTURE = [
    {"type": "text", "text": "a chart"},
    {"type": "image", "data": "iVBORw0KGgo=", "mime_type": "image/png"},
]

# The tools and the `llm` of cases with `host`.
HOST: dict[str, Any] = {
    "tools": {
        "echo": lambda args: args,
        "add-up": {
            "description": "Adds.",
            "input": {
                "type": "object",
                "properties": {
                    "numbers": {"type": "array", "items": {"type": "number"}},
                    "label": {"type": "string", "default": "sum"},
                },
                "required": ["numbers"],
            },
            "call": add_up,
        },
        "fail": fail,
        "picture": lambda _: {"content": PICTURE, "details": 1},
        "refuse": lambda _: {"content": [{"type": "text", "text": "not today"}], "is_error": True},
        "nothing": lambda _: None,
        "odd-picture": lambda _: {"content": ODD_PICTURE},
        "grüße": lambda _: "hallo",
        "never": {"call": never, "stops_clock": True},
    },
    "llm": answer,
    "agent": agent,
}


def at(value: Any, path: str) -> Any:
    for key in path.split("."):
        name = snake(key)
        if isinstance(value, list):
            value = value[int(key)]
        elif isinstance(value, dict) and name in value:
            value = value[name]
        else:
            return None
    return value


def expected(value: Any) -> Any:
    """Outputs, errors and truncations of a case with the keys of Python; values stay."""
    if isinstance(value, dict) and value.get("type") == "image":
        return {snake(key): item for key, item in value.items()}
    if isinstance(value, dict) and "window" in value:
        return {snake(key): item for key, item in value.items()}
    if isinstance(value, list) and all(isinstance(item, dict) and "type" in item for item in value):
        return [expected(item) for item in value]
    return value


def without_carets(text: str) -> str:
    """A text without the carets of Python, which differ between its versions."""
    return re.sub(r"^ +[ ~^]*\^[ ~^]*\n", "", text, flags=re.MULTILINE)


def js(*codes: str, **more: Any) -> dict[str, Any]:
    return {"cells": [{"language": "js", "code": code, **more} for code in codes]}


def prepared(case: dict[str, Any], place: Path) -> dict[str, Any]:
    """The options of a case, with its folder."""
    options: dict[str, Any] = spelled(case.get("options", {}))
    if "folder" in case:
        root = place / "root"
        root.mkdir()
        for name, text in case["folder"].items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        for name, target in case.get("links", {}).items():
            (root / name).symlink_to(target)
        options["files"] = {**options.get("files", {}), "root": str(root)}
    if case.get("artifacts"):
        options["artifacts"] = {**options.get("artifacts", {}), "dir": str(place / "artifacts")}
    return options


@pytest.fixture
def closes_unanswered() -> Iterator[None]:
    yield
    while unanswered:
        unanswered.pop().close()


@pytest.mark.usefixtures("closes_unanswered")
@pytest.mark.parametrize("case", cases, ids=[case["name"] for case in cases])
def test_case(case: dict[str, Any], tmp_path: Path) -> None:
    if case.get("needs") == "python" and not _PY["ok"]:
        pytest.skip(f"no Python: {_PY.get('reason')}")
    host = HOST if case.get("host") else {}
    options = prepared(case, tmp_path)
    options["py"] = {"isolation": ISOLATION, **options.get("py", {})}
    if "kit" in case:
        options["js"] = {**options.get("js", {}), "kit": Kit(**spelled(case["kit"]))}
    with Notebook(**options, **host) as notebook:
        for call in case["calls"]:
            result = notebook.execute_sync({"cells": call["cells"]})
            if "text" in call:
                assert without_carets(result.text) == without_carets(call["text"])
            cells = result.details["cells"]
            assert [cell["status"] for cell in cells] == call["status"]
            if "state" in call:
                assert [cell.get("state") for cell in cells] == call["state"]
            assert result.is_error == call.get("error", False)
            assert len(result.content) - 1 == call.get("images", 0)
            for path, value in call.get("details", {}).items():
                assert at(result.details, path) == expected(value), path


@pytest.mark.parametrize(
    ("options", "kind", "path", "message"),
    [
        (
            {"limit": {}},
            TypeError,
            "limit",
            "limit: unknown option 'limit'; did you mean 'limits'?",
        ),
        (
            {"limits": {"timeout_second": 1}},
            TypeError,
            "limits.timeout_second",
            (
                "limits.timeout_second: unknown option 'timeout_second'; "
                "did you mean 'timeout_seconds'?"
            ),
        ),
        (
            {"limits": {"images": 1001}},
            ValueError,
            "limits.images",
            "limits.images must be a whole number from 0 to 1000, got 1001",
        ),
        (
            {"py": {"required": ["fileSystem"]}},
            TypeError,
            "py.required[0]",
            (
                "py.required[0] must be 'privileges' or 'network' or 'file_system' or "
                "'system_calls' or 'processes' or 'resources', got 'fileSystem'"
            ),
        ),
        ({"js": {"runtime": 1}}, TypeError, "js.runtime", "js.runtime must be a Runtime, got 1"),
        ({"js": {"kit": 1}}, TypeError, "js.kit", "js.kit must be a Kit, got 1"),
        (
            {"session_id": "a\ud800"},
            TypeError,
            "session_id",
            "session_id has a lone surrogate",
        ),
    ],
)
def test_misuse_of_options(
    options: dict[str, Any], kind: type[Exception], path: str, message: str
) -> None:
    with pytest.raises(kind) as raised:
        Notebook(**options)
    assert (str(raised.value), getattr(raised.value, "path", None)) == (message, path)


def test_misuse_of_arguments() -> None:
    notebook = Notebook()
    with pytest.raises(ValueError, match=r"^cells\[0\]\.timeout must be a whole number") as raised:
        notebook.execute_sync(js("1", timeout=0))
    assert getattr(raised.value, "path", None) == "cells[0].timeout"
    with pytest.raises(TypeError, match=r"^on_update must be a function, got a number$"):
        notebook.execute_sync(js("1"), on_update=1)  # type: ignore[arg-type]
    notebook.close_sync()
    with pytest.raises(TypeError, match=r"^notebook is closed$") as closed:
        notebook.execute_sync(js("1"))
    assert getattr(closed.value, "path", None) == "notebook"


def test_functions_of_the_host_are_called_on_its_loop() -> None:
    async def scale(n: int) -> int:
        await asyncio.sleep(0)
        return n * 10

    async def main() -> None:
        async with Notebook(js={"globals": {"scale": scale, "n": 2}}) as notebook:
            result: CallResult = await notebook.execute(js("await scale(n)"))
            assert result.text == "20"

    asyncio.run(main())


def test_a_runtime_of_the_caller_runs_the_cells() -> None:
    with isolane.Runtime() as runtime, Notebook(js={"runtime": runtime}) as notebook:
        assert notebook.execute_sync(js("1 + 1")).text == "2"
        assert runtime.stats().sessions == 1


def test_terminate_and_cancelling_end_a_call() -> None:
    async def main() -> None:
        async with Notebook() as notebook:
            begun = asyncio.Event()

            def on_update(update: Update) -> None:
                if "begun" in update.content[0]["text"]:
                    begun.set()

            execution = notebook.execute(js(LOOP), on_update=on_update)
            await begun.wait()
            execution.terminate("enough")
            result = await execution
            assert result.text == f"begun\nCommand aborted: enough\n{TAIL}"
            assert result.is_error

            begun.clear()
            execution = notebook.execute(js(LOOP), on_update=on_update)

            async def awaits() -> CallResult:
                done: CallResult = await execution
                return done

            task = asyncio.create_task(awaits())
            await begun.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert "Command aborted: the task that awaited" in (await execution).text
            assert (await notebook.execute(js("1"))).text == "1"

    asyncio.run(main())


def test_updates_have_the_result_so_far() -> None:
    updates: list[Update] = []
    with Notebook() as notebook:
        result = notebook.execute_sync(js("print('a')", "1"), on_update=updates.append)
        assert [cell["status"] for cell in updates[0].details["cells"]] == ["pending", "pending"]
        assert updates[0].details["is_error"] is False
        assert updates[-1].content[0]["text"] == result.text

        def throws(_: Update) -> None:
            raise RuntimeError("no screen")

        result = notebook.execute_sync(js("1"), on_update=throws)
        notice = "the receiver of updates failed and was not called again: no screen"
        assert result.details["notice"] == notice


def test_the_tool_the_backends_and_the_kernels() -> None:
    with Notebook(py=False) as notebook:
        tool = notebook.tool()
        language = tool["input_schema"]["properties"]["cells"]["items"]["properties"]["language"]
        assert (tool["name"], language["enum"]) == ("eval", ["js"])
        available = notebook.available_sync()
        assert available["js"]["ok"]
        assert available["py"] == {"ok": False, "reason": "it is switched off"}
        notebook.execute_sync(js("1"))
        (kernel,) = notebook.stats()["kernels"]
        assert (kernel["language"], kernel["busy"], kernel["rss_bytes"]) == ("js", False, None)
        notebook.reset_sync("js")
        assert notebook.stats() == {"confinement": None, "kernels": []}


def test_in_a_forked_child_a_notebook_is_closed() -> None:
    with Notebook() as notebook:
        assert notebook.execute_sync(js("1")).text == "1"
        pid = os.fork()
        if pid == 0:
            try:
                notebook.execute_sync(js("1"))
            except TypeError as error:
                os._exit(7 if str(error) == "notebook is closed" else 1)
            finally:
                os._exit(2)
        _, status = os.waitpid(pid, 0)
        assert os.waitstatus_to_exitcode(status) == 7
        assert notebook.execute_sync(js("2")).text == "2"


@needs_python
def test_cells_of_both_languages_in_one_call() -> None:
    cells = [{"language": "py", "code": "x = 20"}, *js("1")["cells"]]
    cells.append({"language": "py", "code": "x + 1"})
    with Notebook(py={"isolation": ISOLATION}) as notebook:
        assert notebook.execute_sync({"cells": cells}).text == "[1/3]\n\n[2/3]\n1\n\n[3/3]\n21"


@needs_confined
def test_a_kernel_is_confined_and_the_notebook_tells_how() -> None:
    case = str(CASES / "cells.json")
    read = {"cells": [{"language": "py", "code": f"open({case!r}).read(1)"}]}
    with Notebook() as notebook:
        assert notebook.stats()["confinement"] is None
        assert "FileNotFoundError" in notebook.execute_sync(read).text
        had = notebook.stats()["confinement"]
        assert (had["file_system"], had["network"], had["processes"]) == (True, True, True)
        assert had["memory"] in {"group", "process"}
    with Notebook(py={"readable": [case], "required": ["file_system"]}) as notebook:
        assert notebook.execute_sync(read).text == "'['"
    with Notebook(py={"isolation": "none"}) as notebook:
        assert notebook.execute_sync(read).text == "'['"
        assert notebook.stats()["confinement"] is None


@pytest.mark.parametrize("cell", [js("await tool.wait({})"), js("await llm('?')")])
def test_the_end_of_a_cell_cancels_its_calls(cell: dict[str, Any]) -> None:
    async def main() -> None:
        called, cancelled = asyncio.Event(), asyncio.Event()

        async def wait(*_args: Any) -> None:
            called.set()
            try:
                await asyncio.Event().wait()
            finally:
                cancelled.set()

        async with Notebook(
            tools={"wait": {"call": wait, "stops_clock": True}}, llm=wait
        ) as notebook:
            execution = notebook.execute(cell)
            await called.wait()
            execution.terminate("enough")
            result = await execution
            assert result.text.startswith("Command aborted: enough\nCell aborted.")
            await cancelled.wait()

    asyncio.run(main())


def test_a_call_that_is_cancelled_before_its_coroutine_began_does_not_begin() -> None:
    begun: list[int] = []

    async def main() -> None:
        has_begun = asyncio.Event()

        async def wait(args: dict[str, int]) -> None:
            begun.append(args["n"])
            has_begun.set()
            await asyncio.Event().wait()

        options = _cancelled({"tools": {"wait": wait}})
        calls = [options["tools"]["wait"]({"n": number}, number) for number in (1, 2)]
        options["$abort"](1)
        tasks = [asyncio.ensure_future(call) for call in calls]
        await has_begun.wait()
        options["$abort"](2)
        for task in tasks:
            with pytest.raises(asyncio.CancelledError):
                await task
        options["$abort"](2)

    asyncio.run(main())
    assert begun == [2]


UNANSWERED = """
import asyncio
from isolane.notebook import Notebook

async def never(args):
    await asyncio.Event().wait()

code = '''
try:
    while True:
        tool.never.start()
except RuntimeError as error:
    print(error)
'''
with Notebook(
    tools={"never": {"call": never, "stops_clock": True}}, py={"isolation": "none"}
) as notebook:
    print(notebook.execute_sync({"cells": [{"language": "py", "code": code, "timeout": 60}]}).text)
"""


def test_calls_that_begin_as_the_loop_closes_leave_no_message() -> None:
    program = [sys.executable, "-c", UNANSWERED]
    ran = subprocess.run(program, capture_output=True, text=True, check=True)
    assert ran.stdout.startswith("never: 8,000 calls wait for answers")
    assert "was destroyed" not in ran.stderr


def test_misuse_of_tools() -> None:
    with pytest.raises(TypeError, match=r"^tools\.a\.call must be a function, got null$") as raised:
        Notebook(tools={"a": {}})  # type: ignore[dict-item]
    assert raised.value.path == "tools.a.call"  # type: ignore[attr-defined]


def test_options_that_cannot_cross_or_nest_too_deeply_are_misuse_with_a_path() -> None:
    deep: dict[str, Any] = {}
    at = deep
    for _ in range(5000):
        at["a"] = {}
        at = at["a"]
    table: list[tuple[dict[str, Any], str]] = [
        ({"files": {"root": Path("/tmp")}}, "files.root"),
        ({"env": os.environ}, "env"),
        ({"limits": {"timeout_seconds": float("nan")}}, "limits.timeout_seconds"),
        ({"limits": deep}, "options"),
        ({"registry": {}}, "registry"),
        ({"session_id": ""}, "session_id"),
    ]
    for options, path in table:
        with pytest.raises((TypeError, ValueError)) as raised:
            Notebook(**options)
        assert vars(raised.value)["path"] == path
        assert str(raised.value).startswith(path)
    with Notebook(py=False) as notebook:
        for args, path in [(deep, "args"), ({"cells": [object()]}, "cells[0]")]:
            with pytest.raises((TypeError, ValueError)) as raised:
                notebook.execute_sync(args)
            assert vars(raised.value)["path"] == path
    with pytest.raises(ValueError, match="max_kernels must be"):
        Registry(max_kernels=0)


def test_notebooks_of_a_registry_that_name_a_session_share_its_kernels() -> None:
    registry = Registry(max_kernels=1)

    def run(notebook: Notebook, code: str) -> str:
        return notebook.execute_sync({"cells": [{"language": "js", "code": code}]}).text

    with Notebook(registry=registry, session_id="a", py=False) as second:
        with Notebook(registry=registry, session_id="a", py=False) as first:
            assert run(first, "let x = 1; x") == "1"
            assert run(second, "x + 1") == "2"
        assert run(second, "x") == "1"
        assert second.stats()["kernels"][0]["session_id"] == "a"
        with pytest.raises(TypeError, match="js must be as it is in session 'a'"):
            Notebook(registry=registry, session_id="a", js={"memory_limit_bytes": 1 << 25})


def test_a_kit_that_was_closed_is_misuse_and_ends_the_cells() -> None:
    kit = Kit(state=True)
    with Notebook(js={"kit": kit}) as notebook:
        assert "JavaScript also has `setTimeout`" in notebook.tool()["description"]
        kit.state.set_sync("n", 1)
        assert notebook.execute_sync(js("await state.get('n')")).text == "1"

        def on_update(update: Update) -> None:
            if "begun" in update.content[0]["text"]:
                kit.close()

        waits = js("print('begun'); await new Promise((done) => setTimeout(done, 60_000))")
        text = notebook.execute_sync(waits, on_update=on_update).text
        tail = "Cell aborted.\nJavaScript state was lost."
        assert text == f"begun\nCommand aborted: the kit is closed\n{tail}"
        text = notebook.execute_sync(js("1")).text
        assert text == "the kit is closed\nCell failed (exit code 1)."
    with pytest.raises(TypeError, match=r"^js\.kit is closed$") as raised:
        Notebook(js={"kit": kit})
    assert getattr(raised.value, "path", None) == "js.kit"


PYTHON: PyOptions = {
    "isolation": ISOLATION,
    "interrupt_grace_ms": 60_000,
    "start_timeout_ms": 60_000,
}


def python(code: str) -> dict[str, Any]:
    return {"cells": [{"language": "py", "code": code}]}


def notice_of(notebook: Notebook) -> tuple[str, str]:
    """The text and the notice of the next call."""
    result = notebook.execute_sync(python("'x' in globals()"))
    return result.text, result.details["notice"]


def ended(notebook: Notebook) -> None:
    """Waits until no kernel of the notebook is there."""
    while notebook.stats()["kernels"]:
        time.sleep(0.005)


@needs_python
def test_of_too_many_kernels_the_one_that_was_used_least_recently_ends() -> None:
    registry = Registry(max_kernels=1)
    with (
        Notebook(registry=registry, session_id="a", py=PYTHON) as first,
        Notebook(registry=registry, session_id="b", py=PYTHON) as second,
    ):
        for notebook in (first, second):
            notebook.execute_sync(python("x = 1"))
        assert [len(notebook.stats()["kernels"]) for notebook in (first, second)] == [0, 1]
        notice = (
            "Python was ended to make room for the kernels of other sessions; its state was lost."
        )
        assert notice_of(first) == (f"{notice}\n\nFalse", notice)


@needs_python
def test_a_kernel_without_cells_ends_after_its_time() -> None:
    registry = Registry(idle_timeout_ms=1, sweep_ms=1)
    with Notebook(registry=registry, js={"idle_timeout_ms": 1}, py=PYTHON) as notebook:
        notebook.execute_sync({"cells": [*python("x = 1")["cells"], *js("let x = 1")["cells"]]})
        ended(notebook)
        notice = "Python was ended after 1 ms without a cell; its state was lost."
        assert notice_of(notebook) == (f"{notice}\n\nFalse", notice)


@needs_python
def test_beyond_the_kernels_that_may_run_at_once_a_cell_fails() -> None:
    registry = Registry(max_running_kernels=1)

    async def main() -> None:
        called, released = asyncio.Event(), asyncio.Event()

        async def wait(_args: Any) -> None:
            called.set()
            await released.wait()

        async with (
            Notebook(registry=registry, py=PYTHON, tools={"wait": wait}) as first,
            Notebook(registry=registry, py=PYTHON) as second,
        ):
            execution = first.execute(python("tool.wait()"))
            await called.wait()
            full = await second.execute(python("1"))
            reason = "Python backend is unavailable: a kernel runs already, and no more may"
            assert full.is_error
            assert full.text.startswith(reason)
            released.set()
            assert not (await execution).is_error
            assert (await second.execute(python("1"))).text == "1"
            assert first.stats()["kernels"] == []

    asyncio.run(main())


@needs_python
def test_a_kernel_without_a_cell_that_does_not_answer_is_dead() -> None:
    with Notebook(registry=Registry(heartbeat_ms=500), py=PYTHON) as notebook:
        # No thread of the kernel runs from then on.
        hold = "import asyncio\nasyncio.get_running_loop().call_soon(sum, range(10**15)); None"
        notebook.execute_sync(python(hold))
        ended(notebook)
        notice = "Python ended unexpectedly (no heartbeat); its state was lost."
        assert notice_of(notebook) == (f"{notice}\n\nFalse", notice)
        assert notebook.stats()["kernels"][0]["restarts"] == 1


def test_a_child_has_artifacts_of_its_own(tmp_path: Path) -> None:
    own, of_child = tmp_path / "own", tmp_path / "of-child"
    limits: Limits = {"output_lines": 2}
    with Notebook(py=False, artifacts={"dir": str(own)}, limits=limits) as notebook:
        child = notebook.child(artifacts={"dir": str(of_child)})
        result = child.execute_sync(js("for (let line = 1; line <= 5; line += 1) print(line)"))
        artifact = result.details["meta"]["truncation"]["artifact"]
        assert artifact["path"] == str(of_child / "eval-1.txt")
        assert (of_child / "eval-1.txt").read_text() == "1\n2\n3\n4\n5\n"
        assert list(own.iterdir()) == []
        read = js("await output('eval-1', { limit: 1 })")
        assert child.execute_sync(read).text == "1"
        assert notebook.execute_sync(read).is_error


@needs_python
@pytest.mark.skipif(ISOLATION == "none", reason="kernels are not confined here")
@pytest.mark.parametrize("write", [True, False])
def test_code_of_python_writes_to_the_root_of_the_files_alone(tmp_path: Path, write: bool) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    for folder in (root, outside):
        folder.mkdir()
        # A kernel of root is nobody.
        folder.chmod(0o777)
    (outside / "kept").write_text("kept")
    (root / "link").symlink_to(outside)
    code = f"""
import os
def writes(path):
    try:
        with open(path, 'w') as file:
            file.write('written')
        return True
    except OSError:
        return False
paths = ['a', 'link/b', 'link/kept', {str(outside / "c")!r}, '../outside/d', '/etc/e']
print([writes(path) for path in paths])
try:
    os.symlink({str(outside / "kept")!r}, 'planted')
    read('planted')
except (OSError, PermissionError) as error:
    print(type(error).__name__)
"""
    with Notebook(py=PYTHON, files={"root": str(root), "write": write}) as notebook:
        text = notebook.execute_sync(python(code)).text
    refused = "PermissionError" if write else "OSError"
    assert text == f"{[write, *[False] * 5]}\n{refused}"
    assert sorted(path.name for path in outside.iterdir()) == ["kept"]
    assert (outside / "kept").read_text() == "kept"
    assert (root / "a").exists() == write
