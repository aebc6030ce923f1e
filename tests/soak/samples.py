"""What a process holds: sampled when none of its runs is alive, and judged flat or not.

In: how many runs there have been. Out: lines of a table, and what has grown. Memory is flat when
the least of the last quarter is not above the most of the second by more than its tolerance: the
allocators keep freed pages in heaps of their threads, and give them out in another order each time.
"""

from __future__ import annotations

import gc
import os
import sys
import time
from pathlib import Path

MIB = 2**20
TOLERANCE = {"rss": 32.0, "heap": 4.0, "fds": 0.0}
"""MiB, but for the last: a hundred threads keep a quarter of one each of their stacks."""

HEADER = "    runs      s   RSS MiB  objects k  threads  fds"


def threads() -> int:
    return len(os.listdir("/proc/self/task"))


class Samples:
    def __init__(self) -> None:
        self.rows: list[dict[str, float]] = []
        self._started = time.perf_counter()

    def take(self, runs: int, cache_bytes: int = 0) -> str:
        gc.collect()
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        row = {
            "runs": runs,
            "seconds": time.perf_counter() - self._started,
            "rss": pages * 4096 / MIB,
            # Compiled code that is kept, up to a bound that short soaks do not reach.
            "cache": cache_bytes / MIB,
            # What the interpreter itself holds, in thousands of blocks.
            "heap": sys.getallocatedblocks() / 1e3,
            "threads": threads(),
            # One of them is the folder being read.
            "fds": len(os.listdir("/proc/self/fd")) - 1,
        }
        self.rows.append(row)
        return (
            f"{runs:8} {row['seconds']:6.0f} {row['rss']:9.1f} {row['heap']:10.1f}"
            f" {row['threads']:8.0f} {row['fds']:4.0f}"
        )

    def grown(self) -> list[str]:
        """What the last quarter holds and the second did not. Threads come and go by seconds: how
        many there are at the end is looked at there."""
        quarter = len(self.rows) // 4
        found = []
        for what, tolerance in TOLERANCE.items():
            held = [row[what] - (row["cache"] if what == "rss" else 0) for row in self.rows]
            before, after = max(held[quarter : 2 * quarter]), min(held[-quarter:])
            if after > before + tolerance:
                found.append(f"{what}: from {before:.1f} to {after:.1f}")
        return found
