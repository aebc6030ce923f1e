"""Costs of a notebook, as ratios to references measured in the same run.

In: `--quick` for few samples, and ipykernel with jupyter_client in this interpreter. Out: a table
in Markdown. There are no bounds.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import isolane
from isolane.notebook import ArtifactsOptions, Notebook, PyOptions
from python import Bench, Samples, kib, resident_bytes

MIB = 1 << 20
PRINTS = "for _ in range(500_000): print('x' * 99)"


def millis(seconds: float) -> str:
    return f"{seconds * 1e3:,.1f} ms"


def cells(language: str, code: str) -> dict[str, Any]:
    return {"cells": [{"language": language, "code": code, "timeout": 600}]}


class OfNotebook(Bench):
    def measure(self) -> None:
        self.javascript()
        self.python()
        self.starts()
        self.prints()

    def javascript(self) -> None:
        with Notebook(py=False) as notebook, isolane.Session() as session:
            notebook.execute_sync(cells("js", "let x = 1"))
            session.run_sync("let x = 1")
            ours = self.time_sync(lambda _: notebook.execute_sync(cells("js", "x + 1")))
            theirs = self.time_sync(lambda _: session.run_sync("x + 1"))
        self.row("a JavaScript cell `x + 1` (aim: 1.5)", ours, "`session.run_sync`", theirs)

        def opens() -> None:
            with Notebook(py=False) as notebook:
                notebook.execute_sync(cells("js", "1"))

        def opens_session() -> None:
            with isolane.Session() as session:
                session.run_sync("1")

        ours, theirs = self.time_sync(lambda _: opens()), self.time_sync(lambda _: opens_session())
        self.row("opening, one cell, closing (aim: 1.3)", ours, "a session", theirs)

    def python(self) -> None:
        with Notebook(py=self.py("confined")) as notebook, Jupyter() as jupyter:
            notebook.execute_sync(cells("py", "1"))
            ours = self.time_sync(lambda _: notebook.execute_sync(cells("py", "1+1")))
            theirs = self.time_sync(lambda _: jupyter.run("1+1"))
        self.row("a Python cell `1+1` (aim: 0.1)", ours, "ipykernel", theirs)

    def starts(self) -> None:
        """From nothing to the first result."""

        def jupyter() -> None:
            stack.enter_context(Jupyter()).run("1+1")

        def python() -> None:
            subprocess.run([sys.executable, "-c", "import asyncio"], check=True)

        def notebook(isolation: Any) -> Callable[[], None]:
            def start() -> None:
                notebook = stack.enter_context(Notebook(py=self.py(isolation)))
                result = notebook.execute_sync(cells("py", "1+1"))
                if result.text != "2":
                    raise RuntimeError(result.text)

            return start

        def time(start: Callable[[], None]) -> float:
            samples = Samples(self.budget_s)
            while samples.wants_more():
                with samples:
                    start()
                # Its end does not count.
                stack.close()
            return samples.median()

        stack = contextlib.ExitStack()
        ours = time(notebook("confined"))
        for aim, reference, theirs in (
            ("0.3", "ipykernel", jupyter),
            ("1.5", "`python3 -c 'import asyncio'`", python),
            ("1.3", "a kernel with `isolation='none'`", notebook("none")),
        ):
            what = f"a confined kernel, to its first result (aim: {aim})"
            self.row(what, ours, reference, time(theirs), millis)

    def prints(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            script = Path(folder) / "prints.py"
            script.write_text(PRINTS)
            artifacts: ArtifactsOptions = {"dir": f"{folder}/artifacts"}
            with Notebook(py=self.py("confined"), artifacts=artifacts) as notebook:
                notebook.execute_sync(cells("py", "1"))
                before = resident_bytes()
                ours = self.once(lambda: notebook.execute_sync(cells("py", PRINTS)))
                grown = max(0, resident_bytes() - before)
            pipe = f"{sys.executable} {script} | cat > {folder}/out"
            theirs = self.once(lambda: subprocess.run(["sh", "-c", pipe], check=True))
        what = "50 MB printed, kept as an artifact (aim: 2)"
        self.row(what, ours, "the script through `cat` into a file", theirs, millis)
        self.row("memory that the host gains meanwhile (aim: 1)", grown, "2 MiB", 2 * MIB, kib)

    def once(self, act: Callable[[], object]) -> float:
        began = time.perf_counter()
        act()
        return time.perf_counter() - began

    def py(self, isolation: Any) -> PyOptions:
        return {"isolation": isolation, "interpreter": sys.executable}


class Jupyter:
    """A kernel of ipykernel, through the client of Jupyter."""

    def __enter__(self) -> Jupyter:
        manager = importlib.import_module("jupyter_client.manager")
        # Its interpreter is this one.
        self.manager, self.client = manager.start_new_kernel(kernel_name="python3")
        return self

    def __exit__(self, *_: object) -> None:
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)

    def run(self, code: str) -> None:
        reply = self.client.execute_interactive(code, output_hook=lambda _: None)
        if reply["content"]["status"] != "ok":
            raise RuntimeError(reply["content"])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    bench = OfNotebook(parser.parse_args().quick)
    # A start takes longer than the time of other figures.
    bench.budget_s *= 4
    bench.measure()
    head = "| what | figure | reference | figure | ratio |\n|---|--:|---|--:|--:|"
    print("### A notebook\n", head, *bench.rows, "", sep="\n")


if __name__ == "__main__":
    main()
