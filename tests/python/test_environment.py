"""Environments and the process service as a user of the package has them. Their rules are tests of
the crate; here are those of this face."""

from __future__ import annotations

import asyncio
import functools
import gc
import json
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, cast

import pytest
from isolane.environment import (
    EXECUTION_EXIT_STATES,
    EXECUTION_STATES,
    EnvironmentBindings,
    ExecutionInput,
    ExecutionOptions,
    ProcessError,
    ProcessRecord,
    ProcessService,
    ToolContext,
    TypeScriptEnvironment,
)

import isolation
from ceilings import in_loop

Services = Callable[..., ProcessService]


@pytest.fixture
def typescript() -> Services:
    """Makes services of TypeScript in the runtime of the tests."""

    def make(**options: Any) -> ProcessService:
        environment = TypeScriptEnvironment(runtime=isolation.Runtime(), **options)
        return ProcessService(environment=environment)

    return make


async def ran(service: ProcessService, code: str, **more: Any) -> ProcessRecord:
    record = await service.create(code, **more)
    return await service.wait(record["pid"])


def test_the_states_are_those_of_the_interface() -> None:
    assert EXECUTION_STATES == ("queued", "running")
    assert EXECUTION_EXIT_STATES == ("failed", "success", "timeout", "canceled")


def test_a_process_has_a_record_streams_and_output(typescript: Services) -> None:
    code = 'console.log("n is", 2); console.warn("w"); output({ n: 2 }); return [1]'

    async def main() -> None:
        async with typescript() as service:
            created = await service.create(code)
            assert (created["pid"], created["state"], created["exitState"]) == (1, "queued", None)
            record: Any = await service.wait(created["pid"])
            for name in ("createdAt", "startedAt", "finishedAt"):
                assert record.pop(name).endswith("Z")
            assert record.pop("timeoutMs") == 30_000
            assert record == {
                "pid": 1,
                "state": "idle",
                "exitState": "success",
                "error": None,
                "errorDetails": None,
                "stdout": {"bytes": 7, "truncated": False},
                "stderr": {"bytes": 2, "truncated": False},
                "output": {"n": 2, "result": [1]},
            }
            assert await service.stdout(1) == "n is 2\n"
            assert await service.stderr(1) == "w\n"
            assert await service.code(1) == code
            assert await service.output(1) == {"n": 2, "result": [1]}
            page = await service.list(state="idle", limit=10)
            assert ([item["pid"] for item in page["items"]], page["next"]) == ([1], None)

    in_loop(main)()


def test_problems_are_exceptions_with_a_code(typescript: Services) -> None:
    async def refused(call: Any, code: str, message: str) -> None:
        with pytest.raises(ProcessError) as raised:
            await call
        assert (raised.value.code, str(raised.value)) == (code, message)

    async def main() -> None:
        service = typescript()
        await refused(service.get(9), "not-found", "there is no process 9")
        wrong: Any = 1
        message = "code must be a string, got a number"
        await refused(service.create(wrong), "bad-request", message)
        message = "limit must be a whole number from 1 to 200, got 201"
        await refused(service.list(limit=201), "bad-request", message)
        message = "timeout_ms must be a whole number from 1 to 3600000, got 0"
        await refused(service.create("", timeout_ms=0), "bad-request", message)
        message = "exit_state must be one of 'failed', 'success', 'timeout', 'canceled', got 'done'"
        state: Any = "done"
        await refused(service.list(exit_state=state), "bad-request", message)
        infinite: Any = float("inf")
        message = "timeout_ms is Infinity, which JSON has not"
        await refused(service.create("", timeout_ms=infinite), "bad-request", message)
        pid = (await service.create("", autorun=False))["pid"]
        await refused(service.kill(pid), "already-idle", "process 1 is idle already")
        await service.run(pid)
        await service.wait(pid)
        message = "process 1 has results: force clears them"
        await refused(service.run(pid), "has-results", message)
        assert (await service.run(pid, force=True))["state"] == "queued"
        await service.wait(pid)
        await service.delete(pid)
        await service.shutdown()
        message = "the service is shutting down"
        await refused(service.create(""), "shutting-down", message)

    in_loop(main)()


def test_misuse_is_raised_at_once_and_spelled_as_in_python() -> None:
    def message(make: Callable[[], Any]) -> str:
        with pytest.raises((TypeError, ValueError)) as raised:
            make()
        return str(raised.value)

    wrong: Any = "1"
    text = "kill_grace_ms must be a whole number, got a string"
    assert message(lambda: ProcessService(kill_grace_ms=wrong)) == text
    text = "concurrency must be a whole number from 1 to 1000000, got 0"
    assert message(lambda: ProcessService(concurrency=0)) == text
    text = "environment must have the methods execute and kill"
    assert message(lambda: ProcessService(environment=wrong)) == text
    runtime = isolation.Runtime()
    text = "runtime and isolation exclude each other"
    assert message(lambda: TypeScriptEnvironment(runtime=runtime, isolation="thread")) == text
    assert "memory_limit_bytes" in message(lambda: TypeScriptEnvironment(memory_limit_bytes=0))
    text = "runtime must be a Runtime, got str"
    assert message(lambda: TypeScriptEnvironment(runtime=wrong)) == text
    text = "unknown option 'input_schema'; did you mean 'inputSchema'?"
    misspelt = {"description": "x", "input_schema": {}}
    assert message(lambda: ProcessService().tool("a", "b", misspelt, lambda _, __: 1)) == text


def test_a_null_is_no_limit_of_time() -> None:
    async def main() -> None:
        async with ProcessService(default_timeout_ms=None, backstop_ms=None) as service:
            assert (await service.create("1"))["timeoutMs"] is None

    in_loop(main)()


def test_events_can_be_iterated_and_resumed(typescript: Services) -> None:
    async def ids(events: AsyncIterator[Any]) -> list[int]:
        return [event["id"] async for event in events]

    async def main() -> None:
        service = typescript()
        changes = asyncio.ensure_future(_changes(service))
        await asyncio.sleep(0)
        pid = (await service.create('console.log("a"); output({ a: 1 })'))["pid"]
        seen = [event async for event in service.events(pid)]
        shown: list[Any] = [(event["event"], event["data"]) for event in seen[:-1]]
        assert shown == [
            ("state", {"state": "queued"}),
            ("state", {"state": "running"}),
            ("stdout", {"text": "a\n"}),
            ("output", {"a": 1}),
            ("state", {"state": "idle"}),
        ]
        assert (seen[-1]["event"], seen[-1]["data"]["exitState"]) == ("exit", "success")
        assert await ids(service.events(pid, after=4)) == [5, 6]
        with pytest.raises(ProcessError):
            await ids(service.events(9))
        await service.shutdown()
        assert (await changes)[-1] == (1, "idle")

    in_loop(main)()


async def _changes(service: ProcessService) -> list[tuple[int, str]]:
    events = service.events()
    return [(event["data"]["pid"], event["data"]["state"]) async for event in events]


def test_tools_are_functions_of_this_side(typescript: Services) -> None:
    schema = {"type": "object", "properties": {"owner": {"type": "string"}}, "required": ["owner"]}
    description = {"description": "Lists issues.", "inputSchema": schema}

    async def list_issues(args: Any, context: ToolContext) -> Any:
        assert not context.signal.is_set()
        if args["owner"] == "nobody":
            raise ValueError("no such owner")
        return [{"owner": args["owner"], "eid": context.eid}]

    code = """import { listIssues } from 'github';
        const seen: any[] = [await listIssues({ owner: 'me' })];
        for (const owner of ['nobody', 5])
            try { await listIssues({ owner }) } catch (e) { seen.push([e.name, e.message]) }
        return seen;"""

    async def main() -> None:
        async with typescript() as service:
            service.tool("github", "list-issues", description, list_issues)
            record = await ran(service, code)
            assert record["error"] is None
            assert record["output"]["result"] == [
                [{"owner": "me", "eid": 1}],
                ["ValueError", "no such owner"],
                ["TypeError", "github.listIssues: args.owner must be string"],
            ]
            assert [tool["identifier"] for tool in service.tools()] == ["listIssues"]
            assert "declare module 'github' {" in service.tool_types()
            docs = await service.tool_docs("github", "list-issues")
            assert "import { listIssues } from 'github';" in docs
            assert (await service.environment_docs()).startswith("# TypeScript\n")
            with pytest.raises(TypeError, match=r"there is a tool github\.list-issues already"):
                service.tool("github", "list-issues", description, list_issues)

    in_loop(main)()


def test_a_faulty_answer_is_blamed_on_its_tool(typescript: Services) -> None:
    class Row:
        pass

    answers: dict[str, Any] = {"row": Row(), "set": {"a": [{1}]}}
    code = """import { row, set } from 'db';
        const seen: any[] = [];
        for (const tool of [row, set]) try { await tool() } catch (e) { seen.push(e.message) }
        return seen;"""

    async def main() -> None:
        async with typescript() as service:
            for name, answer in answers.items():
                handler = functools.partial(lambda given, _, __: given, answer)
                service.tool("db", name, {"description": ""}, handler)
            record = await ran(service, code)
            assert record["error"] is None
            assert record["output"]["result"] == [
                "the answer of db.row: an instance of Row cannot be cloned",
                "the answer of db.set.a[0] is a Set, which JSON has not",
            ]

    in_loop(main)()


@pytest.mark.parametrize("is_lasting", [False, True])
def test_a_call_of_a_loop_that_has_closed_fails(typescript: Services, is_lasting: bool) -> None:
    service = typescript()
    code = "import { wait } from 'shop'; await wait()"
    begun = asyncio.Event()

    async def wait(_: Any, __: ToolContext) -> None:
        begun.set()
        await asyncio.get_running_loop().create_future()

    async def create() -> int:
        pid = (await service.create(code))["pid"]
        await begun.wait()
        return pid

    async def end(pid: int) -> Any:
        return await service.wait(pid)

    # Neither loop cancels its tasks, as `asyncio.run` does.
    first, second = asyncio.new_event_loop(), asyncio.new_event_loop()
    try:
        if is_lasting:
            service.tool("shop", "wait", {"description": ""}, wait)
        else:

            async def register() -> None:
                service.tool("shop", "wait", {"description": ""}, wait)

            first.run_until_complete(register())
        pid = first.run_until_complete(create())
        first.close()
        gc.collect()
        record = second.run_until_complete(end(pid))
        assert record["error"].startswith("Error: the event loop of the function has closed")
        second.run_until_complete(service.shutdown())
    finally:
        first.close()
        second.close()


def test_the_signal_of_a_call_is_set_at_the_end_of_its_execution(typescript: Services) -> None:
    async def main() -> None:
        begun, aborted = asyncio.Event(), asyncio.Event()

        async def wait(_: Any, context: ToolContext) -> None:
            begun.set()
            await context.signal.wait()
            aborted.set()

        async with typescript() as service:
            service.tool("shop", "wait", {"description": ""}, wait)
            pid = (await service.create("import { wait } from 'shop'; await wait()"))["pid"]
            await begun.wait()
            await service.kill(pid)
            assert (await service.wait(pid))["exitState"] == "canceled"
            await aborted.wait()

    in_loop(main)()


def test_values_and_functions_of_this_side_are_in_the_code(typescript: Services) -> None:
    async def load(number: int) -> list[Any]:
        return [number, None]

    async def main() -> None:
        options: dict[str, Any] = {
            "globals": {"rate": 2**60, "load": load},
            "imports": {"shop": {"price": 5, "tax": lambda n: n * 2}},
            "modules": {"./double.ts": "export const double = (n: number) => n * 2;"},
        }
        async with typescript(**options) as service:
            code = """import { price, tax } from 'shop'; import { double } from './double.ts';
                return [String(rate), await load(1), price, await tax(10), double(4)]"""
            record = await ran(service, code)
            assert record["error"] is None
            assert record["output"]["result"] == [str(2**60), [1, None], 5, 20, 8]

    in_loop(main)()


def test_a_service_keeps_its_environment() -> None:
    async def load() -> int:
        return 5

    def make() -> ProcessService:
        return ProcessService(environment=TypeScriptEnvironment(globals={"load": load}))

    async def main() -> None:
        async with make() as service:
            gc.collect()
            record = await ran(service, "return await load()")
            assert (record["error"], record["output"]) == (None, {"result": 5})

    in_loop(main)()


class Own:
    """An environment that answers with the JSON of its code, in this thread."""

    def __init__(self) -> None:
        self.inputs: list[ExecutionInput] = []
        self.kills: list[int] = []
        self.is_down = False
        self._ends: dict[int, asyncio.Future[Any]] = {}

    async def execute(self, input: ExecutionInput, bindings: EnvironmentBindings) -> Any:
        self.inputs.append(input)
        eid, work = input.eid, json.loads(input.code)
        bindings.set_state(eid, "running")
        for chunk in work.get("out", []):
            bindings.stdout(eid, chunk if isinstance(chunk, str) else bytes(chunk))
        if "fields" in work:
            bindings.output(eid, work["fields"])
        if "error" in work:
            error = work["error"]
            bindings.error(eid, TypeError("no") if error == "error" else error)
        if "call" in work:
            answer = await bindings.invoke_tool(eid, work["call"], {"n": 1})
            bindings.output(eid, {"answer": answer})
        if "other" in work:
            name, *args = work["other"]
            getattr(bindings, name)(*args)
        if work.get("wait"):
            self._ends[eid] = asyncio.get_running_loop().create_future()
            return await self._ends[eid]
        if "thrown" in work:
            raise LookupError(work["thrown"])
        return work.get("answer", "success")

    async def kill(self, eid: int) -> None:
        self.kills.append(eid)
        if eid in self._ends:
            self._ends[eid].set_result("canceled")

    def generate_docs(self) -> str:
        return "# JSON"

    async def shutdown(self) -> None:
        self.is_down = True


def test_an_environment_of_the_caller_runs_code() -> None:
    async def main() -> None:
        own = Own()
        service = ProcessService(environment=own)

        async def ended(**work: Any) -> tuple[Any, Any]:
            record = await ran(service, json.dumps(work))
            return record["exitState"], record["error"]

        record = await ran(service, json.dumps({"out": ["a", [0xC3], [0xA4]], "fields": {"n": 1}}))
        assert own.inputs[0].options == ExecutionOptions(30_000)
        assert (record["exitState"], record["output"]) == ("success", {"n": 1})
        assert await service.stdout(1) == "aä"
        assert await ended(answer="timeout", error="late") == ("timeout", "late")
        message = "the environment returned 'done', which is no exit state"
        assert await ended(answer="done") == ("failed", message)
        message = "the environment returned null, which is no exit state"
        assert await ended(answer=None) == ("failed", message)
        message = "the environment gave no reason"
        assert await ended(answer="failed") == ("failed", message)
        assert await ended(answer="failed", error="error") == ("failed", "TypeError: no")
        assert await ended(thrown="no memory") == ("failed", "LookupError: no memory")
        message = "TypeError: these bindings are of execution 8, not 6"
        assert await ended(other=["stdout", 6, "x"]) == ("failed", message)
        message = "TypeError: the state must be 'queued' or 'running', got 'idle'"
        assert await ended(other=["set_state", 9, "idle"]) == ("failed", message)
        too_large = ["stdout", 10, "x" * (4 * 1024 * 1024 + 1)]
        exit_state, error = await ended(other=too_large)
        assert exit_state == "failed"
        assert error.startswith("ValueError: stdout takes at most 4194304 bytes")
        service.tool("math", "double", {"description": ""}, lambda args, _: args["n"] * 2)
        record = await ran(service, json.dumps({"call": "math.double"}))
        assert record["output"] == {"answer": 2}
        waits = (await service.create(json.dumps({"wait": True, "out": ["on"]})))["pid"]
        async for event in service.events(waits):
            if event["event"] == "stdout":
                break
        assert (await service.kill(waits))["state"] == "terminating"
        assert (await service.wait(waits))["exitState"] == "canceled"
        assert own.kills == [waits]
        assert await service.environment_docs() == "# JSON"
        await service.shutdown()
        assert own.is_down

    in_loop(main)()


class Noted:
    """Bindings of another host."""

    tools = ({"service": "a", "name": "b", "identifier": "b", "description": ""},)

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []

    def set_state(self, eid: int, state: str) -> None:
        self.calls.append(("state", eid, state))

    def stdout(self, eid: int, data: bytes | str) -> None:
        self.calls.append(("stdout", eid, bytes(data) if not isinstance(data, str) else data))

    def stderr(self, eid: int, data: bytes | str) -> None:
        self.calls.append(("stderr", eid, data))

    def output(self, eid: int, fields: Any) -> None:
        self.calls.append(("output", eid, fields))

    def error(self, eid: int, error: Any) -> None:
        self.calls.append(("error", eid, error))

    async def invoke_tool(self, eid: int, name: str, args: Any = None) -> Any:
        return {"eid": eid, "name": name, "args": args}


def test_an_environment_of_this_module_works_with_other_hosts() -> None:
    async def main() -> None:
        environment = TypeScriptEnvironment(runtime=isolation.Runtime())
        bindings: Any = Noted()
        code = "import { b } from 'a'; console.log('x'); output({ answer: await b({ n: 1 }) })"
        assert await environment.execute(ExecutionInput(7, code), bindings) == "success"
        answer = {"eid": 7, "name": "a.b", "args": {"n": 1}}
        assert bindings.calls == [
            ("state", 7, "queued"),
            ("state", 7, "running"),
            ("stdout", 7, b"x\n"),
            ("output", 7, {"answer": answer}),
        ]
        late = ExecutionInput(8, "for (;;);", ExecutionOptions(50))
        assert await environment.execute(late, bindings) == "timeout"
        assert bindings.calls[-1] == ("error", 8, "the execution took longer than 50 ms")
        await environment.kill(99)
        await environment.shutdown()
        assert await environment.execute(ExecutionInput(9, "1"), bindings) == "canceled"

    in_loop(main)()


@in_loop
async def test_a_client_posts_code_over_http(typescript: Services) -> None:
    def post(url: str, token: str) -> dict[str, Any]:
        headers = {"content-type": "application/json", "authorization": f"Bearer {token}"}
        body = json.dumps({"code": "return 6 * 7"}).encode()
        request = urllib.request.Request(f"{url}/processes?wait=60000", body, headers)
        with urllib.request.urlopen(request) as answer:
            return cast("dict[str, Any]", json.load(answer))

    token = "a-token-of-the-test"
    async with typescript() as service, await service.listen(port=0, token=token) as server:
        record = await asyncio.to_thread(post, server.url, token)
        assert record["output"] == {"result": 42}
        with pytest.raises(urllib.error.HTTPError) as refused:
            await asyncio.to_thread(post, server.url, "another-token-of-it")
        assert refused.value.code == 401
        refused.value.close()
        with pytest.raises(ValueError, match=r"^max_body_bytes must be"):
            await service.listen(max_body_bytes=0)
        with pytest.raises(TypeError, match="token"):
            await service.listen(host="0.0.0.0", port=0)


@in_loop
async def test_a_database_keeps_processes_for_the_next_service(tmp_path: Path) -> None:
    file = tmp_path / "processes.db"
    environment = TypeScriptEnvironment(runtime=isolation.Runtime())
    async with ProcessService(environment=environment, database=file) as first:
        pid = (await first.create("console.log('kept'); output({ n: 2 }); return 7"))["pid"]
        record = await first.wait(pid)
        events = [event async for event in first.events(pid)]
        with pytest.raises(RuntimeError, match="is in use by another service: stop that one"):
            ProcessService(database=str(file))
    environment = TypeScriptEnvironment(runtime=isolation.Runtime())
    async with ProcessService(environment=environment, database=str(file)) as second:
        assert await second.get(pid) == record
        assert record["output"] == {"n": 2, "result": 7}
        assert await second.stdout(pid) == "kept\n"
        listed = (await second.list(exit_state="success"))["items"]
        assert [found["pid"] for found in listed] == [pid]
        assert [event async for event in second.events(pid, after=2)] == events[2:]
        assert (await second.create("1"))["pid"] == pid + 1
    with pytest.raises(TypeError, match="does not exist: make it, or name another file"):
        ProcessService(database=tmp_path / "none" / "x.db")
