//! The runs and the host's calls that wait for their turn in a session.
//!
//! In: the numbers of runs as they are queued, and of calls as the host makes them. Out: both, in the order in which they
//! came. A call becomes a run when its turn comes. A cell that waits for the host before that is handed all calls that
//! wait, and the messages that came behind them. Copies of the session let others pass while cells are in flight.

use std::collections::VecDeque;

use super::machine::Message;

/// One that waits.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub(super) enum Entry {
    Run(u32),
    /// The call with that number, unless a cell has it.
    Call(u32),
}

/// All that wait in one session. Entries that will have no turn may be among them.
#[derive(Clone, Debug, Hash, PartialEq, Eq)]
pub(super) struct Queue<M> {
    entries: VecDeque<Entry>,
    /// Runs whose turn has come, and that wait until no cell is in flight.
    aside: VecDeque<u32>,
    /// The calls, in their order, and the messages that came behind them while a cell ran.
    messages: VecDeque<M>,
    /// How many of the messages are no calls.
    behind: usize,
    /// About how many of the entries will have no turn.
    over: usize,
}

impl<M> Default for Queue<M> {
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

impl<M: Message> Queue<M> {
    /// Keeps a run whose turn has come until no cell is in flight.
    pub(super) fn set_aside(&mut self, run: u32) {
        self.aside.push_back(run);
    }

    /// Takes out the run that has waited longest for that.
    pub(super) fn take_aside(&mut self) -> Option<u32> {
        self.aside.pop_front()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Entry> {
        self.entries.iter().copied()
    }

    pub(super) fn push(&mut self, entry: Entry) {
        self.entries.push_back(entry);
    }

    pub(super) fn push_first(&mut self, entry: Entry) {
        self.entries.push_front(entry);
    }

    /// Takes out the first entry.
    pub(super) fn pop(&mut self) -> Option<Entry> {
        self.entries.pop_front()
    }

    /// Takes out the first entry that `is_it`.
    pub(super) fn take_first(&mut self, is_it: impl FnMut(Entry) -> bool) -> Option<Entry> {
        let place = self.iter().position(is_it)?;
        self.entries.remove(place)
    }

    /// Takes out all runs but those that stay, and forgets the calls and the messages.
    pub(super) fn drain(&mut self, mut stays: impl FnMut(u32) -> bool) -> Vec<u32> {
        let Self { entries, aside, .. } = std::mem::take(self);
        let mut gone: Vec<u32> = aside.into();
        for entry in entries {
            match entry {
                Entry::Run(run) if stays(run) => self.entries.push_back(entry),
                Entry::Run(run) => gone.push(run),
                Entry::Call(_) => {}
            }
        }
        gone
    }

    /// Notes that so many entries will have no turn. They are dropped when they are half of all.
    pub(super) fn note_over(&mut self, count: usize, mut is_alive: impl FnMut(Entry) -> bool) {
        self.over += count;
        if self.over * 2 > self.entries.len() + self.aside.len() {
            self.entries.retain(|entry| is_alive(*entry));
            self.aside.retain(|run| is_alive(Entry::Run(*run)));
            self.over = 0;
        }
    }

    /// Whether calls wait here, or messages behind them.
    pub(super) fn has_messages(&self) -> bool {
        !self.messages.is_empty()
    }

    /// Keeps the message of a call that has its place, or one that came behind calls.
    pub(super) fn keep(&mut self, message: M) {
        self.behind += usize::from(message.call().is_none());
        self.messages.push_back(message);
    }

    /// Takes out all messages, for a cell that is handed them in this order.
    pub(super) fn take_messages(&mut self) -> VecDeque<M> {
        self.behind = 0;
        std::mem::take(&mut self.messages)
    }

    /// Puts messages back that were taken out.
    pub(super) fn put_back(&mut self, messages: VecDeque<M>) {
        debug_assert!(self.messages.is_empty(), "taken out, and put back before others came");
        for message in messages {
            self.keep(message);
        }
    }

    /// Gives calls that a cell had, and was not handed, the first turns again.
    pub(super) fn put_calls_back(&mut self, calls: Vec<M>) {
        for message in calls.into_iter().rev() {
            if let Some(call) = message.call() {
                self.entries.push_front(Entry::Call(call));
                self.messages.push_front(message);
            }
        }
    }

    /// Takes out the messages that are no calls: the cell that they waited for is over.
    pub(super) fn take_behind(&mut self) -> Vec<M> {
        if std::mem::take(&mut self.behind) == 0 {
            return Vec::new();
        }
        let messages = std::mem::take(&mut self.messages);
        let (calls, others): (Vec<_>, Vec<_>) =
            messages.into_iter().partition(|message| message.call().is_some());
        self.messages = calls.into();
        others
    }

    /// Takes out the message of a call whose turn it is; `None` if a cell has it.
    pub(super) fn take_call(&mut self, number: u32) -> Option<M> {
        self.messages.pop_front_if(|message| message.call() == Some(number))
    }
}
