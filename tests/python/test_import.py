"""The import of the package."""

import json
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import isolane

PROGRAM = """
import sys
import isolane
print(*sorted(name for name in sys.modules if name.startswith("isolane.")))
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


def test_a_compiled_part_that_cannot_be_loaded_keeps_its_own_error(tmp_path: Path) -> None:
    source = Path(isolane.__file__).parent
    shutil.copytree(source, tmp_path / "isolane", ignore=shutil.ignore_patterns("isolane-worker*"))
    (tmp_path / "isolane" / "_isolane.abi3.so").write_bytes(b"not a library")
    here = {**os.environ, "PYTHONPATH": str(tmp_path)}
    command = [sys.executable, "-c", "import isolane"]
    done = subprocess.run(command, capture_output=True, text=True, env=here, check=False)
    assert done.stderr.splitlines()[-1].startswith("ImportError: ")
    assert "_isolane.abi3.so" in done.stderr.splitlines()[-1]
