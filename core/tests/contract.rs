//! The table of contract cases, run against the core.
//!
//! This runner is a binding of its own, without a language around it: it reads options as loosely
//! as JavaScript gives them and hands messages to [`Runtime::start`]. So it leaves out nothing: the
//! lines `skip: rust` speak of the typed face, which cannot say what they are about.
//!
//! `CONTRACT=text` runs the cases whose file and heading contain the text. How many ran is printed,
//! and added to the file that `ISOLANE_CONTRACT_COUNTS` names; `tests/contract/counts.mjs` reads it.

#[path = "contract/case.rs"]
mod case;
#[path = "contract/compare.rs"]
mod compare;
#[path = "contract/functions.rs"]
mod functions;
#[path = "contract/js.rs"]
mod js;
#[path = "contract/parse.rs"]
mod parse;
#[path = "contract/tagged.rs"]
mod tagged;

use std::{
    fs::OpenOptions,
    io::Write,
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
    sync::{Mutex, MutexGuard, PoisonError},
    thread,
};

use isolane::Runtime;

use crate::parse::Case;

/// Files at work at once.
const THREADS: usize = 2;

/// The stack of a thread that plays the host: it walks deep values by recursion. Reserved, not held.
const STACK_BYTES: usize = 1 << 30;

/// The host of this case walks by recursion, and ThreadSanitizer has room for 65,536 calls in each other.
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
    let (files, failures) = (Mutex::new(files), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..THREADS {
            let work = || {
                while let Some(file) = { lock(&files).pop() } {
                    let failed = file.iter().filter_map(failure);
                    lock(&failures).extend(failed.collect::<Vec<_>>());
                }
            };
            thread::Builder::new()
                .stack_size(STACK_BYTES)
                .spawn_scoped(scope, work)
                .expect("a thread");
        }
    });
    let mut failures = failures.into_inner().unwrap_or_else(PoisonError::into_inner);
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
        writeln!(file, "rust: {ran} ran, 0 skipped").expect("the counts can be written");
    }
}

/// How a case failed, if it did.
fn failure(case: &Case) -> Option<String> {
    let runtime = Runtime::shared();
    let checked = catch_unwind(AssertUnwindSafe(|| case::check(case, &runtime)));
    let why = match checked {
        Ok(Ok(())) => return None,
        Ok(Err(why)) => why,
        Err(_) => "the runner panicked; see above".to_owned(),
    };
    Some(format!("{} · {}\n      {why}", case.file, case.heading))
}
