import sys

# Files of cells must not stand for modules of the runner. The kernel puts their folder back.
if sys.path[:1] == [""]:
    del sys.path[0]
import os

f = int(sys.argv[1])


def r(n):
    d = b""
    while len(d) < n:
        p = os.read(f, n - len(d))
        if not p:
            os._exit(1)
        d += p
    return d


if sys.version_info < (3, 10):
    p = ('{"type":"old","version":"%d.%d.%d"}' % sys.version_info[:3]).encode()
    os.write(f, (len(p) + 5).to_bytes(4, "big") + b"j\0\0\0\0" + p)
    os._exit(1)
# A copy of the builtins: cells may change those that all other modules have.
names = {"__name__": "isolane", "__builtins__": dict(vars(__builtins__))}
exec(compile(r(int.from_bytes(r(4), "big")), "<isolane>", "exec"), names)
