"""A server of HTTP on loopback: the tools of ``server`` at ``/mcp``, and resources over HTTP.

In: nothing. Out: its port on stdout, and then answers until stdin ends.
"""

import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import server

TOKEN = "Bearer a-secret-token"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        pass

    def answer(self, status: int, body: bytes, kind: str, **headers: str) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def json(self, value: object) -> None:
        self.answer(200, json.dumps(value).encode(), "application/json; charset=utf-8")

    def act(self) -> None:
        length = int(self.headers.get("content-length") or 0)
        body = self.rfile.read(length).decode()
        path = self.path.split("?")[0]
        match path:
            case "/mcp":
                self.mcp(body)
            case "/status/404":
                self.answer(404, f"no such city, {TOKEN}\n".encode(), "text/plain")
            case "/status/503":
                self.answer(503, b"", "text/plain")
            case "/redirect":
                self.answer(302, b"", "text/plain", location="/echo/x")
            case "/text":
                self.answer(200, "grüezi".encode(), "text/plain; charset=utf-8")
            case "/no-json":
                self.answer(200, b"{", "application/problem+json")
            case "/binary":
                self.answer(200, b"\xff\xfe", "application/octet-stream")
            case "/empty":
                self.answer(200, b"", "application/json")
            case "/large":
                self.answer(200, b"x" * (5 << 20), "text/plain")
            case "/cut":
                self.send_response(200)
                self.send_header("content-length", "100")
                self.end_headers()
                self.wfile.write(b"x")
                self.close_connection = True
            case _:
                self.json(
                    {
                        "method": self.command,
                        "path": self.path,
                        "body": body,
                        "kind": self.headers.get("content-type"),
                        "is_known": self.headers.get("authorization") == TOKEN,
                    }
                )

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = act  # noqa: N815 - the names are the library's

    def mcp(self, body: str) -> None:
        if self.headers.get("authorization") != TOKEN:
            self.answer(401, b"who are you?", "text/plain", **{"www-authenticate": "Bearer"})
        elif self.command != "POST":
            self.answer(405, b"", "text/plain")
        else:
            reply = server.respond(json.loads(body))
            if reply is None:
                self.answer(202, b"", "text/plain")
            else:
                self.json({"jsonrpc": "2.0", **reply})


def main() -> None:
    web = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=web.serve_forever, daemon=True).start()
    print(web.server_port, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
