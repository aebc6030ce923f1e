//! One run, from the call to settlement.
//!
//! In: a checked request and the host's side of it. Out: one result, of which the host is notified once.
//! [`Run::compute`] is the path of a run, top to bottom: compile and link, take an isolate, evaluate as far as
//! possible, park while it waits for the host, settle.
//!
//! A run is shared by the thread that computes it, the threads that deliver to it or end it, and the watchdog.
//! Everything that they share is behind one lock, which is never held while the engine or the host is called. The first
//! of them that settles the run decides its result.
//!
//! The cells of sessions are runs too. `cell` has the steps in which they differ, and `place` the isolate of their
//! session.

mod cell;
mod control;
mod embedder;
mod home;
mod isolate;
mod place;
mod slice;

use std::{
    cell::Cell,
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

pub(crate) use self::place::{Session, ThreadPlace};
use self::{embedder::RunEmbedder, isolate::RunIsolate, place::InSession, slice::Slice};
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
    data::{cell::SessionState, outcome::ExecutionError},
    isolate::{Embedder, End, Termination, Turn, session::Work as CellWork},
    modules::request::Request,
    os::sync::{Condvar, Mutex},
    runtime::{
        prepare::{self, Prepared},
        record::{Failure, Reason, Record},
        sessions::SessionRun,
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
    /// The wall time after which it is ended, from its first turn.
    timeout: Option<Duration>,
    shared: Mutex<Shared>,
    answered: Condvar,
    /// The number of the call that has its answer, readable without the lock.
    answer_of: AtomicU64,
    settled: AtomicBool,
    /// If it is a part of a session.
    cell: Option<InSession>,
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
    /// Whether it is decided how a cell ends, and its session is being told.
    claimed: bool,
    /// Whether code of a cell has run, or may.
    has_begun: bool,
    /// Whether a cell has settled before its thread came to its first instruction: the session has not been told.
    is_early: bool,
}

enum Phase {
    /// In the queue, not started.
    Queued(Box<Work>),
    /// In the queue, to resume.
    Woken(RunIsolate),
    /// A thread has the isolate.
    Computing,
    /// Waits for the host.
    Parked(RunIsolate),
    /// Waits for the host or for its next turn, while its session has the isolate for other cells.
    Aside,
    /// Settled; the isolate is gone or on its way.
    Over,
}

/// The work of a run.
pub(crate) enum Work {
    Program(Box<Request>),
    Cell(CellWork),
    Question,
}

/// The outcome of parking.
enum Next {
    Parked,
    Over(RunIsolate),
    Ended(RunIsolate),
    GoOn(RunIsolate, Vec<Inbound>),
}

/// A new run.
pub(crate) struct Start {
    pub(crate) work: Work,
    pub(crate) host: Arc<dyn Host>,
    pub(crate) termination: Arc<Termination>,
    pub(crate) memory_limit: u64,
    pub(crate) report: bool,
    pub(crate) timeout: Option<Duration>,
    pub(crate) seams: Seams,
    pub(crate) cell: Option<InSession>,
}

impl Start {
    /// A run of a source in an isolate of its own.
    pub(crate) fn of_program(request: Request, host: Arc<dyn Host>) -> Self {
        Self {
            host,
            termination: Arc::default(),
            memory_limit: request.memory_limit(),
            report: request.report,
            timeout: request.timeout(),
            seams: Seams::of(request.filename()),
            cell: None,
            work: Work::Program(Box::new(request)),
        }
    }
}

impl Shared {
    /// Has it resume if it is parked; whether it is.
    fn resume(&mut self) -> bool {
        match std::mem::replace(&mut self.phase, Phase::Computing) {
            Phase::Parked(isolate) => self.phase = Phase::Woken(isolate),
            Phase::Aside => self.phase = Phase::Aside,
            other => {
                self.phase = other;
                return false;
            }
        }
        true
    }
}

impl fmt::Debug for Run {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Run").field("running", &self.running()).finish_non_exhaustive()
    }
}

impl Run {
    pub(crate) fn new(resources: Arc<Resources<Self>>, place: usize, start: Start) -> Self {
        let Start { work, host, termination, memory_limit, report, timeout, seams, cell } = start;
        Self {
            resources,
            place,
            host,
            termination,
            memory_limit,
            report,
            timeout,
            seams,
            shared: Mutex::new(Shared {
                record: Record::new(memory_limit),
                phase: Phase::Queued(Box::new(work)),
                inbox: Vec::new(),
                calls: 0,
                answer: None,
                computed: Duration::ZERO,
                parkings: 0,
                stalled: None,
                claimed: false,
                has_begun: false,
                is_early: false,
            }),
            answered: Condvar::new(),
            answer_of: AtomicU64::new(0),
            settled: AtomicBool::new(false),
            cell,
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
                Turn::Ended(end) => return self.finish(isolate, end, finishing),
                Turn::Idle { waits_for_host } => match self.park(isolate, waits_for_host) {
                    Next::Parked => {
                        self.leave_home();
                        return self.seams.pass(Seam::Parked);
                    }
                    Next::Over(isolate) => return self.let_go(isolate),
                    Next::Ended(same) => {
                        isolate = same;
                        turn = Turn::Ended(isolate.asked(self.number()));
                    }
                    Next::GoOn(same, inbox) => {
                        isolate = same;
                        turn = isolate.turn(inbox);
                    }
                },
            }
        }
    }

    /// Settles it because this crate itself failed.
    fn break_down(self: &Arc<Self>) {
        let error = self.settle(End::Broken, None, SessionState::Reset);
        self.slice.lock().take();
        // Its isolate, if it was parked, is not given back, but dropped.
        let phase = std::mem::replace(&mut self.shared.lock().phase, Phase::Over);
        drop(phase);
        if let Some(part) = &self.cell {
            self.lose(part, error);
        }
        self.leave_home();
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
    fn start(self: &Arc<Self>) -> Option<(RunIsolate, Turn)> {
        self.check_threads();
        let phase = std::mem::replace(&mut self.shared.lock().phase, Phase::Computing);
        self.begin_slice();
        match phase {
            // Messages that the host has sent by now wait for the end of the first turn. Before it, the isolate has
            // none of the promises that they may be about.
            Phase::Queued(work) => self.begin(*work),
            Phase::Woken(mut isolate) | Phase::Parked(mut isolate) => {
                if self.is_settled() {
                    self.let_go(isolate);
                    return None;
                }
                let inbox = {
                    let mut shared = self.shared.lock();
                    if shared.record.is_asked() {
                        drop(shared);
                        // A cell that was ended while it waited: there is nothing left to interrupt.
                        let end = isolate.asked(self.number());
                        return Some((isolate, Turn::Ended(end)));
                    }
                    std::mem::take(&mut shared.inbox)
                };
                let turn = isolate.turn(inbox);
                Some((isolate, turn))
            }
            Phase::Aside => self.next_turn_of_cell(),
            Phase::Computing | Phase::Over => {
                self.shared.lock().phase = Phase::Over;
                None
            }
        }
    }

    fn begin(self: &Arc<Self>, work: Work) -> Option<(RunIsolate, Turn)> {
        if self.is_settled() {
            self.shared.lock().phase = Phase::Over;
            return None;
        }
        match (work, &self.cell) {
            (Work::Cell(work), Some(part)) => self.first_turn_of_cell(part, work),
            (Work::Question, Some(part)) => {
                self.perform(part);
                None
            }
            (Work::Program(request), _) => self.first_turn(*request),
            (Work::Cell(_) | Work::Question, None) => None,
        }
    }

    fn first_turn(self: &Arc<Self>, request: Request) -> Option<(RunIsolate, Turn)> {
        self.watch_timeout();
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
                Some((RunIsolate::Own(isolate), turn))
            }
            Prepared::Over(end) => {
                self.settle(end, None, SessionState::Kept);
                self.shared.lock().phase = Phase::Over;
                None
            }
        }
    }

    /// Has the run ended if it takes longer than its caller allows.
    fn watch_timeout(self: &Arc<Self>) {
        if let Some(timeout) = self.timeout {
            self.resources.watchdog.watch_timeout(self, timeout);
        }
    }

    /// Parks the isolate until the host sends something, unless it already has.
    fn park(self: &Arc<Self>, mut isolate: RunIsolate, waits_for_host: bool) -> Next {
        let stalled = (!waits_for_host).then(|| isolate.stalled());
        if let (RunIsolate::Session(_), Some(part)) = (&isolate, &self.cell)
            && part.number != 0
        {
            return self.step_back(part, isolate, stalled);
        }
        let mut shared = self.shared.lock();
        if self.is_settled() {
            return Next::Over(isolate);
        }
        if !shared.inbox.is_empty() {
            return Next::GoOn(isolate, std::mem::take(&mut shared.inbox));
        }
        if shared.record.is_asked() {
            // It was asked to end between two turns: there is nothing left to interrupt.
            return Next::Ended(isolate);
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
        if let Some(part) = &self.cell {
            part.session.waits(self);
        }
        Next::Parked
    }

    /// Settles it, and gives its isolate back.
    fn finish(self: &Arc<Self>, isolate: RunIsolate, end: End, finishing: &Cell<bool>) {
        match (isolate, &self.cell) {
            (RunIsolate::Session(isolate), Some(part)) => self.conclude(part, isolate, end),
            (isolate, _) => {
                finishing.set(self.resources.scheduler.finishing(self));
                self.seams.pass(Seam::Ended);
                self.settle(end, Some(isolate.peak_bytes()), SessionState::Kept);
                self.seams.pass(Seam::Settled);
                self.let_go(isolate);
            }
        }
        self.seams.pass(Seam::LetGo);
    }

    fn let_go(&self, isolate: RunIsolate) {
        self.slice.lock().take();
        match isolate {
            RunIsolate::Own(isolate) => self.resources.pool.give_back(isolate.finish()),
            // The session has begun anew, without it.
            RunIsolate::Session(isolate) => drop(isolate),
        }
        self.shared.lock().phase = Phase::Over;
        self.leave_home();
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
        matches!(self.shared.lock().phase, Phase::Parked(_) | Phase::Aside)
    }

    /// Whether nobody has asked it to end, nor ended it.
    fn is_live(&self) -> bool {
        !self.is_settled() && !self.shared.lock().record.is_asked()
    }

    fn is_settled(&self) -> bool {
        self.settled.load(Ordering::Acquire)
    }

    /// Decides how a cell ends that came to `end`: whether its session keeps its effects, and whether the session is
    /// reset. From here on nobody can end it otherwise. `None` if somebody has.
    fn claim(&self, end: &End) -> Option<(bool, bool)> {
        let mut shared = self.shared.lock();
        let waits = matches!(shared.phase, Phase::Aside);
        if waits || shared.claimed || self.is_settled() {
            return None;
        }
        shared.claimed = true;
        Some((shared.record.keeps(end), shared.record.is_reset()))
    }

    /// Settles the run; only the first call does. `state`: the effect on the session, if it has one. Returns the error
    /// with which it settled, if it is a part of a session.
    fn settle(&self, end: End, peak_bytes: Option<usize>, state: SessionState) -> Option<Failure> {
        let mut shared = self.shared.lock();
        if self.is_settled() {
            return None;
        }
        let kind = self.kind();
        let cell = kind.map(|_| state);
        let status = shared.record.settle(end, peak_bytes.map(|bytes| bytes as u64), cell);
        let error = shared.record.failure().filter(|_| kind.is_some());
        if kind.is_none() {
            shared.inbox.clear();
        }
        self.settled.store(true, Ordering::Release);
        drop(shared);
        if kind.is_some_and(|kind| !kind.is_cell()) {
            self.resources.registry.forget(self.place);
        } else {
            self.resources.registry.settle(self.place, status);
        }
        self.answered.notify_all();
        self.tell_settled(&*self.host, state);
        error
    }

    /// Has a thread take it.
    fn enqueue(self: &Arc<Self>) {
        match &self.cell {
            Some(part) => part.session.enqueue(self),
            None => self.resources.scheduler.enqueue(Arc::clone(self)),
        }
    }

    fn begin_slice(&self) {
        *self.slice.lock() = Some(Slice::new());
    }

    fn end_slice(&self) -> Duration {
        self.slice.lock().take().map_or(Duration::ZERO, |slice| slice.computed())
    }
}
