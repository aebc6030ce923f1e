//! What is taken from the processes that run a sandbox's code.
//!
//! In: what is wanted, a fresh process, a socket. Out: the same process with nothing left but that
//! socket, its memory and its time, and an account of what could be had of that ([`Confinement`]).
//!
//! On Unix there are three kinds of processes, each forked from the one before, and each enters its phase
//! right after it began: [`launcher`] (namespaces, an empty environment), `Launched::zygote` (an
//! empty root, no privileges) and [`Zygote::worker`] (its descriptors, its limits, its calls). A
//! worker that knows its run is limited to it with [`Worker::limit`]. All of it is for processes of
//! one thread. Each item is tried by itself: one that is refused takes no other with it. What systems have
//! for this is different: `linux`, `macos`, and `unix` for both; and `windows`, where a worker is started with less
//! than its host has, and gives up the rest itself.

mod allocator;
mod confinement;
mod ended;
#[cfg(unix)]
mod environment;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "macos")]
mod macos;
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
pub use self::linux::{Worker, Zygote, launcher};
#[cfg(target_os = "macos")]
pub use self::macos::{Worker, Zygote, launcher};
#[cfg(unix)]
pub use self::unix::exit;
#[cfg(windows)]
pub use self::windows::{Inherited, Launcher, Process, Worker, exit, tried, worker};

/// The stack that the deepest source takes to compile, and as much again for all that is small.
const FIXED_ROOM_BYTES: u64 = 128 << 20;
/// How much of the limit may be mapped outside of the engine's heap: what a run makes others hold
/// counts against it, and a buffer that grows is there twice for a moment.
const ROOM: u64 = 2;
/// How far the blocks of an engine without a slot spread at most.
const PLAIN_SPREAD: u64 = 2;

/// What a run under this limit may have mapped beside what its worker has: for [`Worker::limit`]. A run
/// in a slot has the addresses of its heap already, and the slot is to be trimmed before. It is a wall
/// behind the limit, so it is far enough away never to be met by a run that the limit holds.
pub fn room_bytes(limit_bytes: u64, in_slot: bool) -> u64 {
    let share = if in_slot { ROOM } else { ROOM + PLAIN_SPREAD };
    limit_bytes.saturating_mul(share).saturating_add(FIXED_ROOM_BYTES)
}
