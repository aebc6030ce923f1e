//! Sessions through the Rust face: what cells leave, what ends them, and what becomes of the session.

use std::{
    sync::{
        Arc, Mutex,
        mpsc::{Sender, channel},
    },
    time::{Duration, Instant},
};

use isolane::{
    CallOptions, CellOptions, Cells, ExecutionOptions, ExecutionResult, HostError, HostFunction,
    Inputs, NameKind, Runtime, RuntimeOptions, SandboxFunction, SandboxPromise, Session,
    SessionOptions, SessionState, SessionUpdate, Status, ValueFrom,
};

fn session(globals: Inputs) -> Session {
    Session::new(SessionOptions { globals, ..Default::default() }).expect("valid options")
}

fn run(session: &Session, source: &str) -> ExecutionResult {
    session.run(source, CellOptions::default()).wait().expect("an open session")
}

fn state(result: &ExecutionResult) -> SessionState {
    result.cell.as_ref().expect("a cell").session
}

/// The value of a cell that has to succeed.
fn value(session: &Session, source: &str) -> serde_json::Value {
    let result = run(session, source);
    assert_eq!(result.status, Status::Success, "{source}: {:?}", result.error);
    assert_eq!(state(&result), SessionState::Kept);
    result.result.expect("a value").deserialize().expect("plain data")
}

/// The name and the message of a cell's error, and what it did to the session.
fn error(result: &ExecutionResult) -> (Status, &str, &str, SessionState) {
    let error = result.error.as_ref().expect("no success");
    (result.status, &error.name, &error.message, state(result))
}

fn timeout(timeout_ms: u64) -> CellOptions {
    CellOptions { timeout_ms: Some(timeout_ms), ..Default::default() }
}

/// Resolves when the other end sends: a host function that the test answers.
fn gate() -> (Arc<Mutex<Option<futures::channel::oneshot::Sender<i32>>>>, HostFunction) {
    let (sender, receiver) = futures::channel::oneshot::channel();
    let receiver = Arc::new(Mutex::new(Some(receiver)));
    let load = HostFunction::future(move || {
        let receiver = receiver.lock().expect("not poisoned").take();
        async move {
            let receiver = receiver.ok_or_else(|| HostError::new("Error", "called twice"))?;
            receiver.await.map_err(|_| HostError::new("Error", "dropped"))
        }
    });
    (Arc::new(Mutex::new(Some(sender))), load)
}

#[test]
fn a_builtin_that_does_not_come_back_resets_the_copies_of_its_session() {
    // A runtime of its own: in one with many sessions others share the memory, too.
    let runtime = Runtime::new(&RuntimeOptions::default()).expect("valid");
    let (sender, begun) = channel();
    let sender = Mutex::new(sender);
    let begins = HostFunction::new(move || {
        sender.lock().expect("not poisoned").send(()).expect("the test listens");
    });
    let globals = Inputs::new().with("begins", begins);
    let session = runtime.session(SessionOptions { globals, ..Default::default() }).expect("valid");
    value(&session, "let g = 5; g");
    let copy = session.fork().wait().expect("nothing is unanswered");
    let late = session.fork().wait().expect("nothing is unanswered");
    assert_eq!(value(&copy, "g"), 5.0);
    let endless = "begins(); Array.prototype.reverse.call({ length: 2 ** 53 })";
    let endless = session.run(endless, timeout(3_000));
    begun.recv().expect("the cell begins");
    // The home of the copies is lent to them until the endless cell has the answer of `begins`.
    let waited = loop {
        let result = run(&copy, "g");
        if result.status != Status::Success {
            break result;
        }
    };
    let ended = endless.wait().expect("an open session");
    assert_eq!((ended.status, state(&ended)), (Status::Terminated, SessionState::Reset));
    for result in [waited, run(&late, "g")] {
        let (status, name, _, state) = error(&result);
        assert_eq!(
            (status, name, state),
            (Status::Terminated, "SessionReset", SessionState::Reset)
        );
    }
    for session in [&session, &copy, &late] {
        assert_eq!(value(session, "typeof g"), "undefined");
    }
}

#[test]
fn a_promise_of_a_cell_outlives_the_end_of_another() {
    let kept: Arc<Mutex<Option<SandboxPromise>>> = Arc::default();
    let keeper = Arc::clone(&kept);
    let keep = move |promise: SandboxPromise| {
        *keeper.lock().expect("not poisoned") = Some(promise);
    };
    let (answer, load) = gate();
    let globals = Inputs::new().with("load", load).with("keep", HostFunction::new(keep));
    let options = SessionOptions { globals, cells: Cells::Interleave, ..Default::default() };
    let session = Session::new(options).expect("valid options");
    let source = "const page = load().then((n: number) => n + 1); keep(page); await page";
    let waiting = session.run(source, CellOptions::default());
    let ended = session.run("for (;;);", timeout(200)).wait().expect("an open session");
    assert_eq!((ended.status, state(&ended)), (Status::Terminated, SessionState::RolledBack));
    let answer = answer.lock().expect("not poisoned").take().expect("not answered");
    answer.send(1).expect("the cell waits");
    let result = waiting.wait().expect("an open session").result.expect("a value");
    assert_eq!(result.deserialize::<i32>().expect("a number"), 2);
    let promise = kept.lock().expect("not poisoned").take().expect("it was kept");
    let settled = futures::executor::block_on(promise.settled::<i32>());
    assert_eq!(settled.expect("it is fulfilled"), 2);
}

#[test]
fn cells_find_what_earlier_ones_left() {
    let session = session(Inputs::new().with("add", HostFunction::new(|a: f64, b: f64| a + b)));
    assert_eq!(value(&session, "const x = add(20, 1); x"), 21.0);
    assert_eq!(value(&session, "function twice(n: number) { return add(n, n) } x * 2"), 42.0);
    assert_eq!(value(&session, "twice(x)"), 42.0);
    let result = session.call("twice", (4,)).wait().expect("open");
    assert_eq!(result.result.expect("a value").deserialize::<u32>().expect("a number"), 8);
    let names = session.names().wait().expect("open");
    let shown: Vec<_> = names.iter().map(|it| (it.name.as_str(), it.kind, &*it.kind_of)).collect();
    let expected = [("x", NameKind::Const, "number"), ("twice", NameKind::Function, "function")];
    assert_eq!(shown, expected);
}

#[test]
fn a_result_says_where_its_value_is_from_and_shows_it() {
    let session = session(Inputs::new());
    let result = run(&session, "new (class Order { n = 1 })");
    let cell = result.cell.expect("a cell");
    assert_eq!((result.status, result.result), (Status::Success, None));
    assert_eq!(cell.value_from, Some(ValueFrom::Expression));
    assert!(cell.text.is_some_and(|text| text.contains("Order")));
    assert!(cell.uncloned.is_some_and(|why| why.contains("Order")));
}

#[test]
fn an_error_keeps_what_the_cell_did() {
    let session = session(Inputs::new());
    let result = run(&session, "const a = 1; throw new RangeError('no')");
    assert_eq!(error(&result), (Status::Error, "RangeError", "no", SessionState::Kept));
    assert_eq!(result.error.expect("an error").filename.as_deref(), Some("<cell 1>"));
    assert_eq!(value(&session, "a"), 1.0);
    let result = run(&session, "const = ");
    assert_eq!((result.status, state(&result)), (Status::LinkError, SessionState::Kept));
    assert_eq!(result.error.expect("an error").filename.as_deref(), Some("<cell 3>"));
}

#[test]
fn an_endless_loop_costs_a_cell() {
    let (tell, begun) = channel();
    let begin = HostFunction::new(move || tell.send(()).expect("the test waits"));
    let session = session(Inputs::new().with("begun", begin));
    value(&session, "const list = [1, 2, 3]; 0");
    let result = session.run("list.length = 0; for (;;);", timeout(200)).wait().expect("open");
    let expected = (
        Status::Terminated,
        "Timeout",
        "the cell took longer than 200 ms",
        SessionState::RolledBack,
    );
    assert_eq!(error(&result), expected);
    assert_eq!(value(&session, "list.length"), 3.0);
    let cell = session.run("list.push(4); begun(); for (;;);", CellOptions::default());
    begun.recv_timeout(Duration::from_mins(2)).expect("it begins");
    cell.terminate(Some("enough"));
    let result = cell.wait().expect("open");
    assert_eq!(
        error(&result),
        (Status::Terminated, "Terminated", "enough", SessionState::RolledBack)
    );
    assert_eq!(value(&session, "list.length"), 3.0);
}

#[test]
fn exhausted_memory_is_rolled_back_and_without_a_checkpoint_reset() {
    let options = |checkpoint_bytes| SessionOptions {
        memory_limit_bytes: Some(8 << 20),
        checkpoint_bytes,
        ..Default::default()
    };
    let bomb = "const held = []; for (;;) held.push(new Array(1000).fill(0))";
    let rolls = Session::new(options(None)).expect("valid");
    value(&rolls, "let n = 1; n");
    let result = run(&rolls, bomb);
    assert_eq!((result.status, state(&result)), (Status::Memory, SessionState::RolledBack));
    assert_eq!(value(&rolls, "n"), 1.0);
    let resets = Session::new(options(Some(0))).expect("valid");
    value(&resets, "let n = 1; n");
    let result = run(&resets, bomb);
    assert_eq!((result.status, state(&result)), (Status::Memory, SessionState::Reset));
    assert_eq!(run(&resets, "n").status, Status::Error);
}

#[test]
fn a_cell_that_is_ended_in_the_queue_leaves_the_session() {
    let (answer, load) = gate();
    let session = session(Inputs::new().with("load", load));
    let first = session.run("let a = await load(); a", CellOptions::default());
    let second = session.run("a + 1", CellOptions::default());
    let third = session.run("a + 2", CellOptions::default());
    second.terminate(None);
    let result = second.wait().expect("open");
    let expected =
        (Status::Terminated, "Terminated", "terminated by the caller", SessionState::Kept);
    assert_eq!(error(&result), expected);
    let answer = answer.lock().expect("not poisoned").take().expect("a sender");
    answer.send(40).expect("the call waits");
    let first: f64 =
        first.wait().expect("open").into_value().expect("ok").deserialize().expect("n");
    let third: f64 =
        third.wait().expect("open").into_value().expect("ok").deserialize().expect("n");
    assert_eq!((first, third), (40.0, 42.0));
}

#[test]
fn a_promise_of_one_cell_is_awaited_in_the_next() {
    let (answer, load) = gate();
    let session = session(Inputs::new().with("load", load));
    assert_eq!(value(&session, "const page = load(); 1"), 1.0);
    let refused = session.fork().wait().expect_err("a call is unanswered");
    assert!(refused.message().starts_with("1 call"), "{refused}");
    let answer = answer.lock().expect("not poisoned").take().expect("a sender");
    answer.send(7).expect("the call waits");
    // As soon as the answer is there, a copy has it too.
    let since = Instant::now();
    let fork = loop {
        match session.fork().wait() {
            Ok(fork) => break fork,
            Err(_) => assert!(since.elapsed() < Duration::from_mins(2), "it is never answered"),
        }
    };
    assert_eq!(value(&fork, "await page"), 7.0);
    assert_eq!(value(&session, "await page"), 7.0);
}

#[test]
fn a_held_function_is_called_between_cells() {
    let (sender, held) = channel::<SandboxFunction>();
    let sender: Mutex<Sender<SandboxFunction>> = Mutex::new(sender);
    let keep = HostFunction::new(move |function: SandboxFunction| {
        sender.lock().expect("not poisoned").send(function).expect("the test waits");
    });
    let session = session(Inputs::new().with("keep", keep));
    value(&session, "let count = 0; keep((by: number) => (count += by)); 0");
    let function = held.recv().expect("kept");
    let counted: u32 = futures::executor::block_on(function.call((5,))).expect("it returns");
    assert_eq!(counted, 5);
    assert_eq!(value(&session, "count"), 5.0);
    // Its session is reset, so it is gone.
    session.reset().wait().expect("open");
    let gone = futures::executor::block_on(function.call::<f64>((5,)));
    assert!(gone.is_err());
}

#[test]
fn a_held_function_keeps_its_session() {
    let (sender, held) = channel::<SandboxFunction>();
    let sender: Mutex<Sender<SandboxFunction>> = Mutex::new(sender);
    let keep = HostFunction::new(move |function: SandboxFunction| {
        sender.lock().expect("not poisoned").send(function).expect("the test waits");
    });
    let runtime = Runtime::new(&RuntimeOptions::default()).expect("valid");
    let globals = Inputs::new().with("keep", keep);
    let options = SessionOptions { globals, ..Default::default() };
    let session = runtime.session(options).expect("valid");
    value(&session, "keep(() => 1); 0");
    drop(session);
    let function = held.recv().expect("kept");
    assert_eq!(runtime.stats().sessions, 1);
    let one: u32 = futures::executor::block_on(function.call(())).expect("it returns");
    assert_eq!(one, 1);
    drop(function);
    wait_until(|| runtime.stats().sessions == 0);
}

fn wait_until(is_so: impl Fn() -> bool) {
    let since = Instant::now();
    while !is_so() {
        assert!(since.elapsed() < Duration::from_mins(2), "it never happens");
        std::thread::yield_now();
    }
}

#[test]
fn a_fork_has_the_state_and_its_own_future() {
    let session = session(Inputs::new().with("add", HostFunction::new(|a: f64, b: f64| a + b)));
    value(&session, "let n = 1; const inc = () => ++n; n");
    let fork = session.fork().wait().expect("it forks");
    assert_eq!(value(&fork, "inc(); add(n, 40)"), 42.0);
    assert_eq!(value(&session, "n"), 1.0);
    let result = run(&fork, "throw new Error('no')");
    assert_eq!(result.error.expect("an error").filename.as_deref(), Some("<cell 3>"));
    session.close().wait().expect("it closes");
    assert_eq!(value(&fork, "n"), 2.0);
}

#[test]
fn reset_and_close_end_what_runs_and_what_waits() {
    let (_answer, load) = gate();
    let runtime = Runtime::new(&RuntimeOptions::default()).expect("valid");
    let globals = Inputs::new().with("load", load);
    let session = runtime.session(SessionOptions { globals, ..Default::default() }).expect("valid");
    value(&session, "const kept = 1; 0");
    let waits = session.run("await load()", CellOptions::default());
    let queued = session.run("1", CellOptions::default());
    wait_until(|| runtime.stats().parked == 1);
    session.reset().wait().expect("open");
    for (cell, expected) in [(waits, SessionState::Reset), (queued, SessionState::Kept)] {
        let result = cell.wait().expect("open");
        let (status, name, message, state) = error(&result);
        assert_eq!(
            (status, name, message),
            (Status::Terminated, "SessionReset", "the session was reset")
        );
        assert_eq!(state, expected);
    }
    assert_eq!(run(&session, "kept").status, Status::Error);
    let loops = session.run("for (;;);", CellOptions::default());
    session.close().wait().expect("it closes");
    let result = loops.wait().expect("it was open");
    assert_eq!(error(&result).1, "SessionClosed");
    let refused = session.run("1", CellOptions::default()).wait().expect_err("closed");
    assert_eq!(refused.message(), "the session is closed");
    session.names().wait().expect_err("closed");
    session.close().wait().expect("twice is fine");
}

#[test]
fn an_update_holds_from_the_next_cell() {
    let modules = [("./m.ts".to_owned(), "export const v = 1".to_owned())].into();
    let session = Session::new(SessionOptions { modules, ..Default::default() }).expect("valid");
    assert_eq!(value(&session, "import { v } from './m.js'; v"), 1.0);
    let update = SessionUpdate {
        globals: Inputs::new().with("given", 5),
        modules: [("./m.ts".to_owned(), "export const v = 2".to_owned())].into(),
        ..Default::default()
    };
    session.update(update).expect("valid");
    assert_eq!(value(&session, "import { v } from './m.js'; v + given"), 7.0);
    let gone = SessionUpdate { removed_globals: vec!["given".to_owned()], ..Default::default() };
    session.update(gone).expect("valid");
    assert_eq!(run(&session, "given").error.expect("gone").name, "ReferenceError");
    let wrong = SessionUpdate { globals: Inputs::new().with("let", 1), ..Default::default() };
    assert!(session.update(wrong).expect_err("a keyword").message().contains("globals.let"));
}

#[test]
fn a_runtime_that_closes_ends_its_sessions() {
    let runtime = Runtime::new(&RuntimeOptions::default()).expect("valid");
    let session = runtime.session(SessionOptions::default()).expect("valid");
    value(&session, "let a = 1; a");
    assert_eq!(runtime.stats().sessions, 1);
    let loops = session.run("for (;;);", CellOptions::default());
    let (sender, closed) = channel();
    runtime.close(move || sender.send(()).expect("the test waits"));
    closed.recv_timeout(Duration::from_mins(2)).expect("it closes");
    let result = loops.wait().expect("it was open");
    let (status, name, message, _) = error(&result);
    assert_eq!((status, name, message), (Status::Terminated, "Terminated", "runtime closed"));
    assert_eq!(runtime.stats().sessions, 0);
    session.run("1", CellOptions::default()).wait().expect_err("closed");
}

#[test]
fn more_sessions_than_homes_have_states_of_their_own() {
    let sessions: Vec<_> = (0..100).map(|_| session(Inputs::new())).collect();
    let cells: Vec<_> = sessions
        .iter()
        .enumerate()
        .map(|(index, session)| session.run(format!("let n = {index}; n"), CellOptions::default()))
        .collect();
    for cell in cells {
        assert_eq!(cell.wait().expect("open").status, Status::Success);
    }
    for (index, session) in sessions.iter().enumerate() {
        assert_eq!(
            value(session, "n").as_f64(),
            Some(f64::from(u32::try_from(index).expect("few")))
        );
    }
}

#[test]
fn sessions_roll_back_beside_any_number_of_parked_runs() {
    const RUNS: usize = 100;
    let runtime = Runtime::new(&RuntimeOptions::default()).expect("valid");
    let parked: Vec<_> = (0..RUNS)
        .map(|_| {
            let never = HostFunction::future(futures::future::pending::<Result<i32, HostError>>);
            let globals = Inputs::new().with("never", never);
            let options = ExecutionOptions { globals, ..Default::default() };
            runtime.run_code("await never()", options)
        })
        .collect();
    wait_until(|| runtime.stats().parked == RUNS);
    let sessions: Vec<_> = (0..3)
        .map(|_| runtime.session(SessionOptions::default()).expect("valid options"))
        .collect();
    for session in &sessions {
        assert_eq!(value(session, "let kept = 1; kept"), 1.0);
    }
    for session in &sessions {
        let ended = session.run("kept = 2; for (;;);", timeout(50)).wait();
        assert_eq!(state(&ended.expect("an open session")), SessionState::RolledBack);
        assert_eq!(value(session, "kept"), 1.0);
    }
    drop(parked);
}

#[test]
fn a_host_function_may_run_a_cell_of_another_session() {
    let runtime = Runtime::new(&RuntimeOptions::default()).expect("valid");
    let open = |globals| {
        let options = SessionOptions { globals, ..Default::default() };
        Arc::new(runtime.session(options).expect("valid"))
    };
    // As many that some share a home.
    let others: Vec<_> = (0..70).map(|_| open(Inputs::new())).collect();
    for other in &others {
        value(other, "let n = 0; n");
    }
    let nested = others.clone();
    let each = HostFunction::new(move || {
        let sums = nested.iter().map(|other| {
            let result = other.run("n += 1", CellOptions::default()).wait().expect("open");
            result.result.expect("a value").deserialize::<u32>().expect("a number")
        });
        sums.sum::<u32>()
    });
    let outer: Vec<_> = (0..4).map(|_| open(Inputs::new().with("each", each.clone()))).collect();
    let cells: Vec<_> = outer
        .iter()
        .map(|it| {
            it.run("const before = [1, 2, 3]; [each(), before.length]", CellOptions::default())
        })
        .collect();
    let mut sums = 0;
    for cell in cells {
        let result = cell.wait().expect("open").into_value().expect("it succeeds");
        let [sum, length] = result.deserialize::<[u32; 2]>().expect("two numbers");
        assert_eq!(length, 3);
        sums += sum;
    }
    assert_eq!(sums, 70 * (1 + 2 + 3 + 4));
}

#[test]
fn an_endless_loop_leaves_its_home_to_others() {
    let runtime = Runtime::new(&RuntimeOptions::default()).expect("valid");
    let open = || runtime.session(SessionOptions::default()).expect("valid");
    let sessions: Vec<_> = (0..70).map(|_| open()).collect();
    for session in &sessions {
        value(session, "let n = 1; n");
    }
    let forever = sessions[0].run("n = 2; for (;;) n += 1", CellOptions::default());
    for session in &sessions[1..] {
        assert_eq!(value(session, "n += 1"), 2.0);
    }
    forever.terminate(None);
    let result = forever.wait().expect("open");
    assert_eq!(state(&result), SessionState::RolledBack);
    assert_eq!(value(&sessions[0], "n"), 1.0);
}

#[test]
fn options_are_checked_before_anything_starts() {
    let wrong = SessionOptions { memory_limit_bytes: Some(0), ..Default::default() };
    assert!(
        Session::new(wrong).expect_err("out of range").message().contains("memory_limit_bytes")
    );
    let session = session(Inputs::new());
    let refused = session.run("1", timeout(0)).wait().expect_err("out of range");
    assert_eq!(refused.message(), "timeout_ms must be a safe integer of at least 1, got 0");
    let refused =
        session.call_with("f", 1, CallOptions::default()).wait().expect_err("no sequence");
    assert!(refused.message().contains("sequence"), "{refused}");
    let result = session.call("nothing", ()).wait().expect("open");
    assert_eq!((result.status, state(&result)), (Status::LinkError, SessionState::Kept));
}
