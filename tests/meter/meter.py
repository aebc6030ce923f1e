"""The meter for Python: memory that a run hands over, against the run's charge.

In: `--seconds` (30), `--seed` of the first value, `--isolation thread|process|both`, `--most` bytes
of a value, `--limit` of a run in MiB, `--only seed` to measure one alone. Out: the worst ten by
memory that the host really holds for each charged byte, and the worst ten by standstill of the
event loop, on the standard output and in RESULTS.md beside this; a failure if a value held more
than twice its charge and 1 MiB, blocked the loop for more than 100 ms of CPU time beside its
collector's, or ended its process. The values are those of `generate.js`, in the same ways as in
`meter.mjs`. A case over a bound is measured again, alone, and the best result counts.
"""

from __future__ import annotations

import argparse
import asyncio
import ctypes
import gc
import json
import platform
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import isolane

HERE = Path(__file__).parent
RESULTS = HERE / "RESULTS.md"
MOST_RATIO = 2.0
FREE_BYTES = 1 << 20
MOST_STANDSTILL_MS = 100.0
LIMIT_MIB = 320
MOST_BYTES = 3_000_000
LEAST_BALLAST_BYTES = 64 << 20
# A value is handed out again until about so much is held: far above the noise of allocators.
HELD_BYTES = 8 << 20
MOST_COPIES = 200
RUN_S = 5.0
BATCH = 25
BATCH_CEILING_S = 300.0
AGAIN = 2
SHOWN = 10

# Ways out of the sandbox.
WAYS = {
    "report": "report(value)",
    "log": "console.log(value)",
    "result": "answer = value",
    "thrown": "throw value",
    "argument": "take(value)",
    "promise": "take(Promise.resolve(value)); await tick()",
    "answer": "await call(() => value)",
    "rejection": "await call(() => { throw value; })",
}
# The first stay charged as long as the result is held; the others hand out only one value.
KEPT = ("report", "log")
ONCE = ("result", "thrown")
SOURCE = """
    import {{ generate }} from './generate.js';
    let answer;
    const make = (copy) => generate({seed}, {{ ...{made}, from: copy * 1e7 }});
    const give = async (copy) => {{
      const {{ kind, value }} = make(copy);
      if (copy === 0) say(kind);
      if ({early}) hold();
      for (let time = 0; time < {times}; time += 1) {{
        {give};
      }}
    }};
    let ballast;
    const hold = () => (ballast ??= new ArrayBuffer({ballast}));
    for (let copy = 0; copy < {copies}; copy += 1) await give(copy);
    // Above whatever the run took on the way: at its peak it holds this and what it gave away.
    hold();
    await parked();
    export default answer;
"""


def held_bytes() -> int:
    """The memory of this process after everything possible was freed."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    with Path("/proc/self/statm").open() as file:
        return int(file.read().split()[1]) * 4096


class Standstill:
    """The longest turn of the event loop, in CPU time of its thread, without that of Python's
    collector: a collection visits all objects of the process in one step."""

    def __init__(self) -> None:
        self.longest_s = 0.0
        self._collects_since_s = 0.0
        gc.callbacks.append(self._collects)
        self._last_s = time.thread_time()
        self._task = asyncio.get_running_loop().create_task(self._look())

    def mark(self) -> None:
        now_s = time.thread_time()
        self.longest_s = max(self.longest_s, now_s - self._last_s)
        self._last_s = now_s

    def _collects(self, phase: str, _: dict[str, int]) -> None:
        now_s = time.thread_time()
        if phase == "start":
            self._collects_since_s = now_s
        else:
            self._last_s += now_s - self._collects_since_s

    def skip(self) -> None:
        """The work until now was the meter's own."""
        self._last_s = time.thread_time()

    async def _look(self) -> None:
        while True:
            self.mark()
            await asyncio.sleep(0)

    def end(self) -> float:
        self.mark()
        self._task.cancel()
        gc.callbacks.remove(self._collects)
        return self.longest_s * 1e3


class Sizes(NamedTuple):
    """The largest size of a value, and the limit of a run."""

    most_bytes: int
    limit_mib: int


async def hand(
    runtime: isolane.Runtime,
    sizes: Sizes,
    way: str,
    seed: int,
    copies: int,
    times: int = 1,
    early: bool = False,
) -> dict[str, Any]:
    """A run that hands out so many copies, each so many times, and its result; `early` if beside
    its ballast."""
    live = way not in (*KEPT, *ONCE)
    made = {"live": live or way == "log", "text": way == "log", "most": sizes.most_bytes}
    source = SOURCE.format(
        seed=seed,
        made=json.dumps(made),
        give=WAYS[way],
        copies=copies,
        times=times,
        early=json.dumps(early),
        # More than the sandbox takes while it makes a value.
        ballast=max(LEAST_BALLAST_BYTES, 2 * sizes.most_bytes),
    )
    kind: list[str] = []
    # The host's own code keeps only the last of them.
    keep: list[Any] = [None]
    reached, go_on = asyncio.Event(), asyncio.Event()
    before, held = held_bytes(), 0
    still = Standstill()

    async def follow(future: asyncio.Future[Any]) -> None:
        try:
            keep[0] = await future
        except Exception as raised:
            keep[0] = raised

    followers: set[asyncio.Task[None]] = set()

    def take(value: Any) -> None:
        keep[0] = value
        if asyncio.isfuture(value):
            task = asyncio.get_running_loop().create_task(follow(value))
            followers.add(task)
            task.add_done_callback(followers.discard)

    async def call(function: Any) -> None:
        try:
            keep[0] = await function()
        except Exception as raised:
            keep[0] = raised

    async def parked() -> None:
        nonlocal held
        if live:
            still.mark()
            held = held_bytes() - before
            still.skip()
        reached.set()
        await go_on.wait()

    async def tick() -> None:
        await asyncio.sleep(0)

    run = runtime.run_code(
        source,
        language="javascript",
        memory_limit_bytes=sizes.limit_mib << 20,
        modules={"./generate.js": (HERE / "generate.js").read_text()},
        globals={"say": kind.append, "take": take, "call": call, "tick": tick, "parked": parked},
        report=lambda _: None,
    )
    timer = asyncio.get_running_loop().call_later(
        max(RUN_S, sizes.most_bytes / 4e6), run.terminate, "too long to measure"
    )
    go_on.set()
    result = await run
    timer.cancel()
    stood_ms = still.end()
    if not live:
        held = held_bytes() - before
    charged = result.memory_used_bytes or 0
    return {
        "status": result.status,
        "kind": "".join(kind),
        "held": max(0, held),
        "charged": charged,
        "stood_ms": stood_ms,
    }


async def one(runtime: isolane.Runtime, sizes: Sizes, seed: int, empty: int) -> dict[str, Any]:
    """One seed, handed out in its way."""
    way = list(WAYS)[seed % len(WAYS)]
    copies = 1
    row = single = await hand(runtime, sizes, way, seed, 1)
    if way not in ONCE and single["status"] == "success":
        each = max(1, single["charged"] - empty, single["held"])
        copies = 1 + min(MOST_COPIES, max(4, HELD_BYTES // each))
        row = await hand(runtime, sizes, way, seed, copies)
        row["stood_ms"] = max(row["stood_ms"], single["stood_ms"])
    # Only a run that was not ended allocated its ballast.
    if row["status"] in ("success", "error"):
        if way in KEPT and row["status"] == "success":
            row["charged"] -= empty
        elif way not in KEPT and row["held"] > FREE_BYTES:
            row["charged"], made = await own(runtime, sizes, way, seed, copies)
            # Under isolation by thread this process also has the sandbox that made the values.
            row["held"] = max(0, row["held"] - made)
            # The allocator of Python keeps an arena for a few blocks that are in use, each time.
            for _ in range(AGAIN):
                if row["held"] > MOST_RATIO * row["charged"] + FREE_BYTES:
                    same = await hand(runtime, sizes, way, seed, copies)
                    row["held"] = min(row["held"], max(0, same["held"] - made))
    return {"seed": seed, "way": way, "copies": copies, **row}


async def own(
    runtime: isolane.Runtime, sizes: Sizes, way: str, seed: int, copies: int
) -> tuple[int, int]:
    """The charge for what a run hands out, without that for its own values: at its peak, it holds
    both and ballast. And the memory of a run that makes the values and hands out none."""
    handed = await hand(runtime, sizes, way, seed, copies, early=True)
    made = await hand(runtime, sizes, way, seed, copies, times=0, early=True)
    return max(0, int(handed["charged"]) - int(made["charged"])), int(made["held"])


async def some(first: int, count: int, isolation: Any, sizes: Sizes) -> None:
    """Some cases; prints a line of JSON when each has begun and when it has been measured."""
    async with isolane.Runtime(isolation=isolation) as runtime:
        await hand(runtime, sizes, "report", 0, 0)
        empty = (await hand(runtime, sizes, "report", 0, 0))["charged"]
        for seed in range(first, first + count):
            print(json.dumps({"began": seed}), flush=True)
            row = await one(runtime, sizes, seed, empty)
            row |= {"isolation": isolation, "ratio": row["held"] / max(row["charged"], 1)}
            print(json.dumps(row), flush=True)


def batch(first: int, count: int, isolation: str, sizes: Sizes) -> list[dict[str, Any]]:
    """Some cases in processes of their own: a new process after each that ended early."""
    rows: list[dict[str, Any]] = []
    end = first + count
    while first < end:
        command = [sys.executable, __file__, "--cases", str(first), str(end - first), isolation]
        command += ["--most", str(sizes.most_bytes), "--limit", str(sizes.limit_mib)]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=BATCH_CEILING_S, check=False
            )
            output, errors, code = done.stdout, done.stderr, done.returncode
        except subprocess.TimeoutExpired as late:
            output = (late.stdout or b"").decode()
            errors, code = f"no answer in {BATCH_CEILING_S} s", 1
        said = [json.loads(line) for line in output.splitlines()]
        rows += [row for row in said if "began" not in row]
        if code == 0:
            break
        begun = next((row["began"] for row in reversed(said) if "began" in row), first)
        why = (errors.strip().splitlines() or [f"ended with {code}"])[-1]
        rows.append({"seed": begun, "isolation": isolation, "crash": why})
        first = begun + 1
    return rows


def wrong(row: dict[str, Any]) -> list[str]:
    """The broken promises of a case."""
    if "crash" in row:
        return [f"ended its process: {row['crash']}"]
    found = []
    if row["held"] > MOST_RATIO * row["charged"] + FREE_BYTES:
        found.append(f"held {mib(row['held'])} MiB of {mib(row['charged'])} charged")
    if row["stood_ms"] > MOST_STANDSTILL_MS:
        found.append(f"stood still for {row['stood_ms']:.0f} ms")
    return found


def again(row: dict[str, Any], sizes: Sizes) -> None:
    """Measures a case over a bound again alone, and keeps the best."""
    for _ in range(AGAIN):
        if "crash" in row or not wrong(row):
            return
        alone = batch(row["seed"], 1, row["isolation"], sizes)[0]
        if "crash" in alone:
            return
        if alone["ratio"] < row["ratio"]:
            row |= {name: alone[name] for name in ("held", "charged", "ratio")}
        row["stood_ms"] = min(row["stood_ms"], alone["stood_ms"])


def mib(count: float) -> str:
    return f"{count / (1 << 20):.2f}"


def place(row: dict[str, Any]) -> str:
    kind = row["kind"][:160].replace("|", "\\|").replace("\n", "\\n")
    return f"{row['seed']}, {row['isolation']} | {row['way']}, {row['copies']} times | {kind}"


def report(rows: list[dict[str, Any]], seed: int, isolations: list[str]) -> str:
    crashed = [row for row in rows if "crash" in row]
    measured = [row for row in rows if "crash" not in row]
    # A small value's ratio is mostly the allocators' noise.
    large = [row for row in measured if row["held"] > FREE_BYTES]
    over = sum(bool(wrong(row)) for row in rows)
    counts = (
        f"Python {platform.python_version()}: {len(rows)} values from seed {seed}, "
        f"{' and '.join(isolations)}; {over} beyond a bound, {len(crashed)} of them ended their "
        "process."
    )
    lines = [
        counts,
        "",
        *(f"- {row['seed']}, {row['isolation']}: {row['crash']}" for row in crashed[:SHOWN]),
        "| held / charged | held, MiB | charged, MiB | seed | by | value |",
        "|---|---|---|---|---|---|",
    ]
    for row in sorted(large, key=lambda row: -row["ratio"])[:SHOWN]:
        numbers = f"{row['ratio']:.2f} | {mib(row['held'])} | {mib(row['charged'])}"
        lines.append(f"| {numbers} | {place(row)} |")
    lines += ["", "| stood still, ms | seed | by | value |", "|---|---|---|---|"]
    for row in sorted(measured, key=lambda row: -row["stood_ms"])[:SHOWN]:
        lines.append(f"| {row['stood_ms']:.1f} | {place(row)} |")
    return "\n".join(lines)


def write(section: str) -> None:
    """Keeps the sections of other languages."""
    title = "## Python"
    text = RESULTS.read_text() if RESULTS.exists() else "# The meter, on one machine\n"
    head, *parts = text.split("\n## ")
    others = [f"## {part.strip()}" for part in parts if not f"## {part}".startswith(title)]
    RESULTS.write_text("\n\n".join([head.strip(), *others, title, section]) + "\n")


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--only", type=int, default=None)
    parser.add_argument("--isolation", default="both", choices=["thread", "process", "both"])
    parser.add_argument("--most", type=lambda text: int(float(text)), default=MOST_BYTES)
    parser.add_argument("--limit", type=int, default=LIMIT_MIB)
    parser.add_argument("--cases", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    sizes = Sizes(options.most, options.limit)
    if options.cases:
        first, count, isolation = options.cases
        asyncio.run(some(int(first), int(count), isolation, sizes))
        return 0
    both = ["thread", "process"]
    isolations = both if options.isolation == "both" else [options.isolation]
    rows: list[dict[str, Any]] = []
    if options.only is not None:
        for isolation in isolations:
            rows += batch(options.only, 1, isolation, sizes)
        for row in rows:
            print(json.dumps(row, indent=2), *wrong(row), sep="\n")
        return int(any(map(wrong, rows)))
    seed = options.seed if options.seed is not None else int(time.time()) % 2**30
    deadline, next_ = time.monotonic() + options.seconds, seed
    while time.monotonic() < deadline:
        for isolation in isolations:
            rows += batch(next_, BATCH, isolation, sizes)
        next_ += BATCH
    for row in rows:
        again(row, sizes)
    section = report(rows, seed, isolations)
    print(section)
    write(section)
    return int(any(map(wrong, rows)))


if __name__ == "__main__":
    sys.exit(main())
