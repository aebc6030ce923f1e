//! `isolane mcp`, as the host of a model uses it.

use rustix::process::Signal;
use serde_json::{Value as Json, json};

use crate::host::{Host, initialize};

/// Code that says when it computes, and computes for ever.
const ENDLESS: &str = "report('begun'); for (;;);";

#[test]
fn a_host_learns_of_tools_and_their_schemas() {
    let mut host = Host::start(&[]);
    let answer = host.ask("initialize", &initialize("2024-11-05"));
    assert_eq!(answer["result"]["protocolVersion"], "2024-11-05");
    assert_eq!(answer["result"]["serverInfo"]["name"], "isolane");
    let listed = host.ask("tools/list", &json!({}));
    let tools = listed["result"]["tools"].as_array().expect("a list");
    let names: Vec<&Json> = tools.iter().map(|tool| &tool["name"]).collect();
    assert_eq!(names, ["run_code", "run_cell", "list_names", "reset_session"]);
    for tool in tools {
        for schema in ["inputSchema", "outputSchema"] {
            assert_eq!(tool[schema]["type"], "object", "{tool}");
        }
        assert!(tool["description"].as_str().is_some_and(|text| text.len() > 50), "{tool}");
    }
    assert_eq!(tools[1]["inputSchema"]["required"], json!(["session", "code"]));
    assert_eq!(tools[0]["inputSchema"]["properties"]["timeoutMs"]["default"], 30_000);
    assert_eq!(host.end(), Some(0));
}

#[test]
fn the_newest_revision_needs_no_handshake() {
    let mut host = Host::start(&[]);
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "a test", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let arguments = json!({ "code": "6 * 7" });
    let params = json!({ "name": "run_code", "arguments": arguments, "_meta": meta });
    let answer = host.ask("tools/call", &params);
    assert_eq!(answer["result"]["structuredContent"]["result"], 42, "{answer}");
    assert_eq!(host.end(), Some(0));
}

#[test]
fn an_answer_is_text_and_the_json_of_run() {
    let mut host = Host::ready(&["--global", "limits={\"rows\":3}"]);
    let code = "console.log('%d rows', limits.rows); console.warn([1]); export default { n: 12n }";
    let result = host.call("run_code", &json!({ "code": code }));
    let text = "3 rows\n[ 1 ]\n{ n: 12n }";
    assert_eq!(result["content"], json!([{ "type": "text", "text": text }]));
    assert_eq!(result["isError"], false);
    let run = &result["structuredContent"];
    assert_eq!(run["status"], "success");
    assert_eq!(run["result"], json!({ "n": { "$bigint": "12" } }));
    assert_eq!(run["logs"][1]["level"], "warn");
    assert_eq!(run["logs"][0]["args"], json!(["%d rows", 3]));
    assert_eq!(run["reports"], json!([]));
    assert!(run["durationMs"].is_number() && run["memoryUsedBytes"].is_number(), "{run}");
    assert_eq!(run.get("session"), None);
    assert_eq!(host.text("run_code", &json!({ "code": "let a = 1" })), ("undefined".into(), false));
}

#[test]
fn code_that_fails_is_an_error_with_its_place() {
    let mut host = Host::ready(&["--memory", "8m"]);
    let mut fails = |code: &str, status: &str, begins: &str| {
        let result = host.call("run_code", &json!({ "code": code }));
        assert_eq!(result["isError"], true, "{result}");
        assert_eq!(result["structuredContent"]["status"], status, "{result}");
        let text = result["content"][0]["text"].as_str().expect("a text").to_owned();
        assert!(text.starts_with(begins), "{text}");
    };
    fails("console.log(1);\nnull.x", "error", "1\nTypeError: ");
    fails("const a: number = ;", "link_error", "SyntaxError: ");
    fails("import 'fs'", "link_error", "ReferenceError: Cannot find module 'fs'");
    fails("const a = []; for (;;) a.push(new Array(1e4))", "memory", "MemoryLimit: ");
    let types = json!({ "code": "let a: number = 1", "language": "javascript" });
    assert!(host.text("run_code", &types).1);
    let timeout = json!({ "code": "for (;;);", "timeoutMs": 1 });
    let result = host.call("run_code", &timeout);
    assert_eq!(result["structuredContent"]["error"]["name"], "Timeout", "{result}");
}

#[test]
fn a_session_keeps_what_its_cells_declare() {
    let mut host = Host::ready(&[]);
    let mut cell = |session: &str, code: &str| {
        let result = host.call("run_cell", &json!({ "session": session, "code": code }));
        (result["content"][0]["text"].clone(), result["structuredContent"]["session"].clone())
    };
    assert_eq!(cell("a", "const rows = [1, 2, 3]; rows.length"), (json!("3"), json!("kept")));
    assert_eq!(cell("a", "rows.map((row) => row * 2)"), (json!("[ 2, 4, 6 ]"), json!("kept")));
    assert_eq!(cell("a", "class A {}; new Set([1])"), (json!("Set(1) { 1 }"), json!("kept")));
    let (text, state) = cell("b", "rows");
    assert!(text.as_str().is_some_and(|text| text.starts_with("ReferenceError: ")), "{text}");
    assert_eq!(state, "kept");
    let names = host.call("list_names", &json!({ "session": "a" }));
    assert_eq!(names["content"][0]["text"], "const rows: Array (3)\nclass A: function\n");
    let rows = json!({ "name": "rows", "kind": "const", "type": "Array", "size": 3 });
    assert_eq!(names["structuredContent"]["names"][0], rows);
    let reset = host.text("reset_session", &json!({ "session": "a" }));
    assert_eq!(reset, ("the session 'a' was reset".to_owned(), false));
    let gone = "there is no session 'a'; sessions: 'b'";
    assert_eq!(host.text("list_names", &json!({ "session": "a" })), (gone.to_owned(), true));
    assert_eq!(host.text("reset_session", &json!({ "session": "a" })), (gone.to_owned(), true));
}

#[test]
fn a_canceled_cell_ends_and_is_undone() {
    let mut host = Host::ready(&[]);
    host.call("run_cell", &json!({ "session": "a", "code": "let n = 1" }));
    let id =
        host.begin("run_cell", &json!({ "session": "a", "code": format!("n = 2; {ENDLESS}") }));
    let progress = json!({ "progressToken": id, "progress": 1.0, "message": "begun" });
    assert_eq!(host.note()["params"], progress);
    host.cancel(id);
    let text = host.text("run_cell", &json!({ "session": "a", "code": "n" }));
    assert_eq!(text, ("1".to_owned(), false));
    assert!(!host.has_answer(id));
    assert_eq!(host.end(), Some(0));
}

#[test]
fn a_call_is_answered_while_another_one_computes() {
    let mut host = Host::ready(&[]);
    let id = host.begin("run_code", &json!({ "code": ENDLESS }));
    host.note();
    assert_eq!(host.text("run_code", &json!({ "code": "1 + 1" })), ("2".to_owned(), false));
    assert!(!host.has_answer(id));
    host.cancel(id);
    assert_eq!(host.end(), Some(0));
}

#[test]
fn a_reset_ends_the_cells_of_the_session() {
    let mut host = Host::ready(&[]);
    let id = host.begin("run_cell", &json!({ "session": "a", "code": ENDLESS }));
    host.note();
    host.call("reset_session", &json!({ "session": "a" }));
    let result = &host.answer(id)["result"];
    assert_eq!(result["structuredContent"]["status"], "terminated", "{result}");
    assert_eq!(result["isError"], true);
    assert_eq!(result["structuredContent"]["session"], "reset", "{result}");
    let text = result["content"][0]["text"].as_str().expect("a text");
    assert!(text.ends_with("\nThe session was reset: its names are gone."), "{text}");
}

#[test]
fn reports_are_progress_and_in_the_answer() {
    let mut host = Host::ready(&[]);
    let code = "for (let i = 0; i < 1500; i++) report({ i }); 'done'";
    let id = host.begin("run_code", &json!({ "code": code }));
    let result = host.answer(id)["result"].clone();
    let notes = host.notes();
    assert_eq!(notes.len(), 1000);
    let last = json!({ "progressToken": id, "progress": 1000.0, "message": "{ i: 999 }" });
    assert_eq!(notes[999]["params"], last);
    let run = &result["structuredContent"];
    assert_eq!(run["reports"].as_array().map(Vec::len), Some(1500));
    // Without a token there is no progress.
    host.call("run_code", &json!({ "code": code }));
    assert_eq!(host.notes(), Vec::<Json>::new());
}

#[test]
fn a_large_answer_is_cut() {
    let mut host = Host::ready(&[]);
    let code = "console.log('a'.repeat(1e6)); console.log(1); new Array(1e6).fill('value')";
    let result = host.call("run_code", &json!({ "code": code }));
    let text = result["content"][0]["text"].as_str().expect("a text");
    assert!(text.len() < 40_000 && text.contains(" bytes are left out …\n"), "{}", text.len());
    let run = &result["structuredContent"];
    assert_eq!(run["leftOut"], json!({ "result": 1, "logs": 1 }));
    assert_eq!((run.get("result"), run["logs"][0]["args"].clone()), (None, json!([1])));
    assert!(run["text"].as_str().is_some_and(|text| text.contains("'value'")), "{run}");
    let nested = "let a: any = 1; for (let i = 0; i < 1000; i++) a = [a]; a";
    let run = host.call("run_code", &json!({ "code": nested }))["structuredContent"].clone();
    assert_eq!((&run["status"], &run["leftOut"]), (&json!("success"), &json!({ "result": 1 })));
}

#[test]
fn misuse_names_the_field() {
    let mut host = Host::ready(&[]);
    let long = "n".repeat(101);
    for (tool, arguments, text) in [
        ("run_code", json!({}), "code must be a string, got nothing"),
        ("run_code", json!({ "code": 5 }), "code must be a string, got 5"),
        (
            "run_code",
            json!({ "code": "", "timeoutMs": 0.5 }),
            "timeoutMs must be a whole number from 1 to 3600000, got 0.5",
        ),
        (
            "run_code",
            json!({ "code": "", "language": "python" }),
            "language must be 'typescript' or 'javascript', got 'python'",
        ),
        (
            "run_code",
            json!({ "code": "", "timeout": 5 }),
            "unknown option 'timeout'; did you mean 'timeoutMs'?",
        ),
        ("run_cell", json!({ "code": "" }), "session must be a string, got nothing"),
        (
            "run_cell",
            json!({ "session": long, "code": "" }),
            "session must have from 1 to 100 bytes, and no control characters",
        ),
        ("list_names", json!({ "session": ["a"] }), "session must be a string, got an array"),
    ] {
        assert_eq!(host.text(tool, &arguments), (text.to_owned(), true));
    }
    let answer = host.ask("tools/call", &json!({ "name": "run_shell", "arguments": {} }));
    let message =
        "there is no tool 'run_shell'; tools are run_code, run_cell, list_names, reset_session";
    assert_eq!(answer["error"], json!({ "code": -32602, "message": message }));
}

#[test]
fn messages_that_are_none_harm_nobody() {
    let mut host = Host::ready(&[]);
    for line in [
        "{ \"jsonrpc\": ",
        "[1, 2]",
        "",
        "5",
        "{}",
        "{ \"jsonrpc\": \"2.0\", \"id\": 900, \"method\": \"tools/call\", \"params\": 5 }",
        "{ \"jsonrpc\": \"2.0\", \"id\": null, \"method\": \"ping\" }",
        "{ \"jsonrpc\": \"2.0\", \"method\": \"notifications/cancelled\", \"params\": { \"requestId\": 700 } }",
        &"[".repeat(100_000),
        &format!(
            "{{ \"jsonrpc\": \"2.0\", \"id\": 901, \"method\": \"{}\" }}",
            "m".repeat(100_000)
        ),
        "\u{0}\u{feff}",
    ] {
        host.send(line);
    }
    assert_eq!(host.text("run_code", &json!({ "code": "1 + 1" })), ("2".to_owned(), false));
    assert_eq!(host.end(), Some(0));
}

#[test]
fn the_end_of_the_input_ends_all_calls() {
    let mut host = Host::ready(&[]);
    host.begin("run_code", &json!({ "code": ENDLESS }));
    host.begin("run_cell", &json!({ "session": "a", "code": ENDLESS }));
    host.note();
    host.note();
    assert_eq!(host.end(), Some(0));
}

#[test]
fn a_server_without_a_first_message_ends_with_its_input() {
    assert_eq!(Host::start(&[]).end(), Some(0));
}

#[test]
fn a_signal_ends_the_server_and_its_calls() {
    for (signal, code) in [(Signal::TERM, 143), (Signal::INT, 130)] {
        let mut host = Host::ready(&[]);
        host.begin("run_code", &json!({ "code": ENDLESS }));
        host.note();
        host.signal(signal);
        assert_eq!(host.ended(), Some(code));
    }
}

#[test]
fn control_characters_and_names_are_bounded_as_json() {
    const MOST: usize = 600_000;
    let mut host = Host::ready(&[]);
    let code = "console.log('\\u0001'.repeat(2e5)); throw new Error('\\u0001'.repeat(1e6))";
    let length = host.call("run_code", &json!({ "code": code })).to_string().len();
    assert!(length < MOST, "{length}");
    let value = json!({ "code": "'\\u0001'.repeat(2e5)" });
    let result = host.call("run_code", &value);
    assert_eq!(result["structuredContent"]["leftOut"], json!({ "result": 1 }));
    assert!(result.to_string().len() < MOST);
    let declared = (0..2000)
        .map(|at| format!("let {}{at} = 1;", "n".repeat(1000)))
        .collect::<Vec<_>>()
        .concat();
    let cell = json!({ "session": "a", "code": declared });
    assert_eq!(host.text("run_cell", &cell), ("undefined".to_owned(), false));
    let listed = host.call("list_names", &json!({ "session": "a" }));
    let length = listed.to_string().len();
    assert!(length < MOST, "{length}");
    let names = &listed["structuredContent"];
    let kept = names["names"].as_array().expect("a list").len() as u64;
    assert_eq!(names["leftOut"]["names"].as_u64().map(|left| left + kept), Some(2000));
}

#[test]
fn a_line_that_is_too_long_is_answered() {
    let mut host = Host::ready(&[]);
    let code = " ".repeat(17 << 20);
    let params = json!({ "name": "run_code", "arguments": { "code": code } });
    let answer = host.ask("tools/call", &params);
    let error = json!({ "code": -32600, "message": "a message must have at most 16777216 bytes" });
    assert_eq!(answer["error"], error);
    assert_eq!(host.text("run_code", &json!({ "code": "1 + 1" })), ("2".to_owned(), false));
}

#[test]
fn a_server_whose_output_nobody_reads_ends() {
    let mut host = Host::ready(&[]);
    host.begin("run_code", &json!({ "code": ENDLESS }));
    host.note();
    assert_eq!(host.unread(), Some(141));
}
