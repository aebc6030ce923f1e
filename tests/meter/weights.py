"""Memory that Python holds for a value, against the charge of the run that handed it over.

In: shapes, each as JavaScript that makes one. Out: a table of held and charged bytes, the worst
ratio first, and a failure where Python holds more than twice the charge and 1 MiB. Each shape is
measured in a process of its own, whose resident memory is read before and after; sandboxes are in
other processes.
"""

from __future__ import annotations

import argparse
import asyncio
import concurrent.futures
import ctypes
import gc
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import isolane

MOST_TIMES = 2.0
SLACK_BYTES = 1 << 20
LIMIT_BYTES = 1 << 30
# So much that memory of the allocators themselves does not matter.
AIM_BYTES = 24 << 20
MOST_MESSAGES = 3_000


class Shape(NamedTuple):
    """Values of one kind and size: their number in a message, and the code that makes one."""

    name: str
    number: int
    make: str


def _numbers() -> list[Shape]:
    texts = ["7", "-5", "1000", "-1000", "2 ** 29", "2 ** 30", "2 ** 31", "-(2 ** 40)"]
    texts += ["2 ** 53 - 1", "0.5", "-0", "NaN", "1e300", "true", "null", "undefined"]
    shapes = [Shape(f"number {text}", 1000, text) for text in texts]
    bits = [
        (3, 1000),
        (31, 1000),
        (64, 1000),
        (120, 1000),
        (1000, 300),
        (10_000, 100),
        (1_000_000, 1),
    ]
    return shapes + [Shape(f"bigint {n} bits", count, f"(1n << {n}n) - 1n") for n, count in bits]


def _texts() -> list[Shape]:
    alphabets = {"ASCII": "a", "Latin-1": "\\xe9", "BMP": "\\u20ac", "astral": "\\u{1f600}"}
    alphabets["lone surrogates"] = "\\ud800"
    shapes = [Shape("text of 0", 1000, "''")]
    for name, letter in alphabets.items():
        for length, count in (
            (1, 1000),
            (2, 1000),
            (10, 1000),
            (100, 300),
            (1000, 100),
            (1_000_000, 1),
        ):
            make = f"'{letter}'.repeat({length})"
            shapes.append(Shape(f"text of {length} {name}", count, make))
        for length, count in ((9, 1000), (999, 100), (1_000_000, 1)):
            make = f"'a'.repeat({length}) + '{letter}'"
            shapes.append(Shape(f"text of {length} ASCII and 1 {name}", count, make))
    return shapes


DICT_SIZES = (
    0,
    1,
    2,
    3,
    5,
    6,
    8,
    10,
    11,
    16,
    21,
    22,
    42,
    43,
    85,
    86,
    170,
    171,
    341,
    342,
    682,
    683,
    1000,
)


def _containers() -> list[Shape]:
    shapes = []
    for size in (*DICT_SIZES, 5000):
        count = max(1, 1000 // max(1, size))
        entries = f"Array.from({{ length: {size} }}, (_, j) => "
        known = f"Object.fromEntries({entries}['k' + j, null]))"
        shapes.append(Shape(f"object of {size} known keys", max(2, count), known))
        new = f"Object.fromEntries({entries}[i + 'k' + j, null]))"
        shapes.append(Shape(f"object of {size} new keys", count, new))
        shapes.append(Shape(f"Map of {size} texts", count, f"new Map({entries}['k' + j, null]))"))
        shapes.append(Shape(f"Map of {size} numbers", count, f"new Map({entries}[j, j]))"))
    for size in (0, 1, 4, 5, 18, 19, 50, 76, 77, 200, 306, 307, 1000, 1228, 1229, 5000):
        count = max(1, 1000 // max(1, size))
        members = f"Array.from({{ length: {size} }}, (_, j) => "
        shapes.append(Shape(f"Set of {size} small numbers", count, f"new Set({members}j - 5))"))
        shapes.append(Shape(f"Set of {size} texts", count, f"new Set({members}'k' + j))"))
    for size in (0, 1, 2, 4, 5, 8, 9, 16, 17, 24, 25, 33, 100, 1000, 100_000):
        count = max(1, 1000 // max(1, size))
        shapes.append(Shape(f"array of {size}", count, f"Array({size}).fill(null)"))
    shapes.append(Shape("array of 10 holes", 1, "Array(10)"))
    shapes.append(Shape("array in array in array", 300, "[[[]]]"))
    shapes.append(Shape("the same object again", 1000, "shared"))
    return shapes


_NUMBERS = ["Int8", "Uint8", "Uint8Clamped", "Int16", "Uint16", "Int32", "Uint32"]
VIEWS = [f"{kind}Array" for kind in (*_NUMBERS, "BigInt64", "BigUint64", "Float32", "Float64")]


def _buffers() -> list[Shape]:
    shapes = []
    for length, count in ((0, 500), (1, 500), (8, 500), (100, 300), (1000, 50), (1_000_000, 1)):
        shapes.append(Shape(f"ArrayBuffer of {length}", count, f"new ArrayBuffer({length})"))
        view = f"new DataView(new ArrayBuffer({length}))"
        shapes.append(Shape(f"DataView of {length}", count, view))
        shapes += [Shape(f"{kind} of {length}", count, f"new {kind}({length})") for kind in VIEWS]
    shapes.append(Shape("Uint8Array of 1 in a buffer of 100000", 1, "new Uint8Array(store, i, 1)"))
    shapes.append(Shape("Int8Array of 1 in one buffer", 500, "new Int8Array(store, i, 1)"))
    return shapes


def _objects() -> list[Shape]:
    deep = "((f) => f(f, 30))((f, n) => n ? f(f, n - 1) : new Error('x'))"
    return [
        Shape("Date", 1000, "new Date(i * 1000)"),
        Shape("Error", 300, "new Error('x')"),
        Shape("Error of another class", 300, "new RangeError('x')"),
        Shape("Error with a code", 300, "Object.assign(new Error('x'), { code: 'E' })"),
        Shape("Error with a deep stack", 50, deep),
        Shape("boxed number", 1000, "Object(1000)"),
        Shape("nothing, in a report of its own", 1, "0"),
    ]


def _links() -> list[Shape]:
    """Values that a report cannot have: arguments that the host keeps, or its own promises."""
    return [
        Shape("kept: function", 1000, "() => i"),
        Shape(
            "kept: function with a name",
            1000,
            "({ ['n'.repeat(100) + i]: () => i })['n'.repeat(100) + i]",
        ),
        Shape("kept: pending promise", 1000, "new Promise(() => {})"),
        Shape("kept: resolved promise", 1000, "Promise.resolve(i)"),
        Shape("kept: rejected promise", 1000, "Promise.reject(new Error('x'))"),
        Shape("called: coroutine that waits", 1000, "later(i)"),
        Shape("called: coroutine that waits, with an object", 1000, "later({ a: i, b: [i] })"),
    ]


SHAPES = [*_numbers(), *_texts(), *_containers(), *_buffers(), *_objects(), *_links()]

PROGRAM = """
    const store = new ArrayBuffer(100000), shared = {{}};
    const make = (i) => ({make});
    const all = Array.from({{ length: {count} }}, (_, i) => make(i));
    for (let k = 0; k < {messages}; k++) report(all);
    export default null;
"""
LINKS = """
    const make = (i) => ({make});
    for (let k = 0; k < {messages}; k++) {{
        const all = Array.from({{ length: {count} }}, (_, i) => make(i));
        {keep}
    }}
    await done();
    export default null;
"""


def resident_bytes() -> int:
    """The memory of this process after the allocators returned their free blocks."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    with Path("/proc/self/statm").open() as file:
        return int(file.read().split()[1]) * 4096


class Measured(NamedTuple):
    """The measurement of one run: its charge, the CPU time of its thread, and its values."""

    charged_bytes: int
    held_bytes: int
    cpu_s: float
    values: Any


def _report(runtime: isolane.Runtime, shape: Shape, messages: int) -> Measured:
    """A run that hands the shape out in so many reports, which its result holds."""
    started = time.thread_time()
    source = PROGRAM.format(make=shape.make, count=shape.number, messages=messages)
    result = runtime.run_code_sync(
        source, report=lambda _: None, memory_limit_bytes=LIMIT_BYTES, language="javascript"
    )
    reports = result.raise_for_status().reports
    cpu_s, charged = time.thread_time() - started, result.memory_used_bytes or 0
    del result
    return Measured(charged, resident_bytes(), cpu_s, reports)


def _keep(runtime: isolane.Runtime, shape: Shape, messages: int) -> Measured:
    """A run that hands the shape to a host which keeps it; measured while the run is running."""
    kept: list[Any] = []
    held, cpu_s = 0, 0.0
    started = time.thread_time()

    async def later(_: Any) -> None:
        await asyncio.get_running_loop().create_future()

    async def done() -> None:
        nonlocal held, cpu_s
        cpu_s = time.thread_time() - started
        held = resident_bytes()

    source = LINKS.format(
        make=shape.make,
        count=shape.number,
        messages=messages,
        keep="" if shape.name.startswith("called") else "keep(all);",
    )
    result = runtime.run_code_sync(
        source,
        globals={"keep": kept.append, "later": later, "done": done},
        memory_limit_bytes=LIMIT_BYTES,
        language="javascript",
    )
    result.raise_for_status()
    return Measured(result.memory_used_bytes or 0, held, cpu_s, kept)


def measure(shape: Shape, isolation: Any) -> dict[str, float]:
    """Bytes held and charged for one value of the shape, and for all of them."""
    run = _keep if ":" in shape.name else _report
    with isolane.Runtime(isolation=isolation) as runtime:
        one = run(runtime, shape, 1)
        two = run(runtime, shape, 3)
        each = max(1, (two.charged_bytes - one.charged_bytes) // 2)
        del two
        messages = 1 + min(MOST_MESSAGES, max(2, AIM_BYTES // each))
        before = resident_bytes()
        many = run(runtime, shape, messages)
    held = (many.held_bytes - before) / messages
    charged = (many.charged_bytes - one.charged_bytes) / (messages - 1)
    return {
        "messages": messages,
        "held": held / shape.number,
        "charged": charged / shape.number,
        "total_held": held * messages,
        "total_charged": charged * messages,
        "cpu_us": many.cpu_s * 1e6 / messages / shape.number,
    }


def _in_child(shape: Shape, isolation: str) -> dict[str, Any]:
    command = [sys.executable, __file__, "--isolation", isolation, "--one", json.dumps(shape)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    if done.returncode != 0:
        return {"name": shape.name, "failed": done.stderr.strip().splitlines()[-1:]}
    return {"name": shape.name, **json.loads(done.stdout)}


def _is_too_much(row: dict[str, Any]) -> bool:
    if "failed" in row:
        return True
    return bool(row["total_held"] > MOST_TIMES * row["total_charged"] + SLACK_BYTES)


def _ratio(row: dict[str, Any]) -> float:
    return float("inf") if "failed" in row else row["held"] / max(1, row["charged"])


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--isolation", default="process")
    parser.add_argument("--only", default="", help="shapes with this in their names")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(Shape(*json.loads(options.one)), options.isolation)))
        return 0
    shapes = [shape for shape in SHAPES if options.only in shape.name]
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        rows = list(pool.map(lambda shape: _in_child(shape, options.isolation), shapes))
    rows.sort(key=_ratio, reverse=True)
    if options.json:
        print(json.dumps(rows))
        return 0
    print(f"{'shape':<48}{'held':>12}{'charged':>12}{'ratio':>8}{'CPU µs':>9}")
    for row in rows:
        if "failed" in row:
            print(f"{row['name']:<48} {row['failed']}")
            continue
        mark = "  too much" if _is_too_much(row) else ""
        numbers = (
            f"{row['held']:>12.1f}{row['charged']:>12.1f}{_ratio(row):>8.2f}{row['cpu_us']:>9.2f}"
        )
        print(f"{row['name']:<48}{numbers}{mark}")
    return int(any(map(_is_too_much, rows)))


if __name__ == "__main__":
    sys.exit(main())
