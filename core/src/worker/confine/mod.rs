//! What is taken from the processes that run a sandbox's code.
//!
//! In: what is wanted, a fresh process, a socket. Out: the same process with nothing left but that
//! socket, its memory and its time, and an account of what could be had of that ([`Confinement`]).
//!
//! There are three kinds of processes, each forked from the one before, and each enters its phase
//! right after it began: [`launcher`] (namespaces, an empty environment), `Launched::nursery` (an
//! empty root, no privileges) and [`Nursery::worker`] (its descriptors, its limits, its calls). A
//! worker that knows its run is limited to it with [`Worker::limit`]. All of it is for processes of
//! one thread. Each item is tried by itself: one that is refused takes no other with it.

mod allocator;
mod ended;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(all(test, not(isolane_sanitized), target_os = "linux", target_pointer_width = "64"))]
mod tests;

pub use allocator::Allocator;
pub(crate) use ended::Ended;
#[cfg(target_os = "linux")]
pub(crate) use linux::{Nursery, Worker, launcher};

const ITEMS: usize = 12;

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
pub(crate) fn room_bytes(limit_bytes: u64, in_slot: bool) -> u64 {
    let share = if in_slot { ROOM } else { ROOM + PLAIN_SPREAD };
    limit_bytes.saturating_mul(share).saturating_add(FIXED_ROOM_BYTES)
}

/// What the workers of a runtime are kept from. An item that is false could not be had on this
/// machine; what it is for is then possible as far as the other items leave it.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[expect(clippy::struct_excessive_bools, reason = "each was had or not, on its own")]
pub struct Confinement {
    /// No variable of the host's environment; the time zone was read before.
    pub environment: bool,
    /// No descriptor but the worker's own socket.
    pub descriptors: bool,
    /// No program that it might start has more privileges than it has (`no_new_privs`).
    pub privileges: bool,
    /// A user namespace of its own: what it may do as a user ends there.
    pub user: bool,
    /// No capability, and not root.
    pub capabilities: bool,
    /// A network namespace of its own, with nothing in it.
    pub network: bool,
    /// Its root is an empty directory.
    pub file_system: bool,
    /// A process namespace of its own: it can name no process but those of its nursery.
    pub processes: bool,
    /// No System V object and no message queue of others.
    pub ipc: bool,
    /// No right that Landlock knows of, whatever else fails: files, TCP, abstract sockets, signals.
    pub landlock: bool,
    /// The few system calls that computing takes; any other one ends the process.
    pub system_calls: bool,
    /// Limits of the system on its memory, its time, and on all that it might make.
    pub resources: bool,
}

impl Confinement {
    /// How many bytes it is.
    pub(crate) const BYTES: usize = 2;

    /// Everything.
    pub(crate) const ALL: Self = Self {
        environment: true,
        descriptors: true,
        privileges: true,
        user: true,
        capabilities: true,
        network: true,
        file_system: true,
        processes: true,
        ipc: true,
        landlock: true,
        system_calls: true,
        resources: true,
    };

    /// Each item by its name, in the order of the fields.
    #[must_use]
    pub fn items(mut self) -> [(&'static str, bool); ITEMS] {
        self.fields().map(|(name, item)| (name, *item))
    }

    /// For another process of the same build.
    pub(crate) fn to_bytes(self) -> [u8; Self::BYTES] {
        let items = self.items().into_iter().enumerate();
        let bits = items.fold(0_u16, |bits, (place, (_, item))| bits | u16::from(item) << place);
        bits.to_le_bytes()
    }

    /// `None` if it says something that no item stands for.
    pub(crate) fn from_bytes(bytes: [u8; Self::BYTES]) -> Option<Self> {
        let bits = u16::from_le_bytes(bytes);
        let mut read = Self::default();
        for (place, (_, item)) in read.fields().into_iter().enumerate() {
            *item = bits >> place & 1 == 1;
        }
        (read.to_bytes() == bytes).then_some(read)
    }

    fn fields(&mut self) -> [(&'static str, &mut bool); ITEMS] {
        [
            ("environment", &mut self.environment),
            ("descriptors", &mut self.descriptors),
            ("privileges", &mut self.privileges),
            ("user", &mut self.user),
            ("capabilities", &mut self.capabilities),
            ("network", &mut self.network),
            ("file_system", &mut self.file_system),
            ("processes", &mut self.processes),
            ("ipc", &mut self.ipc),
            ("landlock", &mut self.landlock),
            ("system_calls", &mut self.system_calls),
            ("resources", &mut self.resources),
        ]
    }
}
