"""Checks of the demo's results.

The host computes the agent's numbers again from the CSV itself, in another way than the agent and
without its code or that of the tools. Positions are looked up in the sources.
"""

from __future__ import annotations

import csv
import statistics
from collections import Counter, defaultdict
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from isolane import CodeExecutionResult

DATA = Path(__file__).parent / "data"
EUROS = {"EUR": 1.0, "USD": 0.92, "GBP": 1.18, "SEK": 0.089, "PLN": 0.23, "JPY": 0.0062}


def differences(answer: Any, top: int) -> list[str]:
    """The differences between the agent's answer and the host's own; empty if there are none."""
    own = compute()
    own["lines"] = sorted(own["lines"], key=lambda line: -line["refunded"])[:top]
    return compare("answer", answer, own)


def outcome_differences(
    result: CodeExecutionResult, expected: dict[str, Any], sources: dict[str, str]
) -> list[str]:
    """The differences between a failed run and its expected outcome; its position must lie in the
    text `at`."""
    error = result.error
    if error is None:
        return ["there is no error"]
    wrong = compare("status", result.status, expected["status"])
    if "name" in expected:
        wrong += compare("error.name", error.name, expected["name"])
    if result.result is not None:
        wrong.append("there is a result")
    if "at" not in expected:
        return wrong
    file, text = expected["at"]
    wrong += compare("error.filename", error.filename, file)
    line = sources[file].split("\n")[(error.line or 1) - 1]
    start = utf16(line[: line.find(text)]) if text in line else -1
    if not 0 <= start < (error.column or 0) <= start + utf16(text):
        wrong.append(f"position: {file}:{error.line}:{error.column} is not in {text!r}")
    return wrong


def utf16(text: str) -> int:
    """The length of a text in UTF-16 code units, in which columns are counted."""
    return len(text.encode("utf-16-le")) // 2


def compute() -> dict[str, Any]:
    segments = {row[0]: row[1] for row in records("customers")}
    flaws: Counter[str] = Counter()
    groups: defaultdict[str, list[tuple[float, float | None, bool]]] = defaultdict(list)
    seen: set[str] = set()
    rows, latest = 0, ""
    for number, opened, closed, customer, kind, _, _, amount, currency, *_ in records("tickets"):
        rows += 1
        flaw = flaw_of(number in seen, opened, closed, segments.get(customer), amount, currency)
        seen.add(number)
        if flaw is not None:
            flaws[flaw] += 1
            continue
        euros = float(amount.replace(",", "")) * EUROS[currency] if amount else 0.0
        hours = (parse(closed) - parse(opened)).total_seconds() / 3600 if closed else None
        groups[kind.lower().strip()].append((euros, hours, segments[customer] != "consumer"))
        # Such dates sort as texts.
        latest = max(latest, opened)
    return {
        "rows": rows,
        "used": sum(map(len, groups.values())),
        "flaws": dict(flaws),
        "lines": [line_of(category, group) for category, group in groups.items()],
        "refunded": sum(euros for group in groups.values() for euros, _, _ in group),
        "latest": parse(latest),
    }


def line_of(category: str, group: list[tuple[float, float | None, bool]]) -> dict[str, Any]:
    hours = [hours for _, hours, _ in group if hours is not None]
    return {
        "category": category,
        "tickets": len(group),
        "open": len(group) - len(hours),
        "medianHours": statistics.median(hours),
        "refunded": sum(euros for euros, _, _ in group),
        "fromBusinesses": sum(euros for euros, _, business in group if business),
    }


def flaw_of(
    again: bool, opened: str, closed: str, segment: str | None, amount: str, currency: str
) -> str | None:
    if again:
        return "twice"
    if "/" in opened or (closed and closed < opened):
        return "odd date"
    if amount in ("n/a", "pending", "12,50"):
        return "no amount"
    if segment is None:
        return "no such customer"
    if amount and currency not in EUROS:
        return "no such currency"
    return None


def parse(text: str) -> datetime:
    parsed = datetime.fromisoformat(text.replace("Z", "+00:00"))
    return parsed if parsed.tzinfo else parsed.replace(tzinfo=timezone.utc)


def records(name: str) -> list[list[str]]:
    """The fields of each line except the first."""
    with (DATA / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file))[1:]


def compare(path: str, got: Any, wanted: Any) -> list[str]:
    """The differences between `got` and `wanted`: numbers by more than a cent, other values at all.
    Ignores further keys."""
    if isinstance(wanted, float):
        near = isinstance(got, (int, float)) and abs(got - wanted) < 0.01
        return [] if near else [f"{path}: {got} instead of {wanted}"]
    if isinstance(wanted, dict) and isinstance(got, dict):
        return [
            wrong for key in wanted for wrong in compare(f"{path}.{key}", got.get(key), wanted[key])
        ]
    if isinstance(wanted, list) and isinstance(got, list) and len(got) == len(wanted):
        pairs = enumerate(zip(got, wanted, strict=True))
        return [wrong for at, pair in pairs for wrong in compare(f"{path}[{at}]", *pair)]
    return [] if got == wanted else [f"{path}: {got!r} instead of {wanted!r}"]
