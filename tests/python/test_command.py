"""The program ``isolane`` of the wheel, and ``python -m isolane``."""

import json
import os
import signal
import subprocess
import sys
from typing import Any

import pytest

CEILING_S = 120


def start(*words: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-m", "isolane", *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "NO_COLOR": "1"},
    )


def run(*words: str, source: str = "") -> tuple[int, str, str]:
    with start(*words) as child:
        stdout, stderr = child.communicate(source, timeout=CEILING_S)
        return child.returncode, stdout, stderr


def test_code_from_stdin_runs() -> None:
    source = "for (let i = 0; i < 5000; i++) console.log(i); console.warn('w'); export default [1n]"
    lines = "".join(f"{i}\n" for i in range(5000))
    assert run("run", "-", source=source) == (0, f"{lines}[ 1n ]\n", "w\n")
    in_process = run("run", "-", "--isolation", "process", source="export default 1 + 1")
    assert in_process == (0, "2\n", "")
    assert run("run", "-", source="null.x")[0] == 1


def test_misuse_versions_and_problems_are_told() -> None:
    code, stdout, _ = run("--version")
    assert (code, stdout.split()[0]) == (0, "isolane")
    assert run("run", "-", "--nothing")[0] == 2
    code, stdout, _ = run("check", "-", "--json", source="const a = ;")
    found = json.loads(stdout)
    assert (code, found["ok"], found["problems"][0]["line"]) == (3, False, 1)


def test_the_worker_of_the_package_is_found() -> None:
    code, stdout, _ = run("doctor", "--json")
    both = {"thread": {"ok": True}, "process": {"ok": True}}
    assert (code, json.loads(stdout)["isolation"]) == (0, both)


def test_a_host_reaches_the_server_of_models() -> None:
    def ask(child: "subprocess.Popen[str]", number: int, method: str, params: object) -> Any:
        assert child.stdin is not None
        assert child.stdout is not None
        message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        child.stdin.write(f"{json.dumps(message)}\n")
        child.stdin.flush()
        return json.loads(child.stdout.readline())["result"]

    with start("mcp") as child:
        client = {"name": "a test", "version": "1"}
        params = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}
        assert ask(child, 1, "initialize", params)["serverInfo"]["name"] == "isolane"
        call = {"name": "run_code", "arguments": {"code": "6 * 7"}}
        assert ask(child, 2, "tools/call", call)["structuredContent"]["result"] == 42
        assert child.communicate(timeout=CEILING_S) == ("", "")
        assert child.returncode == 0


@pytest.mark.parametrize(("number", "expected"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_the_run(number: signal.Signals, expected: int) -> None:
    with start("run", "-") as child:
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdin.write("console.log('begun'); for (;;);")
        child.stdin.close()
        assert child.stdout.readline() == "begun\n"
        child.send_signal(number)
        assert child.wait(CEILING_S) == expected


def test_a_pipe_that_closes_early_ends_the_run_quietly() -> None:
    with start("run", "-") as child:
        assert child.stdin is not None
        assert child.stdout is not None
        assert child.stderr is not None
        child.stdin.write("for (;;) console.log('more');")
        child.stdin.close()
        child.stdout.readline()
        child.stdout.close()
        assert (child.wait(CEILING_S), child.stderr.read()) == (141, "")


def test_the_program_is_the_module(capfd: pytest.CaptureFixture[str]) -> None:
    from isolane.__main__ import main

    before = sys.argv
    handler = signal.getsignal(signal.SIGINT)
    try:
        sys.argv = ["isolane", "--version"]
        assert main() == 0
    finally:
        sys.argv = before
        signal.signal(signal.SIGINT, handler)
    assert capfd.readouterr().out.startswith("isolane ")
