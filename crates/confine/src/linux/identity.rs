//! The user of the process, and its capabilities.
//!
//! In: any user, with any capabilities. Out: nobody, with none.

use super::kernel;

/// The user and the group that own nothing.
pub(super) const NOBODY: u32 = 65_534;

/// Becomes nobody if it is root. False if it stays root.
pub(super) fn become_nobody() -> bool {
    if kernel::own_identity().0 != 0 {
        return true;
    }
    kernel::leave_groups();
    kernel::become_user(NOBODY, NOBODY) && kernel::own_identity().0 != 0
}

/// Gives up all capabilities, also those that a program started from here would get.
pub(super) fn drop_all() -> bool {
    const HIGHEST: u32 = 63;
    for capability in 0..=HIGHEST {
        // The kernel refuses this where there is none, and to a process without capabilities.
        kernel::drop_bounding(capability);
    }
    let nobody = become_nobody();
    kernel::drop_ambient();
    let none = kernel::Capabilities::default();
    kernel::set_capabilities(&none);
    nobody && kernel::capabilities() == Some(none)
}
