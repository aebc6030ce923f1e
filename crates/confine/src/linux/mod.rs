//! The phases on Linux.
//!
//! In: the wanted [`Confinement`]. Out: the granted one. A phase never fails; an item that the system refuses is false
//! in the account. A worker is the exception: its zygote has announced to the host what each of its workers gets, so a
//! worker that gets less must not be used.

mod filter;
mod identity;
pub mod interpreter;
mod kernel;
mod landlock;
mod limits;
mod namespaces;
mod permitted;
mod root;

use self::filter::Program;
use super::{Confinement, environment, unix::exit};
use std::{os::fd::OwnedFd, time::Duration};

/// The most workers that may be killed before one has reported its confinement.
const TRIALS: u32 = 3;

/// The descriptor of the one socket that each of these processes has.
const SOCKET: i32 = 0;

/// A launcher after its phase.
pub struct Launched {
    wanted: Confinement,
    got: Confinement,
    /// Whether it has its own table of mounts.
    mounts: bool,
    process: i32,
}

/// A zygote after its phase.
pub struct Zygote {
    wanted: Confinement,
    got: Confinement,
    process: i32,
    /// Compiled once; the workers inherit it by the fork.
    filter: Program,
    /// Bytes of addresses that a worker begins with, if they can be limited.
    mapped_bytes: Option<u64>,
}

/// A worker after its phase.
pub struct Worker {
    /// Bytes of addresses that it had at its start, if they can be limited.
    mapped_bytes: Option<u64>,
}

/// Confines the launcher, which has one thread and whose socket is descriptor 0. The process that it
/// forks next is the zygote.
#[must_use]
pub fn launcher(wanted: Confinement) -> Launched {
    let mut got = Confinement::default();
    // The system refuses this to the leader of a process group; the zygote tries again.
    kernel::new_session();
    if wanted.descriptors {
        kernel::close_from(SOCKET + 1);
        kernel::silence_output();
    }
    environment::read_time_zone();
    got.environment = wanted.environment && environment::clear();
    kernel::no_file_modes();
    if wanted.resources {
        limits::no_core_dumps();
    }
    let mounts = namespaces::enter(wanted, &mut got);
    kernel::set_dumpable(false);
    Launched { wanted, got, mounts, process: kernel::own_process() }
}

impl Launched {
    /// Confines the zygote, which the launcher has just forked.
    pub fn zygote(self) -> Zygote {
        let Self { wanted, mut got, mounts, process: launcher } = self;
        let process = kernel::own_process();
        kernel::new_session();
        got.processes &= process == 1;
        got.file_system = wanted.file_system && root::empty(mounts);
        if wanted.capabilities {
            got.capabilities = identity::drop_all();
        }
        // A change of user clears both of these.
        kernel::set_dumpable(false);
        kernel::die_with_parent();
        // In its own process namespace the zygote sees a living launcher as number 0.
        if !got.processes && kernel::parent_process() != launcher {
            exit(1);
        }
        got.privileges = wanted.privileges && kernel::no_new_privileges();
        got.landlock = wanted.landlock && landlock::restrict();
        if wanted.system_calls {
            // Its own filter is a bonus: it reads nothing from a worker.
            Program::compile(permitted::zygote()).install(process);
        }
        let filter = Program::compile(permitted::worker());
        Zygote { wanted, got, process, filter, mapped_bytes: None }
    }
}

impl Zygote {
    /// Prepares to fork workers; they begin with everything that is in memory now. Forks once, for a worker that only
    /// reports what they will get.
    pub fn settle(&mut self) {
        kernel::plain_signals();
        self.mapped_bytes = self.wanted.resources.then(limits::of_zygote).flatten();
        self.try_worker();
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
        let (got, socket) = self.enter(socket)?;
        let less = self.got.items().into_iter().zip(got.items()).any(|(said, had)| said > had);
        let mapped_bytes = self.mapped_bytes.filter(|_| got.resources);
        (!less).then_some((Worker { mapped_bytes }, socket))
    }

    /// Has a worker try the items that each will get, and marks those that it did not get as false.
    fn try_worker(&mut self) {
        // A worker that is killed reports nothing.
        let code = (0..TRIALS).find_map(|_| self.trial());
        let code = code.unwrap_or(0);
        self.got.descriptors = code & 1 != 0;
        self.got.resources = code & 2 != 0;
        self.got.system_calls = code & 4 != 0;
        if !self.got.resources {
            self.mapped_bytes = None;
        }
        self.wanted.system_calls = self.got.system_calls;
    }

    /// The items that a worker got, as bits; `None` if it did not come to report them.
    fn trial(&self) -> Option<i32> {
        kernel::in_child(|| {
            let Some((socket, _)) = kernel::socket_pair() else { return 0 };
            let Some((got, socket)) = self.enter(socket) else { return 0 };
            std::mem::forget(socket);
            i32::from(got.descriptors)
                | i32::from(got.resources) << 1
                | i32::from(got.system_calls) << 2
        })
    }

    fn enter(&self, socket: OwnedFd) -> Option<(Confinement, OwnedFd)> {
        let mut got = self.got;
        let socket = kernel::move_descriptor(socket, SOCKET)?;
        got.descriptors = self.wanted.descriptors && kernel::close_from(SOCKET + 1);
        kernel::die_with_parent();
        if kernel::parent_process() != self.process {
            exit(1);
        }
        got.resources = self.mapped_bytes.is_some() && limits::of_every_worker();
        got.system_calls = self.wanted.system_calls && self.filter.install(kernel::own_process());
        Some((got, socket))
    }
}

impl Worker {
    /// Limits the worker to one run: to `room_bytes` of addresses more than it had at its start, less those that it
    /// gave back since, and to that much CPU time in all, rounded up to seconds. For good: a worker cannot be given
    /// more later. False if that was promised and is refused: the run must not start then.
    #[must_use]
    pub fn limit(&self, given_back_bytes: u64, room_bytes: u64, cpu: Duration) -> bool {
        self.mapped_bytes.is_none_or(|mapped| {
            let had = mapped.saturating_sub(given_back_bytes);
            limits::of_run(had.saturating_add(room_bytes), cpu)
        })
    }
}
