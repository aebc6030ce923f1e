//! The isolate of a session in a worker process, as its host sees it.
//!
//! In: runs that have their turn. Out: frames to the session's worker. The first run takes a worker, which the session
//! then has to itself. [`Session::lose`] is called when the worker is gone: the run that the worker had is told, or else
//! the next run, and the next run takes another worker.

use std::{sync::Arc, time::Instant};

use super::{Run, Start, Work, session_worker::SessionWorker};
use crate::{
    binding::{
        handle::RunControl,
        inbound::Inbound,
        native::{NativeHost, Repeatable},
    },
    data::cell::{Name, SessionState},
    error::{Error, ErrorKind},
    modules::session_request::UpdateRequest,
    os::sync::Mutex,
    protocol::messages::{
        ToWorker,
        session::{Cell, CellWork, Open},
    },
    runtime::{
        processes::{
            ledger::Ledger,
            lost::Lost,
            worker_socket::{FrameSink, WorkerSocket},
            workers::{Begun, Workers},
        },
        record::{RESET, Reason},
        registry::Registry,
        session::{Done, Forked, Outside},
        sessions::{Effect, Message, NewRun, Place, Question, Received, SessionRun, Shared},
    },
};

/// A session in a worker.
pub(crate) type Session = crate::runtime::sessions::Session<WorkerPlace>;

/// The parts of a run that belongs to such a session.
pub(crate) type InSession = crate::runtime::sessions::InSession<WorkerPlace>;

/// Worker processes, for one session.
pub(crate) struct WorkerPlace {
    pub(super) workers: Arc<Workers<Run>>,
}

/// The worker of a session.
#[derive(Default)]
pub(crate) struct WorkerState {
    pub(super) worker: Option<Arc<SessionWorker>>,
    /// The state that the first worker begins with, if this is a copy of a session.
    held: Option<Held>,
    /// How the worker was lost outside of cells: the next cell is told.
    lost: Option<Lost>,
    /// How many workers the session had before: each worker begins other numbers of functions and promises.
    lost_workers: u32,
}

/// The state of a session that no worker has yet.
#[derive(Clone)]
pub(crate) struct Held {
    /// The state as a worker wrote it, which may have been taken over. Nobody reads the bytes but another worker.
    pub(super) bytes: Arc<Vec<u8>>,
    pub(super) ledger: Ledger,
    /// The number of the zygote whose workers can have it.
    pub(super) zygote: u64,
}

/// The parts of a run whose session is in a worker.
#[derive(Default)]
pub(crate) struct WorkerPart {
    /// The length of its source.
    pub(super) source_bytes: u32,
    /// The names so far that answer the question.
    pub(super) named: Mutex<Vec<Name>>,
    /// The futures of native functions that were under way when the worker was asked for a copy.
    pub(super) under_way: Mutex<Vec<Repeatable>>,
}

impl WorkerPlace {
    pub(crate) fn new(workers: Arc<Workers<Run>>) -> Self {
        Self { workers }
    }
}

impl Place for WorkerPlace {
    type Run = Run;
    type Work = CellWork;
    type Part = WorkerPart;
    type State = WorkerState;
    type Isolate = ();
    type Gone = Option<Arc<SessionWorker>>;

    fn registry(&self) -> &Registry<Run> {
        self.workers.registry()
    }

    fn left(call: u32) -> Option<CellWork> {
        Some(CellWork::Left { call })
    }

    fn part(work: Option<&CellWork>) -> WorkerPart {
        let source_bytes = work.map_or(0, CellWork::source_bytes);
        let source_bytes = u32::try_from(source_bytes).unwrap_or(u32::MAX);
        WorkerPart { source_bytes, ..WorkerPart::default() }
    }

    fn run(&self, slot: usize, new: NewRun<Self>) -> Run {
        let NewRun { part, work, validated_kinds, report, timeout } = new;
        let cell = |work| Box::new(Cell { number: part.number, work, report, validated_kinds });
        let start = Start {
            work: work.map_or(Work::Question, |work| Work::Cell(cell(work))),
            host: Arc::<NativeHost>::clone(&part.native),
            memory_limit: part.session.request.memory_limit(),
            report,
            timeout,
            validated_kinds,
            in_flight: Arc::clone(&part.session.in_flight),
            cell: Some(part),
        };
        Run::new(Arc::clone(&self.workers), slot, start)
    }

    /// Has the worker park if a run waits for that; has it go on if it has parked for a run that has ended meanwhile.
    fn idle(shared: &mut Shared<Self>) -> Option<Arc<Run>> {
        let worker = shared.at.worker.clone()?;
        if !shared.offer(&worker) && shared.machine.parked_for_nothing() {
            worker.dealings.lock().sent += 1;
            worker.link.send(ToWorker::GoOn.into_frame());
            return shared.wake_worker(&worker);
        }
        None
    }

    fn grant(session: &Session, run: Arc<Run>) {
        if !run.is_cell() {
            return session.begin_question(run);
        }
        let (has_worker, lost) = {
            let mut shared = session.shared.lock();
            (shared.at.worker.is_some(), shared.at.lost.take_if(|_| run.running()))
        };
        let workers = &session.place.workers;
        if let Some(how) = lost {
            run.lost(&how);
        } else if has_worker {
            workers.wake(run);
        } else {
            workers.enqueue(run);
        }
    }

    fn wake(&self, run: Arc<Run>) {
        self.workers.wake(run);
    }

    /// Sends a message to the worker, if cells are in flight.
    fn pass_on(session: &Session, shared: &mut Shared<Self>, inbound: Inbound) -> Received<Self> {
        let last = shared.machine.begun().next_back().cloned();
        let Some(worker) = shared.at.worker.clone().filter(|_| last.is_some()) else {
            return Received::No(inbound);
        };
        let waiting = worker.link.waiting_bytes();
        if waiting.saturating_add(inbound.held_bytes()) > session.limit_bytes {
            return Received::TooLarge(last);
        }
        if let Some(call) = inbound.call() {
            shared.machine.sent(call);
        }
        worker.dealings.lock().send(&inbound);
        worker.link.send(ToWorker::Inbound(inbound).into_frame());
        let is_parked = shared.machine.current().is_none();
        let woken = if is_parked { shared.wake_worker(&worker) } else { None };
        woken.map_or(Received::Yes, Received::Woken)
    }

    /// The run goes on: the worker does not have the message.
    fn refused(&self, _: &Arc<Run>) {}

    fn overdraw(&self, run: &Arc<Run>) {
        if run.running() {
            self.workers.kill(run, &Lost::TooLarge);
        }
    }

    fn leave(
        &self,
        shared: &mut Shared<Self>,
        run: &Run,
        (effect, had_turn): (Effect, bool),
        (): (),
    ) -> Self::Gone {
        if had_turn && let Some(worker) = &shared.at.worker {
            drop(worker.take_current());
            if run.number() == 0 || effect == Effect::Untouched {
                worker.link.release();
            }
        }
        if matches!(effect, Effect::Lost(_)) && (had_turn || run.is_cell()) {
            shared.at.lose_worker();
        }
        None
    }

    fn give_up(shared: &mut Shared<Self>) -> Self::Gone {
        shared.machine.give_up();
        shared.settle_again();
        shared.at.lost = None;
        let worker = shared.at.worker.clone();
        shared.at.lose_worker();
        worker
    }

    fn free(&self, shared: &mut Shared<Self>) -> Self::Gone {
        shared.at.held = None;
        shared.at.worker.take()
    }

    fn let_go(worker: Self::Gone) {
        if let Some(worker) = worker {
            worker.dismiss();
        }
    }

    /// The worker is given up with all state.
    fn reset(_: &Session, done: Done<Result<(), Error>>) {
        done(Ok(()));
    }

    fn copy(state: &WorkerState) -> WorkerState {
        WorkerState { lost_workers: state.lost_workers, ..WorkerState::default() }
    }
}

impl Session {
    /// Gives a question its turn. Without a worker there is an answer at once, except for names that are in a state which
    /// no worker has yet.
    fn begin_question(&self, run: Arc<Run>) {
        let Some(part) = &run.cell else { return };
        let copies = part.asks_for_copy();
        let (lost, held, pending) = {
            let shared = self.shared.lock();
            let at = &shared.at;
            if at.lost.is_none() && at.worker.is_some() {
                drop(shared);
                return self.place.workers.wake(run);
            }
            if at.lost.is_none() && at.held.is_some() && !copies {
                drop(shared);
                return self.place.workers.enqueue(run);
            }
            (at.lost.clone(), at.held.clone(), shared.updates.pending().to_vec())
        };
        match (part.take_question(), lost) {
            (Some(question), Some(how)) => {
                let why = format!("the session was reset: {}", how.message());
                question.refuse(Error::new(ErrorKind::SessionReset, why));
            }
            (Some(Question::Fork(outside, done)), None) => {
                done(self.fork((held, pending), self.host.repeatable(), outside));
            }
            // No cell has declared anything.
            (Some(Question::Names(done)), None) => done(Ok(Vec::new())),
            (Some(Question::Reset(done)), None) => done(Ok(())),
            (None, _) => {}
        }
        run.end(Reason::Reset);
    }

    /// A second session with that state, and the updates that are not in it.
    pub(super) fn fork(
        &self,
        (held, pending): (Option<Held>, Vec<UpdateRequest>),
        under_way: Vec<Repeatable>,
        outside: Outside,
    ) -> Forked {
        let mut state = self.state_of_copy()?;
        state.at.held = held;
        state.updates = state.updates.of_copy(pending);
        let place = WorkerPlace::new(Arc::clone(&self.place.workers));
        Ok(self.copy((place, state), under_way, outside))
    }

    /// Begins the run whose turn it is: in the worker that the session has, or in a new one.
    pub(super) fn begin(&self, run: &Arc<Run>, new: Option<&Arc<WorkerSocket>>) -> Begun {
        let worker = {
            let mut shared = self.shared.lock();
            let worker = match (new, &shared.at.worker) {
                (Some(link), _) => {
                    let held = shared.at.held.as_ref();
                    if held.is_some_and(|held| held.zygote != link.zygote) {
                        drop(shared);
                        run.lost(&Lost::Orphaned);
                        return Begun::NotNeeded;
                    }
                    let ledger = held.map(|held| held.ledger.clone());
                    let (workers, link) = (Arc::clone(&self.place.workers), Arc::clone(link));
                    let worker =
                        SessionWorker::new(workers, self.me(), link, self.limit_bytes, ledger);
                    Arc::new(worker)
                }
                (None, Some(worker)) => Arc::clone(worker),
                (None, None) => return Begun::NoWorker,
            };
            // A run without the turn: a cell in flight computes by now, and the worker tells when the run does.
            let has_turn = shared.machine.is_current(run.in_session());
            let prepare = || {
                let updates = shared.updates.take();
                // A new worker gets all updates at first, and a state has all updates in it but these.
                let has_all = new.is_some() && shared.at.held.is_none();
                if new.is_some() {
                    worker.link.send(self.opening(&mut shared).into_frame());
                }
                for update in updates.into_iter().filter(|_| !has_all) {
                    worker.link.send(ToWorker::Update(Box::new(update)).into_frame());
                }
                for inbound in shared.machine.take_inbox() {
                    worker.dealings.lock().send(&inbound);
                    worker.link.send(ToWorker::Inbound(inbound).into_frame());
                }
            };
            match run.begin_in(&worker, new.is_some(), has_turn, prepare) {
                Begun::Yes => {}
                other => return other,
            }
            if new.is_some() {
                shared.at.worker = Some(Arc::clone(&worker));
            }
            shared.machine.begin(run.in_session());
            if self.request.interleave && !run.is_cell() {
                shared.machine.ask(run.in_session());
            }
            shared.offer(&worker);
            worker
        };
        worker.watch(Instant::now());
        Begun::Yes
    }

    /// The first message to a worker.
    fn opening(&self, shared: &mut Shared<WorkerPlace>) -> ToWorker {
        let state = shared.at.held.take().map(|held| Arc::unwrap_or_clone(held.bytes));
        ToWorker::Open(Box::new(Open {
            request: self.request.clone(),
            updates: if state.is_none() { shared.updates.applied().to_vec() } else { Vec::new() },
            safety_cap: self.place.workers.safety_cap(),
            lost: shared.at.lost_workers,
            state,
        }))
    }

    /// Begins a run in the worker that the session had when the run got its turn. Returns whether it computes.
    pub(super) fn resume(&self, run: &Arc<Run>) -> bool {
        match self.begin(run, None) {
            Begun::Yes => true,
            Begun::NotNeeded => false,
            Begun::NoWorker => {
                // The worker was lost meanwhile.
                WorkerPlace::grant(self, Arc::clone(run));
                false
            }
        }
    }

    /// Takes note of the loss of the session's worker. Returns the run that the worker had; the next run is told if the
    /// worker had none. The session is locked from the first step to the last: a run that began in between would never
    /// end.
    pub(super) fn lose(&self, worker: &SessionWorker, how: &Lost) -> Option<Arc<Run>> {
        let mut shared = self.shared.lock();
        let current = worker.take_current();
        if !shared.at.has_worker(worker) {
            return current;
        }
        let run = current.or_else(|| shared.machine.begun().next_back().cloned());
        if run.is_none() {
            shared.at.lost = Some(how.clone());
            shared.settle_again();
        }
        let (mut asked, lost) = shared.machine.lose_isolate();
        asked.retain(|asked| !run.as_ref().is_some_and(|run| Arc::ptr_eq(run, asked)));
        shared.at.lose_worker();
        drop(shared);
        for asked in asked {
            asked.undo_with(Reason::Reset, SessionState::Reset);
        }
        self.reject(lost, RESET);
        run
    }

    /// Takes note of how the session's worker was lost during a question: the next cell is told.
    pub(super) fn note_lost(&self, how: &Lost) {
        self.shared.lock().at.lost = Some(how.clone());
    }
}

impl Shared<WorkerPlace> {
    /// Asks the worker to park, if a run waits for that. Returns whether it did.
    pub(super) fn offer(&mut self, worker: &SessionWorker) -> bool {
        let offers = self.machine.offers();
        if offers {
            worker.link.send(ToWorker::Yield.into_frame());
        }
        offers
    }

    /// Has the parked worker go on. Returns the cell that is to be woken for it.
    pub(super) fn wake_worker(&mut self, worker: &SessionWorker) -> Option<Arc<Run>> {
        let carrier = self.machine.go_on()?;
        worker.set_current(carrier);
        carrier.wake_worker().then(|| Arc::clone(carrier))
    }
}

impl WorkerState {
    /// Whether that is the worker.
    pub(super) fn has_worker(&self, worker: &SessionWorker) -> bool {
        self.worker.as_ref().is_some_and(|own| std::ptr::eq(Arc::as_ptr(own), worker))
    }

    /// Forgets the worker.
    fn lose_worker(&mut self) {
        let worker = self.worker.take();
        // The numbers in a state that no worker had were given out where that state comes from.
        if worker.is_some() || self.held.take().is_some() {
            self.lost_workers = self.lost_workers.wrapping_add(1);
        }
        if let Some(worker) = worker {
            worker.give_up();
        }
    }
}
