//! A service with a database: what is there after the service, what is refused, what is forgotten.

use std::{
    fs,
    path::{Path, PathBuf},
};

use isolane::ErrorKind;
use isolane_environment::{
    ErrorDetails,
    ExecutionExitState::{Failed, Success},
    ExecutionFailure,
    ExecutionState::Running,
    ListQuery, NewProcess, ProblemType, ProcessRecord, ProcessService, ProcessServiceOptions,
    ProcessState::{self, Idle, Queued},
    RunQuery,
};
use rusqlite::Connection;
use serde_json::{Map, Value, json};
use tempfile::TempDir;

use crate::support::{Driven, service};

fn options(file: &Path) -> ProcessServiceOptions {
    let database = Some(file.to_owned());
    ProcessServiceOptions { concurrency: 1, database, ..ProcessServiceOptions::default() }
}

/// A connection of the test itself. As any program that uses SQLite by itself, it has SQLite set up first.
fn sqlite(file: impl AsRef<Path>) -> rusqlite::Result<Connection> {
    isolane_sqlite::initialize().expect("nobody was earlier");
    Connection::open(file)
}

fn folder() -> (TempDir, PathBuf) {
    let folder = TempDir::new().expect("a folder");
    let file = folder.path().join("processes.db");
    (folder, file)
}

fn fields(value: &Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap_or_default()
}

fn code<T: std::fmt::Debug>(refused: Result<T, isolane_environment::ProcessError>) -> ProblemType {
    refused.expect_err("refused").code
}

/// Creates a process, and ends it.
async fn ended(service: &ProcessService, driven: &Driven, code: &str) -> ProcessRecord {
    let pid = service.create(NewProcess::new(code)).await.expect("created").pid;
    driven.begun(pid).await;
    driven.end(pid, Ok(Success));
    service.wait(pid, None).await.expect("known")
}

/// All events after that one, as text.
async fn events(service: &ProcessService, pid: u64, after: u64) -> Vec<String> {
    let mut seen = Vec::new();
    let Some(mut reader) = service.events(pid, after).await.expect("known") else { return seen };
    while let Some(event) = reader.next().await.expect("not behind") {
        seen.push(format!("{} {} {}", event.id, event.kind.as_str(), event.data));
    }
    seen
}

async fn listed(service: &ProcessService, query: ListQuery) -> (Vec<u64>, Option<u64>) {
    let list = service.list(query).await.expect("valid");
    (list.items.iter().map(|record| record.pid).collect(), list.next)
}

#[tokio::test]
async fn a_process_is_the_same_after_the_service() {
    let (_folder, file) = folder();
    let (first, driven) = service(options(&file));
    let pid = first.create(NewProcess::new("the code")).await.expect("created").pid;
    let bindings = driven.begun(pid).await;
    bindings.set_state(pid, Running).expect("its number");
    bindings.stdout(pid, b"a\xc3").expect("small");
    bindings.stdout(pid, b"\xa4\0b").expect("small");
    bindings.stderr(pid, "err").expect("small");
    bindings.output(pid, fields(&json!({ "b": 1, "a": 2 }))).expect("small");
    bindings.stdout(pid, "c").expect("small");
    bindings.output(pid, fields(&json!({ "b": { "x": null }, "__proto__": 3 }))).expect("small");
    let details = ErrorDetails {
        name: Some("TypeError".to_owned()),
        message: "no".to_owned(),
        line: Some(3),
        ..ErrorDetails::default()
    };
    bindings.error(pid, ExecutionFailure::Details(details)).expect("its number");
    driven.end(pid, Ok(Failed));
    let record = first.wait(pid, None).await.expect("known");
    let all = events(&first, pid, 0).await;
    let idle = NewProcess { autorun: false, timeout_ms: Some(5), ..NewProcess::new("later") };
    let idle = first.create(idle).await.expect("created");
    first.shutdown().await;

    let (second, driven) = service(options(&file));
    assert_eq!(second.get(pid).await, Ok(record.clone()));
    assert_eq!(second.wait(pid, None).await, Ok(record.clone()));
    assert_eq!(second.get(idle.pid).await, Ok(idle.clone()));
    assert_eq!(second.code(pid).await.as_deref(), Ok("the code"));
    assert_eq!(second.stdout(pid).await.as_deref(), Ok("a\u{e4}\0bc"));
    assert_eq!(second.stderr(pid).await.as_deref(), Ok("err"));
    let output = second.output(pid).await.map(|output| Value::Object(output).to_string());
    assert_eq!(output.as_deref(), Ok(r#"{"b":{"x":null},"a":2,"__proto__":3}"#));
    assert_eq!(events(&second, pid, 0).await, all);
    assert_eq!(events(&second, pid, 3).await, all[3..]);
    let last = all.len() as u64;
    assert!(second.events(pid, last).await.expect("known").is_none(), "none can follow");
    let without = |record: &ProcessRecord| ProcessRecord { output: None, ..record.clone() };
    let list = second.list(ListQuery::default()).await.expect("valid");
    assert_eq!(list.items, [without(&idle), without(&record)]);
    assert_eq!(second.stats().processes[0], (ProcessState::Idle, 2));

    // The same calls are allowed and refused, too.
    assert_eq!(code(second.kill(pid).await), ProblemType::AlreadyIdle);
    assert_eq!(code(second.run(pid, RunQuery::default()).await), ProblemType::HasResults);
    let again = second.run(pid, RunQuery { force: true }).await.expect("queued");
    assert_eq!((again.state, again.exit_state, again.stdout.bytes), (Queued, None, 0));
    assert_eq!(again.created_at, record.created_at);
    driven.begun(pid).await.stdout(pid, "new").expect("small");
    assert_eq!(driven.inputs()[0].code, "the code");
    driven.end(pid, Ok(Success));
    second.wait(pid, None).await.expect("known");
    assert_eq!(second.stdout(pid).await.as_deref(), Ok("new"));
    let seen = events(&second, pid, 0).await;
    assert_eq!(seen[0], format!("{} state {{\"state\":\"queued\"}}", last + 1));
    assert_eq!(code(second.kill(77).await), ProblemType::NotFound);
    assert_eq!(code(second.delete(77).await), ProblemType::NotFound);
    second.delete(pid).await.expect("idle");
    assert_eq!(code(second.get(pid).await), ProblemType::NotFound);
    second.delete(idle.pid).await.expect("idle");
    second.shutdown().await;

    let (third, driven) = service(options(&file));
    assert_eq!(listed(&third, ListQuery::default()).await, (vec![], None));
    assert_eq!(ended(&third, &driven, "").await.pid, idle.pid + 1, "no pid is used again");
    third.shutdown().await;
}

/// The files as a crash would leave them.
#[cfg(unix)]
fn copied(file: &Path, folder: &Path) -> PathBuf {
    // Another program copies: if this one closed the file, the system would take the service's lock.
    for end in ["", "-wal"] {
        let from = format!("{}{end}", file.display());
        let to = folder.join(format!("copy.db{end}"));
        let done = std::process::Command::new("cp").arg(from).arg(to).status().expect("it starts");
        assert!(done.success());
    }
    folder.join("copy.db")
}

#[cfg(unix)]
#[tokio::test]
async fn what_had_not_finished_is_failed_after_a_crash() {
    let (folder, file) = folder();
    let (first, driven) = service(options(&file));
    let runs = first.create(NewProcess::new("runs")).await.expect("created").pid;
    let waits = first.create(NewProcess::new("waits")).await.expect("created").pid;
    let idle = NewProcess { autorun: false, ..NewProcess::new("idle") };
    let idle = first.create(idle).await.expect("created").pid;
    let bindings = driven.begun(runs).await;
    bindings.set_state(runs, Running).expect("its number");
    bindings.stdout(runs, "text").expect("small");
    bindings.output(runs, fields(&json!({ "n": 1 }))).expect("small");
    // No call waits for that: the text is saved within a second.
    let copy = loop {
        let copy = copied(&file, folder.path());
        let found = sqlite(&copy)
            .and_then(|copy| {
                let sql = "SELECT count(*) FROM events WHERE kind IN (1, 3)";
                copy.query_row(sql, [], |row| row.get::<_, i64>(0))
            })
            .expect("a database");
        if found == 2 {
            break copied(&file, folder.path());
        }
        tokio::task::yield_now().await;
    };
    let (second, _) = service(options(&copy));
    for (pid, was) in [(runs, "running"), (waits, "queued")] {
        let record = second.get(pid).await.expect("known");
        let error = format!("the service ended while this process was {was}");
        assert_eq!((record.state, record.exit_state), (Idle, Some(Failed)));
        assert_eq!(record.error.as_deref(), Some(error.as_str()));
        assert!(record.finished_at.is_some());
        let seen = events(&second, pid, 0).await;
        let (end, before) = seen.split_last().expect("events");
        assert!(end.contains(" exit ") && end.contains(&error), "{end}");
        assert!(before.last().is_some_and(|event| event.contains(r#""idle""#)), "{before:?}");
        let ids: Vec<u64> =
            seen.iter().filter_map(|event| event.split(' ').next()?.parse().ok()).collect();
        // The first service may have given out more ids than it saved, and a reader has the last of them.
        let ids_left_out = if pid == runs { 1 << 20 } else { 0 };
        let saved = 1..=seen.len() as u64 - 2;
        let ends = saved.end() + ids_left_out + 1..=saved.end() + ids_left_out + 2;
        assert!(ids.iter().copied().eq(saved.clone().chain(ends)), "{ids:?}");
        let resumed = events(&second, pid, saved.end() + ids_left_out).await;
        assert_eq!(resumed, seen[seen.len() - 2..]);
    }
    assert_eq!(second.stdout(runs).await.as_deref(), Ok("text"));
    assert_eq!(second.output(runs).await, Ok(fields(&json!({ "n": 1 }))));
    assert_eq!(second.get(idle).await.expect("known").exit_state, None);
    // A reader of a process that was never run waits for it.
    let mut reader = second.events(idle, 0).await.expect("known").expect("events can follow");
    second.run(idle, RunQuery::default()).await.expect("queued");
    let event = reader.next().await.expect("not behind").expect("not over");
    assert_eq!((event.id, &*event.data), (1, r#"{"state":"queued"}"#));
    second.shutdown().await;
    first.shutdown().await;
}

#[tokio::test]
async fn finished_processes_are_kept_for_a_while() {
    let (_folder, file) = folder();
    let few = || ProcessServiceOptions { retain_count: 2, ..options(&file) };
    let (first, driven) = service(few());
    for code in ["a", "b", "c", "d", "e"] {
        ended(&first, &driven, code).await;
    }
    // As many as run at once stay a while beyond the number, once the last one is saved.
    while first.stats().processes[0] != (Idle, 3) {
        tokio::task::yield_now().await;
    }
    assert_eq!(listed(&first, ListQuery::default()).await, (vec![5, 4, 3], None));
    assert_eq!(code(first.get(2).await), ProblemType::NotFound);
    assert_eq!(code(first.stdout(2).await), ProblemType::NotFound);
    first.shutdown().await;

    let rows = sqlite(&file).expect("nobody has it");
    let left: i64 = rows
        .query_row("SELECT count(DISTINCT pid) FROM events", [], |row| row.get(0))
        .expect("a table");
    assert_eq!(left, 3, "their events are gone, too");
    let hours = 169 * 3_600_000_i64;
    let sql = "UPDATE processes SET idle_since = idle_since - ?";
    rows.execute(sql, [hours]).expect("a table");
    drop(rows);
    let (second, driven) = service(few());
    assert_eq!(listed(&second, ListQuery::default()).await, (vec![], None));
    assert_eq!(ended(&second, &driven, "").await.pid, 6);
    second.shutdown().await;
}

#[tokio::test]
async fn lists_have_processes_of_the_file_and_of_the_memory() {
    let (_folder, file) = folder();
    let (first, driven) = service(options(&file));
    for number in 1..=5 {
        let pid = first.create(NewProcess::new("")).await.expect("created").pid;
        driven.begun(pid).await;
        driven.end(pid, Ok(if number % 2 == 0 { Failed } else { Success }));
        first.wait(pid, None).await.expect("known");
    }
    first.shutdown().await;
    let (second, driven) = service(options(&file));
    ended(&second, &driven, "").await;
    second.create(NewProcess::new("runs")).await.expect("created");
    second.create(NewProcess::new("waits")).await.expect("created");
    driven.begun(7).await.set_state(7, Running).expect("its number");
    let query = ListQuery { limit: 3, ..ListQuery::default() };
    assert_eq!(listed(&second, query).await, (vec![8, 7, 6], Some(6)));
    let query = ListQuery { before: Some(6), ..query };
    assert_eq!(listed(&second, query).await, (vec![5, 4, 3], Some(3)));
    let query = ListQuery { before: Some(3), ..query };
    assert_eq!(listed(&second, query).await, (vec![2, 1], None));
    for before in [1 << 63, u64::MAX] {
        let query = ListQuery { before: Some(before), ..ListQuery::default() };
        let all = (vec![8, 7, 6, 5, 4, 3, 2, 1], None);
        assert_eq!(listed(&second, query).await, all, "before {before}");
    }
    let query = ListQuery { state: Some(Idle), ..ListQuery::default() };
    assert_eq!(listed(&second, query).await, (vec![6, 5, 4, 3, 2, 1], None));
    let query = ListQuery { state: Some(Queued), ..ListQuery::default() };
    assert_eq!(listed(&second, query).await, (vec![8], None));
    let query = ListQuery { exit_state: Some(Success), limit: 3, ..ListQuery::default() };
    assert_eq!(listed(&second, query).await, (vec![6, 5, 3], Some(3)));
    let query = ListQuery { before: Some(3), ..query };
    assert_eq!(listed(&second, query).await, (vec![1], None));
    let counts = second.stats().processes;
    assert_eq!(counts.iter().map(|(_, count)| *count).collect::<Vec<_>>(), [6, 1, 1, 0]);
    driven.end(7, Ok(Success));
    driven.begun(8).await;
    driven.end(8, Ok(Success));
    second.shutdown().await;
}

#[tokio::test]
async fn a_large_process_leaves_the_memory_and_its_readers_go_on() {
    const PIECE: usize = 4 << 20;
    let (_folder, file) = folder();
    let (service, driven) =
        service(ProcessServiceOptions { max_stream_bytes: 64 << 20, ..options(&file) });
    let pid = service.create(NewProcess::new("")).await.expect("created").pid;
    let bindings = driven.begun(pid).await;
    let mut reader = service.events(pid, 1).await.expect("known").expect("events can follow");
    for _ in 0..5 {
        bindings.stdout(pid, vec![b'x'; PIECE]).expect("small");
        let event = reader.next().await.expect("not behind").expect("not over");
        assert_eq!(event.data.len(), PIECE + r#"{"text":""}"#.len());
    }
    driven.end(pid, Ok(Success));
    let mut kinds = Vec::new();
    while let Some(event) = reader.next().await.expect("not behind") {
        kinds.push((event.id, event.kind.as_str()));
    }
    assert_eq!(kinds, [(7, "state"), (8, "exit")]);
    // Those that end later push it out.
    ended(&service, &driven, "").await;
    assert_eq!(service.stdout(pid).await.map(|text| text.len()), Ok(5 * PIECE));
    assert_eq!(events(&service, pid, 0).await.len(), 8);
    service.shutdown().await;
    // The database is closed, and the memory has the last ones still.
    assert_eq!(code(service.get(pid).await), ProblemType::ShuttingDown);
}

#[tokio::test]
async fn patches_that_became_one_are_one_in_the_file() {
    let (_folder, file) = folder();
    let (first, driven) =
        service(ProcessServiceOptions { max_output_bytes: 100, ..options(&file) });
    let pid = first.create(NewProcess::new("")).await.expect("created").pid;
    let bindings = driven.begun(pid).await;
    for number in 0..40_000 {
        let patch = json!({ "n": number, (if number == 0 { "first" } else { "n" }): number });
        bindings.output(pid, fields(&patch)).expect("small");
    }
    driven.end(pid, Ok(Success));
    let record = first.wait(pid, None).await.expect("known");
    let all = events(&first, pid, 0).await;
    first.shutdown().await;
    let (second, _) = service(options(&file));
    assert_eq!(second.get(pid).await, Ok(record));
    assert_eq!(events(&second, pid, 0).await, all);
    second.shutdown().await;
}

#[tokio::test]
async fn one_service_has_a_file() {
    let (_folder, file) = folder();
    let (first, _) = service(options(&file));
    let refused = ProcessService::new(options(&file)).expect_err("refused");
    let message = format!(
        "database '{}' is in use by another service: stop that one, or name another file",
        file.display()
    );
    assert_eq!((refused.kind(), refused.message()), (ErrorKind::Unavailable, message.as_str()));
    first.create(NewProcess::new("")).await.expect("the first one works on");
    first.shutdown().await;
    let (second, _) = service(options(&file));
    second.shutdown().await;
    for end in ["-wal", "-shm", "-journal"] {
        let left = PathBuf::from(format!("{}{end}", file.display()));
        assert!(!left.exists(), "{}", left.display());
    }
}

#[tokio::test]
async fn a_file_that_cannot_be_one_is_misuse() {
    let (folder, file) = folder();
    let path = |name: &str| folder.path().join(name);
    fs::write(path("text"), "no database at all, and longer than the head of one ".repeat(20))
        .expect("a file");
    let other = sqlite(path("other.db")).expect("a file");
    other.execute_batch("CREATE TABLE theirs (x)").expect("a table");
    drop(other);
    let (first, _) = service(options(&file));
    first.shutdown().await;
    let newer = sqlite(&file).expect("nobody has it");
    newer.pragma_update(None, "user_version", 2).expect("a database");
    drop(newer);
    let at = folder.path().display().to_string();
    for (name, message) in [
        ("text", "database '{}/text' is no SQLite database: name another file"),
        ("other.db", "database '{}/other.db' belongs to another program: name another file"),
        (
            "processes.db",
            "database '{}/processes.db' has version 2, and this Isolane knows up to 1: use a newer Isolane, or another file",
        ),
        (
            "none/x.db",
            "database '{}/none/x.db': the folder '{}/none' does not exist: make it, or name another file",
        ),
        ("", "database '{}/' is a folder: name a file in it"),
    ] {
        let error = ProcessService::new(options(&path(name))).expect_err("refused");
        let expected = message.replace("{}", &at);
        assert_eq!((error.kind(), error.message()), (ErrorKind::Type, expected.as_str()));
    }
    #[cfg(target_os = "linux")]
    {
        // The system lets nobody write a program that runs, not even root.
        let program = std::env::current_exe().expect("a program");
        let error = ProcessService::new(options(&program)).expect_err("refused");
        let expected = format!("database '{}' cannot be written: ", program.display());
        assert!(error.message().starts_with(&expected), "{}", error.message());
    }
    #[cfg(unix)]
    {
        let error = ProcessService::new(options(Path::new("/dev/null"))).expect_err("refused");
        let expected = "database '/dev/null' is no regular file: name another file";
        assert_eq!(error.message(), expected);
    }
    let error = ProcessService::new(options(Path::new(""))).expect_err("refused");
    assert_eq!(error.message(), "database must be a path, got an empty string");
    let text = fs::read_to_string(path("text")).expect("a file");
    assert!(text.starts_with("no database"), "it is as it was");
}

#[cfg(unix)]
#[tokio::test]
async fn only_the_owner_reads_the_files() {
    use std::os::unix::fs::PermissionsExt;
    let (_folder, file) = folder();
    fs::write(&file, "").expect("a file");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).expect("the owner");
    let (service, _) = service(options(&file));
    service.create(NewProcess::new("")).await.expect("created");
    for name in [file.display().to_string(), format!("{}-wal", file.display())] {
        let mode = fs::metadata(&name).expect("a file").permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
    service.shutdown().await;
}
