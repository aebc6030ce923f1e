"""The package with the isolation that ISOLANE_ISOLATION names, `thread` or `process`, for tests
that hold for both.

In: the environment. Out: after `install`, which conftest.py and programs call, the exports of
`isolane` make runs and runtimes of that isolation.
"""

from __future__ import annotations

import os
from typing import Any

import isolane

ISOLATION = os.environ.get("ISOLANE_ISOLATION", "thread")

_Runtime = isolane.Runtime
#: The default runtime of each process: a forked child makes its own.
_shared: dict[int, isolane.Runtime] = {}


class Runtime(_Runtime):
    def __init__(self, **options: Any) -> None:
        super().__init__(**{"isolation": ISOLATION, **options})


def install() -> None:
    if ISOLATION == "thread":
        return

    def run_code(*args: Any, **options: Any) -> isolane.CodeExecution:
        return _default().run_code(*args, **options)

    def run_code_sync(*args: Any, **options: Any) -> isolane.CodeExecutionResult:
        return _default().run_code_sync(*args, **options)

    def session(*args: Any, **options: Any) -> isolane.Session:
        return _default().session(*args, **options)

    vars(isolane).update(
        Runtime=Runtime, Session=session, run_code=run_code, run_code_sync=run_code_sync
    )


def _default() -> isolane.Runtime:
    here = os.getpid()
    if here not in _shared:
        _shared[here] = Runtime()
    return _shared[here]
