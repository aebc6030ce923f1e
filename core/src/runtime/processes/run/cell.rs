//! The part of a run that only a cell of a session has.
//!
//! In: a run whose turn it is in its session, the session's worker, and messages of the host. Out: the frames of the
//! cell, and its effect on the session. A cell is a run like any other while it computes and while it waits; so
//! permits, statistics and the checks of frames are those of runs. To end a cell, the host sends a frame, because the
//! worker stays; if the worker does not answer in time, it is killed, and the session begins anew.

use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use super::{
    Phase, Run, Shared, Work, incoming::MOST_BYTES_TOLD, session::Session,
    session_worker::SessionWorker,
};
use crate::{
    binding::{
        inbound::Inbound,
        native::{NativeHost, Repeatable},
    },
    data::cell::{Name, SessionState},
    error::Error,
    isolate::End,
    modules::session_request::UpdateRequest,
    os::sync::Mutex,
    protocol::{
        frame::Unreadable,
        messages::{
            CellEnded, ToWorker, WorkersEnd,
            session::{CellWork, Copied, held_bytes, most_state_bytes},
        },
    },
    runtime::{
        processes::{ledger::Ledger, lost::Lost, worker_socket::WorkerSocket, workers::Begun},
        record::Reason,
        session::{Done, unanswered, uncopied},
        sessions::Kind,
    },
};

/// By how much the time that a cell computes may exceed its CPU time, which the worker itself watches.
const CAP_FACTOR: u32 = 4;
const CAP_MARGIN: Duration = Duration::from_secs(1);

/// A question of the caller about the whole session.
pub(crate) enum Question {
    /// For the names that cells have declared.
    Names(Done<Result<Vec<Name>, Error>>),
    /// For all that a copy begins with.
    Copy(Done<Result<Origin, Error>>),
}

/// All that a copy of a session begins with, beside what its host has.
#[derive(Default)]
pub(crate) struct Origin {
    pub(super) state: Option<Held>,
    /// Updates that are not in the state.
    pub(super) pending: Vec<UpdateRequest>,
    /// Futures of native functions that the copy makes again.
    pub(super) under_way: Vec<Repeatable>,
}

/// The state of a session that no worker has yet.
#[derive(Clone)]
pub(crate) struct Held {
    /// As a worker wrote it, which may have been taken over. Nobody reads it but another worker.
    pub(super) bytes: Arc<Vec<u8>>,
    pub(super) ledger: Ledger,
    /// The number of the zygote whose workers can have it.
    pub(super) zygote: u64,
}

/// The parts of a run that belongs to a session.
pub(crate) struct InSession {
    pub(super) session: Arc<Session>,
    native: Arc<NativeHost>,
    pub(super) kind: Kind,
    /// Its number among all runs of the session.
    key: u32,
    timeout: Option<Duration>,
    /// The length of its source.
    pub(super) source_bytes: u32,
    /// Whether the runs before it in the session are over.
    has_turn: AtomicBool,
    /// When the cell began, for its native host.
    since: AtomicU64,
    question: Mutex<Option<Question>>,
    /// The names so far that answer it.
    named: Mutex<Vec<Name>>,
    /// The futures of native functions that were under way when the worker was asked for a copy.
    under_way: Mutex<Vec<Repeatable>>,
}

impl InSession {
    fn new(
        session: Arc<Session>,
        native: Arc<NativeHost>,
        kind: Kind,
        key: u32,
        timeout: Option<Duration>,
    ) -> Self {
        Self {
            session,
            native,
            kind,
            key,
            timeout,
            source_bytes: 0,
            has_turn: AtomicBool::new(false),
            since: AtomicU64::new(0),
            question: Mutex::default(),
            named: Mutex::default(),
            under_way: Mutex::default(),
        }
    }

    /// A cell of the caller.
    pub(crate) fn cell(
        session: Arc<Session>,
        native: Arc<NativeHost>,
        work: &CellWork,
        key: u32,
        timeout: Option<Duration>,
    ) -> Self {
        let source_bytes = match work {
            CellWork::Source { source, .. } => source.text.len(),
            _ => 0,
        };
        Self {
            source_bytes: u32::try_from(source_bytes).unwrap_or(u32::MAX),
            ..Self::new(session, native, Kind::Cell, key, timeout)
        }
    }

    /// A call that the host made.
    pub(crate) fn held(
        session: Arc<Session>,
        native: Arc<NativeHost>,
        key: u32,
        call: u32,
    ) -> Self {
        Self::new(session, native, Kind::Held(call), key, None)
    }

    /// A run that asks.
    pub(crate) fn question(
        session: Arc<Session>,
        native: Arc<NativeHost>,
        key: u32,
        ask: Question,
    ) -> Self {
        let kind = match ask {
            Question::Names(_) => Kind::Question,
            Question::Copy(_) => Kind::Fork,
        };
        let question = Mutex::new(Some(ask));
        Self { question, ..Self::new(session, native, kind, key, None) }
    }

    /// Its number for the worker, if it is a cell that may interleave with others; otherwise zero.
    pub(super) fn number(&self) -> u32 {
        if self.session.interleaves() && self.kind.is_cell() { self.key } else { 0 }
    }

    /// Whether runs before it in the session are not over.
    pub(super) fn waits(&self) -> bool {
        !self.has_turn.load(Ordering::Relaxed)
    }

    /// Ends work of native functions that a cell has begun which is undone.
    pub(super) fn undo_native(&self) {
        let since = self.since.load(Ordering::Relaxed);
        self.native.undo(self.session.undone_since(since));
    }
}

/// The worker of a session after one of its runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// The run did not begin.
    Untouched,
    /// The worker has the session, in that state.
    Back(SessionState),
    /// The worker is being killed, or gone. The result tells that state.
    Lost(SessionState),
}

impl Place {
    pub(super) fn state(self) -> SessionState {
        match self {
            Self::Untouched => SessionState::Kept,
            Self::Back(state) | Self::Lost(state) => state,
        }
    }
}

/// The outcome of giving a message to a cell.
pub(crate) enum Received {
    Yes,
    /// The worker waited, and can resume now.
    Woken,
    /// It is more than the session may hold.
    TooLarge,
    /// It is for the next cell.
    No(Inbound),
}

impl Shared {
    /// Sends a message to the cell that runs.
    fn send_on(&mut self, link: &WorkerSocket, inbound: Inbound) {
        let number = self.dealings.lock().send(&inbound);
        if let Inbound::FunctionCall { call, .. } = &inbound {
            self.placed.push((number, *call));
        }
        link.send(ToWorker::Inbound(inbound).into_frame());
    }
}

impl Run {
    /// The kind of a run of a session.
    pub(crate) fn kind(&self) -> Option<Kind> {
        self.cell.as_ref().map(|part| part.kind)
    }

    /// Whether it has not begun, nor ended.
    pub(crate) fn is_waiting(&self) -> bool {
        self.shared.lock().phase == Phase::Queued
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

    /// Whether it is a cell.
    pub(crate) fn is_cell(&self) -> bool {
        self.kind().is_some_and(Kind::is_cell)
    }

    /// Whether it is a cell that has begun and has not been asked to end.
    pub(crate) fn listens(&self) -> bool {
        let shared = self.shared.lock();
        self.is_cell() && shared.link.is_some() && !self.is_settled() && !shared.record.is_asked()
    }

    /// Takes messages that wait, if its worker waits for the host, and for no answer to a call.
    pub(crate) fn resume_with(&self, messages: VecDeque<Inbound>) -> Result<(), VecDeque<Inbound>> {
        let mut shared = self.shared.lock();
        let waits = shared.phase == Phase::Waiting && shared.calling.is_none();
        let Some(link) = shared.link.clone().filter(|_| waits && !shared.record.is_asked()) else {
            return Err(messages);
        };
        for inbound in messages {
            shared.send_on(&link, inbound);
        }
        shared.phase = Phase::Woken;
        Ok(())
    }

    /// Begins in a worker, to which `prepare` sends what goes before. The session's lock is held.
    pub(crate) fn begin_in(
        self: &Arc<Self>,
        worker: &Arc<SessionWorker>,
        is_new: bool,
        has_turn: bool,
        prepare: impl FnOnce(),
    ) -> Begun {
        let Some(part) = &self.cell else { return Begun::NotNeeded };
        let mut shared = self.shared.lock();
        if self.is_settled() || shared.phase != Phase::Queued {
            return Begun::NotNeeded;
        }
        if is_new && !worker.link.take(Arc::<SessionWorker>::clone(worker)) {
            return Begun::NoWorker;
        }
        let frame = match shared.work.take() {
            Some(Work::Cell(cell)) => {
                // One that the worker has already was forgotten if the session was reset since.
                if let CellWork::Held { call, .. } | CellWork::Left { call } = &cell.work {
                    worker.dealings.lock().ledger.call(*call);
                }
                ToWorker::Cell(cell).into_frame()
            }
            Some(Work::Names) => ToWorker::Names.into_frame(),
            Some(Work::Copy) => {
                let under_way = part.native.repeatable();
                let repeated = under_way.iter().map(|again| again.promise).collect();
                *part.under_way.lock() = under_way;
                ToWorker::Copy { repeated }.into_frame()
            }
            Some(Work::Program(_)) | None => return Begun::NotNeeded,
        };
        shared.phase = Phase::Computing(Instant::now());
        shared.began = Some(Instant::now());
        shared.permit = true;
        shared.link = Some(Arc::clone(&worker.link));
        shared.dealings = Arc::clone(&worker.dealings);
        shared.dealings.lock().next_parked = 0;
        part.since.store(part.native.now(), Ordering::Relaxed);
        if has_turn {
            worker.set_current(self);
        }
        worker.link.release();
        prepare();
        worker.link.send(frame);
        if part.session.interleaves() {
            let mut dealings = shared.dealings.lock();
            dealings.sent += 1;
            dealings.ledger.begin(part.number());
        }
        Begun::Yes
    }

    /// Takes a message of the host, unless it is for the next cell. The session's lock is held.
    pub(crate) fn hand_in(&self, inbound: Inbound) -> Received {
        let mut shared = self.shared.lock();
        let ends = !self.is_cell() || self.is_settled() || shared.record.is_asked();
        let Some(link) = shared.link.clone().filter(|_| !ends) else {
            return Received::No(inbound);
        };
        if link.waiting_bytes().saturating_add(inbound.held_bytes()) > self.memory_limit {
            return Received::TooLarge;
        }
        shared.send_on(&link, inbound);
        // A worker that waits for an answer resumes with that, and with nothing else.
        if shared.phase == Phase::Waiting && shared.calling.is_none() {
            shared.phase = Phase::Woken;
            return Received::Woken;
        }
        Received::Yes
    }

    /// Whether its session takes checkpoints.
    fn has_checkpoint(&self) -> bool {
        self.cell.as_ref().is_some_and(|part| part.session.takes_checkpoints())
    }

    /// Ends a run of a session at once; its worker is killed, and the session has no worker from then on.
    pub(crate) fn abort(&self, reason: Reason) {
        let state = match reason {
            Reason::Closed if self.has_checkpoint() => SessionState::RolledBack,
            _ => SessionState::Reset,
        };
        let place = {
            let mut shared = self.shared.lock();
            shared.record.ask(reason);
            if shared.link.is_some() { Place::Lost(state) } else { Place::Untouched }
        };
        let worker = self.settle(End::Asked, None, place);
        if let Some(worker) = worker {
            self.workers.kill_worker(worker);
        }
    }

    /// Ends the run if it takes longer than it may; returns when to check again.
    pub(crate) fn check(self: &Arc<Self>, now: Instant) -> Option<Instant> {
        let due = {
            let shared = self.shared.lock();
            if self.is_settled() || shared.record.is_asked() {
                return None;
            }
            self.due(shared.began?, shared.phase, now)
        };
        match due {
            Some((at, _)) if at > now => Some(at),
            Some((_, reason)) => {
                self.end(reason);
                None
            }
            None => None,
        }
    }

    /// The time at which the run will have taken longer than it may, and how it ends then.
    fn due(&self, began: Instant, phase: Phase, now: Instant) -> Option<(Instant, Reason)> {
        let cap = self.workers.safety_cap();
        // Nobody knows how long a waiting run will have computed.
        let since = if let Phase::Computing(since) = phase { since } else { now };
        let computed = cap.saturating_mul(CAP_FACTOR).saturating_add(CAP_MARGIN);
        let capped = since.checked_add(computed).map(|at| (at, Reason::cap(cap)));
        let timeout = self.cell.as_ref().and_then(|part| part.timeout);
        let overdue = timeout.and_then(|timeout| {
            let at = began.checked_add(timeout)?;
            Some((at, Reason::Timeout(timeout)))
        });
        capped.into_iter().chain(overdue).min_by_key(|(at, _)| *at)
    }

    /// Takes the end of a cell.
    pub(super) fn cell_ended(&self, ended: CellEnded) -> Result<(), Unreadable> {
        let state = ended.state;
        if ended.number != 0 || !ended.undone.is_empty() {
            return Err(Unreadable::Broken);
        }
        let (end, peak_bytes) = self.check_cell_end(ended)?;
        self.settle(end, Some(peak_bytes), Place::Back(state));
        Ok(())
    }

    /// Checks the end of a cell, and takes it into the accounts with the worker. Returns how the cell ended, and the most
    /// bytes that counted against the limit.
    pub(super) fn check_cell_end(&self, ended: CellEnded) -> Result<(End, u64), Unreadable> {
        let CellEnded { number, end, peak_bytes, state, is_untouched, handed, undone } = ended;
        let is_cell = self.is_cell();
        let came_to_its_end = matches!(&end, WorkersEnd::End(End::Cell(_) | End::Failed(..)));
        let is_other = matches!(&end, WorkersEnd::End(End::Success(_)));
        let is_undone = matches!(&end, WorkersEnd::Undone) && number == 0;
        if !is_cell || is_other || is_undone || (came_to_its_end && state != SessionState::Kept) {
            return Err(Unreadable::Broken);
        }
        if let WorkersEnd::End(End::Cell(end)) = &end
            && let Some(value) = &end.value
        {
            self.check_refusal(value)?;
        }
        {
            let mut shared = self.shared.lock();
            {
                let mut dealings = shared.dealings.lock();
                if handed > dealings.sent {
                    return Err(Unreadable::Broken);
                }
                // It may park with the same messages as before.
                dealings.next_parked = 0;
                match state {
                    SessionState::Kept if is_untouched => dealings.ledger.forget(number),
                    SessionState::Kept => dealings.ledger.keep(number),
                    SessionState::RolledBack => dealings.ledger.undo(number, &undone),
                    SessionState::Reset => dealings.ledger.reset(),
                }
            }
            shared.placed.retain(|(number, _)| *number > handed);
            if came_to_its_end {
                shared.record.withdraw();
            }
        }
        Ok((self.judge(end), peak_bytes.min(MOST_BYTES_TOLD)))
    }

    /// Takes names.
    pub(super) fn named(&self, names: Vec<Name>, are_last: bool) -> Result<(), Unreadable> {
        let part = self.cell.as_ref().filter(|part| part.kind == Kind::Question);
        let Some(part) = part else { return Err(Unreadable::Broken) };
        let held = names.iter().map(held_bytes).sum();
        self.check_room(held)?;
        let mut named = part.named.lock();
        named.extend(names);
        if !are_last {
            return Ok(());
        }
        let all = std::mem::take(&mut *named);
        drop(named);
        self.answer_names(all);
        self.settle(End::Asked, None, Place::Back(SessionState::Kept));
        Ok(())
    }

    /// Takes the state for a copy, without a look into it.
    pub(super) fn copied(&self, copied: Copied) -> Result<(), Unreadable> {
        if !self.asks_for_copy() {
            return Err(Unreadable::Broken);
        }
        match copied {
            Copied::State(bytes) if bytes.len() > most_state_bytes(self.memory_limit) => {
                return Err(Unreadable::TooLarge);
            }
            Copied::State(bytes) => {
                let held = {
                    let shared = self.shared.lock();
                    let link = shared.link.as_ref().ok_or(Unreadable::Broken)?;
                    let ledger = shared.dealings.lock().ledger.clone();
                    Held { bytes: Arc::new(bytes), ledger, zygote: link.zygote }
                };
                let part = self.cell.as_ref().ok_or(Unreadable::Broken)?;
                let under_way = std::mem::take(&mut *part.under_way.lock());
                self.answer_copy(Origin { state: Some(held), pending: Vec::new(), under_way });
            }
            Copied::Unanswered(count) => self.refuse(unanswered(count as usize)),
            Copied::Impossible => self.refuse(uncopied()),
        }
        self.settle(End::Asked, None, Place::Back(SessionState::Kept));
        Ok(())
    }

    /// Whether it is a question for a copy that has no answer yet.
    pub(crate) fn asks_for_copy(&self) -> bool {
        let question = self.cell.as_ref().map(|part| part.question.lock());
        question.is_some_and(|question| matches!(*question, Some(Question::Copy(_))))
    }

    /// Answers a question for the names, once.
    pub(crate) fn answer_names(&self, names: Vec<Name>) {
        match self.take_question() {
            Some(Question::Names(done)) => done(Ok(names)),
            Some(Question::Copy(done)) => done(Err(uncopied())),
            None => {}
        }
    }

    /// Answers a question for a copy, once.
    pub(crate) fn answer_copy(&self, origin: Origin) {
        match self.take_question() {
            Some(Question::Copy(done)) => done(Ok(origin)),
            Some(Question::Names(done)) => done(Ok(Vec::new())),
            None => {}
        }
    }

    /// Answers its question, if it has one that has no answer, with an error.
    pub(crate) fn refuse(&self, error: Error) {
        match self.take_question() {
            Some(Question::Names(done)) => done(Err(error)),
            Some(Question::Copy(done)) => done(Err(error)),
            None => {}
        }
    }

    /// Has the next cell be told, if it is a question whose worker is lost: only a cell's result tells of the state.
    pub(super) fn note_lost(&self, how: &Lost) {
        if let Some(part) = self.cell.as_ref().filter(|part| !part.kind.is_cell())
            && !self.is_settled()
        {
            part.session.note_lost(how);
        }
    }

    fn take_question(&self) -> Option<Question> {
        self.cell.as_ref().and_then(|part| part.question.lock().take())
    }
}
