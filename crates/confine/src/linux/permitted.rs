//! System calls that a worker and its zygote may make.
//!
//! Out: the rules. A worker computes, requests memory, and speaks through one socket. Any other call ends it, except
//! for calls that libraries try and can do without: these fail. A call that is permitted with certain arguments fails
//! with others, or ends the worker: each rule says which. The zygote forks; it is not hostile, so calls that it does
//! not need are only refused.

use super::{
    SOCKET,
    filter::{Rule, Rules, Test, Verdict, has, is, is_null, is_own_process},
};

const fn word(number: i32) -> u32 {
    number.cast_unsigned()
}

/// Allowed with any arguments.
const ALWAYS: &[libc::c_long] = &[
    libc::SYS_brk,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_close,
    libc::SYS_getpid,
    libc::SYS_gettid,
    libc::SYS_getrandom,
    libc::SYS_sched_yield,
    libc::SYS_sigaltstack,
    libc::SYS_rt_sigreturn,
    libc::SYS_rt_sigprocmask,
    libc::SYS_restart_syscall,
    libc::SYS_exit,
    libc::SYS_exit_group,
    // For machines where the kernel's clock cannot be read without a call.
    libc::SYS_gettimeofday,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_time,
];

/// Calls that the zygote needs and the workers do not.
const ZYGOTE: &[libc::c_long] = &[
    libc::SYS_read,
    libc::SYS_readv,
    libc::SYS_recvfrom,
    libc::SYS_recvmsg,
    libc::SYS_write,
    libc::SYS_writev,
    libc::SYS_sendto,
    libc::SYS_sendmsg,
    libc::SYS_ppoll,
    #[cfg(isolane_portable)]
    libc::SYS_pselect6,
    libc::SYS_epoll_create1,
    libc::SYS_epoll_ctl,
    libc::SYS_epoll_pwait,
    libc::SYS_signalfd4,
    libc::SYS_eventfd2,
    libc::SYS_pipe2,
    libc::SYS_socketpair,
    libc::SYS_shutdown,
    libc::SYS_getsockopt,
    libc::SYS_setsockopt,
    libc::SYS_fcntl,
    libc::SYS_dup,
    libc::SYS_dup3,
    libc::SYS_close_range,
    libc::SYS_wait4,
    libc::SYS_waitid,
    libc::SYS_kill,
    libc::SYS_tgkill,
    libc::SYS_tkill,
    libc::SYS_pidfd_open,
    libc::SYS_pidfd_send_signal,
    libc::SYS_madvise,
    libc::SYS_futex,
    libc::SYS_clock_gettime,
    libc::SYS_clock_nanosleep,
    libc::SYS_nanosleep,
    libc::SYS_getppid,
    libc::SYS_getuid,
    libc::SYS_geteuid,
    libc::SYS_getgid,
    libc::SYS_getegid,
    libc::SYS_getrusage,
    libc::SYS_rt_sigaction,
    libc::SYS_set_robust_list,
    libc::SYS_set_tid_address,
    libc::SYS_rseq,
    libc::SYS_prctl,
    libc::SYS_prlimit64,
    libc::SYS_seccomp,
    libc::SYS_setsid,
    libc::SYS_setpriority,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_poll,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_dup2,
    // Some C libraries fork with this.
    #[cfg(target_arch = "x86_64")]
    libc::SYS_fork,
];

/// Calls that libraries try, and the error that they can handle.
const TRIED: &[(libc::c_long, i32)] = &[
    (libc::SYS_openat, libc::ENOENT),
    (libc::SYS_newfstatat, libc::ENOENT),
    (libc::SYS_statx, libc::ENOENT),
    (libc::SYS_readlinkat, libc::ENOENT),
    (libc::SYS_faccessat, libc::ENOENT),
    (libc::SYS_faccessat2, libc::ENOENT),
    (libc::SYS_getcwd, libc::ENOENT),
    (libc::SYS_fstat, libc::EBADF),
    (libc::SYS_lseek, libc::EBADF),
    (libc::SYS_fcntl, libc::EPERM),
    (libc::SYS_ioctl, libc::EPERM),
    (libc::SYS_prctl, libc::EPERM),
    (libc::SYS_uname, libc::EPERM),
    (libc::SYS_sysinfo, libc::EPERM),
    (libc::SYS_sched_getaffinity, libc::EPERM),
    (libc::SYS_rt_sigaction, libc::EPERM),
    (libc::SYS_getrusage, libc::EPERM),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_open, libc::ENOENT),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_stat, libc::ENOENT),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_lstat, libc::ENOENT),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_access, libc::ENOENT),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_readlink, libc::ENOENT),
];

pub(super) fn worker() -> Rules {
    let mut rules: Vec<Rule> = on_socket().chain(on_memory()).chain(on_itself()).collect();
    rules.extend(ALWAYS.iter().copied().map(always));
    rules.extend(TRIED.iter().map(|(call, error)| Rule {
        call: *call,
        allowed: Vec::new(),
        otherwise: Verdict::Fail(*error),
    }));
    Rules { rules, otherwise: Verdict::End }
}

pub(super) fn zygote() -> Rules {
    // The flags of a fork, and none of a thread or a namespace.
    const FORK: i32 = libc::CLONE_CHILD_SETTID | libc::CLONE_CHILD_CLEARTID | 0xff;
    let calls = ZYGOTE.iter().chain(ALWAYS).copied();
    let mut rules: Vec<Rule> = calls.map(always).chain(mappings()).collect();
    let refused = Verdict::Fail(libc::EPERM);
    rules.push(when(libc::SYS_clone, vec![vec![has(0, !word(FORK), 0)]], refused));
    // Its arguments are in memory, where no filter looks; libraries then take the other call.
    rules.push(when(libc::SYS_clone3, Vec::new(), Verdict::Fail(libc::ENOSYS)));
    Rules { rules, otherwise: refused }
}

/// Reads from the socket, writes to it, and waits for it. No descriptor crosses.
fn on_socket() -> impl Iterator<Item = Rule> {
    let socket = is(0, word(SOCKET));
    let elsewhere = Verdict::Fail(libc::EBADF);
    let plain = [libc::SYS_read, libc::SYS_write, libc::SYS_readv, libc::SYS_writev];
    let plain = plain.map(|call| when(call, vec![vec![socket]], elsewhere));
    // With no address.
    let [low, high] = is_null(4);
    let addressed = [libc::SYS_recvfrom, libc::SYS_sendto];
    let addressed = addressed.map(|call| when(call, vec![vec![socket, low, high]], elsewhere));
    let waits = [
        always(libc::SYS_ppoll),
        #[cfg(target_arch = "x86_64")]
        always(libc::SYS_poll),
    ];
    plain.into_iter().chain(addressed).chain(waits)
}

/// Memory of its own, none of it executable.
fn on_memory() -> impl Iterator<Item = Rule> {
    // Not the advice that finds equal pages of processes, or that concerns others.
    let advice = [libc::MADV_DONTNEED, libc::MADV_FREE, libc::MADV_HUGEPAGE, libc::MADV_NOHUGEPAGE];
    let advice = advice.map(|advice| vec![is(2, word(advice))]).to_vec();
    mappings().chain([when(libc::SYS_madvise, advice, Verdict::Fail(libc::EINVAL))])
}

fn mappings() -> impl Iterator<Item = Rule> {
    const KIND: i32 = libc::MAP_TYPE
        | libc::MAP_ANONYMOUS
        | libc::MAP_GROWSDOWN
        | libc::MAP_HUGETLB
        | libc::MAP_LOCKED;
    let refused = Verdict::Fail(libc::EPERM);
    let no_code = has(2, word(libc::PROT_EXEC), 0);
    let own = has(3, word(KIND), word(libc::MAP_PRIVATE | libc::MAP_ANONYMOUS));
    [
        when(libc::SYS_mmap, vec![vec![no_code, own]], refused),
        when(libc::SYS_mprotect, vec![vec![no_code]], refused),
    ]
    .into_iter()
}

fn on_itself() -> impl Iterator<Item = Rule> {
    let waiting =
        [libc::FUTEX_WAIT, libc::FUTEX_WAKE, libc::FUTEX_WAIT_BITSET, libc::FUTEX_WAKE_BITSET];
    let kinds = !word(libc::FUTEX_PRIVATE_FLAG | libc::FUTEX_CLOCK_REALTIME);
    let waiting = waiting.map(|operation| vec![has(1, kinds, word(operation))]).to_vec();
    // The clocks of the system and its own; larger numbers are clocks of other processes.
    let clocks = vec![vec![has(0, !0xf, 0)]];
    let abort = word(libc::SIGABRT);
    // Limits that only ever go down.
    let limits = [libc::RLIMIT_AS, libc::RLIMIT_CPU];
    let limits = limits.map(|limit| vec![is(0, 0), is(1, limit_number(limit))]).to_vec();
    [
        when(libc::SYS_futex, waiting, Verdict::End),
        when(libc::SYS_clock_gettime, clocks.clone(), Verdict::End),
        when(libc::SYS_clock_nanosleep, clocks, Verdict::End),
        always(libc::SYS_nanosleep),
        when(libc::SYS_tgkill, vec![vec![is_own_process(0), is(2, abort)]], Verdict::End),
        when(libc::SYS_tkill, vec![vec![is_own_process(0), is(1, abort)]], Verdict::End),
        when(libc::SYS_prlimit64, limits, Verdict::Fail(libc::EPERM)),
    ]
    .into_iter()
}

/// Their type differs between C libraries.
fn limit_number(limit: impl TryInto<u32>) -> u32 {
    limit.try_into().unwrap_or(u32::MAX)
}

fn always(call: libc::c_long) -> Rule {
    Rule { call, allowed: Vec::new(), otherwise: Verdict::Allow }
}

fn when(call: libc::c_long, allowed: Vec<Vec<Test>>, otherwise: Verdict) -> Rule {
    Rule { call, allowed, otherwise }
}
