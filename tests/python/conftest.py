"""Fixtures of all tests of the Python face, with a time limit for each test."""

from __future__ import annotations

import faulthandler
import os
from collections.abc import Generator

import isolane
import pytest

from isolation import install

# This comes before any test imports a part of the package.
install()

# Far more than any test takes. A test that hangs prints its stack and ends the process.
_CEILING_S = 300 * int(os.environ.get("ISOLANE_TEST_PATIENCE", "1"))


@pytest.fixture(autouse=True)
def _ceiling() -> Generator[None]:
    faulthandler.dump_traceback_later(_CEILING_S, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()


@pytest.fixture(scope="module")
def runtime() -> Generator[isolane.Runtime]:
    """One runtime for all tests of a file, so that a test sees the leftovers of the one before
    it."""
    with isolane.Runtime() as shared:
        yield shared
