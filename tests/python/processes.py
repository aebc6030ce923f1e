"""Processes of this system, read from /proc.

In: the number of a process. Out: its descendants. A number may be reused, so a process is
identified by its number and its start time.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Known:
    pid: int
    parent: int
    began: int


def descendants(host: int) -> list[Known]:
    """Launchers, zygotes and workers below a host."""
    everyone = _processes()
    below: list[Known] = []
    parents = {host}
    while parents:
        children = [one for one in everyone if one.parent in parents]
        below += children
        parents = {one.pid for one in children}
    return below


def workers_of(host: int) -> list[Known]:
    """The workers among them: processes that the children of a host's children have forked."""
    below = descendants(host)
    of_host = {one.pid for one in below if one.parent == host}
    zygotes = {one.pid for one in below if one.parent in of_host}
    return [one for one in below if one.parent in zygotes]


def alive(some: list[Known]) -> list[Known]:
    """Those of them that still exist, with any parent."""
    now = {(one.pid, one.began) for one in _processes()}
    return [one for one in some if (one.pid, one.began) in now]


def until(holds: Callable[[], bool], ceiling_s: float = 60) -> None:
    deadline = time.monotonic() + ceiling_s
    while not holds():
        assert time.monotonic() < deadline, f"not in {ceiling_s} s"
        time.sleep(0.005)


def _processes() -> list[Known]:
    """All processes that have not ended. A process that was not waited for yet holds nothing any
    more."""
    found = []
    # Not with `glob("[0-9]*/stat")`, which fails on a process that ends meanwhile.
    for process in Path("/proc").iterdir():
        if not process.name.isdigit():
            continue
        try:
            # The name, in parentheses, may contain any characters.
            stat = (process / "stat").read_text(errors="replace")
        except (FileNotFoundError, ProcessLookupError):
            continue
        fields = stat.rpartition(") ")[2].split(" ")
        if fields[0] not in "ZX":
            found.append(Known(int(process.name), int(fields[1]), int(fields[19])))
    return found
