"""CPU time of the thread of a loop: no large message stops it, and no sandbox slows it down.

In: the values and the ways of `test_slices.py`. Out: the longest turn of the loop, in CPU time of
its thread, so that neither other programs nor waiting count.
"""

from __future__ import annotations

import asyncio
import base64
import json
import threading
import time
from collections.abc import Callable, Coroutine
from typing import Any

import isolane
import pytest
from isolane import Runtime
from isolane.executors import CodeLoop, LocalCodeExecutor, ScriptedModel
from isolane.kit import Kit

from ceilings import PATIENCE
from median import judge
from test_slices import LIMIT_BYTES, VALUES, WAYS, _start, _until_it_is_read

# Without slices, each of these values took seconds to read.
MOST_S = 0.4 * PATIENCE


async def longest_turn(work: asyncio.Future[Any] | Any) -> float:
    """CPU seconds of the longest turn of the loop while something is awaited."""
    longest, last = 0.0, time.thread_time()

    async def look() -> None:
        nonlocal longest, last
        while True:
            now = time.thread_time()
            longest, last = max(longest, now - last), now
            await asyncio.sleep(0)

    looking = asyncio.create_task(look())
    await work
    looking.cancel()
    return longest


def judge_turns(what: str, main: Callable[[], Coroutine[Any, Any, float]], most: float) -> None:
    judge(f"seconds of the longest turn, {what}", lambda: asyncio.run(main()), most)


@pytest.mark.parametrize(
    ("value", "way"),
    [(value, way) for value in ("text", "lists") for way in WAYS]
    + [(value, "result") for value in VALUES if value not in ("text", "lists")],
)
def test_no_value_and_no_way_out_stops_the_loop(value: str, way: str) -> None:
    async def main() -> float:
        return await longest_turn(_start(f"const value = {VALUES[value]}; {WAYS[way]}"))

    judge_turns(f"{value}, {way}", main, MOST_S)


def test_very_much_that_is_left_unsettled_does_not_stop_the_loop() -> None:
    source = """
        for (let i = 0; i < 200; i++) {
            keep(Array.from({ length: 500 }, () => new Promise(() => {})));
        }
        export default 1;
    """

    async def main() -> float:
        kept: list[Any] = []
        globals = {"keep": kept.append}
        run = isolane.run_code(source, globals=globals, memory_limit_bytes=LIMIT_BYTES)
        longest = await longest_turn(run)
        futures = [future for some in kept for future in some]
        # The wait itself takes long turns at its begin and at its end.
        return max(longest, await longest_turn(asyncio.wait(futures)) / 4)

    judge_turns("promises that are left", main, MOST_S)


def test_very_many_functions_and_promises_do_not_stop_the_loop() -> None:
    source = """
        take(Array.from({ length: 50000 }, (_, i) => () => i));
        take(Array.from({ length: 50000 }, (_, i) => Promise.resolve(i)));
        export default 1;
    """

    async def main() -> float:
        return await longest_turn(_start(source))

    judge_turns("functions and promises", main, MOST_S)


def test_what_nobody_will_read_on_in_is_freed_in_slices() -> None:
    async def main() -> float:
        source = "take(Array.from({ length: 3e6 }, (_, i) => [i])); export default 1"
        globals = {"take": lambda _: None}
        run = isolane.run_code(source, globals=globals, memory_limit_bytes=LIMIT_BYTES)
        await _until_it_is_read(run)
        bridge = run._run.bridge()
        assert bridge is not None
        # Until most of the value has been read.
        for _ in range(40):
            await asyncio.sleep(0)
        run.terminate()

        async def freed() -> None:
            await run
            while bridge._discarded:  # noqa: ASYNC110 (nothing tells of it)
                await asyncio.sleep(0)

        return await longest_turn(freed())

    judge_turns("what is freed", main, MOST_S)


def test_the_search_for_secrets_leaves_the_loop_its_turns() -> None:
    source = """
        const text = '%41\\\\n'.repeat(2e5) + secrets.KEY;
        report(text); console.log(text);
        return text
    """

    async def main() -> float:
        secrets = {"KEY": {"value": "hunter2hunter2", "reveal": True}}
        async with Kit(secrets=secrets, memory_limit_bytes=1 << 30) as kit:
            run = kit.run_tool(source, timeout_ms=300_000, report=lambda _: None)
            longest = await longest_turn(run)
            assert (await run).status == "success"
        return longest

    judge_turns("the search for secrets", main, MOST_S)


def test_files_of_programs_take_less_of_the_loop_than_json_would() -> None:
    code = "for i in range(4): open(f'{i}.bin', 'wb').write(b'x' * (7 << 20))"
    text = json.dumps([base64.b64encode(b"x" * (7 << 20)).decode() for _ in range(4)])

    async def both(code_loop: CodeLoop) -> None:
        assert len((await code_loop.run("Go.")).files) == 4
        async for _ in code_loop.stream("Go."):
            pass

    async def main() -> float:
        before_s = time.thread_time()
        assert len([base64.b64decode(one) for one in json.loads(text)]) == 4
        as_json_s = time.thread_time() - before_s
        model = ScriptedModel()
        for _ in range(2):
            model.push_code("python", code)
            model.push_text("Done.")
        longest_s = await longest_turn(both(CodeLoop(model, LocalCodeExecutor(timeout_ms=None))))
        return longest_s / as_json_s

    judge("longest turn for files, by the time for JSON", lambda: asyncio.run(main()), 1)


def test_lone_surrogates_are_read_as_fast_as_other_units() -> None:
    source = """
        const pair = '\\u{1f600}', text = 'a\\udc00' + pair + '\\ud800'.repeat(7000);
        export default Array.from({ length: 1500 }, (_, at) => text + at);
    """

    def measure() -> float:
        before_s = time.thread_time()
        isolane.run_code_sync(source).raise_for_status()
        return time.thread_time() - before_s

    # Python's codec takes 1.6 s for them.
    judge("seconds of lone surrogates", measure, 0.8)


def count_while(running: Callable[[], bool], least_s: float) -> float:
    """The counting speed of this thread, in rounds per second."""
    rounds, started = 0, time.thread_time()
    until = time.perf_counter() + least_s
    while time.perf_counter() < until and running():
        for _ in range(1000):
            rounds += 1
    return rounds / max(time.thread_time() - started, 1e-9)


def test_a_spinning_sandbox_leaves_python_its_speed() -> None:
    def measure() -> float:
        alone = count_while(lambda: True, 0.3)
        with Runtime() as runtime:
            begun = threading.Event()

            def spin() -> None:
                runtime.run_code_sync("begun(); for (;;);", globals={"begun": begun.set})

            thread = threading.Thread(target=spin)
            thread.start()
            begun.wait()
            # In CPU time of this thread, so that a busy machine does not matter; and in rounds at
            # all, because a thread that never gets the lock takes no CPU time either.
            beside = count_while(thread.is_alive, 0.5)
            runtime.close()
            thread.join()
        return alone / beside

    judge("how much slower Python is beside a spinning sandbox", measure, 4)
