//! Limits of a program that no control group keeps.
//!
//! In: the program. Out: limits on this process and those that it forks.
//!
//! Without a control group, memory is limited for each process by the bytes that it may write to and shares with nobody
//! (`RLIMIT_DATA`). A limit on addresses would be simpler, but engines such as Node.js reserve far more addresses than
//! they use. Memory that such a limit does not count is refused by the filter of calls: shared memory without a file, and
//! mappings that grow like a stack. Files in memory have limits of their own. The memory of sockets and pipes is bounded by the
//! number of descriptors: the filter refuses larger buffers than the system gives by itself.

use super::{
    super::{
        kernel::Limited,
        limits::{lower, of_cpu},
    },
    spec::Program,
};

/// The most to which the stack of a process may grow.
const STACK_BYTES: u64 = 8 << 20;

/// Addresses beyond the memory: they bound the tables of pages.
const ADDRESSES_BYTES: u64 = 16 << 30;

/// Open descriptors.
const DESCRIPTORS: u64 = 1024;

/// The fewest descriptors with which interpreters work.
const LEAST_DESCRIPTORS: u64 = 64;

/// Memory for each descriptor that a process without a group may have: a socket holds a fifth of it, and as many as are
/// open may be under way in others.
const BYTES_OF_DESCRIPTOR: u64 = 1 << 20;

/// The launcher and init count as processes of the same user.
const OTHERS: u64 = 2;

const FIXED: [(Limited, u64); 8] = [
    (libc::RLIMIT_CORE as Limited, 0),
    (libc::RLIMIT_MEMLOCK as Limited, 64 << 10),
    (libc::RLIMIT_MSGQUEUE as Limited, 0),
    (libc::RLIMIT_NICE as Limited, 0),
    (libc::RLIMIT_RTPRIO as Limited, 0),
    (libc::RLIMIT_SIGPENDING as Limited, 1024),
    (libc::RLIMIT_LOCKS as Limited, 1024),
    (libc::RLIMIT_STACK as Limited, STACK_BYTES),
];

/// Limits this process and those that it forks. False if one is refused.
pub(super) fn of_program(program: &Program, in_group: bool) -> bool {
    let fixed = FIXED.into_iter().all(|(what, most)| lower(what, most));
    let processes = program.processes.saturating_add(OTHERS);
    let processes = lower(Limited::from(libc::RLIMIT_NPROC), processes);
    let descriptors = lower(Limited::from(libc::RLIMIT_NOFILE), descriptors(program, in_group));
    let memory = in_group
        || lower(Limited::from(libc::RLIMIT_DATA), program.memory_bytes)
            && lower(
                Limited::from(libc::RLIMIT_AS),
                program.memory_bytes.saturating_add(ADDRESSES_BYTES),
            );
    let cpu = program.cpu.is_none_or(of_cpu);
    fixed && processes && descriptors && memory && cpu
}

fn descriptors(program: &Program, in_group: bool) -> u64 {
    if in_group {
        return DESCRIPTORS;
    }
    (program.memory_bytes / BYTES_OF_DESCRIPTOR).clamp(LEAST_DESCRIPTORS, DESCRIPTORS)
}
