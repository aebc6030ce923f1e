"""Counts of the contract table's cases that pytest ran and skipped.

In: the reports of the tests. Out: a line at the end, and the same in the file in the environment
variable ISOLANE_CONTRACT_COUNTS, which counts.mjs compares with the other runners' lines.
"""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest

from isolation import ISOLATION, install

# The table of the cases that a test belongs to.
COUNTED = {"run_python.py::test_case[": "contract", "run_sessions.py::test_case[": "sessions"}
# The words for a table in the file of counts.
RUNNERS = {"contract": "python", "sessions": "sessions of python"}

# This comes before any test imports a part of the package.
install()

_counts: dict[str, Counter[str]] = {}


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    table = next((table for name, table in COUNTED.items() if name in report.nodeid), None)
    if table is None:
        return
    counts = _counts.setdefault(table, Counter())
    if report.when == "call":
        counts["ran"] += 1
    elif report.when == "setup" and report.skipped:
        counts["skipped"] += 1


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if hasattr(terminalreporter.config, "workerinput"):
        # One of several processes: the one that started them has all the counts.
        return
    for table, numbers in _counts.items():
        counts = f"{numbers['ran']} ran, {numbers['skipped']} skipped"
        terminalreporter.write_line(f"{table}: {counts}")
        if path := os.environ.get("ISOLANE_CONTRACT_COUNTS"):
            where = " in processes" if ISOLATION == "process" else ""
            with Path(path).open("a", encoding="utf-8") as file:
                file.write(f"{RUNNERS[table]}{where}: {counts}\n")
