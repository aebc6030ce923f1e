//! Threads that do not return from a builtin: their cost for others, and their limit.

use std::{
    sync::{Mutex, mpsc},
    thread,
    time::{Duration, Instant},
};

use isolane::{
    CellOptions, Execution, ExecutionOptions, ExecutionResult, HostFunction, Inputs, Runtime,
    RuntimeOptions, Session, SessionOptions, SessionState, Status,
};
use tokio::sync::oneshot;

use crate::{alone::alone, computing::Computing};

/// The time limit of a test that does not hang. A stuck thread gets little of a busy machine.
const CEILING: Duration = Duration::from_mins(10);

/// A builtin that checks no clock and takes far longer than its run may take to settle.
const SLOW: &str = if cfg!(isolane_sanitized) {
    "begun(); Array.prototype.reverse.call({ length: 6e6 })"
} else {
    "begun(); Array.prototype.reverse.call({ length: 6e7 })"
};

/// A builtin that checks no clock and never returns.
const ENDLESS: &str = "begun(); Array.prototype.reverse.call({ length: 2 ** 53 - 1 })";

fn runtime(max_stuck_threads: u64) -> Runtime {
    let max_stuck_threads = Some(max_stuck_threads);
    let options = RuntimeOptions { max_stuck_threads, ..RuntimeOptions::default() };
    Runtime::new(&options).expect("valid options")
}

/// A run that waits at `gate()`, and reports at `begun()`.
struct Gated {
    run: Execution,
    gate: oneshot::Sender<()>,
    begun: mpsc::Receiver<Computing>,
}

fn gated(runtime: &Runtime, source: &str) -> Gated {
    let (gate, opened) = oneshot::channel::<()>();
    let opened = Mutex::new(Some(opened));
    let wait = HostFunction::future(move || {
        let opened = opened.lock().expect("lock").take().expect("called once");
        async move { opened.await.is_ok() }
    });
    let (tell, begun) = mpsc::channel();
    let tell = HostFunction::new(move || tell.send(Computing::here()).expect("the test listens"));
    let globals = Inputs::new().with("gate", wait).with("begun", tell);
    let run = runtime.run_code(source, ExecutionOptions { globals, ..Default::default() });
    Gated { run, gate, begun }
}

impl Gated {
    fn go_on(self) -> ExecutionResult {
        self.gate.send(()).expect("awaited");
        wait(self.run)
    }

    /// Settles the run while its thread stays behind.
    fn leave_behind(self) {
        let Self { run, gate, begun } = self;
        // A run that does not wait never receives this.
        let _ = gate.send(());
        begun.recv_timeout(CEILING).expect("the run begins").wait_until_inside();
        run.terminate(None);
        assert_eq!(wait(run).status, Status::Terminated);
    }
}

fn leave_behind(runtime: &Runtime, source: &str) {
    gated(runtime, source).leave_behind();
}

fn wait(run: Execution) -> ExecutionResult {
    let (tell, told) = mpsc::channel();
    thread::spawn(move || tell.send(run.wait()).is_ok());
    told.recv_timeout(CEILING).expect("the run settles").expect("valid options")
}

fn answer(runtime: &Runtime) -> ExecutionResult {
    wait(runtime.run_code("export default 6 * 7", ExecutionOptions::default()))
}

fn until(runtime: &Runtime, what: impl Fn(&isolane::Stats) -> bool) {
    let began = Instant::now();
    while !what(&runtime.stats()) {
        assert!(began.elapsed() < CEILING, "{:?}", runtime.stats());
        thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn a_runtime_with_as_many_as_it_may_have_says_so_until_one_comes_back() {
    let runtime = runtime(1);
    leave_behind(&runtime, SLOW);
    assert_eq!(runtime.stats().stuck_threads, 1);
    let refused = answer(&runtime);
    assert_eq!(refused.status, Status::Terminated);
    let error = refused.error.expect("an error");
    assert_eq!(error.name, "SafetyCap");
    assert!(error.message.contains("do not return"), "{}", error.message);
    until(&runtime, |stats| stats.stuck_threads == 0);
    assert_eq!(answer(&runtime).status, Status::Success);
}

#[test]
fn a_run_that_waited_for_its_host_goes_on_until_there_are_twice_as_many() {
    if !alone("stuck::a_run_that_waited_for_its_host_goes_on_until_there_are_twice_as_many") {
        return;
    }
    let runtime = runtime(1);
    let endless = format!("await gate(); {ENDLESS}");
    let innocent = "await gate(); export default 1";
    let [first, second] = [(); 2].map(|()| gated(&runtime, &endless));
    let [third, fourth] = [(); 2].map(|()| gated(&runtime, innocent));
    until(&runtime, |stats| stats.parked == 4);
    first.leave_behind();
    assert_eq!(third.go_on().status, Status::Success);
    second.leave_behind();
    let ended = fourth.go_on();
    assert_eq!(ended.error.map(|error| error.name).as_deref(), Some("SafetyCap"));
    assert_eq!(runtime.stats().stuck_threads, 2);
}

#[test]
fn they_keep_nobody_from_a_thread() {
    // More than the threads that wait for a turn.
    const STUCK: usize = 60;
    if !alone("stuck::they_keep_nobody_from_a_thread") {
        return;
    }
    let runtime = runtime(1_000);
    for _ in 0..STUCK {
        leave_behind(&runtime, ENDLESS);
        assert_eq!(answer(&runtime).status, Status::Success);
    }
    assert_eq!(runtime.stats().stuck_threads, STUCK);
    // The last run has settled, and gives its permit back then.
    until(&runtime, |stats| stats.computing == 0);
}

#[cfg(target_os = "linux")]
#[test]
fn they_have_the_time_that_nobody_else_wants_and_end_when_they_come_back() {
    let runtime = runtime(8);
    leave_behind(&runtime, SLOW);
    assert!(threads_of_lowest_priority() >= 1);
    let threads = runtime.stats().threads;
    until(&runtime, |stats| stats.stuck_threads == 0);
    until(&runtime, |stats| stats.threads < threads);
    assert_eq!(answer(&runtime).status, Status::Success);
}

/// As the system reports it: the nineteenth field of a thread's `stat`, counted from its name.
#[cfg(target_os = "linux")]
fn threads_of_lowest_priority() -> usize {
    let threads = std::fs::read_dir("/proc/self/task").expect("a list of threads");
    threads
        .filter_map(|thread| std::fs::read_to_string(thread.ok()?.path().join("stat")).ok())
        .filter(|stat| {
            let after_name = stat.rsplit(") ").next().expect("a name");
            after_name.split(' ').nth(16) == Some("19")
        })
        .count()
}

/// Its thread keeps the memory of the session, which begins anew in another one.
#[test]
fn a_session_whose_thread_does_not_return_is_reset() {
    if !alone("stuck::a_session_whose_thread_does_not_return_is_reset") {
        return;
    }
    let runtime = runtime(4);
    let (tell, begun) = mpsc::channel();
    let tell = HostFunction::new(move || tell.send(Computing::here()).expect("the test listens"));
    let globals = Inputs::new().with("begun", tell);
    let session = runtime.session(SessionOptions { globals, ..Default::default() });
    let session = session.expect("valid options");
    let cell = |session: &Session, source: &str| {
        let result = wait(session.run(source, CellOptions::default()));
        let state = result.cell.expect("a cell").session;
        (result.status, result.error.map(|error| error.name), state)
    };
    let kept = (Status::Success, None, SessionState::Kept);
    assert_eq!(cell(&session, "const n = 1"), kept);
    let stuck = session.run(ENDLESS, CellOptions::default());
    let next = session.run("typeof n === 'undefined' && begun()", CellOptions::default());
    begun.recv_timeout(CEILING).expect("it begins").wait_until_inside();
    stuck.terminate(None);
    let stuck = wait(stuck);
    assert_eq!(stuck.status, Status::Terminated);
    assert_eq!(stuck.cell.expect("a cell").session, SessionState::Reset);
    assert_eq!(wait(next).status, Status::Success);
    begun.recv_timeout(CEILING).expect("the names are gone, and the globals are there");
    assert_eq!(cell(&session, "const n = 2"), kept);
    assert_eq!(cell(&session, "begun()"), kept);
    assert_eq!(runtime.stats().stuck_threads, 1);
    // Other sessions do not get the memory of the stuck one.
    for _ in 0..40 {
        let other = runtime.session(SessionOptions::default()).expect("valid options");
        assert_eq!(cell(&other, "1"), kept);
        std::mem::forget(other);
    }
}
