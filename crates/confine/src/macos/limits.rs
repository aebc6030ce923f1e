//! Limits that the system keeps.
//!
//! In: nothing, or the time that a run may take. Out: limits that no process without privileges raises again.
#![expect(unsafe_code, reason = "calls the system")]

use std::time::Duration;

/// Descriptors from here on are not looked for: the system gives a process fewer unless it is told otherwise.
const DESCRIPTORS: u64 = 1 << 18;

/// The descriptors with which a zygote can work: a socket for each worker that its host has not heard of yet.
const FEW_DESCRIPTORS: u64 = 1024;

/// A bound above every descriptor.
pub(super) fn most_descriptors() -> i32 {
    let most = read(libc::RLIMIT_NOFILE).map_or(DESCRIPTORS, |limit| limit.rlim_max);
    i32::try_from(most.min(DESCRIPTORS)).unwrap_or(i32::MAX)
}

pub(super) fn few_descriptors() {
    lower(libc::RLIMIT_NOFILE, FEW_DESCRIPTORS);
}

/// Sets the limits that suit each of these processes.
pub(super) fn of_all() {
    for what in [libc::RLIMIT_CORE, libc::RLIMIT_FSIZE, libc::RLIMIT_MEMLOCK] {
        lower(what, 0);
    }
}

/// Sets the limits with which a zygote could not work: no process, and no descriptor but the one that a worker has.
/// With fewer the system would not let it wait for that one.
pub(super) fn of_every_worker() {
    lower(libc::RLIMIT_NOFILE, 1);
    lower(libc::RLIMIT_NPROC, 0);
}

/// Limits CPU time: a signal then ends any process that has not learnt to ignore it, and nothing comes after the
/// signal.
pub(super) fn of_run(cpu: Duration) {
    let seconds = cpu.as_secs().saturating_add(u64::from(cpu.subsec_nanos() > 0)).max(1);
    lower(libc::RLIMIT_CPU, seconds);
}

/// Sets a limit for good; to less if the system grants no more.
fn lower(what: i32, most: u64) {
    if let Some(old) = read(what) {
        let most = most.min(old.rlim_max);
        set(what, most, most);
    }
}

fn read(what: i32) -> Option<libc::rlimit> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: writes one structure.
    (unsafe { libc::getrlimit(what, &raw mut limit) } == 0).then_some(limit)
}

fn set(what: i32, soft: u64, hard: u64) {
    let limit = libc::rlimit { rlim_cur: soft, rlim_max: hard };
    // SAFETY: reads one structure.
    unsafe { libc::setrlimit(what, &raw const limit) };
}
