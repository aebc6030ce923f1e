//! `isolane serve`: its address, its token, its end.

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    path::Path,
    process::{Child, Command, Stdio},
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value as Json, json};
use tempfile::TempDir;

use crate::program::{command, isolane};

const TOKEN: &str = "a-token-of-24-characters";

/// A server whose code runs on threads, and its address.
fn start(flags: &[&str], token: Option<&str>) -> (Child, String) {
    let mut command = command(&["serve", "--port", "0", "--isolation", "thread"]);
    command.args(["--database", "none"]).args(flags);
    begin(command, token)
}

/// A server whose processes are in the database of a user with that state folder.
fn start_with_state(state: &Path) -> (Child, String) {
    let mut command = command(&["serve", "--port", "0", "--isolation", "thread"]);
    command.env("XDG_STATE_HOME", state);
    begin(command, None)
}

fn begin(mut command: Command, token: Option<&str>) -> (Child, String) {
    command.stdout(Stdio::piped());
    match token {
        Some(token) => command.env("ISOLANE_TOKEN", token),
        None => command.env_remove("ISOLANE_TOKEN"),
    };
    let mut child = command.spawn().expect("it starts");
    let mut line = String::new();
    let stdout = child.stdout.as_mut().expect("piped");
    BufReader::new(stdout).read_line(&mut line).expect("a line");
    let address = line.trim_end().strip_prefix("http://").expect("a url").to_owned();
    (child, address)
}

/// Sends a request; gives the status and the body.
fn ask(address: &str, head: &str, body: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).expect("it listens");
    let length = body.len();
    let request = format!(
        "{head}\r\nhost: {address}\r\nconnection: close\r\ncontent-type: application/json\r\n\
         content-length: {length}\r\n\r\n{body}"
    );
    let (path, _) = request.split_once("\r\n").expect("lines");
    assert!(path.contains(" /"), "{path}");
    stream.write_all(request.as_bytes()).expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("UTF-8");
    let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
    let (_, body) = answer.split_once("\r\n\r\n").expect("a body");
    (status, body.to_owned())
}

fn post(address: &str, headers: &str, code: &str) -> (u16, Json) {
    let body = json!({ "code": code }).to_string();
    let head = format!("POST /processes?wait=60000 HTTP/1.1{headers}");
    let (status, body) = ask(address, &head, &body);
    (status, serde_json::from_str(&body).expect("JSON"))
}

fn stop(mut child: Child, signal: Signal) -> Option<i32> {
    kill_process(Pid::from_child(&child), signal).expect("it runs");
    child.wait().expect("it ends").code()
}

#[test]
fn a_client_has_code_run_with_what_the_flags_hand_over() {
    let (child, address) = start(&["--global", "tax=0.5", "--memory", "8m"], None);
    let (status, record) = post(&address, "", "console.log('hi'); return 1 + tax");
    assert_eq!((status, &record["exitState"]), (201, &json!("success")), "{record}");
    assert_eq!(record["output"], json!({ "result": 1.5 }));
    let (_, record) = post(&address, "", "const a = []; for (;;) a.push(new Array(1e4))");
    assert_eq!(record["exitState"], "failed", "{record}");
    assert_eq!(stop(child, Signal::TERM), Some(143));
}

#[test]
fn a_signal_ends_what_runs() {
    let (child, address) = start(&[], None);
    let body = json!({ "code": "console.log('begun'); for (;;);" }).to_string();
    let (status, _) = ask(&address, "POST /processes HTTP/1.1", &body);
    assert_eq!(status, 201);
    assert_eq!(stop(child, Signal::INT), Some(130));
}

#[test]
fn a_token_is_asked_for() {
    let folder = TempDir::new().expect("a folder");
    let file = folder.path().join("token");
    fs::write(&file, format!("{TOKEN}\n")).expect("a file");
    let flag = ["--token-file", file.to_str().expect("UTF-8")];
    for (child, address) in
        [start(&flag, Some("another-token-of-26-characters")), start(&[], Some(TOKEN))]
    {
        assert_eq!(post(&address, "", "1").0, 401);
        let header = format!("\r\nauthorization: Bearer {TOKEN}");
        assert_eq!(post(&address, &header, "1").0, 201);
        assert_eq!(stop(child, Signal::TERM), Some(143));
    }
}

#[test]
fn processes_outlive_the_program_in_the_users_state_folder() {
    let state = TempDir::new().expect("a folder");
    let file = state.path().join("isolane").join("processes.db");
    let (child, address) = start_with_state(state.path());
    let (status, record) = post(&address, "", "console.log('kept'); return 7");
    assert_eq!((status, &record["pid"]), (201, &json!(1)), "{record}");
    // The file is this service's.
    let mut second = command(&["serve", "--port", "0", "--isolation", "thread"]);
    let second = second.env("XDG_STATE_HOME", state.path()).output().expect("it starts");
    let message = format!(
        "isolane: database '{}' is in use by another service: stop that one, or name another file",
        file.display()
    );
    let stderr = String::from_utf8_lossy(&second.stderr);
    assert_eq!((second.status.code(), second.stdout.len()), (Some(70), 0), "{stderr}");
    assert!(stderr.contains(message.trim_start_matches("isolane: ")), "{stderr}");
    // The second one is saved when it is answered, and so is all that ended before.
    assert_eq!(post(&address, "", "2").1["pid"], 2);
    // A kill that nobody can catch.
    assert_eq!(stop(child, Signal::KILL), None);

    let (child, address) = start_with_state(state.path());
    let (_, kept) = ask(&address, "GET /processes/1 HTTP/1.1", "");
    assert_eq!(serde_json::from_str::<Json>(&kept).expect("JSON"), record);
    let (_, list) = ask(&address, "GET /processes HTTP/1.1", "");
    assert!(list.contains(r#""pid":1"#), "{list}");
    let (_, events) = ask(&address, "GET /processes/1/events HTTP/1.1\r\nlast-event-id: 2", "");
    assert!(events.contains("id: 3\nevent: stdout\n"), "{events}");
    assert_eq!(post(&address, "", "1").1["pid"], 3);
    assert_eq!(stop(child, Signal::TERM), Some(143));
    assert!(!file.with_extension("db-wal").exists(), "a regular end leaves one file");
}

#[test]
fn a_state_folder_that_cannot_be_made_is_named_with_the_flag_that_replaces_it() {
    let place = TempDir::new().expect("a folder");
    let home = place.path().join("home");
    fs::write(&home, "no folder").expect("a file");
    let mut command = command(&["serve", "--port", "0", "--isolation", "thread"]);
    let refused = command.env_remove("XDG_STATE_HOME").env("HOME", &home).output();
    let refused = refused.expect("it starts");
    let stderr = String::from_utf8_lossy(&refused.stderr);
    let tried = home.join(".local").join("state").join("isolane");
    let begin =
        format!("error: there is no folder for the database: cannot make {}: ", tried.display());
    assert!(stderr.starts_with(&begin), "{stderr}");
    assert!(stderr.ends_with("; name a file with --database, or --database none\n"), "{stderr}");
    assert_eq!((refused.status.code(), refused.stdout.len()), (Some(2), 0), "{stderr}");
}

#[test]
fn a_file_has_options_which_flags_replace() {
    let folder = TempDir::new().expect("a folder");
    let [file, database] = ["serve.json", "kept.db"].map(|name| folder.path().join(name));
    let config = json!({
        "database": database, "maxTimeoutMs": 5000, "maxQueued": 7, "isolation": "thread",
        "memoryLimitBytes": 8 << 20, "rateLimit": null, "port": 1,
    });
    fs::write(&file, config.to_string()).expect("a file");
    let mut command = command(&["serve", "--port", "0", "--max-timeout", "6s", "--config"]);
    command.arg(&file);
    let (child, address) = begin(command, None);
    let (status, record) = post(&address, "", "const a = []; for (;;) a.push(new Array(1e4))");
    assert_eq!((status, &record["exitState"]), (201, &json!("failed")), "{record}");
    let late = json!({ "code": "1", "timeoutMs": 6001 }).to_string();
    let (status, body) = ask(&address, "POST /processes HTTP/1.1", &late);
    assert!(status == 400 && body.contains("6000"), "{body}");
    assert!(database.exists());
    assert_eq!(stop(child, Signal::TERM), Some(143));
}

#[test]
fn a_file_hands_over_values_and_sources() {
    let folder = TempDir::new().expect("a folder");
    fs::write(folder.path().join("two.json"), r#"{ "n": 20 }"#).expect("a file");
    let config = json!({
        "database": null, "isolation": "thread", "killGraceMs": 0,
        "globals": { "a": 1, "b": [2] },
        "imports": { "one": { "n": 10 }, "two": { "n": 0 } },
        "modules": { "./twice.ts": "export const twice = (n: number) => 2 * n" },
    });
    fs::write(folder.path().join("serve.json"), config.to_string()).expect("a file");
    let mut command = command(&["serve", "--port", "0", "--config", "serve.json"]);
    command.args(["--global", "a=100", "--import", "two=two.json", "--max-stream", "0"]);
    command.current_dir(folder.path());
    let (child, address) = begin(command, None);
    let code = "import * as one from 'one'; import { n } from 'two'; import { twice } from './twice.ts'; \
                console.log('kept nowhere'); return [a, b, one.n, n, twice(3)]";
    let (_, record) = post(&address, "", code);
    assert_eq!(stop(child, Signal::TERM), Some(143));
    assert_eq!(record["output"]["result"], json!([100, [2], 10, 20, 6]), "{record}");
    assert_eq!(record["stdout"], json!({ "bytes": 0, "truncated": true }), "{record}");
}

#[test]
fn mistakes_in_a_file_are_named() {
    let folder = TempDir::new().expect("a folder");
    for (config, message) in [
        ("[]", "the configuration must be an object"),
        (r#"{ "concurency": 1 }"#, "unknown option 'concurency'; did you mean 'concurrency'?"),
        (r#"{ "concurrency": "1" }"#, "concurrency must be a whole number, got a string"),
        (r#"{ "port": 70000 }"#, "port must be a whole number from 0 to 65535, got 70000"),
        (
            r#"{ "database": "none" }"#,
            "database must be a path, or null to keep processes in memory",
        ),
        (r#"{ "isolation": "vm" }"#, "isolation must be 'thread' or 'process'"),
        (r#"{ "memoryLimitBytes": "8m" }"#, "memoryLimitBytes must be a whole number"),
        (r#"{ "memoryLimitBytes": 0 }"#, "memoryLimitBytes must be at least 1, got 0"),
        (r#"{ "globals": [] }"#, "globals must be an object, got an array"),
        (r#"{ "imports": { "shop": 5 } }"#, "imports.shop must be an object, got a number"),
        (
            r#"{ "modules": { "./a.ts": {} } }"#,
            "modules[\"./a.ts\"] must be a string, got an object",
        ),
        (
            r#"{ "port": 1, "port": 2 }"#,
            "no JSON: an object has the field 'port' twice at line 1 column 24",
        ),
        (r#"{ "mcpServers": { "a": {} } }"#, "mcpServers.a: needs a command or a url"),
    ] {
        fs::write(folder.path().join("serve.json"), config).expect("a file");
        let run = isolane(folder.path(), &["serve", "--config", "serve.json"]);
        assert_eq!(run, (Some(2), String::new(), format!("error: serve.json: {message}\n")));
    }
}

#[test]
fn misuse_has_its_exit_code() {
    let folder = TempDir::new().expect("a folder");
    fs::write(folder.path().join("short"), "short").expect("a file");
    for (flags, message) in [
        (
            &["--host", "0.0.0.0"][..],
            "error: without a token, host must be a loopback address, got '0.0.0.0'\n",
        ),
        (&["--host", ""], "error: host must not be empty\n"),
        (&["--token-file", "short"], "error: token must have at least 16 characters, got 5\n"),
        (
            &["--concurrency", "0"],
            "error: concurrency must be a whole number from 1 to 1000000, got 0\n",
        ),
        (
            &["--global", "output=1"],
            "error: globals.output is the environment's: choose another name\n",
        ),
        (
            &["--database", "none/x.db"],
            "error: database 'none/x.db': the folder 'none' does not exist: make it, or name another file\n",
        ),
        (
            &["--rate", "0"],
            "error: rate_limit.per_second must be more than 0 and at most 1000000, got 0\n",
        ),
    ] {
        let database: &[&str] =
            if flags.contains(&"--database") { &[] } else { &["--database", "none"] };
        let arguments =
            [&["serve", "--port", "0", "--isolation", "thread"], database, flags].concat();
        let (exit, stdout, stderr) = isolane(folder.path(), &arguments);
        assert_eq!((exit, stdout.as_str(), stderr.as_str()), (Some(2), "", message));
    }
    let (exit, _, stderr) = isolane(folder.path(), &["serve", "--rate", "5", "--no-rate-limit"]);
    assert_eq!(exit, Some(2), "{stderr}");
}
