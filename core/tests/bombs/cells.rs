//! Bombs as cells of one session: each is undone, and the next cell finds what was there before.

use std::{thread, time::Duration};

use isolane::{CellRequest, ExecutionResult, Runtime, RuntimeOptions, SessionState, Status};

use super::{MEASURED, MIB, all, alone, bombs, host, process};

/// How often all of them go off.
const ROUNDS: usize = 3;

/// Bombs in builtins that never end by themselves: the thread stays there with the session's isolate.
const STAY: [&str; 2] = ["JSON of shared", "flattened"];

#[test]
fn bombs_are_undone_in_a_session_of_many() {
    if !alone("cells::bombs_are_undone_in_a_session_of_many") {
        return;
    }
    let limit = 8 * MIB;
    let options = RuntimeOptions { compile_cache_bytes: Some(0), ..RuntimeOptions::default() };
    let runtime = Runtime::new(&options).expect("valid options");
    let session = host::session(&runtime, limit);
    let run = |source: &str| host::cell(&session, CellRequest::new(source.to_owned().into()));
    let first = run("const rows = [1, 2, 3]; let held = 'before'; rows.length");
    assert_eq!(first.status, Status::Success);
    let mut bombs = bombs(limit);
    bombs.retain(|bomb| !STAY.iter().any(|name| bomb.name.starts_with(name)));
    let mut rounds = Vec::new();
    for _ in 0..ROUNDS {
        for bomb in bombs.iter().step_by(if all() { 1 } else { 17 }) {
            let result = run(&format!("held = 'bomb'; rows.push(4); {}", bomb.source));
            let state = result.cell.as_ref().map(|cell| cell.session);
            // A source that has no room to be compiled never ran.
            let untouched = state == Some(SessionState::Kept) && is_of_compiling(&result);
            let undone = state == Some(SessionState::RolledBack) || untouched;
            let status = result.status;
            assert!(undone && status == Status::Memory, "{}: {status:?}, {state:?}", bomb.name);
            let next = run("if (rows.length !== 3 || held !== 'before') throw 1; rows.length");
            assert_eq!(next.status, Status::Success, "after {}: {:?}", bomb.name, next.error);
        }
        rounds.push(measure());
    }
    // The first rounds bring in what stays: code, and the arenas of the process's allocator.
    let [.., before, after] = &mut rounds[..] else { panic!("several rounds") };
    // Isolates that are kept ready may come back at this moment, and a thread may still give back what a bomb took.
    for _ in 0..40 {
        if *after <= *before + limit {
            break;
        }
        thread::sleep(Duration::from_millis(50));
        *after = measure();
    }
    let (before, after) = (*before, *after);
    assert!(!MEASURED || after <= before + limit, "{rounds:?}");
    if all() {
        println!("after each round: {rounds:?} bytes");
    }
}

fn measure() -> usize {
    process::trim();
    process::resident_bytes()
}

fn is_of_compiling(result: &ExecutionResult) -> bool {
    let message = result.error.as_ref().map(|error| error.message.as_str()).unwrap_or_default();
    message.starts_with("compiling ")
}
