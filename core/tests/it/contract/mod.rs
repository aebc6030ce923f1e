//! The table of contract cases, run against the core.
//!
//! This runner is a binding of its own without a language: it reads options as loosely as JavaScript passes them and
//! hands messages to [`Runtime::start`]. So it skips nothing. The lines `skip: rust` concern the typed Rust face, which
//! cannot express those cases.
//!
//! `CONTRACT=text` runs the cases whose file and heading contain the text. The number of cases is printed, and added to
//! the file in `ISOLANE_CONTRACT_COUNTS`, which `tests/contract/counts.mjs` reads.

mod case;
pub(crate) mod compare;
mod event_loop;
pub(crate) mod functions;
pub(crate) mod js;
mod parse;
pub(crate) mod remote;
pub(crate) mod tagged;

use std::{
    fs::OpenOptions,
    io::Write,
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
    sync::{LazyLock, Mutex, MutexGuard, PoisonError},
    thread,
};

use isolane::Runtime;

use self::parse::Case;
use crate::place;

/// The runtime of all cases.
static RUNTIME: LazyLock<Runtime> = LazyLock::new(runtime);

/// The runtime of a table: the shared one on threads, one of its own in processes.
pub(crate) fn runtime() -> Runtime {
    if place::is_process() {
        Runtime::new(&place::options()).expect("valid options")
    } else {
        Runtime::shared()
    }
}

/// Files that run at once.
const THREADS: usize = 2;

/// The stack of a thread that plays the host, which walks deep values by recursion. This is reserved address space, not
/// memory.
const STACK_BYTES: usize = 1 << 30;

/// The host of this case walks by recursion, and ThreadSanitizer allows 65,536 nested calls.
const TOO_DEEP: &str = "A value nested very deep crosses or is refused";

#[test]
fn the_core_keeps_the_contract() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/contract");
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
        let face = if place::is_process() { "rust in processes" } else { "rust" };
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
