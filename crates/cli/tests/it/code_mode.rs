//! `--config` and `--mcp`: tools of other servers as imports of the code.

use std::{fs, path::Path};

use serde_json::{Value as Json, json};
use tempfile::TempDir;

use crate::{host::Host, program::isolane};

/// The server of the tests, in a mode.
fn server(mode: &str) -> Json {
    let program = concat!(env!("CARGO_MANIFEST_DIR"), "/../remote-tools/tests/server.py");
    json!({ "command": "python3", "args": ["-u", program, mode], "env": { "TOKEN": "a-secret-token" } })
}

/// A folder with a configuration.
pub(crate) fn folder(config: &Json) -> (TempDir, String) {
    let folder = TempDir::new().expect("a folder");
    let file = folder.path().join("mcp.json");
    fs::write(&file, config.to_string()).expect("a file");
    let name = file.to_str().expect("UTF-8").to_owned();
    (folder, name)
}

pub(crate) fn good() -> Json {
    json!({ "mcpServers": { "test": server("good") } })
}

/// A host of `isolane mcp` with a configuration.
pub(crate) fn host(config: &Json) -> (TempDir, Host) {
    let (folder, file) = folder(config);
    (folder, Host::ready(&["--config", &file]))
}

/// The result of code.
pub(crate) fn value(host: &mut Host, code: &str) -> Json {
    let answer = host.call("run_code", &json!({ "code": code }));
    assert_eq!(answer["isError"], false, "{answer}");
    answer["structuredContent"]["result"].clone()
}

/// The name and the message of the error of code.
pub(crate) fn error(host: &mut Host, code: &str) -> (String, String) {
    let answer = host.call("run_code", &json!({ "code": code }));
    assert_eq!(answer["isError"], true, "{answer}");
    let error = &answer["structuredContent"]["error"];
    let text = |name: &str| error[name].as_str().expect("a text").to_owned();
    (text("name"), text("message"))
}

pub(crate) fn thrown(message: &str) -> (String, String) {
    ("Error".to_owned(), message.to_owned())
}

#[test]
fn tools_of_a_server_are_imports() {
    let (_folder, mut host) = host(&good());
    let listed = host.ask("tools/list", &json!({}));
    let names: Vec<&str> = listed["result"]["tools"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|tool| tool["name"].as_str())
        .collect();
    assert_eq!(names, ["run_code", "run_cell", "list_names", "reset_session", "describe_tools"]);
    let about = listed["result"]["tools"][0]["description"].as_str().expect("a text");
    let declared = "export function addNumbers(args: {\n    a: number;\n    b: number;\n  }): Promise<{\n    sum: number;\n";
    assert!(about.contains("declare module 'test' {") && about.contains(declared), "{about}");
    let sum = "import { addNumbers } from 'test'; return addNumbers({ a: 1, b: 2 })";
    assert_eq!(value(&mut host, sum), json!({ "sum": 3 }));
    let said = "import { say } from 'test'; return say({ text: '[1]' })";
    assert_eq!(value(&mut host, said), "[1]");
    let picture = "import { picture } from 'test'; return (await picture())[1]";
    let image = json!({ "type": "image", "data": "AAAA", "mimeType": "image/png" });
    assert_eq!(value(&mut host, picture), image);
    let many = "import { addNumbers } from 'test'; const sums = await Promise.all(Array.from({ length: 100 }, (_, a) => \
                addNumbers({ a, b: 1 }))); return sums.reduce((all, { sum }) => all + sum, 0)";
    assert_eq!(value(&mut host, many), 5050);
    assert_eq!(host.end(), Some(0));
}

#[test]
fn cells_of_sessions_have_them_too() {
    let (_folder, mut host) = host(&good());
    let mut cell = |code: &str| host.text("run_cell", &json!({ "session": "a", "code": code }));
    assert!(!cell("import { say } from 'test'; const a = await say({ text: 'x' })").1);
    assert_eq!(cell("await say({ text: a + 'y' })"), ("xy".to_owned(), false));
    // Each cell may call tools a thousand times.
    let thousand = "for (let i = 0; i < 1000; i++) await say({ text: 'x' }); 5";
    assert_eq!(cell(thousand), ("5".to_owned(), false));
    let (text, is_error) = cell("for (let i = 0; i < 1001; i++) await say({ text: 'x' })");
    let refused = "RangeError: test.say: an execution may call tools 1000 times";
    assert!(is_error && text.starts_with(refused), "{text}");
}

#[test]
fn failures_are_errors_inside() {
    let (_folder, mut host) = host(&good());
    let mut fails =
        |call: &str| error(&mut host, &format!("import * as test from 'test'; await test.{call}"));
    assert_eq!(fails("fail({ text: 'no such repo' })"), thrown("no such repo"));
    assert_eq!(fails("refuse()"), thrown("test.refuse: not today"));
    for text in [
        r#""result":{"content":[{"type":"text","text":"\ud800"}]}"#,
        r#""result":{"content":[]},"error":5"#,
    ] {
        let (name, message) = fails(&format!("raw({{ text: {} }})", Json::from(text)));
        let begin = "test.raw: the answer of the server cannot be read: ";
        assert!(name == "Error" && message.starts_with(begin), "{message}");
    }
    let wrong = "test.addNumbers: args.a must be number";
    assert_eq!(fails("addNumbers({ a: 'x', b: 1 })"), ("TypeError".to_owned(), wrong.to_owned()));
    let large = "test.large: the answer is larger than 4194304 bytes of JSON";
    assert_eq!(fails("large()"), ("RangeError".to_owned(), large.to_owned()));
    let huge = "test.huge: a message of the server is larger than 16777216 bytes";
    assert_eq!(fails("huge()"), thrown(huge));
    let (name, message) = error(&mut host, "import { nothing } from 'test'");
    assert_eq!(name, "SyntaxError");
    assert!(message.contains("addNumbers"), "{message}");
}

#[test]
fn a_server_that_ends_is_started_again() {
    let (_folder, mut host) = host(&good());
    let pid = "import { pid } from 'test'; return pid()";
    let first = value(&mut host, pid);
    assert_eq!(value(&mut host, pid), first);
    let died = error(&mut host, "import { die } from 'test'; await die()");
    assert_eq!(died, thrown("test.die: the server ended before it answered"));
    let second = value(&mut host, pid);
    assert_ne!(second, first);
    // One that says too much is killed, and started again as well.
    error(&mut host, "import { huge } from 'test'; await huge()");
    assert_ne!(value(&mut host, pid), second);
}

#[test]
fn noise_of_a_server_does_no_harm() {
    let (_folder, mut host) = host(&good());
    let garbage = "import { garbage } from 'test'; return garbage()";
    assert_eq!(value(&mut host, garbage), "and yet");
    assert_eq!(value(&mut host, "import { flood } from 'test'; return flood()"), "done");
}

/// Waits until the server has counted these.
fn wait_for(host: &mut Host, counts: &Json) {
    let code = "import { counts } from 'test'; return counts()";
    for _ in 0..600 {
        if value(host, code) == *counts {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    panic!("the server has not counted {counts}");
}

#[test]
fn a_call_that_is_never_answered_ends_with_its_run() {
    let (folder, mut host) = host(&good());
    let code = "import { never } from 'test'; await never()";
    let id = host.begin("run_code", &json!({ "code": code }));
    wait_for(&mut host, &json!({ "never": 1, "cancelled": 0 }));
    host.cancel(id);
    // The server is told.
    wait_for(&mut host, &json!({ "never": 1, "cancelled": 1 }));
    let timed_out = host.call("run_code", &json!({ "code": code, "timeoutMs": 100 }));
    assert_eq!(timed_out["structuredContent"]["error"]["name"], "Timeout", "{timed_out}");
    fs::write(folder.path().join("a.ts"), code).expect("a file");
    let arguments = ["run", "--mcp", "mcp.json", "--timeout", "100ms", "a.ts"];
    assert_eq!(isolane(folder.path(), &arguments).0, Some(124));
}

#[test]
fn all_that_a_server_has_started_ends_with_the_program() {
    let (_folder, mut host) = host(&good());
    let child = value(&mut host, "import { child } from 'test'; return child()");
    let path = format!("/proc/{}", child.as_str().expect("a number"));
    assert!(Path::new(&path).exists());
    assert_eq!(host.end(), Some(0));
    // It is killed, and may be waited for a moment later.
    for _ in 0..600 {
        if !fs::read_to_string(format!("{path}/stat")).is_ok_and(|stat| !stat.contains(") Z ")) {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    panic!("{path} is there still");
}

#[test]
fn a_server_gets_no_variable_of_ours_and_code_sees_none() {
    let (_folder, mut host) = host(&good());
    let env = value(&mut host, "import { env } from 'test'; return env()");
    assert_eq!(env["TOKEN"], "a-secret-token");
    // A variable that the test's own command has.
    assert_eq!(env.get("NO_COLOR"), None, "{env}");
    let inside = "typeof process + Object.keys(globalThis).length";
    assert_eq!(value(&mut host, inside), "undefined0");
}

#[test]
fn run_and_check_have_the_tools() {
    let (folder, file) = folder(&good());
    let source = "import { say } from 'test'; export default await say({ text: 'hello' });";
    fs::write(folder.path().join("a.ts"), source).expect("a file");
    let ran = isolane(folder.path(), &["run", "a.ts", "--mcp", &file]);
    assert_eq!(ran, (Some(0), "hello\n".to_owned(), String::new()));
    let checked = isolane(folder.path(), &["check", "a.ts", "--mcp", &file]);
    assert_eq!(checked, (Some(0), String::new(), String::new()));
    let (code, _, stderr) = isolane(folder.path(), &["check", "a.ts"]);
    assert!(code == Some(3) && stderr.contains("Cannot find module 'test'"), "{stderr}");
}

#[test]
fn a_configuration_may_begin_with_a_byte_order_mark() {
    let folder = TempDir::new().expect("a folder");
    fs::write(folder.path().join("mcp.json"), "\u{feff}{\"mcpServers\":{}}").expect("a file");
    fs::write(folder.path().join("code.ts"), "export default 6 * 7").expect("a file");
    let (code, stdout, stderr) = isolane(folder.path(), &["run", "--mcp", "mcp.json", "code.ts"]);
    assert_eq!((code, stdout.trim(), stderr.as_str()), (Some(0), "42", ""));
}

#[test]
fn misuse_names_the_path_before_anything_starts() {
    let misused = |config: Json| {
        let (folder, _file) = folder(&config);
        let (code, stdout, stderr) = isolane(folder.path(), &["mcp", "--config", "mcp.json"]);
        assert_eq!((code, stdout.as_str()), (Some(2), ""), "{stderr}");
        stderr.strip_prefix("error: mcp.json: ").expect(&stderr).trim_end().to_owned()
    };
    let server = |fields: Json| json!({ "mcpServers": { "a": server("good"), "github": fields } });
    assert_eq!(
        misused(server(json!({ "comand": "x" }))),
        "unknown option 'mcpServers.github.comand'; did you mean 'mcpServers.github.command'?"
    );
    assert_eq!(
        misused(server(json!({ "command": "x", "args": ["a", 5] }))),
        "mcpServers.github.args[1] must be a string, got a number"
    );
    assert_eq!(
        misused(server(json!({ "command": "x", "env": { "TOKEN": "${ISOLANE_NONE}" } }))),
        "mcpServers.github.env.TOKEN: the environment has no variable ISOLANE_NONE"
    );
    assert_eq!(misused(server(json!({}))), "mcpServers.github: needs a command or a url");
    assert_eq!(
        misused(
            json!({ "policy": { "github.x": "deny" }, "mcpServers": { "git": server(json!({}))["mcpServers"]["a"] } })
        ),
        "policy: there is no service 'github'; there are git"
    );
    assert_eq!(misused(json!([])), "the configuration must be an object, got an array");
}

#[test]
fn a_server_that_does_not_start_is_named_without_its_secrets() {
    let started = |config: Json| {
        let (folder, _file) = folder(&json!({ "mcpServers": { "test": config } }));
        let (code, _, stderr) = isolane(folder.path(), &["mcp", "--config", "mcp.json"]);
        (code, stderr)
    };
    let (code, stderr) = started(server("exit"));
    assert_eq!(code, Some(70), "{stderr}");
    let error = "error: mcpServers.test: the server ended before it was ready\n";
    assert!(stderr.contains(error) && stderr.contains("test: TOKEN is [hidden]\n"), "{stderr}");
    // It may end before it is written to, or afterwards.
    let (code, stderr) = started(json!({ "command": "false" }));
    assert_eq!((code, stderr.as_str()), (Some(70), error));
    let (code, stderr) = started(json!({ "command": "/nowhere/isolane-test" }));
    let missing = "error: mcpServers.test: the program cannot be started: No such file or directory (os error 2)\n";
    assert_eq!((code, stderr.as_str()), (Some(70), missing));
    let (code, stderr) = started(server("endless"));
    let many = "error: mcpServers.test: the server has more than 1000 tools\n";
    assert_eq!((code, stderr.as_str()), (Some(70), many));
    let (code, stderr) = started(server("empty"));
    let pages = "error: mcpServers.test: the server lists its tools on more than 1000 pages\n";
    assert_eq!((code, stderr.as_str()), (Some(70), pages));
    let (code, stderr) = started(server("twice"));
    let twice =
        "error: test.a-b and test.a.b would both be test.aB; the policy can deny one of them\n";
    assert_eq!((code, stderr.as_str()), (Some(2), twice));
    let (code, stderr) = started(server("refusing"));
    let refused = "the server refused to start: no license for [hidden]: ";
    let refused = format!(
        "error: mcpServers.test: {refused}initialize; in its newest revision: {refused}server/discover\n"
    );
    assert_eq!((code, stderr), (Some(70), refused));
}

#[test]
fn a_tool_that_is_listed_twice_is_there_once() {
    let (folder, _file) = folder(&json!({ "mcpServers": { "test": server("same") } }));
    let code = "import { addNumbers } from 'test'; export default addNumbers({ a: 1, b: 2 })";
    fs::write(folder.path().join("a.js"), code).expect("a file");
    let (code, stdout, stderr) = isolane(folder.path(), &["run", "a.js", "--mcp", "mcp.json"]);
    assert_eq!((code, stdout.as_str()), (Some(0), "{ sum: 3 }\n"), "{stderr}");
    assert_eq!(stderr, "test: a second tool add-numbers is left out\n");
}
