"""The demo: programs as a model writes them, run with exactly the tools that the host hands over.

The first program works through a year of support tickets. Six others fail, each in another way.
Exits with a non-zero code if a result differs from the intended one.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time
from pathlib import Path
from typing import Any

import check
import isolane
import show
from tools import Tools

PROGRAMS = Path(__file__).parent / "programs"
MEMORY = 64 * 1024 * 1024
TOP = 7

FAILING: list[dict[str, Any]] = [
    {
        "title": "A syntax error",
        "file": "syntax-error.ts",
        "expect": {
            "status": "link_error",
            "name": "SyntaxError",
            "at": ("syntax-error.ts", "open;"),
        },
    },
    {
        "title": "An import that nobody handed over",
        "file": "missing-import.ts",
        "expect": {"status": "link_error", "at": ("missing-import.ts", "'lodash'")},
    },
    {
        "title": "A tool that does not exist",
        "file": "missing-export.ts",
        "expect": {"status": "link_error", "at": ("missing-export.ts", "close")},
    },
    {
        "title": "An error thrown three modules down",
        "file": "thrown-error.ts",
        "modules": ["lib/review.ts", "lib/policy.ts", "lib/limits.ts"],
        "expect": {"status": "error", "name": "RangeError", "at": ("lib/limits.ts", "RangeError")},
    },
    {
        "title": "More memory than the limit of 64 MiB",
        "file": "memory-bomb.ts",
        "expect": {"status": "memory"},
    },
    {
        "title": "A loop without end and a budget of 200 ms",
        "file": "endless-loop.ts",
        "budget_s": 0.2,
        "expect": {"status": "terminated", "name": "Terminated"},
    },
]


async def main() -> int:
    failures = await agent()
    for case in FAILING:
        failures += await fail(**case)
    show.heading(
        f"{failures} came out otherwise than intended."
        if failures
        else "Everything came out as intended."
    )
    return min(failures, 1)


async def agent() -> int:
    """The agent at work: reports arrive while it runs."""
    show.heading("An agent program over 4,000 support tickets")
    sources = read("", ["triage.ts", "lib/clean.ts", "lib/stats.ts"])
    begun = time.perf_counter()
    live = 0

    def report(value: Any) -> None:
        nonlocal live
        show.report(time.perf_counter() - begun, value)
        live += run.running and len(run.reports) == live + 1

    run = isolane.run_code(
        sources["triage.ts"],
        filename="triage.ts",
        modules=with_keys(sources, ["lib/clean.ts", "lib/stats.ts"]),
        imports=Tools().modules(),
        execute={"fn": "triage", "args": [{"top": TOP}]},
        memory_limit_bytes=MEMORY,
        report=report,
    )
    result = await within(run, 30)
    if result.status != "success":
        show.failure(result, sources)
        return conclude([f"status: {result.status} instead of success"])

    answer = result.result
    columns = {
        "category": "category",
        "tickets": "tickets",
        "open": "open",
        "median hours": "medianHours",
        "refunded €": "refunded",
        "businesses €": "fromBusinesses",
        "best article": "article",
    }
    show.heading("Its answer")
    show.table(answer["lines"], columns)
    used, rows = show.shown(answer["used"]), show.shown(answer["rows"])
    refunded, latest = show.shown(answer["refunded"]), answer["latest"].date()
    show.note(f"{used} of {rows} rows used, € {refunded} refunded, the last opened on {latest}")
    flaws = ", ".join(f"{count} {flaw}" for flaw, count in answer["flaws"].items())
    show.note(f"left out: {flaws}")
    show.heading("Its console")
    show.logs(result.logs)
    show.cost(result)
    wrong = check.differences(answer, TOP)
    if live == 0 or live != len(result.reports):
        wrong.append(f"{live} of {len(result.reports)} reports came while it ran")
    return conclude(wrong)


async def fail(
    title: str,
    file: str,
    expect: dict[str, Any],
    modules: list[str] | None = None,
    budget_s: float = 10,
) -> int:
    """A program that fails, with the same tools and limits."""
    show.heading(title)
    sources = read("failing/", [file, *(modules or [])])
    run = isolane.run_code(
        sources[file],
        filename=file,
        modules=with_keys(sources, modules or []),
        imports=Tools().modules(),
        memory_limit_bytes=MEMORY,
    )
    result = await within(run, budget_s)
    show.failure(result, sources)
    show.cost(result)
    return conclude(check.outcome_differences(result, expect, sources))


async def within(run: isolane.CodeExecution, budget_s: float) -> isolane.CodeExecutionResult:
    """The result of a run, which is terminated when its time is over."""
    with contextlib.suppress(asyncio.TimeoutError):
        await asyncio.wait_for(run, budget_s)
    return await run


def read(folder: str, paths: list[str]) -> dict[str, str]:
    """Sources that the model wrote, by path."""
    return {path: (PROGRAMS / folder / path).read_text(encoding="utf-8") for path in paths}


def with_keys(sources: dict[str, str], paths: list[str]) -> dict[str, str]:
    """The sources that are modules, under the keys by which imports find them."""
    return {f"./{path}": sources[path] for path in paths}


def conclude(wrong: list[str]) -> int:
    show.verdict(wrong)
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
