"""The official client of the Model Context Protocol for Python, with ``isolane mcp`` of Python.

In: the interpreter that has the package, as the only argument. Out: a line for each step, and a
traceback at the first that is not as it must be. The client of this version speaks the newest
revision, without a handshake, and with ``legacy`` the one before.
"""

import asyncio
import sys

from mcp import Client, StdioServerParameters

NAMES = ["run_code", "run_cell", "list_names", "reset_session"]


async def use(client: Client) -> None:
    revision = client.protocol_version
    assert [tool.name for tool in (await client.list_tools()).tools] == NAMES
    run = await client.call_tool("run_code", {"code": "console.log('a'); [1.5, 2n]"})
    assert (run.content[0].text, run.is_error) == ("a\n[ 1.5, 2n ]", False)
    assert run.structured_content["result"] == [1.5, {"$bigint": "2"}]
    failed = await client.call_tool("run_code", {"code": "null.x"})
    assert failed.is_error
    assert failed.content[0].text.startswith("TypeError: ")
    print(f"python: {revision}: run_code answers", flush=True)

    await client.call_tool("run_cell", {"session": "a", "code": "let n = 1"})
    begun = asyncio.Event()

    async def progress(_progress: float, _total: float | None, message: str | None) -> None:
        assert message == "begun"
        begun.set()

    code = "n = 2; report('begun'); for (;;);"
    arguments = {"session": "a", "code": code}
    endless = asyncio.create_task(
        client.call_tool("run_cell", arguments, progress_callback=progress)
    )
    await begun.wait()
    endless.cancel()
    await asyncio.gather(endless, return_exceptions=True)
    after = await client.call_tool("run_cell", {"session": "a", "code": "n"})
    assert after.structured_content["result"] == 1, after
    names = await client.call_tool("list_names", {"session": "a"})
    assert names.structured_content["names"] == [{"name": "n", "kind": "let", "type": "number"}]
    await client.call_tool("reset_session", {"session": "a"})
    print(f"python: {revision}: a cell that is canceled is undone, progress is told", flush=True)


async def main() -> None:
    server = StdioServerParameters(command=sys.argv[1], args=["-m", "isolane", "mcp"])
    for mode in ("auto", "legacy"):
        async with Client(server, mode=mode) as client:
            await use(client)


asyncio.run(asyncio.wait_for(main(), 120))
