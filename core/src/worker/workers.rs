//! The workers of a runtime: who has one, who waits for one, and how many there are to be.
//!
//! In: runs that start, wait and go on, from any thread; workers that come and go, from the driver. Out:
//! grants: a worker for a run that is new, and a permit to compute for each that may. As many compute at
//! once as the runtime allows; one that computes for long gives its permit up and comes after others.

use std::{
    collections::{BinaryHeap, HashSet, VecDeque},
    fmt,
    os::fd::OwnedFd,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use rustix::{io::Errno, net::SendFlags};

use super::{
    Confinement,
    attendance::Attendance,
    control::Order,
    driver::{self, Driver},
    link::Link,
    readiness::Readiness,
    run::{Begun, Lost, Run},
    timer::{Timer, What},
};
use crate::{
    error::{Error, ErrorKind},
    execution::{Hear, Live},
    host::Host,
    options::{Request, RuntimeSettings, WorkerSettings},
    outcome::Status,
    process::Process,
    registry::{CLOSED, Registry},
    runtime::Stats,
    sync::Mutex,
};

/// How long a worker that was asked to end a run has for it before it is killed.
const GRACE: Duration = Duration::from_millis(50);

/// How often it is seen whether runs compute for long, while others wait.
const TICK: Duration = Duration::from_millis(5);

/// How often at most it is seen to which workers nobody uses.
const SHORTEST_IDLE: Duration = Duration::from_millis(10);

/// How long no worker is ordered after some that could not be had.
const PAUSE: Duration = Duration::from_millis(100);

/// How many workers may end, one after another, before they have had a run.
const MOST_UNUSED: u32 = 32;

/// What part of the ready workers has to be missing before they are replaced.
const SOME: usize = 4;

/// Workers that are started beyond the ready ones while runs wait.
const AHEAD: usize = 16;

pub(crate) struct Workers {
    process: Process,
    settings: RuntimeSettings,
    pub(super) worker: WorkerSettings,
    registry: Registry<Run>,
    pub(super) driver: Arc<Readiness>,
    /// What listens, for a thread of the host that does for a moment; until the driver has ended.
    ears: Mutex<Option<Arc<Mutex<Driver>>>>,
    pub(super) attendance: Attendance,
    /// Whether the driver has ended, after which it calls nobody.
    ended: AtomicBool,
    state: Mutex<State>,
}

#[derive(Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is about something else")]
pub(super) struct State {
    /// The way to the nursery, once it has said hello.
    control: Option<Arc<OwnedFd>>,
    confinement: Option<Confinement>,
    /// What the nursery is still to be told.
    orders: VecDeque<Order>,
    /// Workers that were ordered and are not there yet.
    coming: usize,
    /// Workers without a run, the one used last at the end.
    ready: Vec<Ready>,
    /// Every worker, by its number.
    alive: HashSet<u32>,
    /// Runs without a worker.
    fresh: VecDeque<Arc<Run>>,
    /// Runs that have something to go on with.
    woken: VecDeque<Arc<Run>>,
    computing: usize,
    timers: BinaryHeap<Timer>,
    ticking: bool,
    /// Whether workers are kept ready: not after a long time without runs.
    warm: bool,
    /// Whether it will be seen to which of them nobody uses.
    idling: bool,
    /// Whether the nursery takes no orders at the moment.
    stuck: bool,
    /// Until then no workers are ordered: the last ones could not be had, or ended at once.
    pause: Option<Instant>,
    /// Workers that ended without ever having had a run, one after another.
    died_unused: u32,
}

/// A worker that waits for a run.
pub(super) struct Ready {
    pub(super) link: Arc<Link>,
    pub(super) since: Instant,
    /// Whether it has had no run.
    is_new: bool,
}

/// What `dispatch` found to do.
enum Grant {
    Begin(Arc<Run>, Ready),
    GoOn(Arc<Run>),
    /// One that was ended before it began: there is nothing to do.
    Over(Arc<Run>),
}

/// Closes what a runtime holds when nobody has it any more.
pub(crate) struct Keeper(pub(crate) Arc<Workers>);

impl Drop for Keeper {
    fn drop(&mut self) {
        if self.0.is_here() {
            self.0.close(Box::new(|| {}));
        }
    }
}

impl Workers {
    /// Starts a nursery and what looks after it.
    pub(crate) fn start(
        settings: RuntimeSettings,
        worker: WorkerSettings,
    ) -> Result<Keeper, Error> {
        let unavailable = |what: &str, error: &dyn std::fmt::Display| {
            Error::new(ErrorKind::Internal, format!("{what}: {error}"))
        };
        let driver = Readiness::new()
            .map_err(|error| unavailable("the system has no descriptor left", &error))?;
        let workers = Arc::new(Self {
            process: Process::current(),
            settings,
            worker,
            registry: Registry::default(),
            driver: Arc::new(driver),
            ears: Mutex::new(None),
            attendance: Attendance::default(),
            ended: AtomicBool::new(false),
            state: Mutex::new(State { warm: true, ..State::default() }),
        });
        driver::start(&workers)
            .map_err(|error| unavailable("the system has no thread left", &error))?;
        Ok(Keeper(workers))
    }

    pub(crate) fn is_here(&self) -> bool {
        self.process.is_current()
    }

    pub(crate) fn process(&self) -> Process {
        self.process
    }

    pub(super) fn safety_cap(&self) -> Duration {
        self.settings.safety_cap
    }

    /// Starts a run.
    pub(crate) fn run(
        self: &Arc<Self>,
        request: Request,
        host: Arc<dyn Host>,
    ) -> Result<Arc<dyn Live>, Error> {
        if self.registry.is_closed() {
            return Err(Error::new(ErrorKind::Unavailable, "the runtime is closed"));
        }
        if let Some(most) = self.settings.max_queued_runs
            && self.state.lock().is_full(most, self.settings.max_concurrent_runs)
        {
            let message = format!("{most} runs are queued, as many as the runtime allows");
            return Err(Error::new(ErrorKind::Unavailable, message));
        }
        let is_choosy = host.is_choosy();
        let run = self
            .registry
            .admit(|place| Run::new(Arc::clone(self), place, request, host, is_choosy));
        let no_nursery = {
            let mut state = self.state.lock();
            state.warm = true;
            state.fresh.push_back(Arc::clone(&run));
            state.control.is_none()
        };
        if no_nursery {
            self.driver.ring();
        }
        self.dispatch();
        if self.registry.is_closed() {
            // By another thread meanwhile, which may not have seen this run.
            Arc::clone(&run).terminate(Some(CLOSED));
        }
        Ok(run)
    }

    /// Refuses new runs and ends the live ones; `done` is called when no process is left.
    pub(crate) fn close(&self, done: Box<dyn FnOnce() + Send>) {
        if !self.is_here() {
            return done();
        }
        self.registry.close(done);
        for run in self.registry.runs() {
            run.terminate(Some(CLOSED));
        }
        if self.ended.load(Ordering::Acquire) {
            self.call_closers();
        } else {
            self.driver.ring();
        }
    }

    /// Lets threads of the host listen with it.
    pub(super) fn share(&self, driver: Option<Arc<Mutex<Driver>>>) {
        let before = std::mem::replace(&mut *self.ears.lock(), driver);
        drop(before);
    }

    /// Whether looking out for what workers say is worth a processor: not where runs wait for workers, which
    /// have better use for it.
    pub(super) fn looks_out(&self) -> bool {
        self.registry.live() > 0 && self.state.lock().fresh.is_empty()
    }

    /// Whether it is closed and no run is left.
    pub(super) fn is_over(&self) -> bool {
        self.registry.is_closed() && self.registry.live() == 0
    }

    /// No process is left.
    pub(super) fn ended(&self) {
        self.ended.store(true, Ordering::Release);
        self.call_closers();
    }

    fn call_closers(&self) {
        for done in self.registry.take_closers() {
            done();
        }
    }

    /// What the runtime is doing, but for the parts that are of threads.
    pub(crate) fn stats(&self) -> Stats {
        let settled = |status: Status| self.registry.settled(status);
        let parked = self.registry.count(Run::parked);
        let state = self.state.lock();
        let live = |runs: &VecDeque<Arc<Run>>| runs.iter().filter(|run| run.running()).count();
        let queued = live(&state.fresh) + live(&state.woken);
        Stats {
            computing: self.registry.live().saturating_sub(parked + queued),
            parked,
            queued,
            success: settled(Status::Success),
            error: settled(Status::Error),
            memory: settled(Status::Memory),
            terminated: settled(Status::Terminated),
            link_error: settled(Status::LinkError),
            ready_isolates: state.ready.len(),
            threads: 1,
            workers: state.alive.len(),
            confinement: state.confinement,
            ..Stats::default()
        }
    }

    /// Gives workers and permits to those whose turn it is.
    pub(super) fn dispatch(&self) {
        loop {
            let grant = {
                let mut state = self.state.lock();
                let grant = state.grant(&self.settings);
                if grant.is_none() {
                    // After those who have their turn: the nursery needs a processor too.
                    self.order_workers(&mut state);
                }
                if grant.is_none() && state.queued() > 0 && !state.ticking {
                    state.ticking = true;
                    state.timers.push(Timer { at: Instant::now() + TICK, what: What::Tick });
                    self.driver.ring();
                }
                grant
            };
            let used = match grant {
                None => return,
                // Dropped here, and not while the state is locked: with it may go what its host has.
                Some(Grant::Over(run)) => {
                    drop(run);
                    true
                }
                Some(Grant::GoOn(run)) => run.go_on(),
                Some(Grant::Begin(run, ready)) => match run.begin(&ready.link) {
                    Begun::Yes => true,
                    Begun::NotNeeded => {
                        self.state.lock().ready.push(ready);
                        false
                    }
                    Begun::NoWorker => {
                        self.state.lock().fresh.push_front(run);
                        false
                    }
                },
            };
            if !used {
                self.give_back_permit();
            }
        }
    }

    /// One that computed does not any more.
    pub(super) fn give_back_permit(&self) {
        self.state.lock().computing -= 1;
    }

    /// A run has something to go on with.
    pub(super) fn wake(&self, run: Arc<Run>) {
        self.state.lock().woken.push_back(run);
        self.dispatch();
    }

    pub(super) fn settle(&self, place: usize, status: Status) {
        self.registry.settle(place, status);
        self.dispatch();
        if self.is_over() {
            self.driver.ring();
        }
    }

    /// Looks after a run that was asked to end.
    pub(super) fn watch_ending(&self, run: &Arc<Run>) {
        let what = What::End(Arc::downgrade(run));
        self.state.lock().timers.push(Timer { at: Instant::now() + GRACE, what });
        self.driver.ring();
    }

    /// Settles a run, and kills its worker. In this order: that the worker was killed is no reason of its own.
    pub(super) fn kill(&self, run: &Run, why: &Lost) {
        if let Some(worker) = run.lost(why) {
            self.order(Order::Kill(worker));
        }
    }

    pub(super) fn order(&self, order: Order) {
        let mut state = self.state.lock();
        state.orders.push_back(order);
        self.send_orders(&mut state);
    }

    // What the driver does.

    /// The nursery is there.
    pub(super) fn hello(&self, control: &Arc<OwnedFd>, confinement: Confinement) {
        {
            let mut state = self.state.lock();
            state.control = Some(Arc::clone(control));
            state.confinement = Some(confinement);
        }
        self.dispatch();
    }

    /// The nursery is gone, with all its workers.
    pub(super) fn nursery_lost(&self) {
        let gone = {
            let mut state = self.state.lock();
            state.control = None;
            state.orders.clear();
            state.coming = 0;
            state.alive.clear();
            std::mem::take(&mut state.ready)
        };
        drop(gone);
    }

    /// Whether there is use for a nursery, if there is none.
    pub(super) fn wait_for_nursery(&self) -> bool {
        !self.state.lock().fresh.is_empty()
    }

    /// No worker can be had: every run that waits for one ends. The next one tries again.
    pub(super) fn unavailable(&self, why: &str) {
        let waiting = std::mem::take(&mut self.state.lock().fresh);
        for run in waiting {
            run.lost(&Lost::Unavailable(why.to_owned()));
        }
    }

    /// A worker is there, or has done with a run and takes another.
    pub(super) fn ready(&self, link: Arc<Link>, is_new: bool) {
        {
            let mut state = self.state.lock();
            if is_new {
                state.coming = state.coming.saturating_sub(1);
                state.alive.insert(link.worker);
            }
            state.ready.push(Ready { link, since: Instant::now(), is_new });
        }
        self.dispatch();
    }

    /// A worker has done what it is there for.
    pub(super) fn served(&self) {
        self.state.lock().died_unused = 0;
    }

    /// A worker is no more.
    pub(super) fn gone(&self, worker: u32) {
        let (gone, give_up) = {
            let mut state = self.state.lock();
            state.alive.remove(&worker);
            let place = state.ready.iter().position(|ready| ready.link.worker == worker);
            let gone = place.map(|place| state.ready.remove(place));
            if gone.as_ref().is_some_and(|ready| ready.is_new) && state.warm {
                state.died_unused += 1;
                self.pause(&mut state);
            }
            let give_up = state.died_unused >= MOST_UNUSED;
            if give_up {
                // Until the next run tries again.
                (state.died_unused, state.warm) = (0, false);
            }
            (gone, give_up)
        };
        drop(gone);
        if give_up {
            self.unavailable("workers end as soon as they are started");
        }
        self.dispatch();
    }

    /// Orders no workers for a moment.
    fn pause(&self, state: &mut State) {
        let until = Instant::now() + PAUSE;
        state.pause = Some(until);
        state.timers.push(Timer { at: until, what: What::Orders });
        self.driver.ring();
    }

    /// The system refuses a worker. Runs wait for others to end, if there are any.
    pub(super) fn refused(&self, error: Errno) {
        let waiting = {
            let mut state = self.state.lock();
            state.coming = state.coming.saturating_sub(1);
            self.pause(&mut state);
            let none = state.alive.is_empty() && state.coming == 0;
            if none { std::mem::take(&mut state.fresh) } else { VecDeque::new() }
        };
        for run in waiting {
            run.lost(&Lost::Unavailable(error.to_string()));
        }
    }

    /// What is due; and until when there is nothing to do.
    pub(super) fn tend(&self, now: Instant) -> Option<Instant> {
        loop {
            let due = {
                let mut state = self.state.lock();
                match state.timers.peek() {
                    Some(timer) if timer.at <= now => state.timers.pop(),
                    next => return next.map(|timer| timer.at),
                }
            };
            match due.map(|timer| timer.what) {
                Some(What::End(run)) => {
                    if let Some(worker) = run.upgrade().and_then(|run| run.give_up()) {
                        self.order(Order::Kill(worker));
                    }
                }
                Some(What::Tick) => self.tick(now),
                Some(What::Idle) => self.let_idle_go(now),
                Some(What::Orders) => {
                    {
                        let mut state = self.state.lock();
                        state.stuck = false;
                        self.send_orders(&mut state);
                    }
                    self.dispatch();
                }
                None => {}
            }
        }
    }

    /// Has those that compute for long come after others.
    fn tick(&self, now: Instant) {
        let runs = self.registry.runs();
        let aside = runs.iter().filter(|run| run.step_aside(now)).count();
        {
            let mut state = self.state.lock();
            state.ticking = false;
            state.computing -= aside;
        }
        self.dispatch();
    }

    /// Lets workers go that nobody has used for long.
    fn let_idle_go(&self, now: Instant) {
        let mut state = self.state.lock();
        let idle = self.worker.idle.max(SHORTEST_IDLE);
        let used = |ready: &Ready| now.saturating_duration_since(ready.since) < idle;
        if self.registry.live() == 0 && state.fresh.is_empty() {
            let (kept, gone): (Vec<_>, Vec<_>) =
                std::mem::take(&mut state.ready).into_iter().partition(used);
            state.ready = kept;
            state.warm = !state.ready.is_empty() || state.coming > 0;
            for ready in &gone {
                ready.link.close();
                state.orders.push_back(Order::Kill(ready.link.worker));
            }
            self.send_orders(&mut state);
        }
        state.idling = state.warm;
        if state.warm {
            state.timers.push(Timer { at: now + idle, what: What::Idle });
        }
    }

    /// Orders as many workers as there are to be, and notes when to look whether they are used.
    fn order_workers(&self, state: &mut State) {
        if state.control.is_none() || !state.warm || self.registry.is_closed() {
            return;
        }
        if state.pause.is_some_and(|until| until > Instant::now()) {
            return;
        }
        if !std::mem::replace(&mut state.idling, true) {
            let at = Instant::now() + self.worker.idle.max(SHORTEST_IDLE);
            state.timers.push(Timer { at, what: What::Idle });
            self.driver.ring();
        }
        let wanted = self.settings.ready_isolates + state.fresh.len().min(AHEAD);
        let missing = wanted.saturating_sub(state.ready.len() + state.coming);
        // Some at once: each time the nursery wakes it takes a processor from somebody.
        if missing == 0 || (missing < wanted / SOME && state.fresh.is_empty()) {
            return;
        }
        state.coming += missing;
        state.orders.push_back(Order::Fork(u32::try_from(missing).unwrap_or(u32::MAX)));
        self.send_orders(state);
    }

    /// Tells the nursery what it can take now; the driver goes on with the rest.
    fn send_orders(&self, state: &mut State) {
        let Some(control) = state.control.clone().filter(|_| !state.stuck) else { return };
        while let Some(order) = state.orders.front() {
            match order.send(&control, SendFlags::DONTWAIT) {
                // Told, or there is nobody to tell any more.
                Ok(()) | Err(Errno::PIPE | Errno::CONNRESET | Errno::NOTCONN) => {
                    state.orders.pop_front();
                }
                Err(_) => {
                    state.stuck = true;
                    let at = Instant::now() + Duration::from_millis(1);
                    state.timers.push(Timer { at, what: What::Orders });
                    self.driver.ring();
                    return;
                }
            }
        }
    }
}

impl Hear for Workers {
    fn hear(&self) -> bool {
        if !self.is_here() {
            return false;
        }
        if !self.looks_out() {
            self.attendance.end();
            return false;
        }
        let ears = self.ears.lock().clone();
        let more = match ears.as_deref().and_then(Mutex::try_lock) {
            Some(mut driver) => driver.glance(),
            // The driver is at it.
            None => return true,
        };
        if more {
            self.attendance.end();
        } else {
            self.attendance.begin();
        }
        !more
    }

    fn rest(&self) {
        if self.is_here() {
            self.attendance.end();
        }
    }
}

impl fmt::Debug for Workers {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Workers").finish_non_exhaustive()
    }
}

impl State {
    /// Runs that wait for a worker or for their turn.
    fn queued(&self) -> usize {
        self.fresh.len() + self.woken.len()
    }

    /// Whether as many wait for their turn as may. Those for whom there is a permit do not wait.
    fn is_full(&self, most: usize, permits: usize) -> bool {
        let allowed = most + permits.saturating_sub(self.computing);
        let live = || self.fresh.iter().filter(|run| run.running()).count();
        self.fresh.len() >= allowed && live() >= allowed
    }

    fn grant(&mut self, settings: &RuntimeSettings) -> Option<Grant> {
        if self.computing >= settings.max_concurrent_runs {
            return None;
        }
        if let Some(run) = self.woken.pop_front() {
            self.computing += 1;
            return Some(Grant::GoOn(run));
        }
        if !self.fresh.front()?.running() {
            return self.fresh.pop_front().map(Grant::Over);
        }
        let ready = self.ready.pop()?;
        let run = self.fresh.pop_front()?;
        self.computing += 1;
        Some(Grant::Begin(run, ready))
    }
}
