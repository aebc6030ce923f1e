"""The first steps of a user of the wheel: a run with a host function, and a run in a process."""

import isolane

source = "export default [1, 2].map((n: number) => double(n))"
assert isolane.run_code_sync(source, globals={"double": lambda n: 2 * n}).result == [2, 4]
with isolane.Runtime(isolation="process") as runtime:
    assert runtime.run_code_sync("export default 1").result == 1
