//! One session, wherever its isolate is.
//!
//! In: runs, as `control` and `delivery` make them, and their ends. Out: one run after another gets the isolate, as the
//! [`Machine`] says. A cell is a run; so is a question to the isolate. **To learn what happens to a session whose isolate
//! is lost, read [`Session::leave`]**: the run that had it has settled, the cells in flight are undone with it, the host's
//! calls in them are rejected, and the next run begins in a new isolate.
//!
//! The session's lock is never held while the engine or the host is called, nor while a run is ended. A run's lock may be
//! taken while it is held, and not the other way round.

use std::{
    fmt,
    sync::{
        Arc, MutexGuard, OnceLock, Weak,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use super::{
    Ends, Kind, Left, Machine, Settlements, Turn, Undone, Updates,
    place::Place,
    question::Question,
    run::{InSession, NewRun, Over, SessionRun},
};
use crate::{
    binding::{
        handle::Recipient,
        host::Host,
        inbound::{Inbound, thrown},
        interception::Interception,
        native::{NativeHost, Repeatable},
    },
    data::cell::SessionState,
    error::Error,
    isolate::session::Work,
    modules::session_request::SessionRequest,
    os::sync::Mutex,
    runtime::{
        record::{CLOSED, Failure, RESET, Reason, Record},
        registry::{self, Runs},
        session::{Outside, SessionControl, closed_meanwhile},
    },
    value::{InFlight, Kinds},
};

/// One session.
pub(crate) struct Session<P: Place> {
    me: Weak<Self>,
    pub(crate) place: P,
    /// Where the runtime keeps it.
    slot: OnceLock<usize>,
    /// For events outside of the caller's cells.
    pub(crate) host: Arc<NativeHost>,
    validated_kinds: Kinds,
    pub(crate) request: SessionRequest,
    pub(crate) in_flight: Arc<InFlight>,
    pub(crate) limit_bytes: usize,
    pub(super) closed: AtomicBool,
    /// When the last cell completed, if cells interleave, for native hosts.
    kept_at: AtomicU64,
    pub(crate) shared: Mutex<Shared<P>>,
}

/// The state that the threads of a session share.
pub(crate) struct Shared<P: Place> {
    pub(crate) machine: Machine<P>,
    /// The isolate.
    pub(crate) at: P::State,
    pub(crate) updates: Updates,
    pub(crate) settlements: Settlements,
    /// The number of the last cell.
    pub(super) cells: u64,
}

/// The work of a new run.
pub(super) enum Job<W> {
    Cell(W),
    /// A call that the host made between cells.
    Held(u32, W),
    Question(Question),
}

/// The parts of a new run beside its work.
pub(super) struct Options {
    pub(super) host: Arc<NativeHost>,
    pub(super) validated_kinds: Kinds,
    pub(super) report: bool,
    pub(super) timeout: Option<Duration>,
}

/// The one that has to do something next.
enum Next<R> {
    /// This run has its turn.
    Begins(Arc<R>),
    /// This run can resume.
    Wakes(Arc<R>),
    Nobody,
}

impl<P: Place> fmt::Debug for Session<P> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let closed = self.closed.load(Ordering::Acquire);
        out.debug_struct("Session").field("closed", &closed).finish_non_exhaustive()
    }
}

impl<P: Place> Session<P> {
    /// Opens a session of a request that was checked.
    pub(crate) fn open(place: P, request: SessionRequest, host: Arc<dyn Host>) -> Arc<Self> {
        let shared = Shared {
            machine: Machine::new(request.interleave),
            at: P::State::default(),
            updates: Updates::default(),
            settlements: Settlements::of(&request.inputs),
            cells: 0,
        };
        Self::with(place, request, host, shared)
    }

    fn with(
        place: P,
        request: SessionRequest,
        host: Arc<dyn Host>,
        shared: Shared<P>,
    ) -> Arc<Self> {
        let interceptor = request.interceptor.as_ref();
        let outside = interceptor.map(|interceptor| Interception::new(interceptor.outside()));
        let host = Arc::new(NativeHost::new(host, request.native.clone(), outside));
        // Called before anything is locked, because it calls the host.
        let validated_kinds = host.validated_kinds();
        let limit_bytes = usize::try_from(request.memory_limit()).unwrap_or(usize::MAX);
        let session = Arc::new_cyclic(|me: &Weak<Self>| Self {
            me: Weak::clone(me),
            place,
            slot: OnceLock::new(),
            host,
            validated_kinds,
            request,
            in_flight: Arc::default(),
            limit_bytes,
            closed: AtomicBool::new(false),
            kept_at: AtomicU64::new(0),
            shared: Mutex::new(shared),
        });
        let control: Weak<dyn SessionControl> = session.me();
        session.place.registry().open(control, &session.slot);
        session.host.started(&(Arc::clone(&session) as Arc<dyn Recipient>));
        session
    }

    /// The state for a copy of it, but for the isolate's own.
    pub(crate) fn state_of_copy(&self) -> Result<Shared<P>, Error> {
        let shared = self.shared.lock();
        if self.is_closed() {
            return Err(closed_meanwhile());
        }
        Ok(Shared {
            machine: shared.machine.copy(Inbound::copy),
            at: P::copy(&shared.at),
            updates: shared.updates.clone(),
            settlements: shared.settlements.copy(),
            cells: shared.cells,
        })
    }

    /// A second session with that state. `under_way`: futures of native functions that the copy makes again.
    pub(crate) fn copy(
        &self,
        (place, state): (P, Shared<P>),
        under_way: Vec<Repeatable>,
        Outside { host, interceptor }: Outside,
    ) -> Arc<dyn SessionControl> {
        let request = SessionRequest { interceptor, ..self.request.clone() };
        let copy = Self::with(place, request, host, state);
        copy.host.repeat(&self.host, under_way);
        copy
    }

    pub(crate) fn me(&self) -> Weak<Self> {
        Weak::clone(&self.me)
    }

    /// The parts of runs that nobody has a handle on.
    pub(super) fn outside(&self) -> Options {
        Options {
            host: Arc::clone(&self.host),
            validated_kinds: self.validated_kinds,
            report: self.request.report,
            timeout: None,
        }
    }

    /// Makes a run of this session with that number, which nobody has queued yet.
    pub(super) fn make(&self, number: u32, job: Job<P::Work>, options: Options) -> Arc<P::Run> {
        let session = self.me.upgrade().expect("a session is used through a pointer that counts");
        let (kind, work, question) = match job {
            Job::Cell(work) => (Kind::Cell, Some(work), None),
            Job::Held(call, work) => (Kind::Held(call), Some(work), None),
            Job::Question(question) => (question.kind(), None, Some(question)),
        };
        let Options { host, validated_kinds, report, timeout } = options;
        let own = P::part(work.as_ref());
        let part = InSession::new(session, (number, kind), host, question, own);
        let new = NewRun { part, work, validated_kinds, report, timeout };
        self.place.registry().admit(|slot| self.place.run(slot, new))
    }

    /// The run of a call that the host makes between cells. The place has the message if there is none.
    fn held(
        &self,
        shared: &mut Shared<P>,
        call: u32,
        message: Option<Inbound>,
    ) -> Option<Arc<P::Run>> {
        let work = match message {
            Some(Inbound::FunctionCall { function, args, call }) => {
                Work::Held { function, args, call }.into()
            }
            _ => P::left(call)?,
        };
        let mut options = self.outside();
        if let Some(interceptor) = &self.request.interceptor {
            let interception = Interception::new(interceptor.held());
            options.host = Arc::new(self.host.cell(self.host.bare(), Some(interception)));
        }
        let number = shared.machine.number();
        let run = self.make(number, Job::Held(call, work), options);
        shared.machine.hold(number, call, Arc::clone(&run));
        Some(run)
    }

    /// Puts a run at the end of the queue. One that comes after the end is ended.
    pub(super) fn queue(&self, run: &Arc<P::Run>, kind: Kind) {
        let mut shared = self.shared.lock();
        if self.is_closed() {
            drop(shared);
            return run.end(Reason::Closed);
        }
        shared.machine.push(run.in_session(), kind, Arc::clone(run));
        self.go_on(shared);
        if self.place.registry().is_closed() {
            // Another thread closed the runtime meanwhile, and may not have seen this run.
            run.end(Reason::of_caller(Some(registry::CLOSED)));
        }
    }

    /// The run whose turn it is now, if nobody has it.
    fn next(&self, shared: &mut Shared<P>) -> Next<P::Run> {
        if self.place.registry().is_closed() {
            shared.machine.refuse_calls();
        }
        let begins = match P::next(shared) {
            Some(Turn::Run(run)) => Some(run),
            Some(Turn::Call(call, message)) => self.held(shared, call, message),
            None => return P::idle(shared).map_or(Next::Nobody, Next::Wakes),
        };
        if let Some(part) = begins.as_deref().and_then(P::Run::part) {
            part.take_turn();
        }
        begins.map_or(Next::Nobody, Next::Begins)
    }

    /// Gives the next run its turn.
    pub(crate) fn go_on(&self, mut shared: MutexGuard<'_, Shared<P>>) {
        let next = self.next(&mut shared);
        drop(shared);
        self.start(next);
    }

    fn start(&self, next: Next<P::Run>) {
        match next {
            Next::Begins(run) => P::grant(self, run),
            Next::Wakes(run) => self.place.wake(run),
            Next::Nobody => {}
        }
    }

    /// A cell waits for the host: it is handed the calls that wait.
    pub(crate) fn waits(&self, run: &Arc<P::Run>) {
        let wakes = self.shared.lock().hand_over(run);
        if wakes {
            self.place.wake(Arc::clone(run));
        }
    }

    /// A run is over, and has settled.
    pub(crate) fn leave(&self, run: &P::Run, over: Over<P>) {
        let Over { effect, isolate, inbox, late, error, undone, has_completed } = over;
        let question = run.part().and_then(InSession::take_question);
        match question {
            Some(Question::Reset(done)) if effect.is_reset() => done(Ok(())),
            Some(question) => question.refuse(run.record(Record::refusal)),
            None => {}
        }
        let number = run.in_session();
        let (next, undone, gone) = {
            let mut shared = self.shared.lock();
            let had_turn = shared.machine.is_current(number);
            let is_anew = effect.state() != SessionState::Kept || run.kind() == Some(Kind::Reset);
            let again = if is_anew { shared.settlements.again().collect() } else { Vec::new() };
            let left = Left { effect, inbox, again, late, undone };
            let undone = shared.machine.leave(number, left);
            if has_completed && had_turn {
                self.note_completed(run);
            }
            let gone = self.place.leave(&mut shared, run, (effect, had_turn), isolate);
            (self.next(&mut shared), undone, gone)
        };
        P::let_go(gone);
        let Undone { calls, lost, runs, asked } = undone;
        for asked in asked {
            asked.undo_with(Reason::Reset, SessionState::Reset);
        }
        if !runs.is_empty() {
            let state = if effect.is_reset() { SessionState::Reset } else { effect.state() };
            self.undo(runs, &self.reason_of_undone(state), state, error.as_ref());
        }
        self.start(next);
        self.reject_with(calls, error.as_ref());
        self.reject(lost, RESET);
        self.free_when_idle();
        self.place.has_left();
    }

    /// Nothing before the end of that cell is ever undone.
    pub(crate) fn note_completed(&self, run: &P::Run) {
        if run.number() != 0 {
            self.kept_at.store(self.host.now(), Ordering::Relaxed);
        }
    }

    /// The moment from which on the native host undoes its work for a cell that began at the given one.
    pub(crate) fn undone_since(&self, began: u64) -> u64 {
        began.max(self.kept_at.load(Ordering::Relaxed))
    }

    /// Settles cells that were undone with another one, and rejects the host's calls in them with the error of each, or
    /// else that of the other one.
    pub(crate) fn undo(
        &self,
        runs: Vec<(Arc<P::Run>, Vec<u32>)>,
        reason: &Reason,
        state: SessionState,
        error: Option<&Failure>,
    ) {
        let state = if matches!(reason, Reason::Reset) { SessionState::Reset } else { state };
        for (run, calls) in runs {
            run.undo_with(reason.clone(), state);
            self.reject_with(calls, run.failure().as_ref().or(error));
        }
    }

    /// Why a cell ends that is undone with another one: the close or the reset that ends the other one ends this one, too.
    pub(crate) fn reason_of_undone(&self, state: SessionState) -> Reason {
        if state == SessionState::Reset {
            Reason::Reset
        } else if self.place.registry().is_closed() {
            Reason::of_caller(Some(registry::CLOSED))
        } else if self.is_closed() {
            Reason::Closed
        } else if self.shared.lock().machine.is_ending() {
            Reason::Reset
        } else {
            Reason::RolledBack
        }
    }

    /// Ends all runs for a reason, and rejects the host's calls.
    pub(super) fn end_all(&self, reason: &Reason, error: (&str, &str)) {
        let (Ends { runs, calls }, gone) = {
            let mut shared = self.shared.lock();
            let ends = shared.machine.end_all(matches!(reason, Reason::Reset));
            (ends, P::give_up(&mut shared))
        };
        for run in runs {
            run.abort(reason.clone());
        }
        self.reject(calls, error);
        P::let_go(gone);
        let mut shared = self.shared.lock();
        shared.machine.has_ended();
        self.go_on(shared);
        self.free_when_idle();
    }

    /// Whether the outcome of a call of the host is for the host: the first one is.
    pub(crate) fn takes_outcome(&self, call: u32) -> bool {
        self.shared.lock().machine.settle(call)
    }

    /// Tells the host that calls which it made end with that error.
    pub(crate) fn reject(&self, calls: Vec<u32>, (name, message): (&str, &str)) {
        for call in calls {
            self.host.function_settled(call, Err(thrown(name, message)));
        }
    }

    /// The same with the error with which a run has ended, if it has one.
    pub(crate) fn reject_with(&self, calls: Vec<u32>, error: Option<&Failure>) {
        self.reject(calls, error.map_or(RESET, |(name, message)| (name, message)));
    }

    /// Frees everything, once no run is left.
    pub(crate) fn free_when_idle(&self) {
        let (freed, gone) = {
            let mut shared = self.shared.lock();
            let Some(freed) = shared.machine.free() else { return };
            (freed, self.place.free(&mut shared))
        };
        if freed.is_first {
            self.closed.store(true, Ordering::Release);
            if let Some(slot) = self.slot.get() {
                self.place.registry().forget_session(*slot);
            }
        }
        P::let_go(gone);
        if freed.is_first {
            self.reject(freed.calls, CLOSED);
            self.host.settled();
        }
        for done in freed.closers {
            done(());
        }
    }
}

impl<P: Place> Shared<P> {
    /// Gives the cell whose turn it is the calls that wait, and the messages behind them, if it waits for the host. Returns
    /// whether it can resume.
    pub(crate) fn hand_over(&mut self, run: &P::Run) -> bool {
        self.machine.hand_over(run.in_session(), |run, messages| run.resume_with(messages))
    }

    /// Has the next cell be handed the outcomes of promises among the capabilities, which the session has anew.
    pub(crate) fn settle_again(&mut self) {
        self.machine.put_first(self.settlements.again());
    }
}
