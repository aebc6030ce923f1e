"""Why the compiled part of the package is not loaded.

In: the error of its import. Out: an error that has a hint, too. The hint is for a person alone, so
that it may come from the text of the system's loader.
"""

import os
import platform
import re
from importlib.util import find_spec
from pathlib import Path

NAME = "isolane._isolane"
AGAIN = "pip install --force-reinstall isolane"
REMEDY_OF_CUT = f"A copy was cut off, or a disk was full. Install again ({AGAIN})."

CUT_OFF = "file too short"
"""The words of glibc and of macOS for a file that ends in its head."""

FOREIGN = (
    "invalid ELF header",
    "wrong ELF class",
    "no loadable segments",
    "Exec format error",
    "not a mach-o file",
)
"""The words of glibc, of musl and of macOS for a file that is no library of that system."""

NOT_FOUND = "cannot open shared object file: No such file"
"""The words of glibc for a missing file, and for one that is there for another processor."""

NOT_MAPPED = "failed to map segment"
"""The words of glibc for code that may not run, and for a lack of address space."""


def explained(error: ImportError) -> ImportError | None:
    """The error with a hint; `None` if there is none, and the error stands for itself."""
    spec = find_spec(NAME)
    if spec is None or spec.origin is None:
        return ImportError(_missing(), name=NAME)
    hint = _hint(str(error), spec.origin)
    if hint is None:
        return None
    message = f"isolane cannot load its compiled part: {error}. {hint}"
    told = ImportError(message, name=NAME, path=spec.origin)
    told.__cause__ = error
    return told


def cut_off(file: str, size: int, whole: int) -> ImportError:
    """The error of a file that has only so many bytes of those that it should have."""
    lack = f"{file} has {size} bytes of {whole}"
    message = f"isolane cannot load its compiled part: {lack}. {REMEDY_OF_CUT}"
    return ImportError(message, name=NAME, path=file)


def _missing() -> str:
    folder = Path(__file__).parent
    if not folder.is_dir():
        return (
            f"isolane cannot be imported from the archive that has {folder}: Python loads a"
            " compiled part from a folder alone. Install isolane into a folder, or unpack the"
            " archive."
        )
    return (
        f"isolane has no compiled part for {platform.python_implementation()}"
        f" {platform.python_version()} on {platform.system()} {platform.machine()}: the module"
        f" {NAME} is not in {folder}. Usual causes:\n"
        "- the folder has only the source of the project: install the wheel (pip install isolane),"
        " or, in a clone, compile it (npm run build:python);\n"
        "- the wheel is for another platform, or the folder was copied from one: install again"
        f" here ({AGAIN})."
    )


def _hint(text: str, file: str) -> str | None:
    if not os.access(file, os.R_OK):
        return (
            "The user of this process may not read the file. Install isolane as that user, or"
            " permit it to read the file."
        )
    if _is_noexec(file):
        return (
            f"The file system of {os.path.dirname(file)} is mounted with noexec, so nothing there"
            " can be loaded. Install isolane in another folder, or mount this one without noexec."
        )
    if NOT_MAPPED in text:
        return (
            "The system refused the memory for it. Usual causes: a limit on the address space"
            " (ulimit -v), or a policy that forbids this process to load code from that folder."
        )
    wanted = re.search(r"\bGLIBC_([\d.]+)", text)
    if wanted is not None:
        has = platform.libc_ver()[1] or "an older one"
        return (
            f"The file needs glibc {wanted[1]}, and this system has {has}. The files of a published"
            " wheel need 2.17; one that was built on a newer system needs more."
        )
    if CUT_OFF in text:
        return f"The file has {os.path.getsize(file)} bytes. {REMEDY_OF_CUT}"
    is_foreign = text.startswith(f"{file}: {NOT_FOUND}") and os.path.exists(file)
    if is_foreign or any(words in text for words in FOREIGN):
        return f"The file is not for this system, or it is damaged. Install again here ({AGAIN})."
    return None


def _is_noexec(file: str) -> bool:
    """Whether the file system of a file is mounted with `noexec`, where the system tells it."""
    flag: int = getattr(os, "ST_NOEXEC", 0)
    return flag != 0 and bool(os.statvfs(file).f_flag & flag)
