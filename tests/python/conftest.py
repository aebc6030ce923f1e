"""What all tests of the Python face share: a ceiling over each of them."""

from __future__ import annotations

import faulthandler
import os
from collections.abc import Generator

import isolane
import pytest

from isolation import install

# Before any test imports something of the package.
install()

# Far above what any test takes; a test that hangs says where, and ends everything.
_CEILING_S = 120 * int(os.environ.get("ISOLANE_TEST_PATIENCE", "1"))


@pytest.fixture(autouse=True)
def _ceiling() -> Generator[None]:
    faulthandler.dump_traceback_later(_CEILING_S, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()


@pytest.fixture(scope="module")
def runtime() -> Generator[isolane.Runtime]:
    """One runtime for all tests of a file: what one leaves behind, the next would find."""
    with isolane.Runtime() as shared:
        yield shared
