//! Programs in confinement, as every system sees them: what can be required of their confinement, and who launches them.
//!
//! In: names of items, a path. Out: the reason why a program may not run, the executable that starts it. The programs
//! themselves are those of `linux::interpreter`.

mod launcher;
mod required;

use crate::Confinement;

pub use self::{
    launcher::{NAME, NoLauncher, VARIABLE, find_launcher, launcher_in, no_executable},
    required::Required,
};

/// The confinement of programs on this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProgramConfinement {
    /// Each item, by the name that it has for workers.
    pub items: Confinement,
    /// The memory that the limit counts.
    pub memory: MemoryLimit,
}

impl ProgramConfinement {
    /// That of a program. `in_group` says whether it is in a control group.
    #[must_use]
    pub fn new(items: Confinement, in_group: bool) -> Self {
        let memory = if in_group { MemoryLimit::Group } else { MemoryLimit::Process };
        Self { items, memory }
    }
}

/// The memory that a limit counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryLimit {
    /// All processes of a program together, in a control group.
    Group,
    /// Each of its processes by itself.
    Process,
}

impl MemoryLimit {
    /// The word for it, the same in all languages: `group` or `process`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Group => "group",
            Self::Process => "process",
        }
    }
}
