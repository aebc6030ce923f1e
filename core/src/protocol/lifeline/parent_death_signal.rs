//! Lifelines of a system that ends children with their parents.

use std::{process::Child, time::Duration};

use rustix::process::{Signal, set_parent_process_death_signal};

use crate::os::children;

/// The process that forked this one.
pub(crate) struct Parent;

impl Parent {
    /// The interval at which a process checks whether its parent exists.
    pub(crate) const LOOK: Option<Duration> = None;

    /// Makes this process end with its parent, or with the parent's thread that started it.
    pub(crate) fn to_die_with() -> Self {
        let _ = set_parent_process_death_signal(Some(Signal::KILL));
        Self
    }

    /// The parent of a process whose confinement ends it.
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

/// Whether a launcher has ended and its host must check for that itself.
pub(crate) fn has_ended(_launcher: &Child) -> bool {
    false
}

/// Kills a launcher and all its descendants.
pub(crate) fn kill(launcher: &mut Child) {
    // The launcher may be gone.
    let _ = launcher.kill();
}
