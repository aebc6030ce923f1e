//! Namespaces: what of the system a process sees at all.
//!
//! In: which are wanted. Out: which were had. Each is entered by itself, the user namespace first,
//! because whoever owns one may enter the others without being root.

use super::{
    Confinement,
    identity::{self, NOBODY},
    kernel::{self, in_child, unshare},
};
use std::{fs, io};

/// Enters what is wanted. Returns whether the process has its own table of mounts. The process
/// namespace is that of the next child.
pub(super) fn enter(wanted: Confinement, got: &mut Confinement) -> bool {
    got.user = wanted.user && enter_user();
    got.network = wanted.network && unshare(libc::CLONE_NEWNET);
    got.processes = wanted.processes && unshare(libc::CLONE_NEWPID);
    got.ipc = wanted.ipc && unshare(libc::CLONE_NEWIPC);
    if wanted.system_calls {
        // Only names are in these two, and no call that reads them is permitted.
        unshare(libc::CLONE_NEWUTS);
        unshare(libc::CLONE_NEWCGROUP);
    }
    wanted.file_system && unshare(libc::CLONE_NEWNS)
}

/// Root goes in as nobody, so that it is nobody outside, too. Where nobody is refused there root stays
/// outside: it may enter the other namespaces as it is, and become nobody afterwards.
fn enter_user() -> bool {
    let (user, _) = kernel::own_identity();
    let goes = |body: fn() -> bool| in_child(|| i32::from(body())) == Some(1);
    if user == 0 && goes(identity::become_nobody) {
        if !goes(|| identity::become_nobody() && unshare(libc::CLONE_NEWUSER)) {
            return false;
        }
        identity::become_nobody();
    }
    let outside = kernel::own_identity();
    if !unshare(libc::CLONE_NEWUSER) {
        return false;
    }
    // Without a map it is nobody as well, but owns nothing that it could mount.
    let _unmapped = map(outside);
    true
}

/// Makes the user outside nobody inside. The files are not writable to a process that is not dumpable,
/// as one that changed its user is not.
fn map((user, group): (u32, u32)) -> io::Result<()> {
    kernel::set_dumpable(true);
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("{NOBODY} {user} 1"))?;
    fs::write("/proc/self/gid_map", format!("{NOBODY} {group} 1"))
}
