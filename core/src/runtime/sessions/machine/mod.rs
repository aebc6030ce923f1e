//! The turns of the runs in a session, as a state machine.
//!
//! In: events, each a method. Out: the actions that its place has to carry out: give this run its turn, end these runs,
//! reject these calls, answer these closers. Cells, questions and calls of the host get their turns in the order in which
//! they came. A session without interleaved cells is one with at most one cell in flight, which keeps its turn until it is
//! over.
//!
//! `isolate` has the events of an isolate on a thread, where the session tells which cell resumes. `worker` has those of
//! an isolate in a worker, which tells that itself.

mod isolate;
#[cfg(test)]
mod tests;
mod worker;

use std::{
    collections::{BTreeMap, VecDeque},
    mem,
};

use super::{
    calls::{Calls, Placed},
    inbox::Inbox,
    queue::{Entry, Queue},
};
use crate::data::cell::SessionState;

pub(crate) use self::{isolate::Resting, worker::Broken};

/// The parts of a session that the machine keeps and does not look into.
pub(crate) trait Parts {
    /// A handle on a run.
    type Run: Clone;
    /// A message of the host.
    type Message: Message;
    /// Somebody who waits for the end of the session.
    type Closer;
}

/// A message of the host.
pub(crate) trait Message {
    /// The call, if it is one of a function of the sandbox.
    fn call(&self) -> Option<u32>;
}

/// The kinds of runs in a session.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A cell of the caller.
    Cell,
    /// A call that the host made between cells; nobody has a handle on it.
    Held(u32),
    /// No cell at all, but a question.
    Question,
    /// The question for a copy of the session, which is made when no cell is in flight.
    Fork,
    /// The reset of the isolate. A later reset does not end it.
    Reset,
}

impl Kind {
    pub(crate) fn is_cell(self) -> bool {
        matches!(self, Self::Cell | Self::Held(_))
    }

    /// The call of the host that it is.
    pub(crate) fn call(self) -> Option<u32> {
        match self {
            Self::Held(call) => Some(call),
            _ => None,
        }
    }
}

/// The next one.
pub(crate) enum Turn<P: Parts> {
    /// This run has the turn.
    Run(P::Run),
    /// This call needs a run, which has the turn as soon as [`Machine::hold`] has it. Without a message if the worker has
    /// that.
    Call(u32, Option<P::Message>),
}

/// The effect of a run on its session.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub(crate) enum Effect {
    /// The run did not begin.
    Untouched,
    /// The isolate is there, in that state.
    Back(SessionState),
    /// The isolate is lost, and the session begins anew. The run's result tells of that state.
    Lost(SessionState),
}

impl Effect {
    /// The effect on the state, as the run's result tells it.
    pub(crate) fn state(self) -> SessionState {
        match self {
            Self::Untouched => SessionState::Kept,
            Self::Back(state) | Self::Lost(state) => state,
        }
    }

    /// Whether the session begins anew.
    pub(in crate::runtime::sessions) fn is_reset(self) -> bool {
        matches!(self, Self::Lost(_) | Self::Back(SessionState::Reset))
    }
}

/// A session after one of its runs.
pub(crate) struct Left<M> {
    pub(crate) effect: Effect,
    /// Messages for the next cell: those that the run has not been handed, or that are to be handed in again.
    pub(crate) inbox: Vec<M>,
    /// Outcomes that the isolate needs anew. They come behind those messages.
    pub(crate) again: Vec<M>,
    /// Calls that the run has not been handed, and that the worker has.
    pub(crate) late: Vec<u32>,
    /// Other cells in flight that were undone with it. A reset undoes all.
    pub(crate) undone: Vec<u32>,
}

impl<M> Left<M> {
    pub(crate) fn of(effect: Effect) -> Self {
        Self { effect, inbox: Vec::new(), again: Vec::new(), late: Vec::new(), undone: Vec::new() }
    }
}

/// All that ends with a run.
pub(crate) struct Undone<P: Parts> {
    /// Calls that are rejected with the error of the run.
    pub(crate) calls: Vec<u32>,
    /// Calls that are rejected because their worker is lost.
    pub(crate) lost: Vec<u32>,
    /// Cells that were undone with it, and the calls that are rejected with the error of each.
    pub(crate) runs: Vec<(P::Run, Vec<u32>)>,
    /// Questions that only the lost worker could have answered.
    pub(crate) asked: Vec<P::Run>,
}

/// All that ends with a session, or with its reset.
pub(crate) struct Ends<P: Parts> {
    /// In the order in which they must be ended. A run may be there twice.
    pub(crate) runs: Vec<P::Run>,
    pub(crate) calls: Vec<u32>,
}

/// All that is freed at the end of a session.
pub(crate) struct Freed<P: Parts> {
    /// Whether it is now that everything must be freed. Otherwise it was before.
    pub(crate) is_first: bool,
    pub(crate) calls: Vec<u32>,
    pub(crate) closers: Vec<P::Closer>,
}

/// The runs of one session.
#[cfg_attr(test, derive(Clone, Hash))]
pub(crate) struct Machine<P: Parts> {
    interleaves: bool,
    /// The runs that are not over, by their numbers.
    runs: BTreeMap<u32, Known<P::Run, P::Message>>,
    /// The number of the last run.
    last: u32,
    /// The runs and calls that wait for their turn.
    queue: Queue<P::Message>,
    /// The run whose turn it is.
    current: Option<u32>,
    /// The cells in flight: those that have begun and are not over, in the order in which they began.
    begun: Vec<u32>,
    /// Cells that have got their turn and have not begun, while a worker has another one compute.
    granted: Vec<u32>,
    /// The questions that a worker has, in the order in which it answers them: cells may compute before it does.
    asked: VecDeque<u32>,
    /// Whether the worker parks for a run that has not begun.
    offer: Offer,
    /// How many turns in a row cells had because of their jobs in the engine, before those in the queue.
    jobs_ahead: usize,
    /// Messages of the host for the next cell.
    inbox: Inbox<P::Message>,
    calls: Calls,
    /// No call gets a turn any more: the end of the session comes right away, and rejects it.
    refuses_calls: bool,
    life: Life,
    /// How many threads end all runs at the moment. Nobody gets a turn meanwhile, and the host hears of those ends before
    /// that of the session.
    ending: usize,
    closers: Vec<P::Closer>,
}

/// A run that is not over.
#[cfg_attr(test, derive(Clone, Hash))]
struct Known<R, M> {
    run: R,
    kind: Kind,
    stage: Stage,
    /// The messages for it, while it waits for the host and others may compute.
    inbox: Vec<M>,
    /// Whether it waits, and nothing could resume it when it began to.
    is_stalled: bool,
}

#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
enum Stage {
    /// Waits for its turn.
    Queued,
    /// Has the turn, or had it, and has not begun.
    Granted,
    /// Has begun.
    Begun,
    /// Has begun, and gets another turn as soon as it waits for the host.
    Again,
    /// Waits for the host, while others may compute.
    Resting,
    /// In the queue for its next turn.
    Called,
}

#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
enum Life {
    Open,
    /// Closed, or nobody has a handle any more: everything is freed as soon as the runs are over.
    Ends,
    Freed,
}

/// How far a worker is that parks while cells could go on, because a run waits which has not begun.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
enum Offer {
    None,
    Asked,
    Parked,
}

impl<P: Parts> Machine<P> {
    pub(crate) fn new(interleaves: bool) -> Self {
        Self {
            interleaves,
            runs: BTreeMap::new(),
            last: 0,
            queue: Queue::default(),
            current: None,
            begun: Vec::new(),
            granted: Vec::new(),
            asked: VecDeque::new(),
            offer: Offer::None,
            jobs_ahead: 0,
            inbox: Inbox::default(),
            calls: Calls::default(),
            refuses_calls: false,
            life: Life::Open,
            ending: 0,
            closers: Vec::new(),
        }
    }

    /// That of a copy of the session, which has copies of the messages that wait. Its runs have other numbers than those
    /// before: the state has things of cells, with their numbers.
    pub(crate) fn copy(&self, copy: impl FnMut(&P::Message) -> P::Message) -> Self {
        let inbox = self.inbox.iter().map(copy).collect();
        Self { inbox, last: self.last, ..Self::new(self.interleaves) }
    }

    /// Whether cells interleave.
    pub(crate) fn interleaves(&self) -> bool {
        self.interleaves
    }

    /// A number for a new run.
    pub(crate) fn number(&mut self) -> u32 {
        self.last += 1;
        self.last
    }

    /// The run whose turn it is.
    pub(crate) fn current(&self) -> Option<&P::Run> {
        self.run_of(self.current?)
    }

    pub(crate) fn is_current(&self, number: u32) -> bool {
        self.current == Some(number)
    }

    /// The cells in flight.
    pub(crate) fn begun(&self) -> impl DoubleEndedIterator<Item = &P::Run> {
        self.begun.iter().filter_map(|number| self.run_of(*number))
    }

    fn run_of(&self, number: u32) -> Option<&P::Run> {
        self.runs.get(&number).map(|known| &known.run)
    }

    fn kind_of(&self, number: u32) -> Option<Kind> {
        self.runs.get(&number).map(|known| known.kind)
    }

    fn stage_of(&self, number: u32) -> Option<Stage> {
        self.runs.get(&number).map(|known| known.stage)
    }

    fn set_stage(&mut self, number: u32, stage: Stage) {
        if let Some(known) = self.runs.get_mut(&number) {
            known.stage = stage;
        }
    }

    /// No call gets a turn any more: the end of the session comes right away, and rejects it.
    pub(crate) fn refuse_calls(&mut self) {
        self.refuses_calls = true;
    }

    /// Whether all runs are being ended.
    pub(crate) fn is_ending(&self) -> bool {
        self.ending > 0
    }

    /// The messages for the next cell.
    pub(crate) fn inbox(&self) -> impl Iterator<Item = &P::Message> {
        self.inbox.iter()
    }

    /// Puts messages before those for the next cell.
    pub(crate) fn put_first(&mut self, messages: impl IntoIterator<Item = P::Message>) {
        self.inbox.put_first(messages);
    }

    /// Puts a run at the end of the queue.
    pub(crate) fn push(&mut self, number: u32, kind: Kind, run: P::Run) {
        self.add(number, kind, run, Stage::Queued);
        self.queue.push(Entry::Run(number));
    }

    /// The run of a call that has the turn.
    pub(crate) fn hold(&mut self, number: u32, call: u32, run: P::Run) {
        self.add(number, Kind::Held(call), run, Stage::Granted);
        self.calls.place(call, Placed::Own);
        self.current = Some(number);
    }

    fn add(&mut self, number: u32, kind: Kind, run: P::Run, stage: Stage) {
        self.runs.insert(number, Known { run, kind, stage, inbox: Vec::new(), is_stalled: false });
    }

    /// The run or call whose turn it is now, if nobody has it.
    pub(crate) fn next(&mut self) -> Option<Turn<P>> {
        if self.is_taken() {
            return None;
        }
        loop {
            let number = match self.next_entry()? {
                Entry::Run(number) => number,
                Entry::Call(call) if self.refuses_calls => {
                    self.queue.push_first(Entry::Call(call));
                    return None;
                }
                Entry::Call(call) => match self.calls.place_of(call) {
                    Some(Placed::Waiting) => match self.queue.take_call(call) {
                        Some(message) => return Some(Turn::Call(call, Some(message))),
                        None => continue,
                    },
                    Some(Placed::Left) => return Some(Turn::Call(call, None)),
                    Some(Placed::Sent) => {
                        self.queue.push_first(Entry::Call(call));
                        return None;
                    }
                    Some(Placed::In(_) | Placed::Own) | None => continue,
                },
            };
            let Some(known) = self.runs.get_mut(&number) else { continue };
            known.stage = match known.stage {
                Stage::Queued => Stage::Granted,
                Stage::Called => Stage::Begun,
                _ => continue,
            };
            self.current = Some(number);
            return Some(Turn::Run(known.run.clone()));
        }
    }

    /// Whether nobody can get the turn: somebody has it, or all runs are being ended.
    fn is_taken(&self) -> bool {
        self.current.is_some() || self.ending > 0
    }

    /// Takes out the next one in the queue. While cells are in flight, a copy of the session is set aside: those before it
    /// may wait for those behind it. A reset waits for them, and so do those behind it which have not begun.
    fn next_entry(&mut self) -> Option<Entry> {
        if self.begun.is_empty() && self.granted.is_empty() {
            let aside = self.queue.take_aside();
            return aside.map(Entry::Run).or_else(|| self.queue.pop());
        }
        while let Some(first) = self.queue.pop() {
            let Entry::Run(number) = first else { return Some(first) };
            let Some(known) = self.runs.get(&number) else { continue };
            match (known.kind, known.stage) {
                (Kind::Fork, Stage::Queued) => self.queue.set_aside(number),
                (Kind::Reset, Stage::Queued) => {
                    self.queue.push_first(first);
                    let runs = &self.runs;
                    let is_called = |number| {
                        runs.get(&number).is_some_and(|known| known.stage == Stage::Called)
                    };
                    return self.queue.take_first(
                        |entry| matches!(entry, Entry::Run(number) if is_called(number)),
                    );
                }
                _ => return Some(first),
            }
        }
        None
    }

    /// The run has begun. A worker forgets with it that it was to park for one.
    pub(crate) fn begin(&mut self, number: u32) {
        self.granted.retain(|granted| *granted != number);
        self.set_stage(number, Stage::Begun);
        self.offer = Offer::None;
        if self.kind_of(number).is_some_and(Kind::is_cell) {
            self.begun.push(number);
        }
    }

    /// Takes the messages for the run that begins.
    pub(crate) fn take_inbox(&mut self) -> Vec<P::Message> {
        self.inbox.take()
    }

    /// Keeps a message that nobody has. `listens`: whether the run that has the turn may be handed it later. Returns
    /// whether that one should be offered the messages that wait.
    pub(crate) fn keep(&mut self, message: P::Message, listens: bool) -> bool {
        let call = message.call();
        if let Some(call) = call {
            self.note_waiting(call);
        }
        if call.is_some() || (listens && self.queue.has_messages()) {
            self.queue.keep(message);
            return listens;
        }
        self.inbox.push(message);
        false
    }

    /// Gives a call its place in the queue.
    fn note_waiting(&mut self, call: u32) {
        self.calls.place(call, Placed::Waiting);
        self.queue.push(Entry::Call(call));
    }

    /// Whether a message for the run that has the turn would overtake calls that wait.
    pub(crate) fn has_messages(&self) -> bool {
        self.queue.has_messages()
    }

    /// The run that has the turn waits for the host: it is given the calls that wait, and the messages behind them, unless
    /// it refuses. Returns whether it has them.
    pub(crate) fn hand_over(
        &mut self,
        number: u32,
        give: impl FnOnce(&P::Run, VecDeque<P::Message>) -> Result<(), VecDeque<P::Message>>,
    ) -> bool {
        let known = self.runs.get(&number).filter(|_| self.current == Some(number));
        let Some(known) = known.filter(|_| self.queue.has_messages()) else { return false };
        let messages = self.queue.take_messages();
        let calls: Vec<u32> = messages.iter().filter_map(P::Message::call).collect();
        if let Err(messages) = give(&known.run, messages) {
            self.queue.put_back(messages);
            return false;
        }
        for &call in &calls {
            self.calls.place(call, Placed::In(number));
        }
        self.note_over(calls.len());
        true
    }

    /// Notes that so many entries of the queue will have no turn.
    fn note_over(&mut self, count: usize) {
        let Self { queue, calls, runs, .. } = self;
        queue.note_over(count, |entry| match entry {
            Entry::Run(number) => runs
                .get(&number)
                .is_some_and(|known| matches!(known.stage, Stage::Queued | Stage::Called)),
            Entry::Call(call) => calls.waits(call),
        });
    }

    /// Takes note of the outcome of a call; false if it is not for the host, which has one.
    pub(crate) fn settle(&mut self, call: u32) -> bool {
        self.calls.settle(call)
    }

    /// A run is over.
    pub(crate) fn leave(&mut self, number: u32, left: Left<P::Message>) -> Undone<P> {
        let Left { effect, inbox, again, late, undone } = left;
        self.inbox.look_again();
        let mut all =
            Undone { calls: Vec::new(), lost: Vec::new(), runs: Vec::new(), asked: Vec::new() };
        let Some(known) = self.runs.remove(&number) else { return all };
        all.calls = self.calls.end_of(known.kind.call());
        self.asked.retain(|asked| *asked != number);
        self.granted.retain(|granted| *granted != number);
        self.begun.retain(|begun| *begun != number);
        let is_current = self.current.take_if(|current| *current == number).is_some();
        if !is_current && (effect == Effect::Untouched || !known.kind.is_cell()) {
            // It waited in the queue, or for a worker's answer.
            self.note_over(1);
            return all;
        }
        self.inbox.put_first(again);
        self.keep_for_later(inbox.into_iter().chain(known.inbox));
        self.put_late_back(&late);
        let behind = self.queue.take_behind();
        self.inbox.extend(behind);
        if matches!(effect, Effect::Lost(_)) {
            (all.asked, all.lost) = self.lose_isolate();
        }
        if effect.is_reset() {
            all.calls.append(&mut self.calls.forget());
        } else if effect == Effect::Back(SessionState::RolledBack) {
            all.calls.append(&mut self.calls.undo(number));
        }
        let is_undone = |other: &mut u32| effect.is_reset() || undone.contains(other);
        let gone: Vec<u32> = self.begun.extract_if(.., is_undone).collect();
        for other in gone {
            self.current.take_if(|current| *current == other);
            let Some(known) = self.runs.remove(&other) else { continue };
            let mut calls = self.calls.undo(other);
            calls.append(&mut self.calls.end_of(known.kind.call()));
            // Others may wait for messages that are about cells which have completed.
            self.inbox.extend(known.inbox.into_iter().filter(|message| message.call().is_none()));
            self.note_over(usize::from(known.stage == Stage::Called));
            all.runs.push((known.run, calls));
        }
        all
    }

    /// Keeps messages that a cell has not been handed, or that it is to be handed again, in front of those that came
    /// since. Calls have the first turns; those that were rejected meanwhile are dropped.
    fn keep_for_later(&mut self, inbox: impl Iterator<Item = P::Message>) {
        let (calls, messages): (Vec<_>, Vec<_>) =
            inbox.partition(|message| message.call().is_some());
        self.inbox.put_first(messages);
        let is_pending =
            |message: &P::Message| message.call().is_some_and(|call| self.calls.is_pending(call));
        let calls: Vec<_> = calls.into_iter().filter(is_pending).collect();
        for call in calls.iter().filter_map(P::Message::call) {
            self.calls.place(call, Placed::Waiting);
        }
        self.queue.put_calls_back(calls);
    }

    /// Ends all runs, and rejects the host's calls. A reset leaves those before it, which have the same effect, and the
    /// cells in flight their next turn, in which they end. [`Machine::has_ended`] comes afterwards.
    pub(crate) fn end_all(&mut self, is_reset: bool) -> Ends<P> {
        let runs = &self.runs;
        let is_left = |number: u32| {
            runs.get(&number).is_some_and(|known| {
                known.stage == Stage::Called || (is_reset && known.kind == Kind::Reset)
            })
        };
        let waiting = self.queue.drain(is_left);
        // The one that computes first: the end of another cell in flight would undo it.
        let current = self.current.filter(|number| !is_left(*number));
        let all = current.into_iter().chain(waiting);
        let all = all.chain(self.granted.iter().chain(&self.begun).chain(&self.asked).copied());
        let ended = all.filter_map(|number| self.run_of(number).cloned()).collect();
        drop(self.inbox.take());
        self.ending += 1;
        Ends { runs: ended, calls: self.calls.take_all() }
    }

    /// The runs of [`Machine::end_all`] have been ended.
    pub(crate) fn has_ended(&mut self) {
        self.ending -= 1;
    }

    /// `closer` is told when everything is freed, as soon as the runs are over.
    pub(crate) fn close(&mut self, closer: P::Closer) {
        self.abandon();
        self.closers.push(closer);
    }

    /// Nobody has a handle any more: frees everything as soon as the runs are over.
    pub(crate) fn abandon(&mut self) {
        if self.life == Life::Open {
            self.life = Life::Ends;
        }
    }

    /// Frees everything, once no run is left in a session that ends.
    pub(crate) fn free(&mut self) -> Option<Freed<P>> {
        let is_busy = self.ending > 0 || !self.runs.is_empty();
        if self.life == Life::Open || is_busy || self.calls.any_waits() {
            return None;
        }
        let is_first = mem::replace(&mut self.life, Life::Freed) == Life::Ends;
        drop(self.inbox.take());
        Some(Freed {
            is_first,
            calls: self.calls.take_all(),
            closers: mem::take(&mut self.closers),
        })
    }
}
