"""The program ``isolane``, and ``python -m isolane``."""

import signal
import sys
from pathlib import Path

from ._isolane import run_command


def main() -> int:
    """Runs the command of the process's arguments; returns its exit code."""
    # The command handles signals itself. Python's handler would only note this one, for later.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return run_command(["isolane", *sys.argv[1:]], Path(__file__).parent)


if __name__ == "__main__":
    sys.exit(main())
