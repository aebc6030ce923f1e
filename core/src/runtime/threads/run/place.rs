//! The isolate of a session on threads of this process.
//!
//! In: runs that have their turn. Out: the isolate, for each run in turn, as soon as the run has the home of the session.
//! Between two runs the isolate rests here. Where cells interleave, the isolate rests whenever no cell computes, and the
//! session tells which cell goes on.

use std::sync::Arc;

use super::{
    super::{homes::Stay, resources::Resources, scheduler::Job, seams::Seams},
    Run, Start, Work,
    home::AtHome,
};
use crate::{
    binding::{inbound::Inbound, native::NativeHost},
    error::Error,
    isolate::{
        Termination,
        session::{Addressee, SessionIsolate, Work as CellWork},
    },
    os::sync::Mutex,
    runtime::{
        registry::Registry,
        session::{Done, Forked, Outside, unanswered, uncopied},
        sessions::{Effect, NewRun, Place, Question, Received, Resting, SessionRun, Shared, Turn},
    },
};

/// A session on threads.
pub(crate) type Session = crate::runtime::sessions::Session<ThreadPlace>;

/// The parts of a run that belongs to such a session.
pub(crate) type InSession = crate::runtime::sessions::InSession<ThreadPlace>;

/// Threads of this process, for one session.
pub(crate) struct ThreadPlace {
    resources: Arc<Resources<Run>>,
    /// The session's place in a home, from the first cell on. Locked when the session is, and not the other way.
    stay: Mutex<Option<Arc<Stay<Run>>>>,
}

/// The isolate of a session.
#[derive(Default)]
pub(crate) struct ThreadState {
    /// `None` while a run has the isolate, and before the first cell.
    isolate: Option<Box<SessionIsolate>>,
    /// How many isolates of the session are lost: each isolate begins other numbers of functions and promises.
    lost: u32,
}

/// An isolate and its place in a home, to be freed.
#[derive(Default)]
pub(crate) struct Gone {
    isolate: Option<Box<SessionIsolate>>,
    stay: Option<Arc<Stay<Run>>>,
    /// Whether the thread does not come back with the isolate.
    is_stuck: bool,
}

impl ThreadPlace {
    pub(crate) fn new(resources: Arc<Resources<Run>>) -> Self {
        Self { resources, stay: Mutex::default() }
    }
}

impl Place for ThreadPlace {
    type Run = Run;
    type Work = CellWork;
    type Part = AtHome;
    type State = ThreadState;
    type Isolate = Option<Box<SessionIsolate>>;
    type Gone = Gone;

    fn registry(&self) -> &Registry<Run> {
        &self.resources.registry
    }

    fn ensure_threads(&self) -> Result<(), Error> {
        self.resources.ensure_threads()
    }

    fn left(_: u32) -> Option<CellWork> {
        None
    }

    fn part(_: Option<&CellWork>) -> AtHome {
        AtHome::default()
    }

    fn run(&self, slot: usize, new: NewRun<Self>) -> Run {
        let NewRun { part, work, report, timeout, .. } = new;
        self.resources.watchdog.attend();
        let start = Start {
            work: work.map_or(Work::Question, Work::Cell),
            host: Arc::<NativeHost>::clone(&part.native),
            termination: Arc::new(Termination::of_cell(Arc::clone(&part.session.in_flight))),
            memory_limit: part.session.request.memory_limit(),
            report,
            timeout,
            seams: Seams::of(""),
            cell: Some(part),
        };
        Run::new(Arc::clone(&self.resources), slot, start)
    }

    fn next(shared: &mut Shared<Self>) -> Option<Turn<Self>> {
        let (next, resumable) = shared.machine.next_of(shared.at.isolate.as_deref());
        for run in resumable {
            run.forget_stalled();
        }
        next
    }

    /// Has the run granted the home of the session.
    fn grant(session: &Session, run: Arc<Run>) {
        let Self { resources, stay } = &session.place;
        let stay = {
            let is_extended = session.request.extension.is_some();
            let limit_bytes = session.limit_bytes;
            let stays =
                || Arc::new(resources.homes.stay(&resources.pool, limit_bytes, is_extended));
            Arc::clone(stay.lock().get_or_insert_with(stays))
        };
        stay.request(&run);
    }

    fn wake(&self, run: Arc<Run>) {
        run.enqueue();
    }

    fn pass_on(_: &Session, _: &mut Shared<Self>, inbound: Inbound) -> Received<Self> {
        Received::No(inbound)
    }

    fn keep(shared: &mut Shared<Self>, inbound: Inbound, listener: Option<&Arc<Run>>) -> bool {
        if shared.machine.interleaves() {
            shared.machine.keep_new(inbound);
            return false;
        }
        let is_offered = shared.machine.keep(inbound, listener.is_some());
        is_offered && listener.is_some_and(|run| shared.hand_over(run))
    }

    fn refused(&self, run: &Arc<Run>) {
        run.overdraw();
    }

    fn overdraw(&self, run: &Arc<Run>) {
        if run.number() == 0 {
            run.overdraw();
        }
    }

    fn leave(
        &self,
        shared: &mut Shared<Self>,
        _: &Run,
        (effect, had_turn): (Effect, bool),
        isolate: Option<Box<SessionIsolate>>,
    ) -> Gone {
        let at = &mut shared.at;
        match effect {
            Effect::Back(_) if had_turn => {
                let isolate = std::mem::replace(&mut at.isolate, isolate);
                Gone { isolate, ..Gone::default() }
            }
            Effect::Lost(_) if had_turn => {
                at.lost = at.lost.wrapping_add(1);
                let (isolate, stay) = (at.isolate.take(), self.stay.lock().take());
                Gone { isolate, stay, is_stuck: true }
            }
            // The run waited in the queue, or the session began anew without that run.
            _ => Gone { isolate, ..Gone::default() },
        }
    }

    fn give_up(_: &mut Shared<Self>) -> Gone {
        Gone::default()
    }

    fn free(&self, shared: &mut Shared<Self>) -> Gone {
        let (isolate, stay) = (shared.at.isolate.take(), self.stay.lock().take());
        Gone { isolate, stay, is_stuck: false }
    }

    fn let_go(gone: Gone) {
        let Gone { isolate, stay, is_stuck } = gone;
        drop(isolate);
        if let Some(stay) = stay.filter(|_| is_stuck) {
            stay.mark_stuck();
        }
    }

    fn has_left(&self) {
        self.resources.close_when_idle();
    }

    fn reset(session: &Session, done: Done<Result<(), Error>>) {
        session.ask(Question::Reset(done));
    }

    fn copy(state: &ThreadState) -> ThreadState {
        ThreadState { isolate: None, lost: state.lost }
    }
}

impl Session {
    /// The run can compute: has a thread take it, as soon as it has its turn and its home.
    pub(super) fn enqueue(&self, run: &Arc<Run>) {
        if run.number() == 0 {
            return ThreadPlace::grant(self, Arc::clone(run));
        }
        let mut shared = self.shared.lock();
        shared.machine.call(run.in_session(), run.is_ending());
        self.go_on(shared);
    }

    /// The isolate, with all updates, and the messages of the host since the last cell. `None` if the process has no
    /// memory for an isolate.
    pub(super) fn enter(&self, run: &Run) -> Option<(Box<SessionIsolate>, Vec<Inbound>)> {
        let ThreadPlace { resources, stay } = &self.place;
        let (isolate, updates, inbox, applied, (stay, lost)) = {
            let mut shared = self.shared.lock();
            let Shared { machine, at, updates, .. } = &mut *shared;
            machine.begin(run.in_session());
            machine.dispatch(at.isolate.as_deref());
            let isolate = at.isolate.take();
            let applied = if isolate.is_none() { updates.applied().to_vec() } else { Vec::new() };
            let (updates, inbox) = (updates.take(), machine.take_inbox());
            (isolate, updates, inbox, applied, (stay.lock().clone(), at.lost))
        };
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

    /// The isolate as the last cell left it, if there is one.
    pub(super) fn isolate(&self) -> Option<Box<SessionIsolate>> {
        self.shared.lock().at.isolate.take()
    }

    /// The isolate, the messages for a cell in flight that has its next turn, and those for whichever cell computes. `None`
    /// if the session began anew.
    pub(super) fn resume(
        &self,
        run: &Run,
    ) -> Option<(Box<SessionIsolate>, Vec<Inbound>, Vec<Inbound>)> {
        let mut shared = self.shared.lock();
        let Shared { machine, at, .. } = &mut *shared;
        machine.dispatch(at.isolate.as_deref());
        let isolate = at.isolate.take()?;
        let (own, others) = machine.resume(run.in_session());
        Some((isolate, own, others))
    }

    /// A cell in flight waits for the host: others may have the isolate. `is_stalled`: nothing can resume the cell.
    pub(super) fn rest(&self, run: &Run, isolate: Box<SessionIsolate>, is_stalled: bool) {
        let mut shared = self.shared.lock();
        if !shared.machine.rest(run.in_session(), is_stalled) {
            // The session began anew without the cell.
            drop(shared);
            return drop(isolate);
        }
        shared.at.isolate = Some(isolate);
        self.go_on(shared);
    }

    /// Whether a cell in flight waits for the host, and nobody has called it for its next turn.
    pub(super) fn is_resting(&self, run: &Run) -> bool {
        self.shared.lock().machine.is_resting(run.in_session())
    }

    /// The cell that computes beside one in flight that waits.
    pub(super) fn computes_beside(&self, run: &Run) -> Option<Arc<Run>> {
        self.shared.lock().machine.computes_beside(run.in_session()).cloned()
    }

    /// A second session with the state of this one, whose isolate that is.
    pub(super) fn fork(&self, isolate: Option<&mut SessionIsolate>, outside: Outside) -> Forked {
        // The futures are taken before the inbox: a future that ends meanwhile is in both.
        let under_way = self.host.repeatable();
        let mut state = self.state_of_copy()?;
        let place = ThreadPlace::new(Arc::clone(&self.place.resources));
        if let Some(isolate) = isolate {
            let repeated = under_way.iter().map(|again| again.promise);
            let settled = state.machine.inbox().filter_map(Inbound::settles);
            let answered: Vec<u32> = settled.chain(repeated).collect();
            let waiting = isolate.unanswered(&answered);
            if waiting > 0 {
                return Err(unanswered(waiting));
            }
            state.at.isolate = Some(isolate.fork().ok_or_else(uncopied)?);
            let stay = self.place.stay.lock().clone();
            *place.stay.lock() = stay.map(|stay| Arc::new(stay.another()));
        }
        Ok(self.copy((place, state), under_way, outside))
    }
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
