# The kernel: cells on the main thread, in an asyncio loop that goes on between them.
#
# In: frames of the host: cells, interruptions. Out: what they print and display, and how they
# end.

import builtins
import contextlib
import types

# Signals for several cells may come as one, or one after another within that time.
SURPLUS_SECONDS = 0.1


class Cell:
    """A cell that was begun."""

    def __init__(self, message):
        self.number, self.name = message["cell"], message["name"]
        # The tools and the limits of its notebook.
        self.tools, self.concurrency = message["tools"], message["concurrency"]
        # Whether code of it may be interrupted, and whether the host knows its end.
        self.is_open, self.is_over = True, False
        # Whether its wait is to raise when it has the thread again.
        self.is_interrupted = False
        self.task = None


class Kernel:
    def __init__(self, channel):
        self.channel = channel
        channel.kernel = self
        self.host = Host(channel)
        self.compiler = Compiler()
        self.loop = asyncio.new_event_loop()
        asyncio.set_event_loop(self.loop)
        self.cells = {}
        # The newest cell, and cells that were not begun yet.
        self.newest, self.pending = None, collections.deque()
        self.gate = threading.Lock()
        self.context = contextvars.copy_context()
        # The cells to interrupt, and until when a signal may come that has none any more.
        self.to_interrupt, self.surplus_until = collections.deque(), 0.0
        self.is_closing = False
        module = types.ModuleType("__main__")
        module.__dict__["__builtins__"] = builtins
        sys.modules["__main__"] = module
        self.names = module.__dict__
        self.waits = Waits(self)

    def current_cell(self):
        """The number of the cell to which output belongs: that of its code, else the newest one; 0
        between cells."""
        cell = CELL.get()
        if cell is not None and not cell.is_over:
            return cell.number
        numbers = list(self.cells)
        return numbers[-1] if numbers else 0

    def facts(self):
        """The cell to which code belongs that asks for tools and limits."""
        cell = CELL.get()
        return self.newest if cell is None or cell.is_over else cell

    def display(self, *values, raw=False):
        """Shows values. With `raw` a value is a dict of contents by their kinds."""
        for value in values:
            self.show(messages_of_bundle(value) if raw else messages_of(value))

    def show(self, messages):
        if self.channel.descriptor is None:
            raise RuntimeError("a forked child cannot display")
        for message in messages:
            self.channel.message(message, self.current_cell())

    def begin_pending(self):
        """Begins the cells that came, on the main thread."""
        while self.pending:
            with self.gate:
                if not self.pending:
                    return
                message = self.pending.popleft()
                self.newest = cell = Cell(message)
                self.cells[cell.number] = cell
            context = self.context.copy()
            context.run(CELL.set, cell)
            cell.task = context.run(self.loop.create_task, self.run(cell, message["code"]))
            if cell.is_interrupted:
                cell.task.cancel()

    def withdraw(self, number):
        """Ends a cell that was not begun; false if it was."""
        with self.gate:
            kept = [message for message in self.pending if message["cell"] != number]
            is_there = len(kept) < len(self.pending)
            if is_there:
                self.pending.clear()
                self.pending.extend(kept)
        if is_there:
            self.channel.message({"type": "done"}, number)
        return is_there

    async def run(self, cell, code):
        error = place = None
        try:
            try:
                body, last, expression = self.compiler.compile(code, cell.name)
                if body is not None:
                    await self.evaluate(body)
                value = None if last is None else await self.evaluate(last)
                place = expression
                # A forked child has no way to show it.
                if value is not None and self.channel.descriptor is not None:
                    self.show(messages_of(value, is_last=True))
                place = None
                for figure in open_figures():
                    self.show(messages_of(figure))
            finally:
                cell.is_open = False
        except BaseException as raised:
            error = raised
        if self.channel.descriptor is None:
            end_child(self.channel, error)
        try:
            self.finish(cell, error, place)
        except BaseException:
            # Code has broken parts that this program needs. The host would wait for the end.
            os._exit(70)

    async def evaluate(self, code):
        value = eval(code, self.names)
        # Code with an `await` at its top gives a coroutine.
        return await value if code.co_flags & 0x80 else value

    def finish(self, cell, error, place=None):
        if cell.is_over:
            return
        found = None if error is None else found_of(error, cell.name, place)
        # The frames of the cell hold its values.
        if error is not None and error.__traceback__ is not None:
            traceback.clear_frames(error.__traceback__)
        with self.channel:
            if cell.is_over:
                return
            self.channel.flush()
            cell.is_over, cell.is_open = True, False
            self.channel.message(
                {"type": "done", **({"error": found} if found else {})}, cell.number
            )
            self.cells.pop(cell.number, None)

    def interrupted(self, _signal, frame):
        """On the main thread, in the context of the code that runs there."""
        running, raises = CELL.get(), False
        numbers = []
        while self.to_interrupt:
            numbers.append(self.to_interrupt.popleft())
        targets = [self.cells.get(number) for number in numbers]
        if len(numbers) > 1:
            self.surplus_until = time.monotonic() + SURPLUS_SECONDS
        elif not numbers and time.monotonic() > self.surplus_until:
            # Code has sent the signal.
            targets = [running]
        for target in targets:
            if target is None or target.is_over or not target.is_open:
                continue
            waits = target in self.waits.cells
            if running is not target or (waits and not self.waits.is_in_callback(frame)):
                self.cancel(target, waits)
            else:
                target.is_interrupted, raises = waits, True
        if raises and self.channel.depth:
            self.channel.interrupted = True
        elif raises:
            raise KeyboardInterrupt

    def cancel(self, cell, waits):
        """Ends a cell that awaits, or that `waits` while others run within it. One that goes on
        nevertheless is left to itself."""
        if waits or cell.task is None:
            cell.is_interrupted = True
        else:
            cell.task.cancel()
        self.waits.settle_soon(cell)
        self.loop.call_soon_threadsafe(lambda: None)

    def serve(self):
        """Reads frames of the host, in a thread of its own."""
        while True:
            (length,) = struct.unpack(">I", self.channel.receive(4))
            message = json.loads(self.channel.receive(length))
            if message["op"] == "cell":
                with self.gate:
                    self.pending.append(message)
                self.loop.call_soon_threadsafe(self.begin_pending)
                self.waits.awake.put(None)
            elif message["op"] == "interrupt":
                if not self.withdraw(message["cell"]):
                    self.to_interrupt.append(message["cell"])
                    signal.pthread_kill(self.channel.main, signal.SIGINT)
            elif message["op"] == "answer":
                nodes = self.channel.receive(message.get("nodes", 0))
                blobs = [self.channel.receive(length) for length in message.get("blobs", ())]
                self.host.answer(message, nodes, blobs)
            elif message["op"] == "beat":
                with self.channel:
                    self.channel.send(MESSAGE, 0, b'{"type":"beat"}')
            elif message["op"] == "exit":
                self.is_closing = True
                self.loop.call_soon_threadsafe(self.loop.stop)


def end_child(channel, error):
    """Ends a forked child that has come to the end of its parent's cell."""
    code = 0 if error is None else 1
    if isinstance(error, SystemExit):
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
    elif error is not None:
        text = found_of(error, "", None).get("traceback", type(error).__name__)
        os.write(2, encoded(text + "\n"))
    # The end of a line that has none.
    channel.flush_child(1)
    os._exit(code & 0xFF)


def run_coroutine(main, **options):
    """`asyncio.run`: within a cell on a loop in a thread of its own, for which the cell waits."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio_run(main, **options)
    if not asyncio.iscoroutine(main):
        raise ValueError(f"a coroutine was expected, got {main!r}")
    ended, outcome, running = Future(), {}, []

    async def run():
        running.extend((asyncio.get_running_loop(), asyncio.current_task()))
        return await main

    def work():
        wrapped = run()
        try:
            outcome["value"] = asyncio_run(wrapped, **options)
        except BaseException as error:
            outcome["error"] = error
        finally:
            # One that did not begin is no mistake of the cell.
            wrapped.close()
            ended.set_result(None)

    context = contextvars.copy_context()
    threading.Thread(target=context.run, args=(work,), name="asyncio.run", daemon=True).start()
    try:
        ended.result()
    except BaseException:
        if running and not ended.done():
            loop, task = running
            loop.call_soon_threadsafe(task.cancel)
            ended.result()
        raise
    if "error" in outcome:
        raise outcome["error"]
    return outcome["value"]


asyncio_run = asyncio.run


def start(descriptor, stdout, stderr, frame_bytes, data_bytes, path):
    """Serves the host until it is gone."""
    for inherited in (descriptor, stdout, stderr):
        os.set_inheritable(inherited, False)
    channel = Channel(descriptor, {stdout: STDOUT, stderr: STDERR}, frame_bytes)
    kernel = Kernel(channel)
    os.register_at_fork(before=channel.before_fork, after_in_child=channel.after_fork)
    os.register_at_fork(after_in_child=kernel.host.after_fork)
    sys.stdout = sys.__stdout__ = Stream(channel, STDOUT, 1, "<stdout>")
    sys.stderr = sys.__stderr__ = Stream(channel, STDERR, 2, "<stderr>")
    sys.stdin = sys.__stdin__ = Stdin()
    builtins.input = no_input
    builtins.display = kernel.display
    sys.meta_path.insert(0, IPythonFinder(kernel.display))
    Future.wait = staticmethod(kernel.waits.wait)
    builtins.tool, builtins.llm = Tools(kernel.host, kernel), llm_of(kernel.host)
    builtins.agent = agent_of(kernel.host)
    for name, helper in {**file_helpers_of(kernel.host), **text_helpers_of(kernel)}.items():
        setattr(builtins, name, helper)
    builtins.parallel, builtins.pipeline = parallel_of(kernel), pipeline_of(kernel)
    builtins.__isolane_awaited__ = awaited
    builtins.__isolane_shell__, builtins.__isolane_magic__ = shell, magic
    asyncio.run = run_coroutine
    limit_data(data_bytes)
    sys.argv = [""]
    sys.path.insert(0, "")
    sys.path.extend(path)
    signal.signal(signal.SIGINT, kernel.interrupted)
    for work in (kernel.serve, channel.flush_forever, kernel.waits.settle_forever):
        threading.Thread(target=work, name="isolane", daemon=True).start()
    version = ".".join(map(str, sys.version_info[:3]))
    channel.message({"type": "ready", "version": version, "path": sys.executable}, 0)
    while not kernel.is_closing:
        # A task that a cell has started raised it; who awaits the task gets it too.
        with contextlib.suppress(KeyboardInterrupt, SystemExit):
            kernel.loop.run_forever()


def limit_data(data_bytes):
    """Linux counts all private memory that can be written; requests beyond the limit raise a
    MemoryError."""
    if sys.platform != "linux":
        return
    import resource

    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    limit = data_bytes if hard == resource.RLIM_INFINITY else min(data_bytes, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
