# Helpers of text: `sort`, `uniq`, `counter`, and `env`.
#
# In: text, items, the name of a variable. Out: what the same helpers of JavaScript give, and a
# status event for the host.


def text_helpers_of(kernel):
    """The helpers by their names."""

    def note(**event):
        # A forked child has no way to the host.
        if kernel.channel.descriptor is not None:
            kernel.channel.message({"type": "event", "event": event}, kernel.current_cell())

    def sort(text, reverse=False, unique=False):
        lines, joined = lines_of("sort", text)
        lines = sorted(set(lines) if unique else lines, reverse=bool(reverse))
        note(op="sort", lines=len(lines))
        return joined(lines)

    def uniq(text, count=False):
        lines, joined = lines_of("uniq", text)
        counted = []
        for line in lines:
            if counted and counted[-1][1] == line:
                counted[-1][0] += 1
            else:
                counted.append([1, line])
        note(op="uniq", lines=len(counted))
        return counted if count else joined([line for _, line in counted])

    def counter(items, limit=None, reverse=True):
        if limit is not None and (
            isinstance(limit, bool) or not isinstance(limit, int) or limit < 0
        ):
            message = f"limit must be a whole number of at least 0, got {limit!r}"
            raise ValueError(f"counter: {message}")
        counts = {}
        for item in lines_of("counter", items)[0] if isinstance(items, str) else items:
            counts[item] = counts.get(item, 0) + 1
        # The order of equal ones stays, that of their first appearance.
        counted = [[count, item] for item, count in counts.items()]
        counted.sort(key=lambda pair: -pair[0] if reverse else pair[0])
        note(op="counter", items=len(counted))
        return counted[:limit]

    def env(key=None, value=None):
        if key is None:
            note(op="env", variables=len(os.environ))
            return dict(os.environ)
        if not isinstance(key, str) or not key or "=" in key or "\0" in key:
            raise TypeError("env: key must be the name of a variable")
        if value is not None:
            text = str(value)
            if "\0" in text:
                raise TypeError("env: value must not contain NUL")
            os.environ[key] = text
        note(op="env", key=key, set=value is not None)
        return os.environ.get(key)

    return {helper.__name__: helper for helper in (sort, uniq, counter, env)}


def lines_of(helper, text):
    """The lines of a text, and a function that joins some of them as they were."""
    if not isinstance(text, str):
        raise TypeError(f"{helper}: text must be a string, got {type(text).__name__}")
    lines = text.split("\n")
    # The last line may have an end.
    end = "\n" if lines[-1] == "" else ""
    if end:
        lines.pop()
    return lines, lambda some: "\n".join(some) + end if some else ""
