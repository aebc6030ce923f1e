"""Executors of subprocesses and containers, as Python alone sees them."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import subprocess
import sys
import threading
import time
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import pytest
from isolane.executors import (
    CodeExecutionInput,
    CodeExecutionResult,
    ConfinedCodeExecutor,
    ContainerCodeExecutor,
    ExecFile,
    ExecutorError,
    InvocationContext,
    IsolateCodeExecutor,
    LocalCodeExecutor,
)

from ceilings import CEILING_S


def shell(**options: Any) -> LocalCodeExecutor:
    return LocalCodeExecutor(interpreter="sh", args=["-s"], **options)


def test_code_runs_with_files() -> None:
    executor = LocalCodeExecutor(interpreter=sys.executable, env={"NAME": "Ada"})
    code = (
        "import os, sys\n"
        "print(os.environ['NAME'], open('in.bin', 'rb').read())\n"
        "print('e', file=sys.stderr)\n"
        "open('out.txt', 'w').write('done')\n"
        "sys.exit(3)\n"
    )
    given = CodeExecutionInput(code, input_files=[ExecFile("in.bin", b"\x00\xff")])
    expected = CodeExecutionResult(
        "Ada b'\\x00\\xff'\n", "e\n", [ExecFile("out.txt", b"done", "text/plain")], 3
    )
    assert executor.execute_code_sync(None, given) == expected
    assert asyncio.run(executor.execute_code(None, given)) == expected
    plain = {"code": code, "input_files": [{"name": "in.bin", "content": b"\x00\xff"}]}
    assert executor.execute_code_sync({}, plain) == expected
    assert not expected.is_success()
    assert expected.combined_output() == "Ada b'\\x00\\xff'\n\n--- stderr ---\ne\n"


def test_json_forms() -> None:
    result = CodeExecutionResult("o", "e", [ExecFile("a", b"\xff", None)], 0)
    json = {
        "stdout": "o",
        "stderr": "e",
        "output_files": [{"name": "a", "content": "/w==", "mime_type": None}],
        "exit_code": 0,
    }
    assert result.to_json() == json
    assert CodeExecutionResult.from_json(json) == result
    camel = {"outputFiles": [{"name": "a", "content": "/w==", "mimeType": None}], "exitCode": 0}
    assert CodeExecutionResult.from_json({**camel, "stdout": "o", "stderr": "e"}) == result
    given = CodeExecutionInput("1", "python", [ExecFile("a", b"x", "text/plain")], "id")
    assert CodeExecutionInput.from_json(given.to_json()) == given
    assert CodeExecutionResult().is_success()
    assert not CodeExecutionResult(stderr="e").is_success()
    with pytest.raises(ValueError, match="content is no base64"):
        ExecFile.from_json({"name": "a", "content": "?"})


def test_properties() -> None:
    executor = LocalCodeExecutor(timeout_ms=1500, retry_attempts=0)
    assert not executor.stateful
    assert executor.timeout_ms == 1500
    assert executor.error_retry_attempts == 1
    assert ("```python\n", "\n```") in executor.code_block_delimiters
    assert LocalCodeExecutor(timeout_ms=None).timeout_ms is None
    assert LocalCodeExecutor().timeout_ms == 30_000


@pytest.mark.parametrize(
    "make",
    [LocalCodeExecutor, ContainerCodeExecutor, ConfinedCodeExecutor, IsolateCodeExecutor],
)
def test_a_time_limit_may_have_a_fraction_and_be_any_int(make: Any) -> None:
    assert make(timeout_ms=1.5).timeout_ms == 1.5
    assert make(timeout_ms=1e-9).timeout_ms > 0
    assert make(timeout_ms=2**62).timeout_ms == 2**62
    for too_long in (1e300, 10**400):
        with pytest.raises(ValueError, match="timeout_ms is too long a time"):
            make(timeout_ms=too_long)


@pytest.mark.parametrize(
    ("make", "options", "message"),
    [
        (LocalCodeExecutor, {"interpreter": ""}, "interpreter must not be empty"),
        (LocalCodeExecutor, {"timeout_ms": 0}, "timeout_ms must be a positive number"),
        (LocalCodeExecutor, {"timeout_ms": -1}, "timeout_ms must be a positive number"),
        (LocalCodeExecutor, {"timeout_ms": float("inf")}, "timeout_ms must be a positive number"),
        (LocalCodeExecutor, {"timeout_ms": float("nan")}, "timeout_ms must be a positive number"),
        (LocalCodeExecutor, {"timeout_ms": 10**400}, "timeout_ms is too long a time"),
        (LocalCodeExecutor, {"timeout_ms": timedelta(seconds=1)}, "milliseconds, got timedelta"),
        (LocalCodeExecutor, {"timeout_ms": True}, "timeout_ms must be a number or None, got bool"),
        (LocalCodeExecutor, {"timeout_ms": "1"}, "timeout_ms must be a number or None, got str"),
        (LocalCodeExecutor, {"args": "-"}, "args must be a list, got str"),
        (LocalCodeExecutor, {"args": [1]}, "args must be a list of strings, got list"),
        (LocalCodeExecutor, {"env": {"A=B": ""}}, "is not a valid name of a variable"),
        (LocalCodeExecutor, {"env": [1]}, "env must be a mapping of strings, got list"),
        (LocalCodeExecutor, {"env": {"A": 1}}, "env must be a mapping of strings"),
        (LocalCodeExecutor, {"env": {1: "A"}}, "env must be a mapping of strings, got dict"),
        (LocalCodeExecutor, {"retry_attempts": -1}, "retry_attempts must be a whole number"),
        (LocalCodeExecutor, {"retry_attempts": 1.5}, "retry_attempts must be a whole number"),
        (LocalCodeExecutor, {"inherit_env": 1}, "inherit_env must be a boolean, got int"),
        (LocalCodeExecutor, {"output_limit_bytes": 0}, "output_limit_bytes must be a whole number"),
        (LocalCodeExecutor, {"timeout": 1}, "unexpected keyword argument 'timeout'"),
        (ContainerCodeExecutor, {"image": ""}, "image must not be empty"),
        (ContainerCodeExecutor, {"image": "-v"}, "image must not be empty, nor begin with '-'"),
        (ContainerCodeExecutor, {"memory": "much"}, "memory must be a positive number"),
        (ContainerCodeExecutor, {"cpus": float("inf")}, "cpus must be a positive number"),
        (ContainerCodeExecutor, {"cpus": 0}, "cpus must be a positive number"),
        (ContainerCodeExecutor, {"pids_limit": 0}, "pids_limit must be a whole number"),
        (ContainerCodeExecutor, {"drop_capabilities": 0}, "drop_capabilities must be a boolean"),
        (ConfinedCodeExecutor, {"memory": "-1m"}, "memory"),
        (ConfinedCodeExecutor, {"required": ["files"]}, "required has no item"),
        (ConfinedCodeExecutor, {"readable": ["relative"]}, "cannot be shown to a program"),
    ],
)
def test_misuse(make: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        make(**options)


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        ({"code": "", "input_files": [{"name": "a/b", "content": b""}]}, "bad_input"),
        ({"code": "", "input_files": [{"name": "", "content": b""}]}, "bad_input"),
        ({"code": "x" * (16 * 1024 * 1024 + 1)}, "bad_input"),
        ({"code": "\ud800"}, "bad_input"),
    ],
)
def test_bad_input(given: dict[str, Any], kind: str) -> None:
    with pytest.raises(ExecutorError) as raised:
        LocalCodeExecutor().execute_code_sync(None, given)
    assert raised.value.kind == kind
    assert str(raised.value) == raised.value.message


@pytest.mark.parametrize(
    "given",
    [None, "print(1)", {"code": 1}, {"input_files": "x"}, {"input_files": [{"name": "a"}]}],
)
def test_inputs_of_the_wrong_type(given: Any) -> None:
    with pytest.raises(TypeError):
        LocalCodeExecutor().execute_code_sync(None, given)


def test_a_missing_interpreter() -> None:
    executor = LocalCodeExecutor(interpreter="no-such-interpreter")
    with pytest.raises(ExecutorError) as raised:
        executor.execute_code_sync(None, CodeExecutionInput("1"))
    assert raised.value.kind == "spawn"


def test_output_arrives_live_and_in_order() -> None:
    async def main() -> None:
        first: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        out: list[bytes] = []

        def stdout(data: bytes) -> None:
            out.append(data)
            if not first.done():
                first.set_result(data)

        context = InvocationContext(stdout=stdout)
        code = "echo one; read line < go; echo two"
        task = asyncio.create_task(
            shell().execute_code(context, CodeExecutionInput("mkfifo go; sleep 1 & " + code))
        )
        # The program still waits.
        assert await first == b"one\n"
        assert not task.done()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())


def test_both_streams_arrive() -> None:
    out: list[bytes] = []
    err: list[bytes] = []
    context = InvocationContext(stdout=out.append, stderr=err.append)
    shell().execute_code_sync(context, CodeExecutionInput("echo a; echo b >&2; echo c"))
    assert (b"".join(out), b"".join(err)) == (b"a\nc\n", b"b\n")


def test_a_receiver_that_raises_ends_the_call(tmp_path: Path) -> None:
    received: list[bytes] = []
    waited = tmp_path / "waited"

    def stdout(data: bytes) -> None:
        received.append(data)
        raise LookupError("no")

    context = InvocationContext(stdout=stdout)
    code = f"echo $$; sleep {CEILING_S}; touch {waited}"
    with pytest.raises(LookupError, match="no"):
        shell(timeout_ms=None).execute_code_sync(context, CodeExecutionInput(code))
    assert not is_alive(int(received[0]))
    assert not waited.exists()


def test_a_coroutine_function_receives_one_piece_at_a_time() -> None:
    pieces: list[bytes] = []
    running, most = 0, 0

    async def receive(data: bytes) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        pieces.append(data)
        running -= 1

    async def fail(_: bytes) -> None:
        raise LookupError("late")

    context = InvocationContext(stdout=receive, stderr=receive)
    code = "for i in 1 2 3 4 5; do echo $i; sleep 0.01; done"
    result = shell().execute_code_sync(context, CodeExecutionInput(code))
    assert (most, running, b"".join(pieces).decode()) == (1, 0, result.stdout)
    context = InvocationContext(stdout=fail)
    forever = CodeExecutionInput("echo a; sleep 600")
    with pytest.raises(LookupError, match="late"):
        shell(timeout_ms=None).execute_code_sync(context, forever)


def test_a_coroutine_function_that_hangs_does_not_hold_the_call() -> None:
    pieces: list[bytes] = []

    async def never(data: bytes) -> None:
        pieces.append(data)
        await asyncio.get_running_loop().create_future()

    context = InvocationContext(stdout=never, stderr=never)
    code = "for i in 1 2 3; do echo a; echo b >&2; done"
    result = shell().execute_code_sync(context, CodeExecutionInput(code))
    assert result.stdout == "a\na\na\n"
    assert len(pieces) >= 2


def test_cancelled_is_a_plain_function() -> None:
    async def cancelled() -> bool:
        return False

    context = InvocationContext(cancelled=cast(Any, cancelled))
    with pytest.raises(TypeError, match="cancelled must be a plain function"):
        shell(timeout_ms=None).execute_code_sync(context, CodeExecutionInput("sleep 600"))


def test_a_slow_receiver_holds_nothing_up_and_fills_no_memory(tmp_path: Path) -> None:
    received: list[bytes] = []
    written = tmp_path / "written"

    def stdout(data: bytes) -> None:
        received.append(data)
        deadline = time.monotonic() + CEILING_S
        while not written.exists() and time.monotonic() < deadline:
            time.sleep(0.01)

    context = InvocationContext(stdout=stdout)
    code = f"echo first; yes | head -c 30000000; touch {written}"
    result = shell().execute_code_sync(context, CodeExecutionInput(code))
    assert result.exit_code == 0
    assert written.exists()
    kept = b"".join(received)
    # At most 4 MiB waited, which are the beginning; some came before and after that.
    assert len(kept) < 12 << 20
    assert kept.startswith(b"first\ny\n")
    assert b" bytes left out ...\n" in kept


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_cancelling_the_task_kills_the_program() -> None:
    async def main() -> None:
        started: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        context = InvocationContext(stdout=started.set_result)
        call = shell().execute_code(context, CodeExecutionInput("echo $$; sleep 60; sleep 60"))
        task = asyncio.create_task(call)
        pid = int(await started)
        assert is_alive(pid)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not is_alive(pid)

    asyncio.run(main())


def test_the_context_cancels() -> None:
    cancelled = threading.Event()
    context = InvocationContext(cancelled=cancelled.is_set, stdout=lambda _: cancelled.set())
    with pytest.raises(ExecutorError) as raised:
        shell().execute_code_sync(context, CodeExecutionInput("echo a; sleep 60"))
    assert raised.value.kind == "cancelled"


def test_a_timeout_keeps_the_output() -> None:
    # A busy machine may need more time for the output.
    for timeout_ms, text in [(300, "300ms"), (5_000, "5s"), (60_000, "60s")]:
        executor = shell(timeout_ms=timeout_ms)
        result = executor.execute_code_sync(None, CodeExecutionInput("echo a; sleep 600"))
        assert result.stderr == f"sh execution timed out after {text}\n"
        assert result.exit_code is None
        if result.stdout:
            break
    assert result.stdout == "a\n"


def test_calls_overlap_and_the_loop_goes_on(tmp_path: Path) -> None:
    def waits(index: int) -> CodeExecutionInput:
        code = f"cd {tmp_path}; touch {index}; until [ -e go ]; do sleep 0.01; done; echo {index}"
        return CodeExecutionInput(code)

    def begun() -> int:
        return len(list(tmp_path.iterdir()))

    async def main() -> None:
        executor = shell(timeout_ms=CEILING_S * 1000)
        calls = [asyncio.create_task(executor.execute_code(None, waits(one))) for one in range(4)]
        # All programs run, and none of them ends before the loop says so.
        while begun() < 4:
            assert not any(call.done() for call in calls)
            await asyncio.sleep(0.01)
        (tmp_path / "go").touch()
        results = await asyncio.gather(*calls)
        assert [result.stdout for result in results] == ["0\n", "1\n", "2\n", "3\n"]

    asyncio.run(main())


def test_two_hundred_calls_at_once() -> None:
    async def main() -> list[str]:
        executor = shell(timeout_ms=CEILING_S * 1000)
        inputs = [CodeExecutionInput(f"echo {index}") for index in range(200)]
        calls = [executor.execute_code(None, input) for input in inputs]
        return [result.stdout for result in await asyncio.gather(*calls)]

    assert asyncio.run(main()) == [f"{index}\n" for index in range(200)]


def test_the_sync_form_refuses_a_running_loop() -> None:
    async def main() -> None:
        with pytest.raises(RuntimeError, match="await execute_code instead"):
            shell().execute_code_sync(None, CodeExecutionInput("true"))

    asyncio.run(main())


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Python 3.10 has no such runner")
def test_the_sync_form_leaves_the_loop_of_the_thread_alone() -> None:
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        shell().execute_code_sync(None, CodeExecutionInput("true"))
        assert asyncio.get_event_loop() is loop
    finally:
        asyncio.set_event_loop(None)
        loop.close()


def test_a_keyboard_interrupt_ends_the_sync_form() -> None:
    program = """
import sys
from isolane.executors import CodeExecutionInput, InvocationContext, LocalCodeExecutor
executor = LocalCodeExecutor(interpreter="sh", args=["-s"])
context = InvocationContext(stdout=lambda data: print(data.decode(), end="", flush=True))
try:
    executor.execute_code_sync(context, CodeExecutionInput("echo $$; sleep 60; sleep 60"))
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        pid = int(process.stdout.readline())
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == b"interrupted\n"
        assert not is_alive(pid)
        assert process.wait(CEILING_S) == 0


def test_calls_leave_no_notices() -> None:
    async def main() -> None:
        from isolane._bridge import bridge_of

        executor = shell()
        await executor.execute_code(None, CodeExecutionInput("true"))
        with pytest.raises(ExecutorError):
            await executor.execute_code(None, CodeExecutionInput("\ud800"))
        assert bridge_of(asyncio.get_running_loop())._noticing == {}

    asyncio.run(main())
    gc.collect()


def test_container_arguments() -> None:
    executor = ContainerCodeExecutor("img", memory="512m", cpus=0.5, extra_args=["--init"])
    args = executor.build_run_args("n")
    assert args[:5] == ["run", "--rm", "-i", "--network=none", "--read-only"]
    assert "--memory-swap=512m" in args
    assert "--cpus=0.5" in args
    assert args[-4:] == ["--init", "img", "python3", "-"]
    staged = executor.build_run_args_staged("n", Path("/f"))
    assert "--mount=type=bind,source=/f,target=/work" in staged
    assert "--cap-drop=ALL" in args
    loose = ContainerCodeExecutor("img", drop_capabilities=False).build_run_args("n")
    assert "--cap-drop=ALL" not in loose


def test_a_missing_engine() -> None:
    executor = ContainerCodeExecutor(engine="/no/such/engine")
    for call in (
        executor.prepare_sync,
        lambda: executor.execute_code_sync(None, CodeExecutionInput("1")),
    ):
        with pytest.raises(ExecutorError) as raised:
            call()
        assert raised.value.kind == "engine_missing"


@pytest.mark.skipif(sys.platform != "linux", reason="programs are confined on Linux alone")
def test_confined_programs() -> None:
    executor = ConfinedCodeExecutor(interpreter="sh", args=["-s"], env={"NAME": "Ada"})
    try:
        had = executor.confinement_sync()
    except ExecutorError as error:
        pytest.skip(f"this machine confines no programs: {error}")
    assert had["memory"] in ("group", "process")
    assert {"privileges", "network", "file_system"} <= set(had)
    given = CodeExecutionInput(f"pwd; echo $NAME; ls {os.getcwd()}")
    try:
        result = executor.execute_code_sync(None, given)
    except ExecutorError as error:
        assert error.kind == "unsupported"  # noqa: PT017 - a machine without namespaces
        return
    assert result.stdout == "/work\nAda\n"
    assert result.exit_code != 0
