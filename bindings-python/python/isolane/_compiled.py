"""The compiled part of the package, if it is there.

In: nothing. Out: an error that says how to get the module `_isolane`, if it cannot be loaded.
"""

import os

_FILE = os.path.join(os.path.dirname(__file__), "_isolane.abi3.so")
_HEAD_BYTES = 64
_ELF_OF_64_BITS = b"\x7fELF\x02\x01"
"""The first bytes of a library of Linux whose numbers have the low byte first."""


def _load() -> None:
    lacking = _lacking()
    if lacking is not None:
        from ._load_failure import cut_off

        raise cut_off(_FILE, *lacking)
    try:
        from . import _isolane  # noqa: F401
    except ImportError as error:
        from ._load_failure import explained

        told = explained(error)
        if told is None:
            raise
        raise told from told.__cause__


def _lacking() -> tuple[int, int] | None:
    """The bytes of a library that was cut off, and those that it should have. The loader of Linux
    maps such a file, and the process then ends by SIGBUS without a word."""
    try:
        with open(_FILE, "rb") as file:
            head = file.read(_HEAD_BYTES)
            size = os.fstat(file.fileno()).st_size
    except OSError:
        # The loader tells why.
        return None
    if len(head) < _HEAD_BYTES or not head.startswith(_ELF_OF_64_BITS):
        return None
    # The table of sections is the end of the file: its place, and the size and number of its rows.
    table = int.from_bytes(head[40:48], "little")
    row, rows = int.from_bytes(head[58:60], "little"), int.from_bytes(head[60:62], "little")
    whole = table + row * rows
    return (size, whole) if size < whole else None


_load()
