"""The import of the package."""

import subprocess
import sys

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
