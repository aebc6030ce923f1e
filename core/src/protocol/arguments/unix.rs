//! The arguments of the program that forks workers.

use crate::protocol::frame::VERSION;

/// The host's settings for the program.
pub(crate) struct Arguments {
    /// Runs of one worker.
    pub(crate) runs: u32,
}

impl Arguments {
    /// The words of a command line.
    pub(crate) fn to_words(&self) -> [String; 2] {
        [VERSION.to_string(), self.runs.to_string()]
    }

    /// Reads the words of a host of the same version.
    pub(crate) fn from_words(mut words: impl Iterator<Item = String>) -> Option<Self> {
        let version: u32 = words.next()?.parse().ok()?;
        let runs = words.next()?.parse().ok()?;
        (version == VERSION).then_some(Self { runs })
    }
}
