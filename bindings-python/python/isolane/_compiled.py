"""The compiled part of the package, if it is there.

In: nothing. Out: an error that says how to get the module `_isolane`, if there is no such file. One
that is there and cannot be loaded has an error of its own.
"""

try:
    from . import _isolane  # noqa: F401
except ImportError:
    import platform
    from importlib.util import find_spec
    from pathlib import Path

    if find_spec("isolane._isolane") is not None:
        raise
    raise ImportError(
        f"isolane has no compiled part for {platform.python_implementation()}"
        f" {platform.python_version()} on {platform.system()} {platform.machine()}: the module"
        f" isolane._isolane is not in {Path(__file__).parent}. Usual causes:\n"
        "- the folder has only the source of the project: install the wheel (pip install isolane),"
        " or, in a clone, compile it (npm run build:python);\n"
        "- the wheel is for another platform, or the folder was copied from one: install again"
        " here (pip install --force-reinstall isolane).",
        name="isolane._isolane",
    ) from None
