//! News of a call or a run of the loop, for the thread or loop that started it.
//!
//! In: items, from any thread, without the interpreter's lock. Out: all of them at once. The mailbox is told once for all
//! that have come since they were last taken.

use std::collections::VecDeque;

use crate::{host::PyMailbox, lock::Lock};

pub(super) struct Inbox<T> {
    state: Lock<State<T>>,
    notice: Box<dyn Fn() + Send + Sync>,
}

struct State<T> {
    items: VecDeque<T>,
    /// Whether the mailbox was told of items that nobody has taken.
    is_announced: bool,
    /// Whether the last item is here.
    is_closed: bool,
}

impl<T> Inbox<T> {
    /// Announces items to that mailbox, as notices of that number.
    pub(super) fn new(mailbox: &PyMailbox, number: u64) -> Self {
        Self::announcing(mailbox.notice(number))
    }

    /// Announces items to nobody.
    pub(super) fn silent() -> Self {
        Self::announcing(|| ())
    }

    fn announcing(notice: impl Fn() + Send + Sync + 'static) -> Self {
        let state = State { items: VecDeque::new(), is_announced: false, is_closed: false };
        Self { state: Lock::new(state), notice: Box::new(notice) }
    }

    pub(super) fn push(&self, item: T) {
        self.add(item, false);
    }

    /// Adds the last item. Later ones are dropped.
    pub(super) fn push_last(&self, item: T) {
        self.add(item, true);
    }

    fn add(&self, item: T, is_last: bool) {
        let mut state = self.state.lock();
        if state.is_closed {
            return;
        }
        state.is_closed = is_last;
        state.items.push_back(item);
        let is_announced = std::mem::replace(&mut state.is_announced, true);
        drop(state);
        if !is_announced {
            (self.notice)();
        }
    }

    /// All items that have come.
    pub(super) fn take(&self) -> VecDeque<T> {
        let mut state = self.state.lock();
        state.is_announced = false;
        std::mem::take(&mut state.items)
    }
}
