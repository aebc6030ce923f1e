"""The kit as a user of the package has it. Its rules are the table of the crate; here are those of
this face."""

from __future__ import annotations

import asyncio
import http.server
import pathlib
import re
import threading
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import pytest
from isolane import CellExecutionResult, CodeExecution, SandboxError, SerializationError
from isolane.kit import Kit, KitCellExecution, KitCellResult, KitError, KitResult, KitSession

import isolation
from ceilings import CEILING_S, in_loop


@pytest.fixture(scope="module")
def runtime() -> Iterator[Any]:
    with isolation.Runtime() as made:
        yield made


def value(kit: Kit, source: str, **options: Any) -> Any:
    result = kit.run_tool_sync(source, **options)
    assert result.status == "success", result.error
    return result.result


def test_a_tool_has_a_value_its_json_and_its_calls(runtime: Any) -> None:
    source = (
        "await state.set('k', args.n); return { n: await state.get('k'), m: new Map([['a', 1n]]) }"
    )
    with Kit(runtime=runtime, state=True) as kit:
        result = kit.run_tool_sync(source, args={"n": 1})
        assert isinstance(result, KitResult)
        assert result.result == {"n": 1, "m": {"a": 1}}
        assert result.json == '{"n":1,"m":{"a":1}}'
        calls = [(call.name, call.ok, call.summary) for call in result.calls]
        assert calls == [("state.set", True, "k"), ("state.get", True, "k")]
        assert result.calls_dropped == 0
        assert all(call.started > 1.7e12 and call.bytes > 0 for call in result.calls)


def test_an_error_of_a_kit_keeps_its_name_when_a_host_function_raises_it(runtime: Any) -> None:
    with Kit(runtime=runtime, libraries=True, db=True) as kit:
        source = "try { await fails() } catch ({ name, message, code }) {"
        source += " return [name, message, code] }"

        def library() -> None:
            kit.libraries.create_sync("b", "let x = ;")

        async def statement() -> None:
            await kit.db.sql("nothing")

        thrown = value(kit, source, globals={"fails": library})
        assert thrown == ["LibraryError", "Unexpected token (library:b:1:9)", None]
        thrown = value(kit, source, globals={"fails": statement})
        assert thrown == ["DbError", 'near "nothing": syntax error', "SQLITE_ERROR"]


def test_errors_of_the_host_name_arguments(runtime: Any) -> None:
    class Other: ...

    with Kit(runtime=runtime, state=True, db=True, secrets={}) as kit:
        wrong: list[tuple[Callable[[], Any], str]] = [
            (lambda: kit.state.set_sync("k", [Other()]), "value[0]: an instance of Other"),
            (lambda: kit.db.sql_sync("SELECT ?", [Other()]), "params[0]: an instance of Other"),
            (lambda: kit.db.batch_sync([[Other()]]), "statements[0][0]: an instance of Other"),
            (lambda: kit.secrets.set("KEY", {"value": Other()}), "secret.value: an instance of"),
        ]
        for call, message in wrong:
            with pytest.raises(SerializationError) as refused:
                call()
            assert str(refused.value).startswith(message)
        with pytest.raises(
            TypeError, match=r"^secrets\.KEY\.value must be a string, got a function"
        ):
            kit.secrets.set("KEY", {"value": print})
    with pytest.raises(TypeError, match=r"^fetch must be .*, got a Set$"):
        Kit(runtime=runtime, fetch={"x.org"})  # type: ignore[arg-type]


def test_a_call_that_the_close_of_its_kit_gives_up_says_so(runtime: Any) -> None:
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"

    async def main() -> None:
        kit = Kit(runtime=runtime, db=True)
        calls = [asyncio.ensure_future(kit.db.sql(sql)) for sql in (endless, "SELECT 1")]
        await asyncio.sleep(0)
        kit.close()
        for raised in await asyncio.gather(*calls, return_exceptions=True):
            assert isinstance(raised, KitError)
            assert (raised.name, raised.message) == ("AbortError", "the kit was closed")
        with pytest.raises(RuntimeError, match=r"^the kit is closed$"):
            await kit.db.sql("SELECT 1")

    asyncio.run(asyncio.wait_for(main(), CEILING_S))


def test_a_tool_ends_in_every_way_that_a_run_does(runtime: Any) -> None:
    with Kit(runtime=runtime) as kit:
        failed = kit.run_tool_sync("\nthrow new RangeError('no')")
        assert failed.error is not None
        assert (failed.status, failed.error.name, failed.error.line) == ("error", "RangeError", 2)
        unlinked = kit.run_tool_sync("import a from 'b'")
        assert (unlinked.status, unlinked.json) == ("link_error", None)
        late = kit.run_tool_sync("for (;;) ;", timeout_ms=300)
        assert late.error is not None
        text = "the run took longer than 300 ms"
        assert (late.status, late.error.name, late.error.message) == ("terminated", "Timeout", text)
        large = "const a = []; for (;;) a.push(new Array(1e5).fill(1))"
        assert kit.run_tool_sync(large, memory_limit_bytes=20_000_000).status == "memory"


def test_functions_and_reports_cross_as_in_any_run(runtime: Any) -> None:
    reported: list[Any] = []

    async def add(a: int, b: int) -> int:
        return a + b

    async def main() -> None:
        with Kit(runtime=runtime) as kit:
            source = "report(1); return await add(args.a, 2)"
            options: Any = {"args": {"a": 1}, "globals": {"add": add}, "report": reported.append}
            run = kit.run_tool(source, **options)
            assert (await run).result == 3
            assert "KitExecution" in repr(run)
            waits = kit.run_tool("await new Promise((r) => setTimeout(r, 2e4))")
            waits.terminate("enough")
            error = (await waits).error
            assert error is not None
            assert error.message == "enough"

    asyncio.run(main())
    assert reported == [1]


def test_sessions_and_modules_have_the_capabilities(runtime: Any) -> None:
    with Kit(runtime=runtime, state=True) as kit, kit.session() as session:
        session.run_sync("const kept = await state.keys(); await state.set('a', 1)")
        cell = session.run_sync("[kept, await state.keys()]")
        assert cell.result == [[], ["a"]]
        assert isinstance(cell, KitCellResult)
        assert isinstance(cell, CellExecutionResult)
        assert len(cell.calls) == 1
        run = kit.run_code_sync("export default await state.get('a')")
        assert (run.result, len(run.calls)) == (1, 1)


@in_loop
async def test_cells_of_a_kit_are_of_its_kind() -> None:
    with Kit(state=True, max_recorded_calls=1) as kit:
        session = kit.session()
        assert isinstance(session, KitSession)
        assert repr(session) == "<KitSession open>"
        source = "await state.set('a', 1); await state.get('a')"
        cell = session.run(source)
        assert isinstance(cell, KitCellExecution)
        assert isinstance(cell, CodeExecution)
        result = await cell
        assert (result.session, result.calls_dropped) == ("kept", 1)
        assert [call.name for call in result.calls] == ["state.set"]
        async with await session.fork() as copy:
            assert isinstance(copy, KitSession)
            assert (await copy.call("none")).calls == []
        waits = session.run("await new Promise((r) => setTimeout(r, 2e4))")
        await session.reset()
        ended = await waits
        assert isinstance(ended, KitCellResult)
        assert (ended.status, ended.calls) == ("terminated", [])
        session.close()


def test_the_host_has_the_same_as_code_has(runtime: Any) -> None:
    with Kit(runtime=runtime, state=True, db=True, libraries=True, secrets={}) as kit:
        kit.state.set_sync("k", {"a": [1, None]})
        assert kit.state.get_sync("k") == {"a": [1, None]}
        assert kit.state.get_sync("none") is None
        assert kit.state.keys_sync() == ["k"]
        assert [kit.state.delete_sync("k"), kit.state.delete_sync("k")] == [True, False]
        statements: list[list[Any]] = [
            ["CREATE TABLE t (a, b)"],
            ["INSERT INTO t VALUES (?, ?)", [1, b"\1"]],
        ]
        kit.db.batch_sync(statements)
        read = kit.db.sql_sync("SELECT * FROM t WHERE a = :a", {"a": 1})
        assert [[row[0], bytes(row[1])] for row in read["rows"]] == [[1, b"\1"]]
        assert kit.db.schema_sync()["tables"][0]["row_count"] == 1
        with pytest.raises(KitError, match="ATTACH is not allowed") as refused:
            kit.db.sql_sync("ATTACH 'x' AS y")
        assert refused.value.name == "DbBlocked"
        with pytest.raises(KitError) as failed:
            kit.db.sql_sync("INSERT INTO none VALUES (1)")
        assert failed.value.code == "SQLITE_ERROR"
        with pytest.raises(TypeError):
            kit.db.sql_sync(1)  # type: ignore[arg-type]
        kit.libraries.create_sync("a", "exports.f = (n: number) => n + 1", description="adds one")
        assert value(kit, "return require('a').f(1)") == 2
        with pytest.raises(KitError) as broken:
            kit.libraries.create_sync("b", "\n  )")
        error = broken.value
        place = (error.name, error.filename, error.line, error.column)
        assert place == ("LibraryError", "library:b", 2, 3)
        assert [library["description"] for library in kit.libraries.list_sync()] == ["adds one"]
        kit.libraries.update_sync("a", description="more")
        library = kit.libraries.get_sync("a")
        assert library is not None
        assert library["description"] == "more"
        kit.secrets.set("KEY", {"value": "hunter2hunter2", "hosts": ["x.test"]})
        assert kit.secrets.names() == ["KEY"]
        result = kit.run_tool_sync("console.log('hunter2hunter2'); return secrets.KEY")
        assert re.fullmatch("sealed_KEY_[0-9a-f]{32}", result.result)
        assert result.logs[0].args == ["[secret KEY]"]
        assert [kit.secrets.delete("KEY"), kit.secrets.delete("KEY")] == [True, False]
        assert "declare const state" in kit.describe_sync()


def test_a_promise_among_the_hosts_data_is_refused(runtime: Any) -> None:
    async def later() -> int:
        return 1

    with Kit(runtime=runtime, state=True, secrets={}) as kit:
        forgotten = later()
        with pytest.raises(KitError, match="a promise has no JSON form; await it first"):
            kit.state.set_sync("k", {"a": forgotten})
        forgotten.close()
        with pytest.raises(TypeError, match=r"^secrets\.A must be .*, got nothing$"):
            kit.secrets.set("A", None)  # type: ignore[arg-type]


def test_the_host_awaits_the_same(runtime: Any) -> None:
    async def main() -> None:
        async with Kit(runtime=runtime, state=True, db=True, libraries=True) as kit:
            await kit.state.set("k", 1)
            assert await kit.state.get("k") == 1
            assert await kit.state.keys("k") == ["k"]
            assert await kit.state.delete("k")
            assert (await kit.db.sql("SELECT 1"))["rows"] == [[1]]
            assert len(await kit.db.batch([["SELECT 1"], ["SELECT 2"]])) == 2
            assert (await kit.db.schema())["tables"] == []
            await kit.libraries.create("a", "exports.a = 1")
            await kit.libraries.update("a", "exports.a = 2")
            assert await kit.libraries.get("b") is None
            assert len(await kit.libraries.list()) == 1
            assert await kit.libraries.delete("a")
            assert "resolve" in await kit.describe()
            with pytest.raises(RuntimeError, match=r"await state\.get instead"):
                kit.state.get_sync("k")
            with pytest.raises(KitError):
                await kit.db.sql("SELEC")

    asyncio.run(main())


ENDLESS = (
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "
    "INSERT INTO t SELECT i FROM n WHERE i % 1000 = 0"
)


@in_loop
async def test_a_call_that_is_cancelled_is_interrupted() -> None:
    async with Kit(db={"timeout_ms": 600_000}, state=True) as kit:
        await kit.db.sql("CREATE TABLE t (a)")
        endless = asyncio.create_task(kit.db.sql(ENDLESS))
        waits = asyncio.create_task(kit.db.sql("INSERT INTO t VALUES (1)"))
        await asyncio.sleep(0.2)
        waits.cancel()
        endless.cancel()
        done = await asyncio.gather(endless, waits, return_exceptions=True)
        assert all(isinstance(one, asyncio.CancelledError) for one in done)
        # They would have had ten minutes.
        rows = await asyncio.wait_for(kit.db.sql("SELECT count(*) FROM t"), CEILING_S)
        assert rows["rows"] == [[0]]
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(kit.db.sql(ENDLESS), 0.1)
        assert await kit.state.get("k") is None


def test_functions_of_the_kit_can_be_given_to_the_host(runtime: Any) -> None:
    async def use(given: dict[str, Any]) -> list[Any]:
        rows = (await given["sql"]("SELECT 5"))["rows"]
        text = await given["atob"]("YQ==")
        with pytest.raises(SandboxError, match="more than 1 calls in one run") as refused:
            await given["get"]("k")
        return [rows, text, refused.value.name]

    with Kit(runtime=runtime, db=True, state=True, max_calls=1) as kit:
        source = "return await use({ sql: db.sql, atob, get: state.get })"
        result = kit.run_tool_sync(source, globals={"use": use})
        assert result.result == [[[5]], "a", "CallLimit"], result.error
        assert [(call.name, call.summary) for call in result.calls] == [("db.sql", "SELECT 5")]


class Echo(http.server.BaseHTTPRequestHandler):
    seen: ClassVar[list[Any]] = []

    def do_GET(self) -> None:
        self.seen.append(self.headers.get("authorization"))
        self.send_response(200)
        self.end_headers()
        self.wfile.write(str(self.headers.get("authorization")).encode())

    def log_message(self, *_: Any) -> None:
        pass


def test_fetch_reaches_what_is_allowed_with_its_secret(runtime: Any) -> None:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Echo)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    origin = f"http://127.0.0.1:{server.server_port}"
    fetch = {"allow": [f"{origin}/a*"], "allow_addresses": ["127.0.0.1"]}
    secrets = {"KEY": {"value": "hunter2hunter2", "hosts": [origin]}}
    try:
        with Kit(runtime=runtime, fetch=fetch, secrets=secrets) as kit:
            headers = "{ headers: { authorization: 'Bearer ' + secrets.KEY } }"
            echoed = value(kit, f"return await (await fetch('{origin}/a', {headers})).text()")
            assert echoed.startswith("Bearer sealed_KEY_")
            assert Echo.seen == ["Bearer hunter2hunter2"]
            blocked = kit.run_tool_sync(f"await fetch('{origin}/b')")
            assert blocked.error is not None
            assert blocked.error.name == "FetchBlocked"
    finally:
        server.shutdown()
        server.server_close()


def test_misuse_raises_before_anything_opens() -> None:
    cases: list[tuple[dict[str, Any], type[Exception], str]] = [
        ({"timeout_ms": 0}, ValueError, "timeout_ms"),
        ({"state": {"max_key_byte": 1}}, TypeError, "state.max_key_bytes"),
        ({"fetch": ["ftp://x"]}, TypeError, "fetch"),
        ({"fetch": {"allow": "public", "allow_addresses": ["10.0.0.1/8"]}}, TypeError, "allow_add"),
        ({"secrets": {"KEY": {"value": "hunter2hunter2"}}}, TypeError, "hosts"),
        ({"runtime": 1}, TypeError, "runtime"),
        ({"agent": 1}, TypeError, "agent"),
        ({"agent": "\ud800"}, TypeError, "^agent must be well-formed: it has a lone surrogate"),
        ({"file": "a\udc00"}, TypeError, "^file must be well-formed"),
        ({"nothing": 1}, TypeError, "nothing"),
    ]
    for options, kind, text in cases:
        with pytest.raises(kind, match=text):
            Kit(**options)
    with Kit() as kit:
        with pytest.raises(TypeError, match="args must be a plain object"):
            kit.run_tool_sync("1", args=[])  # type: ignore[arg-type]
        with pytest.raises(TypeError, match=r"args\.f"):
            kit.run_tool_sync("1", args={"f": object()})
        with pytest.raises(TypeError, match=r"globals\.setTimeout"):
            kit.run_tool_sync("1", globals={"setTimeout": 1})
        with pytest.raises(RuntimeError, match="this kit has no secrets"):
            kit.secrets.names()
        with pytest.raises(RuntimeError, match="this kit has no state"):
            kit.state.get_sync("a")
        with pytest.raises(RuntimeError, match="needs a running event loop"):
            kit.run_tool("1")


def test_files_stay_and_a_bad_one_is_named(tmp_path: pathlib.Path) -> None:
    bad = tmp_path / "bad.db"
    bad.write_text("this is no database, but a text that is long enough" * 30)
    with pytest.raises(RuntimeError, match=r"bad\.db"):
        Kit(file=bad, state=True)
    file = tmp_path / "agent.db"
    with Kit(file=file, state=True) as kit:
        kit.state.set_sync("k", 1)
    with Kit(file=file, state=True, db={"file": tmp_path / "data.db"}) as kit:
        assert kit.state.get_sync("k") == 1
    with Kit(file=file, agent="other", state=True) as kit:
        assert kit.state.get_sync("k") is None


def test_closing_ends_what_runs_and_refuses_what_comes(runtime: Any) -> None:
    async def main() -> None:
        kit = Kit(runtime=runtime, state=True)
        run = kit.run_tool("await new Promise((r) => setTimeout(r, 2e4))")
        session = kit.session()
        await session.run("1")
        kit.close()
        kit.close()
        result = await run
        assert result.error is not None
        assert (result.status, result.error.message) == ("terminated", "kit closed")
        for use in (lambda: kit.run_tool("1"), kit.session, lambda: session.run("1")):
            with pytest.raises(RuntimeError, match="closed"):
                use()
        for ask in (lambda: kit.state.get("a"), kit.describe, kit.proxy):
            with pytest.raises(RuntimeError, match="the kit is closed"):
                await ask()

    asyncio.run(main())


@in_loop
async def test_secrets_are_found_in_long_texts() -> None:
    secrets = {"KEY": {"value": "hunter2hunter2", "reveal": True}}
    source = """
        const text = '%41\\\\n'.repeat(2e5) + secrets.KEY;
        report(text); console.log(text);
        return text
    """
    reports: list[str] = []
    async with Kit(secrets=secrets, memory_limit_bytes=1 << 30) as kit:
        run = kit.run_tool(source, timeout_ms=300_000, report=reports.append)
        result = await run
    assert result.status == "success"
    assert all(
        text.endswith("[secret KEY]")
        for text in [result.result, reports[0], result.logs[0].args[0]]
    )
