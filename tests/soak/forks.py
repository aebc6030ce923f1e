"""Processes that are forked beside live runs.

In: `--rounds`, `--seed`. Out: figures, and a non-zero exit code if a run here or in a child had a
wrong result, if a child did not exit properly, or if one left something behind here.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import threading
import time
import warnings
from pathlib import Path

import isolane
from mix import KINDS, Case, Random, pick, random
from samples import threads

sys.path.insert(0, str(Path(__file__).parent.parent / "contract"))

from isolation import install

install()

# Forking beside threads is the subject of this soak.
warnings.filterwarnings("ignore", category=DeprecationWarning)

RUNS_HERE, RUNS_THERE, THREADS = 20, 5, 4
CHILD_S = 60.0
WRONG = 3
"""The exit code of a child whose run had a wrong result."""


def plain(seed: int, n: int) -> tuple[Case, Random]:
    """The run with that number, or the next one that runs undisturbed."""
    while True:
        kind, following = pick(seed, n)
        if not {"drop", "close"} & KINDS[kind].keys():
            return Case(kind, n, following), following
        n += 1_000_003


async def run(case: Case, following: Random) -> str:
    case.handle = isolane.run_code(case.source, **case.options)
    if case.fields.get("terminate") == "at once":
        case.terminate()
    elif case.fields.get("terminate") == "soon":
        asyncio.get_running_loop().call_later(following() * 0.03, case.terminate)
    problem = case.check(await case.handle)
    return f"{case.name} ({case.n}): {problem}" if problem else ""


def child(seed: int, n: int) -> int:
    """Some runs in a process that was just forked; returns its exit code."""

    async def together() -> list[str]:
        return await asyncio.gather(*(run(*plain(seed, n + i)) for i in range(RUNS_THERE)))

    wrong = [problem for problem in asyncio.run(together()) if problem]
    sync = isolane.run_code_sync("export default f(1)", globals={"f": lambda x: x})
    if sync.result != 1:
        wrong.append(f"{sync}")
    for problem in wrong:
        print(f"  in a child: {problem}", flush=True)
    return WRONG if wrong else 0


async def beside_a_loop(seed: int, n: int) -> list[str]:
    """A fork in the middle of a loop that has live runs; the child ends by `os._exit`."""
    live = [asyncio.ensure_future(run(*plain(seed, n + i))) for i in range(RUNS_HERE)]
    await asyncio.sleep(random(n)() * 0.01)
    pid = os.fork()
    if pid == 0:
        asyncio._set_running_loop(None)
        os._exit(child(seed, n))
    wrong = [problem for problem in await asyncio.gather(*live) if problem]
    return wrong + await asyncio.to_thread(wait_for, pid)


def beside_threads(seed: int, n: int) -> list[str]:
    """A fork beside threads that have live runs; the child ends by `sys.exit`."""
    cases = [plain(seed, n + i)[0] for i in range(RUNS_HERE)]
    cases = [case for case in cases if not case.needs_loop]

    wrong: list[str] = []

    def some(share: list[Case]) -> None:
        for case in share:
            problem = case.check(isolane.run_code_sync(case.source, **case.options))
            if problem:
                wrong.append(f"{case.name} ({case.n}): {problem}")

    live = [threading.Thread(target=some, args=(cases[i::THREADS],)) for i in range(THREADS)]
    for thread in live:
        thread.start()
    time.sleep(random(n)() * 0.01)
    pid = os.fork()
    if pid == 0:
        sys.exit(child(seed, n))
    for thread in live:
        thread.join()
    return wrong + wait_for(pid)


def wait_for(pid: int) -> list[str]:
    deadline = time.monotonic() + CHILD_S
    while time.monotonic() < deadline:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            code = os.waitstatus_to_exitcode(status)
            return [f"a child ended with {code}"] if code else []
        time.sleep(0.005)
    os.kill(pid, 9)
    os.waitpid(pid, 0)
    return ["a child that did not end"]


def soak(rounds: int, seed: int) -> int:
    wrong: list[str] = []
    for index in range(rounds):
        n = index * 1_000
        wrong += beside_threads(seed, n) if index % 2 else asyncio.run(beside_a_loop(seed, n))
    print(f"forks: {rounds}; threads: {threads()}; wrong: {len(wrong)}")
    for line in wrong[:20]:
        print(f"  {line}")
    return 1 if wrong else 0


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    return soak(options.rounds, options.seed)


if __name__ == "__main__":
    sys.exit(main())
