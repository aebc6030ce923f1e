"""The mix of runs: the inputs, the treatment and the expected result of each kind.

In: `mix.json`, which `mix.mjs` reads too, a seed and the number of a run. Out: the run's source and
options, made anew for it, and a check of its result. `README.md` explains the fields.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import isolane

KINDS: list[dict[str, Any]] = json.loads(Path(__file__).with_name("mix.json").read_text())
TOTAL = sum(kind["weight"] for kind in KINDS)
ROWS = [{"id": n, "text": "x" * (n % 60), "more": [1.5, True, None]} for n in range(1_000)]
SOON_S = 0.03

Random = Callable[[], float]
"""Numbers from 0 to 1."""


def random(seed: int) -> Random:
    """Random numbers that depend on the seed alone; `mix.mjs` has the same."""
    state = seed & 0xFFFFFFFF

    def following() -> float:
        nonlocal state
        state = (state + 0x6D2B79F5) & 0xFFFFFFFF
        mixed = ((state ^ (state >> 15)) * (state | 1)) & 0xFFFFFFFF
        mixed ^= (mixed + (mixed ^ (mixed >> 7)) * (mixed | 61)) & 0xFFFFFFFF
        return (mixed ^ (mixed >> 14)) / 2**32

    return following


def pick(seed: int, n: int) -> tuple[int, Random]:
    """Run number `n` of that seed: its kind, and the times of events during it."""
    following = random(seed * 0x9E3779B1 + n)
    place = following() * TOTAL
    for kind, fields in enumerate(KINDS):
        place -= fields["weight"]
        if place < 0:
            return kind, following
    raise AssertionError("a number below one")


class Case:
    """One run, and its host's notes about it."""

    def __init__(self, kind: int, n: int, following: Random) -> None:
        fields = _filled(kind, n)
        self.name: str = fields["name"]
        self.n = n
        self.following = following
        self.fields = fields
        self.source: str = fields["source"]
        # A forbidden event that the host saw.
        self.wrong = ""
        self.over = False
        self.handle: isolane.CodeExecution | None = None
        self.options: dict[str, Any] = {}
        self._reported: list[Any] = []
        for field, option in (
            ("execute", "execute"),
            ("modules", "modules"),
            ("memory", "memory_limit_bytes"),
        ):
            if field in fields:
                self.options[option] = fields[field]
        if "imports" in fields:
            imports = fields["imports"].items()
            self.options["imports"] = {key: self._functions(names) for key, names in imports}
        bound = self._functions(fields.get("functions", []))
        if fields.get("rows"):
            bound["rows"] = ROWS
        if bound:
            self.options["globals"] = bound
        if "report" in fields:
            self.options["report"] = self._alive("the sink", _sink(fields["report"]))

    @property
    def needs_loop(self) -> bool:
        """Whether the host does something to the run while it is running."""
        return bool({"terminate", "drop", "close"} & self.fields.keys())

    def check(self, result: isolane.CodeExecutionResult) -> str:
        """The differences of a result from the expected one, or nothing."""
        self.over = True
        fields = self.fields
        expected = fields.get("status", "success")
        statuses = expected if isinstance(expected, list) else [expected]
        error = result.error
        if result.status not in statuses:
            return f"status {result.status} ({error}), not {statuses}"
        if result.status == "success":
            value = fields["result"]
            if value is not None and result.result != (ROWS if value == "rows" else value):
                return f"the result {str(result.result)[:200]}"
        else:
            ended = ["Terminated", f"enough {self.n}"]
            otherwise = ended if result.status == "terminated" else [None, None]
            name, message = fields.get("error", otherwise)
            assert error is not None, "a run that did not succeed says why"
            same_name = name is None or error.name == name
            if not same_name or not error.message.startswith(message or ""):
                return f"the error {error.name}: {error.message}"
        logs, reports = fields.get("logs", 0), fields.get("reports", [])
        if logs is not None and len(result.logs) != logs:
            return f"{len(result.logs)} logs"
        if reports is not None and result.reports != reports:
            return f"the reports {result.reports}"
        if "report" in fields and len(self._reported) > len(result.reports):
            return "a report that is not in the result"
        return self.wrong

    def terminate(self) -> None:
        assert self.handle is not None, "only a run with a handle is ended"
        self.handle.terminate(f"enough {self.n}")

    def _functions(self, names: list[str]) -> dict[str, Any]:
        return {name: self._alive(name, HOST[name]) for name in names}

    def _alive(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """A host function that notes when it is called after its run has settled."""

        def call(*args: Any) -> Any:
            if self.over:
                self.wrong = f"{name} was called after the end"
            return function(self, *args)

        return call


def _sink(what: str) -> Callable[..., Any]:
    def sink(case: Case, value: Any) -> int:
        case._reported.append(value)
        if what == "throw":
            raise isolane.SandboxError("Error", "the sink is full")
        return len(case._reported)

    return sink


def _fail(_: Case, message: str) -> None:
    raise ValueError(message)


async def _later(_: Case, value: Any) -> Any:
    return value


async def _late(case: Case, value: Any) -> Any:
    await asyncio.sleep(case.following() * SOON_S)
    return value


def _never(_case: Case, _value: Any) -> asyncio.Future[Any]:
    return asyncio.get_running_loop().create_future()


async def _twice(_: Case, function: Callable[..., Any], value: Any) -> Any:
    await function(0)
    return await function(value)


def _stop_later(case: Case, value: Any) -> Any:
    asyncio.get_running_loop().call_soon(case.terminate)
    return value


def _after(case: Case) -> None:
    case.wrong = "it went on after it was told to end"


HOST: dict[str, Callable[..., Any]] = {
    "add": lambda _, a, b: a + b,
    "same": lambda _, value: value,
    "fail": _fail,
    "later": _later,
    "late": _late,
    "never": _never,
    "twice": _twice,
    "stop": lambda case, _: case.terminate(),
    "stopLater": _stop_later,
    "after": _after,
}
"""The functions that programs of the mix may call."""

_TEXTS = [json.dumps(kind) for kind in KINDS]


def _filled(kind: int, n: int) -> dict[str, Any]:
    text = _TEXTS[kind]
    for mark, number in (("$n", n), ("$m", n + 1)):
        text = text.replace(f'"{mark}"', str(number)).replace(mark, str(number))
    filled: dict[str, Any] = json.loads(text)
    return filled
