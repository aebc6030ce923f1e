//! The phases on Windows.
//!
//! In: a program to start and the other end of its socket, and in that program what it inherited. Out: a process
//! that has of its host's nothing but that socket, and an account of what could be had of that. A worker is started with a token
//! that opens nothing, in a job; until it has loaded what it needs, its thread acts under another token. Each
//! item of the account but those that a call tells of was tried: a process of the same strength did what a
//! worker must not, and could not.

mod handles;
mod job;
mod loader;
mod mitigations;
mod probes;
mod process;
mod socket;
mod token;

use std::{io, net::TcpStream, path::Path, time::Duration};

use self::{handles::Owned, job::Job, process::Program, token::Tokens};
use super::Confinement;

pub use self::process::{Process, exit};

/// How a host starts programs.
pub struct Launcher {
    /// `None` where the system does not start a process under them.
    tokens: Option<Tokens>,
}

impl Launcher {
    /// All that may be had, what keeps most away first.
    pub fn strongest_first() -> impl Iterator<Item = Self> {
        let confined = Tokens::of_nothing().map(|tokens| Self { tokens: Some(tokens) });
        confined.into_iter().chain([Self { tokens: None }])
    }

    /// Starts a program with that socket. Its words are made of the number of what it inherits.
    pub fn start<const WORDS: usize>(
        &self,
        program: &Path,
        socket: &TcpStream,
        words: impl FnOnce(usize) -> [String; WORDS],
    ) -> io::Result<Process> {
        let (theirs, parcel) = socket::parcel()?;
        let words = words(theirs.number());
        let program = Program { path: program, words: &words, inherits: &theirs };
        let started = program.start(self.tokens.as_ref(), Job::new()?)?;
        parcel.send(socket, started.number(), started.lend_job()?)?;
        started.resume()
    }
}

/// What a program was given.
pub struct Inherited {
    socket: TcpStream,
    job: Owned,
}

impl Inherited {
    /// What came through that pipe, by its number as [`Launcher::start`] said it. Only once.
    pub fn from_word(word: &str) -> Option<Self> {
        let (socket, job) = socket::received(Owned::inherited(word.parse().ok()?)?)?;
        Some(Self { socket, job })
    }

    /// The socket alone: the job goes with what is left.
    pub fn into_socket(self) -> TcpStream {
        self.socket
    }
}

/// A worker after its phase.
pub struct Worker {
    job: Job,
}

/// Confines a worker; `None` if it does not get all that was announced: it must end then.
pub fn worker(inherited: Inherited, announced: Confinement) -> Option<(Worker, TcpStream)> {
    let Inherited { socket, job } = inherited;
    let got = enter(&socket)?;
    let Confinement { environment, user, capabilities, .. } = announced;
    let all = Confinement { environment, user, capabilities, ..Confinement::default() };
    (got == all).then_some((Worker { job: Job::of(job) }, socket))
}

/// Confines a process that only tells what it is kept from, and tries the rest; `None` as for a worker.
pub fn tried(inherited: Inherited, host: u32) -> Option<(Confinement, TcpStream)> {
    let Inherited { socket, job } = inherited;
    let got = enter(&socket)?;
    let resources = Job::of(job).limit(u64::MAX, Duration::MAX);
    let tried = Confinement {
        // By the list of what it inherits, without which it is not started.
        descriptors: true,
        resources,
        privileges: !probes::starts_a_program(),
        // What it has is a socket of the network, which the system may be brought to connect to another service
        // of this machine.
        network: false,
        file_system: !probes::opens_a_file(),
        processes: !probes::opens_a_process(host),
        ipc: !probes::makes_a_named_object(),
        ..got
    };
    Some((tried, socket))
}

/// What each of them does. `None` if it still acts with the host's rights.
fn enter(socket: &TcpStream) -> Option<Confinement> {
    socket::warm(socket);
    let token = token::Own::open();
    mitigations::apply();
    let trusts_nothing = token.as_ref().is_some_and(token::Own::trust_nothing);
    if !token::give_back() {
        return None;
    }
    Some(Confinement {
        environment: process::clear_environment(),
        user: trusts_nothing && token.as_ref().is_some_and(token::Own::is_restricted),
        capabilities: token.as_ref().is_some_and(token::Own::has_no_privilege),
        ..Confinement::default()
    })
}

impl Worker {
    /// Limits the worker to that much memory more, and to that much CPU time, for good: what it could raise them
    /// with is closed here.
    pub fn limit(&self, _given_back_bytes: u64, room_bytes: u64, cpu: Duration) -> bool {
        let limited = self.job.limit(room_bytes, cpu);
        self.job.close();
        limited
    }
}
