"""Runs cases through Python: reads a line for each case and writes a line with its result.

The host is that of the contract table.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import isolane
from canonical import canonical, text

sys.path.insert(0, str(Path(__file__).parent.parent / "contract"))

from host_python import host_functions
from isolation import install
from tags_python import Values

install()

AT_ONCE = 8
# Values are written by recursion.
sys.setrecursionlimit(20_000)
SPELLED = {"memoryLimitBytes": "memory_limit_bytes"}


async def main() -> None:
    # A rejection that no one handled does not matter: its effect is in the outcome.
    asyncio.get_running_loop().set_exception_handler(lambda _, __: None)
    lines = iter(sys.stdin)
    await asyncio.gather(*(work(lines) for _ in range(AT_ONCE)))


async def work(lines: Iterator[str]) -> None:
    for line in lines:
        case = json.loads(line)
        try:
            fields = await outcome(case)
        except Exception as error:
            fields = {"harness": text(f"{type(error).__name__}: {error}")}
        print(record({"number": str(case["number"]), **fields}))


async def outcome(case: dict[str, Any]) -> dict[str, str | None]:
    handle: isolane.CodeExecution
    values = Values(host_functions(lambda: handle))
    options = {SPELLED.get(key, key): values.untag(said) for key, said in case["options"].items()}
    if options.get("report") is True:
        options["report"] = lambda _: isolane.undefined
    if case["modules"]:
        options["modules"] = case["modules"]
    handle = isolane.run_code(case["source"], **options)
    result = await handle
    logs = (f"[{text(log.level)},{canonical(log.args)}]" for log in result.logs)
    return {
        "status": text(result.status),
        "result": canonical(result.result) if result.status == "success" else None,
        "reports": f"[{','.join(map(canonical, result.reports))}]",
        "logs": f"[{','.join(logs)}]",
        "error": None if result.error is None else failure(result.error),
    }


def failure(error: isolane.CodeExecutionError) -> str:
    texts = {
        key: getattr(error, key) for key in ("name", "message", "stack", "specifier", "filename")
    }
    places = {key: getattr(error, key) for key in ("line", "column")}
    return record(
        {
            **{key: None if value is None else text(value) for key, value in texts.items()},
            **{key: None if value is None else str(value) for key, value in places.items()},
        }
    )


def record(fields: dict[str, str | None]) -> str:
    """An object of JSON texts, without the fields that have none."""
    return (
        "{" + ",".join(f'"{key}":{json}' for key, json in fields.items() if json is not None) + "}"
    )


asyncio.run(main())
