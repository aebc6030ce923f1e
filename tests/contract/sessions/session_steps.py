"""Acts of the host between and during the cells of a case, in Python.

In: a stage and a step as README.md lists them. Out: nothing, or an exception that says what
differs.
"""

from __future__ import annotations

import asyncio
import dataclasses
import time
from collections.abc import Awaitable
from typing import Any

import isolane

from compare_python import mismatch, mismatch_of_some
from host_python import Error, turn
from run_python import expect_misuse
from session_cases import Json
from session_stage import Stage
from tags_python import Values

# The time in which a count of a runtime has to show what has just settled.
STATS_S = 60


async def take(stage: Stage, step: dict[str, Json]) -> None:
    """Carries out a step."""
    session = await stage.session(step.get("in", "main"))
    later = step.get("later", False)
    match step:
        case {"update": update}:
            update_session(stage, session, update, step.get("misuse"))
        case {"names": _, "refused": refused}:
            await check(stage, expect_rejection(session.names(), refused), later)
        case {"names": names}:
            await check(stage, expect_names(session.names(), names), later)
        case {"fork": _, "refused": refused}:
            await check(stage, expect_rejection(session.fork(), refused), later)
        case {"fork": name}:
            copy = session.fork()
            stage.add(name, copy if later else await copy)
        case {"reset": True}:
            await session.reset()
        case {"close": True}:
            await session.aclose()
        case {"closeRuntime": True}:
            assert stage.runtime is not None
            await stage.runtime.aclose()
        case {"asked": key}:
            await stage.asked(key).arrived.wait()
        case {"answer": key, "error": message}:
            stage.asked(key).answer.set_exception(Error(message))
            await turn()
        case {"answer": key}:
            value = Values({}).untag(step.get("with", {"$undefined": True}))
            stage.asked(key).answer.set_result(value)
            await turn()
        case {"callKept": args, "rejects": rejects}:
            await check(stage, expect_rejection(call_kept(stage, args), rejects), later)
        case {"callKept": args, "gives": gives}:
            await check(stage, expect_value(call_kept(stage, args), gives), later)
        case {"turns": count}:
            for _ in range(count):
                await turn()
        case {"stats": stats}:
            await expect_stats(stage, stats)
        case {"terminateLate": reason, "cell": name}:
            # No turn of the event loop passes, so the loop has not learned of the end.
            assert stage.runtime is not None
            while not any(stage.runtime.stats().settled.values()):
                time.sleep(0.001)  # noqa: ASYNC251
            stage.cells[name].terminate(Values({}).untag(reason))
        case _:
            await take_on_cell(stage.cells[step["cell"]], step)


async def take_on_cell(cell: isolane.CellExecution, step: dict[str, Json]) -> None:
    """Carries out a step that concerns a cell."""
    match step:
        case {"terminate": None}:
            cell.terminate()
        case {"terminate": reason}:
            cell.terminate(Values({}).untag(reason))
        case {"reports": count}:
            # Only the handle reports this, at a read.
            while cell.running and len(cell.reports) < count:  # noqa: ASYNC110
                await asyncio.sleep(0.001)
            assert len(cell.reports) >= count, "the cell settled before that many reports"
        case {"expectReports": reports}:
            assert (why := mismatch(cell.reports, reports, "cell.reports")) is None, why
        case {"expectRunning": running}:
            assert cell.running is running
        case _:
            raise ValueError(f"unknown step {step}")


async def finish(stage: Stage) -> None:
    """Waits for the checks that were left for the end."""
    for left in stage.later:
        await left


async def check(stage: Stage, checking: Awaitable[None], later: bool) -> None:
    """Carries out a check now, or begins it and leaves it for the end."""
    begun = asyncio.ensure_future(checking)
    if later:
        stage.later.append(begun)
        await turn()
    else:
        await begun


def update_session(
    stage: Stage, session: isolane.Session, update: Json, misuse: Json | None
) -> None:
    removed = [
        (part, name)
        for part, names in update.items()
        for name, said in names.items()
        if isinstance(said, dict) and "$remove" in said
    ]
    kept = {
        part: {name: said for name, said in names.items() if (part, name) not in removed}
        for part, names in update.items()
    }
    values = Values(stage.functions).untag(kept)
    for part, name in removed:
        values[part][name] = None
    if misuse is None:
        session.update(**values)
    else:
        expect_misuse(misuse, lambda: session.update(**values))


async def call_kept(stage: Stage, args: list[Json]) -> Any:
    return await stage.functions["callKept"](*Values(stage.functions).untag(args))


async def expect_names(names: Awaitable[list[isolane.SessionName]], expected: Json) -> None:
    shown = [dataclasses.asdict(name) for name in await names]
    for name in shown:
        if name["size"] is None:
            del name["size"]
    assert (why := mismatch(shown, expected, "names")) is None, why


async def expect_value(called: Awaitable[Any], gives: Json) -> None:
    why = mismatch(await called, gives, "the result of the function")
    assert why is None, why


async def expect_rejection(called: Awaitable[Any], expected: Json) -> None:
    try:
        value = await called
    except Exception as raised:
        name = getattr(raised, "name", type(raised).__name__)
        message = getattr(raised, "message", str(raised))
        why = mismatch_of_some({"name": name, "message": message}, expected, "rejection")
        assert why is None, why
    else:
        raise AssertionError(f"no rejection, but {value!r}")


async def expect_stats(stage: Stage, expected: dict[str, Json]) -> None:
    assert stage.runtime is not None
    until = time.monotonic() + STATS_S
    while True:
        shown = dataclasses.asdict(stage.runtime.stats())
        why = mismatch_of_some(shown, expected, "stats")
        if why is None or time.monotonic() > until:
            break
        await asyncio.sleep(0.001)
    assert why is None, why
