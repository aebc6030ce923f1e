# Functions of the host: `tool`, `llm`, `agent`, and those of files and artifacts.
#
# In: calls of cells, from any thread. Out: frames to the host, and for the caller the value of the
# answer, or its error.

import concurrent.futures
import itertools


# The helpers of which a literal `await helper(…)` lets other tasks run.
AWAITED = frozenset(
    [
        "agent",
        "append",
        "diff",
        "llm",
        "output",
        "parallel",
        "pipeline",
        "read",
        "tool",
        "tree",
        "write",
    ]
)


# The calls that may wait for answers. The host ends a kernel that leaves more than 10,000 answers
# unread.
MOST_WAITING = 8_000


class HostError(RuntimeError):
    """An error of the host. Its class has the name that the host gave."""


class Future(concurrent.futures.Future):
    """The answer to come: `result()` waits for it, and it can be awaited."""

    # Waits on the main thread: cells that come meanwhile run there. The kernel sets it.
    wait = None

    def exception(self, timeout=None):
        began = time.monotonic()
        self.wait(self, timeout)
        if timeout is not None:
            timeout = max(0, began + timeout - time.monotonic())
        return super().exception(timeout)

    def result(self, timeout=None):
        error = self.exception(timeout)
        if error is not None:
            # Raised here, the error has no frame of `concurrent.futures`.
            raise error
        return super().result()

    def __await__(self):
        return asyncio.wrap_future(self).__await__()


class Host:
    """The calls that wait for answers."""

    def __init__(self, channel):
        self.channel = channel
        self.numbers = itertools.count(1)
        self.waiting = {}

    def call(self, helper, name, args):
        if self.channel.descriptor is None:
            raise RuntimeError("a forked child cannot call the host")
        place = name or helper
        if len(self.waiting) >= MOST_WAITING:
            raise RuntimeError(
                f"{place}: {MOST_WAITING:,} calls wait for answers; take their results before more"
            )
        nodes, blobs = Encoder(f"{place}: args").encode(args)
        number, future = next(self.numbers), Future()
        future.set_running_or_notify_cancel()
        self.waiting[number] = (future, place)
        if not self.channel.call({"id": number, "helper": helper, "name": name}, nodes, blobs):
            del self.waiting[number]
            most = self.channel.frame_bytes
            raise ValueError(f"{place}: the arguments have more than {most:,} bytes")
        return future

    def ask(self, helper, **options):
        """Calls a helper with the options that are given."""
        given = {key: value for key, value in options.items() if value is not None}
        return self.call(helper, "", given)

    def answer(self, message, nodes, blobs):
        """Takes an answer, in the thread that reads frames."""
        future, place = self.waiting.pop(message["id"], (None, ""))
        if future is None:
            return
        if "error" in message:
            future.set_exception(error_of_host(**message["error"]))
            return
        try:
            value = Decoder(nodes, blobs, f"the answer of {place}").decode()
        except Exception as error:
            future.set_exception(error.with_traceback(None))
        else:
            future.set_result(value)

    def after_fork(self):
        self.waiting = {}


def error_of_host(name, message):
    """An error of the host as an exception: of Python's own class if there is one."""
    name = {"Error": "RuntimeError", "RangeError": "ValueError"}.get(name, name)
    kind = getattr(builtins, name, None)
    if not (isinstance(kind, type) and issubclass(kind, Exception)):
        kind = type(name if name.isidentifier() else "HostError", (HostError,), {})
        kind.__module__ = "builtins"
    try:
        return kind(message)
    except Exception:
        # A class that needs more than a message.
        return HostError(message)


class Helper:
    """A function of the host. Called, it waits for the answer; `start` gives a future of it."""

    def __init__(self, name, start):
        self.__name__, self.start = name, start

    def __call__(self, *args, **options):
        return self.start(*args, **options).result()

    def __repr__(self):
        return f"<function {self.__name__} of the host>"


class Tools:
    """`tool`: the tools of the notebook whose cell runs, by their names."""

    def __init__(self, host, kernel):
        self.__dict__["_host"], self.__dict__["_kernel"] = host, kernel
        self.__dict__["_helpers"] = {}

    def __getattr__(self, name):
        if name.startswith(("__", "_repr_")):
            raise AttributeError(name)
        names = self._kernel.facts().tools
        for known in names:
            if name in (known, spelled_in_code(known)):
                if known not in self._helpers:
                    self._helpers[known] = Helper(f"tool.{known}", starter(self._host, known))
                return self._helpers[known]
        there = f"there are {', '.join(names)}" if names else "this notebook has no tools"
        raise AttributeError(f"there is no tool '{name[:100]}'; {there}")

    def __dir__(self):
        return list(self._kernel.facts().tools)

    def __repr__(self):
        return f"<tools of the host: {', '.join(self._kernel.facts().tools)}>"


def spelled_in_code(name):
    """The form in which Python reads a name of code."""
    if name.isascii():
        return name
    import unicodedata

    return unicodedata.normalize("NFKC", name)


WITHOUT_NAMES = (str, bytes, bytearray, bool, int, float, complex, list, tuple, set, frozenset)
"""Values that are no arguments of a tool, which has each by its name."""


def starter(host, name):
    def start(*given, **fields):
        args, *more = given or [fields]
        if given and fields:
            raise TypeError(f"{name}: arguments are one dict or keywords, not both")
        if more or isinstance(args, WITHOUT_NAMES):
            raise TypeError(
                f"{name}: arguments have names: write tool.{name}(name=value), or give one dict"
            )
        args = fields if args is None else args
        return host.call("tool", name, args)

    return start


def llm_of(host):
    def start(prompt, model=None, system=None, schema=None):
        return host.ask("llm", prompt=prompt, model=model, system=system, schema=schema)

    return Helper("llm", start)


def agent_of(host):
    def start(prompt, agent_type=None, model=None, context=None, label=None, schema=None):
        return host.ask(
            "agent",
            prompt=prompt,
            agent_type=agent_type,
            model=model,
            context=context,
            label=label,
            schema=schema,
        )

    return Helper("agent", start)


def file_helpers_of(host):
    """The helpers of files and artifacts by their names. The host checks their arguments."""

    def read(path, offset=1, limit=None, bytes=False):
        args = {"path": path_of(path), "offset": offset, "limit": limit, "bytes": bytes}
        return host.call("read", "", args)

    def write(path, data):
        return host.call("write", "", {"path": path_of(path), "data": data})

    def append(path, data):
        return host.call("append", "", {"path": path_of(path), "data": data})

    def tree(path=".", max_depth=3, hidden=False):
        args = {"path": path_of(path), "max_depth": max_depth, "hidden": hidden}
        return host.call("tree", "", args)

    def diff(a, b):
        return host.call("diff", "", {"a": path_of(a), "b": path_of(b)})

    def output(*ids, offset=1, limit=None):
        return host.call("output", "", {"ids": ids, "offset": offset, "limit": limit})

    helpers = (read, write, append, tree, diff, output)
    return {start.__name__: Helper(start.__name__, start) for start in helpers}


def path_of(path):
    """A path as text, if it is one of `pathlib`."""
    return os.fspath(path) if isinstance(path, os.PathLike) else path


def awaited(helper):
    """The function in a literal `await helper(…)`: of a helper the one that gives a future."""
    return helper.start if isinstance(helper, Helper) else helper


def with_awaited_helpers(tree):
    """The tree, in which `await agent(…)` and `await tool.name(…)` let other tasks run."""
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Await) and isinstance(node.value, ast.Call)):
            continue
        function = node.value.func
        base = function.value if isinstance(function, ast.Attribute) else function
        if isinstance(base, ast.Name) and base.id in AWAITED:
            name = ast.copy_location(ast.Name("__isolane_awaited__", ast.Load()), function)
            node.value.func = ast.copy_location(ast.Call(name, [function], []), function)
    return tree
