"""Judgements of measurements, each of which may be far off by chance.

In: a way to measure, and a bound. Out: nothing, or a failure if the median of five is not within.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable

TIMES = 5

SEEN: list[str] = []


def judge(what: str, measure: Callable[[], float], most: float) -> None:
    """Fails if the median of the measurements is more than `most`."""
    seen = [measure() for _ in range(TIMES)]
    line = f"{what}: {', '.join(f'{one:.4g}' for one in seen)} (at most {most:.4g} in the middle)"
    SEEN.append(line)
    assert statistics.median(seen) <= most, line
