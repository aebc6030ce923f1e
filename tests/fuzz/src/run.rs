//! One run of a target, with the checks that hold for any run.
//!
//! In: a request. Out: its result, after every check that is independent of the program. Host functions have numbers:
//! see [`FUNCTIONS`].
#![expect(unsafe_code, reason = "leaves the process without its exit handlers")]

use std::{
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicU32, Ordering},
        mpsc::{self, RecvTimeoutError, Sender},
    },
    thread,
    time::{Duration, Instant},
};

use isolane::{
    Completion, ExecutionResult, Host, HostCall, REPORT_SINK, Request, Runtime, Status, Value,
    value::Writer,
};

use crate::equal::walk;

/// The time after which a possibly endless program is told to end.
pub(crate) const PATIENCE: Duration = Duration::from_millis(60);

/// The time limit of a run that does not hang; machines that fuzz are busy.
pub(crate) const CEILING: Duration = Duration::from_mins(1);

/// The memory of a run before it begins: the pristine realm and linking. A limit may be smaller.
const PRISTINE_BYTES: u64 = 1 << 20;

/// A thread that is stuck for longer does not return.
const LOST: Duration = Duration::from_secs(5);

/// The exit code of a process that gave up two threads; `tests/fuzz/run` then starts another.
const STUCK: i32 = 75;

/// The longest text of an error, and the longest stack.
const TEXT_BYTES: usize = 16 << 10;
const STACK_BYTES: usize = 64 << 10;

/// The host functions by number: returns its arguments, returns a promise of them, throws them, does not answer.
pub(crate) const FUNCTIONS: [&str; 4] = ["echo", "later", "fail", "forget"];

/// Globals with all of [`FUNCTIONS`], and no arguments.
pub(crate) fn with_functions(request: &mut Request) {
    let mut inputs = Writer::new();
    inputs.array(5);
    for (number, name) in (0..).zip(FUNCTIONS) {
        inputs.host_function(number);
        inputs.string(name);
    }
    inputs.array(0);
    request.globals = FUNCTIONS.map(str::to_owned).to_vec();
    request.inputs = inputs.finish();
}

enum Event {
    Promised(u32, Value),
    Settled,
}

struct Ear {
    events: Mutex<Sender<Event>>,
    promises: AtomicU32,
    settlements: AtomicU32,
}

impl Ear {
    fn tell(&self, event: Event) {
        // The receiver is gone after the result was taken.
        let _ = self.events.lock().unwrap_or_else(PoisonError::into_inner).send(event);
    }
}

impl Host for Ear {
    fn call(&self, function: u32, args: Value, call: HostCall) {
        walk(&args).expect("arguments that can be read");
        match function {
            0 => call.reply(Ok(args)),
            1 => {
                let number = self.promises.fetch_add(1, Ordering::Relaxed);
                let mut writer = Writer::new();
                writer.host_promise(number);
                call.reply(Ok(writer.finish()));
                self.tell(Event::Promised(number, args));
            }
            2 => call.reply(Err(args)),
            3 => drop(call),
            REPORT_SINK => call.reply(Ok(Value::undefined())),
            _ => panic!("no host function has the number {function}"),
        }
    }

    fn function_settled(&self, call: u32, _completion: Completion) {
        panic!("the host made no call {call}");
    }

    fn promise_settled(&self, _promise: u32, completion: Completion) {
        walk(completion.as_ref().unwrap_or_else(|thrown| thrown)).expect("readable");
    }

    fn settled(&self) {
        assert_eq!(self.settlements.fetch_add(1, Ordering::SeqCst), 0, "settled twice");
        self.tell(Event::Settled);
    }
}

/// The runtime of the process, which computes one run at a time: the next run has the instance of the last.
pub(crate) fn runtime() -> &'static Runtime {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| {
        let options = isolane::RuntimeOptions {
            max_concurrent_runs: Some(1),
            ready_isolates: Some(1),
            compile_cache_bytes: Some(1_000_000),
            ..Default::default()
        };
        Runtime::new(&options).expect("valid options")
    })
}

/// Runs a program and tells it to end after some time. `None` is misuse.
pub(crate) fn run(request: Request, spin: Duration) -> Option<ExecutionResult> {
    let limit_bytes = request.memory_limit_bytes.unwrap_or(f64::from(128 << 20));
    let (sender, events) = mpsc::channel();
    let ear = Ear {
        events: Mutex::new(sender),
        promises: AtomicU32::new(0),
        settlements: AtomicU32::new(0),
    };
    let remote = runtime().start(request, Arc::new(ear)).ok()?;
    let (began, mut asked) = (Instant::now(), false);
    loop {
        let left = if asked { CEILING } else { spin.saturating_sub(began.elapsed()) };
        match events.recv_timeout(left) {
            Ok(Event::Promised(number, value)) => remote.settle_promise(number, Ok(value)),
            Ok(Event::Settled) => break,
            Err(RecvTimeoutError::Timeout) if !asked => {
                asked = true;
                remote.terminate(Some("enough"));
            }
            Err(why) => panic!("the run does not settle: {why}"),
        }
    }
    assert!(!remote.running(), "a settled run is over");
    let result = remote.take_result().expect("a settled run has a result");
    assert!(remote.take_result().is_none(), "a result is taken once");
    judge(&result, limit_bytes);
    let ended = result.error.as_ref().map(|error| error.name.as_str());
    let unasked = result.status == Status::Terminated && !asked && ended != Some("SafetyCap");
    assert!(!unasked, "nobody ended this: {result:?}");
    leave_if_stuck();
    Some(result)
}

/// Checks that hold for every result.
pub(crate) fn judge(result: &ExecutionResult, limit_bytes: f64) {
    let success = result.status == Status::Success;
    let is_uncloned = result.cell.as_ref().is_some_and(|cell| cell.uncloned.is_some());
    assert_eq!(result.result.is_some(), success && !is_uncloned, "{result:?}");
    assert_eq!(result.error.is_none(), success, "{result:?}");
    let messages = result.result.iter().chain(&result.reports);
    for message in messages.chain(result.logs.iter().map(|log| &log.args)) {
        walk(message).expect("a message of the core can be read");
    }
    if let Some(error) = &result.error {
        let broken = "the sandbox itself failed; please report this";
        assert_ne!(error.message, broken, "{result:?}");
        let stack = error.stack.as_deref().unwrap_or_default();
        assert!(error.name.len() <= TEXT_BYTES && error.message.len() <= TEXT_BYTES);
        assert!(error.specifier.as_deref().unwrap_or_default().len() <= TEXT_BYTES);
        assert!(stack.len() <= STACK_BYTES);
    }
    #[expect(clippy::cast_precision_loss, reason = "far below 2^53")]
    let (used, pristine) =
        (result.memory_used_bytes.unwrap_or_default() as f64, PRISTINE_BYTES as f64);
    assert!(used <= limit_bytes.max(pristine), "{:?} bytes used", result.memory_used_bytes);
}

/// Describes the current state of everything that a program can reach.
pub(crate) const CENSUS: &str = include_str!("census.js");

/// Panics if the next run's realm differs from the first one's, after the inputs that are checked.
pub(crate) fn check_pristine_after(data: &[u8]) {
    if is_checked(data) {
        check_pristine();
    }
}

/// Whether the realm is checked after that input. The check costs more than most runs, so only one input of many has
/// it. The bytes select it, so an input that fails does so again.
pub(crate) fn is_checked(data: &[u8]) -> bool {
    let sum = data.iter().fold(0_u8, |sum, byte| sum.wrapping_mul(31).wrapping_add(*byte));
    sum % 32 == 0
}

fn check_pristine() {
    static FIRST: OnceLock<String> = OnceLock::new();
    let (sender, settled) = mpsc::channel();
    let ear = Ear {
        events: Mutex::new(sender),
        promises: AtomicU32::new(0),
        settlements: AtomicU32::new(0),
    };
    let request = Request::new(CENSUS.to_owned().into());
    let remote = runtime().start(request, Arc::new(ear)).expect("no misuse");
    settled.recv_timeout(CEILING).expect("the census is taken");
    let result = remote.take_result().expect("a result");
    let found = result.result.unwrap_or_else(|| panic!("no census: {:?}", result.error));
    let found: String = found.deserialize().expect("a text");
    compare_census(&found, &FIRST);
}

/// Panics if a census differs from the first one.
pub(crate) fn compare_census(found: &str, first: &OnceLock<String>) {
    let first = first.get_or_init(|| found.to_owned());
    let changed = first.lines().zip(found.lines()).find(|(first, found)| first != found);
    assert!(first == found, "the realm is not pristine: {changed:?}");
}

/// Ends the process, as if its time were up, when its threads are lost in builtins that never check the clock. They are
/// a known limit, and would slow down all later inputs. Slow threads that return are waited for.
pub(crate) fn leave_if_stuck() {
    let began = Instant::now();
    while cfg!(isolane_sanitized) && runtime().stats().stuck_threads >= 2 {
        thread::sleep(Duration::from_millis(10));
        if began.elapsed() > LOST {
            eprintln!("two threads are in builtins that do not end: a new process has to go on");
            // SAFETY: ends the process, and runs no handler that would report a crash.
            unsafe { libc::_exit(STUCK) }
        }
    }
}
