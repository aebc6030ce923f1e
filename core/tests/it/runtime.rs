//! Effects of runs on each other: threads, turns, ends. Each test has a runtime of its own.

use std::{
    sync::{
        Arc, Mutex,
        mpsc::{self, Receiver, Sender},
    },
    time::{Duration, Instant},
};

use crate::computing::Computing;
use isolane::{
    Completion, ErrorKind, ExecutionResult, Host, HostCall, Request, RunHandle, Runtime,
    RuntimeOptions, SessionRequest, Status,
    value::{Value, Writer},
};

/// The time limit of a test that does not hang.
const CEILING: Duration = Duration::from_mins(if cfg!(isolane_sanitized) { 10 } else { 2 });

/// A host whose every function returns a promise that never settles. It reports its calls to a channel.
struct Silent {
    told: Mutex<Sender<Told>>,
    caller: Mutex<Option<Computing>>,
}

#[derive(Debug, PartialEq)]
enum Told {
    Called,
    Settled,
}

impl Silent {
    fn new() -> (Arc<Self>, Receiver<Told>) {
        let (sender, receiver) = mpsc::channel();
        (Arc::new(Self { told: Mutex::new(sender), caller: Mutex::default() }), receiver)
    }

    fn tell(&self, told: Told) {
        // A test that has seen enough no longer listens.
        let _ = self.told.lock().expect("no test panics with the lock").send(told);
    }
}

impl Host for Silent {
    fn call(&self, _function: u32, _args: Value, call: HostCall) {
        *self.caller.lock().expect("no test panics with the lock") = Some(Computing::here());
        let mut writer = Writer::new();
        writer.host_promise(0);
        call.reply(Ok(writer.finish()));
        self.tell(Told::Called);
    }

    fn function_settled(&self, _call: u32, _completion: Completion) {}

    fn promise_settled(&self, _promise: u32, _completion: Completion) {}

    fn settled(&self) {
        self.tell(Told::Settled);
    }
}

fn request(source: &str) -> Request {
    let mut inputs = Writer::new();
    inputs.array(2);
    inputs.host_function(0);
    inputs.string("wait");
    inputs.array(0);
    Request {
        globals: vec!["wait".to_owned()],
        inputs: inputs.finish(),
        ..Request::new(source.to_owned().into())
    }
}

fn start(runtime: &Runtime, source: &str) -> (RunHandle, Receiver<Told>) {
    let (host, told) = Silent::new();
    (runtime.start(request(source), host).expect("a valid request"), told)
}

fn result(remote: &RunHandle, told: &Receiver<Told>) -> ExecutionResult {
    while told.recv_timeout(CEILING).expect("the run settles") != Told::Settled {}
    remote.take_result().expect("a settled run has a result")
}

fn own_runtime(options: &RuntimeOptions) -> Runtime {
    Runtime::new(options).expect("valid options")
}

#[test]
fn ten_thousand_parked_runs_hold_no_threads() {
    let runtime = own_runtime(&RuntimeOptions::default());
    let runs: Vec<_> =
        (0..10_000).map(|_| start(&runtime, "export default await wait()")).collect();
    for (_, told) in &runs {
        assert_eq!(told.recv_timeout(CEILING), Ok(Told::Called));
    }
    let began = Instant::now();
    while runtime.stats().parked < runs.len() && began.elapsed() < CEILING {
        std::thread::yield_now();
    }
    assert_eq!(runtime.stats().parked, 10_000);
    // On a busy machine some runs were slow enough to yield, which takes threads for that time.
    while runtime.stats().threads > 64 {
        assert!(began.elapsed() < CEILING, "{:?}", runtime.stats());
        std::thread::sleep(Duration::from_millis(10));
    }
    for (remote, _) in &runs {
        remote.terminate(Some("enough"));
    }
    for (remote, told) in &runs {
        assert_eq!(result(remote, told).status, Status::Terminated);
    }
}

#[test]
fn any_number_of_runs_may_compute_at_once_without_as_many_isolates_ahead_of_need() {
    let options =
        RuntimeOptions { max_concurrent_runs: Some(1_000_000_000), ..RuntimeOptions::default() };
    let runtime = own_runtime(&options);
    for _ in 0..100 {
        let (remote, told) = start(&runtime, "export default 1");
        assert_eq!(result(&remote, &told).status, Status::Success);
    }
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    // As many as are made ahead of need, and as many again that came back from runs.
    assert!(runtime.stats().ready_isolates <= 2 * (4 * cores).max(8), "{:?}", runtime.stats());
}

/// A host that lives on a thread of its own and answers there, one call after the other.
struct Elsewhere {
    calls: Mutex<Sender<HostCall>>,
    settled: Mutex<Sender<Told>>,
}

impl Host for Elsewhere {
    fn call(&self, _function: u32, _args: Value, call: HostCall) {
        self.calls.lock().expect("no test panics with the lock").send(call).expect("a host");
    }

    fn function_settled(&self, _call: u32, _completion: Completion) {}

    fn promise_settled(&self, _promise: u32, _completion: Completion) {}

    fn settled(&self) {
        let _ = self.settled.lock().expect("no test panics with the lock").send(Told::Settled);
    }
}

#[test]
fn more_runs_than_threads_can_wait_for_one_slow_host() {
    let runtime = own_runtime(&RuntimeOptions::default());
    let (calls, called) = mpsc::channel::<HostCall>();
    let host = std::thread::spawn(move || {
        // Enough time for every thread to sleep in a call before the first is answered.
        std::thread::sleep(Duration::from_millis(100));
        for call in called {
            call.reply(Ok(Value::undefined()));
        }
    });
    let runs: Vec<_> = (0..500)
        .map(|_| {
            let (sender, told) = mpsc::channel();
            let host = Elsewhere { calls: Mutex::new(calls.clone()), settled: Mutex::new(sender) };
            let source = "wait(); wait(); export default 1";
            (runtime.start(request(source), Arc::new(host)).expect("a valid request"), told)
        })
        .collect();
    for (remote, told) in &runs {
        assert_eq!(result(remote, told).status, Status::Success);
    }
    drop((calls, runs, runtime));
    host.join().expect("the host ends when nobody can call it");
}

#[test]
fn runs_that_spin_do_not_keep_others_from_running() {
    let runtime =
        own_runtime(&RuntimeOptions { max_concurrent_runs: Some(2), ..RuntimeOptions::default() });
    let spinning: Vec<_> = (0..8).map(|_| start(&runtime, "for (;;);")).collect();
    for _ in 0..20 {
        let (remote, told) = start(&runtime, "export default 1");
        assert_eq!(result(&remote, &told).status, Status::Success);
    }
    for (remote, told) in &spinning {
        assert!(remote.running());
        remote.terminate(None);
        let result = result(remote, told);
        let error = result.error.expect("a terminated run says why");
        assert_eq!(
            (error.name.as_str(), error.message.as_str()),
            ("Terminated", "terminated by the caller")
        );
    }
}

#[test]
fn a_builtin_that_never_looks_at_the_clock_settles_all_the_same() {
    let runtime =
        own_runtime(&RuntimeOptions { max_concurrent_runs: Some(1), ..RuntimeOptions::default() });
    let source = "wait(); export default Array.prototype.reverse.call({ length: 2 ** 53 - 1 })";
    let (host, told) = Silent::new();
    let remote =
        runtime.start(request(source), Arc::<Silent>::clone(&host)).expect("a valid request");
    assert_eq!(told.recv_timeout(CEILING), Ok(Told::Called));
    let caller = host.caller.lock().expect("no test panics with the lock").take();
    caller.expect("a call").wait_until_inside();
    remote.terminate(Some("too long"));
    let stuck = result(&remote, &told);
    assert_eq!(stuck.status, Status::Terminated);
    // Its thread is still in the builtin, and delays no other run.
    assert_eq!(runtime.stats().stuck_threads, 1);
    let (remote, told) = start(&runtime, "export default 1");
    assert_eq!(result(&remote, &told).status, Status::Success);
}

#[test]
fn a_run_is_ended_by_the_safety_cap() {
    let runtime =
        own_runtime(&RuntimeOptions { safety_cap_ms: Some(50), ..RuntimeOptions::default() });
    for source in ["for (;;);", "for (;;) await 0;", "for (;;) 'a'.padEnd(1e6)"] {
        let (remote, told) = start(&runtime, source);
        let result = result(&remote, &told);
        assert_eq!(result.status, Status::Terminated, "{source}");
        assert_eq!(result.error.map(|error| error.name).as_deref(), Some("SafetyCap"), "{source}");
    }
}

#[test]
fn modules_that_are_too_large_for_the_cache_are_counted() {
    let options = RuntimeOptions { compile_cache_bytes: Some(8_000), ..RuntimeOptions::default() };
    let runtime = own_runtime(&options);
    let large = format!("'{}'; export default 1", "a".repeat(8_000));
    for source in ["export default 1", &large, &large] {
        let (remote, told) = start(&runtime, source);
        assert_eq!(result(&remote, &told).status, Status::Success);
    }
    let stats = runtime.stats();
    assert_eq!(stats.uncached_modules, 2, "{stats:?}");
    assert!((1..8_000).contains(&stats.compile_cache_bytes), "{stats:?}");
}

#[test]
fn a_closed_runtime_ends_its_runs_and_takes_no_more() {
    let runtime = own_runtime(&RuntimeOptions::default());
    let parked = start(&runtime, "await wait()");
    let spinning = start(&runtime, "for (;;);");
    assert_eq!(parked.1.recv_timeout(CEILING), Ok(Told::Called));
    for _ in 0..2 {
        let (done, closed) = mpsc::channel();
        runtime.close(move || done.send(()).expect("the test listens"));
        closed.recv_timeout(CEILING).expect("the runtime closes");
    }
    for (remote, told) in [parked, spinning] {
        let result = result(&remote, &told);
        assert_eq!(result.error.map(|error| error.message).as_deref(), Some("runtime closed"));
    }
    assert_eq!(runtime.stats().ready_isolates, 0);
    let refused = runtime.start(request("1"), Silent::new().0).expect_err("closed");
    assert_eq!(refused.kind(), ErrorKind::RuntimeClosed);
    assert_eq!(refused.kind().code(), Some("RUNTIME_CLOSED"));
    let session = runtime.open_session(SessionRequest::default(), Silent::new().0);
    assert_eq!(session.map(drop).expect_err("closed").kind(), ErrorKind::RuntimeClosed);
    without_threads(&runtime);
}

/// Waits until the runtime has no threads.
fn without_threads(runtime: &Runtime) {
    let began = Instant::now();
    while runtime.stats().threads > 0 {
        assert!(began.elapsed() < CEILING, "{:?}", runtime.stats());
        std::thread::yield_now();
    }
}

/// They end long before threads without work end by themselves, after five seconds.
#[test]
#[ignore = "measures the process: .ci/campaign measured"]
fn the_threads_of_a_closed_runtime_end_at_once() {
    let mut times: Vec<_> = (0..5)
        .map(|_| {
            let runtime = own_runtime(&RuntimeOptions::default());
            let runs: Vec<_> = (0..20).map(|_| start(&runtime, "export default 1")).collect();
            for (remote, told) in &runs {
                assert_eq!(result(remote, told).status, Status::Success);
            }
            let (done, closed) = mpsc::channel();
            runtime.close(move || done.send(()).expect("the test listens"));
            closed.recv_timeout(CEILING).expect("the runtime closes");
            let began = Instant::now();
            without_threads(&runtime);
            began.elapsed()
        })
        .collect();
    times.sort_unstable();
    assert!(times[2] < Duration::from_secs(3), "{times:?}");
}

#[test]
fn a_full_queue_refuses_and_a_queued_run_can_be_ended() {
    let runtime = own_runtime(&RuntimeOptions {
        max_concurrent_runs: Some(1),
        max_queued_runs: Some(1),
        ..RuntimeOptions::default()
    });
    let busy = start(&runtime, "wait(); for (;;);");
    assert_eq!(busy.1.recv_timeout(CEILING), Ok(Told::Called));
    // One of the two has its turn, the other is queued.
    let queued = start(&runtime, "for (;;);");
    let refused = runtime.start(request("1"), Silent::new().0);
    let refused = refused.expect_err("the queue is full");
    assert_eq!(refused.kind(), ErrorKind::QueueFull);
    assert_eq!(refused.kind().code(), Some("QUEUE_FULL"));
    for (remote, told) in [queued, busy] {
        remote.terminate(None);
        assert_eq!(result(&remote, &told).status, Status::Terminated);
    }
}
