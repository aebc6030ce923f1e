//! The table of sessions' cases, run against the core.
//!
//! As the runner of the table of runs, this one is a binding of its own without a language: it reads options as loosely
//! as JavaScript passes them. So it skips only the cases about the context of a host function.
//!
//! `CONTRACT=text` runs the cases whose file and heading contain the text. The number of cases is printed, and added to
//! the file in `ISOLANE_CONTRACT_COUNTS`, which `tests/contract/counts.mjs` reads.

mod host;
mod outcome;
mod parse;
mod play;
mod requests;
mod stage;
mod steps;

use std::{
    fs::OpenOptions,
    io::Write,
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
    sync::{Mutex, PoisonError},
    thread,
};

use self::parse::Case;
use crate::{
    contract::{compare, functions, js, remote, tagged},
    place,
};

/// Cases that run at once.
const THREADS: usize = 2;

/// The stack of a thread that plays the host, which walks deep values by recursion.
const STACK_BYTES: usize = 1 << 26;

/// The host functions of this table that a caller of Rust has no equal for.
const CONTEXT: &str = "A host function runs in the context of its cell";

#[test]
fn sessions_keep_the_contract() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/contract/sessions");
    let mut cases = parse::cases(&folder);
    if let Ok(wanted) = std::env::var("CONTRACT") {
        cases.retain(|case| format!("{} {}", case.file, case.heading).contains(&wanted));
    }
    let count = cases.len();
    cases.retain(|case| case.heading != CONTEXT && !play::is_skipped(case));
    let skipped = count - cases.len();
    let cases = Mutex::new(cases.iter());
    let next = || cases.lock().unwrap_or_else(PoisonError::into_inner).next();
    let work = || std::iter::from_fn(next).filter_map(failure).collect::<Vec<_>>();
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
    say_counts(count - skipped, skipped);
    assert_eq!(failed, 0, "cases of the contract failed");
}

fn say_counts(ran: usize, skipped: usize) {
    println!("sessions: {ran} ran, {skipped} skipped");
    if let Some(path) = std::env::var_os("ISOLANE_CONTRACT_COUNTS") {
        let file = OpenOptions::new().create(true).append(true).open(path);
        let mut file = file.expect("the file for the counts can be opened");
        let place = if place::is_process() { " in processes" } else { "" };
        writeln!(file, "sessions of rust{place}: {ran} ran, {skipped} skipped")
            .expect("the counts can be written");
    }
}

/// The failure of a case, if it failed.
fn failure(case: &Case) -> Option<String> {
    let checked = catch_unwind(AssertUnwindSafe(|| play::check(case)));
    let why = match checked {
        Ok(Ok(())) => return None,
        Ok(Err(why)) => why,
        Err(_) => "the runner panicked; see above".to_owned(),
    };
    Some(format!("{} · {}\n      {why}", case.file, case.heading))
}
