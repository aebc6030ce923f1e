//! A session in a worker process, as its host sees it.
//!
//! In: cells, calls, questions, updates, messages of the host. Out: one run after another gets the session's worker, as the
//! [`Machine`] says. A cell is a [`Run`]; so is a question to the worker. The first of them takes a worker, which the
//! session then has to itself.
//!
//! The session's lock is never held while the host is called, nor while a run is ended. A run's lock may be taken while
//! it is held, and not the other way round.

mod control;
mod delivery;
mod interleave;

use std::{
    fmt,
    sync::{
        Arc, MutexGuard, Weak,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Instant,
};

use super::{
    Run, Start, Work,
    cell::{Held, InSession, Origin, Place, Received},
    session_worker::SessionWorker,
};
use crate::{
    binding::{
        handle::{Recipient, RunControl},
        host::Host,
        inbound::{Inbound, thrown},
        interception::Interception,
        native::NativeHost,
    },
    data::cell::SessionState,
    error::{Error, ErrorKind},
    isolate::session::SessionIsolate,
    modules::session_request::SessionRequest,
    os::sync::Mutex,
    protocol::messages::{ToWorker, session::Open},
    runtime::{
        processes::{
            ledger::Ledger,
            lost::Lost,
            worker_socket::{FrameSink, WorkerSocket},
            workers::{Begun, Workers},
        },
        record::{CLOSED, RESET, Reason},
        registry::{self, Runs},
        session::{Done, SessionControl},
        sessions::{Effect, Ends, Kind, Left, Machine, Parts, Settlements, Turn, Undone, Updates},
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
    /// When the last cell completed, if cells interleave, for native hosts.
    kept_at: AtomicU64,
    shared: Mutex<Shared>,
}

/// The state that the threads of a session share.
struct Shared {
    machine: Machine<There>,
    worker: Option<Arc<SessionWorker>>,
    /// The state that the first worker begins with, if this is a copy of a session.
    held: Option<Held>,
    /// How the worker was lost outside of cells: the next cell is told.
    lost: Option<Lost>,
    /// How many workers it had before: each begins other numbers of functions and promises.
    lost_workers: u32,
    updates: Updates,
    settlements: Settlements,
    /// The number of the last cell.
    cells: u64,
}

/// The parts of a session whose isolate is in a worker.
struct There;

impl Parts for There {
    type Run = Arc<Run>;
    type Message = Inbound;
    type Closer = Done<()>;
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
        let shared = Shared {
            machine: Machine::new(request.interleave),
            worker: None,
            held: None,
            lost: None,
            lost_workers: 0,
            updates: Updates::default(),
            settlements: Settlements::of(&request.inputs),
            cells: 0,
        };
        Ok(Self::with(workers, request, host, shared))
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
    fn queue(&self, run: &Arc<Run>, kind: Kind) {
        let mut shared = self.shared.lock();
        if self.closed.load(Ordering::Acquire) {
            drop(shared);
            return run.end(Reason::Closed);
        }
        shared.machine.push(run.in_session(), kind, Arc::clone(run));
        self.go_on(shared);
        if self.workers.registry().is_closed() {
            // Another thread closed the runtime meanwhile, and may not have seen this run.
            run.end(Reason::of_caller(Some(registry::CLOSED)));
        }
    }

    /// The run whose turn it is now, if nobody has it. Otherwise has the worker park soon if it can begin one.
    fn next(&self, shared: &mut Shared) -> Next {
        if self.workers.registry().is_closed() {
            shared.machine.refuse_calls();
        }
        let run = match shared.machine.next() {
            Some(Turn::Run(run)) => run,
            Some(Turn::Call(call, message)) => self.held(shared, call, message),
            None => return shared.let_worker_go_on(),
        };
        run.take_turn();
        Next::Begins(run)
    }

    /// Gives the next run its turn.
    fn go_on(&self, mut shared: MutexGuard<'_, Shared>) {
        let next = self.next(&mut shared);
        drop(shared);
        self.start(next);
    }

    /// Gives a run its turn.
    fn start(&self, next: Next) {
        let run = match next {
            Next::Begins(run) => run,
            Next::Wakes(run) => return self.workers.wake(run),
            Next::Nobody => return,
        };
        if run.kind().is_some_and(|kind| !kind.is_cell()) {
            return self.ask(run);
        }
        let (has_worker, lost) = {
            let mut shared = self.shared.lock();
            (shared.worker.is_some(), shared.lost.take_if(|_| run.running()))
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
            let pending = if copies { shared.updates.pending().to_vec() } else { Vec::new() };
            let under_way = self.host.repeatable();
            (shared.lost.clone(), Origin { state: shared.held.clone(), pending, under_way })
        };
        match lost {
            Some(how) => {
                let why = format!("the session was reset: {}", how.message());
                run.refuse(Error::new(ErrorKind::SessionReset, why));
            }
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
            let has_turn = shared.machine.is_current(run.in_session());
            let prepare = || {
                let updates = shared.updates.take();
                // A new worker gets them all at first, and a state has all but these in it.
                let has_all = new.is_some() && shared.held.is_none();
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
                shared.worker = Some(Arc::clone(&worker));
            }
            shared.machine.begin(run.in_session());
            if self.request.interleave && !run.is_cell() {
                shared.machine.ask(run.in_session());
            }
            if shared.machine.offers_to_held_back() {
                worker.link.send(ToWorker::Yield.into_frame());
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
            updates: if state.is_none() { shared.updates.applied().to_vec() } else { Vec::new() },
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
                self.start(Next::Begins(Arc::clone(run)));
                false
            }
        }
    }

    /// Takes note of the loss of its worker. Returns the run that the worker had; the next run is told if it had none.
    /// All at once: a run that began in between would never end.
    pub(super) fn lose(&self, worker: &SessionWorker, how: &Lost) -> Option<Arc<Run>> {
        let mut shared = self.shared.lock();
        let current = worker.take_current();
        if !shared.worker.as_ref().is_some_and(|own| std::ptr::eq(Arc::as_ptr(own), worker)) {
            return current;
        }
        let run = current.or_else(|| shared.machine.begun().next_back().cloned());
        if run.is_none() {
            shared.lost = Some(how.clone());
            shared.settle_again();
        }
        let (mut asked, lost) = shared.machine.lose_isolate();
        asked.retain(|asked| !run.as_ref().is_some_and(|run| Arc::ptr_eq(run, asked)));
        shared.lose_worker();
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
        late: Vec<u32>,
    ) {
        let (name, message) = error.unwrap_or_else(|| (RESET.0.to_owned(), RESET.1.to_owned()));
        let number = run.in_session();
        let effect = match place {
            Place::Untouched => Effect::Untouched,
            Place::Back(state) => Effect::Back(state),
            Place::Lost(_) => Effect::Lost,
        };
        let (next, undone) = {
            let mut shared = self.shared.lock();
            let had_turn = shared.machine.is_current(number);
            let is_anew = place.state() != SessionState::Kept || effect == Effect::Lost;
            let again = if is_anew { shared.settlements.again().collect() } else { Vec::new() };
            let left = Left { again, late, ..Left::of(effect) };
            let undone = shared.machine.leave(number, left);
            if had_turn && let Some(worker) = &shared.worker {
                worker.end_current();
                if run.number() == 0 || effect == Effect::Untouched {
                    worker.link.release();
                }
            }
            if effect == Effect::Lost && (had_turn || run.is_cell()) {
                shared.lose_worker();
            }
            (self.next(&mut shared), undone)
        };
        let Undone { calls, lost, runs, asked } = undone;
        end_asked(asked);
        for (other, calls) in runs {
            other.undo_with(SessionState::Reset);
            self.reject_of(&other, calls);
        }
        self.start(next);
        self.reject(calls, (&name, &message));
        self.reject(lost, RESET);
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
        self.shared.lock().machine.settle(call)
    }

    /// Ends all runs for a reason, and the worker, and rejects the host's calls.
    fn end_all(&self, reason: &Reason, error: (&str, &str)) {
        let (Ends { runs, calls }, worker) = {
            let mut shared = self.shared.lock();
            let ends = shared.machine.end_all(matches!(reason, Reason::Reset));
            shared.machine.give_up();
            shared.settle_again();
            shared.lost = None;
            let worker = shared.worker.clone();
            shared.lose_worker();
            (ends, worker)
        };
        for run in runs {
            run.abort(reason.clone());
        }
        self.reject(calls, error);
        if let Some(worker) = worker {
            worker.dismiss();
        }
        let mut shared = self.shared.lock();
        shared.machine.has_ended();
        self.go_on(shared);
        self.free_when_idle();
    }

    /// Tells the host that calls which it made end with that error.
    fn reject(&self, calls: Vec<u32>, (name, message): (&str, &str)) {
        for call in calls {
            self.host.function_settled(call, Err(thrown(name, message)));
        }
    }

    /// The same with the error with which a run has ended.
    fn reject_of(&self, run: &Run, calls: Vec<u32>) {
        let error = run.failure();
        self.reject(calls, error.as_ref().map_or(RESET, |(name, message)| (name, message)));
    }

    /// Frees everything, once no run is left.
    fn free_when_idle(&self) {
        let (freed, worker) = {
            let mut shared = self.shared.lock();
            let Some(freed) = shared.machine.free() else { return };
            shared.held = None;
            (freed, shared.worker.take())
        };
        if let Some(worker) = worker {
            worker.dismiss();
        }
        if freed.is_first {
            self.closed.store(true, Ordering::Release);
            let unregistered = self.workers.sessions.lock().try_remove(self.place);
            drop(unregistered);
            self.reject(freed.calls, CLOSED);
            self.host.settled();
        }
        for done in freed.closers {
            done(());
        }
    }

    /// A cell waits for the host: it is handed the calls that wait.
    pub(super) fn waits(&self, run: &Arc<Run>) {
        let wakes = self.shared.lock().hand_over(run);
        if wakes {
            self.workers.wake(Arc::clone(run));
        }
    }
}

/// The one that has to do something next.
enum Next {
    /// This run has its turn.
    Begins(Arc<Run>),
    /// The worker goes on, and this cell stands for it in the queue for permits.
    Wakes(Arc<Run>),
    Nobody,
}

impl Shared {
    /// Gives the cell whose turn it is the calls that wait, and the messages behind them, if its worker waits for the
    /// host. Returns whether it can resume.
    fn hand_over(&mut self, run: &Run) -> bool {
        self.machine.hand_over(run.in_session(), |run, messages| run.resume_with(messages))
    }

    /// Has the worker park if a run waits for that; has it go on if it has parked for a run that has ended meanwhile.
    fn let_worker_go_on(&mut self) -> Next {
        let Some(worker) = self.worker.clone() else { return Next::Nobody };
        if self.machine.offers() {
            worker.link.send(ToWorker::Yield.into_frame());
        } else if self.machine.parked_for_nothing() {
            worker.dealings.lock().sent += 1;
            worker.link.send(ToWorker::GoOn.into_frame());
            return self.wake_worker(&worker).map_or(Next::Nobody, Next::Wakes);
        }
        Next::Nobody
    }

    /// Has the next cell be handed the outcomes of promises among the capabilities, which the session has anew.
    fn settle_again(&mut self) {
        self.machine.put_first(self.settlements.again());
    }

    /// Forgets the worker.
    fn lose_worker(&mut self) {
        let worker = self.worker.take();
        // The numbers in a state that no worker had were given out where it comes from.
        if worker.is_some() || self.held.take().is_some() {
            self.lost_workers = self.lost_workers.wrapping_add(1);
        }
        if let Some(worker) = worker {
            worker.give_up();
        }
    }
}

/// Ends questions that only a worker could have answered which is gone.
fn end_asked(asked: Vec<Arc<Run>>) {
    for run in asked {
        run.undo_with(SessionState::Reset);
    }
}
