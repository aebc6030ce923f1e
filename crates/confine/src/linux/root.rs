//! The root of the file system.
//!
//! In: any root. Out: an empty one that cannot be written to, and no way back.

use super::kernel;
use std::fs;

const PLAIN: libc::c_ulong = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;

/// Folders on which the new root can be mounted before it is one; the first that exists is used.
pub(super) const PLACES: [&std::ffi::CStr; 5] = [c"/tmp", c"/usr", c"/dev", c"/sys", c"/proc"];

/// Makes the root empty. `mounts` says that the table of mounts is the process's own.
pub(super) fn empty(mounts: bool) -> bool {
    let emptied = mounts && pivot() || vanish();
    emptied && fs::read_dir("/").into_iter().flatten().next().is_none()
}

/// Mounts an empty file system, makes it the root, and unmounts everything that was there before.
fn pivot() -> bool {
    // From now on mounts made here do not show elsewhere, and the other way round.
    if !kernel::mount(c"none", c"/", c"none", libc::MS_REC | libc::MS_PRIVATE, c"") {
        return false;
    }
    let options = c"size=4k,nr_inodes=1,mode=555";
    let Some(place) =
        PLACES.into_iter().find(|place| kernel::mount(c"none", place, c"tmpfs", PLAIN, options))
    else {
        return false;
    };
    if !kernel::enter_folder(place) || !kernel::pivot_here() {
        // The kernel does not move a root that is the boot's own memory.
        kernel::enter_folder(c"/");
        kernel::unmount(place);
        return false;
    }
    let flags = libc::MS_REMOUNT | libc::MS_BIND | libc::MS_RDONLY | PLAIN;
    // The old root lies over the new one, at the same place.
    kernel::unmount(c".")
        && kernel::enter_folder(c"/")
        && kernel::mount(c"none", c"/", c"none", flags, c"")
}

/// Makes the folder of an ended process the root, which takes fewer rights: such a folder stays empty.
fn vanish() -> bool {
    let left = kernel::in_child_of_same_root(|| {
        let gone = kernel::enter_folder(c"/proc/self/fdinfo") && kernel::change_root(c".");
        i32::from(gone && kernel::enter_folder(c"/"))
    });
    left == Some(1)
}
