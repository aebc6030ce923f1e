"""Messages of a compromised worker: numbers that were never given out, or are no longer valid.

Each event reaches the run as from the loop; none may raise there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

from isolane._bridge import Bridge
from isolane._isolane import REPORT_SINK, RunHandle
from isolane._run import Run


class _Message:
    def __init__(self, value: Any) -> None:
        self._value = value

    def ready(self, _owner: Any) -> bool:
        return True

    def read(self, _owner: Any) -> Any:
        return self._value


class _Remote:
    """The core's side of a run, as far as events need one."""

    def __init__(self, *functions: Callable[..., Any]) -> None:
        self._functions = functions
        self.settled: list[tuple[int, bool, Any]] = []
        self.replies: list[tuple[bool, Any]] = []

    def function(self, number: int, _promise: int | None = None) -> Any:
        return self._functions[number] if number < len(self._functions) else None

    def settle_promise(self, promise: int, ok: bool, value: Any, _owner: Any) -> None:
        self.settled.append((promise, ok, value))

    def reply(self, _call: Any, _function: int, ok: bool, value: Any, _owner: Any) -> None:
        self.replies.append((ok, value))

    def call_function(self, *_args: Any) -> None:
        pass

    def terminate(self, _reason: Any) -> None:
        pass

    def release_function(self, *_args: Any) -> None:
        pass

    def was_ended(self) -> bool:
        return False


def _run(*functions: Callable[..., Any]) -> tuple[Bridge, Run, _Remote, Callable[..., None]]:
    bridge = Bridge(asyncio.get_running_loop())
    run, remote = Run(bridge, None, None), _Remote(*functions)
    run.began(cast(RunHandle, remote))
    bridge._runs[1] = run

    def deliver(kind: Any, what: int, ok: bool, value: Any, call: Any = None) -> None:
        bridge._deliver((1, kind, what, ok, _Message(value), call, False))

    return bridge, run, remote, deliver


def test_a_function_that_is_started_and_answers_at_once() -> None:
    async def main() -> None:
        _bridge, _, remote, deliver = _run(lambda: 5)
        deliver("start", 0, True, [], 7)
        deliver("start", 1, True, [], 8)
        await asyncio.sleep(0)
        assert [(promise, ok) for promise, ok, _ in remote.settled] == [(7, False), (8, False)]
        assert isinstance(remote.settled[0][2], TypeError)

    asyncio.run(main())


def test_a_promise_that_is_started_twice() -> None:
    async def main() -> None:
        async def slow() -> int:
            await asyncio.sleep(0)
            return 5

        _bridge, run, remote, deliver = _run(slow)
        for _ in range(2):
            deliver("start", 0, True, [], 1)
        await asyncio.gather(*run._promises._tasks)
        await asyncio.sleep(0)
        assert remote.settled == [(1, True, 5)] * 2
        assert run._promises._own == {}

    asyncio.run(main())


def test_calls_of_what_was_never_given_out() -> None:
    async def main() -> None:
        _bridge, run, remote, deliver = _run(lambda *args: args)
        for number in (1, 2**31, REPORT_SINK - 1, REPORT_SINK):
            deliver("call", number, True, [1])
        assert [ok for ok, _ in remote.replies] == [False] * 4
        assert run.host_function(2**31) is None
        assert run.own_promise(2**31) is None

    asyncio.run(main())


def test_what_nobody_waits_for_is_dropped_and_the_first_settlement_counts() -> None:
    async def main() -> None:
        _bridge, run, _remote, deliver = _run()
        deliver("function", 1, True, 1)
        deliver("promise", 1, False, 1)
        assert run._sandbox_functions._calls == {} == run._promises._of_sandbox

        call, promise = run.call_sandbox(0, ()), run.sandbox_promise(5)
        assert run.sandbox_promise(5) is promise
        for value in (1, 2):
            deliver("function", 1, True, value)
            deliver("promise", 5, True, value)
        assert (await call, await promise) == (1, 1)

    asyncio.run(main())


def test_a_function_that_comes_again_is_the_same_one() -> None:
    async def main() -> None:
        _bridge, run, _remote, _deliver = _run()
        function = run.sandbox_function(3, "f")
        assert all(run.sandbox_function(3, "g") is function for _ in range(3))
        assert function._times == 4

    asyncio.run(main())
