//! Confinement of the processes that run a sandbox's code.
//!
//! In: the wanted confinement, a fresh process, a socket. Out: the same process with only that socket, its memory and
//! its time, and an account of the confinement that the system granted ([`Confinement`]).
//!
//! On Unix there are three kinds of processes, each forked from the one before. Each enters its phase right at its
//! start: [`launcher`] (namespaces, an empty environment), `Launched::zygote` (an empty root, no privileges) and
//! [`Zygote::worker`] (its descriptors, its limits, its calls). A worker that knows its run is limited to it with
//! [`Worker::limit`]. All phases are for processes of one thread. Each item is tried by itself: a refused one takes no
//! other with it. Systems differ in their means: see `linux`, `macos`, and `unix` for both; and `windows`, where a
//! worker is started with less than its host has, and gives up the rest itself. [`program`] has what all systems that
//! start other programs in confinement share.

mod allocator;
mod confinement;
mod ended;
#[cfg(unix)]
mod environment;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "macos")]
mod macos;
pub mod program;
#[cfg(all(test, target_os = "linux", not(isolane_sanitized), target_pointer_width = "64"))]
mod tests;
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

pub use self::allocator::Allocator;
#[cfg(unix)]
pub use self::allocator::keep_large_block;
pub use self::confinement::Confinement;
pub use self::ended::Ended;
#[cfg(target_os = "linux")]
pub use self::linux::{Worker, Zygote, interpreter, launcher};
#[cfg(target_os = "macos")]
pub use self::macos::{Worker, Zygote, launcher};
#[cfg(unix)]
pub use self::unix::exit;
#[cfg(windows)]
pub use self::windows::{Inherited, Launcher, Process, Worker, exit, tried, worker};

/// The stack for the compilation of the deepest source, and as much again for all small needs.
const FIXED_ROOM_BYTES: u64 = 128 << 20;
/// The share of the limit that may be mapped outside of the engine's heap: bytes that a run makes others hold count
/// against it, and a buffer that grows is there twice for a moment.
const ROOM: u64 = 2;
/// The most by which the blocks of an engine without a slot spread.
const PLAIN_SPREAD: u64 = 2;

/// Bytes that a run under this limit may have mapped beside those of its worker: for [`Worker::limit`]. A run in a slot
/// has the addresses of its heap already, and the slot must be trimmed before. It is a second barrier behind the limit,
/// far enough away that a run within its limit never meets it.
#[must_use]
pub fn room_bytes(limit_bytes: u64, in_slot: bool) -> u64 {
    let share = if in_slot { ROOM } else { ROOM + PLAIN_SPREAD };
    limit_bytes.saturating_mul(share).saturating_add(FIXED_ROOM_BYTES)
}
