//! Limits that the system keeps.
//!
//! In: nothing, or the limits of a run. Out: limits that no process without privileges raises again.

use super::kernel::{self, Limited, read_limit, set_limit};
use std::time::Duration;

/// Resources that neither a worker nor its zygote needs.
const NEEDLESS: [libc::c_long; 8] = [
    libc::RLIMIT_FSIZE as Limited,
    libc::RLIMIT_CORE as Limited,
    libc::RLIMIT_MEMLOCK as Limited,
    libc::RLIMIT_MSGQUEUE as Limited,
    libc::RLIMIT_SIGPENDING as Limited,
    libc::RLIMIT_LOCKS as Limited,
    libc::RLIMIT_NICE as Limited,
    libc::RLIMIT_RTPRIO as Limited,
];

/// The most to which the stack of the process itself may grow.
const STACK_BYTES: u64 = 8 << 20;

/// The most addresses that are examined: a process with more is not limited.
const LOOKED_AT_BYTES: u64 = 1 << 38;
/// The precision with which the mapped addresses are measured.
const STEP_BYTES: usize = 1 << 20;

/// Seconds from the soft limit to the hard one: an end by the soft limit can be told from a kill.
const HARD_AFTER_SECONDS: u64 = 1;

pub(super) fn no_core_dumps() {
    set_limit(libc::RLIMIT_CORE, 0, 0);
}

/// Sets the limits that are the same for all workers and do not harm their zygote, which hands them on. Returns the
/// bytes of addresses that workers begin with, from which a run's limit is counted; `None` if they cannot be limited.
pub(super) fn of_zygote() -> Option<u64> {
    let lowered = NEEDLESS.into_iter().all(|what| lower(what, 0));
    let lowered = lowered && lower(Limited::from(libc::RLIMIT_STACK), STACK_BYTES);
    lowered.then(mapped_bytes).flatten()
}

/// Sets the limits with which a zygote could not work: no process, and no descriptor but the one that a worker has.
/// With fewer the system would not let it wait for that one.
pub(super) fn of_every_worker() -> bool {
    set_limit(libc::RLIMIT_NOFILE, 1, 1) && set_limit(libc::RLIMIT_NPROC, 0, 0)
}

/// Limits addresses and CPU time.
pub(super) fn of_run(mapped_bytes: u64, cpu: Duration) -> bool {
    lower(Limited::from(libc::RLIMIT_AS), mapped_bytes) && of_cpu(cpu)
}

/// Limits CPU time, rounded up to seconds.
pub(super) fn of_cpu(cpu: Duration) -> bool {
    let seconds = cpu.as_secs().saturating_add(u64::from(cpu.subsec_nanos() > 0)).max(1);
    let (soft, hard) = (seconds, seconds.saturating_add(HARD_AFTER_SECONDS));
    read_limit(libc::RLIMIT_CPU).is_ok_and(|old| {
        set_limit(libc::RLIMIT_CPU, soft.min(old.rlim_max), hard.min(old.rlim_max))
    })
}

/// Sets a limit for good, unless it is lower already.
pub(super) fn lower(what: Limited, most: u64) -> bool {
    read_limit(what).is_ok_and(|old| {
        let most = most.min(old.rlim_max);
        set_limit(what, most.min(old.rlim_cur), most)
    })
}

/// Bytes of addresses that the process has, rounded up. No call reports them, and the files are gone; so they follow
/// from how much more fits under a limit.
fn mapped_bytes() -> Option<u64> {
    let old = read_limit(libc::RLIMIT_AS).ok()?;
    let limit = LOOKED_AT_BYTES.min(old.rlim_max);
    if !set_limit(libc::RLIMIT_AS, limit, old.rlim_max) {
        return None;
    }
    // Adjacent mappings are unmapped at once.
    let mut filled: Vec<(usize, usize)> = Vec::with_capacity(32);
    let mut step = usize::try_from(limit.next_power_of_two()).ok()?;
    let mut free = 0;
    while step >= STEP_BYTES {
        if let Some(start) = kernel::map_nothing(step) {
            free += step as u64;
            match filled.last_mut() {
                Some((last, bytes)) if start + step == *last => {
                    (*last, *bytes) = (start, *bytes + step);
                }
                _ => filled.push((start, step)),
            }
        }
        step /= 2;
    }
    for (start, bytes) in filled {
        kernel::unmap_nothing(start, bytes);
    }
    let restored = set_limit(libc::RLIMIT_AS, old.rlim_cur, old.rlim_max);
    // More than the limit fits where the system takes the limit and does not keep it, as an emulator.
    if restored && free > 0 { limit.checked_sub(free) } else { None }
}
