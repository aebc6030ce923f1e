# Functions of the host: `tool` and `llm`.
#
# In: calls of cells, from any thread. Out: frames to the host, and for the caller the value of the
# answer, or its error.

import concurrent.futures
import itertools


class HostError(RuntimeError):
    """An error of the host. Its class has the name that the host gave."""


class Future(concurrent.futures.Future):
    """The answer to come: `result()` waits for it, and it can be awaited."""

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
        nodes, blobs = Encoder(f"{place}: args").encode(args)
        number, future = next(self.numbers), Future()
        future.set_running_or_notify_cancel()
        self.waiting[number] = (future, place)
        if not self.channel.call({"id": number, "helper": helper, "name": name}, nodes, blobs):
            del self.waiting[number]
            most = self.channel.frame_bytes
            raise ValueError(f"{place}: the arguments have more than {most:,} bytes")
        return future

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
    """`tool`: the tools of the host by their names."""

    def __init__(self, host, names):
        self.__dict__["_names"] = names
        for name in names:
            helper = Helper(f"tool.{name}", starter(host, name))
            self.__dict__[name] = helper
            if not name.isascii():
                # Python reads names of code in this form.
                import unicodedata

                self.__dict__.setdefault(unicodedata.normalize("NFKC", name), helper)

    def __getattr__(self, name):
        if name.startswith(("__", "_repr_")):
            raise AttributeError(name)
        names = self._names
        there = f"there are {', '.join(names)}" if names else "this notebook has no tools"
        raise AttributeError(f"there is no tool '{name[:100]}'; {there}")

    def __repr__(self):
        return f"<tools of the host: {', '.join(self._names)}>"


def starter(host, name):
    def start(args=None, /, **fields):
        if args is None:
            args = fields
        elif fields:
            raise TypeError(f"{name}: arguments are one dict or keywords, not both")
        return host.call("tool", name, args)

    return start


def llm_of(host):
    def start(prompt, model=None, system=None, schema=None):
        options = {"prompt": prompt, "model": model, "system": system, "schema": schema}
        given = {key: value for key, value in options.items() if value is not None}
        return host.call("llm", "", given)

    return Helper("llm", start)


def awaited(helper):
    """The function in a literal `await helper(…)`: of a helper the one that gives a future."""
    return helper.start if isinstance(helper, Helper) else helper


def with_awaited_helpers(tree):
    """The tree, in which `await llm(…)` and `await tool.name(…)` let other tasks run."""
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Await) and isinstance(node.value, ast.Call)):
            continue
        function = node.value.func
        base = function.value if isinstance(function, ast.Attribute) else function
        if isinstance(base, ast.Name) and base.id in ("llm", "tool", "parallel", "pipeline"):
            name = ast.copy_location(ast.Name("__isolane_awaited__", ast.Load()), function)
            node.value.func = ast.copy_location(ast.Call(name, [function], []), function)
    return tree
