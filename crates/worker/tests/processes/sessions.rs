//! Tests of sessions in processes: one worker each, its ends, and what becomes of the session.
//!
//! The table of sessions tests the outcomes of cells, in processes too.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

use crate::family::{self, alone, eventually};
use isolane::{
    CellOptions, Cells, ExecutionResult, HostError, HostFunction, Inputs, Isolation, Runtime,
    RuntimeOptions, SandboxFunction, Session, SessionOptions, SessionState, SessionUpdate, Status,
};

fn options() -> RuntimeOptions {
    RuntimeOptions {
        isolation: Isolation::Process,
        worker: Some(env!("CARGO_BIN_EXE_isolane-worker").into()),
        ready_isolates: Some(0),
        ..RuntimeOptions::default()
    }
}

pub(crate) fn runtime() -> Runtime {
    Runtime::new(&options()).expect("a runtime of processes")
}

pub(crate) fn with(runtime: &Runtime, globals: Inputs) -> Session {
    let options = SessionOptions { globals, ..SessionOptions::default() };
    runtime.session(options).expect("a session")
}

pub(crate) fn session(runtime: &Runtime) -> Session {
    with(runtime, Inputs::new())
}

pub(crate) fn run(session: &Session, source: &str) -> ExecutionResult {
    session.run(source, CellOptions::default()).wait().expect("no misuse")
}

pub(crate) fn state(result: &ExecutionResult) -> SessionState {
    result.cell.as_ref().expect("the outcome of a cell").session
}

fn error(result: &ExecutionResult) -> &str {
    result.error.as_ref().map_or("", |error| &error.name)
}

pub(crate) fn number(result: ExecutionResult) -> u32 {
    assert_eq!(result.status, Status::Success, "{:?}", result.error);
    assert_eq!(state(&result), SessionState::Kept);
    result.into_value().expect("a value").deserialize().expect("a number")
}

/// A host function that receives functions of the sandbox, and the functions received.
pub(crate) fn give() -> (HostFunction, mpsc::Receiver<SandboxFunction>) {
    let (give, given) = mpsc::channel();
    let function = HostFunction::new(move |callback: SandboxFunction| {
        give.send(callback).map_err(|_| HostError::new("Error", "the test is over"))
    });
    (function, given)
}

/// An asynchronous host function, and the gate that its answer waits for.
pub(crate) fn later(answer: u32) -> (HostFunction, Arc<AtomicBool>) {
    let gate = Arc::new(AtomicBool::new(false));
    let open = Arc::clone(&gate);
    let function = HostFunction::future(move || {
        let gate = Arc::clone(&gate);
        async move {
            while !gate.load(Ordering::SeqCst) {
                tokio::task::yield_now().await;
            }
            Ok::<_, HostError>(answer)
        }
    });
    (function, open)
}

/// The end of a cell, by name, and its effect.
pub(crate) fn end(result: &ExecutionResult) -> (Status, &str, SessionState) {
    (result.status, error(result), state(result))
}

#[test]
fn cells_find_what_earlier_ones_left_in_one_process() {
    let _alone = alone();
    let runtime = runtime();
    let session = session(&runtime);
    assert_eq!(runtime.stats().sessions, 1);
    assert_eq!(runtime.stats().workers, 0);
    assert_eq!(number(run(&session, "let x: number = 1; const f = () => x; x")), 1);
    let first = family::workers();
    for n in 1..20 {
        assert_eq!(number(run(&session, "x += 1; f()")), n + 1);
    }
    assert_eq!(family::workers(), first);
    assert_eq!(first.len(), 1);
    let failed = run(&session, "const y = 2; throw new TypeError('no')");
    assert_eq!(end(&failed), (Status::Error, "TypeError", SessionState::Kept));
    assert_eq!(end(&run(&session, "let")).0, Status::LinkError);
    assert_eq!(number(run(&session, "x + y")), 22);
    let names = session.names().wait().expect("names");
    let names: Vec<_> = names.iter().map(|name| name.name.as_str()).collect();
    assert_eq!(names, ["x", "f", "y"]);
    assert_eq!(number(session.call("f", ()).wait().expect("no misuse")), 20);
    assert_eq!(runtime.stats().parked + runtime.stats().computing, 0);
}

#[test]
#[cfg_attr(isolane_portable, ignore = "the portable code has no slots, so no checkpoints")]
fn what_ends_a_cell_does_not_end_the_session() {
    let _alone = alone();
    let runtime = Runtime::new(&RuntimeOptions { safety_cap_ms: Some(1_000), ..options() });
    let runtime = runtime.expect("a runtime of processes");
    let (tell, begun) = mpsc::channel();
    let begin = HostFunction::new(move || tell.send(()).expect("the test waits"));
    let begins = || begun.recv_timeout(Duration::from_mins(2)).expect("it begins");
    let session = runtime
        .session(SessionOptions {
            globals: Inputs::new().with("begun", begin),
            memory_limit_bytes: Some(8 << 20),
            ..SessionOptions::default()
        })
        .expect("a session");
    assert_eq!(number(run(&session, "let x = 1; x")), 1);
    let worker = family::workers();
    for loops in ["for (;;);", "await null; for (;;);", "await new Promise(() => {})"] {
        let source = format!("x = 99; let y = 1; {loops}");
        let timeout = CellOptions { timeout_ms: Some(200), ..CellOptions::default() };
        let overdue = session.run(&source, timeout).wait().expect("no misuse");
        assert_eq!(end(&overdue), (Status::Terminated, "Timeout", SessionState::RolledBack));
        let message = overdue.error.expect("an error").message;
        assert_eq!(message, "the cell took longer than 200 ms");
        let source = format!("x = 99; let y = 1; begun(); {loops}");
        let ends = session.run(&source, CellOptions::default());
        begins();
        ends.terminate(Some("enough"));
        let ended = ends.wait().expect("no misuse");
        assert_eq!(end(&ended), (Status::Terminated, "Terminated", SessionState::RolledBack));
    }
    let capped = run(&session, "x = 5; for (;;);");
    assert_eq!(end(&capped), (Status::Terminated, "SafetyCap", SessionState::RolledBack));
    let full = run(&session, "x = 6; const all = []; for (;;) all.push(new Array(1000).fill(0))");
    assert_eq!(end(&full), (Status::Memory, "MemoryLimit", SessionState::RolledBack));
    let stalled = run(&session, "x = 7; await new Promise(() => {})");
    assert_eq!(end(&stalled).2, SessionState::RolledBack);
    assert_eq!(number(run(&session, "x")), 1);
    assert_eq!(error(&run(&session, "y")), "ReferenceError");
    assert_eq!(family::workers(), worker);
    // One that is ended in the queue leaves everything as it is.
    let (long, waits) = (
        session.run("begun(); for (;;);", CellOptions::default()),
        session.run("x = 2", CellOptions::default()),
    );
    waits.terminate(None);
    let waited = waits.wait().expect("no misuse");
    assert_eq!(end(&waited), (Status::Terminated, "Terminated", SessionState::Kept));
    begins();
    long.terminate(None);
    assert_eq!(state(&long.wait().expect("no misuse")), SessionState::RolledBack);
    assert_eq!(number(run(&session, "x")), 1);
}

#[test]
fn a_session_whose_worker_is_killed_begins_anew_in_another() {
    let _alone = alone();
    let runtime = runtime();
    let globals = Inputs::new().with("base", 10);
    let session = with(&runtime, globals);
    session
        .update(SessionUpdate {
            globals: Inputs::new().with("more", 5),
            ..SessionUpdate::default()
        })
        .expect("an update");
    assert_eq!(number(run(&session, "let x = base + more; x")), 15);
    // In the middle of a cell.
    let computes = session.run("x = 2; for (;;);", CellOptions::default());
    let next = session.run("typeof x === 'undefined' ? base + more : 0", CellOptions::default());
    thread::sleep(Duration::from_millis(20));
    family::kill_workers();
    let lost = computes.wait().expect("no misuse");
    assert_eq!(end(&lost), (Status::Error, "WorkerLost", SessionState::Reset));
    assert_eq!(number(next.wait().expect("no misuse")), 15);
    // Between two cells: the next one is told.
    assert_eq!(number(run(&session, "let x = 3; x")), 3);
    family::kill_workers();
    eventually("the worker to go", || family::workers().is_empty());
    eventually("the host to notice", || runtime.stats().workers == 0);
    let lost = run(&session, "x");
    assert_eq!(end(&lost), (Status::Error, "WorkerLost", SessionState::Reset));
    assert_eq!(number(run(&session, "base + more")), 15);
    assert!(session.names().wait().expect("names").is_empty());
}

#[test]
fn a_builtin_that_does_not_return_costs_the_worker() {
    let _alone = alone();
    let runtime = runtime();
    let session = session(&runtime);
    assert_eq!(number(run(&session, "let x = 1; x")), 1);
    let source = "const s = 'a'.repeat(1e6); /^(a+)+$/.test(s + 'b'); [].concat(...[]); 1";
    let stuck = session.run(source, CellOptions::default());
    thread::sleep(Duration::from_millis(50));
    stuck.terminate(None);
    let stuck = stuck.wait().expect("no misuse");
    assert_eq!(stuck.status, Status::Terminated);
    let after = run(&session, "typeof x");
    assert_eq!(after.status, Status::Success);
}

#[test]
fn reset_close_and_drop_end_the_worker() {
    let _alone = alone();
    let runtime = runtime();
    let session = session(&runtime);
    assert_eq!(number(run(&session, "let x = 1; x")), 1);
    let (computes, waits) = (
        session.run("for (;;);", CellOptions::default()),
        session.run("1", CellOptions::default()),
    );
    thread::sleep(Duration::from_millis(10));
    session.reset().wait().expect("a reset");
    let ended = computes.wait().expect("no misuse");
    assert_eq!(end(&ended), (Status::Terminated, "SessionReset", SessionState::Reset));
    assert_eq!(error(&waits.wait().expect("no misuse")), "SessionReset");
    assert_eq!(error(&run(&session, "x")), "ReferenceError");
    // The numbers of cells go on.
    let failed = run(&session, "throw new Error('where')").error.expect("an error");
    assert_eq!(failed.filename.as_deref(), Some("<cell 5>"));
    let computes = session.run("for (;;);", CellOptions::default());
    thread::sleep(Duration::from_millis(10));
    session.close().wait().expect("a close");
    assert_eq!(error(&computes.wait().expect("no misuse")), "SessionClosed");
    assert!(session.run("1", CellOptions::default()).wait().is_err());
    eventually("the worker to go", || family::workers().is_empty());
    assert_eq!(runtime.stats().sessions, 0);

    let dropped = self::session(&runtime);
    let last = dropped.run("1 + 1", CellOptions::default());
    drop(dropped);
    assert_eq!(number(last.wait().expect("no misuse")), 2);
    eventually("the worker to go", || family::workers().is_empty());
    eventually("the session to go", || runtime.stats().sessions == 0);

    let open = self::session(&runtime);
    let computes = open.run("for (;;);", CellOptions::default());
    thread::sleep(Duration::from_millis(10));
    runtime.close(|| {});
    let ended = computes.wait().expect("no misuse").error.expect("an error");
    assert_eq!((ended.name.as_str(), ended.message.as_str()), ("Terminated", "runtime closed"));
    assert!(open.run("1", CellOptions::default()).wait().is_err());
    eventually("all processes to go", || family::all().is_empty());
}

#[test]
#[cfg_attr(isolane_portable, ignore = "the portable code has no slots, so no checkpoints")]
fn answers_and_calls_come_between_cells() {
    let _alone = alone();
    let runtime = runtime();
    let ((give, given), (later, open)) = (give(), later(42));
    let globals = Inputs::new().with("give", give).with("later", later);
    let session = with(&runtime, globals);
    let first = run(&session, "let n = 1; const answer = later(); give((by) => n += by); 0");
    assert_eq!(first.status, Status::Success, "{:?}", first.error);
    open.store(true, Ordering::SeqCst);
    thread::sleep(Duration::from_millis(20));
    // It is handed in again after a cell that was undone.
    let timeout = CellOptions { timeout_ms: Some(200), ..CellOptions::default() };
    let undone = session.run("await answer; n = 100; for (;;);", timeout).wait();
    assert_eq!(state(&undone.expect("no misuse")), SessionState::RolledBack);
    assert_eq!(number(run(&session, "await answer")), 42);
    let callback = given.recv().expect("a function");
    let runtime_of_calls = tokio::runtime::Builder::new_current_thread().build().expect("tokio");
    let call = |by: u32| runtime_of_calls.block_on(callback.call::<u32>((by,)));
    assert_eq!(call(2).expect("a number"), 3);
    assert_eq!(number(run(&session, "n")), 3);
    session.reset().wait().expect("a reset");
    assert!(call(2).is_err());
    assert_eq!(number(run(&session, "1")), 1);
    assert!(call(2).is_err());
}

#[test]
fn sessions_take_only_workers_that_had_no_run() {
    let _alone = alone();
    let options = RuntimeOptions { runs_per_worker: Some(3), ready_isolates: Some(1), ..options() };
    let runtime = Runtime::new(&options).expect("a runtime of processes");
    let plain = || {
        let run = runtime.run_code("export default 1", isolane::ExecutionOptions::default());
        assert_eq!(run.wait().expect("no misuse").status, Status::Success);
    };
    plain();
    let sessions: Vec<_> = (0..3).map(|_| session(&runtime)).collect();
    for (at, session) in (0_u32..).zip(&sessions) {
        assert_eq!(number(run(session, &format!("let x = {at}; x"))), at);
        plain();
    }
    for (at, session) in (0_u32..).zip(&sessions) {
        assert_eq!(number(run(session, "x")), at);
    }
}

#[test]
fn calls_made_at_once_run_in_their_order() {
    let _alone = alone();
    let runtime = runtime();
    let (give, given) = give();
    let session = with(&runtime, Inputs::new().with("give", give));
    let source =
        "const all = []; give((n) => all.push(n)); give(async (n) => all.push(await n)); 0";
    assert_eq!(number(run(&session, source)), 0);
    let functions = [given.recv().expect("a function"), given.recv().expect("a function")];
    let runtime_of_calls = tokio::runtime::Builder::new_current_thread().build().expect("tokio");
    let mut made = 0;
    for batch in 0..30_u32 {
        let callback = &functions[usize::from(batch % 3 == 2)];
        let numbers = made..made + 100 + 13 * batch;
        let calls: Vec<_> = numbers.clone().map(|n| callback.call::<u32>((n,))).collect();
        for (n, call) in numbers.clone().zip(calls) {
            assert_eq!(runtime_of_calls.block_on(call).expect("a number"), n + 1);
        }
        made = numbers.end;
        let sorted = run(&session, "all.every((n, i) => n === i) ? all.length : 0");
        assert_eq!(number(sorted), made, "batch {batch}");
    }
}

#[test]
fn cells_begin_one_after_another_while_others_never_wait_for_the_host() {
    let _alone = alone();
    let runtime = runtime();
    let (tell, begun) = mpsc::channel();
    let begin = HostFunction::new(move || tell.send(()).expect("the test waits"));
    let (later, open) = later(1);
    let globals = Inputs::new().with("begun", begin).with("later", later);
    let options = SessionOptions { globals, cells: Cells::Interleave, ..SessionOptions::default() };
    let session = runtime.session(options).expect("a session");
    // Two cells that wake each other: a job of one of them always waits.
    let source = "let done = false; let turns = 0; const wakes = [() => {}, () => {}];
        async function play(own: number) {
            while (!done) {
                turns += 1;
                if (turns === 100) begun();
                await new Promise<void>((wake) => { wakes[own] = wake; wakes[1 - own](); });
            }
            wakes[1 - own]();
        }
        0";
    assert_eq!(number(run(&session, source)), 0);
    let start = |source: &str| session.run(source, CellOptions::default());
    let players = [start("await play(0); 1"), start("await play(1); 1")];
    begun.recv_timeout(Duration::from_mins(2)).expect("both play");
    // Each of these stays in flight, so its end does not make room for the next one.
    let mut waiting: Vec<_> = (0..20).map(|_| start("await later()")).collect();
    // The worker hears of these cells while code computes, often beside the question before them.
    let mut asked = Vec::new();
    for _ in 0..20 {
        asked.push(session.names());
        waiting.extend([start("await later()"), start("await later()")]);
    }
    let last = start("done = true; turns");
    assert!(number(last.wait().expect("no misuse")) >= 100);
    open.store(true, Ordering::SeqCst);
    for cell in players.into_iter().chain(waiting) {
        assert_eq!(number(cell.wait().expect("no misuse")), 1);
    }
    for names in asked {
        assert_eq!(names.wait().expect("names").len(), 4);
    }
}

#[test]
fn a_cell_that_is_ended_before_it_begins_costs_the_session_nothing() {
    let _alone = alone();
    let runtime = runtime();
    let soon = HostFunction::future(|| async {
        tokio::time::sleep(Duration::from_millis(1)).await;
        Ok::<_, HostError>(1)
    });
    let (never, _gate) = later(1);
    let globals = Inputs::new().with("soon", soon).with("never", never);
    let options = SessionOptions { globals, cells: Cells::Interleave, ..SessionOptions::default() };
    let session = runtime.session(options).expect("a session");
    let busy = "for (let i = 0; i < 3; i += 1) {
            await soon();
            for (const until = Date.now() + 2; Date.now() < until;);
        }";
    for round in 0..100 {
        let computes = session.run(busy, CellOptions::default());
        thread::sleep(Duration::from_micros(100 * (round % 40)));
        // The worker may hear of the cell, and of its end, while the other one computes.
        let ended = session.run("await never()", CellOptions::default());
        ended.terminate(None);
        let ended = ended.wait().expect("no misuse");
        assert_eq!(ended.status, Status::Terminated);
        assert_ne!(state(&ended), SessionState::Reset, "round {round}");
        assert_ne!(state(&computes.wait().expect("no misuse")), SessionState::Reset);
    }
}
