"""Memory of a process: sampled when none of its runs is alive, and judged flat or not.

In: the number of runs so far. Out: lines of a table, and the values that have grown. Memory is flat
when the minimum of the last quarter exceeds the maximum of the second by no more than its
tolerance: the allocators keep freed pages in heaps of their threads, and reuse them in another
order each time.
"""

from __future__ import annotations

import gc
import os
import sys
import time
from pathlib import Path

MIB = 2**20
TOLERANCE = {"rss": 32.0, "heap": 4.0, "fds": 0.0}
"""MiB, except for the last. A hundred threads keep a quarter of a MiB each of their stacks."""

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
            # Compiled code in the cache, up to a limit that short soaks do not reach.
            "cache": cache_bytes / MIB,
            # Blocks of the interpreter itself, in thousands.
            "heap": sys.getallocatedblocks() / 1e3,
            "threads": threads(),
            # One of them is the open folder.
            "fds": len(os.listdir("/proc/self/fd")) - 1,
        }
        self.rows.append(row)
        return (
            f"{runs:8} {row['seconds']:6.0f} {row['rss']:9.1f} {row['heap']:10.1f}"
            f" {row['threads']:8.0f} {row['fds']:4.0f}"
        )

    def grown(self) -> list[str]:
        """The values that the last quarter exceeds. Threads start and end within seconds, so their
        number is checked at the end."""
        quarter = len(self.rows) // 4
        found = []
        for what, tolerance in TOLERANCE.items():
            held = [row[what] - (row["cache"] if what == "rss" else 0) for row in self.rows]
            before, after = max(held[quarter : 2 * quarter]), min(held[-quarter:])
            if after > before + tolerance:
                found.append(f"{what}: from {before:.1f} to {after:.1f}")
        return found
