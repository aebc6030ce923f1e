//! The table of contract cases, run against the core.
//!
//! This runner is a binding of its own without a language: it reads options as loosely as JavaScript passes them and
//! hands messages to [`Runtime::start`]. So it skips nothing. The lines `skip: rust` concern the typed Rust face, which
//! cannot express those cases.
//!
//! `CONTRACT=text` runs the cases whose file and heading contain the text. The number of cases is printed, and added to
//! the file in `ISOLANE_CONTRACT_COUNTS`, which `tests/contract/counts.mjs` reads.

#[path = "contract/case.rs"]
mod case;
#[path = "contract/compare.rs"]
mod compare;
#[path = "contract/event_loop.rs"]
mod event_loop;
#[path = "contract/functions.rs"]
mod functions;
#[path = "contract/js.rs"]
mod js;
#[path = "contract/parse.rs"]
mod parse;
#[path = "contract/remote.rs"]
mod remote;
#[path = "contract/tagged.rs"]
mod tagged;

use std::{
    fs::OpenOptions,
    io::Write,
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
    sync::{LazyLock, Mutex, MutexGuard, PoisonError},
    thread,
};

use isolane::{Isolation, Runtime, RuntimeOptions};

use crate::parse::Case;

/// Built as a test of the crate `isolane-worker`, this runs the table in processes.
const WORKER: Option<&str> = option_env!("CARGO_BIN_EXE_isolane-worker");

/// The runtime of all cases.
static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
    let Some(worker) = WORKER else { return Runtime::shared() };
    let options = RuntimeOptions {
        isolation: Isolation::Process,
        worker: Some(worker.into()),
        ..RuntimeOptions::default()
    };
    Runtime::new(&options).expect("a runtime of processes")
});

/// Files that run at once.
const THREADS: usize = 2;

/// The stack of a thread that plays the host, which walks deep values by recursion. This is reserved address space, not
/// memory.
const STACK_BYTES: usize = 1 << 30;

/// The host of this case walks by recursion, and ThreadSanitizer allows 65,536 nested calls.
const TOO_DEEP: &str = "A value nested very deep crosses or is refused";

#[test]
fn the_core_keeps_the_contract() {
    // Of the core, or of the worker's program, which lies deeper.
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut folders = package.ancestors().skip(1).map(|above| above.join("tests/contract"));
    let folder = folders.find(|folder| folder.is_dir()).expect("the tables are there");
    let mut files = parse::cases(&folder);
    if cfg!(isolane_sanitized = "thread") {
        for file in &mut files {
            file.retain(|case| case.heading != TOO_DEEP);
        }
    }
    if let Ok(wanted) = std::env::var("CONTRACT") {
        let is_wanted = |case: &Case| format!("{} {}", case.file, case.heading).contains(&wanted);
        for file in &mut files {
            file.retain(is_wanted);
        }
    }
    let count: usize = files.iter().map(Vec::len).sum();
    let files = Mutex::new(files);
    let work = || {
        let mut failures = Vec::new();
        while let Some(file) = { lock(&files).pop() } {
            failures.extend(file.iter().filter_map(failure));
        }
        failures
    };
    // Joining the threads returns their results: a sanitizer sees a join, but not the wait of a scope or a lock.
    let mut failures: Vec<_> = thread::scope(|scope| {
        let start = |_| {
            let thread = thread::Builder::new().stack_size(STACK_BYTES);
            thread.spawn_scoped(scope, work).expect("a thread")
        };
        let threads: Vec<_> = (0..THREADS).map(start).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("cases do not panic")).collect()
    });
    failures.sort();
    for failure in &failures {
        println!("{failure}");
    }
    let failed = failures.len();
    say_counts(count);
    assert_eq!(failed, 0, "cases of the contract failed");
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn say_counts(ran: usize) {
    println!("contract: {ran} ran, 0 skipped");
    if let Some(path) = std::env::var_os("ISOLANE_CONTRACT_COUNTS") {
        let file = OpenOptions::new().create(true).append(true).open(path);
        let mut file = file.expect("the file for the counts can be opened");
        let face = if WORKER.is_some() { "rust in processes" } else { "rust" };
        writeln!(file, "{face}: {ran} ran, 0 skipped").expect("the counts can be written");
    }
}

/// The failure of a case, if it failed.
fn failure(case: &Case) -> Option<String> {
    let checked = catch_unwind(AssertUnwindSafe(|| case::check(case, &RUNTIME)));
    let why = match checked {
        Ok(Ok(())) => return None,
        Ok(Err(why)) => why,
        Err(_) => "the runner panicked; see above".to_owned(),
    };
    Some(format!("{} · {}\n      {why}", case.file, case.heading))
}
