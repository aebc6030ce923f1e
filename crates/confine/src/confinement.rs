//! The confinement of a runtime's workers, item by item.
//!
//! In: the results of the phases of this crate. Out: the same for any caller, and for another process of the same
//! build.

const ITEMS: usize = 12;

/// The confinement of a runtime's workers. A false item could not be had on this machine; the acts that it prevents are
/// then possible, as far as the other items allow them. The text at each item describes Linux; `SECURITY.md` names the
/// means of macOS and Windows, and the items that they never have.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[expect(clippy::struct_excessive_bools, reason = "each was had or not, on its own")]
pub struct Confinement {
    /// The worker has no variable of the host's environment; the time zone was read before.
    pub environment: bool,
    /// It has no descriptor but its own socket.
    pub descriptors: bool,
    /// A program that it might start has no more privileges than it has (`no_new_privs`).
    pub privileges: bool,
    /// It has a user namespace of its own, in which its rights as a user end.
    pub user: bool,
    /// It has no capability, and is not root.
    pub capabilities: bool,
    /// It has a network namespace of its own, with nothing in it.
    pub network: bool,
    /// Its root is an empty directory.
    pub file_system: bool,
    /// It has a process namespace of its own: it can name no process but those of its zygote.
    pub processes: bool,
    /// It sees no System V object and no message queue of others.
    pub ipc: bool,
    /// It has no right that Landlock knows of, even if other items fail: files, TCP, abstract sockets, signals.
    pub landlock: bool,
    /// It may make only the few system calls that computing takes; any other one ends the process.
    pub system_calls: bool,
    /// The system limits its memory, its time, and everything else that it might make.
    pub resources: bool,
}

impl Confinement {
    /// The length of its encoding in bytes.
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

    /// The encoding for another process of the same build.
    #[must_use]
    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        let items = self.items().into_iter().enumerate();
        let bits = items.fold(0_u16, |bits, (place, (_, item))| bits | u16::from(item) << place);
        bits.to_le_bytes()
    }

    /// The decoded confinement; `None` if a bit stands for no item.
    #[must_use]
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
