//! The host's thread that reads from the zygote and from all workers.
//!
//! In: their events and frames, and timers that are due. Out: calls of runs and of [`Workers`]. It starts the zygote,
//! starts it again when it is lost, and notices last that everything has ended. A thread of the host that polls for
//! events takes its place for that time ([`Driver::glance`]).

use std::{
    cell::Cell,
    collections::HashMap,
    io,
    sync::Arc,
    time::{Duration, Instant},
};

use isolane_confine::Ended;
use rustix::{fd::OwnedFd, io::Errno};

use super::{
    connection::{Connection, ReadOutcome},
    host_polling::Listener,
    large_frames::{LargeFrames, Parcel, Taken},
    lost::Lost,
    run::Run,
    worker_socket::{FrameSink, WorkerSocket},
    workers::Workers,
    zygote::{Killed, Zygote},
};
use crate::{
    binding::adaptive_spin::AdaptiveSpin,
    os::sync::Mutex,
    protocol::{
        control::{self, ZygoteCommand, ZygoteEvent},
        frame::{Frame, Unreadable, VERSION},
        readiness::{BELL, Event, Events},
    },
};

/// Bytes that are read at once.
const BUFFER_BYTES: usize = 64 << 10;

/// How many reads one worker gets before it is another one's turn.
const READS: usize = 4;

/// How many sockets a thread of the host reads at once, each once, and how many bytes of each: it has more to do than
/// to read the output of a sandbox.
const GLANCE: usize = 4;
const GLANCE_BYTES: usize = 4 << 10;

/// How many zygotes in a row may fail before they say hello.
const FAILURES: u32 = 3;

/// The most events that the driver takes at once.
const EVENTS: usize = 64;

/// The zygote's number, which no worker has.
const CONTROL: u64 = BELL - 1;

/// Starts the thread. Until it ends, other threads can poll, too.
pub(crate) fn start(workers: &Arc<Workers<Run>>) -> io::Result<()> {
    let driver = Arc::new(Mutex::new(Driver::new(Arc::clone(workers))));
    let listener: Arc<dyn Listener> = Arc::<Mutex<Driver>>::clone(&driver);
    workers.share(Some(listener));
    let thread = std::thread::Builder::new().name("isolane workers".to_owned());
    let work = {
        let workers = Arc::clone(workers);
        move || {
            drive(&driver, &workers);
            workers.share(None);
            workers.ended();
        }
    };
    thread.spawn(work).map(drop).inspect_err(|_| workers.share(None))
}

/// Reads events and handles due timers, until the runtime is closed and nothing is left. It holds no lock while it
/// waits.
fn drive(driver: &Mutex<Driver>, workers: &Workers<Run>) {
    let spin = AdaptiveSpin::new();
    let mut events = Events::of(EVENTS);
    driver.lock().start_zygote();
    while !workers.is_over() {
        if workers.wait_for_zygote() {
            driver.lock().have_zygote();
        }
        let due = workers.tend(Instant::now());
        if workers.host_polling.wait(due) {
            continue;
        }
        let left = due.map(|due| due.saturating_duration_since(Instant::now()));
        let left = left.into_iter().chain(Zygote::LOOK).min();
        if wait(workers, &spin, &mut events, left).is_ok() {
            driver.lock().take_up(&events);
        }
        if Zygote::LOOK.is_some() {
            driver.lock().check_zygote();
        }
    }
    driver.lock().end();
}

/// Waits for events. While there are runs it may spin for a moment before it sleeps: to be woken takes longer than most
/// workers take to send the next frame.
fn wait(
    workers: &Workers<Run>,
    spin: &AdaptiveSpin,
    events: &mut Events,
    most: Option<Duration>,
) -> Result<(), Errno> {
    if !workers.may_spin() {
        return workers.driver.wait(events, most).map(drop);
    }
    let started = Instant::now();
    let seen = Cell::new(std::mem::take(events));
    let found = spin.spin(started, || {
        let mut events = seen.take();
        let asked = workers.driver.wait(&mut events, Some(Duration::ZERO));
        let found = asked.is_ok_and(|count| count > 0);
        seen.set(events);
        found || workers.host_polling.is_on()
    });
    *events = seen.take();
    if !found {
        workers.driver.wait(events, most)?;
    }
    spin.learn(started.elapsed(), found);
    Ok(())
}

impl Listener for Mutex<Driver> {
    fn glance(&self) -> Option<bool> {
        self.try_lock().map(|mut driver| driver.glance())
    }
}

/// The state of the driver: the zygote, and the connections to workers.
pub(crate) struct Driver {
    workers: Arc<Workers<Run>>,
    zygote: Option<Zygote>,
    /// How many zygotes there were.
    zygotes: u64,
    /// Zygotes that were killed and not waited for yet.
    killed: Vec<Killed>,
    failures: u32,
    connections: HashMap<u32, Connection>,
    buffer: Box<[u8]>,
    large_frames: LargeFrames,
}

impl Driver {
    fn new(workers: Arc<Workers<Run>>) -> Self {
        Self {
            workers,
            zygote: None,
            zygotes: 0,
            killed: Vec::new(),
            failures: 0,
            connections: HashMap::new(),
            buffer: vec![0; BUFFER_BYTES].into_boxed_slice(),
            large_frames: LargeFrames::default(),
        }
    }

    /// Handles events.
    fn take_up(&mut self, events: &Events) {
        for event in events.iter() {
            match event.who() {
                BELL => {
                    self.workers.driver.quiet();
                    if Zygote::RINGS {
                        self.read_zygote();
                    }
                    self.resume_deferred();
                    self.wait_for_killed();
                }
                who => {
                    self.listen_to(who, event, READS, BUFFER_BYTES);
                }
            }
            // Due timers do not wait until all workers that sent something are read.
            self.workers.tend(Instant::now());
        }
    }

    /// Handles a few events on a thread of the host; returns whether there may be more. The bell keeps ringing for the
    /// driver's own thread, which handles due timers.
    fn glance(&mut self) -> bool {
        let mut more = false;
        for event in self.workers.driver.glance::<GLANCE>().into_iter().flatten() {
            match event.who() {
                BELL => self.resume_deferred(),
                who => more |= self.listen_to(who, event, 1, GLANCE_BYTES),
            }
        }
        more
    }

    /// Reads so often, and so many bytes each time; returns whether there may be more.
    fn listen_to(&mut self, who: u64, event: Event, reads: usize, bytes: usize) -> bool {
        if who == CONTROL {
            self.read_zygote();
        }
        u32::try_from(who).is_ok_and(|worker| self.serve(worker, event, reads, bytes))
    }

    /// Ends everything that is left: no worker outlives its zygote, and no zygote outlives its socket.
    fn end(&mut self) {
        self.connections.clear();
        self.wait_for_killed();
        self.workers.zygote_lost();
        if let Some(zygote) = self.zygote.take() {
            zygote.end(&self.workers.driver);
        }
    }

    fn have_zygote(&mut self) {
        if self.zygote.is_none() {
            self.start_zygote();
        }
    }

    fn start_zygote(&mut self) {
        let Workers { worker, driver, .. } = &*self.workers;
        match Zygote::start(worker, driver, CONTROL) {
            Ok(zygote) => {
                self.zygotes += 1;
                self.zygote = Some(zygote);
            }
            Err(error) => {
                self.workers.unavailable(&Lost::not_started(&worker.program, error));
            }
        }
    }

    fn read_zygote(&mut self) {
        while let Some(zygote) = &mut self.zygote {
            let event = match zygote.news() {
                Err(Errno::AGAIN | Errno::INTR) => return,
                Ok(Some(event)) => event,
                Ok(None) | Err(_) => return self.lose_zygote("it ended before it was ready"),
            };
            match event {
                ZygoteEvent::Hello { version: VERSION, confinement } => {
                    let control = Arc::clone(zygote.control());
                    self.workers.hello(&control, confinement);
                }
                ZygoteEvent::Hello { version, .. } => {
                    self.failures = FAILURES;
                    let why = format!("it is of version {version}, and {VERSION} is needed");
                    return self.lose_zygote(&why);
                }
                ZygoteEvent::Born(worker, socket) => {
                    self.failures = 0;
                    if control::ACKNOWLEDGES {
                        self.workers.order(ZygoteCommand::Received(worker));
                    }
                    self.connect(worker, socket);
                }
                ZygoteEvent::Lost(worker) => {
                    if control::ACKNOWLEDGES {
                        self.workers.order(ZygoteCommand::Kill(worker));
                    }
                    self.workers.refused(Errno::MFILE);
                }
                ZygoteEvent::Ended(worker, ended) => self.disconnect(worker, ended),
                ZygoteEvent::Refused(error) => {
                    let error = Errno::from_raw_os_error(error);
                    if self.workers.has_zygote() {
                        self.workers.refused(error);
                    } else {
                        // The zygote refused before it said hello: not one more worker was refused, but the program.
                        let why = format!("{}: {error}", self.workers.worker.program.display());
                        self.workers.unavailable(&Lost::refused(why, error.into()));
                    }
                }
            }
        }
    }

    /// Notices the end of a zygote where no event reports it.
    fn check_zygote(&mut self) {
        if self.zygote.as_ref().is_some_and(Zygote::has_ended) {
            // Its earlier events count.
            self.read_zygote();
            self.lose_zygote("it ended");
        }
    }

    /// Cleans up after a zygote that is gone, and its workers with it.
    fn lose_zygote(&mut self, why: &str) {
        let Some(zygote) = self.zygote.take() else { return };
        self.killed.push(zygote.kill(&self.workers.driver));
        self.workers.zygote_lost();
        let workers: Vec<u32> = self.connections.keys().copied().collect();
        for worker in workers {
            self.disconnect(worker, Ended::Killed);
        }
        // The next zygote will give out the same numbers.
        for (_, connection) in self.connections.drain() {
            if let Some(run) = connection.link.mark_gone() {
                run.lost(&Lost::Ended(Ended::Killed));
            }
        }
        self.failures += 1;
        if self.failures >= FAILURES {
            self.failures = 0;
            let why = format!("{}: {why}", self.workers.worker.program.display());
            self.workers.unavailable(&Lost::Unavailable { why, cause: None });
        }
        // Another zygote may be needed, and this one waited for. That is no work for a thread of the host.
        self.workers.driver.ring();
    }

    fn wait_for_killed(&mut self) {
        self.killed.drain(..).for_each(Killed::wait);
    }

    fn connect(&mut self, worker: u32, socket: OwnedFd) {
        let number = (self.zygotes, worker);
        let link = match WorkerSocket::new(number, socket, &self.workers.driver) {
            Ok(link) => link,
            Err(error) => {
                self.workers.order(ZygoteCommand::Kill(worker));
                return self.workers.refused(error);
            }
        };
        let connection = Connection::new(Arc::clone(&link), self.workers.worker.runs);
        self.connections.insert(worker, connection);
        self.workers.ready(link, true);
    }

    /// Handles the end of a worker; its earlier frames count.
    fn disconnect(&mut self, worker: u32, ended: Ended) {
        let Some(connection) = self.connections.get_mut(&worker) else {
            return self.workers.gone(worker);
        };
        if connection.is_deferred {
            connection.ended = Some(ended);
            return;
        }
        let mut outcome = ReadOutcome::More;
        while let ReadOutcome::More | ReadOutcome::Much = outcome {
            outcome = connection.listen(&mut self.buffer);
        }
        if let ReadOutcome::Large(run, frame) = outcome {
            // This is called again once the frame was taken.
            connection.ended = Some(ended);
            return self.defer(worker, run, frame);
        }
        if let Some(run) = connection.link.mark_gone() {
            run.lost(&Lost::Ended(ended));
        }
        self.connections.remove(&worker);
        self.workers.gone(worker);
    }

    fn serve(&mut self, worker: u32, event: Event, reads: usize, bytes: usize) -> bool {
        if let Some(connection) = self.connections.get(&worker)
            && event.has_room()
        {
            connection.link.flush();
        }
        for _ in 0..reads {
            let Some(connection) = self.connections.get_mut(&worker) else { return false };
            if !event.is_more_than_room() || connection.is_deferred {
                return false;
            }
            let outcome = connection.listen(&mut self.buffer[..bytes]);
            if !self.act_on(worker, outcome) {
                return false;
            }
        }
        true
    }

    /// Acts on the outcome of a read; returns whether there may be more to read.
    fn act_on(&mut self, worker: u32, outcome: ReadOutcome) -> bool {
        let Some(connection) = self.connections.get_mut(&worker) else { return false };
        match outcome {
            ReadOutcome::More => return true,
            ReadOutcome::All | ReadOutcome::Much => return false,
            ReadOutcome::Large(run, frame) => {
                self.defer(worker, run, frame);
                return false;
            }
            ReadOutcome::RunEnded => {
                connection.runs_left -= 1;
                connection.link.finish();
                self.workers.served();
                if connection.runs_left > 0 && !connection.link.is_spent() {
                    self.workers.ready(Arc::clone(&connection.link), false);
                    return true;
                }
                // The worker has nothing left to do, and may not end by itself.
                self.connections.remove(&worker);
                self.workers.order(ZygoteCommand::Kill(worker));
                return false;
            }
            // The zygote reports how a worker ended; a worker that only closed its socket is ended now.
            ReadOutcome::Last => connection.link.retire(),
            ReadOutcome::Panicked => {
                if let Some(run) = connection.link.run() {
                    run.break_down();
                }
            }
            ReadOutcome::Unreadable(why) => {
                if let Some(run) = connection.link.run() {
                    run.lost(match why {
                        Unreadable::Broken => &Lost::Broken,
                        Unreadable::TooLarge => &Lost::TooLarge,
                    });
                }
            }
        }
        connection.link.unwatch();
        self.workers.order(ZygoteCommand::Kill(worker));
        false
    }

    /// Hands a frame to the thread for large frames, and reads nothing more of its worker until it was taken: to take
    /// it here would keep all other workers waiting.
    fn defer(&mut self, worker: u32, run: Arc<dyn FrameSink>, frame: Frame) {
        let Some(connection) = self.connections.get_mut(&worker) else { return };
        let link = Arc::clone(&connection.link);
        connection.is_deferred = true;
        link.set_deferred(true);
        link.unwatch();
        self.large_frames.take(Parcel { link, run, frame }, &self.workers.driver);
        // Without such a thread, the frame was taken here.
        self.resume_deferred();
    }

    /// Continues with workers whose large frames were taken.
    fn resume_deferred(&mut self) {
        while let Some((link, taken)) = self.large_frames.taken() {
            let worker = link.worker;
            // Its number may be another worker's by now.
            let connection = self.connections.get_mut(&worker);
            let Some(connection) = connection.filter(|other| Arc::ptr_eq(&other.link, &link))
            else {
                continue;
            };
            connection.is_deferred = false;
            link.set_deferred(false);
            let rest = std::mem::take(&mut connection.rest);
            let outcome = match (taken, link.run()) {
                (Taken::Yes(false), Some(run)) => connection.take(&run, &rest),
                (taken, _) => taken.with(&rest),
            };
            let ended = connection.ended.take();
            if ended.is_some() {
                // It takes no further run.
                connection.runs_left = 1;
            }
            link.rewatch();
            self.act_on(worker, outcome);
            if let Some(ended) = ended {
                self.disconnect(worker, ended);
            }
        }
    }
}
