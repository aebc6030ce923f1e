//! The program that a host starts, and the fork server that it becomes.
//!
//! In: commands of the host. Out: workers, each a copy of a process that has a pristine isolate in its memory, and
//! events of their ends. Of the three kinds of processes only workers ever see a byte of a sandbox. All of them end
//! when the host is gone, for any reason.

use std::{collections::HashMap, os::fd::OwnedFd, process::ExitCode, sync::Arc};

use isolane_confine::{self as confine, Confinement, Ended};
use rustix::io::Errno;

use super::{STACK_BYTES, cache_for, pristine};
use crate::{
    isolate::{Pool, Realm},
    modules::cache::Cache,
    os::{
        children::{self, ForkSide, Watch},
        process,
    },
    protocol::{
        arguments::Arguments,
        control::{self, Inbox, ZygoteCommand, ZygoteEvent},
        frame::VERSION,
        lifeline::Parent,
        sockets::{self, Stream, make_room, no_signal},
    },
    worker::{serve::serve, warm_up},
};

/// The main function of the program `isolane-worker`, which a host starts with one end of a socket as its descriptor 0.
/// Returns when the host is gone.
#[must_use]
pub fn worker_main() -> ExitCode {
    #[cfg(target_os = "linux")]
    crate::worker::inherited::hand_on_files();
    // The confinement takes the environment and the files that tell the time zone.
    crate::intl::zone::Zone::remember();
    let launched = confine::launcher(Confinement::ALL);
    // The thread of the host that started it lives as long as the runtime.
    let host = Parent::to_die_with();
    let Some(arguments) = Arguments::from_words(std::env::args().skip(1)) else {
        // The host has another version. It learns ours and gives up.
        let hello = ZygoteEvent::Hello { version: VERSION, confinement: Confinement::default() };
        let _ = hello.send(std::io::stdin());
        return ExitCode::from(2);
    };
    match children::fork() {
        Ok(ForkSide::Child) => {
            let launcher = Parent::of_confined();
            let zygote = launched.zygote();
            stacker::grow(STACK_BYTES, || {
                let mut zygote = Zygote::new(zygote, launcher, &arguments);
                zygote.tend();
                zygote.end();
            });
            ExitCode::SUCCESS
        }
        Ok(ForkSide::Parent(zygote)) => {
            host.outlive(zygote);
            ExitCode::SUCCESS
        }
        Err(_) => ExitCode::FAILURE,
    }
}

struct Zygote {
    confined: confine::Zygote,
    launcher: Parent,
    control: OwnedFd,
    inbox: Inbox,
    watch: Watch,
    pool: Pool<Realm>,
    cache: Arc<Cache>,
    runs: u32,
    /// Workers by their process.
    workers: HashMap<i32, u32>,
    processes: HashMap<u32, i32>,
    /// The host's ends of sockets that the host may not have received yet.
    given: HashMap<u32, ZygoteEvent>,
    last: u32,
}

impl Zygote {
    fn new(confined: confine::Zygote, launcher: Parent, arguments: &Arguments) -> Self {
        process::carry_on();
        let (pool, cache) = (pristine(), cache_for(arguments.runs));
        warm_up::warm_up(&pool, &cache);
        // After the warm-up, so that the block is still empty.
        confine::keep_large_block();
        Self {
            confined,
            launcher,
            control: std::os::fd::AsFd::as_fd(&std::io::stdin())
                .try_clone_to_owned()
                .unwrap_or_else(|_| std::process::exit(1)),
            inbox: Inbox::default(),
            watch: Watch::new(),
            pool,
            cache,
            runs: arguments.runs,
            workers: HashMap::new(),
            processes: HashMap::new(),
            given: HashMap::new(),
            last: 0,
        }
    }

    /// Executes the host's commands until the host is gone.
    fn tend(&mut self) {
        self.confined.settle();
        let confinement = self.confined.confinement();
        if (ZygoteEvent::Hello { version: VERSION, confinement }).send(&self.control).is_err() {
            return;
        }
        loop {
            while let Some((process, ended)) = children::reap() {
                if self.bury(process, ended).is_err() {
                    return;
                }
            }
            match ZygoteCommand::receive(&self.control, &mut self.inbox) {
                Ok(Some(order)) => {
                    if self.obey(order).is_err() {
                        return;
                    }
                }
                Err(Errno::AGAIN | Errno::INTR) if self.launcher.is_gone() => return,
                Err(Errno::AGAIN | Errno::INTR) => {
                    self.watch.wait(Some(&self.control), Parent::LOOK);
                }
                Ok(None) | Err(_) => return,
            }
        }
    }

    /// Kills all workers, where the system does not do it.
    fn end(&self) {
        if Parent::LOOK.is_some() {
            self.workers.keys().copied().for_each(children::kill);
        }
    }

    fn obey(&mut self, order: ZygoteCommand) -> Result<(), Errno> {
        match order {
            ZygoteCommand::Start(count) => (0..count).try_for_each(|_| self.fork()),
            ZygoteCommand::Received(worker) => {
                self.given.remove(&worker);
                Ok(())
            }
            ZygoteCommand::Kill(worker) => {
                self.given.remove(&worker);
                self.with(worker, children::kill);
                Ok(())
            }
            ZygoteCommand::Demote(worker) => {
                self.with(worker, children::demote);
                Ok(())
            }
        }
    }

    /// Applies `act` to a worker that has not been waited for.
    fn with(&self, worker: u32, act: impl FnOnce(i32)) {
        if let Some(&process) = self.processes.get(&worker) {
            act(process);
        }
    }

    fn fork(&mut self) -> Result<(), Errno> {
        let refused = |error: std::io::Error| {
            ZygoteEvent::Refused(error.raw_os_error().unwrap_or_default()).send(&self.control)
        };
        let (hosts, workers) = match sockets::pair() {
            Ok(pair) => pair,
            Err(error) => return refused(error),
        };
        make_room(&hosts);
        make_room(&workers);
        // For the host, which may be a program that does not ignore the signal.
        if let Err(error) = no_signal(&hosts) {
            return refused(error.into());
        }
        match children::fork() {
            Err(error) => refused(error),
            Ok(ForkSide::Child) => {
                drop(hosts);
                self.become_worker(workers);
                // Nothing of this process is needed any more, so it tidies nothing up.
                confine::exit(0)
            }
            Ok(ForkSide::Parent(process)) => {
                self.last += 1;
                self.workers.insert(process, self.last);
                self.processes.insert(self.last, process);
                let born = ZygoteEvent::Born(self.last, hosts.into());
                born.send(&self.control)?;
                if control::ACKNOWLEDGES {
                    self.given.insert(self.last, born);
                }
                Ok(())
            }
        }
    }

    fn become_worker(&mut self, socket: Stream) {
        let Some((worker, socket)) = self.confined.worker(socket.into()) else { return };
        serve(Stream::from(socket), &worker, &self.pool, &self.cache, self.runs);
    }

    fn bury(&mut self, process: i32, ended: Ended) -> Result<(), Errno> {
        let Some(worker) = self.workers.remove(&process) else { return Ok(()) };
        self.processes.remove(&worker);
        ZygoteEvent::Ended(worker, ended).send(&self.control)
    }
}
