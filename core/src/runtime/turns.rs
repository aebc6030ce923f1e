//! The runs and the host's calls that wait for their turn in a session.
//!
//! In: runs as they are queued, and calls of functions of the sandbox as the host makes them. Out: both, in the order in
//! which they came. A call becomes a run when its turn comes. A cell that waits for the host before that is handed all
//! calls that wait, and the messages that came behind them. Runs that need the session without cells in flight let
//! others pass.

use std::{collections::VecDeque, sync::Arc};

use crate::binding::inbound::Inbound;

/// One that waits.
pub(crate) enum Entry<R> {
    Run(Arc<R>),
    /// The call with that number, unless a cell has it.
    Call(u32),
}

/// All that wait in one session.
pub(crate) struct Turns<R> {
    entries: VecDeque<Entry<R>>,
    /// Runs whose turn has come, and that wait until no cell is in flight.
    aside: VecDeque<Arc<R>>,
    /// The calls, in their order, and the messages that came behind them while a cell ran.
    messages: VecDeque<Inbound>,
    /// How many of the messages are no calls.
    behind: usize,
    /// About how many of the entries will have no turn.
    over: usize,
}

impl<R> Default for Turns<R> {
    fn default() -> Self {
        Self {
            entries: VecDeque::new(),
            aside: VecDeque::new(),
            messages: VecDeque::new(),
            behind: 0,
            over: 0,
        }
    }
}

impl<R> Turns<R> {
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.aside.is_empty()
    }

    /// Keeps a run whose turn has come until no cell is in flight.
    pub(crate) fn set_aside(&mut self, run: Arc<R>) {
        self.aside.push_back(run);
    }

    /// Takes out the run that has waited longest for that.
    pub(crate) fn take_aside(&mut self) -> Option<Arc<R>> {
        self.aside.pop_front()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Entry<R>> {
        self.entries.iter()
    }

    pub(crate) fn push(&mut self, run: Arc<R>) {
        self.entries.push_back(Entry::Run(run));
    }

    pub(crate) fn push_first(&mut self, entry: Entry<R>) {
        self.entries.push_front(entry);
    }

    /// Takes out the entry at that place.
    pub(crate) fn remove(&mut self, place: usize) -> Option<Entry<R>> {
        self.entries.remove(place)
    }

    /// Takes out the first entry.
    pub(crate) fn pop(&mut self) -> Option<Entry<R>> {
        self.entries.pop_front()
    }

    /// Takes out all runs, and forgets the calls.
    pub(crate) fn drain(&mut self) -> Vec<Arc<R>> {
        let Self { entries, aside, .. } = std::mem::take(self);
        let run = |entry| match entry {
            Entry::Run(run) => Some(run),
            Entry::Call(_) => None,
        };
        aside.into_iter().chain(entries.into_iter().filter_map(run)).collect()
    }

    /// Keeps the entries that are alive.
    pub(crate) fn retain(&mut self, is_alive: impl FnMut(&Entry<R>) -> bool) {
        self.entries.retain(is_alive);
        self.over = 0;
    }

    /// Notes that so many entries will have no turn. They are dropped when they are half of all.
    pub(crate) fn note_over(&mut self, count: usize, is_alive: impl FnMut(&Entry<R>) -> bool) {
        self.over += count;
        if self.over * 2 > self.entries.len() {
            self.retain(is_alive);
        }
    }

    /// Gives a call its place, before anybody has the message.
    pub(crate) fn push_call(&mut self, call: u32) {
        self.entries.push_back(Entry::Call(call));
    }

    /// Whether calls wait here.
    pub(crate) fn has_messages(&self) -> bool {
        !self.messages.is_empty()
    }

    /// Keeps the message of a call that has its place, or one that came behind calls.
    pub(crate) fn keep(&mut self, inbound: Inbound) {
        self.behind += usize::from(!matches!(inbound, Inbound::FunctionCall { .. }));
        self.messages.push_back(inbound);
    }

    /// Takes out all messages, for a cell that is handed them in this order.
    pub(crate) fn take_messages(&mut self) -> VecDeque<Inbound> {
        self.behind = 0;
        std::mem::take(&mut self.messages)
    }

    /// Puts messages back that were taken out.
    pub(crate) fn put_back(&mut self, messages: VecDeque<Inbound>) {
        debug_assert!(self.messages.is_empty(), "taken out, and put back before others came");
        for inbound in messages {
            self.keep(inbound);
        }
    }

    /// Gives calls that a cell had, and was not handed, the first turns again.
    pub(crate) fn put_calls_back(&mut self, calls: Vec<Inbound>) {
        for inbound in calls.into_iter().rev() {
            if let Inbound::FunctionCall { call, .. } = &inbound {
                self.entries.push_front(Entry::Call(*call));
                self.messages.push_front(inbound);
            }
        }
    }

    /// Takes out the messages that are no calls: the cell that they waited for is over.
    pub(crate) fn take_behind(&mut self) -> Vec<Inbound> {
        if std::mem::take(&mut self.behind) == 0 {
            return Vec::new();
        }
        let is_call = |inbound: &Inbound| matches!(inbound, Inbound::FunctionCall { .. });
        let messages = std::mem::take(&mut self.messages);
        let (calls, others): (Vec<_>, Vec<_>) = messages.into_iter().partition(is_call);
        self.messages = calls.into();
        others
    }

    /// Takes out the message of a call whose turn it is; `None` if a cell has it.
    pub(crate) fn take_call(&mut self, number: u32) -> Option<Inbound> {
        self.messages.pop_front_if(
            |inbound| matches!(inbound, Inbound::FunctionCall { call, .. } if *call == number),
        )
    }
}
