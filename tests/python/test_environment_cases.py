"""The table of cases of the process service, through Python."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from isolane.environment import ProcessError, ProcessService, TypeScriptEnvironment

import isolation
from ceilings import in_loop

CRATE = Path(__file__).parent.parent.parent / "crates" / "environment"
CASES = json.loads((CRATE / "tests" / "cases" / "processes.json").read_text(encoding="utf8"))

# The fields of a step that are no call.
EXPECTED = {"gives", "fails", "force", "after"}

QUERY: dict[str, Any] = {
    "anyOf": [
        {
            "type": "object",
            "properties": {
                "and": {"type": "array", "items": {"$ref": "#/$defs/query"}},
                "eq": {"type": "number"},
            },
            "additionalProperties": False,
        }
        for _ in range(2)
    ]
}
NUMBERS = {"type": "array", "items": {"type": "number"}}


class RangeError(Exception):
    """Its name is that of a class of JavaScript, and so is the one of the error inside."""

    code = 404


def add_tools(service: ProcessService) -> None:
    def schema(**properties: Any) -> dict[str, Any]:
        return {"type": "object", "properties": properties, "required": list(properties)}

    def fail(_: Any, __: Any) -> None:
        raise RangeError("no such row")

    adds = {"description": "", "inputSchema": schema(numbers=NUMBERS)}
    service.tool("math", "add-all", adds, lambda args, _: sum(args["numbers"]))
    service.tool("math", "fail", {"description": ""}, fail)
    service.tool("shop", "echo", {"description": ""}, lambda args, _: args)
    finds = {**schema(query={"$ref": "#/$defs/query"}), "$defs": {"query": QUERY}}
    service.tool("shop", "find", {"description": "", "inputSchema": finds}, lambda _, __: "found")


def snake(name: str) -> str:
    return re.sub("[A-Z]", lambda letter: f"_{letter[0].lower()}", name)


def spelled(fields: dict[str, Any]) -> dict[str, Any]:
    return {snake(name): value for name, value in fields.items()}


async def call(service: ProcessService, name: str, given: Any, step: dict[str, Any]) -> Any:
    match name:
        case "create" | "list":
            return await getattr(service, name)(**spelled(given))
        case "ran":
            return await service.wait((await service.create(given))["pid"])
        case "run":
            return await service.run(given, force=step.get("force", False))
        case "events":
            events = service.events(given, after=step.get("after", 0))
            return [[event["event"], event["data"]] async for event in events]
        case _:
            return await getattr(service, name)(given)


async def play(service: ProcessService, step: dict[str, Any]) -> None:
    (name,) = step.keys() - EXPECTED
    if "fails" in step:
        with pytest.raises(ProcessError) as raised:
            await call(service, name, step[name], step)
        code, *message = step["fails"]
        expected = re.sub(r"\{(\w+)\}", lambda name: snake(name[1]), "".join(message))
        assert (raised.value.code, expected or str(raised.value)) == (code, str(raised.value)), step
        return
    answer = await call(service, name, step[name], step)
    if "gives" in step:
        assert fits(answer, step["gives"]), (step, answer)


def fits(value: Any, expected: Any) -> bool:
    """Whether a value is as expected; of an object only the fields that are expected count."""
    if isinstance(expected, list):
        return len(value) == len(expected) and all(map(fits, value, expected))
    if isinstance(expected, dict):
        return all(fits(value[name], item) for name, item in expected.items())
    if isinstance(expected, str) and expected.endswith("…"):
        return isinstance(value, str) and value.startswith(expected[:-1])
    return type(value) is type(expected) and value == expected


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_a_case_holds(case: dict[str, Any]) -> None:
    async def main() -> None:
        limit = case.get("limit")
        environment = TypeScriptEnvironment(runtime=isolation.Runtime(), memory_limit_bytes=limit)
        options = spelled(case.get("options", {}))
        async with ProcessService(environment=environment, **options) as service:
            if case.get("tools"):
                add_tools(service)
            for step in case["steps"]:
                await play(service, step)

    in_loop(main)()
