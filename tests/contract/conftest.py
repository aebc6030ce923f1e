"""How many cases of the contract table pytest ran, and how many were left out.

In: the reports of the tests. Out: a line at the end, and the same in the file that the environment
variable ISOLANE_CONTRACT_COUNTS names; counts.mjs compares it with those of the other runners.
"""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest

from isolation import ISOLATION, install

COUNTED = "run_python.py::test_case["

# Before any test imports something of the package.
install()

_counts: Counter[str] = Counter()


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if COUNTED not in report.nodeid:
        return
    if report.when == "call":
        _counts["ran"] += 1
    elif report.when == "setup" and report.skipped:
        _counts["skipped"] += 1


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if not _counts:
        return
    counts = f"{_counts['ran']} ran, {_counts['skipped']} skipped"
    terminalreporter.write_line(f"contract: {counts}")
    if path := os.environ.get("ISOLANE_CONTRACT_COUNTS"):
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(f"python{' in processes' if ISOLATION == 'process' else ''}: {counts}\n")
