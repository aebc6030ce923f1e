"""The official client of the Model Context Protocol for Python, with ``isolane mcp`` of Python.

In: the interpreter that has the package, as the only argument. Out: a line for each step, and a
traceback at the first that is not as it must be. The client of this version speaks the newest
revision, without a handshake, and with ``legacy`` the one before.
"""

import asyncio
import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

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


ORDERS = """
import { list_orders } from 'shop';
const { result } = await list_orders({ customer: 'ada', least: 10 });
const failed = await list_orders({ customer: 'bob' }).catch(({ message }) => message);
return [result, failed];
"""
CANCEL = "import { cancel_order } from 'shop'; return (await cancel_order({ id: 1 })).result"


async def use_tools(client: Client) -> None:
    """Code mode: the tools of a server of the same library."""
    revision = client.protocol_version
    assert [tool.name for tool in (await client.list_tools()).tools] == [*NAMES, "describe_tools"]
    orders = (await client.call_tool("run_code", {"code": ORDERS})).structured_content["result"]
    assert orders[0] == [{"id": 1, "total": 20}], orders
    assert "list_orders" in orders[1], orders
    print(f"python: {revision}: code imports the tools of a server", flush=True)
    # This client has no elicitation.
    asked = (await client.call_tool("run_code", {"code": CANCEL})).structured_content
    assert '{ "shop.cancel_order": "allow" }' in asked["error"]["message"], asked
    print(f"python: {revision}: a call that nobody can approve throws", flush=True)


async def main() -> None:
    shop = {"command": sys.executable, "args": [str(Path(__file__).parent / "server.py")]}
    with TemporaryDirectory() as folder:
        config = Path(folder) / "tools.json"
        config.write_text(json.dumps({"mcpServers": {"shop": shop}}))
        for flags, tried in (([], use), (["--config", str(config)], use_tools)):
            arguments = ["-m", "isolane", "mcp", *flags]
            server = StdioServerParameters(command=sys.argv[1], args=arguments)
            for mode in ("auto", "legacy"):
                async with Client(server, mode=mode) as client:
                    await tried(client)


asyncio.run(asyncio.wait_for(main(), 120))
