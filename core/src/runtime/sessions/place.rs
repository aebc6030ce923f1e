//! The place of a session's isolate: a thread of this process, or a worker.
//!
//! In: the steps of a session that depend on where its isolate is. Out: runs, turns, and messages that a run has. Both
//! executors implement [`Place`]. A session calls a place with its lock held where it hands over its [`Shared`] state, and
//! without it everywhere else.

use std::sync::Arc;

use super::{
    Effect, Turn,
    machine::Parts,
    run::{NewRun, SessionRun},
    session::{Session, Shared},
};
use crate::{
    binding::inbound::Inbound,
    error::Error,
    isolate::session::Work,
    runtime::{registry::Registry, session::Done},
};

/// A place of isolates, as one session has it.
pub(crate) trait Place: Sized + Send + Sync + 'static {
    /// One run: a cell, or a question to the isolate.
    type Run: SessionRun<Self>;
    /// The work of a cell.
    type Work: From<Work>;
    /// The parts of a run that belongs to a session and that only this place has.
    type Part: Send + Sync;
    /// All that the session keeps of its isolate.
    type State: Default + Send;
    /// The isolate, as a run gives it back.
    type Isolate: Default;
    /// All that is freed once the session's lock is free.
    type Gone: Default;

    /// The runs and sessions of its runtime.
    fn registry(&self) -> &Registry<Self::Run>;

    /// Makes sure that runs find the threads that they need.
    ///
    /// # Errors
    /// The system has no thread left.
    fn ensure_threads(&self) -> Result<(), Error> {
        Ok(())
    }

    /// The work of a call whose message the place has already.
    fn left(call: u32) -> Option<Self::Work>;

    /// The parts of a run with that work.
    fn part(work: Option<&Self::Work>) -> Self::Part;

    /// Makes a run, which the registry keeps at `slot`.
    fn run(&self, slot: usize, new: NewRun<Self>) -> Self::Run;

    /// The run or call whose turn it is now, if nobody has it.
    fn next(shared: &mut Shared<Self>) -> Option<Turn<Self>> {
        shared.machine.next()
    }

    /// Nobody gets the turn. Returns a run that is to be woken for that.
    fn idle(shared: &mut Shared<Self>) -> Option<Arc<Self::Run>> {
        let _ = shared;
        None
    }

    /// The run has its turn.
    fn grant(session: &Session<Self>, run: Arc<Self::Run>);

    /// The run has messages, and can resume.
    fn wake(&self, run: Arc<Self::Run>);

    /// Gives a message to interleaved cells.
    fn pass_on(
        session: &Session<Self>,
        shared: &mut Shared<Self>,
        inbound: Inbound,
    ) -> Received<Self>;

    /// Keeps a message that nobody has. Returns whether `listener` has it, and can resume.
    fn keep(
        shared: &mut Shared<Self>,
        inbound: Inbound,
        listener: Option<&Arc<Self::Run>>,
    ) -> bool {
        let is_offered = shared.machine.keep(inbound, listener.is_some());
        is_offered && listener.is_some_and(|run| shared.hand_over(run))
    }

    /// A message for the cell that computes was refused, because the session may not hold it.
    fn refused(&self, run: &Arc<Self::Run>);

    /// The session holds more than it may, and that run is to end for it.
    fn overdraw(&self, run: &Arc<Self::Run>);

    /// Takes the isolate of a run. `over`: the run's effect, and whether it had the turn until now: the session has not
    /// begun anew without it.
    fn leave(
        &self,
        shared: &mut Shared<Self>,
        run: &Self::Run,
        over: (Effect, bool),
        isolate: Self::Isolate,
    ) -> Self::Gone;

    /// All runs are being ended.
    fn give_up(shared: &mut Shared<Self>) -> Self::Gone;

    /// No run is left.
    fn free(&self, shared: &mut Shared<Self>) -> Self::Gone;

    /// Frees what is gone.
    fn let_go(gone: Self::Gone);

    /// A run is over, and its session knows.
    fn has_left(&self) {}

    /// All runs have been ended: forgets the state of the isolate.
    fn reset(session: &Session<Self>, done: Done<Result<(), Error>>);

    /// The state that a copy has, without the isolate's own.
    fn copy(state: &Self::State) -> Self::State;
}

impl<P: Place> Parts for P {
    type Run = Arc<<P as Place>::Run>;
    type Message = Inbound;
    type Closer = Done<()>;
}

/// The outcome of giving a message to a run.
pub(crate) enum Received<P: Place> {
    Yes,
    /// This run waited, and can resume now.
    Woken(Arc<P::Run>),
    /// It is more than the session may hold, and this run ends for it.
    TooLarge(Option<Arc<P::Run>>),
    /// It is for the next cell.
    No(Inbound),
}
