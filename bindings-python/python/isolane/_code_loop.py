"""The loop: a model writes programs, an executor runs them, and the model sees what came of them,
until it answers.

In: a model, an executor and options; then a text or contents. Out: events as they happen, and one
result. The loop itself is native. It asks for what is of Python: `_Run` calls the model and the
executor on the event loop of the caller, and functions that are no coroutine functions on threads
of their own. Each run has one function, which hears the news of the native half; answers are asks
of the door.
"""

from __future__ import annotations

import asyncio
import collections
import contextlib
import contextvars
import inspect
import itertools
import json
import threading
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Literal, Protocol, TypeAlias, TypedDict, cast, final

from ._door import Door, DoorCall, as_error
from ._executor_call import run_here
from ._executor_data import (
    CodeExecutionResult,
    ExecFile,
    ExecutorError,
    InvocationContext,
    NativeFile,
    Outcome,
    input_of,
    native_files,
    native_result,
)
from ._executors import TIMEOUT_MS, LibraryExecutor
from ._futures import on_loop
from ._options import refuses_unknown

Reason: TypeAlias = Literal["answered", "max_turns", "cancelled"]
"""Why a run is over."""

AsText: TypeAlias = Literal["auto"] | bool
"""How code and its results are written for the model."""

Content: TypeAlias = Mapping[str, Any]
"""The words of one side: `role`, which is `user` or `model`, and `parts`."""


class Model(Protocol):
    """A language model, as the loop sees it."""

    def generate(self, *, instruction: str, contents: list[dict[str, Any]]) -> Any:
        """Goes on with a conversation. A function or a coroutine function. Returns a list of parts,
        one part, a content of the model, a text, or an iterator or asynchronous iterator of parts
        or texts."""
        ...


class CodeExecutor(Protocol):
    """Runs code that a model wrote. Calls of one executor may overlap.

    It may have the attributes `stateful`, `error_retry_attempts`, `timeout_ms` and
    `code_block_delimiters`. A bare function of the same parameters is an executor, too.
    """

    def execute_code(self, ctx: InvocationContext, input: Any, /) -> Any:
        """Runs the code of the input to its end. A function, which then runs on a thread of its
        own, or a coroutine function. Returns a `CodeExecutionResult`."""
        ...


class TurnEvent(TypedDict):
    """The model is about to be asked."""

    type: Literal["turn"]
    turn: int


class TextEvent(TypedDict):
    """The model said something, as it comes. Thoughts are not said."""

    type: Literal["text"]
    turn: int
    text: str


class CodeEvent(TypedDict):
    """A program is about to run."""

    type: Literal["code"]
    turn: int
    index: int
    language: str
    code: str


class OutputEvent(TypedDict):
    """A program printed something, as it comes."""

    type: Literal["output"]
    turn: int
    index: int
    stream: Literal["stdout", "stderr"]
    text: str


class RetryEvent(TypedDict):
    """An attempt failed, and another one follows."""

    type: Literal["retry"]
    turn: int
    index: int
    attempt: int
    error: str


class ResultEvent(TypedDict):
    """A program is done."""

    type: Literal["result"]
    turn: int
    index: int
    outcome: Outcome
    output: str
    result: CodeExecutionResult
    attempts: int
    duration_ms: float


class FinishEvent(TypedDict):
    """The run is over."""

    type: Literal["finish"]
    turn: int
    reason: Reason
    text: str


LoopEvent: TypeAlias = (
    TurnEvent | TextEvent | CodeEvent | OutputEvent | RetryEvent | ResultEvent | FinishEvent
)
"""An event of a run. Turns count from 1; programs from 0 in each turn."""


@dataclass
class LoopResult:
    """The end of a run."""

    reason: Reason
    text: str
    """The text of the last turn, without thoughts."""
    contents: list[dict[str, Any]]
    """The whole conversation, with the code and its results."""
    files: list[ExecFile]
    """The files that programs left, the newest of each name, in the order of names."""
    turns: int


@final
class CodeLoop:
    """A model with an executor for its code. Runs share nothing but these two."""

    __slots__ = ("_door", "_execute", "_generate")

    @refuses_unknown("CodeLoop")
    def __init__(
        self,
        model: Model,
        executor: CodeExecutor | LibraryExecutor | Callable[..., Any],
        *,
        instruction: str | None = None,
        max_turns: int | None = None,
        files: Sequence[ExecFile | Mapping[str, Any]] | None = None,
        execution_id: str | None = None,
        code_blocks: Sequence[tuple[str, str]] | None = None,
        result_delimiters: tuple[str, str] | None = None,
        as_text: AsText | None = None,
        max_output_bytes: int | None = None,
    ) -> None:
        """Makes a loop.

        Args:
            model: The model.
            executor: One of the library, or of your own.
            instruction: The instruction of the model.
            max_turns: How often the model is asked at most. Default 16.
            files: Files that every program finds.
            execution_id: The state of a stateful executor. By default each run has a new one.
            code_blocks: The delimiters of code in a text, in place of the executor's.
            result_delimiters: The delimiters of a result as text. Default: a fence `tool_output`.
            as_text: Whether code and results go back as text: `auto` as the model said it.
            max_output_bytes: The bytes of one result that the model is shown. Default 65,536.

        Raises:
            TypeError, ValueError: an option is not valid.
        """
        options: dict[str, Any] = {
            "instruction": instruction,
            "max_turns": max_turns,
            "execution_id": execution_id,
            "code_blocks": code_blocks,
            "result_delimiters": result_delimiters,
            "as_text": as_text,
            "max_output_bytes": max_output_bytes,
        }
        given: dict[str, Any] = {
            "options": _dumps(options, "an option"),
            "files": None if files is None else native_files(files, "files"),
        }
        generate = getattr(model, "generate", None)
        if not callable(generate) or _is_unbound(model, "generate"):
            raise TypeError(f"model must have a method generate, got {_kind(model)}")
        self._generate: Callable[..., Any] = generate
        execute = getattr(executor, "execute_code", executor)
        if not callable(execute) or _is_unbound(executor, "execute_code"):
            got = _kind(executor)
            raise TypeError(
                f"executor must have a method execute_code, or be a function, got {got}"
            )
        self._execute: Callable[..., Any] = execute
        given["traits"] = _traits_of(executor)
        self._door = Door("code-loop", given, as_error=_model_error)

    async def run(self, input: str | Sequence[Content]) -> LoopResult:
        """Runs until the model answers without code, or has no turn left. Cancelling the task ends
        the program that runs, and asks the model no more.

        Args:
            input: A text of the user, or contents.

        Raises:
            TypeError, ValueError: the input has a part that is none.
            Whatever the model raises. Nothing else is an error of a run.
        """
        run = _Run(self, input, False)
        run.begin()
        try:
            return await asyncio.shield(run.ended)
        except asyncio.CancelledError:
            await run.end()
            raise

    def run_sync(self, input: str | Sequence[Content]) -> LoopResult:
        """As `run`, and waits for the result.

        Raises:
            RuntimeError: an event loop is running on this thread (await `run`).
        """
        return run_here("run_sync", "run", lambda: self.run(input))

    def stream(self, input: str | Sequence[Content]) -> LoopStream:
        """Runs with events, as the stream is read. Leaving the stream cancels the run.

        Args:
            input: as for `run`.

        Raises:
            TypeError, ValueError: as for `run`.
            RuntimeError: no event loop is running here. A stream that is read in another event
                loop raises it, too.
        """
        return LoopStream(_Run(self, input, True))


@final
class LoopStream(AsyncIterator[LoopEvent]):
    """The events of a run: an asynchronous iterator, and a context manager for `async with`.

    It raises what the model raises. The run ends with the stream.
    """

    __slots__ = ("__weakref__", "_run")

    def __init__(self, run: _Run) -> None:
        self._run = run

    @property
    def result(self) -> LoopResult | None:
        """The result, when the last event was read."""
        run = self._run
        return run.result if not run.events else None

    def cancel(self) -> None:
        """Ends the run, with the reason `cancelled`. The events until then can be read."""
        self._run.cancel()

    async def aclose(self) -> None:
        """Ends the run, and the stream. May be called again."""
        await self._run.end()

    def __aiter__(self) -> LoopStream:
        return self

    async def __anext__(self) -> LoopEvent:
        try:
            return await self._run.next_event()
        except asyncio.CancelledError:
            await self._run.end()
            raise

    async def __aenter__(self) -> LoopStream:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        raised: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()

    def __del__(self) -> None:
        # The run may not have been made.
        with contextlib.suppress(AttributeError):
            self._run.leave()


_Traits: TypeAlias = tuple[bool, int, "float | None", bool, list[tuple[str, str]]]

_DELIMITERS = [(f"```{language}\n", "\n```") for language in ("tool_code", "python")]


def _is_unbound(party: Any, method: str) -> bool:
    """Whether a class was given in place of an object of it."""
    static = inspect.getattr_static(party, method, None)
    return isinstance(party, type) and not isinstance(static, (staticmethod, classmethod))


def _kind(party: Any) -> str:
    return f"the class {party.__name__}" if isinstance(party, type) else type(party).__name__


def _keeps_time(executor: Any) -> bool:
    """Whether an executor is one of the library, which ends its calls when their time is over, and
    nothing of it that matters for that was replaced."""
    return isinstance(executor, LibraryExecutor) and all(
        inspect.getattr_static(executor, name) is inspect.getattr_static(LibraryExecutor, name)
        for name in ("execute_code", "timeout_ms")
    )


def _traits_of(executor: Any) -> _Traits:
    """The properties of an executor of Python that the loop asks for."""
    stateful = getattr(executor, "stateful", False)
    if not isinstance(stateful, bool):
        raise TypeError(f"executor.stateful must be a boolean, got {type(stateful).__name__}")
    attempts = getattr(executor, "error_retry_attempts", 2)
    if isinstance(attempts, bool) or not isinstance(attempts, int):
        got = type(attempts).__name__
        raise TypeError(f"executor.error_retry_attempts must be an int, got {got}")
    if attempts < 0:
        raise ValueError(f"executor.error_retry_attempts must not be negative, got {attempts}")
    timeout_ms = getattr(executor, "timeout_ms", TIMEOUT_MS)
    if timeout_ms is not None and (
        isinstance(timeout_ms, bool) or not isinstance(timeout_ms, (int, float))
    ):
        got = type(timeout_ms).__name__
        raise TypeError(f"executor.timeout_ms must be a number or None, got {got}")
    delimiters = getattr(executor, "code_block_delimiters", _DELIMITERS)
    pairs = [tuple(pair) for pair in delimiters]
    if not all(len(pair) == 2 and all(isinstance(text, str) for text in pair) for pair in pairs):
        raise TypeError("executor.code_block_delimiters must be pairs of strings")
    delimiters = cast("list[tuple[str, str]]", pairs)
    return stateful, min(attempts, 2**32 - 1), timeout_ms, _keeps_time(executor), delimiters


class _ModelRaisedError(Exception):
    """The model has raised the exception that is kept under a number."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def _model_error(thrown: Any) -> BaseException:
    return _ModelRaisedError(thrown) if isinstance(thrown, int) else as_error(thrown)


_numbers = itertools.count(1)


class _Run:
    """A run on the event loop of its caller."""

    def __init__(self, code_loop: CodeLoop, input: Any, streams: bool) -> None:
        self._loop = asyncio.get_running_loop()
        self._door = code_loop._door
        self._number = next(_numbers)
        self._input = _dumps(input, "the input")
        self._is_stream = streams
        if streams:
            # A run checks its input itself, and begins with the first event that is read.
            self._door.ask("check", self._input)
        # The variables of the caller's context: events arrive in that of the loop's first user.
        self._variables = contextvars.copy_context()
        self._generate, self._execute = code_loop._generate, code_loop._execute
        # The work for each question of the native half; the streams of a model; and exceptions.
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._streams: dict[int, Any] = {}
        self._raised: dict[int, BaseException] = {}
        # Calls of executors that are over for the loop.
        self._dropped: dict[int, threading.Event] = {}
        # Events that nobody has read, and as how many each counts.
        self.events: collections.deque[tuple[LoopEvent, int]] = collections.deque()
        self.result: LoopResult | None = None
        self.ended: asyncio.Future[LoopResult] = self._loop.create_future()
        self._arrived = asyncio.Event()
        self._is_error_read = False
        self._has_begun = False
        self._is_cancelled = False
        self._settling: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Begins the run."""
        if not self._has_begun:
            call = self._door.call(
                "run", self._number, self._input, self._is_cancelled, self._is_stream, self._receive
            )
            self._has_begun = True
            self._settling = self._loop.create_task(self._settle(call))

    def cancel(self) -> None:
        """Ends the run, with the reason `cancelled`. Any thread may call this."""
        self._is_cancelled = True
        if self._has_begun:
            self._door.ask("cancel", self._number)

    async def next_event(self) -> LoopEvent:
        """The next event. Raises the exception of the model, once, and the end of the iteration."""
        if asyncio.get_running_loop() is not self._loop:
            raise RuntimeError("a stream is read in the event loop in which it was made")
        self.begin()
        while not self.events:
            if self.ended.done():
                if not self._is_error_read:
                    self._is_error_read = True
                    self.ended.result()
                raise StopAsyncIteration
            self._arrived.clear()
            await self._arrived.wait()
        event, count = self.events.popleft()
        self._door.ask("read", self._number, count)
        return event

    async def end(self) -> None:
        """Ends the run, and waits for a moment until nothing of it is left."""
        self.cancel()
        if not self._has_begun:
            self._has_begun = True
            self.ended.cancel()
        # Events that nobody reads must not hold the run up.
        self._leave_events()
        tasks = [*self._tasks.values()]
        for number in tuple(self._tasks):
            self._drop(number)
        waiting: list[asyncio.Future[Any]] = [self.ended, *tasks]
        await asyncio.wait(waiting, timeout=1)
        self._is_error_read = True
        if self.ended.done() and not self.ended.cancelled():
            self.ended.exception()

    def leave(self) -> None:
        """Ends the run, from any thread, as nobody reads its events any more."""
        self.cancel()
        if not self.ended.done():
            on_loop(self._loop, self._forget)

    def _leave_events(self) -> None:
        for _, count in self.events:
            self._door.ask("read", self._number, count)
        self.events.clear()

    def _forget(self) -> None:
        self._leave_events()
        for number in tuple(self._tasks):
            self._drop(number)

    def _receive(self, kind: str, number: int, what: Any) -> None:
        """Hears a piece of news of the native half."""
        if kind == "event":
            self.events.append((_event(*what), number))
            self._arrived.set()
        elif kind == "generate":
            self._start(number, self._generate_reply(number, json.loads(what)))
        elif kind == "next":
            self._start(number, self._next_part(number))
        elif kind == "execute":
            self._dropped[number] = threading.Event()
            self._start(number, self._execute_code(number, *what))
        else:
            self._drop(number)

    async def _settle(self, call: DoorCall) -> None:
        """Waits for the end of the run, and keeps it."""
        try:
            result, error = _result(*await call), None
        except asyncio.CancelledError:
            # The event loop closes.
            self.ended.cancel()
            raise
        except _ModelRaisedError as raised:
            result, error = None, self._raised.pop(raised.number)
        except Exception as raised:
            result, error = None, raised
        self._raised.clear()
        self._arrived.set()
        if self.ended.done():
            return
        if error is None:
            assert result is not None, "a run without an error has a result"
            self.result = result
            self.ended.set_result(result)
        else:
            if isinstance(error, (StopIteration, StopAsyncIteration, asyncio.CancelledError)):
                wrapped = RuntimeError(f"the model raised {type(error).__name__}")
                wrapped.__cause__ = error
                error = wrapped
            self.ended.set_exception(error)
            # A stream that was left has no reader.
            self.ended.exception()

    def _start(self, number: int, work: Any) -> None:
        task = self._variables.run(self._loop.create_task, work)
        self._tasks[number] = task

        def done(task: asyncio.Task[None]) -> None:
            if self._tasks.get(number) is task:
                del self._tasks[number]
            raised = None if task.cancelled() else task.exception()
            # The event loop itself raises the two.
            if raised is not None and not isinstance(raised, (KeyboardInterrupt, SystemExit)):
                context = {"message": "an executor raised", "exception": raised, "task": task}
                self._loop.call_exception_handler(context)

        task.add_done_callback(done)

    def _drop(self, number: int) -> None:
        """Ends the work for a question."""
        dropped = self._dropped.pop(number, None)
        if dropped is not None:
            dropped.set()
        task, stream = self._tasks.pop(number, None), self._streams.pop(number, None)
        if task is not None:
            task.cancel()
        if stream is not None and hasattr(stream, "aclose" if _is_async(stream) else "close"):
            self._start(-number, _close(task, stream))

    async def _generate_reply(self, number: int, request: dict[str, Any]) -> None:
        try:
            reply = await _call(self._generate, **request)
            if _is_async(reply) or hasattr(reply, "__next__"):
                self._streams[number] = aiter(reply) if _is_async(reply) else reply
                self._answer(number, "stream")
            else:
                self._answer(number, "parts", _dumps(reply, "the reply of the model"))
        except BaseException as raised:
            self._model_raised(number, raised)

    async def _next_part(self, number: int) -> None:
        try:
            stream = self._streams[number]
            if _is_async(stream):
                part = await anext(stream, _END)
            else:
                part = await _on_thread(next, stream, _END)
            if part is _END:
                self._answer(number, "end")
            else:
                self._answer(number, "parts", _dumps(part, "a part of the model"))
        except BaseException as raised:
            self._model_raised(number, raised)

    def _model_raised(self, number: int, raised: BaseException) -> None:
        self._raised[number] = raised
        self._answer(number, "raised")
        # The caller of the run gets all others.
        if isinstance(raised, (asyncio.CancelledError, KeyboardInterrupt, SystemExit)):
            raise raised

    def _answer(self, number: int, kind: str, *rest: Any) -> None:
        """Answers a question."""
        self._door.ask("answer", self._number, number, kind, *rest)

    async def _execute_code(
        self,
        number: int,
        code: str,
        language: str,
        files: list[NativeFile],
        execution_id: str | None,
        *place: Any,
    ) -> None:
        invocation_id, turn, attempt = place
        door, run, dropped = self._door, self._number, self._dropped[number]
        context = InvocationContext(
            invocation_id,
            turn,
            attempt,
            cancelled=dropped.is_set,
            stdout=lambda data: door.ask("output", run, number, True, bytes(memoryview(data))),
            stderr=lambda data: door.ask("output", run, number, False, bytes(memoryview(data))),
        )
        given = input_of((code, language, files, execution_id))
        try:
            self._executed(number, await _call(self._execute, context, given))
        except ExecutorError as error:
            kind = error.kind if isinstance(error.kind, str) else "other"
            self._answer(number, "refused", kind, _message_of(error, ""))
        except BaseException as raised:
            message = _message_of(raised, type(raised).__name__)
            self._answer(number, "refused", "other", f"the executor failed: {message}")
            if not isinstance(raised, Exception):
                raise
        finally:
            self._dropped.pop(number, None)

    def _executed(self, number: int, returned: Any) -> None:
        """Answers with the value that an executor returned. The program has run: if the value is no
        result, there is no other attempt."""
        try:
            self._answer(number, "executed", native_result(returned))
        except Exception as raised:
            message = _message_of(raised, type(raised).__name__)
            self._answer(number, "refused", "bad_input", f"the executor failed: {message}")


_END = object()


def _message_of(raised: BaseException, default: str) -> str:
    """The message of an exception of the caller's as Unicode; `default` if it has no text."""
    try:
        text = str(raised) or default
    except Exception:
        text = type(raised).__name__
    return text.encode(errors="backslashreplace").decode()


def _is_async(stream: Any) -> bool:
    return hasattr(stream, "__aiter__") or hasattr(stream, "__anext__")


async def _close(task: asyncio.Task[None] | None, stream: Any) -> None:
    """Closes a stream that nobody reads any more."""
    if task is not None:
        await asyncio.wait([task])
    # There is nobody to tell of an exception of its end.
    with contextlib.suppress(Exception):
        if _is_async(stream):
            await stream.aclose()
        else:
            await _on_thread(stream.close)


async def _call(function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """Calls a function: one that blocks on a thread of its own."""
    called = getattr(function, "__call__", None)  # noqa: B004 - that of an object with a method
    of_loop = (inspect.iscoroutinefunction, inspect.isasyncgenfunction)
    if any(is_one(function) or is_one(called) for is_one in of_loop):
        value = function(*args, **kwargs)
    else:
        value = await _on_thread(function, *args, **kwargs)
    return await value if inspect.isawaitable(value) else value


async def _on_thread(function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """Calls a function on a thread of its own, which does not keep the process alive."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Any] = loop.create_future()
    context = contextvars.copy_context()

    def settle(raised: BaseException | None, value: Any) -> None:
        if future.done():
            return
        if raised is None:
            future.set_result(value)
        elif isinstance(raised, StopIteration):
            future.set_exception(RuntimeError("a function raised StopIteration"))
        else:
            future.set_exception(raised)

    def work() -> None:
        try:
            value = context.run(function, *args, **kwargs)
        except BaseException as raised:
            on_loop(loop, settle, raised, None)
        else:
            on_loop(loop, settle, None, value)

    threading.Thread(target=work, name="isolane-loop", daemon=True).start()
    return await future


def _dumps(value: Any, place: str) -> str:
    try:
        return json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise TypeError(f"{place} is not plain data: {error}") from None


def _event(text: str, files: list[NativeFile]) -> LoopEvent:
    event = json.loads(text)
    if event["type"] == "result":
        event["duration_ms"] = event.pop("durationMs")
        event["result"] = CodeExecutionResult.from_json(event["result"])
        event["result"].output_files = [ExecFile(*file) for file in files]
    return cast(LoopEvent, event)


def _result(text: str, files: list[NativeFile]) -> LoopResult:
    fields = json.loads(text)
    fields["files"] = [ExecFile(*file) for file in files]
    return LoopResult(**fields)
