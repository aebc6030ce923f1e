"""The compiled part of the package, if it is there.

In: nothing. Out: an error that says how to get the module `_isolane`, if it cannot be loaded.
"""


def _load() -> None:
    try:
        from . import _isolane  # noqa: F401
    except ImportError as error:
        from ._load_failure import explained

        told = explained(error)
        if told is None:
            raise
        raise told from told.__cause__


_load()
