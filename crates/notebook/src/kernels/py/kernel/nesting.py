# Cells that run while the code of another one waits for the host on the main thread.
#
# In: a wait of a cell, and cells that come meanwhile. Out: turns of the loop within that wait,
# which goes on afterwards. A cell that is interrupted while it waits so is not disturbed in the
# middle of the loop: it raises when its wait has the thread again.

import collections
import queue

# Waits within one another. Each holds some frames of the main thread's stack.
MOST_WAITS = 40
# A cell that awaits has that time to do something about its end.
SETTLING_SECONDS = 0.05


class Ready(collections.deque):
    """The callbacks of the loop that are due. A turn within another one takes those that the outer
    one has counted."""

    def __init__(self, loop):
        super().__init__()
        self.nothing = asyncio.Handle(lambda: None, (), loop)
        self.nothing.cancel()

    def popleft(self):
        return super().popleft() if self else self.nothing


class Waits:
    """The waits of cells on the main thread, the innermost last."""

    def __init__(self, kernel):
        self.kernel, self.channel = kernel, kernel.channel
        self.loop = kernel.loop
        self.loop._ready = Ready(self.loop)
        # The cells whose waits give turns to the loop.
        self.cells = []
        self.awake = queue.SimpleQueue()
        # Cells to settle, with the time for that.
        self.ending = queue.SimpleQueue()

    def wake(self, _=None):
        """A wait may be over, or a cell has come."""
        self.awake.put(None)
        self.loop.call_soon_threadsafe(lambda: None)

    def wait(self, future, timeout=None):
        """Waits on the main thread for a future, but no longer than so many seconds. On other
        threads it returns at once."""
        is_on_loop = (
            threading.get_ident() == self.channel.main
            and self.channel.descriptor is not None
            and asyncio._get_running_loop() is self.loop
        )
        if not is_on_loop or future.done():
            return
        until = None if timeout is None else time.monotonic() + timeout
        while not self.awake.empty():
            self.awake.get()
        future.add_done_callback(self.wake)
        while not future.done():
            left = None if until is None else until - time.monotonic()
            if left is not None and left <= 0:
                return
            if self.kernel.pending and len(self.cells) < MOST_WAITS:
                self.run_cells(future, left)
            else:
                with contextlib.suppress(queue.Empty):
                    self.awake.get(timeout=left)

    def run_cells(self, future, left):
        """Gives turns to the loop until the cells that came are over, or the wait is."""
        cell, task = CELL.get(), asyncio.current_task(self.loop)
        before = set(self.kernel.cells)
        self.cells.append(cell)
        has_left, timer = False, None
        try:
            if task is not None:
                asyncio.tasks._leave_task(self.loop, task)
                has_left = True
            if left is not None:
                timer = self.loop.call_later(left, self.wake)
            self.kernel.begin_pending()
            while not (future.done() or self.is_over(cell, timer)) and (
                self.kernel.cells.keys() - before
            ):
                # A task that a cell has started raised it; who awaits the task gets it too.
                with contextlib.suppress(KeyboardInterrupt, SystemExit):
                    self.loop._run_once()
        finally:
            if timer is not None:
                timer.cancel()
            if has_left:
                asyncio.tasks._enter_task(self.loop, task)
            self.cells.pop()
        if cell is not None and cell.is_interrupted:
            raise KeyboardInterrupt

    def is_over(self, cell, timer):
        return (
            self.kernel.is_closing
            or (cell is not None and cell.is_interrupted)
            or (timer is not None and timer.when() <= self.loop.time())
        )

    def is_in_callback(self, frame):
        """Whether code in a callback of the innermost turns was interrupted, and not the loop."""
        interrupted = frame
        while frame is not None and frame.f_code is not RUN_CELLS:
            if frame.f_code is RUN_CALLBACK and frame is not interrupted:
                return True
            frame = frame.f_back
        return False

    def settle_soon(self, cell):
        """Has the host know soon that a cell is over, whatever holds the main thread."""
        self.ending.put((time.monotonic() + SETTLING_SECONDS, cell))

    def settle_forever(self):
        """Settles cells, in a thread of its own."""
        while True:
            due, cell = self.ending.get()
            time.sleep(max(0, due - time.monotonic()))
            self.kernel.finish(cell, asyncio.CancelledError())


RUN_CELLS = Waits.run_cells.__code__
RUN_CALLBACK = asyncio.Handle._run.__code__
