//! The costs of the store, beside a host function over plain `rusqlite`. They are printed, and judged by nobody:
//! `cargo test --release -p isolane-kit --test it -- store_cost --ignored --nocapture`.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use isolane::{
    ExecutionOptions, HostFunction, Inputs, NativeAnswer, NativeCall, NativeFunction, NativeMode,
    Value, run_code,
};
use isolane_kit::store::{Database, DatabaseOptions, State, StateLimits, Store, StoreOptions};
use rusqlite::{Connection, types::ValueRef};

use crate::native_functions::input;

/// The rows of a statement, by a host function as a program without the kit would write it.
fn plain(sqlite: &Connection, sql: &str) -> Vec<Vec<serde_json::Value>> {
    let mut statement = sqlite.prepare(sql).expect("a statement");
    let columns = statement.column_count();
    let mut rows = statement.query([]).expect("rows");
    let mut all = Vec::new();
    while let Some(row) = rows.next().expect("a row") {
        let value = |column| match row.get_ref(column).expect("a column") {
            ValueRef::Integer(number) => number.into(),
            ValueRef::Real(number) => number.into(),
            ValueRef::Text(text) => String::from_utf8_lossy(text).into(),
            _ => serde_json::Value::Null,
        };
        all.push((0..columns).map(value).collect());
    }
    all
}

/// A native function that is answered at once, with a promise.
struct Empty;

impl NativeFunction for Empty {
    fn name(&self) -> &'static str {
        "empty"
    }

    fn mode(&self) -> NativeMode {
        NativeMode::Async
    }

    fn call(&self, _: NativeCall) -> NativeAnswer {
        NativeAnswer::Now(Ok(Value::undefined()))
    }
}

/// The median time of one call of `call` in a run, microseconds.
fn median_us(globals: &Inputs, call: &str) -> f64 {
    let source = format!(
        "const times = [];
         for (let i = 0; i < 300; i++) {{
             const started = now();
             {call};
             times.push(now() - started);
         }}
         export default times.sort((a, b) => a - b)[150];"
    );
    let started = std::time::Instant::now();
    let now = HostFunction::new(move || started.elapsed().as_secs_f64() * 1e6);
    let globals = globals.clone().with("now", now);
    let run = run_code(source, ExecutionOptions { globals, ..Default::default() });
    let result = run.wait().expect("a run");
    result.into_value().expect("a success").deserialize().expect("a number")
}

#[test]
#[ignore = "prints costs"]
fn costs() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("data.db");
    let db = Database::open(&DatabaseOptions { file: Some(file.clone()), ..Default::default() });
    let db = db.expect("a database");
    let table = "CREATE TABLE t AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000)
        SELECT i, i * 1.5 AS x, 'name ' || i AS name, 'some longer text ' || i AS text, i % 7 AS k FROM n";
    let store = Store::open(&StoreOptions::default()).expect("a store");
    let state = State::new(&store, StateLimits::default());
    let sqlite = Connection::open(&file).expect("a connection");
    sqlite.execute_batch(table).expect("a table");
    let sqlite = Arc::new(Mutex::new(sqlite));
    let rusqlite = HostFunction::new(move |sql: String| plain(&sqlite.lock().expect("it"), &sql));
    let globals = Inputs::new()
        .with("db", input(db.functions()))
        .with("state", input(state.functions()))
        .with("plain", rusqlite)
        .with("empty", HostFunction::new(|| ()))
        .with("native", HostFunction::native(Arc::new(Empty)))
        .with("later", HostFunction::future(async || ()));
    for (name, call) in [
        ("db.sql, 1,000 rows of 5", "await db.sql('SELECT * FROM t')"),
        ("host function over rusqlite", "plain('SELECT * FROM t')"),
        ("db.sql, one row", "await db.sql('SELECT * FROM t WHERE rowid = ?', [i])"),
        ("host function over rusqlite", "plain(`SELECT * FROM t WHERE rowid = ${i}`)"),
        ("db.sql, a write", "await db.sql('UPDATE t SET k = ? WHERE rowid = 5', [i])"),
        ("state.set", "await state.set('key', '' + i)"),
        ("state.get", "await state.get('key')"),
        (
            "1,000 state.get",
            "await Promise.all(Array.from({ length: 1000 }, () => state.get('key')))",
        ),
        ("1,000 empty futures", "await Promise.all(Array.from({ length: 1000 }, () => later()))"),
        ("empty host function", "empty()"),
        ("await of an empty future", "await later()"),
        ("await of an empty native function", "await native()"),
    ] {
        println!("{name:34} {:10.1} us", median_us(&globals, call));
    }
    let before = resident_kib();
    let stores: Vec<_> = (0..100)
        .map(|_| {
            let store = Store::open(&StoreOptions::default()).expect("a store");
            (Database::open(&DatabaseOptions::default()).expect("a database"), store)
        })
        .collect();
    std::thread::sleep(Duration::from_millis(10));
    println!(
        "an open store and database         {:10} KiB",
        (resident_kib() - before) / stores.len()
    );
}

fn resident_kib() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").expect("a status");
    let line = status.lines().find(|line| line.starts_with("VmRSS")).expect("a line");
    line.split_whitespace().nth(1).and_then(|text| text.parse().ok()).expect("a number")
}
