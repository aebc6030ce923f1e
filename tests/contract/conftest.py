"""How many cases of the contract table pytest ran, and how many were left out.

In: the reports of the tests. Out: a line at the end.
"""

from __future__ import annotations

from collections import Counter

import pytest

COUNTED = "run_python.py::test_case["

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
