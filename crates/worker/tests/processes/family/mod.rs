//! The processes that the runtimes of this process have, as the system lists them.
//!
//! Out: launchers, their zygotes, and the workers of these; or workers alone, where the zygote is a thread.
//! A test that looks at them is [`alone`].

#[cfg_attr(unix, path = "unix.rs")]
#[cfg_attr(windows, path = "windows.rs")]
mod system;

use std::{
    collections::HashMap,
    process,
    sync::{Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

/// Longer than anything here takes on a busy machine.
const CEILING: Duration = Duration::from_mins(2);

/// The workers' distance from this process: its children are 1.
const WORKERS: usize = if cfg!(windows) { 1 } else { 3 };

pub(crate) use system::{descriptors, kill};

/// Keeps other tests from having processes meanwhile.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    let guard = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    eventually("the processes of other tests to go", || all().is_empty());
    guard
}

/// Waits until `is_so` holds.
pub(crate) fn eventually(what: &str, is_so: impl Fn() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < CEILING, "{what}: not in {CEILING:?}");
        thread::sleep(Duration::from_millis(2));
    }
}

/// Every descendant of this process, with its distance.
pub(crate) fn all() -> Vec<(u32, usize)> {
    let parents: HashMap<u32, u32> =
        system::listed().into_iter().map(|(process, _, parent)| (process, parent)).collect();
    let distance = |mut process: u32| {
        (1..=WORKERS).find(|_| {
            process = parents.get(&process).copied().unwrap_or(0);
            process == process::id()
        })
    };
    parents.keys().filter_map(|&process| Some((process, distance(process)?))).collect()
}

/// The workers.
pub(crate) fn workers() -> Vec<u32> {
    at(WORKERS)
}

pub(crate) fn kill_workers() {
    workers().into_iter().for_each(kill);
}

/// Kills the launchers.
#[cfg(unix)]
pub(crate) fn kill_launchers() {
    at(WORKERS - 2).into_iter().for_each(kill);
}

/// Kills the zygotes.
#[cfg(unix)]
pub(crate) fn kill_zygotes() {
    at(WORKERS - 1).into_iter().for_each(kill);
}

/// Ended processes that nobody has waited for.
pub(crate) fn zombies() -> usize {
    let mine = all();
    let ended = |process: &u32| mine.iter().any(|(other, _)| other == process);
    system::listed().iter().filter(|(process, state, _)| *state == 'Z' && ended(process)).count()
}

fn at(distance: usize) -> Vec<u32> {
    all().into_iter().filter(|(_, far)| *far == distance).map(|(process, _)| process).collect()
}
