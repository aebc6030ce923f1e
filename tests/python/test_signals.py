"""Ctrl-C: it ends a run of `run_code_sync` or the coroutines of `asyncio.run`."""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import sys
import textwrap

import pytest

PRELUDE = """
import asyncio, isolane, sys, threading, time

def ready():
    print("ready", flush=True)

async def ready_later():
    ready()

runtime = isolane.Runtime()

def freed(runs=1):
    # All of them have settled, and none continues.
    while sum(runtime.stats().settled.values()) < runs:
        time.sleep(0.001)
    while (stats := runtime.stats()).computing or stats.parked or stats.queued:
        time.sleep(0.001)
    print("freed", flush=True)

def look_up():
    # Python itself misses a signal that comes just before a loop goes to sleep, until it wakes.
    asyncio.get_running_loop().call_later(0.05, look_up)

def ready_once_it_computes():
    while runtime.stats().computing < 1:
        time.sleep(0.001)
    ready()

def again():
    assert runtime.run_code_sync("export default f()", globals={"f": lambda: 5}).result == 5
"""


def patiently(child: subprocess.Popen[str], ceiling_s: float) -> tuple[str, str]:
    """The output of a program that was interrupted. Python itself may miss a signal while other
    threads take and give its lock, so after a third of the time a second one comes."""
    try:
        return child.communicate(timeout=ceiling_s / 3)
    except subprocess.TimeoutExpired:
        os.kill(child.pid, signal.SIGINT)
        return child.communicate(timeout=ceiling_s * 2 / 3)


def interrupt(program: str, ceiling_s: float = 60) -> list[str]:
    """The lines of a program that is interrupted once it prints `ready`."""
    source = textwrap.dedent(PRELUDE) + textwrap.dedent(program)
    child = subprocess.Popen(
        [sys.executable, "-X", "faulthandler", "-c", source],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert child.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(child.stdout, selectors.EVENT_READ)
            assert selector.select(ceiling_s), "never ready"
        assert child.stdout.readline() == "ready\n"
        os.kill(child.pid, signal.SIGINT)
        try:
            out, err = patiently(child, ceiling_s)
        except subprocess.TimeoutExpired:
            child.send_signal(signal.SIGABRT)
            pytest.fail("it goes on:\n" + "".join(child.communicate()))
    finally:
        child.kill()
        child.wait()
    assert (child.returncode, err) == (0, ""), out
    return out.splitlines()


@pytest.mark.parametrize(
    ("source", "host"),
    [
        ("for (;;);", "lambda: None"),
        ("f(); for (;;);", "ready"),
        ("f()", "lambda: (ready(), time.sleep(600))"),
        ("f()", "lambda: (ready(), [None for _ in iter(int, 1)])"),
        ("await f()", "lambda: (ready(), asyncio.sleep(600))[1]"),
        ("await f(); for (;;);", "ready_later"),
        ("f(); await new Promise(() => {}); await g", "ready"),
        ("try { f() } catch { for (;;); }", "lambda: (ready(), time.sleep(600))"),
        ("await f(() => { for (;;); })", "lambda spin: (ready(), spin())[1]"),
    ],
    ids=[
        "spinning",
        "spinning after a call",
        "in a host function",
        "in a busy host function",
        "in an awaitable",
        "after a coroutine",
        "parked",
        "caught",
        "in a callback",
    ],
)
def test_run_code_sync_raises_and_ends_the_run(source: str, host: str) -> None:
    reaches_host = "f" in source
    globals = f"{{'f': {host}, 'g': asyncio.sleep(600)}}" if "g" in source else f"{{'f': {host}}}"
    globals = globals if reaches_host and host != "lambda: None" else "None"
    start = "threading.Thread(target=ready_once_it_computes).start()" if globals == "None" else ""
    lines = interrupt(f"""
        {start}
        try:
            runtime.run_code_sync({source!r}, globals={globals})
        except KeyboardInterrupt:
            print("interrupted")
        freed()
        again()
        """)
    assert lines == ["interrupted", "freed"]


def test_a_host_function_may_catch_it() -> None:
    lines = interrupt("""
        def host():
            try:
                ready()
                time.sleep(600)
            except KeyboardInterrupt:
                return "caught"
        print(runtime.run_code_sync("export default host()", globals={"host": host}).result)
        """)
    assert lines == ["caught"]


def test_none_is_lost_wherever_python_handles_signals() -> None:
    # At the begin of a function and after one in C. Python drops exceptions in some functions, such
    # as `__del__`, and Rust calls others.
    lines = interrupt("""
        import signal

        at, left, places = 0, 0, set()

        def interrupt(frame, event, _):
            global left
            if event in ("call", "c_return") and left > 0:
                left -= 1
                if left == 0:
                    places.add(frame.f_code.co_name)
                    sys.setprofile(None)
                    signal.raise_signal(signal.SIGINT)

        def host(spin):
            global left
            left = at
            return spin()

        try:
            ready()
            time.sleep(600)
        except KeyboardInterrupt:
            pass
        for at in range(1, 150):
            sys.setprofile(interrupt)
            try:
                runtime.run_code_sync("await f(() => { for (;;); })", globals={"f": host})
            except KeyboardInterrupt:
                pass
        print(sorted(places & {"__del__", "receiver", "remove"}))
        """)
    assert lines == ["['__del__', 'receiver', 'remove']"]


def test_the_host_of_a_run_within_a_run() -> None:
    lines = interrupt("""
        def inner():
            return runtime.run_code_sync("ready(); for (;;);", globals={"ready": ready}).result
        try:
            runtime.run_code_sync("inner()", globals={"inner": inner})
        except KeyboardInterrupt:
            print("interrupted")
        freed(2)
        again()
        """)
    assert lines == ["interrupted", "freed"]


@pytest.mark.parametrize("source", ["f(); for (;;);", "await f()", "f()"])
@pytest.mark.parametrize("host", ["ready", "lambda: (ready(), asyncio.sleep(600))[1]"])
def test_asyncio_run_ends_its_runs(source: str, host: str) -> None:
    lines = interrupt(f"""
        async def main():
            look_up()
            await runtime.run_code({source!r} + "; for (;;);", globals={{"f": {host}}})
        try:
            asyncio.run(main())
        except KeyboardInterrupt:
            print("interrupted")
        freed()
        again()
        """)
    assert lines == ["interrupted", "freed"]


def test_no_signal_is_lost_while_another_thread_runs_code() -> None:
    lines = interrupt("""
        stop = threading.Event()
        def work():
            while not stop.is_set():
                runtime.run_code_sync("export default f()", globals={"f": lambda: 1})
        thread = threading.Thread(target=work)
        thread.start()
        try:
            ready()
            # As in `look_up`: no wait without an end.
            while True:
                stop.wait(0.05)
        except KeyboardInterrupt:
            print("interrupted")
        stop.set()
        thread.join()
        """)
    assert lines == ["interrupted"]
