//! Stores over time: files that several share, runs that end, calls that wait, and libraries.

use std::{
    collections::BTreeMap,
    fs,
    future::Future,
    io::{BufRead, BufReader, Write},
    path::Path,
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use isolane::{
    Execution, ExecutionOptions, HostError, HostFunction, Inputs, Language, Status, Value, run_code,
};
use isolane_kit::store::{
    Database, DatabaseFunction, DatabaseLimits, DatabaseOptions, Libraries, LibraryLimits, State,
    StateFunction, StateLimits, Store, StoreOptions,
};
use serde_json::json;

use crate::native_functions::input;

/// The time limit of a statement that does not hang.
const WIDE_MS: u64 = 120_000;

fn open(file: &Path, read_only: bool, timeout_ms: u64) -> Result<Database, HostError> {
    let limits = DatabaseLimits { timeout_ms, ..Default::default() };
    Database::open(&DatabaseOptions { file: Some(file.into()), read_only, limits })
}

fn start(source: &str, db: &Database) -> Execution {
    let globals = Inputs::new().with("db", input(db.functions()));
    let options = ExecutionOptions { globals, ..Default::default() };
    let default = if source.contains("export default") { "" } else { "\nexport default null" };
    run_code(format!("{source}{default}"), options)
}

fn waited<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    runtime.expect("a runtime").block_on(future)
}

/// The answer to SQL of the host: its rows, or the error's name and message.
fn sql(db: &Database, sql: &str) -> serde_json::Value {
    let args = Value::serialize(&[sql]).expect("a message");
    match waited(db.call(DatabaseFunction::Sql, args)) {
        Ok(value) => {
            let value: serde_json::Value = value.deserialize().expect("plain data");
            value.get("rows").cloned().unwrap_or(value)
        }
        Err(error) => {
            let error: BTreeMap<String, String> = error.deserialize().expect("an error");
            json!([error["name"], error["message"]])
        }
    }
}

const ENDLESS: &str =
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n";

/// Waits until `check` holds.
fn until(what: &str, mut check: impl FnMut() -> bool) {
    let started = Instant::now();
    while !check() {
        assert!(started.elapsed() < Duration::from_mins(2), "{what}");
        thread::yield_now();
    }
}

#[test]
fn a_file_that_is_no_database_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("text.txt");
    fs::write(&file, "this is not a database, but it is long enough to be looked at")
        .expect("a file");
    let shown = file.display();
    let error = open(&file, false, WIDE_MS).err().expect("an error");
    assert_eq!(error.message, format!("'{shown}' is no SQLite database"));
    let options = StoreOptions { file: Some(file.clone()), ..Default::default() };
    let error = Store::open(&options).err().expect("an error");
    assert_eq!(error.message, format!("'{shown}' is no SQLite database"));

    let missing = folder.path().join("missing.db");
    let error = open(&missing, true, WIDE_MS).err().expect("an error");
    assert_eq!(error.message, format!("'{}' cannot be opened", missing.display()));

    let other = folder.path().join("other.db");
    sql(&open(&other, false, WIDE_MS).expect("a database"), "CREATE TABLE agent_state(other)");
    let options = StoreOptions { file: Some(other.clone()), ..Default::default() };
    let error = Store::open(&options).err().expect("an error");
    assert!(
        error
            .message
            .starts_with(&format!("'{}' cannot be opened: no such column", other.display()))
    );
}

#[test]
fn nothing_is_written_to_a_read_only_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("data.db");
    let writer = open(&file, false, WIDE_MS).expect("a database");
    sql(&writer, "CREATE TABLE t AS SELECT 1 AS a");
    let reader = open(&file, true, WIDE_MS).expect("a database");
    assert_eq!(sql(&reader, "SELECT a FROM t"), json!([[1]]));
    let refused = json!(["DbError", "attempt to write a readonly database"]);
    for write in
        ["INSERT INTO t VALUES (2)", "CREATE TABLE x(a)", "PRAGMA user_version = 3", "DROP TABLE t"]
    {
        assert_eq!(sql(&reader, write), refused, "{write}");
    }
    let batch = Value::serialize(&[[["SELECT a FROM t"]]]).expect("a message");
    assert!(waited(reader.call(DatabaseFunction::Batch, batch)).is_ok());
    sql(&writer, "INSERT INTO t VALUES (2)");
    assert_eq!(sql(&reader, "SELECT count(*) FROM t"), json!([[2]]));
}

#[test]
fn only_the_database_and_its_journal_are_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("data.db");
    let db = open(&file, false, WIDE_MS).expect("a database");
    sql(&db, "CREATE TABLE t(a UNIQUE, b)");
    let many = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200000)";
    sql(&db, &format!("INSERT INTO t {many} SELECT i, hex(randomblob(20)) FROM n"));
    sql(&db, "SELECT a FROM t ORDER BY b");
    sql(&db, "UPDATE t SET b = a, a = CASE WHEN a = 200000 THEN 1 ELSE a END");
    sql(&db, "CREATE INDEX i ON t(b)");
    let mut names: Vec<_> = fs::read_dir(folder.path())
        .expect("a folder")
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("a name"))
        .collect();
    names.sort();
    assert_eq!(names, ["data.db", "data.db-shm", "data.db-wal"]);
    // SQLite unlinks temporary files at once, so the open descriptors tell more.
    let open = fs::read_dir("/proc/self/fd").expect("descriptors");
    let foreign = open.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
    let foreign: Vec<_> =
        foreign.filter(|path| path.to_string_lossy().contains("etilqs")).collect();
    assert_eq!(foreign, Vec::<std::path::PathBuf>::new());
}

#[test]
fn a_run_that_ends_from_outside_rolls_back_at_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("data.db");
    let db = open(&file, false, WIDE_MS).expect("a database");
    sql(&db, "CREATE TABLE t(a)");
    for source in [
        format!("await db.batch([['INSERT INTO t VALUES (1)'], [`{ENDLESS}`]])"),
        format!("await db.sql(`INSERT INTO t {ENDLESS}`)"),
        format!("await db.sql(`{ENDLESS}`)"),
    ] {
        let run = start(&source, &db);
        // Another connection sees that the database is locked for writing, or that the statement runs for a while.
        thread::sleep(Duration::from_millis(100));
        run.terminator().terminate(Some("enough"));
        // The line is free when the statement has ended. By itself it ends when this one has waited for too long.
        assert_eq!(sql(&db, "SELECT count(*) FROM t"), json!([[0]]));
        assert_eq!(run.wait().expect("a run").status, Status::Terminated);
    }
    assert_eq!(sql(&db, "INSERT INTO t VALUES (5) RETURNING a"), json!([[5]]));
}

#[test]
fn kits_that_share_a_file_wait_for_each_other_within_the_time_limit() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("data.db");
    let (one, other) = (open(&file, false, WIDE_MS), open(&file, false, WIDE_MS));
    let (one, other) = (one.expect("a database"), other.expect("a database"));
    sql(&one, "CREATE TABLE t(a INTEGER)");
    sql(&one, "INSERT INTO t VALUES (0)");
    let add = "for (let i = 0; i < 200; i++) await db.sql('UPDATE t SET a = a + 1')";
    let runs = [start(add, &one), start(add, &other), start(add, &one), start(add, &other)];
    for run in runs {
        assert_eq!(run.wait().expect("a run").status, Status::Success);
    }
    assert_eq!(sql(&other, "SELECT a FROM t"), json!([[800]]));
    // One that does not get its turn in time says so.
    let holder = rusqlite::Connection::open(&file).expect("a connection");
    holder.execute_batch("BEGIN IMMEDIATE").expect("a transaction");
    let hasty = open(&file, false, 2_000).expect("a database");
    let told = json!(["DbTimeout", "the statement took longer than 2000 ms"]);
    assert_eq!(sql(&hasty, "INSERT INTO t VALUES (1)"), told);
    // On a busy machine other statements may be late, too; then they did nothing.
    until("a read", || sql(&hasty, "SELECT count(*) FROM t") == json!([[1]]));
    holder.execute_batch("COMMIT").expect("a commit");
    let done = json!({"changes": 1, "last_insert_rowid": 2});
    until("a write", || sql(&hasty, "INSERT INTO t VALUES (1)") == done);
}

/// Adds to a counter of the file named by the environment; does nothing as a test of its own.
#[test]
fn child_of_processes_share_a_file() {
    let Ok(file) = std::env::var("ISOLANE_STORE_TEST_FILE") else { return };
    let options =
        StoreOptions { file: Some(file.into()), timeout_ms: WIDE_MS, ..Default::default() };
    let store = Store::open(&options).expect("a store");
    let state = State::new(&store, StateLimits::default());
    for i in 0..100 {
        let key = format!("{}-{i}", std::process::id());
        let args = Value::serialize(&(key, i)).expect("a message");
        waited(state.call(StateFunction::Set, args)).expect("a write");
    }
}

#[test]
fn processes_share_a_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("agent.db");
    let program = std::env::current_exe().expect("this program");
    let children: Vec<_> = (0..4)
        .map(|_| {
            Command::new(&program)
                .args(["--exact", "store_life::child_of_processes_share_a_file"])
                .env("ISOLANE_STORE_TEST_FILE", &file)
                .stdout(std::process::Stdio::null())
                .spawn()
                .expect("a child")
        })
        .collect();
    for mut child in children {
        assert!(child.wait().expect("a child").success());
    }
    let store =
        Store::open(&StoreOptions { file: Some(file), ..Default::default() }).expect("a store");
    let state = State::new(&store, StateLimits::default());
    let none: [&str; 0] = [];
    let keys = waited(state.call(StateFunction::Keys, Value::serialize(&none).expect("a message")));
    let keys: Vec<String> = keys.expect("keys").deserialize().expect("strings");
    assert_eq!(keys.len(), 400);
}

/// Writes without end to the files in the folder named by the environment, and prints the number of each write that was
/// confirmed; does nothing as a test of its own.
#[test]
fn child_of_a_killed_process_loses_no_confirmed_write() {
    let Ok(folder) = std::env::var("ISOLANE_STORE_TEST_FOLDER") else { return };
    let db = open(&Path::new(&folder).join("data.db"), false, WIDE_MS).expect("a database");
    let options = StoreOptions {
        file: Some(Path::new(&folder).join("agent.db")),
        timeout_ms: WIDE_MS,
        ..Default::default()
    };
    let state = State::new(&Store::open(&options).expect("a store"), StateLimits::default());
    sql(&db, "CREATE TABLE one (n INTEGER)");
    sql(&db, "CREATE TABLE two (n INTEGER)");
    for number in 0.. {
        let key = Value::serialize(&(number.to_string(), "x".repeat(3000))).expect("a message");
        waited(state.call(StateFunction::Set, key)).expect("a write");
        let inserts =
            ["one", "two"].map(|table| [format!("INSERT INTO {table} VALUES ({number})")]);
        let batch = Value::serialize(&[inserts]).expect("a message");
        waited(db.call(DatabaseFunction::Batch, batch)).expect("a write");
        writeln!(std::io::stdout(), "wrote {number}").expect("a pipe");
    }
}

#[test]
fn a_killed_process_loses_no_confirmed_write() {
    for least in [1, 20, 60] {
        let folder = tempfile::tempdir().expect("a folder");
        let mut child = Command::new(std::env::current_exe().expect("this program"))
            .args(["--exact", "store_life::child_of_a_killed_process_loses_no_confirmed_write"])
            .arg("--nocapture")
            .env("ISOLANE_STORE_TEST_FOLDER", folder.path())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .expect("a child");
        let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        let mut confirmed = || loop {
            let line = lines.next()?.ok()?;
            if let Some((_, number)) = line.rsplit_once("wrote ") {
                return number.parse::<i64>().ok();
            }
        };
        let mut last = -1;
        while last < least {
            last = confirmed().expect("the child writes");
        }
        // SIGKILL: wherever the child is in its next write.
        child.kill().expect("it is killed");
        last = std::iter::from_fn(confirmed).last().unwrap_or(last);
        child.wait().expect("a child");

        let db = open(&folder.path().join("data.db"), false, WIDE_MS).expect("a database");
        assert_eq!(sql(&db, "PRAGMA quick_check"), json!([["ok"]]));
        let rows = |table: &str| sql(&db, &format!("SELECT count(*), max(n) FROM {table}"));
        // A batch is there as a whole: the one that was not confirmed, too.
        assert_eq!(rows("one"), rows("two"));
        let written = [last, last + 1].map(|number| json!([[number + 1, number]]));
        assert!(written.contains(&rows("one")), "{last} of {}", rows("one"));
        let file = Some(folder.path().join("agent.db"));
        let store = Store::open(&StoreOptions { file, ..Default::default() }).expect("a store");
        let state = State::new(&store, StateLimits::default());
        for number in 0..=last {
            let key = Value::serialize(&[number.to_string()]).expect("a message");
            let value = waited(state.call(StateFunction::Get, key)).expect("a value");
            assert_eq!(value.deserialize::<String>().expect("a text"), "x".repeat(3000));
        }
    }
}

#[test]
fn the_total_counts_what_others_wrote() {
    let folder = tempfile::tempdir().expect("a folder");
    let options = StoreOptions { file: Some(folder.path().join("agent.db")), ..Default::default() };
    let limits = StateLimits { max_total_bytes: 100, ..Default::default() };
    let open = || State::new(&Store::open(&options).expect("a store"), limits);
    let (one, other) = (open(), open());
    let set = |state: &State, key: &str, length: usize| {
        let args = Value::serialize(&(key, "x".repeat(length))).expect("a message");
        waited(state.call(StateFunction::Set, args)).is_ok()
    };
    assert!(set(&one, "a", 40) && set(&other, "b", 40));
    assert!(!set(&one, "c", 20) && !set(&other, "c", 20));
    assert!(set(&one, "a", 10) && set(&other, "c", 20));
}

#[test]
fn the_host_has_values_and_runs_have_their_texts() {
    let store = Store::open(&StoreOptions::default()).expect("a store");
    let state = State::new(&store, StateLimits::default());
    let set = |value: serde_json::Value| {
        waited(
            state.call(StateFunction::Set, Value::serialize(&("key", value)).expect("a message")),
        )
    };
    set(json!({ "a": [1, "ä", null] })).expect("a write");
    let globals = Inputs::new().with("state", input(state.functions()));
    let options = ExecutionOptions { globals, ..Default::default() };
    let source = "const text = await state.get('key');
        await state.set('key', JSON.stringify({ ...JSON.parse(text), b: 2 }));
        export default text";
    let text = run_code(source, options).wait().expect("a run").into_value().expect("it");
    assert_eq!(text.deserialize::<String>().expect("a text"), r#"{"a":[1,"ä",null]}"#);
    let args = Value::serialize(&["key"]).expect("a message");
    let value = waited(state.call(StateFunction::Get, args)).expect("a read");
    let value: serde_json::Value = value.deserialize().expect("plain data");
    assert_eq!(value, json!({ "a": [1, "ä", null], "b": 2 }));
}

#[test]
fn agents_never_see_each_others_rows() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("agent.db");
    let open = |agent: &str| {
        let options =
            StoreOptions { file: Some(file.clone()), agent: agent.into(), ..Default::default() };
        let store = Store::open(&options).expect("a store");
        (
            State::new(&store, StateLimits::default()),
            Libraries::new(&store, LibraryLimits::default()),
        )
    };
    let ((state, libraries), (other_state, other_libraries)) = (open("a"), open("b"));
    let args = |value: &[&str]| Value::serialize(value).expect("a message");
    waited(state.call(StateFunction::Set, args(&["key", "value"]))).expect("a write");
    waited(libraries.create("lib", "exports.a = 1", Language::TypeScript, "")).expect("a library");
    let other = waited(other_state.call(StateFunction::Get, args(&["key"]))).expect("a read");
    assert_eq!(other.deserialize::<Option<String>>().expect("null"), None);
    assert_eq!(waited(other_libraries.get("lib")).expect("a read"), None);
    let deleted = waited(other_state.call(StateFunction::Delete, args(&["key"]))).expect("a call");
    assert!(!deleted.deserialize::<bool>().expect("a boolean"));
    assert_eq!(waited(other_libraries.list()).expect("a list"), []);
    assert!(!waited(other_libraries.delete("lib")).expect("a call"));
    assert_eq!(waited(libraries.list()).expect("a list").len(), 1);
}

#[test]
fn libraries_have_names_and_limits() {
    let store = Store::open(&StoreOptions::default()).expect("a store");
    let limits = LibraryLimits { max_source_bytes: 20, max_count: 2 };
    let libraries = Libraries::new(&store, limits);
    let create = |name: &str, source: &str| {
        let created = libraries.create(name, source, Language::JavaScript, "what it does");
        waited(created).map_err(|error| (error.name, error.message))
    };
    let library_error = |text: &str| Err(("LibraryError".to_owned(), text.to_owned()));
    assert_eq!(create("b.c-d_1", "exports.a = 1"), Ok(()));
    assert_eq!(create("b.c-d_1", "1"), library_error("there is a library 'b.c-d_1' already"));
    assert_eq!(
        create("x", &"x".repeat(21)),
        library_error("the source of 'x' is larger than 20 bytes")
    );
    assert_eq!(create("_", ""), Ok(()));
    assert_eq!(create("y", ""), library_error("there are already 2 libraries"));
    for name in ["", ".a", "-a", "a/b", "ä", "a b", &"a".repeat(65), "a\n", "../x"] {
        assert_eq!(
            create(name, "").map_err(|(name, _)| name),
            Err("TypeError".to_owned()),
            "{name}"
        );
    }
    let update = |name: &str, description| {
        let updated = libraries.update(name, "exports.b = 2", Language::TypeScript, description);
        waited(updated).map_err(|error| error.message)
    };
    assert_eq!(update("b.c-d_1", None), Ok(()));
    assert_eq!(update("z", None), Err("there is no library 'z'".to_owned()));
    let library = waited(libraries.get("b.c-d_1")).expect("a read").expect("a library");
    assert_eq!(library.source, "exports.b = 2");
    assert_eq!(library.summary.language, Language::TypeScript);
    assert_eq!(library.summary.description, "what it does");
    assert_eq!(library.summary.modified_on.len(), "2026-01-01T00:00:00.000Z".len());
    let names = waited(libraries.list()).expect("a list").into_iter().map(|library| library.name);
    assert_eq!(names.collect::<Vec<_>>(), ["_", "b.c-d_1"]);
    assert_eq!(waited(libraries.delete("_")), Ok(true));
    assert_eq!(waited(libraries.delete("_")), Ok(false));
    assert_eq!(waited(libraries.get("b.c-d_1")), Ok(Some(library)));
}

#[test]
fn runs_require_libraries_synchronously() {
    let folder = tempfile::tempdir().expect("a folder");
    for file in [None, Some(folder.path().join("agent.db"))] {
        let store = Store::open(&StoreOptions { file, ..Default::default() }).expect("a store");
        let libraries = Libraries::new(&store, LibraryLimits::default());
        let source = "
            const fails = (name) => { try { return library(name) } catch (e) { return [e.name, e.message] } };
            export default [fails('a'), fails('big')?.source?.length, fails('c\\ud800'), fails(1), fails()]";
        let required = || {
            let library = HostFunction::native(libraries.function());
            let globals = Inputs::new().with("library", library);
            let run = run_code(source, ExecutionOptions { globals, ..Default::default() });
            let value = run.wait().expect("a run").into_value().expect("a success");
            value.deserialize::<serde_json::Value>().expect("plain data")
        };
        let none = "Cannot find library 'a'; libraries: none";
        let wrong = json!(["TypeError", "require takes the name of a library"]);
        let lone = "Cannot find library 'c\u{fffd}'; libraries: ";
        let expected = json!([
            ["RequireError", none],
            null,
            ["RequireError", format!("{lone}none")],
            wrong,
            wrong
        ]);
        assert_eq!(required(), expected);
        let create = |name: &str, source: &str, language| {
            waited(libraries.create(name, source, language, "")).expect("a library");
        };
        create("a", "exports.ä = 1", Language::JavaScript);
        // It is too long for the thread of the run.
        create("big", &"x".repeat(200_000), Language::TypeScript);
        let a = json!({ "source": "exports.ä = 1", "language": "javascript" });
        let unknown = json!(["RequireError", format!("{lone}'a', 'big'")]);
        assert_eq!(required(), json!([a, 200_000, unknown, wrong, wrong]));
    }
}

#[test]
fn runs_take_turns() {
    let db = Database::open(&DatabaseOptions::default()).expect("a database");
    let answered = Arc::new(AtomicU32::new(0));
    let (noted, done) = (Arc::clone(&answered), Arc::clone(&answered));
    let globals = Inputs::new()
        .with("db", input(db.functions()))
        .with("note", HostFunction::new(move || noted.fetch_add(1, Ordering::SeqCst)))
        .with("done", HostFunction::new(move || done.load(Ordering::SeqCst)));
    let run = |source: &str| {
        run_code(source, ExecutionOptions { globals: globals.clone(), ..Default::default() })
    };
    let work = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300000) SELECT max(i) FROM n";
    let busy = run(&format!(
        "await Promise.all(Array.from({{ length: 1000 }}, () => db.sql(`{work}`).then(() => note())))"
    ));
    until("the first answer", || answered.load(Ordering::SeqCst) > 0);
    // Its call waits for at most a few of those that were in the line before it.
    let other =
        run("const before = done(); await db.sql('SELECT 1'); export default done() - before");
    let done = other.wait().expect("a run").into_value().expect("it");
    let done = done.deserialize::<u32>().expect("a number");
    assert!(done < 500, "{done} calls of the other run came first");
    busy.terminate(None);
    assert_eq!(busy.wait().expect("a run").status, Status::Terminated);
}

#[test]
fn waiting_for_own_calls_takes_no_time_of_a_call() {
    let work = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 50000) SELECT max(i) FROM n";
    let mut said = String::new();
    // All calls together take longer than one may, and each takes much less. On a busy machine one may be too late, so
    // there are longer limits.
    for timeout_ms in [500, 4_000, 30_000] {
        let limits = DatabaseLimits { timeout_ms, ..Default::default() };
        let options = DatabaseOptions { limits, ..Default::default() };
        let db = Database::open(&options).expect("a database");
        let mut count = 50;
        loop {
            let source = format!(
                "const began = Date.now();
                await Promise.all(Array.from({{ length: {count} }}, () => db.sql(`{work}`)));
                export default Date.now() - began"
            );
            match start(&source, &db).wait().expect("a run").into_value() {
                Ok(took) if took.deserialize::<u64>().expect("a time") > 2 * timeout_ms => return,
                Ok(_) => count *= 2,
                Err(error) => {
                    said = error.to_string();
                    break;
                }
            }
        }
    }
    panic!("{said}");
}

#[test]
fn a_closed_database_ends_its_calls() {
    let db = Database::open(&DatabaseOptions::default()).expect("a database");
    let source = format!(
        "const calls = [db.sql(`{ENDLESS}`), db.sql('SELECT 1')];
         export default (await Promise.allSettled(calls)).map((call) => call.reason.message)"
    );
    let run = start(&source, &db);
    thread::sleep(Duration::from_millis(100));
    db.close();
    let told: Vec<String> =
        run.wait().expect("a run").into_value().expect("it").deserialize().expect("texts");
    assert_eq!(told, ["the kit was closed", "the kit was closed"]);
    assert_eq!(sql(&db, "SELECT 1"), json!(["AbortError", "the kit was closed"]));
}

#[test]
fn an_answer_counts_against_the_limit_of_its_run() {
    let db = Database::open(&DatabaseOptions::default()).expect("a database");
    let many = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 900) SELECT hex(zeroblob(8000)) FROM n";
    let globals = Inputs::new().with("db", input(db.functions()));
    let options =
        ExecutionOptions { globals, memory_limit_bytes: Some(8 << 20), ..Default::default() };
    let run = run_code(format!("export default await db.sql(`{many}`)"), options);
    assert_eq!(run.wait().expect("a run").status, Status::Memory);
}

/// Counts the threads of a process of its own; does nothing as a test of its own.
#[test]
fn child_of_an_idle_database_keeps_no_thread() {
    if std::env::var("ISOLANE_STORE_TEST_IDLE").is_err() {
        return;
    }
    let threads = || {
        let tasks = fs::read_dir("/proc/self/task").expect("threads");
        let names =
            tasks.filter_map(|task| fs::read_to_string(task.ok()?.path().join("comm")).ok());
        names.filter(|name| name.trim() == "isolane-store").count()
    };
    let db = Database::open(&DatabaseOptions::default()).expect("a database");
    for _ in 0..2 {
        // The thread may end before it is counted, if the system delays this one.
        until("a thread", || {
            assert_eq!(sql(&db, "SELECT 1"), json!([[1]]));
            threads() == 1
        });
        until("the thread ends", || threads() == 0);
    }
}

#[test]
fn an_idle_database_keeps_no_thread() {
    let program = std::env::current_exe().expect("this program");
    let mut child = Command::new(program);
    child.args(["--exact", "store_life::child_of_an_idle_database_keeps_no_thread"]);
    let output = child.env("ISOLANE_STORE_TEST_IDLE", "1").output().expect("a child");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}
