# `parallel` and `pipeline`: functions of the cell at once, in threads.
#
# In: functions, or items and stages. Out: their results in order, or the first error, after which
# no more of them begin. A coroutine that one of them gives runs on the loop of the cell if the cell
# awaits the helper, otherwise on a loop of its own, because the cell holds the thread then.

import inspect


class Work(Future):
    """The results to come."""

    def __init__(self, count, act, limit, loop):
        super().__init__()
        self.act, self.loop = act, loop
        self.results, self.next, self.left = [None] * count, 0, count
        self.is_stopped, self.lock = False, threading.Lock()
        self.set_running_or_notify_cancel()
        if count == 0:
            self.set_result([])
        for _ in range(min(count, limit)):
            context = contextvars.copy_context()
            work = threading.Thread(
                target=context.run, args=(self.run,), name="parallel", daemon=True
            )
            work.start()

    def run(self):
        while True:
            with self.lock:
                at = self.next
                if self.is_stopped or at == len(self.results):
                    return
                self.next += 1
            try:
                result = self.act(at, self.awaited)
            except BaseException as error:
                self.end(self.set_exception, error)
                return
            self.results[at] = result
            with self.lock:
                self.left -= 1
                is_last = self.left == 0
            if is_last:
                self.end(self.set_result, self.results)

    def end(self, settle, outcome):
        with self.lock:
            if self.is_stopped:
                return
            self.is_stopped = True
        settle(outcome)

    def awaited(self, value):
        """The value, or the outcome of one that can be awaited."""
        if not inspect.isawaitable(value):
            return value

        async def outcome():
            return await value

        if self.loop is None:
            return asyncio_run(outcome())
        return asyncio.run_coroutine_threadsafe(outcome(), self.loop).result()

    def stop(self):
        with self.lock:
            self.is_stopped = True

    def cancel(self):
        self.stop()
        return super().cancel()


class Parallel(Helper):
    """A helper that runs functions of the cell."""

    def __init__(self, name, begin):
        super().__init__(name, lambda *args, **options: begin(asyncio_loop(), *args, **options))
        self.begin = begin

    def __call__(self, *args, **options):
        work = self.begin(None, *args, **options)
        try:
            return work.result()
        finally:
            work.stop()


def asyncio_loop():
    """The loop that runs here, if any."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def parallel_of(kernel):
    def begin(loop, thunks, concurrency=None):
        thunks = functions_of("parallel", "thunks", thunks)
        limit = limit_of("parallel", concurrency, kernel)
        return Work(len(thunks), lambda at, awaited: awaited(thunks[at]()), limit, loop)

    return Parallel("parallel", begin)


def pipeline_of(kernel):
    def begin(loop, items, *stages, concurrency=None):
        items, stages = list(items), functions_of("pipeline", "stages", stages)
        limit = limit_of("pipeline", concurrency, kernel)

        def act(at, awaited):
            value = items[at]
            for stage in stages:
                value = awaited(stage(value, at))
            return value

        return Work(len(items), act, limit, loop)

    return Parallel("pipeline", begin)


def functions_of(helper, name, given):
    functions = list(given)
    for index, function in enumerate(functions):
        if not callable(function):
            kind = type(function).__name__
            raise TypeError(f"{helper}: {name}[{index}] must be a function, got {kind}")
    return functions


def limit_of(helper, concurrency, kernel):
    """How many functions run at once, by the limits of the notebook whose cell runs."""
    usual, most = kernel.facts().concurrency
    if concurrency is None:
        return usual
    if isinstance(concurrency, bool) or not isinstance(concurrency, int) or concurrency < 1:
        message = f"concurrency must be a whole number of at least 1, got {concurrency!r}"
        raise ValueError(f"{helper}: {message}")
    return min(concurrency, most)
