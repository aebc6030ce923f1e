//! System calls of the phases, each behind a plain function.
//!
//! In: numbers, paths, descriptors. Out: whether it worked. All of them are for processes of one thread.
#![expect(unsafe_code, reason = "calls the system")]

use crate::unix::{finish_child, works};
pub(super) use crate::unix::{
    in_child, leave_groups, move_descriptor, new_session, no_file_modes, own_identity, own_process,
    parent_process, plain_signals, silence_output, socket_pair,
};
use std::{
    ffi::CStr,
    io,
    os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd},
    ptr,
};

type Word = libc::c_ulong;

/// The result of a call, unless it failed.
fn checked(result: libc::c_long) -> io::Result<libc::c_long> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Closes that descriptor and all above it.
pub(super) fn close_from(first: RawFd) -> bool {
    let first = first.unsigned_abs();
    // SAFETY: other code here that still knows these descriptors only reads their numbers.
    if checked(unsafe { libc::syscall(libc::SYS_close_range, first, u32::MAX, 0) }).is_ok() {
        return true;
    }
    // For systems before 5.9.
    let Ok(limit) = read_limit(libc::RLIMIT_NOFILE) else { return false };
    for descriptor in first..u32::try_from(limit.rlim_max).unwrap_or(u32::MAX).min(1 << 20) {
        // SAFETY: as above.
        unsafe { libc::close(descriptor.cast_signed()) };
    }
    true
}

fn control(option: libc::c_int, value: Word) -> bool {
    let none: Word = 0;
    // SAFETY: none of the options used here takes a pointer.
    works(unsafe { libc::prctl(option, value, none, none, none) })
}

/// Sets whether others of the same user may look into this process.
pub(super) fn set_dumpable(dumpable: bool) -> bool {
    control(libc::PR_SET_DUMPABLE, Word::from(dumpable))
}

/// Has the process killed when the one that forked it ends.
pub(super) fn die_with_parent() -> bool {
    control(libc::PR_SET_PDEATHSIG, Word::from(libc::SIGKILL.unsigned_abs()))
}

pub(super) fn no_new_privileges() -> bool {
    control(libc::PR_SET_NO_NEW_PRIVS, 1)
}

/// Removes a capability from those that a program started from here could get. False if there is none of that number,
/// or the kernel refuses.
pub(super) fn drop_bounding(capability: u32) -> bool {
    control(libc::PR_CAPBSET_DROP, capability.into())
}

pub(super) fn drop_ambient() -> bool {
    control(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_CLEAR_ALL.unsigned_abs().into())
}

/// The sets of capabilities, in two halves: effective, permitted, inheritable.
pub(super) type Capabilities = [[u32; 3]; 2];

/// The version of the call's structure, and the process: this one.
const CAPABILITY_HEADER: [u32; 2] = [0x2008_0522, 0];

pub(super) fn set_capabilities(sets: &Capabilities) -> bool {
    let mut header = CAPABILITY_HEADER;
    // SAFETY: both have the layout of the call's structures.
    checked(unsafe { libc::syscall(libc::SYS_capset, header.as_mut_ptr(), sets.as_ptr()) }).is_ok()
}

pub(super) fn capabilities() -> Option<Capabilities> {
    let (mut header, mut sets) = (CAPABILITY_HEADER, Capabilities::default());
    // SAFETY: as above; it writes both.
    let read = unsafe { libc::syscall(libc::SYS_capget, header.as_mut_ptr(), sets.as_mut_ptr()) };
    checked(read).ok().map(|_| sets)
}

/// Becomes that user and group for good: real, effective and saved.
pub(super) fn become_user(user: u32, group: u32) -> bool {
    // SAFETY: touch no memory of ours.
    unsafe {
        works(libc::setresgid(group, group, group)) && works(libc::setresuid(user, user, user))
    }
}

pub(super) fn unshare(spaces: libc::c_int) -> bool {
    // SAFETY: touches no memory.
    works(unsafe { libc::unshare(spaces) })
}

pub(super) fn mount(source: &CStr, target: &CStr, kind: &CStr, flags: Word, data: &CStr) -> bool {
    // SAFETY: four texts that end in zero.
    works(unsafe {
        libc::mount(source.as_ptr(), target.as_ptr(), kind.as_ptr(), flags, data.as_ptr().cast())
    })
}

/// Unmounts the file system at that place, in use or not.
pub(super) fn unmount(target: &CStr) -> bool {
    // SAFETY: a text that ends in zero.
    works(unsafe { libc::umount2(target.as_ptr(), libc::MNT_DETACH) })
}

pub(super) fn enter_folder(path: &CStr) -> bool {
    // SAFETY: a text that ends in zero.
    works(unsafe { libc::chdir(path.as_ptr()) })
}

/// Makes the current folder the root, and mounts the old root over it.
pub(super) fn pivot_here() -> bool {
    let here = c".".as_ptr();
    // SAFETY: two texts that end in zero.
    checked(unsafe { libc::syscall(libc::SYS_pivot_root, here, here) }).is_ok()
}

pub(super) fn change_root(path: &CStr) -> bool {
    // SAFETY: a text that ends in zero.
    works(unsafe { libc::chroot(path.as_ptr()) })
}

/// The same in a child that shares its root and its current folder with this process. It must not use the memory:
/// libraries do not know of this fork.
pub(super) fn in_child_of_same_root(body: impl FnOnce() -> i32) -> Option<i32> {
    let flags = Word::from((libc::CLONE_FS | libc::SIGCHLD).unsigned_abs());
    let none: Word = 0;
    // SAFETY: without a stack of its own the child goes on as after a fork.
    let child = unsafe { libc::syscall(libc::SYS_clone, flags, none, none, none, none) };
    finish_child(child, body)
}

/// A limit's number: its type differs between C libraries.
pub(super) type Limited = libc::c_long;

pub(super) fn read_limit(of: impl Into<Limited>) -> io::Result<libc::rlimit64> {
    let mut limit = libc::rlimit64 { rlim_cur: 0, rlim_max: 0 };
    let none: *const libc::rlimit64 = ptr::null();
    let own: libc::c_long = 0;
    // SAFETY: writes one structure.
    let read = unsafe { libc::syscall(libc::SYS_prlimit64, own, of.into(), none, &raw mut limit) };
    checked(read).map(|_| limit)
}

pub(super) fn set_limit(of: impl Into<Limited>, soft: u64, hard: u64) -> bool {
    let limit = libc::rlimit64 { rlim_cur: soft, rlim_max: hard };
    let none: *mut libc::rlimit64 = ptr::null_mut();
    let own: libc::c_long = 0;
    // SAFETY: reads one structure.
    checked(unsafe { libc::syscall(libc::SYS_prlimit64, own, of.into(), &raw const limit, none) })
        .is_ok()
}

/// Addresses without access, which cost nothing; `None` if there is no room for them.
pub(super) fn map_nothing(bytes: usize) -> Option<usize> {
    let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: a new mapping at an address of the system's choice touches nothing.
    let start = unsafe { libc::mmap(ptr::null_mut(), bytes, libc::PROT_NONE, kind, -1, 0) };
    (start != libc::MAP_FAILED).then(|| start.expose_provenance())
}

/// Undoes `map_nothing`.
pub(super) fn unmap_nothing(start: usize, bytes: usize) {
    // SAFETY: nothing was ever there.
    unsafe { libc::munmap(ptr::with_exposed_provenance_mut(start), bytes) };
}

/// Forks; 0 in the child. `None` if the system refuses.
pub(super) fn fork() -> Option<i32> {
    // SAFETY: this process has one thread, so the child finds nothing half-done.
    let child = unsafe { libc::fork() };
    (child >= 0).then_some(child)
}

/// Closes all descriptors below that one. Nothing of this process uses them any more.
pub(super) fn close_below(end: RawFd) {
    for descriptor in 0..end {
        // SAFETY: other code here that still knows these descriptors only reads their numbers.
        unsafe { libc::close(descriptor) };
    }
}

/// Makes that number a copy of a descriptor, which programs inherit.
pub(super) fn move_to(from: BorrowedFd<'_>, to: RawFd) -> bool {
    // SAFETY: two numbers; nobody owns the second one.
    works(unsafe { libc::dup2(from.as_raw_fd(), to) })
}

/// Kills every process of this namespace but the first, which this one has to be.
pub(super) fn kill_all_others() -> bool {
    // SAFETY: touches no memory. For any but the first process all would be those of its user.
    own_process() == 1 && works(unsafe { libc::kill(-1, libc::SIGKILL) })
}

/// Gives new files the usual modes.
pub(super) fn usual_file_modes() {
    // SAFETY: touches no memory.
    unsafe { libc::umask(0o022) };
}

/// Restores the default action of all signals.
pub(super) fn usual_signals() {
    for signal in 1..=libc::SIGRTMAX() {
        // SAFETY: no handler of ours is entered any more. Some cannot be changed.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
}

/// Gives the machine another name in this namespace.
pub(super) fn name_host() -> bool {
    let name = c"isolane".to_bytes();
    // SAFETY: reads that many bytes.
    works(unsafe { libc::sethostname(name.as_ptr().cast(), name.len()) })
}

/// Attributes of files that are shown to a program: read-only, without devices and set-user bits.
pub(super) const SHOWN_FILE: u64 =
    libc::MOUNT_ATTR_RDONLY | libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV;
/// The same for folders that a program may write to.
pub(super) const SHOWN_WRITABLE: u64 = libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV;
/// The same for a device.
pub(super) const SHOWN_DEVICE: u64 =
    libc::MOUNT_ATTR_RDONLY | libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NOEXEC;

/// Sets attributes of a mounted tree, everything in it included.
pub(super) fn set_mount_attributes(tree: BorrowedFd<'_>, attributes: u64) -> bool {
    #[repr(C)]
    struct Attributes {
        set: u64,
        clear: u64,
        propagation: u64,
        user_namespace: u64,
    }
    let wanted =
        Attributes { set: attributes, clear: 0, propagation: libc::MS_PRIVATE, user_namespace: 0 };
    let flags = libc::c_long::from(libc::AT_EMPTY_PATH | libc::AT_RECURSIVE);
    // SAFETY: reads an empty text and a structure of that size.
    checked(unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            tree.as_raw_fd(),
            c"".as_ptr(),
            flags,
            &raw const wanted,
            size_of::<Attributes>(),
        )
    })
    .is_ok()
}

/// Rules of Landlock: they withdraw the rights that these bits stand for.
#[repr(C)]
pub(super) struct Handled {
    pub(super) files: u64,
    pub(super) network: u64,
    pub(super) scopes: u64,
}

/// The version of Landlock that the kernel has.
pub(super) fn landlock_version() -> io::Result<libc::c_long> {
    const ASK_FOR_VERSION: Word = 1;
    let (none, nothing): (Word, *const Handled) = (0, ptr::null());
    // SAFETY: with this flag it reads nothing.
    checked(unsafe {
        libc::syscall(libc::SYS_landlock_create_ruleset, nothing, none, ASK_FOR_VERSION)
    })
}

/// Rights on what lies below an open folder, or on an open file.
pub(super) struct Granted<'a> {
    pub(super) below: BorrowedFd<'a>,
    pub(super) files: u64,
}

pub(super) fn restrict_by_landlock(handled: &Handled, granted: &[Granted<'_>]) -> io::Result<()> {
    const BELOW_PATH: Word = 1;
    #[repr(C, packed)]
    struct Rule {
        files: u64,
        below: RawFd,
    }
    let none: Word = 0;
    let bytes = size_of::<Handled>();
    // SAFETY: reads one structure of that size.
    let rules = checked(unsafe {
        libc::syscall(libc::SYS_landlock_create_ruleset, ptr::from_ref(handled), bytes, none)
    })?;
    let rules = RawFd::try_from(rules).map_err(io::Error::other)?;
    // SAFETY: a descriptor that is new, and owned by nobody else.
    let rules = unsafe { OwnedFd::from_raw_fd(rules) };
    for Granted { below, files } in granted {
        let rule = Rule { files: *files, below: below.as_raw_fd() };
        let (to, rule) = (rules.as_raw_fd(), &raw const rule);
        // SAFETY: reads one structure of the kind that is named.
        checked(unsafe { libc::syscall(libc::SYS_landlock_add_rule, to, BELOW_PATH, rule, none) })?;
    }
    // SAFETY: two numbers.
    checked(unsafe { libc::syscall(libc::SYS_landlock_restrict_self, rules.as_raw_fd(), none) })?;
    Ok(())
}

/// Has the kernel run that program at each call of this process from here on.
pub(super) fn filter_calls(program: &[libc::sock_filter]) -> bool {
    let Ok(length) = u16::try_from(program.len()) else { return false };
    let program = libc::sock_fprog { len: length, filter: program.as_ptr().cast_mut() };
    let none: Word = 0;
    let mode = Word::from(libc::SECCOMP_SET_MODE_FILTER);
    // SAFETY: the kernel reads the program, checks and copies it.
    checked(unsafe { libc::syscall(libc::SYS_seccomp, mode, none, &raw const program) }).is_ok()
}
