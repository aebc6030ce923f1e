"""Ways to run something that may hang: in an event loop, or in a process of its own.

In: a coroutine function, or the text of a program. Out: its result, or a failure after its time
limit. A hazard (a signal, a fork, the end of an interpreter) always gets a process of its own.
"""

from __future__ import annotations

import asyncio
import functools
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import pytest

from isolation import ISOLATION

P = ParamSpec("P")
T = TypeVar("T")

# Far more than anything here takes, beside other programs too. Builds with a sanitizer are slow and
# set this variable.
PATIENCE = int(os.environ.get("ISOLANE_TEST_PATIENCE", "1"))
CEILING_S = 120.0 * PATIENCE


_CONTRACT = str(Path(__file__).parent.parent / "contract")


def new_uvloop() -> asyncio.AbstractEventLoop:
    """A loop of uvloop; skips the test where that is not installed."""
    uvloop = pytest.importorskip("uvloop")
    loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    return loop


LOOPS = [
    pytest.param(asyncio.new_event_loop, id="asyncio"),
    pytest.param(new_uvloop, id="uvloop"),
]


def run_in(loop: asyncio.AbstractEventLoop, main: Coroutine[Any, Any, T]) -> T:
    """Runs a coroutine in a loop, with a time limit, and closes the loop."""
    try:
        return loop.run_until_complete(asyncio.wait_for(main, CEILING_S))
    finally:
        loop.close()


def in_loop(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """A test that is a coroutine function, run in a loop of its own."""

    @functools.wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        async def main() -> None:
            await asyncio.wait_for(test(*args, **kwargs), CEILING_S)

        asyncio.run(main())

    return run


def run_program(source: str, *args: str, ceiling_s: float = CEILING_S) -> list[str]:
    """The lines that a program prints. It must exit by itself, with code 0 and without any output
    on its standard error."""
    if ISOLATION != "thread":
        source = f"import isolation; isolation.install()\n{textwrap.dedent(source)}"
    return _run("-c", textwrap.dedent(source), *args, ceiling_s=ceiling_s)


def run_file(path: Path, *args: str, ceiling_s: float = CEILING_S) -> list[str]:
    """As `run_program`, for a program whose children import it."""
    return _run(str(path), *args, ceiling_s=ceiling_s)


def _run(*command: str, ceiling_s: float) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-W", "default", "-X", "faulthandler", *command],
        env={**os.environ, "PYTHONPATH": _CONTRACT},
        capture_output=True,
        text=True,
        timeout=ceiling_s,
        check=False,
    )
    if done.returncode != 0 or done.stderr:
        pytest.fail(f"ended with {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done.stdout.splitlines()


async def until(holds: Callable[[], bool]) -> None:
    """Gives the loop turns until something holds, for which there is no event."""
    deadline = asyncio.get_running_loop().time() + CEILING_S
    while not holds():
        assert asyncio.get_running_loop().time() < deadline
        await asyncio.sleep(0)
