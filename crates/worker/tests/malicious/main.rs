//! Tests with compromised workers: any frames of theirs at worst spoil their own run.
//!
//! This program is both sides. Started by cargo it runs the tests. Started by a runtime, as its worker, it is the
//! [`double`], which plays the zygote and all workers, or one worker, and does to its host the act that the source of
//! each run names.

mod double;
mod sessions;

use std::{
    env,
    time::{Duration, Instant},
};

use isolane::{
    ExecutionOptions, ExecutionResult, HostError, HostFunction, Inputs, Isolation, Runtime,
    RuntimeOptions, Status,
};

/// Small, so that the lack of a bound would show.
const MEMORY_LIMIT_BYTES: u64 = 8 << 20;

/// Longer than a run of a few frames takes on a busy machine.
const CEILING: Duration = Duration::from_mins(2);

fn main() {
    // A host starts it with a version and other numbers.
    if env::args().nth(1).is_some_and(|word| word.parse::<u32>().is_ok()) {
        double::play();
        return;
    }
    let tests: [(&str, fn()); 9] = [
        ("a frame that no worker sends ends its run", no_worker_says_that),
        ("more than a host need take ends as memory", too_much),
        ("frames that are allowed do no harm", harmless),
        ("random bytes", random_bytes),
        ("honest frames, broken anywhere", broken_frames),
        ("a frame that no worker sends ends its session", sessions::no_worker_says_that),
        ("cells that no worker interleaves like that", sessions::no_worker_interleaves_like_that),
        ("a lie about a session's names or state ends it", sessions::no_worker_answers_that),
        ("a worker that does not answer costs its session", sessions::silence),
    ];
    for (name, test) in tests {
        test();
        println!("test {name} ... ok");
    }
}

fn runtime() -> Runtime {
    let options = RuntimeOptions {
        isolation: Isolation::Process,
        worker: Some(env::current_exe().expect("this program")),
        ..RuntimeOptions::default()
    };
    Runtime::new(&options).expect("a runtime of processes")
}

/// The result of a run whose worker does that act. The host has functions and takes reports.
fn run(runtime: &Runtime, act: &str) -> ExecutionResult {
    let add = HostFunction::new(|a: f64, b: f64| Ok::<_, HostError>(a + b));
    let later = HostFunction::future(|| async { Ok::<_, HostError>(1) });
    let options = ExecutionOptions {
        globals: Inputs::new().with("add", add).with("later", later),
        memory_limit_bytes: Some(MEMORY_LIMIT_BYTES),
        ..ExecutionOptions::default()
    };
    let started = Instant::now();
    let source = format!("/*act:{act}*/");
    let result = runtime.run_code(source, options).wait().expect("no misuse");
    assert!(started.elapsed() < CEILING, "{act}: {:?}", started.elapsed());
    if let Some(error) = &result.error {
        assert!(error.message.len() <= 16 << 10 && error.name.len() <= 16 << 10, "{act}");
    }
    result
}

fn error_name(result: &ExecutionResult) -> &str {
    result.error.as_ref().map_or("", |error| &error.name)
}

fn no_worker_says_that() {
    let runtime = runtime();
    let acts = [
        "kind-0",
        "kind-99",
        "empty-head",
        "long-head",
        "many-chunks",
        "call-empty-blobs",
        "call-sink",
        "call-async",
        "call-twice",
        "call-malformed",
        "start-taken",
        "settle-function",
        "settle-promise",
        "settle-promise-twice",
        "log-level",
        "log-timestamp",
        "log-object",
        "result-promise",
        "result-malformed",
        "result-depth",
        "result-blob",
        "error-cause-kind",
        "error-cause-promise",
        "error-utf8",
        "report-waits",
        "asks",
        "parks-again",
        "parks-too-far",
        "trailing",
        "quit",
        "half",
    ];
    for act in acts {
        let result = run(&runtime, act);
        assert_eq!(error_name(&result), "WorkerLost", "{act}: {result:?}");
        assert_eq!(result.status, Status::Error);
    }
    let honest = run(&runtime, "honest");
    assert_eq!(honest.status, Status::Success, "{honest:?}");
}

fn too_much() {
    let runtime = runtime();
    for act in ["large-frame", "logs", "reports", "starts", "promises", "functions", "large-result"]
    {
        let result = run(&runtime, act);
        assert_eq!(result.status, Status::Memory, "{act}: {result:?}");
    }
    let honest = run(&runtime, "honest");
    assert_eq!(honest.status, Status::Success, "{honest:?}");
}

fn harmless() {
    let runtime = runtime();
    // A function that was never given out throws inside; a false report of waiting harms only its own run.
    for act in ["call-unknown", "parked-lies", "status-made-up", "huge-peak", "slow", "after-end"] {
        let result = run(&runtime, act);
        assert_ne!(result.status, Status::Memory, "{act}");
        assert_ne!(error_name(&result), "WorkerLost", "{act}: {result:?}");
    }
    let huge = run(&runtime, "huge-peak");
    assert!(huge.memory_used_bytes.is_some_and(|bytes| bytes < 1 << 53), "{huge:?}");
    let long = run(&runtime, "long-error");
    assert_eq!(error_name(&long).len(), 16 << 10);
    // An object that the host did not throw is no cause.
    let unknown = run(&runtime, "error-cause-unknown").error.expect("it failed");
    assert_eq!((unknown.name.as_str(), unknown.cause), ("Error", None));
    // A worker that never sends anything is ended when its host asks.
    let silent = runtime.run_code("/*act:silent*/", ExecutionOptions::default());
    std::thread::sleep(Duration::from_millis(20));
    silent.terminate(Some("enough"));
    assert_eq!(error_name(&silent.wait().expect("no misuse")), "Terminated");
}

fn random_bytes() {
    let runtime = runtime();
    for seed in 0..200 {
        let result = run(&runtime, &format!("random-{seed}"));
        assert_ne!(result.status, Status::Success, "{seed}: {result:?}");
    }
    let honest = run(&runtime, "honest");
    assert_eq!(honest.status, Status::Success, "{honest:?}");
}

fn broken_frames() {
    let runtime = runtime();
    for seed in 0..400 {
        // Any result is right but a panic, a hang, or the end of another run.
        run(&runtime, &format!("broken-{seed}"));
    }
    let honest = run(&runtime, "honest");
    assert_eq!(honest.status, Status::Success, "{honest:?}");
}
