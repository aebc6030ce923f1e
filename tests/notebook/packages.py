"""Cells with numpy, pandas, matplotlib and Pillow in a kernel of Python.

In: the interpreter that has the packages. Out: a line for each step; an exception at the first that
fails. The kernel is confined where this machine can do that, and the first line tells.
"""

from __future__ import annotations

import asyncio
import base64
import sys
from collections.abc import Callable
from typing import Any

from isolane.notebook import CallResult, Notebook, PyOptions, Update

PNG = b"\x89PNG\r\n\x1a\n"
SECONDS = 120

IMPORTS = "import numpy as np, pandas as pd\nfrom matplotlib import pyplot as plt"
TABLE = "rows = pd.DataFrame({'name': ['tea', 'rice'], 'n': [2, 40]}); rows"
FIGURE = "plt.plot(np.arange(9) ** 2); plt.title('squares');"
PICTURE = "from PIL import Image\nImage.new('RGB', (40, 20), 'teal')"
PRINTED = "Image.new('CMYK', (4, 4))"
EXACT = "Image.new('F', (4, 4))"
SCALARS = "{'sum': rows.n.sum(), 'any': np.bool_(True), 'half': np.float32(.5)}"
MOMENT = "from datetime import datetime\ntool.echo(at=pd.Timestamp('2020-01-01'))['at']"
SINGULAR = "def solve(size):\n    return np.linalg.inv(np.zeros((size, size)))\nsolve(2)"
POOL = """from concurrent.futures import ThreadPoolExecutor
def total(number):
    print(f'{number} ', end='')
    return int(np.full(1000, number).sum())
with ThreadPoolExecutor(4) as pool:
    totals = list(pool.map(total, range(8)))
print()
totals"""
PROCESS = """import subprocess, sys
code = 'import numpy, sys; print(numpy.arange(3).sum()); print("to stderr", file=sys.stderr)'
subprocess.run([sys.executable, '-c', code], check=True).returncode"""
FORKS = """from concurrent.futures import ProcessPoolExecutor
import multiprocessing
def square(number):
    return int(np.square(number))
with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context('fork')) as pool:
    squares = list(pool.map(square, range(4)))
squares"""
SORTS = """many = np.random.default_rng(7).random(4_000_000)
print('begun')
while True: np.sort(many)"""
SORT = "print('begun')\nmany = np.sort(np.random.default_rng(7).random(60_000_000))"


def run(notebook: Notebook, code: str) -> CallResult:
    cell = {"language": "py", "code": code, "timeout": SECONDS}
    return notebook.execute_sync({"cells": [cell]})


def outputs(result: CallResult) -> list[dict[str, Any]]:
    assert not result.is_error, result.text
    found: list[dict[str, Any]] = result.details["cells"][0]["outputs"]
    return found


def ended(notebook: Notebook, code: str) -> CallResult:
    """The result of a cell that is ended once it has printed `begun`."""

    async def main() -> CallResult:
        begun = asyncio.Event()

        def on_update(update: Update) -> None:
            if "begun" in update.content[0]["text"]:
                begun.set()

        cell = {"language": "py", "code": code, "timeout": SECONDS}
        execution = notebook.execute({"cells": [cell]}, on_update=on_update)
        await begun.wait()
        execution.terminate("enough")
        result: CallResult = await execution
        return result

    return asyncio.run(main())


def table(notebook: Notebook) -> None:
    (shown,) = outputs(run(notebook, TABLE))
    assert shown["type"] == "markdown", shown
    assert "| 1 | rice | 40 |" in shown["text"], shown
    assert outputs(run(notebook, "rows.n.sum()"))[0]["text"] == "np.int64(42)"


def figures(notebook: Notebook) -> None:
    for code in (FIGURE, PICTURE, PRINTED, EXACT):
        (shown,) = outputs(run(notebook, code))
        assert (shown["type"], shown["mime_type"]) == ("image", "image/png"), shown
        assert base64.b64decode(shown["data"]).startswith(PNG)


def values(notebook: Notebook) -> None:
    (shown,) = outputs(run(notebook, SCALARS))
    assert shown == {"type": "json", "value": {"sum": 42, "any": True, "half": 0.5}}
    (shown,) = outputs(run(notebook, MOMENT))
    assert shown["text"].startswith("datetime.datetime(2020, 1, 1"), shown


def exceptions(notebook: Notebook) -> None:
    result = run(notebook, SINGULAR)
    (cell,) = result.details["cells"]
    assert cell["error"]["name"] == "LinAlgError", cell["error"]
    assert "Singular matrix" in result.text, result.text
    assert "return np.linalg.inv(np.zeros((size, size)))" in result.text, result.text
    assert outputs(run(notebook, "rows.shape")) == [{"type": "json", "value": [2, 2]}]


def pools(notebook: Notebook) -> None:
    *printed, value = outputs(run(notebook, POOL))
    assert value == {"type": "json", "value": [1000 * number for number in range(8)]}
    text = "".join(part["text"] for part in printed)
    assert sorted(text.split()) == [str(number) for number in range(8)], text


def processes(notebook: Notebook) -> None:
    streams = [(part.get("name"), part["text"]) for part in outputs(run(notebook, PROCESS))]
    assert ("stdout", "3") in streams, streams
    assert ("stderr", "to stderr") in streams, streams
    assert outputs(run(notebook, FORKS)) == [{"type": "json", "value": [0, 1, 4, 9]}]


def interrupts(notebook: Notebook) -> None:
    result = ended(notebook, SORTS)
    assert "Python was interrupted; its state is kept." in result.text, result.text
    assert outputs(run(notebook, "len(many)"))[0]["text"] == "4000000"


def kills(notebook: Notebook) -> None:
    result = ended(notebook, SORT)
    assert "Python did not react and was killed; its state was lost." in result.text, result.text
    assert outputs(run(notebook, "'many' in globals()"))[0]["text"] == "False"


STEPS: list[Callable[[Notebook], None]] = [
    table,
    figures,
    values,
    exceptions,
    pools,
    processes,
    interrupts,
]


def main(interpreter: str) -> None:
    py: PyOptions = {"interpreter": interpreter, "interrupt_grace_ms": 60_000}
    with Notebook(py=py) as probe:
        backend = probe.available_sync()["py"]
    if not backend["ok"]:
        print(f"not confined: {backend['reason']}")
        py["isolation"] = "none"
    with Notebook(py=py, tools={"echo": lambda args: args}) as notebook:
        print(f"packages ok, {len(outputs(run(notebook, IMPORTS)))} outputs")
        for step in STEPS:
            step(notebook)
            print(f"{step.__name__} ok")
    py["interrupt_grace_ms"] = 1
    with Notebook(py=py) as notebook:
        outputs(run(notebook, IMPORTS))
        kills(notebook)
        print("kills ok")


main(sys.argv[1])
