# The kernel: cells on the main thread, in an asyncio loop that goes on between them.
#
# In: frames of the host: cells, interruptions. Out: what they print and display, and how they
# end.

import builtins
import contextlib
import types


class Cell:
    """A cell that was begun."""

    def __init__(self, number, name):
        self.number, self.name = number, name
        # Whether code of it may be interrupted, and whether the host knows its end.
        self.is_open, self.is_over = True, False
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
        self.to_interrupt = None
        self.is_closing = False
        module = types.ModuleType("__main__")
        module.__dict__["__builtins__"] = builtins
        sys.modules["__main__"] = module
        self.names = module.__dict__

    def current_cell(self):
        """The number of the cell to which output belongs: that of its code, else the newest one; 0
        between cells."""
        cell = CELL.get()
        if cell is not None and not cell.is_over:
            return cell.number
        return next(reversed(self.cells), 0)

    def display(self, *values, raw=False):
        """Shows values. With `raw` a value is a dict of contents by their kinds."""
        for value in values:
            self.show(messages_of_bundle(value) if raw else messages_of(value))

    def show(self, messages):
        if self.channel.descriptor is None:
            raise RuntimeError("a forked child cannot display")
        for message in messages:
            self.channel.message(message, self.current_cell())

    def begin(self, message):
        cell = Cell(message["cell"], message["name"])
        self.cells[cell.number] = cell
        context = contextvars.copy_context()
        context.run(CELL.set, cell)
        cell.task = context.run(self.loop.create_task, self.run(cell, message["code"]))

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
            self.channel.flush()
            cell.is_over, cell.is_open = True, False
            self.channel.message(
                {"type": "done", **({"error": found} if found else {})}, cell.number
            )
            self.cells.pop(cell.number, None)

    def interrupted(self, _signal, _frame):
        """On the main thread, in the context of the code that runs there."""
        number, self.to_interrupt = self.to_interrupt, None
        running = CELL.get()
        # Without a number, code has sent the signal.
        target = running if number is None else self.cells.get(number)
        if target is None or target.is_over or not target.is_open:
            return
        if running is not target:
            self.cancel(target)
        elif self.channel.depth:
            self.channel.interrupted = True
        else:
            raise KeyboardInterrupt

    def cancel(self, cell):
        """Ends a cell that awaits. One that goes on nevertheless is left to itself."""
        cell.task.cancel()
        error = asyncio.CancelledError()
        self.loop.call_later(0.05, self.finish, cell, error)
        self.loop.call_soon_threadsafe(lambda: None)

    def serve(self):
        """Reads frames of the host, in a thread of its own."""
        while True:
            (length,) = struct.unpack(">I", self.channel.receive(4))
            message = json.loads(self.channel.receive(length))
            if message["op"] == "cell":
                self.loop.call_soon_threadsafe(self.begin, message)
            elif message["op"] == "interrupt":
                self.to_interrupt = message["cell"]
                signal.pthread_kill(self.channel.main, signal.SIGINT)
            elif message["op"] == "answer":
                nodes = self.channel.receive(message.get("nodes", 0))
                blobs = [self.channel.receive(length) for length in message.get("blobs", ())]
                self.host.answer(message, nodes, blobs)
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
    ended, outcome, running = threading.Event(), {}, []

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
            ended.set()

    context = contextvars.copy_context()
    threading.Thread(target=context.run, args=(work,), name="asyncio.run", daemon=True).start()
    try:
        ended.wait()
    except BaseException:
        if running and not ended.is_set():
            loop, task = running
            loop.call_soon_threadsafe(task.cancel)
            ended.wait()
        raise
    if "error" in outcome:
        raise outcome["error"]
    return outcome["value"]


asyncio_run = asyncio.run


def start(descriptor, stdout, stderr, frame_bytes, data_bytes, path, tools, concurrency):
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
    builtins.tool, builtins.llm = Tools(kernel.host, tools), llm_of(kernel.host)
    builtins.parallel, builtins.pipeline = parallel_of(*concurrency), pipeline_of(*concurrency)
    builtins.__isolane_awaited__ = awaited
    builtins.__isolane_shell__, builtins.__isolane_magic__ = shell, magic
    asyncio.run = run_coroutine
    limit_data(data_bytes)
    sys.argv = [""]
    sys.path.extend(path)
    signal.signal(signal.SIGINT, kernel.interrupted)
    for work in (kernel.serve, channel.flush_forever):
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
