//! A session on threads of this process.
//!
//! In: cells, calls, questions, updates, messages of the host. Out: one run after another gets the session's isolate,
//! in the order of the calls. A cell is a [`Run`]; so is a question that needs the isolate. Between two of them the
//! isolate rests here, and messages of the host wait here.
//!
//! The session's lock is never held while the engine or the host is called, nor while a run is ended.

mod control;
mod delivery;
mod interleave;

use std::{
    fmt,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
    },
};

use super::{
    homes::Stay,
    resources::Resources,
    run::{
        Run, Start, Work,
        cell::{CellSession, InSession, Kind, Left, Place},
    },
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
        session::{SessionIsolate, Work as CellWork},
    },
    modules::{
        request::timeout,
        session_request::{SessionRequest, UpdateRequest},
    },
    os::sync::Mutex,
    runtime::{
        calls::{Calls, Placed},
        record::{CLOSED, RESET, Reason},
        registry::{self, Runs},
        session::{Done, SessionControl},
        settlements::Settlements,
        turns::{Entry, Turns},
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
    /// The number of the last run, if cells interleave.
    runs: AtomicU32,
    /// When the last cell completed, for native hosts.
    kept_at: AtomicU64,
    /// Its place in a home, from the first cell on. Locked when `shared` is, and not the other way.
    stay: Mutex<Option<Arc<Stay<Run>>>>,
}

/// The state that the threads of a session share.
#[derive(Default)]
struct Shared {
    /// The runs and calls that wait for their turn.
    queue: Turns<Run>,
    /// The run whose turn it is.
    current: Option<Arc<Run>>,
    /// The cells that have begun and are not over, if cells interleave, in the order in which they began. They wait for
    /// the host, but for the current one and those in the queue.
    flights: Vec<Arc<Run>>,
    /// How many isolates of it are lost.
    lost: u32,
    /// The isolate at rest; `None` while a run has it, and before the first cell.
    isolate: Option<Box<SessionIsolate>>,
    /// Updates that no isolate has yet, and those that a new one would need.
    pending: Vec<UpdateRequest>,
    applied: Vec<UpdateRequest>,
    /// Messages of the host for the next cell.
    inbox: Vec<Inbound>,
    /// How many of them, from the first on, are for no cell in flight. They are not looked at again until one computes or
    /// ends: a host may settle thousands of promises of a cell that was undone.
    looked_at: usize,
    settlements: Settlements,
    calls: Calls<Run>,
    /// The number of the last cell.
    cells: u64,
    /// Nobody has a handle any more.
    abandoned: bool,
    /// How many threads end runs at the moment: the host hears of their ends before that of the session.
    ending: usize,
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
        let settlements = Settlements::of(&request.inputs);
        let shared = Shared { settlements, ..Shared::default() };
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
            runs: AtomicU32::new(0),
            kept_at: AtomicU64::new(0),
            stay: Mutex::new(stay),
        });
        let control: Weak<dyn SessionControl> = session.me.clone();
        vacant.insert(control);
        drop(sessions);
        session.host.started(&(Arc::clone(&session) as Arc<dyn Recipient>));
        session
    }

    /// Makes a run of this session, which nobody has queued yet.
    fn make(&self, work: Work, kind: Kind, options: Options) -> Arc<Run> {
        let session = self.me.upgrade().expect("a session is used through a pointer that counts");
        let Options { host, interception, report, timeout_ms } = options;
        let cell = |host| Arc::new(self.host.cell(host, interception));
        let native = host.map_or_else(|| Arc::clone(&self.host), cell);
        let number = self.next_number(kind);
        let call = match &work {
            Work::Cell(CellWork::Held { call, .. }) => Some(*call),
            _ => None,
        };
        let part = InSession::new(session, number, Arc::clone(&native), kind, call);
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

    /// Puts a run at the end of the queue. One that comes after the end is ended.
    fn queue(&self, run: &Arc<Run>) {
        let mut shared = self.shared.lock();
        if self.closed.load(Ordering::Acquire) {
            drop(shared);
            return run.end(Reason::Closed);
        }
        shared.queue.push(Arc::clone(run));
        let next = self.advance(&mut shared);
        drop(shared);
        self.start(next);
        if self.resources.registry.is_closed() {
            // Another thread closed the runtime meanwhile, and may not have seen this run.
            run.end(Reason::of_caller(Some(registry::CLOSED)));
        }
    }

    /// Gives a run its turn.
    fn start(&self, next: Option<Arc<Run>>) {
        if let Some(run) = next {
            self.request_home(&run);
        }
    }

    /// Ends all runs for a reason, and rejects the host's calls. A reset leaves those before it, which have the same
    /// effect.
    fn end_all(&self, reason: &Reason, error: (&str, &str)) {
        let (runs, calls) = {
            let mut shared = self.shared.lock();
            let stays =
                |run: &Arc<Run>| run.kind() == Some(Kind::Reset) && matches!(reason, Reason::Reset);
            // Cells in flight end in a turn of their own.
            let (left, waiting): (Vec<_>, Vec<_>) =
                shared.queue.drain().into_iter().partition(|run| stays(run) || run.is_called());
            for run in left {
                shared.queue.push(run);
            }
            // The one that computes first: the end of another cell in flight would undo it.
            let mut runs = Vec::from_iter(shared.current.clone().filter(|run| !stays(run)));
            runs.extend(waiting);
            runs.extend(shared.flights.iter().cloned());
            drop(shared.take_inbox());
            shared.ending += 1;
            (runs, shared.calls.take_all())
        };
        for run in runs {
            run.end(reason.clone());
        }
        self.reject(calls, error);
        self.shared.lock().ending -= 1;
        self.free_when_idle();
    }

    /// Why a cell ends that is undone with another one: the close or the reset that ends the other one ends this one, too.
    fn reason_of_undone(&self) -> Reason {
        if self.resources.registry.is_closed() {
            Reason::of_caller(Some(registry::CLOSED))
        } else if self.closed.load(Ordering::Acquire) {
            Reason::Closed
        } else if self.shared.lock().ending > 0 {
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

    /// Frees everything, once no run has the isolate.
    fn free_when_idle(&self) {
        let (held, closers) = {
            let mut shared = self.shared.lock();
            let ends = self.closed.load(Ordering::Acquire) || shared.abandoned;
            let is_busy =
                shared.current.is_some() || !shared.flights.is_empty() || shared.ending > 0;
            if !ends || is_busy || !shared.queue.is_empty() {
                return;
            }
            if shared.freed {
                (None, std::mem::take(&mut shared.closers))
            } else {
                shared.freed = true;
                drop(shared.take_inbox());
                let held = (shared.isolate.take(), self.stay.lock().take());
                (Some(held), std::mem::take(&mut shared.closers))
            }
        };
        if let Some(held) = held {
            self.closed.store(true, Ordering::Release);
            let unregistered = self.resources.sessions.lock().try_remove(self.place);
            drop(unregistered);
            drop(held);
            let calls = self.shared.lock().calls.take_all();
            self.reject(calls, CLOSED);
            self.host.settled();
        }
        for done in closers {
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

impl Shared {
    /// Gives the cell whose turn it is the calls that wait, and the messages behind them, if it waits for the host.
    pub(super) fn hand_over(&mut self, run: &Arc<Run>) {
        if !self.queue.has_messages() {
            return;
        }
        let messages = self.queue.take_messages();
        let call = |inbound: &Inbound| match inbound {
            Inbound::FunctionCall { call, .. } => Some(*call),
            _ => None,
        };
        let calls: Vec<u32> = messages.iter().filter_map(call).collect();
        if let Err(messages) = run.resume_with(messages) {
            return self.queue.put_back(messages);
        }
        let count = calls.len();
        for call in calls {
            self.calls.place(call, Placed::In(Arc::downgrade(run)));
        }
        self.note_over(count);
    }

    /// Notes that so many entries of the queue will have no turn.
    fn note_over(&mut self, count: usize) {
        let Self { queue, calls, .. } = self;
        queue.note_over(count, |entry| match entry {
            Entry::Run(run) => run.is_waiting() || run.is_called(),
            Entry::Call(call) => calls.waits(*call),
        });
    }

    fn take_inbox(&mut self) -> Vec<Inbound> {
        self.looked_at = 0;
        std::mem::take(&mut self.inbox)
    }

    /// Notes that an isolate has these updates.
    fn note_applied(&mut self, updates: Vec<UpdateRequest>) {
        for update in updates {
            self.applied.retain(|earlier| !update.covers(earlier));
            self.applied.push(update);
        }
    }
}

impl Session {
    /// The run whose turn it is now, if nobody has it.
    fn advance(&self, shared: &mut Shared) -> Option<Arc<Run>> {
        if shared.current.is_some() {
            return None;
        }
        self.dispatch(shared);
        loop {
            let run = match shared.next_entry()? {
                Entry::Run(run) => run,
                Entry::Call(call) => {
                    if self.resources.registry.is_closed() {
                        // The end of the session rejects it, which comes right away.
                        shared.queue.push_first(Entry::Call(call));
                        return None;
                    }
                    let message = shared.queue.take_call(call);
                    let message = message.filter(|_| shared.calls.is_pending(call));
                    let Some(run) = message.and_then(|message| self.held(shared, message)) else {
                        continue;
                    };
                    run
                }
            };
            let begins = run.is_waiting();
            // Those that were ended meanwhile have settled.
            if begins || run.is_called() {
                if begins && run.number() != 0 {
                    shared.flights.push(Arc::clone(&run));
                }
                shared.current = Some(Arc::clone(&run));
                return Some(run);
            }
        }
    }
}

impl CellSession for Session {
    fn enqueue(&self, run: &Arc<Run>) {
        if run.number() != 0 {
            return self.queue_called(run);
        }
        self.request_home(run);
    }

    fn enter(&self) -> Option<(Box<SessionIsolate>, Vec<Inbound>)> {
        let (isolate, updates, inbox, applied, (stay, lost)) = {
            let mut shared = self.shared.lock();
            self.dispatch(&mut shared);
            let updates = std::mem::take(&mut shared.pending);
            let isolate = shared.isolate.take();
            let applied = if isolate.is_none() { shared.applied.clone() } else { Vec::new() };
            shared.note_applied(updates.clone());
            let inbox = shared.take_inbox();
            (isolate, updates, inbox, applied, (self.stay.lock().clone(), shared.lost))
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
        let mut gone_stay = None;
        let (next, lost, gone, undone) = {
            let mut shared = self.shared.lock();
            shared.looked_at = 0;
            if !shared.current.as_ref().is_some_and(|current| Arc::ptr_eq(current, run)) {
                // It waited in the queue, or the session began anew without it.
                shared.note_over(1);
                shared.flights.retain(|other| !Arc::ptr_eq(other, run));
                let lost = shared.calls.end_of(run.call_of_host());
                let next = self.advance(&mut shared);
                drop(shared);
                drop(place);
                self.start(next);
                return self.reject(lost, (&name, &message));
            }
            shared.current = None;
            if state != SessionState::Kept || run.kind() == Some(Kind::Reset) {
                let again: Vec<_> = shared.settlements.again().collect();
                shared.inbox.splice(..0, again);
            }
            shared.keep_for_later(inbox);
            let behind = shared.queue.take_behind();
            shared.inbox.extend(behind);
            let undone = shared.end_flights(run, state, &undone);
            let mut lost = shared.calls.end_of(run.call_of_host());
            if has_completed && run.number() != 0 {
                self.kept_at.store(self.host.now(), Ordering::Relaxed);
            }
            match state {
                SessionState::Kept => {}
                SessionState::RolledBack => lost.append(&mut shared.calls.undo(run)),
                SessionState::Reset => lost.append(&mut shared.calls.forget()),
            }
            let gone = match place {
                Place::Untouched => None,
                Place::Back(isolate) => std::mem::replace(&mut shared.isolate, isolate),
                Place::Lost => {
                    shared.lost = shared.lost.wrapping_add(1);
                    gone_stay = self.stay.lock().take();
                    shared.isolate.take()
                }
            };
            let mut others = Vec::new();
            for run in undone {
                let mut calls = shared.calls.undo(&run);
                calls.append(&mut shared.calls.end_of(run.call_of_host()));
                shared.inbox.append(&mut run.take_messages());
                others.push((run, calls));
            }
            (self.schedule(&mut shared), lost, gone, others)
        };
        drop(gone);
        let reason = match state {
            SessionState::Reset => Reason::Reset,
            _ => self.reason_of_undone(),
        };
        let state = if matches!(reason, Reason::Reset) { SessionState::Reset } else { state };
        for (run, calls) in undone {
            let error = run.undo_with(reason.clone(), state);
            let error =
                error.as_ref().map_or((name.as_str(), message.as_str()), |(name, message)| {
                    (name.as_str(), message.as_str())
                });
            self.reject(calls, error);
        }
        if let Some(stay) = gone_stay {
            stay.mark_stuck();
        }
        self.start(next);
        self.reject(lost, (&name, &message));
        self.free_when_idle();
        self.resources.close_when_idle();
    }

    /// As [`SessionRequest::keeps_logs`].
    fn keeps_logs(&self) -> bool {
        self.request.keeps_logs
    }

    fn parked(&self, run: &Arc<Run>) {
        let mut shared = self.shared.lock();
        if shared.current.as_ref().is_some_and(|current| Arc::ptr_eq(current, run)) {
            shared.hand_over(run);
        }
    }

    fn takes_outcome(&self, call: u32) -> bool {
        self.shared.lock().calls.settle(call)
    }

    fn resume(&self) -> Option<(Box<SessionIsolate>, Vec<Inbound>)> {
        let mut shared = self.shared.lock();
        self.dispatch(&mut shared);
        let inbox = shared.take_inbox();
        Some((shared.isolate.take()?, inbox))
    }

    fn rest(&self, run: &Arc<Run>, isolate: Box<SessionIsolate>) {
        self.take_back(run, isolate);
    }

    fn press(&self, run: &Arc<Run>) {
        self.end_current(run);
    }

    fn undone_since(&self, began: u64) -> u64 {
        began.max(self.kept_at.load(Ordering::Relaxed))
    }
}

impl Session {
    /// Has the run granted the home of the session.
    fn request_home(&self, run: &Arc<Run>) {
        let stay = {
            let mut stay = self.stay.lock();
            let homes = &self.resources.homes;
            let is_extended = self.request.extension.is_some();
            let stays =
                || Arc::new(homes.stay(&self.resources.pool, self.limit_bytes, is_extended));
            Arc::clone(stay.get_or_insert_with(stays))
        };
        stay.request(run);
    }
}
