"""Costs of a kit from Python, as ratios to references measured in the same process.

In: `--quick` for few samples, and the packages of `peers/requirements.txt`. Out: a table in
Markdown, with the rows of `kit.mjs` for which Python has a reference of its own.
"""

from __future__ import annotations

import argparse
import http.server
import importlib
import sqlite3
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import isolane
from isolane.kit import Kit
from python import ONE, Bench, run_sync

FILL = """WITH RECURSIVE n(a) AS (SELECT 1 UNION ALL SELECT a + 1 FROM n WHERE a < 1000)
INSERT INTO t SELECT a, a, a, a, a FROM n"""
LOOP = "for (let i = 0; i < {count}; i += 1) {{ {step} }}"
KIB = 1024


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        size = KIB if self.path == "/small" else 10 * KIB * KIB
        self.send_response(200)
        self.send_header("Content-Length", str(size))
        self.end_headers()
        self.wfile.write(b"x" * size)

    def log_message(self, *_: Any) -> None:
        pass


class OfKit(Bench):
    def each(self, count: int, step: str, run: Callable[[str], object]) -> float:
        """The median time of one step of a loop inside, without the rest of its run."""
        empty = self.time_sync(lambda _: run(LOOP.format(count=0, step=step)))
        full = self.time_sync(lambda _: run(LOOP.format(count=count, step=step)))
        return max(0.0, full - empty) / count

    def measure(self, kit: Kit, origin: str) -> None:
        def tool(source: str) -> None:
            done = kit.run_tool_sync(source)
            if done.error is not None:
                raise RuntimeError(f"{done.error.name}: {done.error.message}")

        def hosted(name: str, function: Any) -> Callable[[str], None]:
            return lambda source: run_sync(f"export default 0;\n{source}", globals={name: function})

        plain = self.time_sync(lambda _: run_sync(ONE))
        used = self.time_sync(lambda _: tool("1 + 1"))
        what = "`run_tool_sync('1 + 1')`, all capabilities on (aim: 1.2)"
        self.row(what, used, "`run_code_sync`", plain)

        peer = sqlite3.connect(":memory:", check_same_thread=False)
        peer.execute("CREATE TABLE t (a, b, c, d, e)")
        peer.execute(FILL)
        kit.db.sql_sync("CREATE TABLE t (a, b, c, d, e)")
        kit.db.sql_sync(FILL)

        def sql(text: str) -> list[list[Any]]:
            return [list(row) for row in peer.execute(text)]

        reference = "a host function over `sqlite3`"
        for rows, count, limit in (("1,000 rows of 5 (aim: 0.8)", 20, 1000), ("one row", 500, 1)):
            text = f"'SELECT * FROM t LIMIT {limit}'"
            ours = self.each(count, f"await db.sql({text})", tool)
            theirs = self.each(count, f"sql({text})", hosted("sql", sql))
            self.row(f"`db.sql`, {rows}", ours, reference, theirs)

        with importlib.import_module("httpx").Client() as client:
            for size, count, aim in (("1 KB", 50, "1.2"), ("10 MiB", 2, "1.3")):
                path = f"{origin}/{'small' if size == '1 KB' else 'large'}"
                ours = self.each(count, f"await (await fetch('{path}')).arrayBuffer()", tool)
                theirs = self.time_sync(partial(content, client, path))
                self.row(f"`fetch` of {size} from loopback (aim: {aim})", ours, "httpx", theirs)


def content(client: Any, url: str, _: int) -> object:
    return client.get(url).content


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    bench = OfKit(parser.parse_args().quick)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    origin = f"http://127.0.0.1:{server.server_port}"
    fetch = {
        "allow": [origin],
        "allow_addresses": ["127.0.0.1"],
        "max_response_bytes": 16 * KIB * KIB,
        "max_calls": 10**6,
        "max_total_bytes": 2**40,
    }
    options: dict[str, Any] = {"fetch": fetch, "max_calls": 10**9}
    with (
        isolane.Runtime() as runtime,
        Kit(runtime=runtime, state=True, db=True, libraries=True, **options) as kit,
    ):
        bench.measure(kit, origin)
    server.shutdown()
    head = "| what | figure | reference | figure | ratio |\n|---|--:|---|--:|--:|\n"
    print("### A kit from Python\n")
    print(head + "\n".join(bench.rows) + "\n")


if __name__ == "__main__":
    main()
