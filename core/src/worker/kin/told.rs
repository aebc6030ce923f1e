//! A system that ends children with their parents.

use std::{process::Child, time::Duration};

use rustix::process::{Signal, set_parent_process_death_signal};

use super::super::children;

/// The process that forked this one.
pub(in super::super) struct Parent;

impl Parent {
    /// How often a process looks whether its parent is there.
    pub(in super::super) const LOOK: Option<Duration> = None;

    /// Has this process end with its parent, or with the thread of it that made this process.
    pub(in super::super) fn to_die_with() -> Self {
        let _ = set_parent_process_death_signal(Some(Signal::KILL));
        Self
    }

    /// Of a process whose confinement sees to that.
    pub(in super::super) fn of_confined() -> Self {
        Self
    }

    #[expect(clippy::unused_self, reason = "it is of use elsewhere")]
    pub(in super::super) fn is_gone(&self) -> bool {
        false
    }

    /// Waits for the nursery to end.
    #[expect(clippy::unused_self, reason = "it is of use elsewhere")]
    pub(in super::super) fn outlive(&self, nursery: i32) {
        children::wait_for(nursery);
    }
}

/// Whether a launcher has ended and its host has to look to learn that.
pub(in super::super) fn has_ended(_launcher: &Child) -> bool {
    false
}

/// Kills a launcher, and all that comes from it.
pub(in super::super) fn kill(launcher: &mut Child) {
    // It may be gone.
    let _ = launcher.kill();
}
