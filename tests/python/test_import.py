"""The import of the package."""

import json
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import isolane
import pytest
from isolane import _isolane

PROGRAM = """
import sys
import isolane
print(*sorted(name for name in sys.modules if name.startswith("isolane.")))
"""

LITTLE_ROOM = """
import os
import resource
from pathlib import Path
# Python has room in it, and the file has none.
size = Path(os.environ["PYTHONPATH"], "isolane", "_isolane.abi3.so").stat().st_size
room = size * 2 // 3
resource.setrlimit(resource.RLIMIT_AS, (room, room))
import isolane
"""

SYSTEMS = ["kit", "notebook", "executors", "environment"]


def test_the_import_loads_no_system() -> None:
    # Each of them would cost every program that only runs code.
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True
    )
    loaded = set(done.stdout.split())
    assert "isolane._run" in loaded
    assert loaded.isdisjoint({f"isolane.{name}" for name in [*SYSTEMS, "_door", "_page"]})


def test_the_package_tells_its_version() -> None:
    manifest = Path(__file__).parents[2] / "package.json"
    assert isolane.__version__ == json.loads(manifest.read_text())["version"]
    assert "__version__" in isolane.__all__


def test_a_missing_compiled_part_is_named_with_the_remedies(tmp_path: Path) -> None:
    source = Path(isolane.__file__).parent
    compiled = shutil.ignore_patterns("*.so", "*.pyd", "isolane-worker*", "__pycache__")
    shutil.copytree(source, tmp_path / "isolane", ignore=compiled)
    here = {**os.environ, "PYTHONPATH": str(tmp_path)}
    for module in ["isolane", *(f"isolane.{name}" for name in SYSTEMS)]:
        command = [sys.executable, "-c", f"import {module}"]
        done = subprocess.run(command, capture_output=True, text=True, env=here, check=False)
        assert done.returncode == 1
        told = done.stderr[done.stderr.index("\nImportError: ") + 1 :].splitlines()
        python = f"{platform.python_implementation()} {platform.python_version()}"
        system = f"{platform.system()} {platform.machine()}"
        head = f"ImportError: isolane has no compiled part for {python} on {system}: the module"
        source_only = "- the folder has only the source of the project: install the wheel (pip"
        foreign = "- the wheel is for another platform, or the folder was copied from one: install"
        assert told == [
            f"{head} isolane._isolane is not in {tmp_path / 'isolane'}. Usual causes:",
            f"{source_only} install isolane), or, in a clone, compile it (npm run build:python);",
            f"{foreign} again here (pip install --force-reinstall isolane).",
        ]


class Copy:
    """A copy of the package with a file in place of the compiled part."""

    def __init__(self, home: Path, content: bytes | None) -> None:
        self.home = home
        self.folder = self.home / "isolane"
        compiled = shutil.ignore_patterns("*.so", "*.pyd", "isolane-worker*", "__pycache__")
        shutil.copytree(Path(isolane.__file__).parent, self.folder, ignore=compiled)
        self.file = self.folder / "_isolane.abi3.so"
        if content is not None:
            self.file.write_bytes(content)

    def error(self, *command: str, program: str = "import isolane") -> str:
        """The last line of the import, after the name of its class."""
        whole = [*command, sys.executable, "-B", "-c", program]
        here = {**os.environ, "PYTHONPATH": str(self.home)}
        done = subprocess.run(whole, capture_output=True, text=True, env=here, check=False)
        assert done.returncode == 1, done.stdout
        return done.stderr.splitlines()[-1].removeprefix("ImportError: ")

    def failed(self, words: str) -> str:
        """The error of a compiled part that is there, up to the hint."""
        return f"isolane cannot load its compiled part: {self.file}: {words}. "


def works(*command: str) -> bool:
    return shutil.which(command[0]) is not None and subprocess.call(command) == 0


AGAIN = "(pip install --force-reinstall isolane)."


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the words are those of glibc")
def test_a_compiled_part_that_is_damaged_says_so(tmp_path: Path) -> None:
    whole = Path(_isolane.__file__).read_bytes()
    remedy = f"A copy was cut off, or a disk was full. Install again {AGAIN}"
    for size in [0, 4]:
        short = Copy(tmp_path / str(size), whole[:size])
        error = short.error()
        assert error.startswith(short.failed("file too short").removesuffix(". ")), error
        assert error.endswith(f". The file has {size} bytes. {remedy}")
    # Of these the loader of the system maps the pages that there are not.
    for size in [64, len(whole) // 2, len(whole) - 64]:
        cut = Copy(tmp_path / str(size), whole[:size])
        assert cut.error() == (
            f"isolane cannot load its compiled part: {cut.file} has {size} bytes of {len(whole)}."
            f" {remedy}"
        )


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the words are those of glibc")
def test_a_compiled_part_of_another_system_says_so(tmp_path: Path) -> None:
    whole = bytearray(Path(_isolane.__file__).read_bytes()[: 1 << 16])
    # No table of sections, so that the file is whole.
    whole[40:48] = bytes(8)
    narrow = whole.copy()
    narrow[4] = 1
    processor = whole.copy()
    processor[18:20] = (8).to_bytes(2, sys.byteorder)
    foreign = {
        "text": (b"not a library " * 100, "invalid ELF header"),
        "class": (bytes(narrow), "wrong ELF class: ELFCLASS32"),
        "processor": (
            bytes(processor),
            "cannot open shared object file: No such file or directory",
        ),
    }
    for name, (content, words) in foreign.items():
        copy = Copy(tmp_path / name, content)
        assert copy.error() == (
            f"{copy.failed(words)}The file is not for this system, or it is damaged. Install again"
            f" here {AGAIN}"
        )


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the words are those of glibc")
def test_a_process_with_too_little_address_space_learns_of_it(tmp_path: Path) -> None:
    copy = Copy(tmp_path, Path(_isolane.__file__).read_bytes())
    assert copy.error(program=LITTLE_ROOM) == (
        f"{copy.failed('failed to map segment from shared object')}The system refused the memory"
        " for it. Usual causes: a limit on the address space (ulimit -v), or a policy that forbids"
        " this process to load code from that folder."
    )


def test_a_package_in_an_archive_says_so(tmp_path: Path) -> None:
    copy = Copy(tmp_path / "unpacked", None)
    archive = Path(shutil.make_archive(str(tmp_path / "all"), "zip", copy.home))
    copy.home = archive
    assert copy.error() == (
        f"isolane cannot be imported from the archive that has {archive / 'isolane'}: Python loads"
        " a compiled part from a folder alone. Install isolane into a folder, or unpack the"
        " archive."
    )


def test_an_error_without_a_hint_stands_for_itself(tmp_path: Path) -> None:
    copy = Copy(tmp_path, None)
    (copy.folder / "_isolane.py").write_text("raise ImportError('of its own')\n")
    assert copy.error() == "of its own"


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the words are those of glibc")
def test_a_compiled_part_in_a_file_system_without_programs_says_so(tmp_path: Path) -> None:
    copy = Copy(tmp_path, Path(_isolane.__file__).read_bytes())
    mount = f"mount --bind {copy.home} {copy.home} && mount -o remount,bind,noexec {copy.home}"
    shell = ["--user", "--map-root-user", "--mount", "sh", "-c", f'{mount} && exec "$@"', "sh"]
    if not works("unshare", *shell, "true"):
        pytest.skip("this system refuses the namespaces or the mount")
    words = "failed to map segment from shared object"
    assert copy.error("unshare", *shell) == (
        f"{copy.failed(words)}The file system of {copy.folder} is mounted with noexec, so nothing"
        " there can be loaded. Install isolane in another folder, or mount this one without noexec."
    )


def test_a_user_who_may_not_read_the_package_learns_of_it(tmp_path: Path) -> None:
    powers = "-dac_override,-dac_read_search"
    unprivileged = ["setpriv", f"--bounding-set={powers}", f"--inh-caps={powers}"]
    command = unprivileged if os.getuid() == 0 else []
    if command and not works(*command, "true"):
        pytest.skip("this system takes no rights from root")
    copy = Copy(tmp_path, b"")
    copy.file.chmod(0)
    assert copy.error(*command) == (
        f"{copy.failed('cannot open shared object file: Permission denied')}The user of this"
        " process may not read the file. Install isolane as that user, or permit it to read the"
        " file."
    )
    # The folder can be passed through, and not be listed: Python finds its `__init__.py` alone.
    copy.folder.chmod(0o111)
    try:
        refused = copy.error(*command)
    finally:
        copy.folder.chmod(0o755)
    assert refused == (
        "isolane cannot be imported: the user of this process may not read the folder"
        f" {copy.folder}. Install isolane as that user, or permit it to read the folder."
    )
