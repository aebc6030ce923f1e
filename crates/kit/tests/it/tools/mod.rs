//! The tables of tools. Built as a test of `isolane-worker` it runs them in processes.

mod server;
mod table;

use std::{fs, sync::LazyLock, time::Duration};

use isolane::{ErrorKind, Input, Inputs, Language, Runtime, Spelling, Value};
use isolane_kit::{Kit, KitOptions, KitResult, ToolOptions, kit::LibrarySource};
use serde_json::{Map, Value as Json, json};

use self::{
    server::Server,
    table::{Case, Expected, cases},
};

use crate::place;

static RUNTIME: LazyLock<Runtime> =
    LazyLock::new(|| Runtime::new(&place::options()).expect("valid options"));

#[test]
fn every_case_of_the_tables() {
    let server = Server::start();
    let tables = [
        include_str!("../../cases/tools.md"),
        include_str!("../../cases/exfiltration.md"),
        include_str!("../../cases/fetch.md"),
    ];
    let cases: Vec<_> = tables.iter().flat_map(|table| cases(&server.filled(table))).collect();
    assert!(cases.len() >= 260, "{} cases", cases.len());
    let chosen = std::env::var("CASE").unwrap_or_default();
    let mut failures = Vec::new();
    for case in cases.iter().filter(|case| case.heading.contains(&chosen)) {
        if let Err(failure) = check(case, &server) {
            failures.push(format!("## {}\n{failure}", case.heading));
        }
    }
    assert!(failures.is_empty(), "{} of {}:\n{}", failures.len(), cases.len(), failures.join("\n"));
}

/// The lines of a table of groups, each with its heading.
fn lines(table: &str) -> Vec<(&str, Vec<Vec<Json>>)> {
    let groups = table.split("\n## ").skip(1).map(|group| {
        let heading = group.lines().next().unwrap_or_default();
        let fence = group.split("```").nth(1).expect(heading);
        let (_, content) = fence.split_once('\n').expect(heading);
        (heading, serde_json::from_str(content).expect(heading))
    });
    groups.collect()
}

fn opened(options: &Json) -> Result<Kit, isolane::Error> {
    let message = Value::serialize(options).expect("a message");
    KitOptions::read(&message, None, Spelling::Camel).and_then(Kit::new)
}

#[test]
fn every_refusal_of_the_table() {
    let folder = std::env::temp_dir().join(format!("isolane-misuse-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder");
    let text = "no database, but a text that is as long as a page\n".repeat(100);
    fs::write(folder.join("text.db"), text).expect("a file");
    let place = folder.to_str().expect("a text");
    let table = include_str!("../../cases/misuse.md").replace("{folder}", place);
    let groups = lines(&table);
    assert!(groups.len() >= 8, "{} groups", groups.len());
    for (heading, group) in groups {
        for line in group {
            let [options, kind, message] = line.as_slice() else { panic!("{heading}") };
            let refused = opened(options).map(drop).expect_err(heading);
            let seen = match refused.kind() {
                ErrorKind::Type => "TypeError",
                ErrorKind::Range => "RangeError",
                _ => "Error",
            };
            assert_eq!((&json!(seen), &json!(refused.message())), (kind, message), "{options}");
        }
    }
    assert_eq!(fs::read_dir(&folder).expect("the folder").count(), 1);
    fs::remove_dir_all(&folder).expect("the folder");
}

#[test]
fn every_call_of_the_table() {
    let groups = lines(include_str!("../../cases/calls.md"));
    assert!(groups.len() >= 4, "{} groups", groups.len());
    for (heading, group) in groups {
        let kit = opened(&json!({ "state": true, "db": true, "libraries": true })).expect(heading);
        for line in group {
            let (name, args) = (line[0].as_str().expect(heading), &line[1]);
            let args = Value::serialize(args).expect(heading);
            let (sender, answer) = std::sync::mpsc::channel();
            kit.call(name, args, move |done| drop(sender.send(done))).expect(heading);
            let seen = match answer.recv_timeout(Duration::from_mins(2)).expect(heading) {
                Ok(value) => vec![without_floats(&value.deserialize().unwrap_or(Json::Null))],
                Err(error) => vec![json!(error.name), json!(error.message)],
            };
            let expected: Vec<Json> = line[2..].iter().map(without_floats).collect();
            assert_eq!(seen, expected, "{heading}: {}", json!(line));
        }
    }
}

/// The values of the secrets that all cases have.
const SECRETS: [&str; 2] = ["correct horse battery", "plain secret value"];

fn check(case: &Case, server: &Server) -> Result<(), String> {
    let kit = kit(&case.kit, server)?;
    for (name, source, language) in &case.libraries {
        let library =
            LibrarySource { source: source.clone(), language: *language, ..Default::default() };
        let libraries = kit.libraries().map_err(|error| error.to_string())?;
        futures::executor::block_on(libraries.create(name, library))
            .map_err(|error| error.to_string())?;
    }
    let done = kit.run_tool(case.source.clone(), options(&case.options, case.language)).wait();
    match (&case.expected, done) {
        (Expected::Misuse(message), Err(error)) => same("misuse", message, &json!(error.message())),
        (Expected::Misuse(_), Ok(result)) => Err(format!("no misuse: {result:?}")),
        (Expected::Result(_), Err(error)) => Err(format!("misuse: {error}")),
        (Expected::Result(expected), Ok(result)) => {
            let seen = seen(&result);
            let shown = format!("{seen} {:?}", result.error);
            if SECRETS.iter().any(|secret| shown.contains(secret)) {
                return Err(format!("a secret leaves: {shown}"));
            }
            let status = ("status".to_owned(), json!("success"));
            let all: Map<String, Json> = std::iter::once(status).chain(expected.clone()).collect();
            all.iter().try_for_each(|(key, expected)| {
                same(key, expected, &seen[key]).map_err(|why| format!("{why}\n  of {seen}"))
            })
        }
    }
}

fn kit(changes: &Map<String, Json>, server: &Server) -> Result<Kit, String> {
    let usual = json!({
        "state": true, "libraries": true, "db": true,
        "fetch": { "allow": [server.origin], "allowAddresses": ["127.0.0.1"] },
        "secrets": {
            "KEY": { "value": "correct horse battery", "hosts": [server.origin] },
            "PLAIN": { "value": "plain secret value", "reveal": true },
        },
    });
    let Json::Object(mut options) = usual else { return Err("no options".to_owned()) };
    options.extend(changes.clone());
    options.retain(|_, option| !option.is_null());
    let message = Value::serialize(&options).map_err(|error| error.to_string())?;
    let options = KitOptions::read(&message, None, Spelling::Camel);
    let options = options.map(|read| KitOptions { runtime: Some(RUNTIME.clone()), ..read });
    options.and_then(Kit::new).map_err(|error| error.to_string())
}

fn options(given: &Map<String, Json>, language: Language) -> ToolOptions {
    let mut options = ToolOptions { language, ..ToolOptions::default() };
    for (name, value) in given {
        match name.as_str() {
            "args" => options.args = Some(Input::new(value)),
            "globals" => {
                let globals = value.as_object().expect("an object").iter();
                options.globals = globals.collect::<Inputs>();
            }
            "filename" => options.filename = value.as_str().map(str::to_owned),
            "timeoutMs" => options.timeout_ms = value.as_u64(),
            "memoryLimitBytes" => options.memory_limit_bytes = value.as_u64(),
            other => panic!("the table has no option {other}"),
        }
    }
    options
}

/// The facts that a case compares, as JSON.
fn seen(result: &KitResult) -> Json {
    let plain = |value: &Value| value.deserialize::<Json>().expect("plain data");
    let mut seen = json!({ "status": result.status.as_str() });
    if let Some(text) = &result.json {
        let value: Json = serde_json::from_str(text).expect("valid JSON");
        let crossed = plain(result.result.as_ref().expect("a value"));
        assert_eq!(without_floats(&value), without_floats(&crossed), "the result is the JSON");
        seen["value"] = value;
        seen["json"] = json!(text);
    }
    if let Some(error) = &result.error {
        seen["error"] = json!({
            "name": error.name, "message": error.message, "filename": error.filename,
            "line": error.line,
        });
    }
    let log = |log: &isolane::ExecutionLog| {
        let Json::Array(args) = plain(&log.args) else { panic!("the arguments are an array") };
        let level = json!(log.level.as_str());
        Json::Array(std::iter::once(level).chain(args).collect())
    };
    seen["logs"] = result.logs.iter().map(log).collect();
    let calls = result.calls.iter().map(|call| {
        assert_eq!(call.ok, call.error.is_none());
        let texts = [call.name, call.summary.as_str()].into_iter();
        texts.chain(call.error.as_deref()).collect::<Json>()
    });
    seen["calls"] = calls.collect();
    seen
}

/// Numbers as text: a message has no difference of 1 and 1.0.
fn without_floats(value: &Json) -> Json {
    match value {
        Json::Number(number) => json!(number.as_f64().map(|number| number.to_string())),
        Json::Array(all) => all.iter().map(without_floats).collect(),
        Json::Object(all) => {
            let entries = all.iter().map(|(key, value)| (key.clone(), without_floats(value)));
            Json::Object(entries.collect())
        }
        other => other.clone(),
    }
}

/// Compares; `{ "$has": text }` is a text with that part, and an object has the keys that are given.
fn same(key: &str, expected: &Json, seen: &Json) -> Result<(), String> {
    let part = expected.get("$has").and_then(Json::as_str);
    let is_same = match (part, expected, seen) {
        (Some(part), _, Json::String(text)) => text.contains(part),
        (Some(_), _, _) => false,
        (None, Json::Object(fields), Json::Object(_)) if key == "error" => {
            return fields.iter().try_for_each(|(field, value)| same(field, value, &seen[field]));
        }
        (None, Json::Array(all), Json::Array(others)) if all.len() == others.len() => {
            return all.iter().zip(others).try_for_each(|(one, other)| same(key, one, other));
        }
        _ => without_floats(expected) == without_floats(seen),
    };
    if is_same { Ok(()) } else { Err(format!("  {key}: expected {expected}, got {seen}")) }
}
