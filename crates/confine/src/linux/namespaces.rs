//! Namespaces, which bound the parts of the system that a process sees.
//!
//! In: the wanted ones. Out: the granted ones. Each is entered by itself, the user namespace first, because its owner
//! may enter the others without being root.

use super::{
    Confinement,
    identity::{self, NOBODY},
    kernel::{self, in_child, unshare},
};
use std::{fs, io};

/// Enters the wanted ones. Returns whether the process has its own table of mounts. The process namespace is that of
/// the next child.
pub(super) fn enter(wanted: Confinement, got: &mut Confinement) -> bool {
    enter_first(wanted, got);
    enter_others(wanted, got)
}

/// Enters those that children have from their start: the user's, and that of processes.
pub(super) fn enter_first(wanted: Confinement, got: &mut Confinement) {
    got.user = wanted.user && enter_user();
    got.processes = wanted.processes && unshare(libc::CLONE_NEWPID);
}

/// Enters all others.
pub(super) fn enter_others(wanted: Confinement, got: &mut Confinement) -> bool {
    got.network = wanted.network && unshare(libc::CLONE_NEWNET);
    got.ipc = wanted.ipc && unshare(libc::CLONE_NEWIPC);
    if wanted.system_calls {
        // These two contain only names, and no call that reads them is permitted.
        unshare(libc::CLONE_NEWUTS);
        unshare(libc::CLONE_NEWCGROUP);
    }
    wanted.file_system && unshare(libc::CLONE_NEWNS)
}

/// Root goes in as nobody, so that it is nobody outside, too. Where nobody is refused there, root stays outside: it may
/// enter the other namespaces as it is, and become nobody afterwards.
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

/// Makes the user outside nobody inside. A process that changed its user is not dumpable, and could not write these
/// files.
fn map((user, group): (u32, u32)) -> io::Result<()> {
    kernel::set_dumpable(true);
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("{NOBODY} {user} 1"))?;
    fs::write("/proc/self/gid_map", format!("{NOBODY} {group} 1"))
}
