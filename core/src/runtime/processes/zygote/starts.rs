//! A zygote that is a thread of the host, and starts a program for each worker.
//!
//! In: commands. Out: workers, and events about their end. The first program that it starts reports its confinement,
//! and is no worker. All its programs end with it, and with the host.

use std::{
    collections::HashMap,
    io::{self, Read},
    path::{Path, PathBuf},
    rc::Rc,
    sync::Arc,
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use isolane_confine::{Confinement, Ended, Launcher, Process};
use rustix::io::Errno;

use crate::{
    protocol::{
        arguments::{Arguments, HELLO_BYTES, hello_from},
        control::{Control, Inbox, Told, ZygoteCommand, ZygoteEvent, ZygoteSide, pair},
        frame::VERSION,
        readiness::Readiness,
        sockets::{self, Stream, make_room},
    },
    runtime::options::WorkerSettings,
};

/// How long a program has for reporting its confinement, and how often the thread checks whether the host has ended it
/// meanwhile.
const PATIENCE: Duration = Duration::from_secs(20);
const LOOK: Duration = Duration::from_millis(100);

/// How many programs of one strength may end before they have reported anything.
const TRIALS: u32 = 3;

pub(crate) struct Zygote {
    control: Arc<Control>,
    inbox: Inbox,
    thread: JoinHandle<()>,
}

/// A zygote that was told to end and not waited for yet.
pub(crate) struct Killed(JoinHandle<()>);

impl Zygote {
    /// How often to check whether it has ended.
    pub(crate) const LOOK: Option<Duration> = None;

    /// Whether the bell rings when there are events.
    pub(crate) const RINGS: bool = true;

    /// Starts a zygote.
    pub(crate) fn start(
        worker: &WorkerSettings,
        driver: &Arc<Readiness>,
        _who: u64,
    ) -> io::Result<Self> {
        let (control, inbox, zygotes) = pair(driver);
        let (program, runs) = (worker.program.clone(), worker.runs);
        let work = {
            let control = control.clone();
            move || {
                if let Some(mut work) = Work::new(program, runs, control, zygotes) {
                    work.tend();
                }
            }
        };
        let thread = thread::Builder::new().name("isolane zygote".to_owned()).spawn(work)?;
        Ok(Self { control: Arc::new(control), inbox, thread })
    }

    /// The connection for commands.
    pub(crate) fn control(&self) -> &Arc<Control> {
        &self.control
    }

    /// The next event; `None` when the zygote is gone.
    pub(crate) fn news(&mut self) -> Result<Option<ZygoteEvent>, Errno> {
        self.inbox.receive()
    }

    /// Whether it has ended although no event reports that.
    #[expect(clippy::unused_self, reason = "it is used on other systems")]
    pub(crate) fn has_ended(&self) -> bool {
        false
    }

    /// Ends it, with all its workers.
    pub(crate) fn kill(self, _driver: &Readiness) -> Killed {
        // An error means that it has ended.
        let _ = self.control.tell(Told::End);
        Killed(self.thread)
    }

    /// Ends it, and waits for that.
    pub(crate) fn end(self, driver: &Readiness) {
        self.kill(driver).wait();
    }
}

impl Killed {
    pub(crate) fn wait(self) {
        // An error means that it panicked, and so has ended.
        let _ = self.0.join();
    }
}

struct Work {
    launcher: Rc<Launcher>,
    program: PathBuf,
    arguments: Arguments,
    control: Control,
    zygotes: ZygoteSide,
    workers: HashMap<u32, Process>,
    last: u32,
    /// Workers that were ordered and are not started yet.
    ordered: u32,
}

impl Work {
    /// Finds out how workers can be confined, and says hello. If none can be started, it returns `None` and sends the
    /// system's reason, if there is one.
    fn new(program: PathBuf, runs: u32, control: Control, zygotes: ZygoteSide) -> Option<Self> {
        let arguments = Arguments::of_trial(runs);
        let trials = Launcher::strongest_first().flat_map(|launcher| {
            let launcher = Rc::new(launcher);
            (0..TRIALS).map(move |_| Rc::clone(&launcher))
        });
        let mut refused = None;
        // A slow program is not tried with less confinement: it would be slow again.
        let found = trials
            .map(|launcher| (trial(&launcher, &program, &arguments, &zygotes), launcher))
            .take_while(|(told, _)| !told.as_ref().is_err_and(is_final))
            .inspect(|(told, _)| refused = told.as_ref().err().and_then(io::Error::raw_os_error))
            .find_map(|(told, launcher)| Some((launcher, told.ok()?)));
        let Some((launcher, (version, confinement))) = found else {
            if let Some(error) = refused {
                zygotes.send(ZygoteEvent::Refused(error));
            }
            return None;
        };
        zygotes.send(ZygoteEvent::Hello { version, confinement });
        let arguments = arguments.with(confinement);
        let workers = HashMap::new();
        (version == VERSION).then_some(Self {
            launcher,
            program,
            arguments,
            control,
            zygotes,
            workers,
            last: 0,
            ordered: 0,
        })
    }

    /// Carries out the commands of the host, until the host ends it.
    fn tend(&mut self) {
        loop {
            // To start a worker takes long, so everything else comes first.
            let told = match self.zygotes.received() {
                None if self.ordered > 0 => {
                    self.ordered -= 1;
                    self.start();
                    continue;
                }
                None => self.zygotes.receive(),
                Some(told) => told,
            };
            match told {
                // All are killed at once; each is waited for afterwards.
                Told::End => return self.workers.values().for_each(Process::kill),
                Told::Ended(worker) => self.bury(worker),
                Told::ZygoteCommand(ZygoteCommand::Start(count)) => {
                    self.ordered = self.ordered.saturating_add(count);
                }
                Told::ZygoteCommand(ZygoteCommand::Kill(worker)) => {
                    self.with(worker, Process::kill)
                }
                Told::ZygoteCommand(ZygoteCommand::Demote(worker)) => {
                    self.with(worker, Process::demote)
                }
                Told::ZygoteCommand(ZygoteCommand::Received(_)) => {}
            }
        }
    }

    /// Calls `act` with the process of a worker whose end was not handled yet.
    fn with(&self, worker: u32, act: impl FnOnce(&Process)) {
        if let Some(process) = self.workers.get(&worker) {
            act(process);
        }
    }

    fn start(&mut self) {
        let worker = self.last + 1;
        let started = start(&self.launcher, &self.program, &self.arguments).and_then(|started| {
            let (mut process, hosts) = started;
            let control = self.control.clone();
            process.when_ended(move || {
                // An error means that the zygote is gone, and its workers with it.
                let _ = control.tell(Told::Ended(worker));
            })?;
            Ok((process, hosts))
        });
        match started {
            Ok((process, hosts)) => {
                self.last = worker;
                self.workers.insert(worker, process);
                self.zygotes.send(ZygoteEvent::Born(worker, hosts.into()));
            }
            Err(error) => {
                self.zygotes.send(ZygoteEvent::Refused(error.raw_os_error().unwrap_or_default()));
            }
        }
    }

    fn bury(&mut self, worker: u32) {
        let Some(process) = self.workers.remove(&worker) else { return };
        let ended = process.ended().unwrap_or(Ended::Killed);
        self.zygotes.send(ZygoteEvent::Ended(worker, ended));
    }
}

/// A program, and the host's end of its socket.
fn start(
    launcher: &Launcher,
    program: &Path,
    arguments: &Arguments,
) -> io::Result<(Process, Stream)> {
    let (hosts, workers) = sockets::pair()?;
    make_room(&hosts);
    make_room(&workers);
    let process = launcher.start(program, &workers, |inherited| arguments.to_words(inherited))?;
    Ok((process, hosts))
}

/// Whether another trial is of no use, with this strength or another.
fn is_final(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::TimedOut | io::ErrorKind::Interrupted)
}

/// The report of a program of that strength: its version, and its confinement.
fn trial(
    launcher: &Launcher,
    program: &Path,
    arguments: &Arguments,
    zygotes: &ZygoteSide,
) -> io::Result<(u32, Confinement)> {
    let (_process, mut hosts) = start(launcher, program, arguments)?;
    hosts.set_read_timeout(Some(LOOK))?;
    let started = Instant::now();
    let (mut told, mut heard) = ([0; HELLO_BYTES], 0);
    while heard < told.len() {
        match hosts.read(&mut told[heard..]) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(read) => heard += read,
            Err(error) if is_late(&error) => {
                // Before the hello the host sends nothing but the end.
                if zygotes.received().is_some() {
                    return Err(io::ErrorKind::Interrupted.into());
                }
                if started.elapsed() > PATIENCE {
                    return Err(io::ErrorKind::TimedOut.into());
                }
            }
            Err(error) => return Err(error),
        }
    }
    hello_from(told).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

fn is_late(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock)
}
