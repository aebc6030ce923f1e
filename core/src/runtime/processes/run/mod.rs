//! One run in a worker, as its host sees it, from the call to settlement.
//!
//! In: a checked request and the host's side of it, messages of the host, and frames of its worker (`incoming`). Out:
//! one result, of which the host is notified once. Anybody may have taken the worker over: each frame is checked
//! against what may be sent now, and a worker that sends anything else is killed. A worker can spoil its own run, and
//! later runs, if the host gives it any.
//!
//! Everything is behind one lock, which is never held while the host is called. The cells of sessions are runs too:
//! `cell` has the steps in which they differ, and `place` the worker of their session.

mod cell;
mod incoming;
mod place;
mod session_worker;
mod turns;

use std::{
    fmt,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use isolane_confine::Ended;

use self::place::InSession;
pub(crate) use self::place::{Session, WorkerPlace};
use super::{
    dealings::Dealings,
    lost::Lost,
    worker_socket::{FrameSink, WorkerSocket},
    workers::{Begun, Job, Workers},
};
use crate::{
    binding::{
        handle::{Poller, Recipient, RunControl},
        host::{Completion, Host},
        inbound::Inbound,
    },
    data::{
        cell::SessionState,
        outcome::{ExecutionError, ExecutionResult, Status},
    },
    isolate::End,
    modules::request::Request,
    os::sync::Mutex,
    protocol::{
        control::ZygoteCommand,
        frame::{Frame, Unreadable},
        messages::{Begin, ToWorker, session::Cell},
    },
    runtime::{
        record::{Reason, Record},
        sessions::{Effect, Kind, Over, SessionRun},
    },
    value::{Charge, InFlight, Kinds, Value},
};

/// How long a run computes before others need not wait for it.
const SLICE: Duration = Duration::from_millis(10);

/// How long a worker has for ending a run. A worker needs much less, but may not have a processor for longer on a busy
/// machine, and a run whose worker is killed has no position.
const GRACE: Duration = Duration::from_millis(200);

/// How long a worker has for ending a cell: to kill it costs the session's state. A development build undoes a cell in
/// ten times as long.
const GRACE_OF_CELL: Duration =
    Duration::from_millis(if cfg!(debug_assertions) { 2_000 } else { 200 });

/// How much longer the worker has for each cell in flight, which may have to be undone with the one that ends.
const GRACE_OF_FLIGHT: Duration = Duration::from_millis(1);

/// How much longer the worker has for each byte of a cell's source: while the worker compiles, nothing ends the cell.
const GRACE_OF_BYTE: Duration =
    Duration::from_nanos(if cfg!(debug_assertions) { 2_000 } else { 200 });

pub(crate) struct Run {
    workers: Arc<Workers<Self>>,
    place: usize,
    host: Arc<dyn Host>,
    memory_limit: usize,
    report: bool,
    /// The wall time after which the run is ended, from its worker's first turn.
    timeout: Option<Duration>,
    validated_kinds: Kinds,
    /// Messages that the host has not taken yet.
    in_flight: Arc<InFlight>,
    settled: AtomicBool,
    /// The parts that only a run of a session has.
    cell: Option<InSession>,
    shared: Mutex<Shared>,
}

/// The work of a run.
#[derive(Debug)]
pub(crate) enum Work {
    Program(Box<Request>),
    Cell(Box<Cell>),
    Question,
}

/// A new run.
pub(crate) struct Start {
    pub(crate) work: Work,
    pub(crate) host: Arc<dyn Host>,
    pub(crate) memory_limit: u64,
    pub(crate) report: bool,
    pub(crate) timeout: Option<Duration>,
    pub(crate) validated_kinds: Kinds,
    pub(crate) in_flight: Arc<InFlight>,
    pub(crate) cell: Option<InSession>,
}

impl Start {
    /// A run of a source in an isolate of its own.
    pub(crate) fn of_program(
        request: Request,
        host: Arc<dyn Host>,
        validated_kinds: Kinds,
    ) -> Self {
        Self {
            host,
            memory_limit: request.memory_limit(),
            report: request.report,
            timeout: request.timeout(),
            validated_kinds,
            in_flight: Arc::default(),
            cell: None,
            work: Work::Program(Box::new(request)),
        }
    }
}

struct Shared {
    record: Record,
    phase: Phase,
    /// The run's worker, while it has one.
    link: Option<Arc<WorkerSocket>>,
    /// The work, until a worker has it.
    work: Option<Work>,
    /// When the worker got the work.
    began: Option<Instant>,
    /// How long the worker has computed, without its present phase.
    computed: Duration,
    /// The frames that the host sent before the run had a worker.
    early: Vec<Frame>,
    calls: u64,
    /// The bytes of the last call's arguments, while the worker waits for its answer.
    calling: Option<usize>,
    /// The accounts with the run's worker, which all cells in that worker share.
    dealings: Arc<Mutex<Dealings>>,
    /// Calls of the host that were sent during this cell, and which message each was; in the end those that came too
    /// late.
    placed: Vec<(u64, u32)>,
    /// The message that the host validated last, and accepted.
    accepted: Option<Value>,
    /// The bytes of reports and logs that are kept.
    kept_bytes: usize,
    /// Whether the run is counted as computing.
    permit: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The run waits for a worker.
    Queued,
    /// The run's worker has computed since then.
    Computing(Instant),
    /// The run's worker waits for the host.
    Waiting,
    /// The run's worker can resume, and waits for its turn.
    Woken,
    Over,
}

impl Shared {
    /// The worker waits for the host.
    fn stop_computing(&mut self) {
        self.computed += self.phase.computing();
        self.phase = Phase::Waiting;
    }
}

impl Phase {
    /// How long the worker has computed in this phase.
    fn computing(self) -> Duration {
        if let Self::Computing(since) = self { since.elapsed() } else { Duration::ZERO }
    }
}

impl fmt::Debug for Run {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Run").field("running", &self.running()).finish_non_exhaustive()
    }
}

impl Run {
    pub(crate) fn new(workers: Arc<Workers<Self>>, place: usize, start: Start) -> Self {
        let Start { work, host, report, timeout, validated_kinds, in_flight, cell, .. } = start;
        let bytes = start.memory_limit;
        let memory_limit = usize::try_from(bytes).unwrap_or(usize::MAX);
        Self {
            workers,
            place,
            validated_kinds,
            host,
            memory_limit,
            report,
            timeout,
            in_flight,
            settled: AtomicBool::new(false),
            cell,
            shared: Mutex::new(Shared {
                record: Record::new(bytes),
                phase: Phase::Queued,
                link: None,
                work: Some(work),
                began: None,
                computed: Duration::ZERO,
                early: Vec::new(),
                calls: 0,
                calling: None,
                dealings: Arc::new(Mutex::new(Dealings::of_run(most_bytes(memory_limit)))),
                placed: Vec::new(),
                accepted: None,
                kept_bytes: 0,
                permit: false,
            }),
        }
    }

    /// Sends a frame to the worker, or keeps it until there is one, or until it is the worker's turn.
    fn send(self: &Arc<Self>, frame: Frame) {
        let mut shared = self.shared.lock();
        match &shared.link {
            Some(link) => link.send(frame),
            None if shared.phase == Phase::Queued => return shared.early.push(frame),
            None => return,
        }
        // A worker that waits for an answer resumes with that, and with nothing else.
        if shared.phase == Phase::Waiting && shared.calling.is_none() {
            shared.phase = Phase::Woken;
            drop(shared);
            self.workers.wake(Arc::clone(self));
        }
    }

    fn is_settled(&self) -> bool {
        self.settled.load(Ordering::Acquire)
    }

    /// Asks the run to end; the first reason stays.
    pub(crate) fn end(self: &Arc<Self>, reason: Reason) {
        let mut shared = self.shared.lock();
        if self.is_settled() || shared.record.is_asked() || shared.record.is_at_end() {
            return;
        }
        shared.record.ask(reason);
        let Some(link) = shared.link.clone() else {
            drop(shared);
            self.settle(End::Asked, None, Effect::Untouched);
            return;
        };
        if self.cell.is_some() {
            // A worker that waits for its turn gets the frame, too, and ends the cell without computing.
            link.release();
            link.send(ToWorker::End { number: self.number() }.into_frame());
        } else {
            link.close();
        }
        drop(shared);
        let grace = self.cell.as_ref().map_or(GRACE, |part| {
            part.session.grace() + GRACE_OF_BYTE.saturating_mul(part.own.source_bytes)
        });
        self.workers.watch_ending(self, grace);
    }

    /// Settles the run. Only the first call does, and gets the worker that the run had. `effect`: on the run's
    /// session, if the run has one.
    fn settle(&self, end: End, peak_bytes: Option<u64>, effect: Effect) -> Option<u32> {
        if let Some(part) = &self.cell
            && effect.state() != SessionState::Kept
            && !self.is_settled()
        {
            part.undo_native();
        }
        let mut shared = self.shared.lock();
        if self.is_settled() {
            return None;
        }
        let state = self.cell.as_ref().map(|part| match effect {
            Effect::Untouched => shared.record.state_of_unbegun(part.has_turn()),
            effect => effect.state(),
        });
        // The worker does not know what the host holds for the run. The cells of a session share that.
        let held_bytes = state.map_or(self.in_flight.most_bytes() as u64, |_| 0);
        let peak_bytes = peak_bytes.map(|bytes| bytes.max(held_bytes));
        let status = shared.record.settle(end, peak_bytes, state);
        let error = shared.record.failure().filter(|_| self.cell.is_some());
        self.settled.store(true, Ordering::Release);
        shared.phase = Phase::Over;
        let permit = std::mem::take(&mut shared.permit);
        let link = shared.link.take();
        let worker = link.as_ref().map(|link| link.worker);
        let early = std::mem::take(&mut shared.early);
        let late: Vec<u32> =
            std::mem::take(&mut shared.placed).into_iter().map(|(_, call)| call).collect();
        let unused = (shared.work.take(), early, shared.accepted.take(), link);
        drop(shared);
        drop(unused);
        if permit {
            self.workers.give_back_permit();
        }
        let kind = self.kind();
        let counted = kind.is_none_or(Kind::is_cell);
        self.workers.settle(self.place, counted.then_some(status));
        self.tell_settled(&*self.host, state.unwrap_or(SessionState::Kept));
        if let Some(part) = &self.cell {
            part.session.leave(self, Over { late, ..Over::of(effect, error) });
        }
        worker
    }
}

impl Job for Run {
    fn begin(self: &Arc<Self>, link: &Arc<WorkerSocket>) -> Begun {
        if let Some(part) = &self.cell {
            return part.session.begin(self, Some(link));
        }
        let mut shared = self.shared.lock();
        if self.is_settled() || shared.record.is_asked() || shared.work.is_none() {
            return Begun::NotNeeded;
        }
        if !link.take(Arc::<Self>::clone(self)) {
            return Begun::NoWorker;
        }
        let Some(Work::Program(request)) = shared.work.take() else { return Begun::NotNeeded };
        shared.phase = Phase::Computing(Instant::now());
        shared.permit = true;
        shared.link = Some(Arc::clone(link));
        let safety_cap = self.workers.safety_cap();
        let begin = Begin { request: *request, safety_cap, validated_kinds: self.validated_kinds };
        // The worker's last run may have ended while it waited.
        link.release();
        link.send(ToWorker::Begin(Box::new(begin)).into_frame());
        for frame in std::mem::take(&mut shared.early) {
            link.send(frame);
        }
        drop(shared);
        if let Some(timeout) = self.timeout {
            self.workers.watch_timeout(self, timeout);
        }
        Begun::Yes
    }

    fn resume(self: &Arc<Self>) -> bool {
        if let Some(part) = &self.cell
            && self.is_waiting()
        {
            return part.session.resume(self);
        }
        let mut shared = self.shared.lock();
        if shared.phase != Phase::Woken {
            return false;
        }
        shared.phase = Phase::Computing(Instant::now());
        shared.permit = true;
        if let Some(link) = &shared.link {
            link.release();
        }
        true
    }

    fn step_aside(&self, now: Instant) -> bool {
        let mut shared = self.shared.lock();
        let Phase::Computing(since) = shared.phase else { return false };
        if !shared.permit || now.saturating_duration_since(since) < SLICE {
            return false;
        }
        shared.permit = false;
        // A worker is demoted for good, which would not be fair to later cells.
        let link = shared.link.clone().filter(|_| self.cell.is_none());
        drop(shared);
        if let Some(link) = link.filter(|link| link.demote()) {
            self.workers.order(ZygoteCommand::Demote(link.worker));
        }
        true
    }

    fn give_up(&self) -> Option<u32> {
        self.note_lost(&Lost::Ended(Ended::Killed));
        self.settle(End::Asked, None, Effect::Lost(SessionState::Reset))
    }

    fn end_overdue(self: &Arc<Self>) {
        if let Some(timeout) = self.timeout {
            self.end(Reason::Timeout(timeout));
        }
    }

    fn waits_in_session(&self) -> bool {
        self.cell.as_ref().is_some_and(|part| !part.has_turn() && self.running())
    }

    fn needs_new_worker(&self) -> bool {
        self.cell.is_some()
    }

    fn parked(&self) -> bool {
        self.shared.lock().phase == Phase::Waiting
    }
}

impl FrameSink for Run {
    fn most_bytes(&self) -> usize {
        most_bytes(self.memory_limit)
    }

    fn receive(self: Arc<Self>, frame: Frame) -> Result<bool, Unreadable> {
        self.take(frame)
    }

    fn lost(&self, how: &Lost) -> Option<u32> {
        self.note_lost(how);
        let end = match how {
            Lost::Ended(Ended::Memory) => End::Memory,
            Lost::TooLarge => {
                self.shared.lock().record.overdraw();
                End::Memory
            }
            Lost::Ended(Ended::CpuTime) => {
                self.shared.lock().record.ask(Reason::cap(self.workers.safety_cap()));
                End::Asked
            }
            how => {
                let error = ExecutionError {
                    name: "WorkerLost".to_owned(),
                    message: how.message(),
                    cause: how.cause(),
                    is_failure: true,
                    ..ExecutionError::default()
                };
                End::Failed(Status::Error, Box::new(error))
            }
        };
        self.settle(end, None, Effect::Lost(SessionState::Reset))
    }

    fn break_down(&self) {
        self.settle(End::Broken, None, Effect::Lost(SessionState::Reset));
    }
}

impl Recipient for Run {
    fn charge(self: Arc<Self>, bytes: usize) -> Option<Charge> {
        if let Some(part) = &self.cell {
            return Arc::clone(&part.session).charge(bytes);
        }
        let charge = self.in_flight.charge(bytes, self.most_bytes());
        if charge.is_none() && !self.is_settled() {
            self.workers.kill(&self, &Lost::TooLarge);
        }
        charge
    }

    fn deliver(self: Arc<Self>, inbound: Inbound) {
        if let Some(part) = &self.cell {
            return Arc::clone(&part.session).deliver(inbound);
        }
        if self.is_settled() {
            return;
        }
        let waiting = {
            let shared = self.shared.lock();
            if shared.record.is_asked() {
                return;
            }
            shared.link.as_ref().map_or(0, |link| link.waiting_bytes())
        };
        if waiting.saturating_add(inbound.held_bytes()) > self.memory_limit {
            self.workers.kill(&self, &Lost::TooLarge);
            return;
        }
        self.shared.lock().dealings.lock().send(&inbound);
        self.send(ToWorker::Inbound(inbound).into_frame());
    }

    fn ended_by_itself(&self) -> bool {
        self.shared.lock().record.ended_by_itself()
    }
}

impl RunControl for Run {
    fn is_here(&self) -> bool {
        self.workers.is_here()
    }

    fn running(&self) -> bool {
        !self.is_settled()
    }

    fn was_ended(&self) -> bool {
        self.shared.lock().record.was_ended()
    }

    fn computed(&self) -> Duration {
        let shared = self.shared.lock();
        shared.computed + shared.phase.computing()
    }

    fn terminate(self: Arc<Self>, reason: Option<&str>) {
        self.end(Reason::of_caller(reason));
    }

    fn reply(self: Arc<Self>, call: u64, completion: Completion) {
        let overdrawn = {
            let mut shared = self.shared.lock();
            if shared.calls != call || self.is_settled() {
                return;
            }
            let Some(args_bytes) = shared.calling.take() else { return };
            completion.as_ref().is_ok_and(|answer| {
                shared.dealings.lock().ledger.answer(args_bytes, answer).is_err()
            })
        };
        if overdrawn {
            self.workers.kill(&self, &Lost::TooLarge);
            return;
        }
        self.send(ToWorker::Answer { number: self.number(), completion }.into_frame());
    }

    fn poller(&self) -> Option<Weak<dyn Poller>> {
        let workers = Arc::downgrade(&self.workers);
        Some(workers)
    }

    fn reports_since(&self, index: usize) -> Vec<Arc<Value>> {
        self.shared.lock().record.reports_since(index)
    }

    fn take_report(&self) -> Option<Value> {
        self.shared.lock().record.take_report()
    }

    fn result_bytes(&self) -> usize {
        self.shared.lock().record.result_bytes()
    }

    fn lend_result(&self) -> Option<ExecutionResult> {
        self.shared.lock().record.lend_result()
    }

    fn return_result(&self, result: ExecutionResult) {
        self.shared.lock().record.return_result(result);
    }

    fn take_result(&self) -> Option<ExecutionResult> {
        self.shared.lock().record.take_result()
    }
}

/// The limit for the ledger and for messages, which count a little differently from an isolate's charges.
fn most_bytes(memory_limit: usize) -> usize {
    memory_limit.saturating_add(memory_limit / 8).saturating_add(1 << 20)
}
