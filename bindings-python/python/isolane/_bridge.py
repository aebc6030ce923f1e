"""The one connection that an event loop has to the core.

In: a readable socket, one wake-up for many events. Out: each event, handed to the run it is about.
A loop owns its bridge through the reader that it watches: when the loop closes the bridge goes, and
ends the runs that nobody would hear of any more.
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

# Events that ask the host to call something.
_CALLS = ("call", "start")

# On one processor looking for events would only keep the sandbox from computing.
_LOOKS = (os.cpu_count() or 1) > 1

# How often a sandbox that was just answered is given a moment to ask for more before the loop has
# its turn: some 200 microseconds in all, at most.
_MOMENTS = 12

# For how long in a turn of the loop what was held up is dealt with; reading on in one message takes
# some 15 ms at most.
_TURN_S = 0.01

_bridges: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, weakref.ref[Bridge]]
_bridges = weakref.WeakKeyDictionary()

# Every bridge that there is, those of threads without a loop among them.
_all: weakref.WeakSet[Bridge] = weakref.WeakSet()


def bridge_of(loop: asyncio.AbstractEventLoop) -> Bridge:
    """The bridge of a loop that is running on this thread."""
    known = _bridges.get(loop)
    bridge = known() if known is not None else None
    if bridge is None:
        bridge = Bridge(loop)
        bridge.watch()
        _bridges[loop] = weakref.ref(bridge)
    return bridge


def _forked() -> None:
    # The sockets are shared with the process that this one was forked from: they are its own.
    for bridge in tuple(_all):
        bridge.leave()
    _bridges.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


class Bridge:
    """The mailbox of one loop, or of a thread that has none, and the runs that it is for."""

    def __init__(self, loop: asyncio.AbstractEventLoop | None = None) -> None:
        self.own_loop = loop
        self.mailbox = Mailbox()
        self._runs: dict[int, Run] = {}
        self._closing: dict[int, Callable[[], None]] = {}
        self._numbers = 0
        self._pending: collections.deque[Event] = collections.deque()
        # Runs of which a message is being read, the next one first.
        self._readers: collections.deque[Run] = collections.deque()
        self._reading = False
        # Messages that nobody will read on in.
        self._leftovers: collections.deque[Message] = collections.deque()
        self._polling = False
        self._watched: int | None = None
        self._thread = threading.get_ident()
        # Whether this process was forked off since.
        self._left = False
        _all.add(self)

    def __del__(self) -> None:
        if self._left:
            return
        self.mailbox.close()
        for run in tuple(self._runs.values()):
            run.lose("the event loop that started the run has closed")

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The loop; made when it is first needed, for a thread that has none."""
        if self.own_loop is None:
            # The kernel keeps nothing for `poll`: a process that a host function forks off has a
            # loop of its own then, and closing that one does nothing to this.
            self.own_loop = asyncio.SelectorEventLoop(selectors.PollSelector())
        return self.own_loop

    def watch(self) -> None:
        """Lets the loop look for events."""
        self._watched = self.mailbox.fileno()
        self.loop.add_reader(self._watched, self._ring)

    def unwatch(self) -> None:
        """The loop is about to close."""
        if self._watched is not None:
            self.loop.remove_reader(self._watched)
            self._watched = None

    def leave(self) -> None:
        """This process was forked off: nothing here is its own. The runs go on in the other one."""
        self._left = True
        runs = tuple(self._runs.values())
        self._runs.clear()
        self._pending.clear()
        self._readers.clear()
        self._leftovers.clear()
        for run in runs:
            # Of all threads, the one that forked is here.
            run.fork(own_thread=self._thread == threading.get_ident())

    def number(self) -> int:
        """A number under which events will come."""
        self._numbers += 1
        return self._numbers

    def attach(self, number: int, run: Run) -> None:
        """Announces a run, whose events come from now on."""
        self._runs[number] = run
        self.expect_events()
        if run.held_up:
            self._readers.append(run)
            self._read_later()

    def adopt(self, run: Run) -> None:
        """Takes over a run whose own loop does not run any more."""
        before = run.bridge()
        if before is not None:
            before._forget(run)
        number = self.number()
        run.move(self, number)
        self.attach(number, run)
        run.remote.forward(self.mailbox, number)

    def on_closed(self, done: Callable[[], None]) -> int:
        """A number under which the end of a runtime will be told."""
        number = self.number()
        self._closing[number] = done
        return number

    def wait_until(self, is_over: Callable[[], bool]) -> None:
        """Waits on this thread, without a loop, for an event that makes it true."""
        while not is_over():
            self.mailbox.wait()
            self._receive()

    def expect_events(self) -> None:
        """Looks for events for a moment, because the answer to what was just said is near. Waking
        a thread that sleeps costs more than the answer."""
        if self.own_loop is None or not _LOOKS or self._left:
            return
        self.mailbox.expect()
        if not self._polling:
            self._polling = True
            self.own_loop.call_soon(self._poll)

    def _ring(self) -> None:
        if self._watched is not None:
            # A host function may run the loop itself, and what watches has a context, which cannot
            # be entered twice: anew, with another.
            self.loop.add_reader(self._watched, self._ring)
        self._receive()

    def _poll(self) -> None:
        if self._left:
            return
        # Before anything is delivered: a host function may run the loop itself, which has to look.
        if self.mailbox.expects():
            self.loop.call_soon(self._poll)
        else:
            self._polling = False
        self._receive()

    def _receive(self) -> None:
        if self._left:
            return
        pending = self._pending
        arrived = self.mailbox.drain()
        pending += arrived
        moments = _MOMENTS if _LOOKS else 0
        try:
            # A host function that runs the loop itself comes here again meanwhile.
            while pending:
                event = pending.popleft()
                self._deliver(event)
                # Not where several sandboxes ask, or one says much: they would keep the loop from
                # all else.
                is_small = event[1] == "call" and not event[-1]
                if is_small and len(arrived) == 1 and moments > 0 and not self._left:
                    moments -= 1
                    arrived = self.mailbox.drain_next()
                    pending += arrived
        finally:
            if pending:
                self.loop.call_soon(self._receive)

    def _deliver(self, event: Event) -> None:
        number, kind = event[:2]
        if kind == "closed":
            self._closing.pop(number)()
            return
        run = self._runs.get(number)
        if run is None:
            return
        # Events of a run come in their order: one that takes long to read holds up those after it,
        # and nobody else.
        if run.held_up:
            run.held_up.append(event)
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
        elif is_large and kind in _CALLS and not run.remote.running():
            # The run ended while it was read: none is made any more.
            pass
        elif kind == "call":
            run.called(what, message, call, is_large)
            self.expect_events()
        elif run.terminating:
            # It is about to end, and nobody waits for anything else of it.
            pass
        elif kind == "start":
            run.async_called(what, message, call)
            self.expect_events()
        elif kind == "function":
            run.function_settled(what, ok, message)
        else:
            run.promise_settled(what, ok, message)

    def _read_later(self) -> None:
        """Reads on when all else had its turn; where there is no loop, at once."""
        if self.own_loop is None:
            while self._readers and not self._left:
                self._read_on()
            self._leftovers.clear()
        elif (self._readers or self._leftovers) and not self._reading:
            self._reading = True
            self.own_loop.call_soon(self._read)

    def _read(self) -> None:
        self._reading = False
        started = time.monotonic()
        try:
            while self._readers and not self._left and time.monotonic() - started < _TURN_S:
                self._read_on()
            if self._leftovers and not self._readers and self._leftovers[0].discard():
                self._leftovers.popleft()
        finally:
            self._read_later()

    def _read_on(self) -> None:
        """Reads on in the messages of one run, and handles the event that was waiting for that."""
        run = self._readers[0]
        self._readers.rotate(-1)
        event = run.held_up[0] if run.held_up else None
        is_ready = event is not None and run.is_ready(event)
        if is_ready:
            run.held_up.popleft()
        if not run.held_up:
            self._readers.remove(run)
        if self.own_loop is not None:
            # Before a host function is called: it may run the loop itself.
            self._read_later()
        if event is not None and is_ready and event[0] in self._runs:
            self._handle(run, event)
            if event[-1] and not event[4].discard():
                self._leftovers.append(event[4])
                self._read_later()

    def _forget(self, run: Run) -> None:
        for number, known in tuple(self._runs.items()):
            if known is run:
                del self._runs[number]
        with contextlib.suppress(ValueError):
            self._readers.remove(run)
