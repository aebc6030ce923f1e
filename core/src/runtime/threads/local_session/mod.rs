//! A session on threads of this process.
//!
//! In: cells, calls, questions, updates, messages of the host. Out: one run after another gets the session's isolate,
//! as the [`Machine`] says. A cell is a [`Run`]; so is a question that needs the isolate. Between two of them the isolate
//! rests here.
//!
//! The session's lock is never held while the engine or the host is called, nor while a run is ended.

mod control;
mod delivery;

use std::{
    fmt,
    sync::{
        Arc, MutexGuard, Weak,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use super::{
    homes::Stay,
    resources::Resources,
    run::{
        Run, Start, Work,
        cell::{CellSession, InSession, Left, Place},
    },
    scheduler::Job,
    seams::Seams,
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
    isolate::{
        Termination,
        session::{Addressee, SessionIsolate, Work as CellWork},
    },
    modules::{request::timeout, session_request::SessionRequest},
    os::sync::Mutex,
    runtime::{
        record::{CLOSED, RESET, Reason},
        registry::{self, Runs},
        session::{Done, SessionControl},
        sessions::{
            self, Effect, Ends, Kind, Machine, Parts, Resting, Settlements, Turn, Undone, Updates,
        },
    },
    value::InFlight,
};

/// One session.
pub(super) struct Session {
    me: Weak<Self>,
    resources: Arc<Resources<Run>>,
    /// Where the runtime keeps it.
    place: usize,
    /// For events outside of the caller's cells.
    host: Arc<NativeHost>,
    request: SessionRequest,
    in_flight: Arc<InFlight>,
    limit_bytes: usize,
    closed: AtomicBool,
    shared: Mutex<Shared>,
    /// When the last cell completed, for native hosts.
    kept_at: AtomicU64,
    /// Its place in a home, from the first cell on. Locked when `shared` is, and not the other way.
    stay: Mutex<Option<Arc<Stay<Run>>>>,
}

/// The state that the threads of a session share.
struct Shared {
    machine: Machine<Here>,
    /// The isolate at rest; `None` while a run has it, and before the first cell.
    isolate: Option<Box<SessionIsolate>>,
    /// How many isolates of it are lost: each begins other numbers of functions and promises.
    lost: u32,
    updates: Updates,
    settlements: Settlements,
    /// The number of the last cell.
    cells: u64,
}

/// The parts of a session whose isolate is here.
struct Here;

impl Parts for Here {
    type Run = Arc<Run>;
    type Message = Inbound;
    type Closer = Done<()>;
}

impl Resting<Inbound> for SessionIsolate {
    fn addressee(&self, message: &Inbound) -> Addressee {
        Self::addressee(self, message)
    }

    fn wanted(&self) -> Option<u32> {
        Self::wanted(self)
    }

    fn can_resume(&self) -> bool {
        Self::can_resume(self)
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let closed = self.closed.load(Ordering::Acquire);
        out.debug_struct("Session").field("closed", &closed).finish_non_exhaustive()
    }
}

impl Session {
    /// Opens a session of a request that was checked.
    pub(super) fn open(
        resources: Arc<Resources<Run>>,
        request: SessionRequest,
        host: Arc<dyn Host>,
    ) -> Result<Arc<Self>, Error> {
        if !SessionIsolate::is_available(request.interleave) {
            let message = "this build of the engine has no sessions";
            return Err(Error::new(ErrorKind::Unavailable, message));
        }
        let shared = Shared {
            machine: Machine::new(request.interleave),
            isolate: None,
            lost: 0,
            updates: Updates::default(),
            settlements: Settlements::of(&request.inputs),
            cells: 0,
        };
        Ok(Self::with(resources, request, host, shared, None))
    }

    fn with(
        resources: Arc<Resources<Run>>,
        request: SessionRequest,
        host: Arc<dyn Host>,
        shared: Shared,
        stay: Option<Arc<Stay<Run>>>,
    ) -> Arc<Self> {
        let interceptor = request.interceptor.as_ref();
        let outside = interceptor.map(|interceptor| Interception::new(interceptor.outside()));
        let host = Arc::new(NativeHost::new(host, request.native.clone(), outside));
        let limit_bytes = usize::try_from(request.memory_limit()).unwrap_or(usize::MAX);
        let registered = Arc::clone(&resources);
        let mut sessions = registered.sessions.lock();
        let vacant = sessions.vacant_entry();
        let session = Arc::new_cyclic(|me: &Weak<Self>| Self {
            me: Weak::clone(me),
            resources,
            place: vacant.key(),
            host,
            request,
            in_flight: Arc::default(),
            limit_bytes,
            closed: AtomicBool::new(false),
            shared: Mutex::new(shared),
            kept_at: AtomicU64::new(0),
            stay: Mutex::new(stay),
        });
        let control: Weak<dyn SessionControl> = session.me.clone();
        vacant.insert(control);
        drop(sessions);
        session.host.started(&(Arc::clone(&session) as Arc<dyn Recipient>));
        session
    }

    /// Makes a run of this session with that number, which nobody has queued yet.
    fn make(&self, number: u32, work: Work, kind: Kind, options: Options) -> Arc<Run> {
        let session = self.me.upgrade().expect("a session is used through a pointer that counts");
        let Options { host, interception, report, timeout_ms } = options;
        let cell = |host| Arc::new(self.host.cell(host, interception));
        let native = host.map_or_else(|| Arc::clone(&self.host), cell);
        let interleaves = self.request.interleave;
        let part = InSession::new(session, (number, interleaves), Arc::clone(&native), kind);
        let start = Start {
            work,
            host: native,
            termination: Arc::new(Termination::of_cell(Arc::clone(&self.in_flight))),
            memory_limit: self.request.memory_limit(),
            report: report.unwrap_or(self.request.report),
            timeout: timeout(timeout_ms),
            seams: Seams::of(""),
            cell: Some(part),
        };
        let resources = &self.resources;
        let run = resources.registry.admit(|place| Run::new(Arc::clone(resources), place, start));
        resources.watchdog.attend();
        run
    }

    /// The run of a call that the host makes between cells.
    fn held(&self, shared: &mut Shared, message: Inbound) -> Option<Arc<Run>> {
        let Inbound::FunctionCall { function, args, call } = message else { return None };
        let work = Work::Cell(CellWork::Held { function, args, call });
        let interceptor = self.request.interceptor.as_ref();
        let interception = interceptor.map(|interceptor| Interception::new(interceptor.held()));
        let host = interception.is_some().then(|| self.host.bare());
        let options = Options { host, interception, ..Options::default() };
        let number = shared.machine.number();
        let run = self.make(number, work, Kind::Held(call), options);
        shared.machine.hold(number, call, Arc::clone(&run));
        Some(run)
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
        if self.resources.registry.is_closed() {
            // Another thread closed the runtime meanwhile, and may not have seen this run.
            run.end(Reason::of_caller(Some(registry::CLOSED)));
        }
    }

    /// The run whose turn it is now, if nobody has it.
    fn next(&self, shared: &mut Shared) -> Option<Arc<Run>> {
        if self.resources.registry.is_closed() {
            shared.machine.refuse_calls();
        }
        let (next, resumable) = shared.machine.next_of(shared.isolate.as_deref());
        for run in resumable {
            run.forget_stalled();
        }
        let run = match next? {
            Turn::Run(run) => run,
            Turn::Call(_, message) => self.held(shared, message?)?,
        };
        run.take_turn();
        Some(run)
    }

    /// Gives the next run its turn.
    fn go_on(&self, mut shared: MutexGuard<'_, Shared>) {
        let next = self.next(&mut shared);
        drop(shared);
        self.start(next);
    }

    /// Has the run granted the home of the session.
    fn start(&self, next: Option<Arc<Run>>) {
        let Some(run) = next else { return };
        let stay = {
            let mut stay = self.stay.lock();
            let homes = &self.resources.homes;
            let is_extended = self.request.extension.is_some();
            let stays =
                || Arc::new(homes.stay(&self.resources.pool, self.limit_bytes, is_extended));
            Arc::clone(stay.get_or_insert_with(stays))
        };
        stay.request(&run);
    }

    /// Ends all runs for a reason, and rejects the host's calls.
    fn end_all(&self, reason: &Reason, error: (&str, &str)) {
        let is_reset = matches!(reason, Reason::Reset);
        let Ends { runs, calls } = self.shared.lock().machine.end_all(is_reset);
        for run in runs {
            run.end(reason.clone());
        }
        self.reject(calls, error);
        let mut shared = self.shared.lock();
        shared.machine.has_ended();
        self.go_on(shared);
        self.free_when_idle();
    }

    /// Why a cell ends that is undone with another one: the close or the reset that ends the other one ends this one, too.
    fn reason_of_undone(&self) -> Reason {
        if self.resources.registry.is_closed() {
            Reason::of_caller(Some(registry::CLOSED))
        } else if self.closed.load(Ordering::Acquire) {
            Reason::Closed
        } else if self.shared.lock().machine.is_ending() {
            Reason::Reset
        } else {
            Reason::RolledBack
        }
    }

    /// Tells the host that calls which it made end with that error.
    fn reject(&self, calls: Vec<u32>, (name, message): (&str, &str)) {
        for call in calls {
            self.host.function_settled(call, Err(thrown(name, message)));
        }
    }

    /// Frees everything, once no run is left.
    fn free_when_idle(&self) {
        let (freed, held) = {
            let mut shared = self.shared.lock();
            let Some(freed) = shared.machine.free() else { return };
            let held = freed.is_first.then(|| (shared.isolate.take(), self.stay.lock().take()));
            (freed, held)
        };
        if let Some(held) = held {
            self.closed.store(true, Ordering::Release);
            let unregistered = self.resources.sessions.lock().try_remove(self.place);
            drop(unregistered);
            drop(held);
            self.reject(freed.calls, CLOSED);
            self.host.settled();
        }
        for done in freed.closers {
            done(());
        }
    }
}

/// The parts of a session's run beside its work.
#[derive(Default)]
struct Options {
    /// The session's own if `None`.
    host: Option<Arc<dyn Host>>,
    interception: Option<Interception>,
    report: Option<bool>,
    timeout_ms: Option<f64>,
}

impl CellSession for Session {
    fn enqueue(&self, run: &Arc<Run>) {
        if run.number() == 0 {
            return self.start(Some(Arc::clone(run)));
        }
        let mut shared = self.shared.lock();
        shared.machine.call(run.in_session(), run.is_ending());
        self.go_on(shared);
    }

    fn enter(&self, run: &Run) -> Option<(Box<SessionIsolate>, Vec<Inbound>)> {
        let (isolate, updates, inbox, applied, (stay, lost)) = {
            let mut shared = self.shared.lock();
            let Shared { machine, isolate, updates, lost, .. } = &mut *shared;
            machine.begin(run.in_session());
            machine.dispatch(isolate.as_deref());
            let isolate = isolate.take();
            let applied = if isolate.is_none() { updates.applied().to_vec() } else { Vec::new() };
            let (updates, inbox) = (updates.take(), machine.take_inbox());
            (isolate, updates, inbox, applied, (self.stay.lock().clone(), *lost))
        };
        let resources = &self.resources;
        let mut isolate = match isolate {
            Some(isolate) => isolate,
            None => {
                let tenant = stay?.tenant(&resources.pool, self.limit_bytes)?;
                let mut isolate =
                    SessionIsolate::open(tenant, self.request.clone(), &resources.cache);
                isolate.number_after(lost);
                for update in applied {
                    isolate.update(update);
                }
                isolate
            }
        };
        for update in updates {
            isolate.update(update);
        }
        Some((isolate, inbox))
    }

    fn isolate(&self) -> Option<Box<SessionIsolate>> {
        self.shared.lock().isolate.take()
    }

    fn leave(&self, run: &Arc<Run>, left: Left) {
        let Left { place, state, inbox, error, undone, has_completed } = left;
        let (name, message) = error.unwrap_or_else(|| (RESET.0.to_owned(), RESET.1.to_owned()));
        let effect = match &place {
            Place::Untouched => Effect::Untouched,
            Place::Back(_) => Effect::Back(state),
            Place::Lost => Effect::Lost,
        };
        let mut gone_stay = None;
        let (next, gone, undone) = {
            let mut shared = self.shared.lock();
            let has_isolate = shared.machine.is_current(run.in_session());
            let is_anew = state != SessionState::Kept || run.kind() == Some(Kind::Reset);
            let again = if is_anew { shared.settlements.again().collect() } else { Vec::new() };
            let left = sessions::Left { inbox, again, undone, ..sessions::Left::of(effect) };
            let undone = shared.machine.leave(run.in_session(), left);
            if has_completed && has_isolate && run.number() != 0 {
                self.kept_at.store(self.host.now(), Ordering::Relaxed);
            }
            let gone = match place {
                Place::Back(isolate) if has_isolate => {
                    std::mem::replace(&mut shared.isolate, isolate)
                }
                Place::Lost if has_isolate => {
                    shared.lost = shared.lost.wrapping_add(1);
                    gone_stay = self.stay.lock().take();
                    shared.isolate.take()
                }
                // It waited in the queue, or the session began anew without it.
                Place::Back(isolate) => isolate,
                Place::Untouched | Place::Lost => None,
            };
            (self.next(&mut shared), gone, undone)
        };
        drop(gone);
        let reason = match state {
            SessionState::Reset => Reason::Reset,
            _ => self.reason_of_undone(),
        };
        let state = if matches!(reason, Reason::Reset) { SessionState::Reset } else { state };
        let Undone { calls, runs, .. } = undone;
        for (run, calls) in runs {
            let error = run.undo_with(reason.clone(), state);
            let (name, message) =
                error.as_ref().map_or((&name, &message), |(name, text)| (name, text));
            self.reject(calls, (name, message));
        }
        if let Some(stay) = gone_stay {
            stay.mark_stuck();
        }
        self.start(next);
        self.reject(calls, (&name, &message));
        self.free_when_idle();
        self.resources.close_when_idle();
    }

    /// As [`SessionRequest::keeps_logs`].
    fn keeps_logs(&self) -> bool {
        self.request.keeps_logs
    }

    fn parked(&self, run: &Arc<Run>) {
        self.shared.lock().hand_over(run);
    }

    fn takes_outcome(&self, call: u32) -> bool {
        self.shared.lock().machine.settle(call)
    }

    fn resume(&self, run: &Run) -> Option<(Box<SessionIsolate>, Vec<Inbound>, Vec<Inbound>)> {
        let mut shared = self.shared.lock();
        let Shared { machine, isolate, .. } = &mut *shared;
        machine.dispatch(isolate.as_deref());
        let isolate = isolate.take()?;
        let (own, others) = machine.resume(run.in_session());
        Some((isolate, own, others))
    }

    fn rest(&self, run: &Arc<Run>, isolate: Box<SessionIsolate>, is_stalled: bool) {
        let mut shared = self.shared.lock();
        if !shared.machine.rest(run.in_session(), is_stalled) {
            // The session began anew without it.
            drop(shared);
            return drop(isolate);
        }
        shared.isolate = Some(isolate);
        self.go_on(shared);
    }

    fn is_resting(&self, run: &Run) -> bool {
        self.shared.lock().machine.is_resting(run.in_session())
    }

    fn press(&self, run: &Arc<Run>) {
        let other = self.shared.lock().machine.computes_beside(run.in_session()).cloned();
        if let Some(other) = other {
            other.end(self.reason_of_undone());
        }
    }

    fn undone_since(&self, began: u64) -> u64 {
        began.max(self.kept_at.load(Ordering::Relaxed))
    }
}

impl Shared {
    /// Gives the cell whose turn it is the calls that wait, and the messages behind them, if it waits for the host.
    fn hand_over(&mut self, run: &Run) {
        self.machine.hand_over(run.in_session(), Run::resume_with);
    }
}
