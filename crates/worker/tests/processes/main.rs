//! Tests of isolates in processes: their number, their ends, and their notifications.
//!
//! The contract table tests the outcomes of runs, in processes too (`contract`).

mod executors;
mod family;
mod forks;
mod sessions;

use std::{
    collections::HashSet,
    error::Error,
    io,
    num::ParseIntError,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
        mpsc,
    },
    thread::{self, ThreadId},
    time::{Duration, Instant},
};

use family::{alone, eventually};
use isolane::{
    Completion, Execution, ExecutionOptions, ExecutionResult, Host, HostCall, HostError,
    HostFunction, Inputs, Isolation, Report, Request, RunHandle, Runtime, RuntimeOptions, Status,
    Value, value::Writer,
};

/// The message about a worker that was killed.
const KILLED: &str =
    if cfg!(windows) { "the worker exited with code 9" } else { "the worker was killed" };

fn options() -> RuntimeOptions {
    RuntimeOptions {
        isolation: Isolation::Process,
        worker: Some(env!("CARGO_BIN_EXE_isolane-worker").into()),
        ..RuntimeOptions::default()
    }
}

fn runtime(options: &RuntimeOptions) -> Runtime {
    Runtime::new(options).expect("a runtime of processes")
}

/// A runtime whose only workers are those that runs have.
fn bare() -> Runtime {
    runtime(&RuntimeOptions { ready_isolates: Some(0), ..options() })
}

fn run(runtime: &Runtime, source: &str) -> ExecutionResult {
    runtime.run_code(source, ExecutionOptions::default()).wait().expect("no misuse")
}

fn start(runtime: &Runtime, source: &str, globals: Inputs) -> Execution {
    runtime.run_code(source, ExecutionOptions { globals, ..ExecutionOptions::default() })
}

fn reporting(runtime: &Runtime, source: &str) -> Execution {
    let options = ExecutionOptions { report: Report::On, ..ExecutionOptions::default() };
    runtime.run_code(source, options)
}

fn error(result: &ExecutionResult) -> (&str, &str) {
    result.error.as_ref().map_or(("", ""), |error| (&error.name, &error.message))
}

/// The inputs of a run whose one global is a function of the host.
fn function(name: &str) -> Value {
    let mut inputs = Writer::new();
    inputs.array(2);
    inputs.host_function(0);
    inputs.string(name);
    inputs.array(0);
    inputs.finish()
}

/// Never answers; counts its calls.
fn never(calls: &Arc<AtomicU32>) -> HostFunction {
    let calls = Arc::clone(calls);
    HostFunction::future(move || {
        calls.fetch_add(1, Ordering::SeqCst);
        std::future::pending::<Result<(), HostError>>()
    })
}

#[test]
fn no_two_runs_share_a_process_and_each_draws_its_own_numbers() {
    let _alone = alone();
    let runtime = runtime(&options());
    let mut drawn = HashSet::new();
    for _ in 0..20 {
        let source = "globalThis.left ??= 0; export default [++globalThis.left, Math.random()]";
        let result = run(&runtime, source);
        let value: (u32, f64) =
            result.result.unwrap_or_default().deserialize().expect("two numbers");
        assert_eq!(value.0, 1);
        assert!(drawn.insert(value.1.to_bits()), "drawn twice");
    }
}

#[test]
fn a_process_serves_as_many_runs_as_it_may_each_in_a_pristine_isolate() {
    let _alone = alone();
    let options = RuntimeOptions { runs_per_worker: Some(3), ready_isolates: Some(1), ..options() };
    let runtime = runtime(&options);
    let mut seen = HashSet::new();
    for _ in 0..9 {
        let result = run(&runtime, "globalThis.left ??= 0; export default ++globalThis.left");
        assert_eq!(result.result.unwrap_or_default().deserialize::<u32>().expect("a number"), 1);
        seen.extend(family::workers());
    }
    assert!(seen.len() <= 6, "{} processes served nine runs", seen.len());
    // None of these ends another run: an error, an end by request, and one that came while the run waited.
    for source in ["throw 1", "for (;;);", "await new Promise(() => {})"] {
        let ends = start(&runtime, source, Inputs::new());
        thread::sleep(Duration::from_millis(5));
        if source.starts_with("for") {
            ends.terminate(None);
        }
        assert_ne!(ends.wait().expect("no misuse").status, Status::Success);
        for _ in 0..4 {
            assert_eq!(run(&runtime, "export default 1").status, Status::Success);
        }
    }
}

#[test]
fn a_run_that_is_ended_while_it_gets_its_worker_is_over() {
    let _alone = alone();
    let runtime = runtime(&RuntimeOptions { ready_isolates: Some(4), ..options() });
    for _ in 0..200 {
        let ends = start(&runtime, "for (;;);", Inputs::new());
        ends.terminate(None);
        assert_eq!(ends.wait().expect("no misuse").status, Status::Terminated);
    }
    let ready = || runtime.stats().ready_isolates;
    eventually("workers of ended runs to go", || family::workers().len() <= ready());
}

#[test]
fn processes_are_kept_for_no_time_at_all_if_that_is_wanted() {
    let _alone = alone();
    let runtime = runtime(&RuntimeOptions { worker_idle_ms: Some(0), ..options() });
    let calls = Arc::default();
    let waiting = start(&runtime, "await never()", Inputs::new().with("never", never(&calls)));
    for _ in 0..3 {
        thread::sleep(Duration::from_millis(30));
        assert_eq!(run(&runtime, "export default 1").status, Status::Success);
    }
    assert!(waiting.running());
}

#[test]
fn a_worker_killed_between_any_two_frames_loses_its_own_run_alone() {
    let _alone = alone();
    let other = runtime(&options());
    for at in 0..12 {
        let runtime = bare();
        let calls = Arc::new(AtomicU32::new(0));
        let kill = HostFunction::new(move |wait: bool| {
            if calls.fetch_add(1, Ordering::SeqCst) == at {
                family::kill_workers();
                if wait {
                    thread::sleep(Duration::from_millis(20));
                }
            }
            Ok::<_, HostError>(())
        });
        let source = "for (let i = 0; i < 6; i++) { console.log(i); step(i % 2 === 0); \
                      await null; await later(); step(false); } export default 'done'";
        let later = HostFunction::future(|| async { Ok::<_, HostError>(()) });
        let globals = Inputs::new().with("step", kill).with("later", later);
        let lost = start(&runtime, source, globals);
        let result = lost.wait().expect("no misuse");
        assert_eq!(error(&result), ("WorkerLost", KILLED), "at {at}: {result:?}");
        assert_eq!(result.status, Status::Error);
        // The logs up to the kill are kept.
        assert_eq!(result.logs.len(), at as usize / 2 + 1);
        assert_eq!(run(&runtime, "export default 1").status, Status::Success);
        // Its idle workers were killed, too, and it may not have noticed yet.
        eventually("others", || run(&other, "export default 1").status == Status::Success);
    }
}

#[test]
fn a_worker_killed_while_it_computes_loses_its_run() {
    let _alone = alone();
    for after_ms in [0, 1, 5, 20] {
        let runtime = bare();
        let busy = start(&runtime, "for (;;);", Inputs::new());
        eventually("a worker", || !family::workers().is_empty());
        thread::sleep(Duration::from_millis(after_ms));
        // The first worker may be one that only tries its confinement.
        while busy.running() {
            family::kill_workers();
        }
        let result = busy.wait().expect("no misuse");
        assert_eq!(error(&result).0, "WorkerLost");
    }
}

#[cfg(unix)]
#[test]
fn a_zygote_that_is_killed_takes_its_runs_with_it_and_is_replaced() {
    loses_its_runs_and_is_replaced(family::kill_zygotes);
}

#[cfg(unix)]
#[test]
fn a_launcher_that_is_killed_takes_its_runs_with_it_and_is_replaced() {
    loses_its_runs_and_is_replaced(family::kill_launchers);
}

#[cfg(unix)]
fn loses_its_runs_and_is_replaced(kill: fn()) {
    let _alone = alone();
    let runtime = runtime(&options());
    let calls = Arc::default();
    let source = "await never(); export default 1";
    let waiting = start(&runtime, source, Inputs::new().with("never", never(&calls)));
    eventually("a call", || calls.load(Ordering::SeqCst) == 1);
    kill();
    assert_eq!(error(&waiting.wait().expect("no misuse")).0, "WorkerLost");
    assert_eq!(run(&runtime, "export default 1").status, Status::Success);
}

#[test]
fn large_and_small_messages_come_in_order() {
    let _alone = alone();
    let source = "for (let i = 0; i < 9; i++) { \
                  report(i % 3 ? `${i}` : `${i}`.repeat(2e6)); console.log(i) } \
                  export default 'z'.repeat(3e6)";
    for runs in [1, 3] {
        let runtime = runtime(&RuntimeOptions { runs_per_worker: Some(runs), ..options() });
        for _ in 0..3 {
            let result = reporting(&runtime, source).wait().expect("no misuse");
            assert_eq!((error(&result), result.logs.len()), (("", ""), 9));
            let texts = result.reports.iter().chain(&result.result);
            let texts: Vec<String> =
                texts.map(|value| value.deserialize().expect("a text")).collect();
            for (place, text) in texts.iter().enumerate() {
                let (digit, times) = match place {
                    9 => ("z".to_owned(), 3_000_000),
                    _ => (place.to_string(), if place % 3 == 0 { 2_000_000 } else { 1 }),
                };
                assert_eq!(*text, digit.repeat(times), "{place}");
            }
        }
    }
}

#[test]
fn a_run_may_end_while_a_large_message_of_it_is_read() {
    let _alone = alone();
    let source =
        "for (let i = 0; i < 4; i++) report('x'.repeat(3e6)); export default 'x'.repeat(9e6)";
    let runtime = bare();
    for after_ms in (0..120).step_by(6) {
        let ended = reporting(&runtime, source);
        let killed = reporting(&runtime, source);
        thread::sleep(Duration::from_millis(after_ms));
        family::kill_workers();
        ended.terminate(Some("enough"));
        for run in [ended, killed] {
            let result = run.wait().expect("no misuse");
            let came = matches!(
                (result.status, error(&result).0),
                (Status::Success, "") | (Status::Error, "WorkerLost") | (Status::Terminated, _)
            );
            assert!(came, "{after_ms}: {:?}", result.error);
        }
    }
    eventually("their end", || family::workers().is_empty());
    assert_eq!(run(&runtime, "export default 1").status, Status::Success);
}

/// Answers every call, and reports the thread of each.
struct Answers(mpsc::Sender<Option<ThreadId>>);

impl Host for Answers {
    fn call(&self, _function: u32, _args: Value, call: HostCall) {
        // Nobody listens any more once the test has failed.
        let _ = self.0.send(Some(thread::current().id()));
        call.reply(Ok(Value::undefined()));
    }

    fn function_settled(&self, _call: u32, _completion: Completion) {}

    fn promise_settled(&self, _promise: u32, _completion: Completion) {}

    fn settled(&self) {
        let _ = self.0.send(None);
    }
}

/// A run whose host answers.
fn answered(runtime: &Runtime, source: &str) -> (RunHandle, mpsc::Receiver<Option<ThreadId>>) {
    let request = Request {
        globals: vec!["answers".to_owned()],
        inputs: function("answers"),
        ..Request::new(source.to_owned().into())
    };
    let (told, heard) = mpsc::channel();
    let remote = runtime.start(request, Arc::new(Answers(told))).expect("it starts");
    (remote, heard)
}

#[test]
fn what_is_large_is_read_while_the_host_listens() {
    let _alone = alone();
    let runtime = runtime(&options());
    let (busy, _calls) = answered(&runtime, "for (;;) answers()");
    let source = "for (let i = 0; i < 5; i++) answers('x'.repeat(1e6)); \
                  export default 'x'.repeat(1e6)";
    let (large, heard) = answered(&runtime, source);
    let listener = busy.event_poller().expect("it is in another process");
    let began = Instant::now();
    while large.running() && began.elapsed() < Duration::from_mins(2) {
        let _ = listener.hear();
    }
    assert_eq!(heard.iter().take(6).flatten().count(), 5);
    assert_eq!(error(&large.take_result().expect("a result")), ("", ""));
    assert!(busy.running());
    listener.rest();
    busy.terminate(None);
}

#[test]
fn a_thread_of_the_host_may_listen() {
    let _alone = alone();
    let runtime = runtime(&options());
    let start = |calls: u32| {
        let source = format!("for (let i = 0; i < {calls}; i++) answers(); export default 1");
        answered(&runtime, &source)
    };
    for calls in [0, 1, 500] {
        let (remote, heard) = start(calls);
        let listener = remote.event_poller().expect("it is in another process");
        let began = Instant::now();
        while remote.running() && began.elapsed() < Duration::from_mins(2) {
            let _ = listener.hear();
        }
        listener.rest();
        let result = remote.take_result().expect("a result");
        assert_eq!(error(&result), ("", ""));
        let told: Vec<_> = heard.iter().take(calls as usize + 1).collect();
        assert_eq!(told.last(), Some(&None));
    }
    // The driver leaves events to the poller.
    let (remote, heard) = answered(&runtime, "for (;;) answers()");
    let listener = remote.event_poller().expect("it is in another process");
    let here = Some(thread::current().id());
    eventually("a call that is heard here", || {
        let _ = listener.hear();
        heard.try_iter().any(|thread| thread == here)
    });
    listener.rest();
    remote.terminate(None);
    // A poller that suddenly has other work.
    let (remote, heard) = start(100);
    let _ = remote.event_poller().expect("it is in another process").hear();
    while heard.recv_timeout(Duration::from_mins(2)).expect("it goes on").is_some() {}
    assert_eq!(error(&remote.take_result().expect("a result")), ("", ""));
    // A poller whose runtime is gone.
    let listener = remote.event_poller().expect("it is in another process");
    drop(runtime);
    eventually("the end of its thread", || !listener.hear());
}

/// Panics on each call, on any thread.
struct Panics(mpsc::Sender<()>);

impl Host for Panics {
    fn call(&self, _function: u32, _args: Value, _call: HostCall) {
        panic!("as the test wants");
    }

    fn function_settled(&self, _call: u32, _completion: Completion) {}

    fn promise_settled(&self, _promise: u32, _completion: Completion) {}

    fn settled(&self) {
        self.0.send(()).expect("it is waited for");
    }
}

#[test]
fn a_host_that_panics_ends_its_own_run_alone() {
    let _alone = alone();
    let runtime = runtime(&options());
    let calls = Arc::default();
    let other = start(&runtime, "await never()", Inputs::new().with("never", never(&calls)));
    let request = Request {
        globals: vec!["panics".to_owned()],
        inputs: function("panics"),
        ..Request::new("panics()".to_owned().into())
    };
    let (told, heard) = mpsc::channel();
    let broken = runtime.start(request, Arc::new(Panics(told))).expect("it starts");
    heard.recv_timeout(Duration::from_mins(2)).expect("it settles");
    let result = broken.take_result().expect("a result");
    assert_eq!(error(&result).0, "InternalError");
    assert_eq!(run(&runtime, "export default 1").status, Status::Success);
    assert!(other.running());
}

#[test]
fn terminate_leaves_no_process_of_the_run() {
    let _alone = alone();
    let endless = "Array.prototype.reverse.call({ length: 2 ** 53 })";
    for source in ["for (;;);", endless, "await new Promise(() => {})", "await never()"] {
        let runtime = bare();
        let calls = Arc::default();
        let run = start(&runtime, source, Inputs::new().with("never", never(&calls)));
        eventually("a worker", || !family::workers().is_empty());
        thread::sleep(Duration::from_millis(20));
        run.terminate(Some("enough"));
        let result = run.wait().expect("no misuse");
        assert_eq!(error(&result), ("Terminated", "enough"), "{source}");
        eventually("its end", || family::workers().is_empty());
    }
}

#[test]
fn the_cap_on_cpu_time_holds_in_what_never_polls_too() {
    let _alone = alone();
    let options = RuntimeOptions { safety_cap_ms: Some(200), ..options() };
    let runtime = runtime(&options);
    for source in ["for (;;);", "Array.prototype.reverse.call({ length: 2 ** 53 })"] {
        let result = run(&runtime, source);
        assert_eq!(result.status, Status::Terminated, "{result:?}");
        assert_eq!(error(&result).0, "SafetyCap");
    }
}

#[test]
fn runs_that_compute_for_long_hold_up_nobody() {
    let _alone = alone();
    let options = RuntimeOptions { max_concurrent_runs: Some(2), ..options() };
    let runtime = runtime(&options);
    let long: Vec<_> = (0..12).map(|_| start(&runtime, "for (;;);", Inputs::new())).collect();
    for _ in 0..5 {
        assert_eq!(run(&runtime, "export default 1").status, Status::Success);
    }
    for run in &long {
        run.terminate(None);
    }
    for run in long {
        assert_eq!(run.wait().expect("no misuse").status, Status::Terminated);
    }
}

#[test]
fn runs_that_wait_hold_no_permit() {
    let _alone = alone();
    let options = RuntimeOptions { max_concurrent_runs: Some(1), ..options() };
    let runtime = runtime(&options);
    let calls = Arc::default();
    let source = "await never()";
    let start_one = |_| start(&runtime, source, Inputs::new().with("never", never(&calls)));
    let waiting: Vec<_> = (0..40).map(start_one).collect();
    eventually("all to wait", || runtime.stats().parked == 40);
    assert_eq!(run(&runtime, "export default 1").status, Status::Success);
    // The last of the waiting runs may only have waited for the answer to its call, and compute once more.
    let counts = || {
        let stats = runtime.stats();
        (stats.computing, stats.queued, stats.success)
    };
    eventually("it to be counted", || counts() == (0, 0, 1));
    drop(waiting);
    eventually("their end", || runtime.stats().terminated == 40);
}

#[test]
fn a_queue_that_is_full_refuses_runs() {
    let _alone = alone();
    let options =
        RuntimeOptions { max_concurrent_runs: Some(1), max_queued_runs: Some(2), ..options() };
    let runtime = runtime(&options);
    let started: Vec<_> = (0..12).map(|_| start(&runtime, "for (;;);", Inputs::new())).collect();
    for run in &started {
        run.terminate(None);
    }
    let came: Vec<_> = started.into_iter().map(Execution::wait).collect();
    assert!(came.iter().any(Result::is_err), "none was refused");
    assert!(came.iter().any(Result::is_ok), "all were refused");
}

#[test]
fn many_runs_leave_nothing_behind() {
    let _alone = alone();
    let runtime = runtime(&options());
    let mixed = |round: u32| match round % 4 {
        0 => "export default 1",
        1 => "throw new Error('x')",
        2 => "const a = []; for (;;) a.push(new Array(1e6).fill(0))",
        _ => "console.log('x'.repeat(1e5)); export default 'y'.repeat(1e5)",
    };
    let some = |count: u32| {
        let options = || ExecutionOptions {
            memory_limit_bytes: Some(4 << 20),
            ..ExecutionOptions::default()
        };
        let started: Vec<_> =
            (0..count).map(|round| runtime.run_code(mixed(round), options())).collect();
        for run in started {
            run.wait().expect("no misuse");
        }
        eventually("workers to go", || family::workers().len() <= 40);
    };
    some(40);
    eventually("zombies to go", || family::zombies() == 0);
    let before = family::descriptors();
    for _ in 0..4 {
        some(40);
    }
    let stats = runtime.stats();
    eventually("descriptors", || family::descriptors() <= before + stats.ready_isolates + 8);
    eventually("zombies to go", || family::zombies() == 0);
    assert_eq!((stats.success, stats.error, stats.memory), (100, 50, 50));
}

#[test]
fn a_closed_runtime_has_no_process() {
    let _alone = alone();
    let runtime = runtime(&options());
    let busy = start(&runtime, "for (;;);", Inputs::new());
    eventually("workers", || !family::workers().is_empty());
    let (told, heard) = mpsc::channel();
    runtime.close(move || told.send(()).expect("it is waited for"));
    heard.recv_timeout(Duration::from_mins(2)).expect("it closes");
    assert_eq!(error(&busy.wait().expect("no misuse")), ("Terminated", "runtime closed"));
    eventually("no process", || family::all().is_empty());
    let (told, heard) = mpsc::channel();
    runtime.close(move || told.send(()).expect("it is waited for"));
    heard.recv_timeout(Duration::from_mins(2)).expect("it is closed already");
    let refused = start(&runtime, "export default 1", Inputs::new()).wait();
    assert!(refused.is_err());
}

#[test]
fn a_runtime_that_is_dropped_has_none_either() {
    let _alone = alone();
    let runtime = runtime(&options());
    assert_eq!(run(&runtime, "export default 1").status, Status::Success);
    drop(runtime);
    eventually("no process", || family::all().is_empty());
}

#[test]
fn processes_that_nobody_uses_go() {
    let _alone = alone();
    let options = RuntimeOptions { worker_idle_ms: Some(50), ..options() };
    let runtime = runtime(&options);
    assert_eq!(run(&runtime, "export default 1").status, Status::Success);
    eventually("no worker", || family::workers().is_empty());
    assert_eq!(run(&runtime, "export default 1").status, Status::Success);
}

/// The kind of the system's error that one was made out of.
fn system_error(error: &dyn Error) -> Option<io::ErrorKind> {
    error.source()?.downcast_ref::<io::Error>().map(io::Error::kind)
}

#[test]
fn a_file_that_the_system_does_not_run_is_a_cause() {
    let _alone = alone();
    let source = RuntimeOptions {
        worker: Some(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml").into()),
        ..options()
    };
    let result = run(&runtime(&source), "export default 1");
    let lost = result.into_value().expect_err("it is no program");
    assert!(lost.to_string().starts_with("WorkerLost: no worker could be started: "), "{lost}");
    let kind = system_error(&lost);
    assert!(kind.is_some(), "{lost:?}");
    assert!(cfg!(windows) || kind == Some(io::ErrorKind::PermissionDenied), "{lost:?}");
}

#[test]
fn what_a_host_threw_is_the_cause_of_what_it_ended() {
    let _alone = alone();
    let runtime = runtime(&options());
    for source in
        ["parse('x')", "await later('x')", "try { parse('x') } catch (e) { await 0; throw e }"]
    {
        let globals = Inputs::new()
            .with("parse", HostFunction::new(|text: String| text.parse::<i32>()))
            .with("later", HostFunction::future(async |text: String| text.parse::<i32>()));
        let result = start(&runtime, source, globals).wait().expect("no misuse");
        let lost = result.into_value().expect_err("nobody caught it");
        assert!(lost.source().is_some_and(<dyn Error>::is::<ParseIntError>), "{lost:?}");
    }
    let other = run(&runtime, "throw new Error('of the sandbox')").into_value();
    assert!(other.expect_err("thrown").source().is_none());
}

fn this_program() -> PathBuf {
    std::env::current_exe().expect("this program")
}

#[test]
fn an_executable_that_is_none_is_told_at_once_or_by_its_runs() {
    let _alone = alone();
    let missing = RuntimeOptions { worker: Some("/nowhere/isolane-worker".into()), ..options() };
    let refused = Runtime::new(&missing).expect_err("there is none");
    assert!(refused.message().contains("/nowhere/isolane-worker"), "{refused}");
    assert_eq!(system_error(&refused), Some(io::ErrorKind::NotFound));
    // A program that ends at once, or this one, which does nothing with its input.
    let another = if cfg!(unix) { "/bin/true".into() } else { this_program() };
    let result = run(
        &runtime(&RuntimeOptions { worker: Some(another.clone()), ..options() }),
        "export default 1",
    );
    assert_eq!(error(&result).0, "WorkerLost");
    assert!(error(&result).1.contains(&*another.to_string_lossy()), "{result:?}");
}

#[test]
fn what_was_taken_from_the_workers_is_told() {
    let _alone = alone();
    let runtime = runtime(&options());
    run(&runtime, "export default 1");
    let confinement = runtime.stats().confinement.expect("a worker was there");
    // The items that need no privileges are there everywhere.
    assert!(confinement.environment && confinement.descriptors && confinement.resources);
    assert!(confinement.privileges && confinement.system_calls || cfg!(windows));
}
