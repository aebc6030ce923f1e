"""Tools of the host: five capabilities over the data in `data/`, and nothing else.

Sandbox code may call them any number of times with any values. So each checks its arguments, and
the expensive ones have a budget. They answer after some milliseconds, as services do.
"""

from __future__ import annotations

import asyncio
import csv
import re
from pathlib import Path
from typing import Any

from isolane import SandboxError

DATA = Path(__file__).parent / "data"
PAGE_SIZE = 250
SEARCHES = 20

EUROS = {"EUR": 1, "USD": 0.92, "GBP": 1.18, "SEK": 0.089, "PLN": 0.23, "JPY": 0.0062}

ARTICLES = [
    {"title": "Where is my parcel?", "topics": ["delivery"], "views": 12_400},
    {"title": "Your parcel was left with a neighbour", "topics": ["delivery"], "views": 3_100},
    {"title": "Sending something back", "topics": ["returns", "warranty"], "views": 9_800},
    {"title": "When refunds arrive", "topics": ["returns", "billing"], "views": 15_250},
    {"title": "Why you were charged twice", "topics": ["billing"], "views": 2_050},
    {"title": "What the warranty covers", "topics": ["warranty"], "views": 4_700},
]


class RebuildingError(Exception):
    """A part of the index is unavailable."""

    code = "INDEX_REBUILDING"


class Tools:
    """The tools of one run. Each run has its own set, because it has its own budgets."""

    def __init__(self) -> None:
        self._tickets = read_csv("tickets")
        self._customers = {customer["id"]: customer for customer in read_csv("customers")}
        self._pages = -(-len(self._tickets) // PAGE_SIZE)
        self._searches = 0

    def modules(self) -> dict[str, dict[str, Any]]:
        """The bridged modules, by specifier."""
        return {
            "tickets": {"list": self.list_tickets},
            "customers": {"get": self.customer},
            "rates": {"convert": convert},
            "kb": {"search": self.search},
        }

    async def list_tickets(self, options: Any = None) -> dict[str, Any]:
        page = options.get("page") if isinstance(options, dict) else None
        if not isinstance(page, int) or not 1 <= page <= self._pages:
            message = f"page must be a whole number from 1 to {self._pages}"
            raise SandboxError("RangeError", message)
        await asyncio.sleep(0.025)
        rows = self._tickets[(page - 1) * PAGE_SIZE : page * PAGE_SIZE]
        return {"page": page, "pages": self._pages, "total": len(self._tickets), "rows": rows}

    async def customer(self, number: Any) -> dict[str, str] | None:
        if not isinstance(number, str) or not re.fullmatch(r"C\d{4}", number):
            raise TypeError(f"not a customer id: {number!r}")
        await asyncio.sleep(0.005)
        return self._customers.get(number)

    async def search(self, query: Any) -> list[dict[str, Any]]:
        if not isinstance(query, str) or len(query) > 200:
            raise TypeError("query must be a short text")
        self._searches += 1
        if self._searches > SEARCHES:
            raise RuntimeError(f"no more than {SEARCHES} searches a run")
        await asyncio.sleep(0.02)
        if query == "account":
            raise RebuildingError("this part of the index is being rebuilt")
        return [article for article in ARTICLES if query in article["topics"]]  # type: ignore[operator]


def convert(amount: Any, currency: Any) -> float:
    """A synchronous host function is synchronous in the sandbox: no await needed."""
    if isinstance(amount, bool) or not isinstance(amount, (int, float)):
        raise TypeError("amount must be a finite number")
    if currency not in EUROS:
        raise SandboxError("RangeError", f"no rate for {currency!r}")
    return amount * EUROS[currency]


def read_csv(name: str) -> list[dict[str, str]]:
    """The rows of `data/NAME.csv`."""
    with (DATA / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))
