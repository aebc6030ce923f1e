//! System calls of a stage, without the code under test.

use crate::{Allocator, Confinement};
use std::{
    alloc::{GlobalAlloc, Layout},
    hint,
    panic::{AssertUnwindSafe, catch_unwind},
};

const NOBODY: u32 = 65_534;

pub(super) fn is_root() -> bool {
    // SAFETY: takes nothing and cannot fail.
    unsafe { libc::geteuid() == 0 }
}

/// Whether this is root that may become nobody. Root without that right stays root for ever.
pub(super) fn is_mighty_root() -> bool {
    // SAFETY: touches no memory of ours.
    is_root() && in_child(|| unsafe { libc::setresuid(NOBODY, NOBODY, NOBODY) }) == Some(0)
}

/// Root becomes nobody, and can be looked at and mapped as nobody. Others stay the same.
pub(super) fn become_ordinary() {
    if is_mighty_root() {
        // SAFETY: touches no memory of ours.
        let became = unsafe {
            libc::setgroups(0, std::ptr::null())
                | libc::setresgid(NOBODY, NOBODY, NOBODY)
                | libc::setresuid(NOBODY, NOBODY, NOBODY)
                | libc::prctl(libc::PR_SET_DUMPABLE, 1, 0, 0, 0)
        };
        assert_eq!(became, 0, "root may become nobody");
    }
}

/// Gives root more groups than it needs.
pub(super) fn join_groups() {
    if is_mighty_root() {
        // SAFETY: reads two numbers.
        assert_eq!(unsafe { libc::setgroups(2, [1, 2].as_ptr()) }, 0);
    }
}

/// Makes `unshare` fail from here on, as containers do.
pub(super) fn refuse_namespaces() {
    let instruction = |code: u32, k: u32, jt: u8, jf: u8| libc::sock_filter {
        code: u16::try_from(code).expect("16 bits"),
        jt,
        jf,
        k,
    };
    let call = u32::try_from(libc::SYS_unshare).expect("a number");
    let refusal = libc::SECCOMP_RET_ERRNO | libc::EPERM.unsigned_abs();
    let program = [
        instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        instruction(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, call, 0, 1),
        instruction(libc::BPF_RET | libc::BPF_K, refusal, 0, 0),
        instruction(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW, 0, 0),
    ];
    let program = libc::sock_fprog { len: 4, filter: program.as_ptr().cast_mut() };
    // SAFETY: reads a program of four instructions.
    unsafe {
        let mode = libc::SECCOMP_SET_MODE_FILTER;
        if libc::syscall(libc::SYS_seccomp, mode, 0, &raw const program) != 0 {
            // The system requires that of all but privileged processes.
            libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
            assert_eq!(libc::syscall(libc::SYS_seccomp, mode, 0, &raw const program), 0);
        }
        assert_eq!(libc::unshare(libc::CLONE_NEWNS), -1, "it is refused");
    }
}

/// Whether a program that it started might have more privileges.
pub(super) fn has_new_privileges() -> bool {
    // SAFETY: takes no pointer.
    unsafe { libc::prctl(libc::PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 0 }
}

/// The version of Landlock, 0 for none.
pub(super) fn landlock_version() -> i64 {
    let nothing: *const u8 = std::ptr::null();
    // SAFETY: with this flag it reads nothing.
    unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, nothing, 0_usize, 1_u32) }.max(0)
}

fn may_change_root() -> bool {
    // SAFETY: a text that ends in zero.
    in_child(|| unsafe { libc::chroot(c"/proc/self/fdinfo".as_ptr()) }) == Some(0)
}

/// The items that can be had here, tried in children. Items that every Linux has are true.
pub(super) fn available() -> Confinement {
    let enters = |spaces: i32, by_user: bool| {
        in_child(|| {
            if by_user {
                become_ordinary();
            }
            // SAFETY: touches no memory.
            unsafe { libc::unshare(if by_user { spaces | libc::CLONE_NEWUSER } else { spaces }) }
        }) == Some(0)
    };
    let user = enters(0, true);
    Confinement {
        capabilities: user || !is_root() || is_mighty_root(),
        user,
        network: enters(libc::CLONE_NEWNET, user),
        processes: enters(libc::CLONE_NEWPID, user),
        ipc: enters(libc::CLONE_NEWIPC, user),
        // Root can also leave for a folder that is gone.
        file_system: enters(libc::CLONE_NEWNS, user) || may_change_root(),
        landlock: landlock_version() > 0,
        system_calls: cfg!(any(target_arch = "x86_64", target_arch = "aarch64")),
        ..Confinement::ALL
    }
}

/// The exit code of a child that ran `body`.
pub(super) fn in_child(body: impl FnOnce() -> i32) -> Option<i32> {
    let status = forked(body);
    libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status))
}

/// The same, as the system's whole status.
pub(super) fn forked(body: impl FnOnce() -> i32) -> i32 {
    // SAFETY: the only other thread waits, so the child finds nothing half-done.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let code = catch_unwind(AssertUnwindSafe(body)).unwrap_or(101);
        // SAFETY: nothing of this process is used again.
        unsafe { libc::_exit(code) };
    }
    assert!(child > 0, "a child");
    let mut status = 0;
    // SAFETY: writes one number.
    let waited = unsafe { libc::waitpid(child, &raw mut status, 0) };
    assert_eq!(waited, child);
    status
}

/// The places of the environment's variables.
pub(super) fn variables() -> Vec<*const libc::c_char> {
    unsafe extern "C" {
        static environ: *const *const libc::c_char;
    }
    // SAFETY: a list that ends in null, which nobody changes meanwhile.
    unsafe {
        let mut found = Vec::new();
        let mut entry = environ;
        while !entry.is_null() && !(*entry).is_null() {
            found.push(*entry);
            entry = entry.add(1);
        }
        found
    }
}

/// Whether the local time is that of the zone with which the stage was started: an hour ahead.
pub(super) fn zone_is_known() -> bool {
    let now: libc::time_t = 1_000_000_000;
    // SAFETY: all zero is a value of this structure of numbers and a pointer.
    let mut local: libc::tm = unsafe { std::mem::zeroed() };
    // SAFETY: reads one number and writes one structure.
    unsafe { libc::localtime_r(&raw const now, &raw mut local) };
    local.tm_gmtoff == 3_600
}

/// Asks for more memory than there is.
pub(super) fn want_too_much() {
    let layout = Layout::from_size_align(1 << 46, 16).expect("a layout");
    // SAFETY: not of no size.
    let block = hint::black_box(unsafe { Allocator.alloc(layout) });
    assert!(!block.is_null(), "an allocator that does not come back");
}
