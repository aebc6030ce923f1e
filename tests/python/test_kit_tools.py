"""The tables of tools (crates/kit/tests/cases) in Python."""

from __future__ import annotations

import gzip
import http.server
import json
import pathlib
import re
import threading
import urllib.parse
from collections.abc import Iterator
from typing import Any, ClassVar

import pytest
from isolane.kit import Kit, KitError, KitResult

import isolation

TABLES = pathlib.Path(__file__).parents[2] / "crates/kit/tests/cases"
LANGUAGES = {"ts": "typescript", "js": "javascript"}
SNAKE = {"timeoutMs": "timeout_ms", "memoryLimitBytes": "memory_limit_bytes"}
FENCE = re.compile(r"^```(.+)\n([^`]*(?:`(?!``)[^`]*)*?)\n```$", re.MULTILINE)


class Handler(http.server.BaseHTTPRequestHandler):
    """The server that the tables describe."""

    # The parts of requests: their lines, headers and bodies.
    seen: ClassVar[list[str]] = []

    def answer(self) -> None:
        length = int(self.headers.get("content-length") or 0)
        body = self.rfile.read(length).decode()
        place, _, query = self.path.partition("?")
        _, kind, *rest = place.split("/")
        count = int(rest[0]) if rest and rest[0].isdigit() else 0
        if kind != "seen":
            had = json.dumps(dict(self.headers.items()))
            self.seen.append(f"{self.command} {self.path} {had} {body}")
        if kind == "raw":
            self.wfile.write(urllib.parse.unquote_to_bytes(query) + b"x" * count)
            if rest[1:] == ["hold"]:
                self.rfile.read(1)
            return
        echo = {
            "method": self.command,
            "path": self.path,
            "body": body,
            "headers": {name.lower(): value for name, value in self.headers.items()},
        }
        typed = {"Content-Type": "application/json"}
        answers: dict[str, tuple[int, bytes, dict[str, str]]] = {
            "/json": (200, b'{"a":1}', typed),
            "/echo": (200, json.dumps(echo).encode(), typed),
            "/status": (404, b"no", {}),
            "/redirect": (302, b"", {"Location": "/json"}),
            "/loop": (302, b"", {"Location": "/loop"}),
            "/large": (200, b"x" * 100_000, {}),
            "/bytes": (200, bytes(range(256)), {}),
            "/seen": (200, str(sum(query in text for text in self.seen)).encode(), {}),
        }
        if kind == "gzip":
            packed = gzip.compress(b"x" * count)
            answers[place] = (200, packed, {"Content-Encoding": "gzip"})
        answer = answers.get(place)
        if answer is None:
            # It ends when the client goes away.
            self.rfile.read(1)
            return
        status, content, headers = answer
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(content))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, *_: Any) -> None:
        pass


for _method in ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"):
    setattr(Handler, f"do_{_method}", Handler.answer)


def _cases(name: str) -> list[Any]:
    """The cases of a table, with `{origin}` and `{other}` as they stand there."""
    found = []
    for section in (TABLES / name).read_text(encoding="utf-8").split("\n## ")[1:]:
        case: dict[str, Any] = {"libraries": [], "kit": {}, "options": {}}
        for info, content in FENCE.findall(section):
            kind, _, name = info.partition(" ")
            if kind == "json":
                case[name] = content
            elif name == "":
                case |= {"source": content, "language": LANGUAGES[kind]}
            else:
                case["libraries"].append((name, content, LANGUAGES[kind]))
        found.append(pytest.param(case, id=section.split("\n", 1)[0]))
    return found


CASES = _cases("tools.md") + _cases("exfiltration.md") + _cases("fetch.md")
# The values of the secrets that all cases have.
SECRETS = ("correct horse battery", "plain secret value")


@pytest.fixture(scope="module")
def runtime() -> Iterator[Any]:
    with isolation.Runtime() as made:
        yield made


@pytest.fixture(scope="module")
def origins() -> Iterator[list[str]]:
    servers = [http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) for _ in range(2)]
    for server in servers:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
    yield [f"http://127.0.0.1:{server.server_port}" for server in servers]
    for server in servers:
        server.shutdown()
        server.server_close()


def snake(options: Any) -> Any:
    """Options of a kit as Python spells them. Names of secrets stay."""
    if not isinstance(options, dict):
        return options
    words = {name: re.sub("[A-Z]", lambda upper: "_" + upper[0].lower(), name) for name in options}
    return {words[name]: snake(value) for name, value in options.items()}


def same(key: str, expected: Any, seen: Any) -> None:
    if isinstance(expected, dict) and "$has" in expected:
        assert expected["$has"] in seen, key
    elif key == "error":
        for field, value in expected.items():
            part = getattr(seen, field)
            same(field, value, part)
    elif isinstance(expected, list) and isinstance(seen, list) and len(expected) == len(seen):
        for one, other in zip(expected, seen, strict=True):
            same(key, one, other)
    else:
        assert seen == expected, key


def test_the_tables_have_their_cases() -> None:
    assert len(CASES) >= 260


@pytest.mark.parametrize("case", CASES)
def test_tool(case: dict[str, Any], runtime: Any, origins: list[str]) -> None:
    origin, other = origins

    def filled(text: str) -> str:
        return text.replace("{origin}", origin).replace("{other}", other)

    def read(text: Any) -> Any:
        return json.loads(filled(text)) if isinstance(text, str) else text

    usual = {
        "state": True,
        "libraries": True,
        "db": True,
        "fetch": {"allow": [origin], "allowAddresses": ["127.0.0.1"]},
        "secrets": {
            "KEY": {"value": "correct horse battery", "hosts": [origin]},
            "PLAIN": {"value": "plain secret value", "reveal": True},
        },
    }
    changed = {**usual, **read(case["kit"])}
    given = {name: value for name, value in changed.items() if value is not None}
    secrets = given.pop("secrets", None)
    options = {SNAKE.get(name, name): value for name, value in read(case["options"]).items()}
    source = filled(case["source"])
    with Kit(runtime=runtime, secrets=secrets, **snake(given)) as kit:
        for name, text, language in case["libraries"]:
            kit.libraries.create_sync(name, filled(text), language=language)
        if "misuse" in case:
            with pytest.raises((TypeError, ValueError)) as refused:
                kit.run_tool_sync(source, language=case["language"], **options)
            assert str(refused.value) == read(case["misuse"])
            return
        result = kit.run_tool_sync(source, language=case["language"], **options)
        check(result, {"status": "success", **read(case["result"])})


def check(result: KitResult, expected: dict[str, Any]) -> None:
    assert not any(secret in repr(result) for secret in SECRETS), "a secret leaves"
    seen: dict[str, Any] = {
        "status": result.status,
        "error": result.error,
        "logs": [[log.level, *log.args] for log in result.logs],
        "calls": [
            [call.name, call.summary, *([] if call.ok else [call.error])] for call in result.calls
        ],
        "json": result.json,
    }
    assert all(call.ok == (call.error is None) for call in result.calls)
    if result.json is not None:
        seen["value"] = json.loads(result.json)
        assert result.result == seen["value"], "the result is the JSON"
    for key, value in expected.items():
        same(key, value, seen.get(key))


CALLS = (TABLES / "calls.md").read_text(encoding="utf-8").split("\n## ")[1:]


def test_the_table_of_calls_has_its_cases() -> None:
    assert len(CALLS) >= 4


@pytest.mark.parametrize("group", CALLS, ids=lambda text: text.split("\n", 1)[0])
def test_calls(group: str) -> None:
    fence = group.split("```json calls\n")[1].split("\n```")[0]
    with Kit(state=True, db=True, libraries=True) as kit:
        for name, args, *expected in json.loads(fence):
            side, method = name.split(".")
            options = args.pop() if side == "libraries" and len(args) == 3 else {}
            call = getattr(getattr(kit, side), f"{method}_sync")
            try:
                seen = [call(*args, **options)]
            except (TypeError, ValueError) as raised:
                kind = "TypeError" if isinstance(raised, TypeError) else "RangeError"
                seen = [kind, str(raised)]
            except KitError as raised:
                seen = [raised.name, raised.message]
            assert seen == expected, (name, args)


MISUSE = (TABLES / "misuse.md").read_text(encoding="utf-8").split("\n## ")[1:]
KINDS = {"TypeError": TypeError, "RangeError": ValueError, "Error": RuntimeError}


def snake_options(given: Any) -> Any:
    """Options as Python spells them, below lists too. Names of secrets have no small letters."""
    if isinstance(given, list):
        return [snake_options(one) for one in given]
    if not isinstance(given, dict):
        return given
    return {
        name if name.isupper() else snake_words(name): snake_options(value)
        for name, value in given.items()
    }


def snake_words(text: str) -> str:
    """A message with the names of options as Python spells them."""
    return re.sub("(?<=[a-z])[A-Z](?=[a-z])", lambda upper: "_" + upper[0].lower(), text)


def test_the_table_of_misuse_has_its_cases() -> None:
    assert len(MISUSE) >= 8


@pytest.mark.parametrize("group", MISUSE, ids=lambda text: text.split("\n", 1)[0])
def test_misuse(group: str, tmp_path: pathlib.Path) -> None:
    text = "no database, but a text that is as long as a page\n" * 100
    (tmp_path / "text.db").write_text(text, encoding="utf-8")
    fence = group.split("```json refused\n")[1].split("\n```")[0]
    for options, name, message in json.loads(fence):
        given = json.loads(json.dumps(snake_options(options)).replace("{folder}", str(tmp_path)))
        with pytest.raises(KINDS[name]) as refused:
            Kit(**given)
        expected = snake_words(message).replace("{folder}", str(tmp_path))
        assert str(refused.value) == expected, options
    assert [file.name for file in tmp_path.iterdir()] == ["text.db"]
