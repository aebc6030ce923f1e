//! The arguments of the program that is one worker, and its hello.

use isolane_confine::Confinement;

use crate::protocol::frame::VERSION;

/// The length of a hello: a version and a confinement.
pub(crate) const HELLO_BYTES: usize = 4 + Confinement::BYTES;

/// The word for a process that finds out its confinement.
const TRIAL: &str = "trial";

/// The host's settings for the program.
#[derive(Clone, Copy)]
pub(crate) struct Arguments {
    /// Runs of one worker.
    pub(crate) runs: u32,
    /// The confinement of the process. `None` if it finds out its confinement and reports it.
    pub(crate) announced: Option<Confinement>,
}

impl Arguments {
    /// The arguments of a process that finds out its confinement.
    pub(crate) fn of_trial(runs: u32) -> Self {
        Self { runs, announced: None }
    }

    /// The arguments of a worker with that confinement.
    pub(crate) fn with(self, announced: Confinement) -> Self {
        Self { announced: Some(announced), ..self }
    }

    /// The words, with the number of the inherited handle.
    pub(crate) fn to_words(self, inherited: usize) -> [String; 5] {
        let announced = self.announced.map(|all| u16::from_le_bytes(all.to_bytes()).to_string());
        [
            VERSION.to_string(),
            inherited.to_string(),
            self.runs.to_string(),
            std::process::id().to_string(),
            announced.unwrap_or_else(|| TRIAL.to_owned()),
        ]
    }
}

/// The arguments that the program received.
pub(crate) struct Received {
    pub(crate) arguments: Arguments,
    /// The process that started it.
    pub(crate) host: u32,
}

impl Received {
    pub(crate) fn from_words(mut words: impl Iterator<Item = String>) -> Option<Self> {
        let runs = words.next()?.parse().ok()?;
        let host = words.next()?.parse().ok()?;
        let announced = match words.next()?.as_str() {
            TRIAL => None,
            items => {
                let items: u16 = items.parse().ok()?;
                Some(Confinement::from_bytes(items.to_le_bytes())?)
            }
        };
        Some(Self { arguments: Arguments { runs, announced }, host })
    }
}

/// The first message of a process to its host.
pub(crate) fn hello(confinement: Confinement) -> [u8; HELLO_BYTES] {
    let mut bytes = [0; HELLO_BYTES];
    bytes[..4].copy_from_slice(&VERSION.to_le_bytes());
    bytes[4..].copy_from_slice(&confinement.to_bytes());
    bytes
}

/// Reads a hello.
pub(crate) fn hello_from(bytes: [u8; HELLO_BYTES]) -> Option<(u32, Confinement)> {
    let (version, confinement) = bytes.split_first_chunk()?;
    let confinement = Confinement::from_bytes(confinement.try_into().ok()?)?;
    Some((u32::from_le_bytes(*version), confinement))
}
