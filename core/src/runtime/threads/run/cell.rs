//! The part of a run that only a cell of a session has.
//!
//! In: a run that has its turn, with the isolate of its session. Out: the same isolate, kept, rolled back or reset,
//! and the run's result. A cell is a run like any other while it computes and while it is parked; so caps, stalls and
//! statistics are those of runs. Questions to a session that need its isolate are [`Task`]s: they wait their turn in
//! the same queue, and have no result.

use std::{
    collections::VecDeque,
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use super::{Phase, Run, embedder::RunEmbedder, home::AtHome, isolate::RunIsolate};
use crate::{
    binding::{handle::Recipient, inbound::Inbound, native::NativeHost},
    data::cell::SessionState,
    error::Error,
    isolate::{
        Embedder, End, Turn,
        session::{CellSeat, Concluded, SessionIsolate, Work},
    },
    runtime::{sessions::Kind, threads::seams::Seam},
};

/// A question to a session's isolate, which is `None` if there is none yet. An error if the question's turn never comes.
pub(crate) type Task = Box<dyn FnOnce(Result<&mut Option<Box<SessionIsolate>>, Error>) + Send>;

/// The session of a cell, as the cell's run sees it.
pub(crate) trait CellSession: Recipient + fmt::Debug {
    /// The run can compute: has a thread take it, as soon as it has its home.
    fn enqueue(&self, run: &Arc<Run>);

    /// The isolate, with all updates, and the messages of the host since the last cell. `None` if the process has no
    /// memory for it.
    fn enter(&self, run: &Run) -> Option<(Box<SessionIsolate>, Vec<Inbound>)>;

    /// The isolate as the last cell left it, if there is one.
    fn isolate(&self) -> Option<Box<SessionIsolate>>;

    /// The cell waits for the host: it is handed the calls that wait.
    fn parked(&self, run: &Arc<Run>);

    /// The run is over.
    fn leave(&self, run: &Arc<Run>, left: Left);

    /// The isolate, the messages for a cell in flight that has its next turn, and those for whichever cell computes. `None`
    /// if the session began anew.
    fn resume(&self, run: &Run) -> Option<(Box<SessionIsolate>, Vec<Inbound>, Vec<Inbound>)>;

    /// A cell in flight waits for the host: others may have the isolate. `is_stalled`: nothing can resume it.
    fn rest(&self, run: &Arc<Run>, isolate: Box<SessionIsolate>, is_stalled: bool);

    /// Whether a cell in flight waits for the host, and nobody has called it for its next turn.
    fn is_resting(&self, run: &Run) -> bool;

    /// A cell in flight that waits was asked to end. The one that computes would be undone with it.
    fn press(&self, run: &Arc<Run>);

    /// The moment from which on the native host undoes its work for a cell that began at the given one.
    fn undone_since(&self, began: u64) -> u64;

    /// As [`SessionRequest::keeps_logs`](crate::SessionRequest::keeps_logs).
    fn keeps_logs(&self) -> bool;

    /// Whether the outcome of a call of the host is for the host: the first one is.
    fn takes_outcome(&self, call: u32) -> bool;
}

/// A session after one of its runs.
pub(crate) struct Left {
    pub(crate) place: Place,
    pub(crate) state: SessionState,
    /// The messages for the next cell.
    pub(crate) inbox: Vec<Inbound>,
    /// The name and the message of the error with which the run ended.
    pub(crate) error: Option<Failure>,
    /// Other cells in flight that were undone with it.
    pub(crate) undone: Vec<u32>,
    /// Whether it is a cell that has completed: nothing before that is ever undone.
    pub(crate) has_completed: bool,
}

/// The end of a run, for its session.
#[derive(Default)]
struct Ending {
    error: Option<Failure>,
    undone: Vec<u32>,
    has_completed: bool,
}

impl Ending {
    fn of(error: Option<Failure>) -> Self {
        Self { error, ..Self::default() }
    }
}

/// The isolate of a session after one of its runs.
pub(crate) enum Place {
    /// The run did not begin.
    Untouched,
    Back(Option<Box<SessionIsolate>>),
    /// A thread does not come back with it, or it could not be made.
    Lost,
}

/// The name and the message of an error.
pub(crate) type Failure = (String, String);

/// The parts of a run that belongs to a session.
pub(crate) struct InSession {
    pub(super) session: Arc<dyn CellSession>,
    /// Its number among all runs of the session.
    key: u32,
    /// The same for the isolate, if it is a cell that may interleave with others; otherwise zero.
    pub(super) number: u32,
    pub(super) native: Arc<NativeHost>,
    pub(super) kind: Kind,
    /// Whether the runs before it in the session are over, or wait for the host.
    has_turn: AtomicBool,
    /// When the cell began, for its native host.
    since: AtomicU64,
    pub(super) home: AtHome,
}

impl InSession {
    pub(crate) fn new(
        session: Arc<dyn CellSession>,
        (key, interleaves): (u32, bool),
        native: Arc<NativeHost>,
        kind: Kind,
    ) -> Self {
        let number = if interleaves && kind.is_cell() { key } else { 0 };
        let (has_turn, since, home) =
            (AtomicBool::new(false), AtomicU64::new(0), AtHome::default());
        Self { session, key, number, native, kind, has_turn, since, home }
    }

    /// Whether it has had its turn.
    pub(super) fn has_turn(&self) -> bool {
        self.has_turn.load(Ordering::Relaxed)
    }

    /// Has the native host end its work for a cell that was undone.
    pub(super) fn undo_native(&self) {
        let since = self.since.load(Ordering::Relaxed);
        self.native.undo(self.session.undone_since(since));
    }
}

impl Run {
    /// The kind of a run of a session.
    pub(crate) fn kind(&self) -> Option<Kind> {
        self.cell.as_ref().map(|part| part.kind)
    }

    /// Gives it its turn in the session.
    pub(crate) fn take_turn(&self) {
        if let Some(part) = &self.cell {
            part.has_turn.store(true, Ordering::Relaxed);
        }
    }

    /// Its number among all runs of its session.
    pub(crate) fn in_session(&self) -> u32 {
        self.cell.as_ref().map_or(0, |part| part.key)
    }

    /// Whether it is a cell that has begun and is not over.
    pub(crate) fn listens(&self) -> bool {
        let shared = self.shared.lock();
        let begun = !matches!(shared.phase, Phase::Queued(_) | Phase::Over);
        begun && self.kind().is_some_and(Kind::is_cell) && !shared.claimed && !self.is_settled()
    }

    /// Takes a message of the host, unless it is for the next cell.
    pub(crate) fn receive(self: &Arc<Self>, inbound: Inbound) -> Result<(), Inbound> {
        let shared = self.shared.lock();
        if matches!(shared.phase, Phase::Over) || shared.claimed || self.is_settled() {
            return Err(inbound);
        }
        self.take_in(shared, inbound);
        Ok(())
    }

    /// Takes messages that are counted already, if it waits for the host.
    pub(crate) fn resume_with(
        self: &Arc<Self>,
        messages: VecDeque<Inbound>,
    ) -> Result<(), VecDeque<Inbound>> {
        let mut shared = self.shared.lock();
        if shared.claimed || !matches!(shared.phase, Phase::Parked(_)) {
            return Err(messages);
        }
        shared.inbox.extend(messages);
        self.wake(shared);
        Ok(())
    }

    /// More was to be held for it than its session may hold.
    pub(crate) fn overdraw(self: &Arc<Self>) {
        let mut shared = self.shared.lock();
        if shared.claimed || self.is_settled() {
            return;
        }
        self.termination.exhaust();
        shared.record.overdraw();
        self.wake(shared);
    }

    /// The isolate of the session, and the first turn of a cell in it.
    pub(super) fn first_turn_of_cell(
        self: &Arc<Self>,
        part: &InSession,
        work: Work,
    ) -> Option<(RunIsolate, Turn)> {
        let Some((mut isolate, inbox)) = part.session.enter(self) else {
            self.slice.lock().take();
            let error = self.settle(End::Memory, None, SessionState::Reset);
            self.shared.lock().phase = Phase::Over;
            self.leave(part, Place::Lost, SessionState::Reset, Ending::of(error));
            return None;
        };
        self.watch_timeout();
        part.since.store(part.native.now(), Ordering::Relaxed);
        let embedder: Arc<dyn Embedder> = Arc::new(RunEmbedder(Arc::clone(self)));
        let termination = Arc::clone(&self.termination);
        let (number, report) = (part.number, self.report);
        let seat = CellSeat { number, embedder, termination, report };
        let turn = isolate.start(work, &seat, inbox);
        Some((RunIsolate::Session(isolate), turn))
    }

    /// Ends a cell that came to `end`: its session keeps its effects or not, and then it settles.
    pub(super) fn conclude(
        self: &Arc<Self>,
        part: &InSession,
        mut isolate: Box<SessionIsolate>,
        end: End,
    ) {
        self.slice.lock().take();
        let Some((keep, reset)) = self.claim(&end) else {
            if self.shared.lock().is_early {
                return self.come_late(part, isolate);
            }
            // The watchdog has settled it, and its session has begun anew.
            drop(isolate);
            self.shared.lock().phase = Phase::Over;
            return self.leave_home();
        };
        let peak_bytes = isolate.peak_bytes(part.number);
        let Concluded { state, again, undone, is_untouched } = if reset {
            isolate.reset();
            Concluded::of(SessionState::Reset, Vec::new())
        } else {
            isolate.conclude(part.number, keep)
        };
        if state != SessionState::Kept {
            part.undo_native();
        }
        {
            let inbox = &mut self.shared.lock().inbox;
            inbox.splice(..0, again);
        }
        self.seams.pass(Seam::Ended);
        let error = self.settle(end, Some(peak_bytes), state);
        self.seams.pass(Seam::Settled);
        isolate.take_checkpoint();
        let has_completed = state == SessionState::Kept && !is_untouched;
        let ending = Ending { error, undone, has_completed };
        self.leave(part, Place::Back(Some(isolate)), state, ending);
    }

    /// Settles a cell that does not come to its first instruction in time. Its session is told when its thread does.
    /// Returns whether it was one.
    pub(super) fn settle_early(self: &Arc<Self>) -> bool {
        {
            let mut shared = self.shared.lock();
            let is_cell = self.kind().is_some_and(Kind::is_cell);
            let computes = matches!(shared.phase, Phase::Computing) && !shared.has_begun;
            let is_over = shared.claimed || self.is_settled();
            if !is_cell || !computes || is_over || shared.record.is_reset() {
                return false;
            }
            shared.claimed = true;
            shared.is_early = true;
        }
        self.settle(End::Asked, None, SessionState::Kept);
        true
    }

    /// Gives the isolate back after the cell has settled, of which no code ran.
    fn come_late(self: &Arc<Self>, part: &InSession, mut isolate: Box<SessionIsolate>) {
        let error = self.settle(End::Asked, None, SessionState::Kept);
        let error = error.or_else(|| self.shared.lock().record.failure());
        let Concluded { state, again, undone, .. } = isolate.conclude(part.number, false);
        self.shared.lock().inbox.splice(..0, again);
        let ending = Ending { error, undone, has_completed: false };
        self.leave(part, Place::Back(Some(isolate)), state, ending);
    }

    /// Does a task with the isolate of the session.
    pub(super) fn perform(self: &Arc<Self>, part: &InSession, task: Task) {
        let mut isolate = part.session.isolate();
        task(Ok(&mut isolate));
        self.slice.lock().take();
        self.settle(End::Asked, None, SessionState::Kept);
        self.leave(part, Place::Back(isolate), SessionState::Kept, Ending::default());
    }

    /// The run was ended before it began, and has settled with that error.
    pub(super) fn skip(self: &Arc<Self>, part: &InSession, error: Option<Failure>) {
        self.leave(part, Place::Untouched, SessionState::Kept, Ending::of(error));
    }

    /// The run's isolate is lost, and it has settled with that error: its thread does not come back from a builtin, or
    /// panicked. The session begins anew.
    pub(super) fn lose(self: &Arc<Self>, part: &InSession, error: Option<Failure>) {
        part.undo_native();
        self.leave(part, Place::Lost, SessionState::Reset, Ending::of(error));
    }

    fn leave(
        self: &Arc<Self>,
        part: &InSession,
        place: Place,
        state: SessionState,
        Ending { error, undone, has_completed }: Ending,
    ) {
        let inbox = {
            let mut shared = self.shared.lock();
            if !matches!(place, Place::Lost) {
                shared.phase = Phase::Over;
            }
            std::mem::take(&mut shared.inbox)
        };
        let stuck = matches!(place, Place::Lost);
        part.session.leave(self, Left { place, state, inbox, error, undone, has_completed });
        if !stuck {
            self.leave_home();
        }
    }

    /// Gives the home to others.
    pub(super) fn leave_home(&self) {
        if let Some(part) = &self.cell {
            part.home.leave();
        }
    }
}
