"""The cases of the loop, which the runners of all languages share, with models and executors of
Python."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from isolane.executors import (
    CodeExecutionInput,
    CodeExecutionResult,
    CodeLoop,
    ExecutorError,
    InvocationContext,
    LoopResult,
)

from ceilings import CEILING_S

CASES = Path(__file__).parents[2] / "crates/executors/tests/cases/loop.json"

cases: list[dict[str, Any]] = json.loads(CASES.read_text())


def snake(name: str) -> str:
    return re.sub("[A-Z]", lambda letter: "_" + letter.group().lower(), name)


class CaseModel:
    def __init__(self, replies: list[dict[str, Any]]) -> None:
        self.replies = list(replies)
        self.requests: list[dict[str, Any]] = []

    async def generate(self, *, instruction: str, contents: list[dict[str, Any]]) -> Any:
        self.requests.append({"instruction": instruction, "contents": contents})
        reply = self.replies.pop(0)
        if "hang" in reply:
            await asyncio.Event().wait()
        if "stream" in reply:
            return self.stream(reply)
        if "error" in reply:
            raise RuntimeError(reply["error"])
        return reply.get("parts", reply.get("text"))

    async def stream(self, reply: dict[str, Any]) -> AsyncIterator[Any]:
        for part in reply["stream"]:
            await asyncio.sleep(0)
            yield part
        if "error" in reply:
            raise RuntimeError(reply["error"])


class CaseExecutor:
    def __init__(self, settings: dict[str, Any]) -> None:
        self.calls = list(settings["calls"])
        self.stateful = settings.get("stateful", False)
        self.error_retry_attempts = settings.get("attempts", 2)
        self.timeout_ms = settings.get("timeoutMs", 30_000)
        self.inputs: list[dict[str, Any]] = []

    async def execute_code(
        self, ctx: InvocationContext, input: CodeExecutionInput, /
    ) -> CodeExecutionResult:
        self.inputs.append({**input.to_json(), "turn": ctx.turn, "attempt": ctx.attempt})
        call = self.calls.pop(0)
        for stream, data in call.get("live", []):
            receive = ctx.stdout if stream == "stdout" else ctx.stderr
            assert receive is not None
            receive(data.encode() if isinstance(data, str) else bytes(data))
        if "takesMs" in call:
            await asyncio.sleep(call["takesMs"] / 1000)
        if "hang" in call:
            await asyncio.Event().wait()
        if "panics" in call:
            raise RuntimeError("a bug")
        if "error" in call:
            raise ExecutorError(call["error"]["kind"], call["error"].get("message", ""))
        return CodeExecutionResult.from_json(call["result"])


def plain_event(event: dict[str, Any]) -> dict[str, Any]:
    plain = dict(event)
    if plain["type"] == "result":
        assert isinstance(plain.pop("duration_ms"), float)
        plain["result"] = plain["result"].to_json()
    return plain


def plain_result(result: LoopResult | None) -> dict[str, Any] | None:
    if result is None:
        return None
    return {
        "reason": result.reason,
        "text": result.text,
        "files": [file.to_json() for file in result.files],
        "turns": result.turns,
    }


async def outcome(case: dict[str, Any]) -> dict[str, Any]:
    model, executor = CaseModel(case["model"]), CaseExecutor(case["executor"])
    options = {snake(name): value for name, value in case.get("options", {}).items()}
    try:
        stream = CodeLoop(model, executor, **options).stream(case.get("input", "go"))
    except (TypeError, ValueError) as error:
        return {"misuse": str(error)}
    cancel_at = case.get("cancel")
    if cancel_at == 0:
        stream.cancel()
    events: list[dict[str, Any]] = []
    error_text = None
    try:
        async for event in stream:
            events.append(plain_event(dict(event)))
            if cancel_at == len(events):
                stream.cancel()
    except RuntimeError as error:
        error_text = str(error)
    result = stream.result
    return {
        "events": events,
        "result": plain_result(result),
        "contents": None if result is None else result.contents,
        "error": error_text,
        "inputs": executor.inputs,
        "requests": model.requests,
    }


def joined(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Events in which outputs that follow one another are one: how many there are is a matter of
    time."""
    result: list[dict[str, Any]] = []
    for event in events:
        last = result[-1] if result else {}
        if event["type"] == "output" and {**last, "text": ""} == {**event, "text": ""}:
            result[-1] = {**last, "text": last["text"] + event["text"]}
        else:
            result.append(event)
    return result


def expected_part(actual: Any, expected: Any) -> Any:
    """The parts of an outcome that a case expects."""
    if not isinstance(expected, dict):
        return actual
    parts = {}
    for name, wanted in expected.items():
        had = actual.get(name)
        if name in ("inputs", "requests") and isinstance(had, list):
            had = [
                expected_part(one, wanted[index]) if index < len(wanted) else one
                for index, one in enumerate(had)
            ]
        parts[name] = had
    return parts


# Python has other names for options, and refuses those that it does not know.
MISUSE = {
    "an unknown option is refused": "CodeLoop() got an unexpected keyword argument",
    "no turns at all are refused": "max_turns must be a whole number of at least 1, got 0",
    "a form that is none is refused": "as_text must be 'auto' or a boolean, got a string",
}


def test_there_are_cases() -> None:
    assert len(cases) >= 118
    assert {case["name"] for case in cases} > MISUSE.keys()


@pytest.mark.parametrize("case", cases, ids=[case["name"] for case in cases])
def test_case(case: dict[str, Any]) -> None:
    actual = asyncio.run(asyncio.wait_for(outcome(case), CEILING_S))
    if case["name"] in MISUSE:
        assert actual["misuse"].startswith(MISUSE[case["name"]])
        return
    expected = case["expect"]
    assert expected
    if "events" in expected:
        expected = {**expected, "events": joined(expected["events"])}
        actual["events"] = joined(actual["events"])
    assert expected_part(actual, expected) == expected


@pytest.mark.parametrize("length", [1, 3])
def test_the_pieces_of_a_stream_make_no_difference(length: int) -> None:
    async def main() -> int:
        count = 0
        for case in cases:
            if "cancel" in case or "hang" in json.dumps(case["executor"]["calls"]):
                continue
            replies = []
            for reply in case["model"]:
                text = reply.get("text")
                if text and isinstance(text, str):
                    pieces = [text[at : at + length] for at in range(0, len(text), length)]
                    replies.append({"stream": pieces})
                else:
                    replies.append(reply)
            if replies == case["model"]:
                continue
            whole = await outcome(case)
            streamed = await outcome({**case, "model": replies})
            for field in ("contents", "result", "inputs"):
                assert streamed.get(field) == whole.get(field), case["name"]
            count += 1
        return count

    assert asyncio.run(main()) > 30
