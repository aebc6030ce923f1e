//! Lifelines: no process of a family outlives its host.
//!
//! Linux kills a process when its parent has ended (`parent_death_signal`). Elsewhere each process checks whether its
//! parent exists (`polled`).

#[cfg(all(target_os = "linux", not(isolane_portable)))]
mod parent_death_signal;
#[cfg(any(isolane_portable, not(target_os = "linux")))]
mod polled;

#[cfg(all(target_os = "linux", not(isolane_portable)))]
pub(crate) use self::parent_death_signal::{Parent, has_ended, kill};
#[cfg(any(isolane_portable, not(target_os = "linux")))]
pub(crate) use self::polled::{Parent, has_ended, kill};
