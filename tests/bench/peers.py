"""Costs of sessions beside those of Monty, a sandbox for a part of Python, from Python.

In: `--quick` for few samples, and the package of `peers/requirements.txt`. Out: a table in
Markdown. Monty keeps a session in a worker process and cannot undo a cell; so its reference is a
session of isolane in a process, then one on threads. A ratio above 1 is in isolane's favour.
"""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import isolane
from python import Bench


class Pair(Bench):
    """Measures the same acts in Monty and in isolane."""

    def beside(self, pool: Any, runtime: isolane.Runtime, reference: str) -> None:
        def monty() -> AbstractContextManager[Any]:
            checkout: AbstractContextManager[Any] = pool.checkout()
            return checkout

        ours, peers = self.both(
            lambda _: first(runtime.session), lambda _: first(monty, "feed_run")
        )
        what = "Monty: a session with its first cell, `1 + 1`, and its end"
        self.row(what, peers, reference, ours)
        with runtime.session() as session, monty() as repl:
            check(session.run_sync("let x = 1; x"), 1)
            check(repl.feed_run("x = 1\nx"), 1)
            ours, peers = self.both(
                lambda _: check(session.run_sync("x + 1"), 2),
                lambda _: check(repl.feed_run("x + 1"), 2),
            )
            self.row("Monty: a later cell, `x + 1`", peers, reference, ours)
            ours, peers = self.both(
                lambda count: check(session.run_sync(f"x + {count}"), 1 + count),
                lambda count: check(repl.feed_run(f"x + {count}"), 1 + count),
            )
            self.row("Monty: a later cell, never seen", peers, reference, ours)

    def both(
        self, ours: Callable[[int], object], peers: Callable[[int], object]
    ) -> tuple[float, float]:
        return self.time_sync(ours), self.time_sync(peers)


def first(open_session: Callable[[], AbstractContextManager[Any]], run: str = "run_sync") -> None:
    with open_session() as session:
        check(getattr(session, run)("1 + 1"), 2)


def check(value: object, expected: object) -> None:
    found = getattr(value, "result", value)
    if found != expected:
        raise RuntimeError(f"{value} instead of {expected}")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    bench = Pair(parser.parse_args().quick)
    monty = importlib.import_module("pydantic_monty")
    with monty.Monty() as pool:
        with isolane.Runtime(isolation="process") as runtime:
            bench.beside(pool, runtime, "isolane, in a process")
        with isolane.Runtime() as runtime:
            bench.beside(pool, runtime, "isolane, on threads")
    head = "| what | figure | reference | figure | ratio |\n|---|--:|---|--:|--:|\n"
    print("### Sessions beside another sandbox, from Python\n")
    print(head + "\n".join(bench.rows) + "\n")


if __name__ == "__main__":
    main()
