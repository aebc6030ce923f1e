"""The first steps of a user of the wheel.

A run with a host function, a run in a process, a tool of a kit, and a model with an executor.
"""

import isolane
from isolane.executors import CodeLoop, IsolateCodeExecutor, ScriptedModel
from isolane.kit import Kit

source = "export default [1, 2].map((n: number) => double(n))"
assert isolane.run_code_sync(source, globals={"double": lambda n: 2 * n}).result == [2, 4]

with isolane.Runtime(isolation="process") as runtime:
    assert runtime.run_code_sync("export default 1").result == 1

with Kit(state=True) as kit:
    tool = "await state.set('n', args.n); return state.get('n')"
    assert kit.run_tool_sync(tool, args={"n": 42}).result == 42

model = ScriptedModel()
model.push_text("```ts\n40 + 2\n```")
model.push_text("It is 42.")
assert CodeLoop(model, IsolateCodeExecutor()).run_sync("Compute it.").text == "It is 42."
