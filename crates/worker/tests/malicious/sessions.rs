//! Sessions whose workers are compromised: whatever these send, only their own session begins anew.

use std::time::Instant;

use isolane::{
    CellOptions, Cells, Error, ExecutionResult, Isolation, Runtime, RuntimeOptions, Session,
    SessionOptions, SessionState, Status,
};

use crate::{CEILING, MEMORY_LIMIT_BYTES, error_name, runtime};

fn session(runtime: &Runtime) -> Session {
    session_of(runtime, Cells::Queue)
}

fn session_of(runtime: &Runtime, cells: Cells) -> Session {
    let options = SessionOptions {
        cells,
        memory_limit_bytes: Some(MEMORY_LIMIT_BYTES),
        ..SessionOptions::default()
    };
    runtime.session(options).expect("a session")
}

/// The result of a cell whose worker does that act, if it is the first one in its worker.
fn run(session: &Session, act: &str) -> ExecutionResult {
    let started = Instant::now();
    let cell = session.run(format!("/*act:cell-{act}*/"), CellOptions::default());
    let result = cell.wait().expect("no misuse");
    assert!(started.elapsed() < CEILING, "{act}: {:?}", started.elapsed());
    result
}

fn state(result: &ExecutionResult) -> SessionState {
    result.cell.as_ref().expect("the outcome of a cell").session
}

fn is_lost(result: &ExecutionResult, act: &str) {
    assert_eq!(error_name(result), "WorkerLost", "{act}: {result:?}");
    assert_eq!((result.status, state(result)), (Status::Error, SessionState::Reset), "{act}");
}

fn is_honest(session: &Session, act: &str) {
    for _ in 0..3 {
        let result = run(session, "honest");
        assert_eq!((result.status, state(&result)), (Status::Success, SessionState::Kept), "{act}");
    }
}

pub(crate) fn no_worker_says_that() {
    let runtime = runtime();
    let other = session(&runtime);
    is_honest(&other, "another session");
    let acts = [
        "state",
        "success",
        "of-a-run",
        "end-undone",
        "handed",
        "handed-one",
        "made-up",
        "undone",
        "undoes",
        "numbered",
        "turn",
        "placed",
        "value-from",
        "value",
        "value-promise",
        "no-value",
        "trailing",
        "names",
        "copied",
        "settle-call",
        "settle-promise",
        "parks-again",
        "half",
        "quit",
    ];
    for act in acts {
        let session = session(&runtime);
        is_lost(&run(&session, act), act);
        is_honest(&session, act);
    }
    for act in ["peak", "long-text"] {
        let result = run(&session(&runtime), act);
        assert_eq!(result.status, Status::Success, "{act}: {result:?}");
        assert!(result.memory_used_bytes.is_some_and(|bytes| bytes < 1 << 53), "{result:?}");
        let text = result.cell.and_then(|cell| cell.text).unwrap_or_default();
        assert!(text.len() <= 16 << 10, "{}", text.len());
    }
    let logs = run(&session(&runtime), "logs");
    assert_eq!((logs.status, state(&logs)), (Status::Memory, SessionState::Reset));
    // The next cell pays for frames that come while the session rests.
    let twice = session(&runtime);
    assert_eq!(run(&twice, "twice").status, Status::Success);
    let started = Instant::now();
    while twice.names().wait().is_ok() {
        assert!(started.elapsed() < CEILING, "the session has not noticed");
    }
    is_lost(&run(&twice, "honest"), "twice");
    is_honest(&twice, "twice");
    is_honest(&other, "another session");
}

pub(crate) fn no_worker_interleaves_like_that() {
    let runtime = runtime();
    let session = || session_of(&runtime, Cells::Interleave);
    let is_honest = |session: &Session, act: &str| {
        for _ in 0..3 {
            let result = run(session, "flight-honest");
            assert_eq!(
                (result.status, state(&result)),
                (Status::Success, SessionState::Kept),
                "{act}"
            );
        }
    };
    let other = session();
    is_honest(&other, "another session");
    let acts = [
        "turn-unknown",
        "turn-zero",
        "placed",
        "placed-in-it",
        "unknown",
        "of-a-queue",
        "handed",
        "undoes-unknown",
        "undoes-itself",
        "undoes-kept",
        "undoes-many",
        "end-undone",
        "parks-again",
        "parks-too-far",
        "names",
        "copied",
        "of-a-run",
        "quit",
    ];
    for act in acts {
        let session = session();
        is_lost(&run(&session, &format!("flight-{act}")), act);
    }
    for act in ["log-at-rest", "turn-at-rest"] {
        let session = session();
        assert_eq!(run(&session, &format!("flight-{act}")).status, Status::Success, "{act}");
        let started = Instant::now();
        while session.names().wait().is_ok() {
            assert!(started.elapsed() < CEILING, "the session has not noticed");
        }
    }
    // Nobody has asked for the end.
    let reset = run(&session(), "flight-reset");
    assert_eq!((reset.status, state(&reset)), (Status::Error, SessionState::Reset), "{reset:?}");
    let undone = run(&session(), "flight-with-another");
    assert_eq!(error_name(&undone), "SessionRolledBack", "{undone:?}");
    is_honest(&other, "another session");
}

/// Checks that a question was answered with an error, and that the next cell is told.
fn is_refused<T>(session: &Session, answer: &Result<T, Error>, act: &str) {
    assert!(answer.is_err(), "{act}: there is an answer");
    let told = run(session, "honest");
    assert_eq!(state(&told), SessionState::Reset, "{act}: {told:?}");
    assert_ne!(told.status, Status::Success, "{act}");
    is_honest(session, act);
}

pub(crate) fn no_worker_answers_that() {
    let runtime = runtime();
    let other = session(&runtime);
    is_honest(&other, "another session");
    let asked = |act: &str| {
        let session = session(&runtime);
        assert_eq!(run(&session, act).status, Status::Success, "{act}");
        session
    };
    let names = [
        "count",
        "kind",
        "fewer",
        "no-chunk",
        "utf8",
        "large",
        "endless",
        "ended",
        "run-ended",
        "copied",
        "state",
        "log",
        "quit",
    ];
    for lie in names {
        let session = asked(&format!("names-{lie}"));
        is_refused(&session, &session.names().wait(), lie);
    }
    let copies = [
        "answer",
        "no-state",
        "two-states",
        "state-large",
        "state-claims",
        "names",
        "count",
        "endless",
        "ended",
        "run-ended",
        "log",
        "quit",
    ];
    for lie in copies {
        let session = asked(&format!("copy-{lie}"));
        is_refused(&session, &session.fork().wait(), lie);
    }
    // The host does not look into a state. It is another worker's task to refuse it.
    let session = asked("copy-state");
    let copy = session.fork().wait().expect("a copy");
    is_honest(&copy, "a copy");
    let unanswered = asked("copy-unanswered").fork().wait().expect_err("no copy").to_string();
    assert!(unanswered.starts_with("4294967295 calls"), "{unanswered}");
    is_honest(&other, "another session");
}

pub(crate) fn silence() {
    let options = RuntimeOptions {
        isolation: Isolation::Process,
        worker: Some(std::env::current_exe().expect("this program")),
        safety_cap_ms: Some(50),
        ..RuntimeOptions::default()
    };
    let runtime = Runtime::new(&options).expect("a runtime of processes");
    let cell = session(&runtime);
    let timeout = CellOptions { timeout_ms: Some(20), ..CellOptions::default() };
    let ended = cell.run("/*act:cell-silent*/", timeout).wait().expect("no misuse");
    assert_eq!((error_name(&ended), state(&ended)), ("Timeout", SessionState::Reset));
    is_honest(&cell, "a silent cell");
    for act in ["names-silent", "copy-silent"] {
        let session = session(&runtime);
        assert_eq!(run(&session, act).status, Status::Success, "{act}");
        let started = Instant::now();
        if act == "names-silent" {
            is_refused(&session, &session.names().wait(), act);
        } else {
            is_refused(&session, &session.fork().wait(), act);
        }
        assert!(started.elapsed() < CEILING, "{act}");
    }
}
