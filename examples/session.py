"""A model at work in steps: a session over a year of support tickets.

One step loops for ever and is undone, and at last two forks try two ways, of which the better
one is kept.
"""

import asyncio
from pathlib import Path

import isolane

CSV = (Path(__file__).parent / "agent/data/tickets.csv").read_text(encoding="utf-8")

# The model's part is played here: each step is what it would write next.
STEPS = [
    r"""
    const rows = csv.trim().split('\n').slice(1);
    const tickets = rows.map((row) => ({ id: row.split(',')[0], customer: row.split(',')[3] }));
    tickets.length""",
    """
    const load = new Map<string, number>();
    for (const { customer } of tickets) load.set(customer, (load.get(customer) ?? 0) + 1);
    load.size""",
    """
    const queue = [...load];
    while (queue.length > 0) load.clear();""",
    "Math.max(...load.values())",
    """
    const teams = Array.from({ length: 7 }, () => ({ tickets: 0, customers: 0 }));
    function give(team: number, tickets: number) {
      teams[team].tickets += tickets;
      teams[team].customers += 1;
    }
    function unfairness() {
      const loads = teams.map((team) => team.tickets);
      return Math.max(...loads) - Math.min(...loads);
    }""",
]

WAYS = {
    "in turn": """
    [...load.values()].forEach((tickets, index) => give(index % teams.length, tickets));
    unfairness()""",
    "largest first": """
    for (const tickets of [...load.values()].sort((a, b) => b - a)) {
      const loads = teams.map((team) => team.tickets);
      give(loads.indexOf(Math.min(...loads)), tickets);
    }
    unfairness()""",
}


async def step(session: isolane.Session, code: str) -> None:
    """One step of the model, and what it is told of it."""
    result = await session.run(code, timeout_ms=500)
    if result.error is None:
        print(result.text or "done")
    else:
        print(f"{result.error.name}: {result.error.message} (the session is {result.session})")


async def main() -> None:
    async with isolane.Session(
        globals={"csv": CSV}, memory_limit_bytes=64 * 1024 * 1024
    ) as session:
        for code in STEPS:
            await step(session, code)
        tried = []
        for way, code in WAYS.items():
            fork = await session.fork()
            unfairness = (await fork.run(code)).result
            print(f"{way}: {unfairness} tickets between the teams")
            tried.append((unfairness, way, fork))
        _, way, fork = min(tried)
        print(f"Kept: {way}.", (await fork.run("teams[0]")).text)
        for _, _, fork in tried:
            await fork.aclose()
        assert way == "largest first"


asyncio.run(main())
