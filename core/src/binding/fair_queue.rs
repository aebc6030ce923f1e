//! A queue of events of many runs for one thread, which takes them from each run in turn.
//!
//! In: events, each of one run. Out: the same, in order for each run and by turns among runs. So a run with many events
//! delays itself, and no other.

use std::collections::{HashMap, HashSet, VecDeque};

/// Events that wait, by the number of their run.
#[derive(Debug)]
pub(crate) struct FairQueue<E> {
    queues: HashMap<u64, VecDeque<(u64, E)>>,
    /// The runs that have events, the next one first.
    order: VecDeque<u64>,
    /// Runs whose events are held back.
    held: HashSet<u64>,
    /// Events that come after all that were there before them.
    last: VecDeque<(u64, u64, E)>,
    pushed: u64,
}

impl<E> Default for FairQueue<E> {
    fn default() -> Self {
        Self {
            queues: HashMap::new(),
            order: VecDeque::new(),
            held: HashSet::new(),
            last: VecDeque::new(),
            pushed: 0,
        }
    }
}

impl<E> FairQueue<E> {
    /// Adds an event of that run.
    pub(crate) fn push(&mut self, run: u64, event: E) {
        self.pushed += 1;
        let queue = self.queues.entry(run).or_default();
        if queue.is_empty() && !self.held.contains(&run) {
            self.order.push_back(run);
        }
        queue.push_back((self.pushed, event));
    }

    /// Adds an event that comes after all that are there, of any run.
    pub(crate) fn push_last(&mut self, number: u64, event: E) {
        self.pushed += 1;
        self.last.push_back((self.pushed, number, event));
    }

    /// The next event, with the number that it was added under.
    pub(crate) fn pop(&mut self) -> Option<(u64, E)> {
        if let Some((place, ..)) = self.last.front()
            && self
                .queues
                .values()
                .all(|queue| queue.front().is_none_or(|(other, _)| other > place))
        {
            return self.last.pop_front().map(|(_, number, event)| (number, event));
        }
        let run = self.order.pop_front()?;
        let queue = self.queues.get_mut(&run)?;
        let next = queue.pop_front();
        if queue.is_empty() {
            self.queues.remove(&run);
        } else {
            self.order.push_back(run);
        }
        next.map(|(_, event)| (run, event))
    }

    /// Holds back the events of that run until [`FairQueue::resume`].
    pub(crate) fn hold(&mut self, run: u64) {
        if self.held.insert(run) {
            self.order.retain(|other| *other != run);
        }
    }

    /// Releases the events of that run.
    pub(crate) fn resume(&mut self, run: u64) {
        if self.held.remove(&run) && self.queues.contains_key(&run) {
            self.order.push_back(run);
        }
    }

    /// Takes out all events of that run, in their order.
    pub(crate) fn take(&mut self, run: u64) -> Vec<E> {
        self.order.retain(|other| *other != run);
        self.held.remove(&run);
        let queue = self.queues.remove(&run).unwrap_or_default();
        queue.into_iter().map(|(_, event)| event).collect()
    }

    /// Whether no event can be popped, except those that come last.
    #[must_use]
    pub(crate) fn is_empty(&self) -> bool {
        self.order.is_empty() && self.last.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(turns: &mut FairQueue<&'static str>) -> Vec<&'static str> {
        std::iter::from_fn(|| turns.pop()).map(|(_, event)| event).collect()
    }

    #[test]
    fn runs_take_turns_and_keep_their_order() {
        let mut turns = FairQueue::default();
        for event in ["a1", "a2", "a3"] {
            turns.push(1, event);
        }
        turns.push(2, "b1");
        turns.push(3, "c1");
        turns.push(2, "b2");
        assert_eq!(all(&mut turns), ["a1", "b1", "c1", "a2", "b2", "a3"]);
        assert!(turns.is_empty());
    }

    #[test]
    fn last_events_wait_for_earlier_ones_and_for_nothing_else() {
        let mut turns = FairQueue::default();
        turns.push(1, "a1");
        turns.push(1, "a2");
        turns.push_last(9, "end");
        turns.push(2, "b1");
        turns.push(1, "a3");
        assert_eq!(all(&mut turns), ["a1", "b1", "a2", "end", "a3"]);
        turns.push_last(9, "end");
        assert_eq!(turns.pop(), Some((9, "end")));
    }

    #[test]
    fn the_events_of_a_run_that_is_held_wait_and_those_of_others_do_not() {
        let mut turns = FairQueue::default();
        turns.push(1, "a1");
        turns.push(2, "b1");
        turns.hold(1);
        turns.push(1, "a2");
        turns.push_last(9, "end");
        assert_eq!(all(&mut turns), ["b1"]);
        turns.resume(1);
        assert_eq!(all(&mut turns), ["a1", "a2", "end"]);
        turns.hold(2);
        turns.push(2, "b2");
        assert!(turns.is_empty());
        turns.resume(2);
        assert_eq!(all(&mut turns), ["b2"]);
    }

    #[test]
    fn the_events_of_one_run_can_be_taken_out() {
        let mut turns = FairQueue::default();
        turns.push(1, "a1");
        turns.push(2, "b1");
        turns.push(1, "a2");
        assert_eq!(turns.take(1), ["a1", "a2"]);
        assert_eq!(all(&mut turns), ["b1"]);
    }
}
