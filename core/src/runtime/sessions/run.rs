//! The runs of a session: cells, and questions to the isolate.
//!
//! In: runs as the session makes them and as their place ends them. Out: the parts of a run that its session needs. A
//! place implements [`SessionRun`] for its runs.

use std::{
    collections::VecDeque,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use super::{
    Effect, Kind,
    place::{Place, Received},
    question::Question,
    session::Session,
};
use crate::{
    binding::{
        handle::RunControl,
        host::{Completion, Host},
        inbound::Inbound,
        native::NativeHost,
    },
    data::cell::SessionState,
    error::Error,
    os::sync::Mutex,
    runtime::record::{Failure, Reason, Record},
    value::Kinds,
};

/// A run of a session, as the session sees it.
pub(crate) trait SessionRun<P: Place>: RunControl + Sized {
    /// Its parts that concern its session.
    fn part(&self) -> Option<&InSession<P>>;

    /// The kind of a run of a session.
    fn kind(&self) -> Option<Kind> {
        self.part().map(|part| part.kind)
    }

    /// Whether it is a cell.
    fn is_cell(&self) -> bool {
        self.kind().is_some_and(Kind::is_cell)
    }

    /// Its number among all runs of its session.
    fn in_session(&self) -> u32 {
        self.part().map_or(0, |part| part.key)
    }

    /// Its number among the cells of its session, if they interleave; otherwise zero.
    fn number(&self) -> u32 {
        self.part().map_or(0, |part| part.number)
    }

    /// Whether it is a cell that has begun and takes messages.
    fn listens(&self) -> bool;

    /// Takes a message of the host, unless it is for the next cell. The session's lock is held.
    fn receive(self: &Arc<Self>, inbound: Inbound) -> Received<P>;

    /// Takes messages that are counted already, if it waits for the host and for no answer to a call. It can resume then.
    fn resume_with(&self, messages: VecDeque<Inbound>) -> Result<(), VecDeque<Inbound>>;

    /// Asks it to end.
    fn end(self: &Arc<Self>, reason: Reason);

    /// Ends it with all others of its session.
    fn abort(self: &Arc<Self>, reason: Reason) {
        self.end(reason);
    }

    /// Settles a cell that was undone with another one, or with the whole session.
    fn undo_with(self: &Arc<Self>, reason: Reason, state: SessionState);

    /// Looks at its record, with its lock held.
    fn record<T>(&self, look: impl FnOnce(&Record) -> T) -> T;

    /// The error with which it has settled.
    fn failure(&self) -> Option<Failure> {
        self.record(Record::failure)
    }

    /// Tells its host that it has settled, if the caller knows of it. `state`: of its session, if it has one. This thread
    /// is not the host's, so a panic of the host must not reach it.
    fn tell_settled(&self, host: &dyn Host, state: SessionState) {
        let kind = self.kind();
        drop(catch_unwind(AssertUnwindSafe(|| {
            if kind.is_some_and(Kind::is_cell) {
                host.concluded(state);
            }
            if kind.is_none_or(|kind| kind == Kind::Cell) {
                host.settled();
            }
        })));
    }
}

/// A new run of a session.
pub(crate) struct NewRun<P: Place> {
    pub(crate) part: InSession<P>,
    /// `None` if it is a question.
    pub(crate) work: Option<P::Work>,
    pub(crate) validated_kinds: Kinds,
    pub(crate) report: bool,
    pub(crate) timeout: Option<Duration>,
}

/// The parts of a run that belongs to a session.
pub(crate) struct InSession<P: Place> {
    pub(crate) session: Arc<Session<P>>,
    /// Its number among all runs of the session.
    key: u32,
    /// The same for the isolate, if it is a cell that may interleave with others; otherwise zero.
    pub(crate) number: u32,
    pub(crate) kind: Kind,
    pub(crate) native: Arc<NativeHost>,
    /// Whether the runs before it in the session are over, or wait for the host.
    has_turn: AtomicBool,
    /// When the cell began, for its native host.
    since: AtomicU64,
    question: Mutex<Option<Question>>,
    /// The outcome of the host's call that it is, until its effects are kept.
    outcome: Mutex<Option<Completion>>,
    pub(crate) own: P::Part,
}

impl<P: Place> InSession<P> {
    pub(super) fn new(
        session: Arc<Session<P>>,
        (key, kind): (u32, Kind),
        native: Arc<NativeHost>,
        question: Option<Question>,
        own: P::Part,
    ) -> Self {
        let number = if session.request.interleave && kind.is_cell() { key } else { 0 };
        let (has_turn, since) = (AtomicBool::new(false), AtomicU64::new(0));
        let (question, outcome) = (Mutex::new(question), Mutex::default());
        Self { session, key, number, kind, native, has_turn, since, question, outcome, own }
    }

    pub(super) fn take_turn(&self) {
        self.has_turn.store(true, Ordering::Relaxed);
    }

    /// Whether it has had its turn.
    pub(crate) fn has_turn(&self) -> bool {
        self.has_turn.load(Ordering::Relaxed)
    }

    /// The cell begins.
    pub(crate) fn begin(&self) {
        self.since.store(self.native.now(), Ordering::Relaxed);
    }

    /// Has the native host end its work for a cell that was undone.
    pub(crate) fn undo_native(&self) {
        let since = self.since.load(Ordering::Relaxed);
        self.native.undo(self.session.undone_since(since));
    }

    /// Tells the host the outcome of a call, unless the host has one. The call that this run is may still be undone with
    /// the run, so its outcome waits for [`InSession::keep_outcome`].
    pub(crate) fn call_settled(&self, host: &dyn Host, call: u32, completion: Completion) {
        if self.kind.call() == Some(call) {
            self.outcome.lock().get_or_insert(completion);
        } else if self.session.takes_outcome(call) {
            host.function_settled(call, completion);
        }
    }

    /// The effects of this run are kept: tells the host the outcome of the call that it is, if it has one.
    pub(crate) fn keep_outcome(&self, host: &dyn Host) {
        let outcome = self.outcome.lock().take();
        if let (Some(call), Some(completion)) = (self.kind.call(), outcome)
            && self.session.takes_outcome(call)
        {
            host.function_settled(call, completion);
        }
    }

    /// Takes its question, if it has one without an answer.
    pub(crate) fn take_question(&self) -> Option<Question> {
        self.question.lock().take()
    }

    /// Whether it is a question for a copy that has no answer yet.
    pub(crate) fn asks_for_copy(&self) -> bool {
        matches!(*self.question.lock(), Some(Question::Fork(..)))
    }

    /// Answers its question, if it has one, with an error.
    pub(crate) fn refuse(&self, error: Error) {
        if let Some(question) = self.take_question() {
            question.refuse(error);
        }
    }
}

/// A run that is over, for its session.
pub(crate) struct Over<P: Place> {
    pub(crate) effect: Effect,
    pub(crate) isolate: P::Isolate,
    /// The messages for the next cell.
    pub(crate) inbox: Vec<Inbound>,
    /// Calls of the host that came too late for it, and that the place has.
    pub(crate) late: Vec<u32>,
    /// The error with which it ended.
    pub(crate) error: Option<Failure>,
    /// Other cells in flight that were undone with it.
    pub(crate) undone: Vec<u32>,
    /// Whether it is a cell that has completed: nothing before that is ever undone.
    pub(crate) has_completed: bool,
}

impl<P: Place> Over<P> {
    pub(crate) fn of(effect: Effect, error: Option<Failure>) -> Self {
        Self {
            effect,
            isolate: P::Isolate::default(),
            inbox: Vec::new(),
            late: Vec::new(),
            error,
            undone: Vec::new(),
            has_completed: false,
        }
    }
}
