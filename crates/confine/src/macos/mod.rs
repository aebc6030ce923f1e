//! The phases on macOS.
//!
//! In: the wanted [`Confinement`]. Out: the granted one, as on Linux: an item that the system refuses is false in the
//! account, and a worker that gets less than its zygote announced must not be used. Seatbelt provides nearly all of it.
//! A process can enter it once, and a zygote has to fork, so only workers enter it. The zygote stays in the session and
//! the process group of its launcher, which ends them together.

mod kernel;
mod limits;
mod seatbelt;

use super::{
    Confinement, environment,
    unix::{self, exit},
};
use std::{os::fd::OwnedFd, time::Duration};

/// The most workers that may be killed before one has reported its confinement.
const TRIALS: u32 = 3;

/// The descriptor of the one socket that each of these processes has.
const SOCKET: i32 = 0;

/// A launcher after its phase.
pub struct Launched {
    wanted: Confinement,
    got: Confinement,
}

/// A zygote after its phase.
pub struct Zygote {
    wanted: Confinement,
    got: Confinement,
    /// Whether a worker enters Seatbelt.
    seatbelt: bool,
    process: i32,
}

/// A worker after its phase.
pub struct Worker;

/// Confines the launcher, which has one thread and whose socket is descriptor 0. The process that it
/// forks next is the zygote.
#[must_use]
pub fn launcher(wanted: Confinement) -> Launched {
    let mut got = Confinement::default();
    unix::new_session();
    if wanted.descriptors {
        got.descriptors = kernel::close_listed(SOCKET + 1);
        unix::silence_output();
        limits::few_descriptors();
    }
    environment::read_time_zone();
    got.environment = wanted.environment && environment::clear();
    unix::no_file_modes();
    if wanted.resources {
        limits::of_all();
    }
    kernel::deny_attach();
    Launched { wanted, got }
}

impl Launched {
    /// Confines the zygote, which the launcher has just forked.
    pub fn zygote(self) -> Zygote {
        let Self { wanted, mut got } = self;
        got.capabilities = wanted.capabilities && kernel::become_nobody();
        kernel::deny_attach();
        let seatbelt = wanted.file_system;
        Zygote { wanted, got, seatbelt, process: unix::own_process() }
    }
}

impl Zygote {
    /// Prepares to fork workers. Forks for workers that only report what they will get.
    pub fn settle(&mut self) {
        unix::plain_signals();
        // A worker that is killed reports nothing. If Seatbelt breaks the workers, they go without it.
        let (descriptors, seatbelt) = self.trials().unwrap_or_else(|| {
            self.seatbelt = false;
            self.trials().unwrap_or_default()
        });
        self.seatbelt = seatbelt;
        self.got = self.with(descriptors, seatbelt);
    }

    /// The confinement of every worker of this zygote, once it has settled.
    #[must_use]
    pub fn confinement(&self) -> Confinement {
        self.got
    }

    /// Confines a worker, which the zygote has just forked, and moves its socket to descriptor 0. `None` if it does not
    /// get everything that was announced: it must end then.
    #[must_use]
    pub fn worker(&self, socket: OwnedFd) -> Option<(Worker, OwnedFd)> {
        let (descriptors, seatbelt, socket) = self.enter(socket, false)?;
        (self.with(descriptors, seatbelt) == self.got).then_some((Worker, socket))
    }

    /// The account of a worker. Seatbelt refuses all of its items, or none.
    fn with(&self, descriptors: bool, seatbelt: bool) -> Confinement {
        Confinement {
            descriptors,
            privileges: self.wanted.privileges && seatbelt,
            network: self.wanted.network && seatbelt,
            file_system: self.wanted.file_system && seatbelt,
            processes: self.wanted.processes && seatbelt,
            ipc: self.wanted.ipc && seatbelt,
            // macOS has no such item, or its own keeps less than the name says: it does not enforce a limit on memory.
            user: false,
            landlock: false,
            system_calls: false,
            resources: false,
            ..self.got
        }
    }

    fn trials(&self) -> Option<(bool, bool)> {
        (0..TRIALS).find_map(|_| self.trial())
    }

    /// The items that a worker got; `None` if it did not come to report them.
    fn trial(&self) -> Option<(bool, bool)> {
        const TOLD: i32 = 4;
        let code = unix::in_child(|| {
            let Some((socket, other)) = unix::socket_pair() else { return 0 };
            if rustix::io::write(&other, &[1]) != Ok(1) {
                return 0;
            }
            let Some((descriptors, seatbelt, socket)) = self.enter(socket, true) else {
                return 0;
            };
            // A worker that may not even hear its host is of no use.
            let hears = rustix::io::read(&socket, &mut [0_u8; 1]) == Ok(1);
            std::mem::forget((socket, other));
            if !hears {
                return 0;
            }
            TOLD | i32::from(descriptors) | i32::from(seatbelt) << 1
        });
        let code = code.filter(|code| code & TOLD != 0)?;
        Some((code & 1 != 0, code & 2 != 0))
    }

    /// The steps of each worker. A worker of a trial also checks that Seatbelt holds.
    fn enter(&self, socket: OwnedFd, tries: bool) -> Option<(bool, bool, OwnedFd)> {
        // First, because Seatbelt loads its parts from files.
        let seatbelt = self.seatbelt && seatbelt::enter() && !(tries && seatbelt::is_open());
        let socket = unix::move_descriptor(socket, SOCKET)?;
        let descriptors = self.got.descriptors;
        if self.wanted.descriptors {
            kernel::close_from(SOCKET + 1, limits::most_descriptors());
        }
        kernel::deny_attach();
        if unix::parent_process() != self.process {
            exit(1);
        }
        if self.wanted.resources {
            limits::of_every_worker();
        }
        Some((descriptors, seatbelt, socket))
    }
}

impl Worker {
    /// Limits the worker to that much CPU time in all, rounded up to seconds, for good. Its memory cannot be limited.
    /// Neither was promised, so the result is never false.
    #[expect(clippy::unused_self, reason = "it is of use elsewhere")]
    #[must_use]
    pub fn limit(&self, _given_back_bytes: u64, _room_bytes: u64, cpu: Duration) -> bool {
        limits::of_run(cpu);
        true
    }
}
