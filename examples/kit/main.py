"""Tools that a model wrote, with a kit: an import, a conversion at a rate from a server, a wait,
and a theft. Each shows what came of its calls."""

import http.server
import json
import threading
from pathlib import Path
from typing import Any

from isolane.kit import Kit, KitResult

KEY = "rk-4f0c7a5de1"
HERE = Path(__file__).parent


class Handler(http.server.BaseHTTPRequestHandler):
    """Knows the rates, for those who have the key, and where the parcel is."""

    asked = 0

    def do_GET(self) -> None:
        path = self.path.split("?")[0]
        if path == "/parcel":
            Handler.asked += 1
            self.answer(200, {"parcel": "under way" if Handler.asked < 3 else "arrived"})
        elif path == "/rates" and self.headers["Authorization"] == f"Bearer {KEY}":
            self.answer(200, {"rate": 11.5})
        else:
            self.answer(401, None)

    def answer(self, status: int, content: Any) -> None:
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


def read(file: str) -> str:
    return (HERE / file).read_text(encoding="utf-8")


def main() -> None:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    origin = f"http://127.0.0.1:{server.server_port}"

    with Kit(
        state=True,
        db=True,
        libraries=True,
        # The server is on this machine, which is not allowed otherwise.
        fetch={"allow": [f"{origin}/*"], "allow_addresses": ["127.0.0.1"]},
        secrets={"RATES_KEY": {"value": KEY, "hosts": [f"{origin}/rates"], "in": ["header"]}},
    ) as kit:

        def use(name: str, **args: Any) -> KitResult:
            """Runs a tool and shows its result and its calls."""
            done = kit.run_tool_sync(read(f"tools/{name}.ts"), args=args, filename=f"{name}.ts")
            error = done.error
            print(f"\n{name}: {done.json if error is None else f'{error.name}: {error.message}'}")
            for call in done.calls:
                shown = call.summary.replace(origin, "")[:60]
                failed = "" if call.error is None else f" ({call.error})"
                print(f"  {'✓' if call.ok else '✗'} {call.name} {shown}{failed}")
            return done

        money = read("tools/money.ts")
        kit.libraries.create_sync("money", money, description="round(amount): cents")
        described = kit.describe_sync().splitlines()
        print("\n".join(line.strip() for line in described if "RATES_KEY" in line))
        use("import", csv=read("orders.csv"))
        converted = use("convert", to="NOK", server=origin)
        use("convert", to="NOK", server=origin)
        use("wait", server=origin)
        stolen = use("steal", server=origin)

    server.shutdown()
    assert converted.result["Oslo"] == 1615.64
    assert KEY not in repr(stolen)


main()
