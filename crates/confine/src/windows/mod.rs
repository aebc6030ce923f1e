//! The phases on Windows.
//!
//! In: a program to start and the other end of its socket, and in that program the things that it inherited. Out: a
//! process that has only that socket of its host's, and an account of the confinement that the system granted. A worker
//! is started in a job, with a token that opens nothing; until it has loaded its libraries, its thread acts under
//! another token. Each item of the account was tried, except for those that a call reports: a process of the same
//! strength attempted each act that a worker must not do, and failed.

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

/// A host's way to start programs.
pub struct Launcher {
    /// `None` where the system does not start a process under them.
    tokens: Option<Tokens>,
}

impl Launcher {
    /// All launchers that the system allows, the strongest first.
    pub fn strongest_first() -> impl Iterator<Item = Self> {
        let confined = Tokens::of_nothing().map(|tokens| Self { tokens: Some(tokens) });
        confined.into_iter().chain([Self { tokens: None }])
    }

    /// Starts a program with that socket. `words` makes its arguments from the number of the handle that it inherits.
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

/// The things that a program was given.
pub struct Inherited {
    socket: TcpStream,
    job: Owned,
}

impl Inherited {
    /// The things that came through the pipe with that number, as [`Launcher::start`] passed it. Only once.
    pub fn from_word(word: &str) -> Option<Self> {
        let (socket, job) = socket::received(Owned::inherited(word.parse().ok()?)?)?;
        Some(Self { socket, job })
    }

    /// The socket alone; the job is dropped.
    pub fn into_socket(self) -> TcpStream {
        self.socket
    }
}

/// A worker after its phase.
pub struct Worker {
    job: Job,
}

/// Confines a worker. `None` if it does not get everything that was announced: it must end then.
pub fn worker(inherited: Inherited, announced: Confinement) -> Option<(Worker, TcpStream)> {
    let Inherited { socket, job } = inherited;
    let got = enter(&socket)?;
    let Confinement { environment, user, capabilities, .. } = announced;
    let all = Confinement { environment, user, capabilities, ..Confinement::default() };
    (got == all).then_some((Worker { job: Job::of(job) }, socket))
}

/// Confines a process that only reports its items, and tries the rest; `None` as for a worker.
pub fn tried(inherited: Inherited, host: u32) -> Option<(Confinement, TcpStream)> {
    let Inherited { socket, job } = inherited;
    let got = enter(&socket)?;
    let resources = Job::of(job).limit(u64::MAX, Duration::MAX);
    let tried = Confinement {
        // By the list of inherited handles, without which it is not started.
        descriptors: true,
        resources,
        privileges: !probes::starts_a_program(),
        // It has a socket of the network, and the system may be brought to connect it to another service of this
        // machine.
        network: false,
        file_system: !probes::opens_a_file(),
        processes: !probes::opens_a_process(host),
        ipc: !probes::makes_a_named_object(),
        ..got
    };
    Some((tried, socket))
}

/// The steps of each of them. `None` if it still acts with the host's rights.
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
    /// Limits the worker to that much memory more, and to that much CPU time, for good: the handle that could raise the
    /// limits is closed here.
    pub fn limit(&self, _given_back_bytes: u64, room_bytes: u64, cpu: Duration) -> bool {
        let limited = self.job.limit(room_bytes, cpu);
        self.job.close();
        limited
    }
}
