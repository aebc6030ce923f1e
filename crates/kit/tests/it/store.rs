//! The tables of cases in `cases/`, over the capabilities that keep data.
//!
//! A case is a `##` heading with a rule, `json options` (limits of `db`), one `js` fence, which is the body of a module
//! whose `default` is compared, and `json result`. Each runs in memory and in a file. `fails(promise)` of the prelude
//! gives an error as `[name, message]`, or `[name, code, message]`.

use std::{
    collections::BTreeMap,
    path::Path,
    time::{Duration, Instant},
};

use isolane::{ExecutionOptions, Input, Inputs, run_code};
use isolane_kit::store::{
    Database, DatabaseLimits, DatabaseOptions, State, StateLimits, Store, StoreOptions,
};
use serde_json::json;

use crate::native_functions::input;

const PRELUDE: &str = "
const fails = (promise) => promise.then(
    (value) => ['no error', value],
    (e) => 'code' in e ? [e.name, e.code, e.message] : [e.name, e.message]);
";

/// `state` over its functions, which have values as JSON texts.
const STATE: &str = "
const state = {
    get: async (key) => JSON.parse(await texts.get(key)),
    set: (key, value) => texts.set(key, JSON.stringify(value)),
    delete: texts.delete,
    keys: texts.keys,
};
";

fn database(file: Option<&Path>, limits: DatabaseLimits) -> Database {
    let options = DatabaseOptions { file: file.map(Into::into), limits, ..Default::default() };
    Database::open(&options).expect("a database")
}

fn run(source: &str, name: &'static str, functions: Input) -> serde_json::Value {
    let options =
        ExecutionOptions { globals: Inputs::new().with(name, functions), ..Default::default() };
    let state = if name == "texts" { STATE } else { "" };
    match run_code(format!("{PRELUDE}{state}{source}"), options).wait().expect("a run").into_value()
    {
        Ok(value) => value.deserialize().expect("plain data"),
        Err(error) => json!({ "status": error.to_string() }),
    }
}

/// A case of a table.
struct Case<'t> {
    title: &'t str,
    fences: BTreeMap<&'t str, &'t str>,
}

fn cases(table: &str) -> Vec<Case<'_>> {
    let parts = table.split("\n## ").skip(1);
    parts
        .map(|part| {
            let title = part.lines().next().expect("a title");
            let mut fences = BTreeMap::new();
            let mut rest = &part[title.len()..];
            while let Some((_, fence)) = rest.split_once("\n```") {
                let (kind, fence) = fence.split_once('\n').expect("a kind");
                let (content, after) = fence.split_once("\n```").expect("an end");
                assert!(fences.insert(kind, content).is_none(), "{title}: two fences '{kind}'");
                rest = after;
            }
            Case { title, fences }
        })
        .collect()
}

/// Sets the limits that a case has; its time limit that many times as long.
fn set_limits<const N: usize>(case: &Case<'_>, factor: u64, limits: [(&str, &mut u64); N]) {
    let options = case.fences.get("json options").copied().unwrap_or("{}");
    let mut options: BTreeMap<String, u64> = serde_json::from_str(options).expect("options");
    for (name, limit) in limits {
        if let Some(value) = options.remove(name) {
            *limit = if name == "timeoutMs" { value * factor } else { value };
        }
    }
    assert!(options.is_empty(), "{}: unknown options {options:?}", case.title);
}

fn db(case: &Case<'_>, file: Option<&Path>, factor: u64) -> Input {
    let mut limits = DatabaseLimits::default();
    set_limits(
        case,
        factor,
        [
            ("maxRows", &mut limits.max_rows),
            ("maxResultBytes", &mut limits.max_result_bytes),
            ("maxValueBytes", &mut limits.max_value_bytes),
            ("maxStatementBytes", &mut limits.max_statement_bytes),
            ("maxFileBytes", &mut limits.max_file_bytes),
            ("timeoutMs", &mut limits.timeout_ms),
        ],
    );
    input(database(file, limits).functions())
}

fn state(case: &Case<'_>, file: Option<&Path>, factor: u64) -> Input {
    let mut limits = StateLimits::default();
    set_limits(
        case,
        factor,
        [
            ("maxKeyBytes", &mut limits.max_key_bytes),
            ("maxValueBytes", &mut limits.max_value_bytes),
            ("maxTotalBytes", &mut limits.max_total_bytes),
        ],
    );
    let options = StoreOptions { file: file.map(Into::into), ..Default::default() };
    let store = Store::open(&options).expect("a store");
    input(State::new(&store, limits).functions())
}

/// The time limit of a case that does not hang.
const CEILING: Duration = Duration::from_mins(2);

/// The time limit of a case in its results, that many times as long.
fn longer(expected: &str, case: &Case<'_>, factor: u64) -> String {
    let options = case.fences.get("json options").copied().unwrap_or("{}");
    let options: BTreeMap<String, u64> = serde_json::from_str(options).expect("options");
    match options.get("timeoutMs") {
        Some(time) => {
            let told = |time: u64| format!("took longer than {time} ms");
            expected.replace(&told(*time), &told(time * factor))
        }
        None => expected.to_owned(),
    }
}

/// Runs the cases of a table, each in memory and in a file; `open` opens what `name` is in them.
fn check_table(
    table: &str,
    name: &'static str,
    open: impl Fn(&Case<'_>, Option<&Path>, u64) -> Input,
) {
    let only = std::env::var("CASE").unwrap_or_default();
    let mut failed = Vec::new();
    let mut count = 0;
    for case in cases(table).iter().filter(|case| case.title.contains(&only)) {
        let fence =
            |kind| *case.fences.get(kind).unwrap_or_else(|| panic!("{}: no {kind}", case.title));
        for is_file in [false, true] {
            let mut failure = None;
            // On a busy machine a statement that is to be quick may not be done in a short time.
            for factor in [1, 8, 64] {
                let folder = tempfile::tempdir().expect("a folder");
                let file = folder.path().join("data.db");
                let functions = open(case, is_file.then_some(&*file), factor);
                let started = Instant::now();
                let result = run(fence("js"), name, functions);
                let took = started.elapsed();
                let expected = longer(fence("json result"), case, factor);
                let expected: serde_json::Value = serde_json::from_str(&expected)
                    .unwrap_or_else(|error| panic!("{}: {error}", case.title));
                failure = if result != expected {
                    Some(format!("{}:\n  {result}\n  not\n  {expected}", case.title))
                } else if took > CEILING {
                    Some(format!("{} took {took:?}", case.title))
                } else {
                    None
                };
                let options = case.fences.get("json options");
                let is_timed = options.is_some_and(|options| options.contains("timeoutMs"));
                if failure.is_none() || !is_timed {
                    break;
                }
            }
            let place = if is_file { "in a file" } else { "in memory" };
            failed.extend(failure.map(|failure| format!("{place}: {failure}")));
            count += 1;
        }
    }
    assert!(failed.is_empty(), "{} of {count} failed:\n{}", failed.len(), failed.join("\n"));
    assert!(count > 0, "no case");
}

#[test]
fn db_obeys_its_table() {
    check_table(include_str!("../cases/db.md"), "db", db);
}

#[test]
fn sql_does_not_escape() {
    check_table(include_str!("../cases/sql-attacks.md"), "db", db);
}

#[test]
fn state_obeys_its_table() {
    check_table(include_str!("../cases/state.md"), "texts", state);
}
