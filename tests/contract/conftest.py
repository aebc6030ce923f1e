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

COUNTED = "run_python.py::test_case["

# This comes before any test imports a part of the package.
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
