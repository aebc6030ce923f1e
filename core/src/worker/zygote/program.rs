//! The program that is one worker.
//!
//! In: its words, a socket and a job. Out: its isolate, made while it may still read files, and then runs; or an
//! account of what it is kept from, if it is started for that.

use std::{
    io::{Read, Write},
    net::Shutdown,
    process::ExitCode,
};

use isolane_confine::{self as confine, Confinement, Inherited};

use super::{STACK_BYTES, cache_for, pristine};
use crate::worker::{frame::VERSION, serve::serve, warm_up};

/// How long a hello is: a version and an account.
pub(super) const HELLO_BYTES: usize = 4 + Confinement::BYTES;

/// The word for a process that finds out what it is kept from.
const TRIAL: &str = "trial";

/// What the host says when it starts the program.
#[derive(Clone, Copy)]
pub(super) struct Arguments {
    /// Runs of one worker.
    runs: u32,
    /// What it is to be kept from; `None` if it is to find that out, and to tell.
    announced: Option<Confinement>,
}

impl Arguments {
    /// Of a process that finds out what it is kept from.
    pub(super) fn of_trial(runs: u32) -> Self {
        Self { runs, announced: None }
    }

    /// Of a worker that is kept from that.
    pub(super) fn with(self, announced: Confinement) -> Self {
        Self { announced: Some(announced), ..self }
    }

    /// With what it inherits, by its number.
    pub(super) fn to_words(self, inherited: usize) -> [String; 5] {
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

/// What was said to it.
struct Said {
    arguments: Arguments,
    host: u32,
}

impl Said {
    fn from_words(mut words: impl Iterator<Item = String>) -> Option<Self> {
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

fn hello(confinement: Confinement) -> [u8; HELLO_BYTES] {
    let mut bytes = [0; HELLO_BYTES];
    bytes[..4].copy_from_slice(&VERSION.to_le_bytes());
    bytes[4..].copy_from_slice(&confinement.to_bytes());
    bytes
}

/// What a hello says.
pub(super) fn hello_from(bytes: [u8; HELLO_BYTES]) -> Option<(u32, Confinement)> {
    let (version, confinement) = bytes.split_first_chunk()?;
    let confinement = Confinement::from_bytes(confinement.try_into().ok()?)?;
    Some((u32::from_le_bytes(*version), confinement))
}

/// The whole of the program `isolane-worker`, which a host starts with one end of a socket, and a job. Returns
/// when the host is gone.
#[must_use]
pub fn worker_main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    let version = words.next().and_then(|word| word.parse::<u32>().ok());
    let inherited = words.next().and_then(|word| Inherited::from_word(&word));
    let Some(inherited) = inherited else { return ExitCode::from(2) };
    let said = Said::from_words(words).filter(|_| version == Some(VERSION));
    let Some(Said { arguments, host }) = said else {
        // Of another version: the host is told which, and gives up.
        let _ = inherited.into_socket().write_all(&hello(Confinement::default()));
        return ExitCode::from(2);
    };
    stacker::grow(STACK_BYTES, || work(inherited, arguments, host))
}

fn work(inherited: Inherited, arguments: Arguments, host: u32) -> ExitCode {
    let (pool, cache) = (pristine(), cache_for(arguments.runs));
    // What is loaded when it is needed first has to be loaded before nothing can be.
    rehearsal::rehearse(&pool, &cache);
    let Some(announced) = arguments.announced else {
        let Some((confinement, mut socket)) = confine::tried(inherited, host) else {
            return ExitCode::FAILURE;
        };
        let told = socket.write_all(&hello(confinement));
        return if told.is_ok() { linger(socket) } else { ExitCode::FAILURE };
    };
    let Some((worker, socket)) = confine::worker(inherited, announced) else {
        return ExitCode::FAILURE;
    };
    let Ok(last) = socket.try_clone() else { return ExitCode::FAILURE };
    serve(socket, &worker, &pool, &cache, arguments.runs);
    linger(last)
}

/// Stays until the host has heard everything. A socket that is closed with something unread in it takes back what
/// was written.
fn linger(mut socket: std::net::TcpStream) -> ExitCode {
    let _ = socket.shutdown(Shutdown::Write);
    let mut unread = [0; 1024];
    while socket.read(&mut unread).is_ok_and(|read| read > 0) {}
    ExitCode::SUCCESS
}
