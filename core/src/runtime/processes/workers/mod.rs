//! The workers of a runtime: the runs that have one, and the runs that wait for one.
//!
//! In: runs that start, wait and resume, from any thread; workers that are ready (from `sizing`). Out: grants: a worker
//! for a run that is new, and a permit to compute for each run that may. As many runs compute at once as the runtime
//! allows. A run that computes for long loses its permit, and its worker is demoted.

mod job;
mod sizing;

use std::{
    collections::{BinaryHeap, HashSet, VecDeque},
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use isolane_confine::Confinement;

pub(crate) use self::job::{Begun, Job};
use super::{
    host_polling::{HostPolling, Listener},
    lost::Lost,
    timer::{Timer, What},
    worker_socket::WorkerSocket,
};
use crate::{
    binding::handle::Poller,
    data::outcome::Status,
    os::sync::Mutex,
    protocol::{
        control::{Control, ZygoteCommand},
        readiness::Readiness,
    },
    runtime::{
        options::{RuntimeSettings, WorkerSettings},
        registry::{Registry, Runs},
        stats::Stats,
    },
};

/// How many timers are kept, at least, before moot ones are dropped.
const MOST_TIMERS: usize = 1_000;

/// The time between two checks for runs that compute for long, while others wait.
const TICK: Duration = Duration::from_millis(5);

pub(crate) struct Workers<J> {
    settings: RuntimeSettings,
    pub(crate) worker: WorkerSettings,
    registry: Registry<J>,
    pub(crate) driver: Arc<Readiness>,
    /// The driver, for a thread of the host that polls in its place; `None` once the driver has ended.
    poller: Mutex<Option<Arc<dyn Listener>>>,
    pub(crate) host_polling: HostPolling,
    /// Whether the driver has ended; it then calls nobody.
    ended: AtomicBool,
    state: Mutex<State<J>>,
}

#[expect(clippy::struct_excessive_bools, reason = "each is independent of the others")]
pub(crate) struct State<J> {
    /// The connection to the zygote, once it has said hello.
    control: Option<Arc<Control>>,
    confinement: Option<Confinement>,
    /// Commands that were not sent to the zygote yet.
    orders: VecDeque<ZygoteCommand>,
    /// Workers that were ordered and have not started yet.
    coming: usize,
    /// Workers without a run, the one used last at the end.
    ready: Vec<Ready>,
    /// Every worker, by its number.
    alive: HashSet<u32>,
    /// Runs without a worker.
    fresh: VecDeque<Arc<J>>,
    /// Runs that can resume.
    woken: VecDeque<Arc<J>>,
    computing: usize,
    timers: BinaryHeap<Timer<J>>,
    /// How many timers there may be until moot ones are dropped.
    most_timers: usize,
    ticking: bool,
    /// Whether workers are kept ready: not after a long time without runs.
    warm: bool,
    /// Whether a timer is set that checks for idle workers.
    idling: bool,
    /// Whether the zygote accepts no commands at the moment.
    stuck: bool,
    /// Until then no workers are ordered: the last ones were refused, or ended at once.
    pause: Option<Instant>,
    /// How many workers in a row ended without ever having had a run.
    died_unused: u32,
}

impl<J> Default for State<J> {
    fn default() -> Self {
        Self {
            control: None,
            confinement: None,
            orders: VecDeque::new(),
            coming: 0,
            ready: Vec::new(),
            alive: HashSet::new(),
            fresh: VecDeque::new(),
            woken: VecDeque::new(),
            computing: 0,
            timers: BinaryHeap::new(),
            most_timers: MOST_TIMERS,
            ticking: false,
            warm: true,
            idling: false,
            stuck: false,
            pause: None,
            died_unused: 0,
        }
    }
}

/// A worker that waits for a run.
pub(crate) struct Ready {
    pub(crate) link: Arc<WorkerSocket>,
    pub(crate) since: Instant,
    /// Whether it has had no run.
    is_new: bool,
}

/// A step for `dispatch`.
enum Grant<J> {
    Begin(Arc<J>, Ready),
    Resume(Arc<J>),
    /// A run that was ended before it began: there is nothing to do.
    Over(Arc<J>),
}

impl<J: Job> Workers<J> {
    pub(crate) fn new(
        settings: RuntimeSettings,
        worker: WorkerSettings,
        driver: Arc<Readiness>,
    ) -> Self {
        Self {
            settings,
            worker,
            registry: Registry::default(),
            driver,
            poller: Mutex::new(None),
            host_polling: HostPolling::default(),
            ended: AtomicBool::new(false),
            state: Mutex::default(),
        }
    }

    pub(crate) fn is_here(&self) -> bool {
        self.registry.process().is_current()
    }

    pub(crate) fn safety_cap(&self) -> Duration {
        self.settings.safety_cap
    }

    pub(crate) fn registry(&self) -> &Registry<J> {
        &self.registry
    }

    /// Whether that many runs wait for their turn.
    pub(crate) fn is_full(&self, most_queued: usize) -> bool {
        self.state.lock().is_full(most_queued, self.settings.max_concurrent_runs)
    }

    /// Makes a run, shows it to `started`, and has it computed as soon as there are a worker and a permit.
    pub(crate) fn start(
        &self,
        make: impl FnOnce(usize) -> J,
        started: impl FnOnce(&Arc<J>),
    ) -> Arc<J> {
        let run = self.registry.admit(make);
        started(&run);
        self.enqueue(Arc::clone(&run));
        run
    }

    /// Queues a run that needs a worker.
    pub(crate) fn enqueue(&self, run: Arc<J>) {
        let no_zygote = {
            let mut state = self.state.lock();
            state.warm = true;
            state.fresh.push_back(run);
            state.control.is_none()
        };
        if no_zygote {
            self.driver.ring();
        }
        self.dispatch();
    }

    /// Its runs were closed: calls the closers as soon as no process is left.
    pub(crate) fn close(&self) {
        if self.ended.load(Ordering::Acquire) {
            self.call_closers();
        } else {
            self.driver.ring();
        }
    }

    /// Lets threads of the host poll in the driver's place.
    pub(crate) fn share(&self, listener: Option<Arc<dyn Listener>>) {
        let before = std::mem::replace(&mut *self.poller.lock(), listener);
        drop(before);
    }

    /// Whether to spin for frames of workers is worth a processor: not while runs wait for workers, which have better
    /// use for it.
    pub(crate) fn may_spin(&self) -> bool {
        self.registry.live() > 0 && self.state.lock().fresh.is_empty()
    }

    /// Whether it is closed and no run is left.
    pub(crate) fn is_over(&self) -> bool {
        self.registry.is_over()
    }

    /// Called when no process is left.
    pub(crate) fn ended(&self) {
        self.ended.store(true, Ordering::Release);
        self.call_closers();
    }

    fn call_closers(&self) {
        for done in self.registry.take_closers() {
            done();
        }
    }

    /// Its current activity, without the counts of settled runs.
    pub(crate) fn stats(&self) -> Stats {
        let parked = self.registry.count(J::parked);
        let in_sessions = self.registry.count(J::waits_in_session);
        let sessions = self.registry.sessions();
        let state = self.state.lock();
        let live = |runs: &VecDeque<Arc<J>>| runs.iter().filter(|run| run.running()).count();
        let queued = live(&state.fresh) + live(&state.woken) + in_sessions;
        Stats {
            sessions,
            computing: self.registry.live().saturating_sub(parked + queued),
            parked,
            queued,
            ready_isolates: state.ready.len(),
            threads: 1,
            workers: state.alive.len(),
            confinement: state.confinement,
            ..Stats::default()
        }
    }

    /// Gives workers and permits to the runs whose turn it is.
    pub(crate) fn dispatch(&self) {
        loop {
            let grant = {
                let mut state = self.state.lock();
                let grant = state.grant(&self.settings);
                if grant.is_none() {
                    // After the grants, because the zygote needs a processor too.
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
                // Dropped while the state is not locked: the run may own objects of its host.
                Some(Grant::Over(run)) => {
                    drop(run);
                    true
                }
                Some(Grant::Resume(run)) => run.resume(),
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

    /// Takes back the permit of a run that computes no longer.
    pub(crate) fn give_back_permit(&self) {
        self.state.lock().computing -= 1;
    }

    /// Queues a run that can resume.
    pub(crate) fn wake(&self, run: Arc<J>) {
        self.state.lock().woken.push_back(run);
        self.dispatch();
    }

    /// Forgets a run that has settled. A question to a session has no status.
    pub(crate) fn settle(&self, place: usize, status: Option<Status>) {
        match status {
            Some(status) => self.registry.settle(place, status),
            None => self.registry.forget(place),
        }
        self.dispatch();
        if self.is_over() {
            self.driver.ring();
        }
    }

    /// Gives a run that was asked to end that time to do so, before its worker is killed.
    pub(crate) fn watch_ending(&self, run: &Arc<J>, grace: Duration) {
        let what = What::End(Arc::downgrade(run));
        self.set_timer(Timer { at: Instant::now() + grace, what });
    }

    /// Ends a run of a worker unless it settles in that time.
    pub(crate) fn watch_timeout(&self, run: &Arc<J>, after: Duration) {
        // A time beyond the clock's range never comes.
        if let Some(at) = Instant::now().checked_add(after) {
            self.set_timer(Timer { at, what: What::Overdue(Arc::downgrade(run)) });
        }
    }

    pub(crate) fn set_timer(&self, timer: Timer<J>) {
        let is_next = {
            let state = &mut *self.state.lock();
            if state.timers.len() >= state.most_timers {
                // Long timeouts of short runs would pile up.
                state.timers.retain(|timer| !timer.is_moot());
                state.most_timers = MOST_TIMERS.max(2 * state.timers.len());
            }
            let is_next = state.timers.peek().is_none_or(|next| timer.at < next.at);
            state.timers.push(timer);
            is_next
        };
        if is_next {
            self.driver.ring();
        }
    }

    /// Settles a run and kills its worker, in this order: the kill must not count as the reason.
    pub(crate) fn kill(&self, run: &J, why: &Lost) {
        if let Some(worker) = run.lost(why) {
            self.kill_worker(worker);
        }
    }

    pub(crate) fn kill_worker(&self, worker: u32) {
        self.order(ZygoteCommand::Kill(worker));
    }

    /// Handles the timers that are due; returns the time of the next one.
    pub(crate) fn tend(&self, now: Instant) -> Option<Instant> {
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
                        self.kill_worker(worker);
                    }
                }
                Some(What::Overdue(run)) => {
                    if let Some(run) = run.upgrade() {
                        run.end_overdue();
                    }
                }
                Some(What::Check(checked)) => {
                    if let Some(checked) = checked.upgrade() {
                        checked.check(now);
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

    /// Takes the permits of runs that have computed for long, so that others compute.
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
}

impl<J: Job> Poller for Workers<J> {
    fn hear(&self) -> bool {
        if !self.is_here() {
            return false;
        }
        if !self.may_spin() {
            self.host_polling.end();
            return false;
        }
        let poller = self.poller.lock().clone();
        // `None`: the driver's own thread is reading.
        let Some(more) = poller.and_then(|listener| listener.glance()) else { return true };
        if more {
            self.host_polling.end();
        } else {
            self.host_polling.begin();
        }
        !more
    }

    fn rest(&self) {
        if self.is_here() {
            self.host_polling.end();
        }
    }
}

impl<J> fmt::Debug for Workers<J> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Workers").finish_non_exhaustive()
    }
}

impl<J: Job> State<J> {
    /// Runs that wait for a worker or for their turn.
    fn queued(&self) -> usize {
        self.fresh.len() + self.woken.len()
    }

    /// Whether as many runs wait for their turn as may. Runs for which there is a permit do not wait.
    fn is_full(&self, most: usize, permits: usize) -> bool {
        let allowed = most + permits.saturating_sub(self.computing);
        let live = || self.fresh.iter().filter(|run| run.running()).count();
        self.fresh.len() >= allowed && live() >= allowed
    }

    fn grant(&mut self, settings: &RuntimeSettings) -> Option<Grant<J>> {
        if self.computing >= settings.max_concurrent_runs {
            return None;
        }
        if let Some(run) = self.woken.pop_front() {
            self.computing += 1;
            return Some(Grant::Resume(run));
        }
        if !self.fresh.front()?.running() {
            return self.fresh.pop_front().map(Grant::Over);
        }
        let ready = if self.fresh.front()?.needs_new_worker() {
            let place = self.ready.iter().rposition(|ready| ready.is_new)?;
            self.ready.remove(place)
        } else {
            self.ready.pop()?
        };
        let run = self.fresh.pop_front()?;
        self.computing += 1;
        Some(Grant::Begin(run, ready))
    }
}
