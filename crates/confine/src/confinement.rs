//! What the workers of a runtime are kept from, item by item.
//!
//! In: what was had, as the phases of this crate found it. Out: the same for whoever asks, and for
//! another process of the same build.

const ITEMS: usize = 12;

/// What the workers of a runtime are kept from. An item that is false could not be had on this
/// machine; what it is for is then possible as far as the other items leave it. What is said here of each is how Linux
/// keeps it; `SECURITY.md` says what macOS and Windows have in its place, and which they never have.
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
    /// A process namespace of its own: it can name no process but those of its zygote.
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
    pub const BYTES: usize = 2;

    /// Everything.
    #[cfg(unix)]
    pub const ALL: Self = Self {
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
    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        let items = self.items().into_iter().enumerate();
        let bits = items.fold(0_u16, |bits, (place, (_, item))| bits | u16::from(item) << place);
        bits.to_le_bytes()
    }

    /// `None` if it says something that no item stands for.
    pub fn from_bytes(bytes: [u8; Self::BYTES]) -> Option<Self> {
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
