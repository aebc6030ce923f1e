//! The processes that the runtimes of this process have, as the system lists them.
//!
//! Out: launchers, their nurseries, and the workers of these. A test that looks at them is [`alone`].

use std::{
    collections::HashMap,
    fs,
    process::{self, Command},
    sync::{Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

/// Longer than anything here takes on a machine that is busy with other things.
const CEILING: Duration = Duration::from_secs(30);

/// How many steps from this process: its children are 1.
const WORKERS: usize = 3;

/// No other test has a process meanwhile.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    let guard = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    eventually("the processes of other tests to go", || all().is_empty());
    guard
}

/// Waits until it is so.
pub(crate) fn eventually(what: &str, is_so: impl Fn() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < CEILING, "{what}: not in {CEILING:?}");
        thread::sleep(Duration::from_millis(2));
    }
}

/// Every process that descends from this one, with how far away it is.
pub(crate) fn all() -> Vec<(u32, usize)> {
    let parents: HashMap<u32, u32> =
        listed().into_iter().map(|(process, _, parent)| (process, parent)).collect();
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
    kill(&workers());
}

/// Kills the launchers.
pub(crate) fn kill_launchers() {
    kill(&at(WORKERS - 2));
}

/// Kills the nurseries.
pub(crate) fn kill_nurseries() {
    kill(&at(WORKERS - 1));
}

/// Processes that have ended and nobody has asked after.
pub(crate) fn zombies() -> usize {
    let mine = all();
    let ended = |process: &u32| mine.iter().any(|(other, _)| other == process);
    listed().iter().filter(|(process, state, _)| *state == 'Z' && ended(process)).count()
}

/// The descriptors that this process has.
pub(crate) fn descriptors() -> usize {
    fs::read_dir("/dev/fd").expect("a list of descriptors").count()
}

fn at(distance: usize) -> Vec<u32> {
    all().into_iter().filter(|(_, far)| *far == distance).map(|(process, _)| process).collect()
}

fn kill(processes: &[u32]) {
    for process in processes {
        // One may have ended by itself.
        let _ = Command::new("kill").args(["-9", &process.to_string()]).output();
    }
}

/// Every process, its state and its parent.
#[cfg(not(target_os = "linux"))]
fn listed() -> Vec<(u32, char, u32)> {
    let list = Command::new("ps").args(["-axo", "pid=,state=,ppid="]).output();
    let list = String::from_utf8(list.expect("a list of processes").stdout).expect("text");
    let read = |line: &str| {
        let mut words = line.split_whitespace();
        let process = words.next()?.parse().ok()?;
        Some((process, words.next()?.chars().next()?, words.next()?.parse().ok()?))
    };
    list.lines().filter_map(read).collect()
}

/// Every process, its state and its parent.
#[cfg(target_os = "linux")]
fn listed() -> Vec<(u32, char, u32)> {
    let entries = fs::read_dir("/proc").expect("a list of processes").flatten();
    let read = |name: String| {
        let process: u32 = name.parse().ok()?;
        let text = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
        let mut fields = text.rsplit(')').next()?.split_whitespace();
        let state = fields.next()?.chars().next()?;
        Some((process, state, fields.next()?.parse().ok()?))
    };
    entries.filter_map(|entry| read(entry.file_name().into_string().ok()?)).collect()
}
