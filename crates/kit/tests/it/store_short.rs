//! Short calls of the store, which are answered on the thread of their run: they give what the others give.

use std::{
    path::Path,
    process::{Command, Stdio},
    sync::Mutex,
    thread,
    time::{Duration, Instant},
};

use isolane::{ExecutionOptions, HostFunction, Inputs, run_code};
use isolane_kit::store::{Database, DatabaseOptions, State, StateLimits, Store, StoreOptions};
use serde_json::json;

use crate::native_functions::input;

/// The time limit of a test that does not hang.
const CEILING: Duration = Duration::from_mins(2);

fn open(file: Option<&Path>) -> Database {
    let options = DatabaseOptions { file: file.map(Into::into), ..Default::default() };
    Database::open(&options).expect("a database")
}

/// The default export of a module that has these globals.
fn run(source: &str, globals: Inputs) -> serde_json::Value {
    let result = run_code(source, ExecutionOptions { globals, ..Default::default() }).wait();
    let value = result.expect("a run").into_value().expect("a success");
    value.deserialize().expect("plain data")
}

fn with_db(db: &Database) -> Inputs {
    Inputs::new().with("db", input(db.functions()))
}

/// A statement is short once it was run; so each is run several times.
#[test]
fn a_statement_that_grows_long_gives_the_same_answer() {
    let source = "
        const rows = async (...call) => (await db.sql(...call)).rows[0][0];
        await db.sql('CREATE TABLE t(a)');
        const numbers = 'WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)';
        const counts = [];
        for (const most of [3, 3, 3, 300000, 4, 300000, 5])
            counts.push(await rows(`${numbers} SELECT count(*) FROM n`, [most]));
        const inserted = [];
        for (const most of [3, 3, 3, 100000, 4, 100000, 5])
            inserted.push((await db.sql(`INSERT INTO t ${numbers} SELECT i FROM n`, [most])).changes);
        const sizes = [];
        for (const length of [1, 1, 1, 20000, 1, 1000000, 1])
            sizes.push((await rows('SELECT zeroblob(?)', [length])).length);
        const echoed = [];
        for (const length of [1, 1, 1, 17000, 1, 1000000, 1])
            echoed.push((await rows('SELECT ?', ['x'.repeat(length)])).length);
        export default [counts, inserted, await rows('SELECT count(*) FROM t'), sizes, echoed]";
    let expected = json!([
        [3, 3, 3, 300_000, 4, 300_000, 5],
        [3, 3, 3, 100_000, 4, 100_000, 5],
        200_018,
        [1, 1, 1, 20_000, 1, 1_000_000, 1],
        [1, 1, 1, 17_000, 1, 1_000_000, 1],
    ]);
    let folder = tempfile::tempdir().expect("a folder");
    for db in [open(None), open(Some(&folder.path().join("data.db")))] {
        assert_eq!(run(source, with_db(&db)), expected);
    }
}

#[test]
fn errors_of_short_statements_are_those_of_others() {
    let source = "
        const fails = (promise) => promise.then((value) => value, (e) => [e.name, e.code, e.message]);
        await db.sql('CREATE TABLE t(a UNIQUE)');
        const results = [];
        for (let i = 0; i < 4; i++) results.push(await fails(db.sql('INSERT OR FAIL INTO t VALUES (?), (7)', [i])));
        for (const params of [[1], [1], [1], [], [1, 2], { a: 1 }, 5, [1n << 64n]])
            results.push(await fails(db.sql('SELECT count(*) FROM t WHERE a < ?', params)));
        export default results.map((result) => Array.isArray(result) ? result : result.rows?.[0][0] ?? result.changes)";
    let unique = json!(["DbError", "SQLITE_CONSTRAINT_UNIQUE", "UNIQUE constraint failed: t.a"]);
    let expected = json!([
        2,
        unique,
        unique,
        unique,
        1,
        1,
        1,
        ["DbError", "SQLITE_ERROR", "1 parameter needed, 0 given"],
        ["DbError", "SQLITE_ERROR", "1 parameter needed, 2 given"],
        ["DbError", "SQLITE_ERROR", "no value for ?"],
        ["TypeError", null, "params must be an array or an object"],
        ["RangeError", null, "parameter 1 is a bigint of more than 64 bits"],
    ]);
    assert_eq!(run(source, with_db(&open(None))), expected);
}

#[test]
fn a_known_statement_follows_the_schema() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("data.db");
    let source = "
        const fails = (promise) => promise.then((value) => value, (e) => [e.name, e.message]);
        await db.sql('CREATE TABLE t(a)');
        await db.sql('INSERT INTO t VALUES (1)');
        await db.sql('CREATE VIEW v AS SELECT 1 AS a');
        const results = [];
        const look = async () => {
            for (let i = 0; i < 3; i++) results.push(await fails(db.sql('SELECT * FROM t')), await fails(db.sql('SELECT a FROM v')));
        };
        await look();
        for (const changed of [db, other]) {
            await changed.sql(`ALTER TABLE t ADD COLUMN b${results.length} DEFAULT 2`);
            await changed.sql('DROP VIEW v');
            await changed.sql(`CREATE VIEW v AS SELECT length(json_patch('{}', json_object('a', hex(zeroblob(10000))))) AS a`);
            await look();
            await changed.sql('DROP VIEW v');
            await changed.sql('CREATE VIEW v AS SELECT 3 AS a');
            await look();
        }
        export default results.map((result) => Array.isArray(result) ? result.join() : result.columns.join() + '=' + result.rows.join())";
    let looks = |table: &str, view: &str| vec![[table.to_owned(), view.to_owned()]; 3].concat();
    let slow = "DbLimit,a value is larger than 8192 bytes";
    let expected = [
        looks("a=1", "a=1"),
        looks("a,b6=1,2", slow),
        looks("a,b6=1,2", "a=3"),
        looks("a,b6,b18=1,2,2", slow),
        looks("a,b6,b18=1,2,2", "a=3"),
    ]
    .concat();
    let (db, other) = (open(Some(&file)), open(Some(&file)));
    let globals = with_db(&db).with("other", input(other.functions()));
    assert_eq!(run(source, globals), json!(expected));
}

/// Statements of a batch are known, too.
#[test]
fn a_batch_follows_the_schema() {
    let source = "
        await db.sql('CREATE TABLE t(a)');
        const insert = ['INSERT INTO t VALUES (1)'], all = ['SELECT * FROM t'];
        const counts = [];
        for (let i = 0; i < 3; i++) {
            const done = await db.batch([insert, all, insert, all, [`ALTER TABLE t ADD COLUMN b${i}`], all]);
            counts.push(done.filter((one) => one.rows).map((one) => one.row_count + one.columns.join()));
            await db.sql(`ALTER TABLE t DROP COLUMN b${i}`);
        }
        export default counts";
    let expected = json!([["1a", "2a", "2a,b0"], ["3a", "4a", "4a,b1"], ["5a", "6a", "6a,b2"]]);
    assert_eq!(run(source, with_db(&open(None))), expected);
}

#[test]
fn a_short_call_does_not_wait_for_another_connection_on_its_thread() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("data.db");
    // Without a log, a writer locks out readers.
    let holder = rusqlite::Connection::open(&file).expect("a connection");
    holder.execute_batch("CREATE TABLE t AS SELECT 1 AS a").expect("a table");
    let holder = Mutex::new(Some(holder));
    let lock = HostFunction::new(move || {
        let holder = holder.lock().expect("a lock").take().expect("one call");
        holder.execute_batch("BEGIN EXCLUSIVE").expect("a transaction");
        thread::spawn(move || {
            thread::sleep(Duration::from_millis(100));
            holder.execute_batch("UPDATE t SET a = 2; COMMIT").expect("a commit");
        });
    });
    let source = "
        const results = [];
        for (let i = 0; i < 4; i++) results.push(await db.sql('SELECT a FROM t'));
        lock();
        results.push(await db.sql('SELECT a FROM t'));
        export default results.map((result) => result.rows[0][0])";
    let db = open(Some(&file));
    assert_eq!(run(source, with_db(&db).with("lock", lock)), json!([1, 1, 1, 1, 2]));
}

#[test]
fn state_is_the_same_for_short_and_long_values() {
    let source = "
        const results = [];
        for (const length of [1, 20000, 1, 900000, 16000, 2]) {
            const text = JSON.stringify('ä'.repeat(length / 2));
            await state.set('key', text);
            results.push([(await state.get('key')) === text, await state.keys()]);
        }
        const calls = [];
        for (let i = 0; i < 300; i++) calls.push(state.set('n', `${i}`), state.get('n'));
        const seen = (await Promise.all(calls)).filter((_, index) => index % 2);
        export default [results.flat(), seen.every((text, index) => text === `${index}`), await state.delete('n'), await state.get('n')]";
    let folder = tempfile::tempdir().expect("a folder");
    let kept = vec![[json!(true), json!(["key"])]; 6].concat();
    let expected = json!([kept, true, true, null]);
    for file in [None, Some(folder.path().join("agent.db"))] {
        let store = Store::open(&StoreOptions { file, ..Default::default() }).expect("a store");
        let state = State::new(&store, StateLimits::default());
        assert_eq!(run(source, Inputs::new().with("state", input(state.functions()))), expected);
    }
}

/// Looks at the threads of a process of its own; does nothing as a test of its own.
#[test]
fn child_of_short_calls_need_no_thread() {
    if std::env::var("ISOLANE_STORE_TEST_SHORT").is_err() {
        return;
    }
    let has_thread = || {
        let tasks = std::fs::read_dir("/proc/self/task").expect("threads");
        let names =
            tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok());
        names.filter(|name| name.trim() == "isolane-store").count() > 0
    };
    let store = Store::open(&StoreOptions::default()).expect("a store");
    let state = State::new(&store, StateLimits::default());
    let db = open(None);
    let globals = with_db(&db).with("state", input(state.functions()));
    let until_none = || {
        while has_thread() {
            thread::sleep(Duration::from_millis(1));
        }
    };
    // A call that takes longer than short ones may goes to the thread. On a busy machine many do, so there are many runs;
    // the process ends with its parent's patience.
    let needs_none = |source: &str, expected: serde_json::Value| loop {
        until_none();
        assert_eq!(run(source, globals.clone()), expected);
        if !has_thread() {
            return;
        }
    };
    let source = "
        await state.set('key', await state.get('key') ?? '0');
        export default [await state.delete('key'), await state.delete('key')]";
    needs_none(source, json!([true, false]));
    // An unknown statement is no short call. The thread may end before it is looked for, if the system delays this one.
    for number in 0.. {
        until_none();
        let source = format!("export default (await db.sql('SELECT {number}')).rows[0][0]");
        assert_eq!(run(&source, globals.clone()), json!(number));
        if has_thread() {
            break;
        }
    }
    needs_none("export default (await db.sql('SELECT 0')).rows[0][0]", json!(0));
}

#[test]
fn short_calls_need_no_thread() {
    let mut child = Command::new(std::env::current_exe().expect("this program"));
    child.args(["--exact", "store_short::child_of_short_calls_need_no_thread"]);
    child.env("ISOLANE_STORE_TEST_SHORT", "1").stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = child.spawn().expect("a child");
    let started = Instant::now();
    while child.try_wait().expect("a child").is_none() {
        if started.elapsed() > CEILING {
            child.kill().expect("it is killed");
        }
        thread::sleep(Duration::from_millis(10));
    }
    let output = child.wait_with_output().expect("its output");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}
