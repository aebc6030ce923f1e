"""The contract table of sessions, run through the Python face.

In: the tables next to this file. Out: one test per case, and at the end the numbers of cases that
ran and of those that were skipped (conftest.py of the folder above). CONTRACT=text runs the cases
whose file and heading contain the text.
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from compare_python import mismatch_of_some
from run_python import errors_mismatch, expect_misuse, in_python, record
from session_cases import Case, Cell, Result, Steps, cases
from session_stage import Stage
from session_steps import finish, take

# Builds with a sanitizer are slow and set this variable.
CEILING_S = 60 * int(os.environ.get("ISOLANE_TEST_PATIENCE", "1"))
WANTED = os.environ.get("CONTRACT", "")
ALL = [case for case in cases(Path(__file__).parent) if WANTED in f"{case.file} {case.heading}"]


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(
            case,
            id=f"{case.file}::{case.heading}",
            marks=[pytest.mark.skip(why)] if (why := case.skip.get("python")) else [],
        )
        for case in ALL
    ],
)
def test_case(case: Case) -> None:
    asyncio.run(asyncio.wait_for(check(case), CEILING_S))


async def check(case: Case) -> None:
    """Plays all acts of a case in their order."""
    complaints: list[object] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: complaints.append(context))
    stage = Stage(case)
    try:
        if case.misuse is not None:
            expect_misuse(case.misuse, stage.open)
            return
        stage.open()
        for act in case.acts:
            await play(stage, act)
        await finish(stage)
    finally:
        await stage.clear()
    assert complaints == [], "the loop was told of exceptions that nobody took"


async def play(stage: Stage, act: Cell | Steps | Result) -> None:
    match act:
        case Steps(steps):
            for step in steps:
                await take(stage, step)
        case Result(of, expected):
            expect_result(await stage.cells[of], expected)
        case Cell():
            session = await stage.session(act.options.get("in", "main"))
            if act.misuse is not None:
                expect_misuse(act.misuse, lambda: stage.start(session, act))
                return
            cell = stage.start(session, act)
            if "as" not in act.options:
                expect_result(await cell, act.result or {})
                assert cell.running is False


def expect_result(result: Any, given: dict[str, Any]) -> None:
    """Compares the keys that are given. Left out, the status is `success`, the session `kept`."""
    expected = {"status": "success", "session": "kept", **given}
    error = expected.pop("error", {})
    actual = record(result)
    if result.uncloned is not None:
        # There is no result then, although the cell succeeded.
        assert actual.pop("result") is None
    said = {in_python(key): value for key, value in expected.items()}
    why = mismatch_of_some(actual, said, "outcome") or errors_mismatch(result, error)
    assert why is None, f"{why}\nin {result!r:.3000}"
    assert (result.error is None) == (result.status == "success")
