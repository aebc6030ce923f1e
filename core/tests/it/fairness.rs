//! Fairness of runs that compute without end to other runs: turns, and places in the queue.
//!
//! Each test has a runtime of its own.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
        mpsc::{self, Receiver, Sender},
    },
    time::{Duration, Instant},
};

use isolane::{
    Completion, ErrorKind, Host, HostCall, Request, RunHandle, Runtime, RuntimeOptions, Status,
    value::{Value, Writer},
};

/// The time limit of a test that does not hang.
const CEILING: Duration = Duration::from_mins(5);

/// Enough time for a turn of each ready run. A shorter time would only test less.
const MOMENT: Duration = Duration::from_millis(300);

/// Held by each test, because tests that compute at the same time would disturb the measurement.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A host whose functions answer at once on the isolate's thread, from another thread, or after a while.
struct Answering {
    settled: Mutex<Sender<()>>,
    /// For a test that keeps a thread of the runtime in a call for a while, and is told when it is in there.
    held: Mutex<Option<(Sender<()>, Receiver<()>)>>,
}

impl Host for Answering {
    fn call(&self, function: u32, _args: Value, call: HostCall) {
        let held = self.held.lock().expect("no test panics with the lock").take();
        if let Some((entered, held)) = held {
            entered.send(()).expect("the test waits");
            held.recv_timeout(CEILING).expect("the test lets go");
        }
        match function {
            0 => call.reply(Ok(Value::undefined())),
            1 => std::thread::scope(|scope| {
                scope.spawn(|| call.reply(Ok(Value::undefined())));
            }),
            _ => drop(std::thread::spawn(move || {
                std::thread::sleep(Duration::from_millis(50));
                call.reply(Ok(Value::undefined()));
            })),
        }
    }

    fn function_settled(&self, _call: u32, _completion: Completion) {}

    fn promise_settled(&self, _promise: u32, _completion: Completion) {}

    fn settled(&self) {
        // A test that has seen enough no longer listens.
        let _ = self.settled.lock().expect("no test panics with the lock").send(());
    }
}

type Started = (RunHandle, Receiver<()>);

fn start(runtime: &Runtime, source: &str) -> Started {
    try_start(runtime, source).expect("a valid request")
}

fn try_start(runtime: &Runtime, source: &str) -> Result<Started, isolane::Error> {
    start_held(runtime, source, None)
}

fn start_held(
    runtime: &Runtime,
    source: &str,
    held: Option<(Sender<()>, Receiver<()>)>,
) -> Result<Started, isolane::Error> {
    let (sender, settled) = mpsc::channel();
    let host = Arc::new(Answering { settled: Mutex::new(sender), held: Mutex::new(held) });
    Ok((runtime.start(request(source), host)?, settled))
}

/// Code with the functions of a host: `here`, `there`, `slow`.
fn request(source: &str) -> Request {
    let mut inputs = Writer::new();
    let functions = ["here", "there", "slow"];
    inputs.array(4);
    for (number, name) in (0..).zip(functions) {
        inputs.host_function(number);
        inputs.string(name);
    }
    inputs.array(0);
    Request {
        globals: functions.map(str::to_owned).to_vec(),
        inputs: inputs.finish(),
        ..Request::new(source.to_owned().into())
    }
}

fn status((remote, settled): &Started) -> Status {
    settled.recv_timeout(CEILING).expect("the run settles");
    remote.take_result().expect("a settled run has a result").status
}

fn runtime(concurrent: Option<u64>, queued: Option<u64>) -> Runtime {
    Runtime::new(&RuntimeOptions {
        max_concurrent_runs: concurrent,
        max_queued_runs: queued,
        ..RuntimeOptions::default()
    })
    .expect("valid options")
}

/// Waits until the condition becomes true. Returns whether it did.
fn soon(condition: impl Fn() -> bool) -> bool {
    let began = Instant::now();
    while !condition() && began.elapsed() < CEILING {
        std::thread::yield_now();
    }
    condition()
}

fn close(runtime: &Runtime) {
    let (done, closed) = mpsc::channel();
    runtime.close(move || done.send(()).expect("the test listens"));
    closed.recv_timeout(CEILING).expect("the runtime closes");
}

/// Runs that spin, and short ones beside them, which must all succeed.
fn short_runs_beside(count: usize, concurrent: Option<u64>, source: &str) {
    let runtime = runtime(concurrent, None);
    let spinning: Vec<_> = (0..count).map(|_| start(&runtime, source)).collect();
    std::thread::sleep(MOMENT);
    for short in ["export default 1", "for (let i = 0; i < 5; i += 1) there(); export default 1"] {
        for _ in 0..3 {
            assert_eq!(status(&start(&runtime, short)), Status::Success, "{source}");
        }
    }
    assert!(spinning.iter().all(|(remote, _)| remote.running()), "{source}");
    close(&runtime);
    for run in &spinning {
        assert_eq!(status(run), Status::Terminated, "{source}");
    }
}

#[test]
fn short_runs_settle_beside_runs_of_every_kind_that_spin() {
    let _alone = alone();
    for source in [
        "for (;;);",
        "const f = async () => { for (;;) await 0; }; for (let i = 0; i < 50; i += 1) f(); await f();",
        "/^(a+)+$/.test('a'.repeat(40) + 'b')",
        "for (;;) here();",
        "for (;;) there();",
        "for (;;) { there(); for (let i = 0; i < 10_000; i += 1); }",
        "const s = 'x'.repeat(1e6); for (;;) s.padEnd(2e6);",
    ] {
        short_runs_beside(12, Some(1), source);
        short_runs_beside(12, Some(2), source);
    }
}

#[test]
fn short_runs_settle_beside_more_spinning_runs_than_there_are_permits() {
    let _alone = alone();
    short_runs_beside(100, None, "for (;;);");
    short_runs_beside(100, Some(1), "for (;;);");
    short_runs_beside(100, Some(2), "for (;;) there();");
}

/// Each of them occupies the stack of a thread, and never computes for long.
#[test]
fn short_runs_settle_beside_more_that_only_wait_than_there_are_threads_for_them() {
    let _alone = alone();
    short_runs_beside(100, None, "for (;;) slow();");
    short_runs_beside(100, Some(1), "for (;;) slow();");
}

#[test]
#[ignore = "takes both cores for half a minute: .ci/campaign measured"]
fn short_runs_settle_beside_a_thousand_that_spin() {
    let _alone = alone();
    short_runs_beside(1_000, None, "for (;;);");
}

/// The turns of runs that never compute at the same time: each call of another run than the last one begins a turn.
#[derive(Default)]
struct Turns {
    last: AtomicUsize,
    count: AtomicUsize,
}

/// Notes the turns of its run. Tells how many turns there were when its run settled.
struct Turning(usize, Arc<Turns>, Mutex<Sender<usize>>);
impl Host for Turning {
    fn call(&self, _: u32, _: Value, call: HostCall) {
        if self.1.last.swap(self.0, Ordering::SeqCst) != self.0 {
            self.1.count.fetch_add(1, Ordering::SeqCst);
        }
        call.reply(Ok(Value::undefined()));
    }
    fn function_settled(&self, _: u32, _: Completion) {}
    fn promise_settled(&self, _: u32, _: Completion) {}
    fn settled(&self) {
        let _ = self.2.lock().expect("no panic").send(self.1.count.load(Ordering::SeqCst));
    }
}

#[test]
fn a_new_run_does_not_wait_for_all_that_spin() {
    const SPINNING: usize = 100;
    let _alone = alone();
    let runtime = runtime(Some(1), None);
    let turns = Arc::new(Turns::default());
    let start = |number: usize, source: &str| {
        let (sender, settled) = mpsc::channel();
        let host = Arc::new(Turning(number, Arc::clone(&turns), Mutex::new(sender)));
        (runtime.start(request(source), host).expect("a valid request"), settled)
    };
    let source = "for (;;) { here(); for (let i = 0; i < 10_000; i += 1); }";
    let spinning: Vec<_> = (1..=SPINNING).map(|number| start(number, source)).collect();
    // All of them have had a turn when the last of them waits for its second.
    assert!(soon(|| runtime.stats().threads >= SPINNING));
    let mut waited: Vec<_> = (0..11)
        .map(|_| {
            let before = turns.count.load(Ordering::SeqCst);
            let (remote, settled) = start(0, "export default 1");
            let after = settled.recv_timeout(CEILING).expect("the run settles");
            let result = remote.take_result().expect("a settled run has a result");
            assert_eq!(result.status, Status::Success);
            after - before
        })
        .collect();
    // Behind all of them each would wait for as many turns. The system may delay this thread in one of the rounds.
    waited.sort_unstable();
    assert!(waited[5] < SPINNING / 2, "{waited:?} turns");
    drop(spinning);
    close(&runtime);
}

#[test]
fn runs_that_are_answered_at_once_leave_others_their_turn() {
    let _alone = alone();
    let runtime = runtime(Some(1), None);
    let source = "for (;;) { there(); const until = Date.now() + 3; while (Date.now() < until); }";
    let busy: Vec<_> = (0..8).map(|_| start(&runtime, source)).collect();
    std::thread::sleep(MOMENT);
    for _ in 0..5 {
        let short = start(&runtime, "for (let i = 0; i < 3; i += 1) there(); export default 1");
        assert_eq!(status(&short), Status::Success);
    }
    drop(busy);
    close(&runtime);
}

/// Notes its number when its run begins.
struct Noting(usize, Arc<Mutex<Vec<usize>>>, Mutex<Sender<()>>);
impl Host for Noting {
    fn call(&self, _: u32, _: Value, call: HostCall) {
        self.1.lock().expect("no panic").push(self.0);
        call.reply(Ok(Value::undefined()));
    }
    fn function_settled(&self, _: u32, _: Completion) {}
    fn promise_settled(&self, _: u32, _: Completion) {}
    fn settled(&self) {
        let _ = self.2.lock().expect("no panic").send(());
    }
}

#[test]
fn the_queue_is_first_in_first_out() {
    let _alone = alone();
    let runtime = runtime(Some(1), None);
    let order = Arc::new(Mutex::new(Vec::new()));
    let busy = start(&runtime, "for (;;);");
    let (sender, settled) = mpsc::channel();
    let runs: Vec<_> = (0..200)
        .map(|n| {
            let host = Noting(n, Arc::clone(&order), Mutex::new(sender.clone()));
            runtime.start(request("here()"), Arc::new(host)).expect("a valid request")
        })
        .collect();
    for _ in &runs {
        settled.recv_timeout(CEILING).expect("the run settles");
    }
    // A run that the system delayed for a whole slice lets all others go first. Of pairs in no order, half are overtaken.
    let order = order.lock().expect("no panic");
    assert_eq!(order.len(), runs.len());
    let pairs =
        order.iter().enumerate().flat_map(|(place, n)| order[place..].iter().map(move |m| (n, m)));
    let overtaken = pairs.filter(|(earlier, later)| earlier > later).count();
    assert!(overtaken < order.len() * order.len() / 8, "{overtaken} pairs: {order:?}");
    drop(busy);
    close(&runtime);
}

#[test]
fn a_queued_run_that_is_ended_settles_at_once_and_leaves_the_queue() {
    const QUEUED: u16 = 5_000;
    let _alone = alone();
    let runtime = runtime(Some(1), Some(u64::from(QUEUED)));
    let (let_go, held) = mpsc::channel();
    let (enter, entered) = mpsc::channel();
    let busy = start_held(&runtime, "here(); for (;;);", Some((enter, held)));
    let busy = busy.expect("a valid request");
    entered.recv_timeout(CEILING).expect("it calls");
    let queued: Vec<_> = (0..QUEUED).map(|_| start(&runtime, "for (;;);")).collect();
    assert_eq!(runtime.stats().queued, usize::from(QUEUED));
    let refused = try_start(&runtime, "1").expect_err("the queue is full");
    assert_eq!(refused.kind(), ErrorKind::QueueFull);
    assert!(refused.to_string().contains("5000 runs are queued"), "{refused}");
    for run in &queued {
        run.0.terminate(None);
        // The end was reported before: no one had to wait for a thread.
        assert_eq!(run.1.try_recv(), Ok(()));
    }
    let (remote, _) = &queued[0];
    assert_eq!(remote.take_result().map(|result| result.status), Some(Status::Terminated));
    assert!(runtime.stats().queued <= 1, "{:?}", runtime.stats());
    let next = try_start(&runtime, "export default 1").expect("there is room again");
    let_go.send(()).expect("the host waits");
    assert_eq!(status(&next), Status::Success);
    drop(busy);
    close(&runtime);
}

#[test]
fn a_full_queue_does_not_keep_a_runtime_from_closing() {
    let _alone = alone();
    let runtime = runtime(Some(1), Some(1_000));
    let mut runs = vec![start(&runtime, "for (;;);")];
    while let Ok(run) = try_start(&runtime, "for (;;);") {
        runs.push(run);
        assert!(runs.len() < 10_000, "the queue has a bound");
    }
    close(&runtime);
    for run in &runs {
        assert_eq!(status(run), Status::Terminated);
    }
    let stats = runtime.stats();
    assert_eq!((stats.computing, stats.queued, stats.ready_isolates), (0, 0, 0));
}

#[test]
fn who_has_a_permit_is_not_queued() {
    let _alone = alone();
    let runtime = runtime(Some(4), Some(0));
    // The assertion holds whether or not a thread has taken the first run by then.
    let runs: Vec<_> = (0..4).map(|_| try_start(&runtime, "for (;;);")).collect();
    assert!(runs.iter().all(Result::is_ok));
    let refused = try_start(&runtime, "1").expect_err("nobody may wait");
    assert_eq!(refused.kind(), ErrorKind::QueueFull);
    close(&runtime);
}

#[test]
fn runs_that_stepped_aside_are_queued() {
    let _alone = alone();
    let runtime = runtime(Some(1), Some(3));
    let runs: Vec<_> = (0..4).map(|_| start(&runtime, "for (;;);")).collect();
    // Each of them has a thread by now, and all but one of these wait.
    assert!(soon(|| runtime.stats().threads >= 4));
    std::thread::sleep(MOMENT);
    assert!(try_start(&runtime, "1").is_err());
    drop(runs);
    close(&runtime);
}

#[test]
fn a_closed_runtime_does_not_wait_for_a_thread_that_does_not_come_back() {
    let _alone = alone();
    let runtime = runtime(Some(1), None);
    let stuck = start(&runtime, "Array.prototype.reverse.call({ length: 2 ** 53 - 1 })");
    std::thread::sleep(MOMENT);
    close(&runtime);
    assert_eq!(status(&stuck), Status::Terminated);
}
