//! Random cases for `tests/three-way/`, whose README has the formats, run through the core.
//!
//! In: lines of cases on standard input. Out: one line of results for each. The host is that of the contract table.

#[expect(dead_code, reason = "the table compares here; the three-way check compares elsewhere")]
#[path = "../../tests/it/contract/case.rs"]
mod case;
#[path = "../../tests/it/contract/compare.rs"]
mod compare;
#[path = "../../tests/it/contract/event_loop.rs"]
mod event_loop;
#[path = "../../tests/it/contract/functions.rs"]
mod functions;
#[path = "../../tests/it/contract/js.rs"]
mod js;
#[expect(dead_code, reason = "cases come as JSON here, and not as Markdown")]
#[path = "../../tests/it/contract/parse.rs"]
mod parse;
#[path = "../../tests/it/contract/remote.rs"]
mod remote;
#[path = "../../tests/it/contract/tagged.rs"]
mod tagged;

mod canonical;

use std::{
    io,
    panic::{AssertUnwindSafe, catch_unwind},
    rc::Rc,
    thread,
};

use isolane::{ExecutionError, ExecutionResult, RunHandle, Runtime, Value};
use serde_json::Value as Json;

use crate::{
    canonical::{canonical, record, text},
    event_loop::line,
    functions::Tables,
    parse::{Case, Expected},
};

/// Cases that run at once.
const THREADS: usize = 4;

/// The host walks values by recursion. This is reserved address space, not memory.
const STACK_BYTES: usize = 1 << 28;

fn main() {
    let next_line = || {
        let mut line = String::new();
        let read = io::stdin().read_line(&mut line).expect("readable");
        (read > 0).then_some(line)
    };
    thread::scope(|scope| {
        for _ in 0..THREADS {
            let work = || {
                while let Some(line) = next_line() {
                    let json = serde_json::from_str(&line).expect("JSON");
                    println!("{}", replayed(&json));
                }
            };
            thread::Builder::new()
                .stack_size(STACK_BYTES)
                .spawn_scoped(scope, work)
                .expect("a thread");
        }
    });
}

fn replayed(json: &Json) -> String {
    let number = json["number"].to_string();
    let mut fields = vec![("number", Some(number))];
    let outcome = catch_unwind(AssertUnwindSafe(|| outcome(&read_case(json))));
    fields.extend(outcome.unwrap_or_else(|_| vec![("harness", Some(text("it panicked")))]));
    record(fields)
}

fn read_case(json: &Json) -> Case {
    let units = |json: &Json| json.as_str().expect("a text").encode_utf16().collect();
    let modules = json["modules"].as_object().expect("modules by key").iter();
    Case {
        file: String::new(),
        heading: String::new(),
        typescript: json["language"] == "typescript",
        source: units(&json["source"]),
        modules: modules.map(|(key, source)| (key.clone(), units(source))).collect(),
        options: json["options"].as_object().expect("options by name").clone(),
        handle: Vec::new(),
        expected: Expected::Result(Json::Null),
    }
}

type Fields = Vec<(&'static str, Option<String>)>;

fn outcome(case: &Case) -> Fields {
    let mut tables = Tables::default();
    let (host, events) = line();
    let started =
        case::request(case, &mut tables).and_then(|request| Runtime::shared().start(request, host));
    match started {
        Err(error) => {
            let name = text(case::error_name(&error));
            let fields = vec![("name", Some(name)), ("message", Some(text(error.message())))];
            vec![("misuse", Some(record(fields)))]
        }
        Ok(remote) => match case::run(case, events, tables, remote) {
            Ok((result, remote)) => settled(&result, &remote),
            Err(why) => vec![("harness", Some(text(&why)))],
        },
    }
}

fn settled(result: &ExecutionResult, remote: &RunHandle) -> Fields {
    let remote: Rc<dyn remote::Remote> = Rc::new(remote.clone());
    let value = |message: &Value| canonical(&js::read(message, &remote).expect("a whole message"));
    let reports: Vec<String> = result.reports.iter().map(value).collect();
    let logs = result.logs.iter();
    let logs: Vec<String> =
        logs.map(|log| format!("[{},{}]", text(log.level.as_str()), value(&log.args))).collect();
    vec![
        ("status", Some(text(result.status.as_str()))),
        ("result", result.result.as_ref().map(value)),
        ("reports", Some(format!("[{}]", reports.join(",")))),
        ("logs", Some(format!("[{}]", logs.join(",")))),
        ("error", result.error.as_ref().map(failure)),
    ]
}

fn failure(error: &ExecutionError) -> String {
    let some = |said: &Option<String>| said.as_deref().map(text);
    record(vec![
        ("name", Some(text(&error.name))),
        ("message", Some(text(&error.message))),
        ("stack", some(&error.stack)),
        ("specifier", some(&error.specifier)),
        ("filename", some(&error.filename)),
        ("line", error.line.map(|line| line.to_string())),
        ("column", error.column.map(|column| column.to_string())),
    ])
}
