"""The first steps of a user of the wheel.

A run with a host function, a run in a process, a tool of a kit, a model with an executor, a
notebook, and a process that a client posts over HTTP.
"""

import asyncio
import json
import subprocess
import sys
import urllib.request
from pathlib import Path

import isolane
from isolane.environment import ProcessService
from isolane.executors import CodeLoop, IsolateCodeExecutor, ScriptedModel
from isolane.kit import Kit
from isolane.notebook import Notebook

source = "export default [1, 2].map((n: number) => double(n))"
assert isolane.run_code_sync(source, globals={"double": lambda n: 2 * n}).result == [2, 4]

with isolane.Runtime(isolation="process") as runtime:
    assert runtime.run_code_sync("export default 1").result == 1

with Kit(state=True) as kit:
    tool = "await state.set('n', args.n); return state.get('n')"
    assert kit.run_tool_sync(tool, args={"n": 42}).result == 42

program = Path(sys.executable).with_name("isolane")
command = [program, "run", "-", "--isolation", "process"]
assert subprocess.check_output(command, input=b"export default 42") == b"42\n"

model = ScriptedModel()
model.push_text("```ts\n40 + 2\n```")
model.push_text("It is 42.")
assert CodeLoop(model, IsolateCodeExecutor()).run_sync("Compute it.").text == "It is 42."

# A container may be a machine that cannot confine Python.
with Notebook(py={"isolation": "none"}) as notebook:
    cells = [{"language": "py", "code": "n = 20\nn + 1"}, {"language": "js", "code": "20 + 1"}]
    result = notebook.execute_sync({"cells": cells})
    assert [cell["output"] for cell in result.details["cells"]] == ["21", "21"], result.text


def post(url: str, code: str) -> dict[str, object]:
    body, headers = json.dumps({"code": code}).encode(), {"content-type": "application/json"}
    with urllib.request.urlopen(
        urllib.request.Request(f"{url}/processes?wait=60000", body, headers)
    ) as answer:
        return json.load(answer)


async def serve() -> None:
    async with ProcessService() as service, await service.listen(port=0) as server:
        record = await asyncio.to_thread(post, server.url, "return 6 * 7")
        assert record["output"] == {"result": 42}, record


asyncio.run(serve())
