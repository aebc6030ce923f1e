//! A system that ends children with their parents.

use std::{process::Child, time::Duration};

use rustix::process::{Signal, set_parent_process_death_signal};

use crate::os::children;

/// The process that forked this one.
pub(crate) struct Parent;

impl Parent {
    /// How often a process looks whether its parent is there.
    pub(crate) const LOOK: Option<Duration> = None;

    /// Has this process end with its parent, or with the thread of it that made this process.
    pub(crate) fn to_die_with() -> Self {
        let _ = set_parent_process_death_signal(Some(Signal::KILL));
        Self
    }

    /// Of a process whose confinement sees to that.
    pub(crate) fn of_confined() -> Self {
        Self
    }

    #[expect(clippy::unused_self, reason = "it is of use elsewhere")]
    pub(crate) fn is_gone(&self) -> bool {
        false
    }

    /// Waits for the zygote to end.
    #[expect(clippy::unused_self, reason = "it is of use elsewhere")]
    pub(crate) fn outlive(&self, zygote: i32) {
        children::wait_for(zygote);
    }
}

/// Whether a launcher has ended and its host has to look to learn that.
pub(crate) fn has_ended(_launcher: &Child) -> bool {
    false
}

/// Kills a launcher, and all that comes from it.
pub(crate) fn kill(launcher: &mut Child) {
    // It may be gone.
    let _ = launcher.kill();
}
