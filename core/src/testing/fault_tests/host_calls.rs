//! Host calls of every program of the corpus, each failing in every possible way.
//!
//! The n-th call fails, for every n up to the program's number of calls. The run settles with the right status, its
//! runtime keeps nothing of it, and the next run finds no trace.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc::{self, Receiver, Sender},
    },
    time::{Duration, Instant},
};

use super::{
    corpus::{CORPUS, Program, SELF_CHECK},
    stage::{self, Stage, request},
};
use crate::{
    Completion, ExecutionResult, Host, HostCall, RunHandle, Runtime, RuntimeOptions, Status, Value,
    binding::inbound::Inbound,
    os::sync::Mutex,
    runtime::threads::{Threads, seams::Seam},
};

/// The time limit of a step that does not hang.
const CEILING: Duration = Duration::from_mins(2);

/// The kind of failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    /// Nothing fails.
    None,
    Throws,
    /// Throws a value that no sandbox can read.
    ThrowsNonsense,
    /// Never answered; the run is terminated.
    Silent,
    /// Answered only after the run was terminated.
    Late,
    Dropped,
    /// The host sends every unasked message twice.
    Twice,
    /// The host names promises and functions that do not exist.
    Unknown,
    Terminates,
    Panics,
}

/// A host that calls its functions on the test's thread.
struct Failing {
    stage: Stage,
    fault: Fault,
    /// The number of the call that fails, from 1.
    number: u64,
    calls: AtomicU64,
    /// For ending the run from the host. Removed at the end, because the run holds the host.
    remote: Mutex<Option<RunHandle>>,
    told: Mutex<Sender<Told>>,
}

enum Told {
    /// A call, with its number.
    Call(u64, u32, Value, HostCall),
    /// The host may have a message.
    Heard,
    Settled,
}

impl Failing {
    /// Ends the run as soon as the test has stored its handle.
    fn terminate(&self) {
        loop {
            let remote = self.remote.lock().clone();
            if let Some(remote) = remote {
                return remote.terminate(Some("from within"));
            }
            std::thread::yield_now();
        }
    }

    fn tell(&self, told: Told) {
        // A test that has seen the end no longer listens.
        let _ = self.told.lock().send(told);
    }
}

impl Host for Failing {
    fn call(&self, function: u32, args: Value, call: HostCall) {
        let number = self.calls.fetch_add(1, Ordering::Relaxed) + 1;
        if number == self.number {
            match self.fault {
                Fault::Panics => panic!("as the test wants"),
                Fault::Terminates => self.terminate(),
                _ => {}
            }
        }
        self.tell(Told::Call(number, function, args, call));
    }

    fn start(&self, function: u32, args: Value, promise: u32) {
        self.stage.start(function, args, promise);
        self.tell(Told::Heard);
    }

    fn function_settled(&self, call: u32, completion: Completion) {
        self.stage.function_settled(call, completion);
        self.tell(Told::Heard);
    }

    fn promise_settled(&self, promise: u32, completion: Completion) {
        self.stage.promise_settled(promise, completion);
        self.tell(Told::Heard);
    }

    fn settled(&self) {
        self.tell(Told::Settled);
    }
}

/// Runs a program with a fault. Also returns how often it called the host.
fn run(runtime: &Runtime, program: &Program, fault: Fault, failing: u64) -> (ExecutionResult, u64) {
    let (sender, told) = mpsc::channel();
    let host = Arc::new(Failing {
        stage: Stage::default(),
        fault,
        number: failing,
        calls: AtomicU64::new(0),
        remote: Mutex::default(),
        told: Mutex::new(sender),
    });
    let remote = runtime.start(request(program), Arc::<Failing>::clone(&host)).expect("valid");
    host.remote.lock().replace(remote.clone());
    let late = serve(&host, &remote, &told);
    host.remote.lock().take();
    for (call, completion) in late {
        call.reply(completion);
    }
    if fault == Fault::Late {
        speak(&remote, host.stage.outbox(), 2);
    }
    let result = remote.take_result().expect("settled");
    assert!(remote.take_result().is_none() && !remote.running());
    (result, host.calls.load(Ordering::Relaxed))
}

/// Answers until the run has settled. Returns the calls that are to be answered later.
fn serve(host: &Failing, remote: &RunHandle, told: &Receiver<Told>) -> Vec<(HostCall, Completion)> {
    let (mut late, mut silent) = (Vec::new(), Vec::new());
    loop {
        match told.recv_timeout(CEILING).expect("the run settles") {
            Told::Settled => return late,
            Told::Heard => {}
            Told::Call(number, function, args, call) => {
                let answer = host.stage.call(function, args);
                match host.fault {
                    Fault::Throws if number == host.number => {
                        call.reply(Err(stage::error("this call failed")));
                    }
                    Fault::ThrowsNonsense if number == host.number => {
                        call.reply(Err(Value::from_parts(vec![0xff, 0xff], Vec::new())));
                    }
                    Fault::Silent if number == host.number => {
                        silent.push(call);
                        remote.terminate(None);
                    }
                    Fault::Late if number == host.number => {
                        late.push((call, answer));
                        remote.terminate(None);
                    }
                    Fault::Dropped if number == host.number => drop(call),
                    Fault::Unknown if number == host.number => {
                        remote.settle_promise(4_000, Ok(Value::undefined()));
                        remote.call_function(4_000, Value::undefined(), 4_000);
                        remote.release_function(4_000, 3);
                        call.reply(answer);
                    }
                    _ => call.reply(answer),
                }
            }
        }
        let times = if host.fault == Fault::Twice { 2 } else { 1 };
        speak(remote, host.stage.outbox(), times);
    }
}

/// Sends the run the messages of the host.
fn speak(remote: &RunHandle, outbox: Vec<Inbound>, times: usize) {
    for inbound in outbox {
        match inbound {
            Inbound::PromiseSettled { promise, completion } => {
                for _ in 0..times {
                    remote.settle_promise(promise, completion.clone());
                }
            }
            Inbound::FunctionCall { function, args, call } => {
                remote.call_function(function, args, call);
            }
            Inbound::FunctionReleased { function, times } => {
                remote.release_function(function, times);
            }
        }
    }
}

/// A result without its times and sizes.
fn said(result: &ExecutionResult) -> String {
    let ExecutionResult { status, result, reports, error, .. } = result;
    format!("{status:?} {result:?} {reports:?} {error:?}")
}

fn right(fault: Fault, result: &ExecutionResult, expected: &ExecutionResult) -> bool {
    let name = result.error.as_ref().map(|error| error.name.as_str());
    match fault {
        Fault::None | Fault::Twice | Fault::Unknown => said(result) == said(expected),
        Fault::Throws | Fault::ThrowsNonsense | Fault::Dropped => {
            matches!(result.status, Status::Success | Status::Error)
                && name != Some("InternalError")
        }
        Fault::Silent | Fault::Late | Fault::Terminates => {
            result.status == Status::Terminated && name == Some("Terminated")
        }
        Fault::Panics => result.status == Status::Error && name == Some("InternalError"),
    }
}

/// Waits until the runtime is idle, and checks that nothing is left.
fn check_idle(runtime: &Runtime, threads: &Threads) {
    let since = Instant::now();
    while runtime.stats().computing > 0 || threads.0.scheduler.threads_finishing() > 0 {
        assert!(since.elapsed() < CEILING, "{:?}", runtime.stats());
        std::thread::yield_now();
    }
    let stats = runtime.stats();
    assert_eq!((stats.parked, stats.queued, stats.stuck_threads), (0, 0, 0), "{stats:?}");
}

/// A runtime, and the threads that its runs compute on.
fn runtime() -> (Runtime, Arc<Threads>) {
    let options = RuntimeOptions { max_concurrent_runs: Some(1), ..RuntimeOptions::default() };
    let settings = options.check().expect("valid options");
    let threads = Arc::new(Threads::new(&settings));
    (Runtime::on(Arc::<Threads>::clone(&threads), &settings), threads)
}

fn every_call(fault: Fault) {
    let (runtime, threads) = runtime();
    let pristine = run(&runtime, &SELF_CHECK, Fault::None, 0).0;
    assert_eq!(pristine.status, Status::Success, "{:?}", pristine.error);
    for program in CORPUS {
        let (expected, calls) = run(&runtime, program, Fault::None, 0);
        for failing in 1..=calls {
            let (result, _) = run(&runtime, program, fault, failing);
            let said = said(&result);
            assert!(right(fault, &result, &expected), "{}, {failing}: {said}", program.name);
        }
        if calls > 0 {
            let check = run(&runtime, &SELF_CHECK, Fault::None, 0).0;
            assert_eq!(check.result, pristine.result, "{}: another realm", program.name);
            check_idle(&runtime, &threads);
        }
    }
}

#[test]
fn calls_that_throw() {
    every_call(Fault::Throws);
    every_call(Fault::ThrowsNonsense);
}

#[test]
fn calls_that_are_never_answered() {
    every_call(Fault::Silent);
    every_call(Fault::Dropped);
}

#[test]
fn calls_that_are_answered_late() {
    every_call(Fault::Late);
}

#[test]
fn what_is_said_twice_or_of_nothing() {
    every_call(Fault::Twice);
    every_call(Fault::Unknown);
}

#[test]
fn calls_that_terminate_the_run() {
    every_call(Fault::Terminates);
}

#[test]
fn calls_that_panic() {
    every_call(Fault::Panics);
}

const RETURNS: Program =
    Program { name: "returns", source: "export default echo(1)", modules: &[] };
const WAITS: Program =
    Program { name: "waits", source: "await new Promise(() => {})", modules: &[] };

/// A panic of this crate at any seam of a run ends that run and nothing else.
#[test]
fn panics_between_the_steps_of_a_run() {
    let (runtime, threads) = runtime();
    for seam in Seam::ALL {
        let (sender, told) = mpsc::channel();
        let host = Arc::new(Failing {
            stage: Stage::default(),
            fault: Fault::None,
            number: 0,
            calls: AtomicU64::new(0),
            remote: Mutex::default(),
            told: Mutex::new(sender),
        });
        let program = if seam == Seam::Parked { &WAITS } else { &RETURNS };
        let request = crate::Request { filename: Some(seam.file()), ..request(program) };
        let remote = runtime.start(request, Arc::<Failing>::clone(&host)).expect("valid");
        serve(&host, &remote, &told);
        let result = remote.take_result().expect("settled");
        let name = result.error.map(|error| error.name).unwrap_or_default();
        match seam {
            Seam::Settled | Seam::LetGo => assert_eq!(result.status, Status::Success, "{seam:?}"),
            _ => {
                let ended = (result.status, name.as_str());
                assert_eq!(ended, (Status::Error, "InternalError"), "{seam:?}");
            }
        }
        check_idle(&runtime, &threads);
        for _ in 0..3 {
            let (result, _) = run(&runtime, &RETURNS, Fault::None, 0);
            assert_eq!(result.status, Status::Success, "after {seam:?}: {:?}", result.error);
        }
    }
}
