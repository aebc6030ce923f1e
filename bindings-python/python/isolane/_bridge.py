"""The connection between one event loop and the core.

In: a readable socket, one wake-up for many events. Out: each event, handed to its run. A loop owns
its bridge through the reader that it watches. When the loop closes, the bridge is freed and ends
the runs whose events would not be read any more.
"""

from __future__ import annotations

import asyncio
import collections
import contextlib
import os
import selectors
import threading
import time
import weakref
from collections.abc import Callable

from ._isolane import Mailbox, Message
from ._run import Event, Run

# On one processor polling would only take time from the sandbox.
_POLLS = (os.cpu_count() or 1) > 1

# How many times in one turn of the loop a thread waits for the next call of a sandbox that it has
# just answered: some 200 microseconds in all, at most.
_MOST_WAITS = 12

# The time in one turn of the loop for events that were held up. One slice of a message takes some
# 15 ms at most.
_TURN_S = 0.01

_bridges: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, weakref.ref[Bridge]]
_bridges = weakref.WeakKeyDictionary()

# Every bridge, also those of threads without a loop.
_all: weakref.WeakSet[Bridge] = weakref.WeakSet()


def bridge_of(loop: asyncio.AbstractEventLoop) -> Bridge:
    """Returns the bridge of a loop that is running on this thread; makes it if necessary."""
    known = _bridges.get(loop)
    bridge = known() if known is not None else None
    if bridge is None:
        bridge = Bridge(loop)
        bridge.watch()
        _bridges[loop] = weakref.ref(bridge)
    return bridge


def _forked() -> None:
    # The sockets belong to the parent process, which shares them with this one.
    for bridge in tuple(_all):
        bridge.leave()
    _bridges.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


class Bridge:
    """The mailbox of one loop, or of a thread without a loop, and its runs."""

    def __init__(self, loop: asyncio.AbstractEventLoop | None = None) -> None:
        self.own_loop = loop
        self.mailbox = Mailbox()
        self._runs: dict[int, Run] = {}
        self._closing: dict[int, Callable[[], None]] = {}
        # Callbacks for events that come more than once.
        self._noticing: dict[int, Callable[[], None]] = {}
        self._at_end: list[Callable[[], None]] = []
        # Sessions in which awaitables of this loop may be pending.
        self._sessions: weakref.WeakSet[Run] | None = None
        self._numbers = 0
        self._pending: collections.deque[Event] = collections.deque()
        # Runs whose large messages are being read, the next one first.
        self._readers: collections.deque[Run] = collections.deque()
        self._reading = False
        # Messages that were not read to their end, to be freed in slices.
        self._discarded: collections.deque[Message] = collections.deque()
        self._polling = False
        self._watched: int | None = None
        self._thread = threading.get_ident()
        # Whether this process was forked after this bridge had been made.
        self._is_forked = False
        _all.add(self)

    def __del__(self) -> None:
        if self._is_forked:
            return
        self.mailbox.close()
        for run in tuple(self._runs.values()):
            run.orphan("the event loop that started the run has closed")
        if self._sessions and self.own_loop is not None and self.own_loop.is_closed():
            for session in tuple(self._sessions):
                session.sandbox.promises.abandon(self.own_loop)

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The loop. A thread without one gets a loop of its own at the first use."""
        if self.own_loop is None:
            # `poll` has no state in the kernel, as `epoll` has. So a child that a host function
            # forks can close its copy of the loop without an effect on the parent. Windows has no
            # `poll`, and no forks.
            selector = getattr(selectors, "PollSelector", selectors.SelectSelector)
            self.own_loop = asyncio.SelectorEventLoop(selector())
        return self.own_loop

    def watch(self) -> None:
        """Has the loop watch the mailbox."""
        watched = self.mailbox.fileno()
        try:
            self.loop.add_reader(watched, self._on_readable)
        except NotImplementedError:
            message = (
                "isolane needs a loop that can watch a socket, and"
                f" {type(self.loop).__name__} cannot; asyncio.SelectorEventLoop can"
            )
            raise RuntimeError(message) from None
        self._watched = watched
        if self._pending:
            self.loop.call_soon(self._receive)

    def unwatch(self) -> None:
        """Ends that, because the loop is about to close."""
        if self._watched is not None:
            self.loop.remove_reader(self._watched)
            self._watched = None

    def leave(self) -> None:
        """Drops all runs in a forked child. They continue in the parent, which owns the sockets."""
        self._is_forked = True
        runs = tuple(self._runs.values())
        self._runs.clear()
        self._pending.clear()
        self._readers.clear()
        self._discarded.clear()
        for run in runs:
            # A forked child has only the thread that forked.
            run.fork(own_thread=self._thread == threading.get_ident())

    def number(self) -> int:
        """Returns a new number for the events of a run or of a runtime."""
        self._numbers += 1
        return self._numbers

    def attach(self, number: int, run: Run) -> None:
        """Registers a run, so that it receives its events."""
        self._runs[number] = run
        self.expect_events()
        if run.held_up:
            self._readers.append(run)
            self._read_later()

    def visit(self, session: Run) -> None:
        """Notes that awaitables of this loop may be pending in that session."""
        if self._sessions is None:
            self._sessions = weakref.WeakSet()
        self._sessions.add(session)

    def adopt(self, run: Run) -> None:
        """Takes over a run whose own loop does not run any more, or waits for this thread."""
        before = run.bridge()
        undelivered = [] if before is None else before.forget(run)
        number = self.number()
        run.move(self, number)
        self._pending.extend((number, *event[1:]) for event in undelivered)
        if undelivered and self._watched is not None:
            self.loop.call_soon(self._receive)
        self.attach(number, run)
        run.remote.forward(self.mailbox, number)
        run.adopted()

    def on_closed(self, done: Callable[[], None]) -> int:
        """Returns a number for the end of a runtime, or for the answer of a session; the event with
        that number calls `done`."""
        number = self.number()
        self._closing[number] = done
        return number

    def on_notice(self, notice: Callable[[], None]) -> int:
        """Returns a number for news, such as tasks of a page; every event with that number calls
        `notice`."""
        number = self.number()
        self._noticing[number] = notice
        return number

    def at_end(self, act: Callable[[], None]) -> None:
        """Has something done once no thread waits for runs of this bridge any more."""
        self._at_end.append(act)

    def end(self) -> None:
        """No thread waits any more."""
        acts, self._at_end = self._at_end, []
        for act in acts:
            act()

    def end_notice(self, number: int) -> None:
        """Forgets a number for news, of which no more come."""
        self._noticing.pop(number, None)

    def wait_until(self, is_over: Callable[[], bool]) -> None:
        """Handles events on this thread, without a loop, until `is_over` returns true."""
        while not is_over():
            if not self._pending:
                self.mailbox.wait()
            self._receive()

    def expect_events(self) -> None:
        """Polls in the next turns of the loop, because an event is expected soon. Waking a sleeping
        thread costs more than most answers take."""
        if self.own_loop is None or not _POLLS or self._is_forked:
            return
        self.mailbox.expect()
        if not self._polling:
            self._polling = True
            self.own_loop.call_soon(self._poll)

    def _on_readable(self) -> None:
        if self._watched is not None:
            # A host function may run the loop itself. The loop would then call this reader again
            # in its context, which cannot be entered twice. So this adds a reader with a new one.
            self.loop.add_reader(self._watched, self._on_readable)
        self._receive()

    def _poll(self) -> None:
        if self._is_forked:
            return
        # Scheduled before any event is delivered: a host function may run the loop itself, and
        # that loop has to poll, too.
        if self.mailbox.expects():
            self.loop.call_soon(self._poll)
        else:
            self._polling = False
        self._receive()

    def _receive(self) -> None:
        if self._is_forked:
            return
        pending = self._pending
        # No local variable holds the events: the exception of a host function may keep this frame.
        arrived = self._add(self.mailbox.drain())
        waits = _MOST_WAITS if _POLLS else 0
        try:
            # A host function that runs the loop itself calls this method again meanwhile.
            while pending:
                event = pending.popleft()
                self._deliver(event)
                # Not for several sandboxes or large messages: those could starve the loop.
                is_small = event[1] == "call" and not event[-1]
                if is_small and arrived == 1 and waits > 0 and not self._is_forked:
                    waits -= 1
                    arrived = self._add(self.mailbox.drain_next())
        finally:
            if pending:
                self.loop.call_soon(self._receive)

    def _add(self, arrived: list[Event]) -> int:
        """Queues events; returns their number."""
        self._pending += arrived
        return len(arrived)

    def _deliver(self, event: Event) -> None:
        number, kind = event[:2]
        if kind == "closed":
            notice = self._noticing.get(number)
            (self._closing.pop(number) if notice is None else notice)()
            return
        run = self._runs.get(number)
        if run is None:
            return
        # A run's events keep their order: an event that takes long to read holds up the later
        # events of its run. It does not hold up other runs.
        if run.held_up:
            run.held_up.append(event)
            if kind == "settled" and run not in self._readers:
                self._readers.append(run)
                self._read_later()
        elif run.awaits_end(event):
            run.held_up.append(event)
        elif run.awaits_turn(event):
            run.held_up.append(event)
            self._read_next_turn(number, run)
        elif run.is_ready(event):
            self._handle(run, event)
        else:
            run.held_up.append(event)
            self._readers.append(run)
            self._read_later()

    def _handle(self, run: Run, event: Event) -> None:
        number, kind, what, ok, message, call, is_large = event
        if kind == "settled":
            del self._runs[number]
            run.settled()
        elif run.ignores(kind, is_large):
            pass
        elif kind == "call":
            run.called(what, message, call)
            self.expect_events()
        elif kind == "start":
            run.async_called(what, message, call)
            self.expect_events()
        elif kind == "function":
            run.function_settled(what, ok, message)
        else:
            run.promise_settled(what, ok, message)

    def _read_later(self) -> None:
        """Schedules the next slice of reading after the loop's other work; without a loop, reads
        at once."""
        if self.own_loop is None:
            while self._readers and not self._is_forked:
                self._read_on()
            self._discarded.clear()
        elif (self._readers or self._discarded) and not self._reading:
            self._reading = True
            self.own_loop.call_soon(self._read)

    def _read_next_turn(self, number: int, run: Run) -> None:
        """Schedules the reading of a run's events after all that the loop has scheduled so far."""

        def read() -> None:
            if self._runs.get(number) is run and not self._is_forked:
                self._readers.append(run)
                self._read_later()

        self.loop.call_soon(read)

    def _read(self) -> None:
        self._reading = False
        started = time.monotonic()
        try:
            while self._readers and not self._is_forked and time.monotonic() - started < _TURN_S:
                self._read_on()
            if self._discarded and not self._readers and self._discarded[0].discard():
                self._discarded.popleft()
        finally:
            self._read_later()

    def _read_on(self) -> None:
        """Reads a slice of one run's message, and handles the event if the message is complete."""
        run = self._readers[0]
        self._readers.rotate(-1)
        event = run.held_up[0] if run.held_up else None
        if event is not None and run.awaits_turn(event):
            self._readers.remove(run)
            self._read_next_turn(event[0], run)
            return
        if event is not None and run.awaits_end(event):
            self._readers.remove(run)
            return
        is_ready = event is not None and run.is_ready(event)
        if is_ready:
            run.held_up.popleft()
        if not run.held_up:
            self._readers.remove(run)
        if self.own_loop is not None:
            # Scheduled before a host function is called: it may run the loop itself.
            self._read_later()
        if event is not None and is_ready and event[0] in self._runs:
            self._handle(run, event)
            if event[-1] and not event[4].discard():
                self._discarded.append(event[4])
                self._read_later()

    def runs(self) -> tuple[Run, ...]:
        """The runs whose events come here."""
        return tuple(self._runs.values())

    def forget(self, run: Run) -> list[Event]:
        """Drops a run, whose events are of no interest here any more. Returns those that have
        arrived and were not delivered."""
        numbers = {number for number, known in self._runs.items() if known is run}
        for number in numbers:
            del self._runs[number]
        with contextlib.suppress(ValueError):
            self._readers.remove(run)
        undelivered = [event for event in self._pending if event[0] in numbers]
        if undelivered:
            kept = [event for event in self._pending if event[0] not in numbers]
            self._pending.clear()
            self._pending.extend(kept)
        return undelivered
