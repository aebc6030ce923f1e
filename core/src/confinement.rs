//! What the workers of a runtime are kept from, item by item.
//!
//! In: what was had, as the phases of `worker/confine` found it. Out: the same for whoever asks, and for
//! another process of the same build.

const ITEMS: usize = 12;

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
    /// No program that it might start has more privileges than it has (`no_new_privs`). On macOS: it can start
    /// none, by Seatbelt.
    pub privileges: bool,
    /// A user namespace of its own: what it may do as a user ends there. Never on macOS.
    pub user: bool,
    /// No capability, and not root.
    pub capabilities: bool,
    /// A network namespace of its own, with nothing in it. On macOS: no use of the network, by Seatbelt.
    pub network: bool,
    /// Its root is an empty directory. On macOS: no file can be opened, by Seatbelt.
    pub file_system: bool,
    /// A process namespace of its own: it can name no process but those of its nursery. On macOS: no signal to
    /// any other, and no look at one, by Seatbelt.
    pub processes: bool,
    /// No System V object and no message queue of others. On macOS: no POSIX object and no service either, by
    /// Seatbelt.
    pub ipc: bool,
    /// No right that Landlock knows of, whatever else fails: files, TCP, abstract sockets, signals. Never on
    /// macOS.
    pub landlock: bool,
    /// The few system calls that computing takes; any other one ends the process. Never on macOS.
    pub system_calls: bool,
    /// Limits of the system on its memory, its time, and on all that it might make. Never on macOS, where those
    /// are set but memory has none.
    pub resources: bool,
}

impl Confinement {
    /// How many bytes it is.
    pub(crate) const BYTES: usize = 2;

    /// Everything.
    #[cfg(any(unix, test))]
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
