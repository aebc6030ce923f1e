//! One run, from the call to settlement.
//!
//! In: a checked request and the host's side of it. Out: one result, of which the host is notified once.
//! [`Run::compute`] is the path of a run, top to bottom: compile and link, take an isolate, evaluate as far as
//! possible, park while it waits for the host, settle.
//!
//! A run is shared by the thread that computes it, the threads that deliver to it or end it, and the watchdog.
//! Everything that they share is behind one lock, which is never held while the engine or the host is called. The first
//! of them that settles the run decides its result.

mod control;
mod embedder;
mod slice;

use std::{
    cell::Cell,
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use self::{embedder::RunEmbedder, slice::Slice};
use super::{
    resources::Resources,
    scheduler::{Job, Stage},
    seams::{Seam, Seams},
};
use crate::{
    binding::{
        handle::RunControl,
        host::{Completion, Host},
        inbound::Inbound,
    },
    data::outcome::ExecutionError,
    isolate::{Embedder, End, Isolate, Termination, Turn},
    modules::request::Request,
    os::sync::{Condvar, Mutex},
    runtime::{
        prepare::{self, Prepared},
        record::{Reason, Record},
    },
};

/// One run.
pub(crate) struct Run {
    resources: Arc<Resources<Self>>,
    /// Where the runtime keeps this run.
    place: usize,
    host: Arc<dyn Host>,
    termination: Arc<Termination>,
    memory_limit: u64,
    report: bool,
    shared: Mutex<Shared>,
    answered: Condvar,
    /// The number of the call that has its answer, readable without the lock.
    answer_of: AtomicU64,
    settled: AtomicBool,
    /// Since when the run computes, on the thread that does.
    slice: Mutex<Option<Slice>>,
    /// For the scheduler.
    stage: Stage,
    seams: Seams,
}

/// The state that the threads of a run share.
struct Shared {
    record: Record,
    phase: Phase,
    inbox: Vec<Inbound>,
    calls: u64,
    answer: Option<Completion>,
    /// CPU time of the slices that are over.
    computed: Duration,
    /// How often the run was parked: distinguishes one parking from the next.
    parkings: u64,
    /// The error of the run if nothing resumes it, while it is parked.
    stalled: Option<Box<ExecutionError>>,
}

enum Phase {
    /// In the queue, not started.
    Queued(Box<Request>),
    /// In the queue, to resume.
    Woken(Box<Isolate>),
    /// A thread has the isolate.
    Computing,
    /// Waits for the host.
    Parked(Box<Isolate>),
    /// Settled; the isolate is gone or on its way.
    Over,
}

/// The outcome of parking.
enum Next {
    Parked,
    Over(Box<Isolate>),
    GoOn(Box<Isolate>, Vec<Inbound>),
}

impl fmt::Debug for Run {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Run").field("running", &self.running()).finish_non_exhaustive()
    }
}

impl Run {
    pub(crate) fn new(
        resources: Arc<Resources<Self>>,
        place: usize,
        request: Request,
        host: Arc<dyn Host>,
    ) -> Self {
        Self {
            resources,
            place,
            host,
            termination: Arc::default(),
            memory_limit: request.memory_limit(),
            report: request.report,
            seams: Seams::of(request.filename()),
            shared: Mutex::new(Shared {
                record: Record::new(request.memory_limit()),
                phase: Phase::Queued(Box::new(request)),
                inbox: Vec::new(),
                calls: 0,
                answer: None,
                computed: Duration::ZERO,
                parkings: 0,
                stalled: None,
            }),
            answered: Condvar::new(),
            answer_of: AtomicU64::new(0),
            settled: AtomicBool::new(false),
            slice: Mutex::new(None),
            stage: Stage::default(),
        }
    }
}

impl Job for Run {
    fn compute(self: &Arc<Self>, finishing: &Cell<bool>) {
        self.seams.pass(Seam::Start);
        let Some((mut isolate, mut turn)) = self.start() else { return };
        self.seams.pass(Seam::Started);
        loop {
            match turn {
                Turn::Ended(end) => {
                    finishing.set(self.resources.scheduler.finishing(self));
                    self.seams.pass(Seam::Ended);
                    self.settle(end, Some(isolate.peak_bytes()));
                    self.seams.pass(Seam::Settled);
                    self.let_go(isolate);
                    self.seams.pass(Seam::LetGo);
                    return;
                }
                Turn::Idle { waits_for_host } => match self.park(isolate, waits_for_host) {
                    Next::Parked => return self.seams.pass(Seam::Parked),
                    Next::Over(isolate) => return self.let_go(isolate),
                    Next::GoOn(same, inbox) => {
                        isolate = same;
                        turn = isolate.turn(inbox);
                    }
                },
            }
        }
    }

    /// Settles it because this crate itself failed.
    fn break_down(&self) {
        self.settle(End::Broken, None);
        self.slice.lock().take();
        // Its isolate, if it was parked, is not given back, but dropped.
        let phase = std::mem::replace(&mut self.shared.lock().phase, Phase::Over);
        drop(phase);
    }

    fn has_ended(&self) -> bool {
        self.is_settled()
    }

    fn left_the_queue(&self) -> bool {
        self.is_settled() && matches!(self.shared.lock().phase, Phase::Over)
    }

    fn is_ending(&self) -> bool {
        self.termination.is_raised()
    }

    fn stage(&self) -> &Stage {
        &self.stage
    }
}

impl Run {
    /// From the queue into the engine: the first turn, or the next one.
    fn start(self: &Arc<Self>) -> Option<(Box<Isolate>, Turn)> {
        self.check_threads();
        let phase = std::mem::replace(&mut self.shared.lock().phase, Phase::Computing);
        self.begin_slice();
        match phase {
            // Messages that the host has sent by now wait for the end of the first turn. Before it, the isolate has
            // none of the promises that they may be about.
            Phase::Queued(request) => self.first_turn(*request),
            Phase::Woken(mut isolate) | Phase::Parked(mut isolate) => {
                if self.is_settled() {
                    self.let_go(isolate);
                    return None;
                }
                let inbox = std::mem::take(&mut self.shared.lock().inbox);
                let turn = isolate.turn(inbox);
                Some((isolate, turn))
            }
            Phase::Computing | Phase::Over => {
                self.shared.lock().phase = Phase::Over;
                None
            }
        }
    }

    fn first_turn(self: &Arc<Self>, request: Request) -> Option<(Box<Isolate>, Turn)> {
        if self.is_settled() {
            self.shared.lock().phase = Phase::Over;
            return None;
        }
        let embedder: Arc<dyn Embedder> = Arc::new(RunEmbedder(Arc::clone(self)));
        let resources = &self.resources;
        let begun = prepare::prepare(
            request,
            &resources.cache,
            &resources.pool,
            embedder,
            Arc::clone(&self.termination),
        );
        match begun {
            Prepared::Isolate(mut isolate) => {
                let turn = isolate.start();
                Some((isolate, turn))
            }
            Prepared::Over(end) => {
                self.settle(end, None);
                self.shared.lock().phase = Phase::Over;
                None
            }
        }
    }

    /// Parks the isolate until the host sends something, unless it already has.
    fn park(self: &Arc<Self>, isolate: Box<Isolate>, waits_for_host: bool) -> Next {
        let stalled = (!waits_for_host).then(|| isolate.stalled());
        let mut shared = self.shared.lock();
        if self.is_settled() {
            return Next::Over(isolate);
        }
        if !shared.inbox.is_empty() {
            return Next::GoOn(isolate, std::mem::take(&mut shared.inbox));
        }
        if shared.record.is_asked() {
            // It was asked to end between two turns: there is nothing left to interrupt.
            drop(shared);
            self.settle(End::Asked, Some(isolate.peak_bytes()));
            return Next::Over(isolate);
        }
        shared.stalled = stalled;
        shared.parkings += 1;
        let parking = shared.parkings;
        shared.computed += self.end_slice();
        shared.phase = Phase::Parked(isolate);
        drop(shared);
        if !waits_for_host {
            self.resources.watchdog.watch_stalled(self, parking);
        }
        Next::Parked
    }

    fn let_go(&self, isolate: Box<Isolate>) {
        self.slice.lock().take();
        self.resources.pool.give_back(isolate.finish());
        self.shared.lock().phase = Phase::Over;
    }

    /// Ends the run if the runtime has too many stuck threads for it to start, or to resume.
    fn check_threads(self: &Arc<Self>) {
        let stuck = self.resources.scheduler.stuck();
        if stuck < self.resources.max_stuck_threads {
            return;
        }
        let starts = matches!(self.shared.lock().phase, Phase::Queued(_));
        let most = self.resources.max_stuck_threads.saturating_mul(if starts { 1 } else { 2 });
        if stuck >= most {
            let what = if starts { "start" } else { "resume" };
            self.end(Reason::SafetyCap(format!(
                "{stuck} threads of the runtime do not return from a builtin: no run can {what} until \
                 one does"
            )));
        }
    }

    /// Whether the run waits for its host and for nothing else.
    pub(crate) fn parked(&self) -> bool {
        matches!(self.shared.lock().phase, Phase::Parked(_))
    }

    /// Whether nobody has asked it to end, nor ended it.
    fn is_live(&self) -> bool {
        !self.is_settled() && !self.shared.lock().record.is_asked()
    }

    fn is_settled(&self) -> bool {
        self.settled.load(Ordering::Acquire)
    }

    /// Settles the run; only the first call does.
    fn settle(&self, end: End, peak_bytes: Option<usize>) {
        let mut shared = self.shared.lock();
        if self.is_settled() {
            return;
        }
        let status = shared.record.settle(end, peak_bytes.map(|bytes| bytes as u64));
        shared.inbox.clear();
        self.settled.store(true, Ordering::Release);
        drop(shared);
        self.resources.registry.settle(self.place, status);
        self.answered.notify_all();
        // This thread (the caller's, the watchdog's) is not the host's, so a panic of the host must not reach it.
        drop(catch_unwind(AssertUnwindSafe(|| self.host.settled())));
    }

    fn begin_slice(&self) {
        *self.slice.lock() = Some(Slice::new());
    }

    fn end_slice(&self) -> Duration {
        self.slice.lock().take().map_or(Duration::ZERO, |slice| slice.computed())
    }
}
