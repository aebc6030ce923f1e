//! Who ends with whom: no process of a family outlives its host.
//!
//! Linux is told once, and kills a process when its parent has ended (`told`). Elsewhere each looks whether its
//! parent is there (`asked`).

#[cfg(any(isolane_portable, not(target_os = "linux")))]
mod asked;
#[cfg(all(target_os = "linux", not(isolane_portable)))]
mod told;

#[cfg(any(isolane_portable, not(target_os = "linux")))]
pub(super) use asked::{Parent, has_ended, kill};
#[cfg(all(target_os = "linux", not(isolane_portable)))]
pub(super) use told::{Parent, has_ended, kill};
