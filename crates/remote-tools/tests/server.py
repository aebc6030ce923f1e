"""A server of the Model Context Protocol over stdio, which does as a test tells it.

In: a mode as the only argument, messages on stdin. Out: answers on stdout, lines on stderr.
"""

import json
import os
import subprocess
import sys

MODE = sys.argv[1] if len(sys.argv) > 1 else "good"
TEXT = {"type": "string"}


def schema(**properties: dict) -> dict:
    return {"type": "object", "properties": properties, "required": list(properties)}


TOOLS = [
    {
        "name": "add-numbers",
        "description": "Adds two numbers.",
        "inputSchema": schema(a={"type": "number"}, b={"type": "number"}),
        "outputSchema": schema(sum={"type": "number"}),
    },
    {"name": "say", "description": "Says a text.", "inputSchema": schema(text=TEXT)},
    {"name": "env", "description": "The variables.", "inputSchema": schema()},
    {"name": "pid", "description": "The number of the server.", "inputSchema": schema()},
    {"name": "child", "description": "Starts a process.", "inputSchema": schema()},
    {"name": "picture", "description": "A picture.", "inputSchema": schema()},
    {"name": "fail", "description": "Fails.", "inputSchema": schema(text=TEXT)},
    {"name": "refuse", "description": "Is refused.", "inputSchema": schema()},
    {"name": "die", "description": "Ends the server.", "inputSchema": schema()},
    {"name": "never", "description": "Never answers.", "inputSchema": schema()},
    {"name": "counts", "description": "What has come so far.", "inputSchema": schema()},
    {"name": "huge", "description": "Answers too much.", "inputSchema": schema()},
    {"name": "raw", "description": "Answers with a text.", "inputSchema": schema(text=TEXT)},
    {"name": "large", "description": "Answers 5 MiB.", "inputSchema": schema()},
    {"name": "garbage", "description": "Writes no JSON first.", "inputSchema": schema()},
    {"name": "flood", "description": "Floods its caller first.", "inputSchema": schema()},
    {
        "name": "delete_all",
        "description": "Deletes everything.",
        "inputSchema": schema(),
        "annotations": {"destructiveHint": True},
    },
]


COUNTS = {"never": 0, "cancelled": 0}


def send(message: dict) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def text(text: str) -> dict:
    return {"content": [{"type": "text", "text": text}]}


def call(name: str, arguments: dict) -> dict | None:
    match name:
        case "add-numbers":
            return {
                **text("a sum"),
                "structuredContent": {"sum": arguments["a"] + arguments["b"]},
            }
        case "say" | "delete_all":
            return text(arguments.get("text", "all is gone"))
        case "env":
            return {"content": [], "structuredContent": dict(os.environ)}
        case "pid":
            return text(str(os.getpid()))
        case "child":
            process = subprocess.Popen(["sleep", "600"], stdout=sys.stderr)
            return text(str(process.pid))
        case "picture":
            image = {"type": "image", "data": "AAAA", "mimeType": "image/png"}
            return {"content": [{"type": "text", "text": "a picture"}, image]}
        case "fail":
            return {**text(arguments["text"]), "isError": True}
        case "die":
            os._exit(1)
        case "never":
            COUNTS["never"] += 1
        case "counts":
            return {"content": [], "structuredContent": dict(COUNTS)}
        case "huge":
            sys.stdout.write("x" * (17 << 20))
            sys.stdout.flush()
            return None
        case "large":
            return text("x" * (5 << 20))
        case "garbage":
            sys.stdout.write('Listening on port 3000\n{"jsonrpc":"2.0","id":\n[1]\n\n{"a":1}\n')
            return text("and yet")
        case "flood":
            for number in range(10_000):
                params = {"progressToken": "none", "progress": number}
                send({"method": "notifications/progress", "params": params})
                print("flood", number, file=sys.stderr)
            return text("done")
    return None


def listed(params: dict) -> dict:
    if MODE == "endless":
        number = int(params.get("cursor") or 0)
        tools = [{**TOOLS[1], "name": f"say{number}-{index}"} for index in range(100)]
        return {"tools": tools, "nextCursor": str(number + 1)}
    if MODE == "empty":
        return {"tools": [], "nextCursor": "more"}
    if MODE == "twice":
        return {"tools": [{**TOOLS[1], "name": name} for name in ("a-b", "a.b")]}
    if MODE == "same":
        return {"tools": [*TOOLS, TOOLS[0]]}
    if MODE == "odd":
        odd = [
            {**TOOLS[1], "name": "über uns"},
            {**TOOLS[1], "inputSchema": {"type": "object", "$ref": "x:y"}},
        ]
        return {"tools": odd}
    return {"tools": TOOLS}


def answer(method: str, params: dict) -> dict | None:
    match method:
        case "initialize":
            if MODE == "silent":
                return None
            return {
                "protocolVersion": params["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "a test", "version": "1"},
            }
        case "tools/list":
            return listed(params)
        case "tools/call":
            return call(params["name"], params.get("arguments") or {})
    return None


def main() -> None:
    if MODE == "exit":
        print("TOKEN is", os.environ.get("TOKEN"), file=sys.stderr)
        sys.exit(3)
    for line in sys.stdin:
        message = json.loads(line)
        if message.get("method") == "notifications/cancelled":
            COUNTS["cancelled"] += 1
        reply = respond(message)
        if reply is not None:
            send(reply)


def respond(message: dict) -> dict | None:
    method, params = message.get("method"), message.get("params") or {}
    if "id" not in message or method is None:
        return None
    if MODE == "refusing":
        error = {"code": -32000, "message": f"no license for {os.environ['TOKEN']}: {method}"}
        return {"id": message["id"], "error": error}
    if params.get("name") == "refuse":
        return {"id": message["id"], "error": {"code": -32602, "message": "not today"}}
    if params.get("name") == "raw":
        head = f'{{"jsonrpc":"2.0","id":{message["id"]},'
        print(head + params["arguments"]["text"] + "}", flush=True)
        return None
    result = answer(method, params)
    return None if result is None else {"id": message["id"], "result": result}


if __name__ == "__main__":
    main()
