//! A session in a worker process, as its host sees it.
//!
//! In: cells, calls, questions, updates, messages of the host. Out: one run after another gets the session's worker, in
//! the order of the calls. A cell is a [`Run`]; so is a question to the worker. The first of them takes a worker, which
//! the session then has to itself. Between two of them messages of the host wait here.
//!
//! The session's lock is never held while the host is called, nor while a run is ended. A run's lock may be taken while
//! it is held, and not the other way round.

mod control;
mod delivery;
mod interleave;

use std::{
    collections::VecDeque,
    fmt,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
    },
    time::Instant,
};

use super::{
    Run, Start, Work,
    cell::{Held, InSession, Kind, Origin, Place, Received},
    session_worker::SessionWorker,
};
use crate::{
    binding::{
        handle::Recipient,
        host::Host,
        inbound::{Inbound, thrown},
        interception::Interception,
        native::NativeHost,
    },
    data::cell::SessionState,
    error::{Error, ErrorKind},
    isolate::session::SessionIsolate,
    modules::session_request::{SessionRequest, UpdateRequest},
    os::sync::Mutex,
    protocol::messages::{ToWorker, session::Open},
    runtime::{
        calls::{Calls, Placed},
        processes::{
            ledger::Ledger,
            lost::Lost,
            worker_socket::{FrameSink, WorkerSocket},
            workers::{Begun, Workers},
        },
        record::{CLOSED, RESET, Reason},
        registry::{self, Runs},
        session::{Done, SessionControl},
        settlements::Settlements,
        turns::{Entry, Turns},
    },
    value::{InFlight, Kinds},
};

/// One session.
pub(crate) struct Session {
    me: Weak<Self>,
    workers: Arc<Workers<Run>>,
    /// Where the runtime keeps it.
    place: usize,
    /// For events outside of the caller's cells.
    host: Arc<NativeHost>,
    validated_kinds: Kinds,
    request: SessionRequest,
    in_flight: Arc<InFlight>,
    limit_bytes: usize,
    closed: AtomicBool,
    /// The number of the last run, if cells interleave.
    runs: AtomicU32,
    /// When the last cell completed, if cells interleave, for native hosts.
    kept_at: AtomicU64,
    shared: Mutex<Shared>,
}

/// The state that the threads of a session share.
#[derive(Default)]
struct Shared {
    /// The runs and calls that wait for their turn.
    queue: Turns<Run>,
    /// The run whose turn it is.
    current: Option<Arc<Run>>,
    /// Cells that have got their turn and have not begun, while another one in flight computes.
    granted: Vec<Arc<Run>>,
    /// The cells that have begun and are not over, if cells interleave, in the order in which they began.
    flights: Vec<Arc<Run>>,
    /// The questions that the worker has, if cells interleave, in the order in which it answers them: cells may compute
    /// before it does.
    asked: VecDeque<Arc<Run>>,
    /// Whether the worker is asked to park, because a new run waits.
    offered: bool,
    worker: Option<Arc<SessionWorker>>,
    /// The state that the first worker begins with, if this is a copy of a session.
    held: Option<Held>,
    /// How the worker was lost outside of cells: the next cell is told.
    lost: Option<Lost>,
    /// How many workers it had before: each begins other numbers of functions and promises.
    lost_workers: u32,
    /// Updates that no worker has yet, and those that a new one would need.
    pending: Vec<UpdateRequest>,
    applied: Vec<UpdateRequest>,
    /// Messages of the host for the next cell.
    inbox: Vec<Inbound>,
    settlements: Settlements,
    calls: Calls<Run>,
    /// The number of the last cell.
    cells: u64,
    /// Nobody has a handle any more.
    abandoned: bool,
    /// Whether everything is freed.
    freed: bool,
    closers: Vec<Done<()>>,
}

impl fmt::Debug for Session {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let closed = self.closed.load(Ordering::Acquire);
        out.debug_struct("Session").field("closed", &closed).finish_non_exhaustive()
    }
}

/// The parts of a session's run beside its work.
struct Options {
    host: Arc<NativeHost>,
    validated_kinds: Kinds,
    report: bool,
}

impl Session {
    /// Opens a session of a request that was checked.
    pub(crate) fn open(
        workers: Arc<Workers<Run>>,
        request: SessionRequest,
        host: Arc<dyn Host>,
    ) -> Result<Arc<Self>, Error> {
        if request.interleave && !SessionIsolate::is_available(true) {
            let message = "this build of the engine has no cells that interleave";
            return Err(Error::new(ErrorKind::Unavailable, message));
        }
        let settlements = Settlements::of(&request.inputs);
        Ok(Self::with(workers, request, host, Shared { settlements, ..Shared::default() }))
    }

    fn with(
        workers: Arc<Workers<Run>>,
        request: SessionRequest,
        host: Arc<dyn Host>,
        shared: Shared,
    ) -> Arc<Self> {
        let interceptor = request.interceptor.as_ref();
        let outside = interceptor.map(|interceptor| Interception::new(interceptor.outside()));
        let host = Arc::new(NativeHost::new(host, request.native.clone(), outside));
        // Called before anything is locked, because it calls the host.
        let validated_kinds = host.validated_kinds();
        let limit_bytes = usize::try_from(request.memory_limit()).unwrap_or(usize::MAX);
        let registered = Arc::clone(&workers);
        let mut sessions = registered.sessions.lock();
        let vacant = sessions.vacant_entry();
        let session = Arc::new_cyclic(|me: &Weak<Self>| Self {
            me: Weak::clone(me),
            workers,
            place: vacant.key(),
            host,
            validated_kinds,
            request,
            in_flight: Arc::default(),
            limit_bytes,
            closed: AtomicBool::new(false),
            runs: AtomicU32::new(0),
            kept_at: AtomicU64::new(0),
            shared: Mutex::new(shared),
        });
        let control: Weak<dyn SessionControl> = session.me.clone();
        vacant.insert(control);
        drop(sessions);
        session.host.started(&(Arc::clone(&session) as Arc<dyn Recipient>));
        session
    }

    fn me(&self) -> Arc<Self> {
        self.me.upgrade().expect("a session is used through a pointer that counts")
    }

    /// Makes a run of this session, which nobody has queued yet.
    fn make(&self, work: Work, part: InSession, options: Options) -> Arc<Run> {
        let start = Start {
            work,
            host: options.host,
            memory_limit: self.request.memory_limit(),
            report: options.report,
            timeout: None,
            validated_kinds: options.validated_kinds,
            in_flight: Arc::clone(&self.in_flight),
            cell: Some(part),
        };
        let workers = &self.workers;
        workers.registry().admit(|place| Run::new(Arc::clone(workers), place, start))
    }

    /// Puts a run at the end of the queue. One that comes after the end is ended.
    fn queue(&self, run: &Arc<Run>) {
        let next = {
            let mut shared = self.shared.lock();
            if self.closed.load(Ordering::Acquire) {
                drop(shared);
                return run.end(Reason::Closed);
            }
            shared.queue.push(Arc::clone(run));
            self.schedule(&mut shared)
        };
        self.start(next);
        if self.workers.registry().is_closed() {
            // Another thread closed the runtime meanwhile, and may not have seen this run.
            run.end(Reason::of_caller(Some(registry::CLOSED)));
        }
    }

    /// Gives a run its turn.
    fn start(&self, next: Option<Arc<Run>>) {
        let Some(run) = next else { return };
        if run.kind() == Some(Kind::Question) {
            return self.ask(run);
        }
        let (has_worker, lost) = {
            let mut shared = self.shared.lock();
            (shared.worker.is_some(), shared.lost.take())
        };
        if let Some(how) = lost {
            run.lost(&how);
        } else if has_worker {
            self.workers.wake(run);
        } else {
            self.workers.enqueue(run);
        }
    }

    /// Gives a question its turn. Without a worker there is an answer at once, except for names that are in a state which
    /// no worker has yet.
    fn ask(&self, run: Arc<Run>) {
        let copies = run.asks_for_copy();
        let (lost, origin) = {
            let shared = self.shared.lock();
            if shared.lost.is_none() && shared.worker.is_some() {
                drop(shared);
                return self.workers.wake(run);
            }
            if shared.lost.is_none() && shared.held.is_some() && !copies {
                drop(shared);
                return self.workers.enqueue(run);
            }
            let pending = if copies { shared.pending.clone() } else { Vec::new() };
            let under_way = self.host.repeatable();
            (shared.lost.clone(), Origin { state: shared.held.clone(), pending, under_way })
        };
        match lost {
            Some(how) => run.answer_not(&format!("the session was reset: {}", how.message())),
            None if copies => run.answer_copy(origin),
            // No cell has declared anything.
            None => run.answer_names(Vec::new()),
        }
        run.end(Reason::Reset);
    }

    /// Begins the run whose turn it is: in the worker that the session has, or in a new one.
    pub(super) fn begin(&self, run: &Arc<Run>, new: Option<&Arc<WorkerSocket>>) -> Begun {
        let worker = {
            let mut shared = self.shared.lock();
            let worker = match (new, &shared.worker) {
                (Some(link), _) => {
                    if shared.held.as_ref().is_some_and(|held| held.zygote != link.zygote) {
                        drop(shared);
                        run.lost(&Lost::Orphaned);
                        return Begun::NotNeeded;
                    }
                    let ledger = shared.held.as_ref().map(|held| held.ledger.clone());
                    self.worker(Arc::clone(link), ledger)
                }
                (None, Some(worker)) => Arc::clone(worker),
                (None, None) => return Begun::NoWorker,
            };
            // Otherwise a cell in flight computes by now, and the worker tells when this one does.
            let has_turn = shared.current.as_ref().is_some_and(|current| Arc::ptr_eq(current, run));
            let prepare = || {
                let updates = std::mem::take(&mut shared.pending);
                shared.note_applied(&updates);
                // A new worker gets them all at first, and a state has all but these in it.
                let has_all = new.is_some() && shared.held.is_none();
                if new.is_some() {
                    worker.link.send(self.opening(&mut shared).into_frame());
                }
                for update in updates.into_iter().filter(|_| !has_all) {
                    worker.link.send(ToWorker::Update(Box::new(update)).into_frame());
                }
                for inbound in std::mem::take(&mut shared.inbox) {
                    worker.dealings.lock().send(&inbound);
                    worker.link.send(ToWorker::Inbound(inbound).into_frame());
                }
            };
            match run.begin_in(&worker, new.is_some(), has_turn, prepare) {
                Begun::Yes => {}
                other => return other,
            }
            if new.is_some() {
                shared.worker = Some(Arc::clone(&worker));
            }
            shared.granted.retain(|granted| !Arc::ptr_eq(granted, run));
            if run.number() != 0 {
                shared.flights.push(Arc::clone(run));
            } else if self.request.interleave {
                shared.asked.push_back(Arc::clone(run));
            }
            worker
        };
        worker.watch(Instant::now());
        Begun::Yes
    }

    /// A new worker for it.
    fn worker(&self, link: Arc<WorkerSocket>, ledger: Option<Ledger>) -> Arc<SessionWorker> {
        let (workers, me) = (Arc::clone(&self.workers), self.me.clone());
        Arc::new(SessionWorker::new(workers, me, link, self.limit_bytes, ledger))
    }

    /// The first message to a worker.
    fn opening(&self, shared: &mut Shared) -> ToWorker {
        let state = shared.held.take().map(|held| Arc::unwrap_or_clone(held.bytes));
        ToWorker::Open(Box::new(Open {
            request: self.request.clone(),
            updates: if state.is_none() { shared.applied.clone() } else { Vec::new() },
            safety_cap: self.workers.safety_cap(),
            lost: shared.lost_workers,
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
                self.start(Some(Arc::clone(run)));
                false
            }
        }
    }

    /// Takes note of the loss of its worker. Returns the run that the worker had; the next run is told if it had none.
    /// All at once: a run that began in between would never end.
    pub(super) fn lose(&self, worker: &SessionWorker, how: &Lost) -> Option<Arc<Run>> {
        let mut shared = self.shared.lock();
        let current = worker.take_current();
        shared.asked.retain(|asked| !current.as_ref().is_some_and(|it| Arc::ptr_eq(it, asked)));
        if !shared.worker.as_ref().is_some_and(|own| std::ptr::eq(Arc::as_ptr(own), worker)) {
            return current;
        }
        let run = current.or_else(|| shared.flights.last().cloned());
        if run.is_none() {
            shared.lost = Some(how.clone());
            shared.settle_again();
        }
        let asked = shared.lose_worker();
        let lost = shared.calls.lose();
        drop(shared);
        end_asked(asked);
        self.reject(lost, RESET);
        run
    }

    /// Takes note of how its worker was lost during a question: the next cell is told.
    pub(super) fn note_lost(&self, how: &Lost) {
        self.shared.lock().lost = Some(how.clone());
    }

    /// A run of it is over. `late`: calls of the host that came too late for it.
    pub(super) fn leave(
        &self,
        run: &Run,
        place: Place,
        error: Option<(String, String)>,
        late: &[u32],
    ) {
        let (name, message) = error.unwrap_or_else(|| (RESET.0.to_owned(), RESET.1.to_owned()));
        if run.number() != 0 && place != Place::Untouched {
            return self.leave_flight(run, place, (&name, &message));
        }
        let (mut asked, mut gone) = (VecDeque::new(), Vec::new());
        let (next, lost) = {
            let mut shared = self.shared.lock();
            let is_current =
                |current: &Arc<Run>| std::ptr::eq(Arc::as_ptr(current), std::ptr::from_ref(run));
            shared.asked.retain(|asked| !is_current(asked));
            if !shared.current.as_ref().is_some_and(is_current) {
                // It waited in the queue.
                shared.note_over(1);
                shared.granted.retain(|granted| !is_current(granted));
                let lost = shared.calls.end_of(run.call_of_host());
                let next = self.schedule(&mut shared);
                drop(shared);
                self.start(next);
                self.reject(lost, (&name, &message));
                return self.free_when_idle();
            }
            shared.current = None;
            if let Some(worker) = &shared.worker {
                worker.end_current();
                worker.link.release();
            }
            let mut lost = shared.calls.end_of(run.call_of_host());
            shared.put_late_back(late);
            if let Place::Lost(_) = place {
                asked = shared.lose_worker();
                gone = shared.calls.lose();
            }
            if !matches!(place, Place::Untouched | Place::Back(SessionState::Kept)) {
                shared.settle_again();
            }
            let behind = shared.queue.take_behind();
            shared.inbox.extend(behind);
            match place {
                Place::Lost(_) | Place::Back(SessionState::Reset) => {
                    lost.append(&mut shared.calls.forget());
                }
                Place::Back(SessionState::RolledBack) => lost.append(&mut shared.calls.undo(run)),
                Place::Back(SessionState::Kept) | Place::Untouched => {}
            }
            (self.schedule(&mut shared), lost)
        };
        end_asked(asked);
        self.start(next);
        self.reject(lost, (&name, &message));
        self.reject(gone, RESET);
        self.free_when_idle();
    }

    /// Whether there is a state to go back to.
    pub(super) fn takes_checkpoints(&self) -> bool {
        self.request.checkpoint_limit() > 0
    }

    /// The moment from which on the native host undoes its work for a cell that began at the given one.
    pub(super) fn undone_since(&self, began: u64) -> u64 {
        began.max(self.kept_at.load(Ordering::Relaxed))
    }

    /// As [`SessionRequest::keeps_logs`].
    pub(super) fn keeps_logs(&self) -> bool {
        self.request.keeps_logs
    }

    /// Whether the outcome of a call of the host is for the host: the first one is.
    pub(super) fn takes_outcome(&self, call: u32) -> bool {
        self.shared.lock().calls.settle(call)
    }

    /// Ends all runs for a reason, and the worker, and rejects the host's calls.
    fn end_all(&self, reason: &Reason, error: (&str, &str)) {
        let (runs, calls, worker) = {
            let mut shared = self.shared.lock();
            // Those that wait first: otherwise the end of the current one would give them a turn.
            let mut runs = shared.queue.drain();
            runs.append(&mut shared.granted);
            runs.extend(shared.current.clone());
            runs.append(&mut shared.flights);
            runs.extend(std::mem::take(&mut shared.asked));
            shared.inbox.clear();
            shared.settle_again();
            shared.lost = None;
            let worker = shared.worker.clone();
            shared.lose_worker();
            (runs, shared.calls.take_all(), worker)
        };
        // The last run to end may free the session, and its host takes nothing after that.
        self.reject(calls, error);
        for run in runs {
            run.abort(reason.clone());
        }
        if let Some(worker) = worker {
            worker.dismiss();
        }
    }

    /// Tells the host that calls which it made end with that error.
    fn reject(&self, calls: Vec<u32>, (name, message): (&str, &str)) {
        for call in calls {
            self.host.function_settled(call, Err(thrown(name, message)));
        }
    }

    /// Frees everything, once no run has the worker.
    fn free_when_idle(&self) {
        let (first, worker, closers) = {
            let mut shared = self.shared.lock();
            let ends = self.closed.load(Ordering::Acquire) || shared.abandoned;
            let is_busy = shared.current.is_some()
                || !shared.flights.is_empty()
                || !shared.granted.is_empty();
            if !ends || is_busy || !shared.queue.is_empty() {
                return;
            }
            let first = !std::mem::replace(&mut shared.freed, true);
            shared.inbox.clear();
            shared.held = None;
            (first, shared.worker.take(), std::mem::take(&mut shared.closers))
        };
        if let Some(worker) = worker {
            worker.dismiss();
        }
        if first {
            self.closed.store(true, Ordering::Release);
            let unregistered = self.workers.sessions.lock().try_remove(self.place);
            drop(unregistered);
            let calls = self.shared.lock().calls.take_all();
            self.reject(calls, CLOSED);
            self.host.settled();
        }
        for done in closers {
            done(());
        }
    }
}

impl Session {
    /// The run whose turn it is now, if nobody has it.
    fn advance(&self, shared: &mut Shared) -> Option<Arc<Run>> {
        if shared.current.is_some() {
            return None;
        }
        loop {
            let is_idle = shared.flights.is_empty() && shared.granted.is_empty();
            let aside = if is_idle { shared.queue.take_aside() } else { None };
            let run = match aside.map(Entry::Run).or_else(|| shared.queue.pop())? {
                Entry::Run(run) => run,
                Entry::Call(call) => match self.turn_of(shared, call) {
                    CallsTurn::Comes(run) => run,
                    CallsTurn::Never => continue,
                    CallsTurn::Untold => {
                        shared.queue.push_first(Entry::Call(call));
                        return None;
                    }
                },
            };
            // A copy waits until no cell is in flight. The runs behind it do not: those before may wait for them.
            if !is_idle && run.is_waiting() && run.asks_for_copy() {
                shared.queue.set_aside(run);
                continue;
            }
            // Those that were ended meanwhile have settled.
            if run.take_turn() {
                shared.current = Some(Arc::clone(&run));
                return Some(run);
            }
        }
    }

    /// A cell waits for the host: it is handed the calls that wait.
    pub(super) fn waits(&self, run: &Arc<Run>) {
        let wakes = {
            let mut shared = self.shared.lock();
            let is_current =
                shared.current.as_ref().is_some_and(|current| Arc::ptr_eq(current, run));
            is_current && shared.hand_over(run)
        };
        if wakes {
            self.workers.wake(Arc::clone(run));
        }
    }
}

/// The outcome of a call's turn.
enum CallsTurn {
    /// It is a run from now on.
    Comes(Arc<Run>),
    /// A cell has the call.
    Never,
    /// A worker has not told yet where the call is, or the runtime is closed.
    Untold,
}

impl Shared {
    /// Gives the cell whose turn it is the calls that wait, and the messages behind them, if its worker waits for the
    /// host. Returns whether it can resume.
    pub(super) fn hand_over(&mut self, run: &Arc<Run>) -> bool {
        if !self.queue.has_messages() {
            return false;
        }
        let messages = self.queue.take_messages();
        let call = |inbound: &Inbound| match inbound {
            Inbound::FunctionCall { call, .. } => Some(*call),
            _ => None,
        };
        let calls: Vec<u32> = messages.iter().filter_map(call).collect();
        if let Err(messages) = run.resume_with(messages) {
            self.queue.put_back(messages);
            return false;
        }
        let count = calls.len();
        for call in calls {
            self.calls.place(call, Placed::In(Arc::downgrade(run)));
        }
        self.note_over(count);
        true
    }

    /// Has the next cell be handed the outcomes of promises among the capabilities, which the session has anew.
    fn settle_again(&mut self) {
        let again: Vec<_> = self.settlements.again().collect();
        self.inbox.splice(..0, again);
    }

    /// Notes that so many entries of the queue will have no turn.
    fn note_over(&mut self, count: usize) {
        let Self { queue, calls, .. } = self;
        queue.note_over(count, |entry| match entry {
            Entry::Run(run) => run.is_waiting(),
            Entry::Call(call) => calls.waits(*call),
        });
    }

    /// Gives calls that came too late for their cell the first turns, in their order. The worker has them.
    fn put_late_back(&mut self, late: &[u32]) {
        for &call in late.iter().rev() {
            // Some were refused, or rejected with all others.
            if self.calls.is_pending(call) {
                self.calls.place(call, Placed::Left);
                self.queue.push_first(Entry::Call(call));
            }
        }
    }

    /// Forgets the worker. Returns the questions that it had.
    fn lose_worker(&mut self) -> VecDeque<Arc<Run>> {
        let worker = self.worker.take();
        self.offered = false;
        // The numbers in a state that no worker had were given out where it comes from.
        if worker.is_some() || self.held.take().is_some() {
            self.lost_workers = self.lost_workers.wrapping_add(1);
        }
        if let Some(worker) = worker {
            worker.give_up();
        }
        std::mem::take(&mut self.asked)
    }

    /// Notes that a worker has these updates.
    fn note_applied(&mut self, updates: &[UpdateRequest]) {
        for update in updates {
            self.applied.retain(|earlier| !update.covers(earlier));
            self.applied.push(update.clone());
        }
    }
}

/// Ends questions that only a worker could have answered which is gone.
fn end_asked(asked: VecDeque<Arc<Run>>) {
    for run in asked {
        run.undo_with(SessionState::Reset);
    }
}
