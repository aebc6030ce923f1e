"""Functions that are answered in Rust, handed over beside Python's own."""

import asyncio
from typing import Any

import isolane
from isolane._isolane import kit_function

ATOB, BTOA, DELAY = (kit_function(name) for name in ("atob", "btoa", "delay"))


def run(source: str, **globals: Any) -> Any:
    result = isolane.run_code_sync(source, globals=globals)
    assert result.status == "success", result.error
    return result.result


def test_they_answer_in_rust() -> None:
    source = """export default
        [btoa('abc'), atob(btoa('abc')), btoa.name, btoa('a') instanceof Promise]"""
    assert run(source, atob=ATOB, btoa=BTOA) == ["YWJj", "abc", "btoa", False]


def test_promises_are_awaited_beside_those_of_python() -> None:
    async def own(n: int) -> int:
        await asyncio.sleep(0)
        return n * 2

    source = """const p = delay(1);
        export default [p instanceof Promise, await p === undefined, await own(4), btoa('a')]"""
    assert run(source, delay=DELAY, own=own, btoa=BTOA) == [True, True, 8, "YQ=="]


def test_they_come_back_as_themselves_and_cross_in_answers() -> None:
    seen: list[object] = []
    source = """take(btoa); take([delay]);
        export default [give() === btoa, give()('a'), await (await later())(1)]"""

    async def later_function() -> object:
        return DELAY

    globals = {"take": seen.append, "give": lambda: BTOA, "btoa": BTOA, "delay": DELAY}
    assert run(source, later=later_function, **globals) == [True, "YQ==", None]
    assert seen == [BTOA, [DELAY]]


def test_one_that_is_handed_over_later_alone_works_too() -> None:
    assert run("export default give()('a')", give=lambda: BTOA) == "YQ=="


def test_errors_are_thrown_inside() -> None:
    source = "let name; try { atob('*') } catch (e) { name = e.name } export default name"
    assert run(source, atob=ATOB) == "InvalidCharacterError"


def test_a_wait_ends_with_its_run() -> None:
    async def terminated() -> isolane.CodeExecutionResult:
        begun = asyncio.Event()
        globals = {"delay": DELAY, "begun": begun.set}
        # Longer than a test may take.
        source = "const wait = delay(3_600_000); begun(); export default await wait"
        execution = isolane.run_code(source, globals=globals)
        await begun.wait()
        execution.terminate()
        return await execution

    assert asyncio.run(terminated()).status == "terminated"
