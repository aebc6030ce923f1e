"""What the measurements of the Python face saw, told at the end.

In: tests that judge the median of several measurements. Out: a line for each, also if it passed.
"""

from __future__ import annotations

import pytest

from isolation import install
from median import SEEN

# This comes before any test imports a part of the package.
install()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for line in SEEN:
        terminalreporter.write_line(line)
