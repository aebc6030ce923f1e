//! A queue of events of many runs for one thread, which takes them from each run in turn.
//!
//! In: events, each of one run, which is in a lane. Out: the same, in order for each lane and by turns among lanes. So a run
//! with many events delays itself, and no other but those in its lane: the cells of a session have one lane, because their
//! ends have an order, too.

use std::collections::{HashMap, HashSet, VecDeque};

/// Events that wait, by the number of their lane.
#[derive(Debug)]
pub(crate) struct FairQueue<E> {
    lanes: HashMap<u64, VecDeque<Waiting<E>>>,
    /// The lanes that have an event which is not held back, the next one first.
    order: VecDeque<u64>,
    /// Runs whose events are held back, with all behind them.
    held: HashSet<u64>,
    /// Events that come after all that were there before them.
    last: VecDeque<Waiting<E>>,
    pushed: u64,
}

#[derive(Debug)]
struct Waiting<E> {
    place: u64,
    run: u64,
    event: E,
}

impl<E> Default for FairQueue<E> {
    fn default() -> Self {
        Self {
            lanes: HashMap::new(),
            order: VecDeque::new(),
            held: HashSet::new(),
            last: VecDeque::new(),
            pushed: 0,
        }
    }
}

impl<E> FairQueue<E> {
    /// Adds an event of that run, in that lane.
    pub(crate) fn push(&mut self, lane: u64, run: u64, event: E) {
        self.pushed += 1;
        let waiting = self.lanes.entry(lane).or_default();
        if waiting.is_empty() && !self.held.contains(&run) {
            self.order.push_back(lane);
        }
        waiting.push_back(Waiting { place: self.pushed, run, event });
    }

    /// Adds an event that comes after all that are there, of any run.
    pub(crate) fn push_last(&mut self, number: u64, event: E) {
        self.pushed += 1;
        self.last.push_back(Waiting { place: self.pushed, run: number, event });
    }

    /// The next event, with the number that it was added under.
    pub(crate) fn pop(&mut self) -> Option<(u64, E)> {
        if let Some(Waiting { place, .. }) = self.last.front()
            && self
                .lanes
                .values()
                .all(|waiting| waiting.front().is_none_or(|other| other.place > *place))
        {
            return self.last.pop_front().map(|last| (last.run, last.event));
        }
        let lane = self.order.pop_front()?;
        let next = self.lanes.get_mut(&lane)?.pop_front();
        self.put_in_order(lane);
        next.map(|next| (next.run, next.event))
    }

    /// Holds back the events of that run, and those behind them in its lane, until [`FairQueue::resume`].
    pub(crate) fn hold(&mut self, run: u64) {
        if self.held.insert(run) {
            let Self { lanes, order, .. } = self;
            order.retain(|lane| first_of(lanes, *lane) != Some(run));
        }
    }

    /// Releases the events of that run.
    pub(crate) fn resume(&mut self, run: u64) {
        if self.held.remove(&run) {
            let is_first = |lane: &u64| first_of(&self.lanes, *lane) == Some(run);
            let lanes: Vec<u64> = self.lanes.keys().copied().filter(is_first).collect();
            self.order.extend(lanes);
        }
    }

    /// Takes out all events of that run, in their order.
    pub(crate) fn take(&mut self, lane: u64, run: u64) -> Vec<E> {
        self.held.remove(&run);
        let waiting = self.lanes.remove(&lane).unwrap_or_default();
        let (taken, left): (VecDeque<_>, _) =
            waiting.into_iter().partition(|waiting| waiting.run == run);
        self.lanes.insert(lane, left);
        self.order.retain(|other| *other != lane);
        self.put_in_order(lane);
        taken.into_iter().map(|taken| taken.event).collect()
    }

    /// Whether no event can be popped, except those that come last.
    #[must_use]
    pub(crate) fn is_empty(&self) -> bool {
        self.order.is_empty() && self.last.is_empty()
    }

    /// Gives a lane the last turn, if it has an event that is not held back.
    fn put_in_order(&mut self, lane: u64) {
        match first_of(&self.lanes, lane) {
            Some(run) if self.held.contains(&run) => {}
            Some(_) => self.order.push_back(lane),
            None => drop(self.lanes.remove(&lane)),
        }
    }
}

/// The run whose event is the next one in a lane.
fn first_of<E>(lanes: &HashMap<u64, VecDeque<Waiting<E>>>, lane: u64) -> Option<u64> {
    lanes.get(&lane)?.front().map(|next| next.run)
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
            turns.push(1, 1, event);
        }
        turns.push(2, 2, "b1");
        turns.push(3, 3, "c1");
        turns.push(2, 2, "b2");
        assert_eq!(all(&mut turns), ["a1", "b1", "c1", "a2", "b2", "a3"]);
        assert!(turns.is_empty());
    }

    #[test]
    fn last_events_wait_for_earlier_ones_and_for_nothing_else() {
        let mut turns = FairQueue::default();
        turns.push(1, 1, "a1");
        turns.push(1, 1, "a2");
        turns.push_last(9, "end");
        turns.push(2, 2, "b1");
        turns.push(1, 1, "a3");
        assert_eq!(all(&mut turns), ["a1", "b1", "a2", "end", "a3"]);
        turns.push_last(9, "end");
        assert_eq!(turns.pop(), Some((9, "end")));
    }

    #[test]
    fn the_events_of_a_run_that_is_held_wait_and_those_of_others_do_not() {
        let mut turns = FairQueue::default();
        turns.push(1, 1, "a1");
        turns.push(2, 2, "b1");
        turns.hold(1);
        turns.push(1, 1, "a2");
        turns.push_last(9, "end");
        assert_eq!(all(&mut turns), ["b1"]);
        turns.resume(1);
        assert_eq!(all(&mut turns), ["a1", "a2", "end"]);
        turns.hold(2);
        turns.push(2, 2, "b2");
        assert!(turns.is_empty());
        turns.resume(2);
        assert_eq!(all(&mut turns), ["b2"]);
    }

    #[test]
    fn the_events_of_one_run_can_be_taken_out() {
        let mut turns = FairQueue::default();
        turns.push(1, 1, "a1");
        turns.push(2, 2, "b1");
        turns.push(1, 1, "a2");
        assert_eq!(turns.take(1, 1), ["a1", "a2"]);
        assert_eq!(all(&mut turns), ["b1"]);
    }

    #[test]
    fn runs_in_one_lane_keep_their_common_order() {
        let mut turns = FairQueue::default();
        for (lane, run, event) in
            [(9, 1, "a1"), (9, 1, "a2"), (9, 2, "b1"), (3, 3, "c1"), (9, 1, "a3"), (3, 3, "c2")]
        {
            turns.push(lane, run, event);
        }
        assert_eq!(all(&mut turns), ["a1", "c1", "a2", "c2", "b1", "a3"]);
    }

    #[test]
    fn a_run_that_is_held_holds_back_those_behind_it_in_its_lane() {
        let mut turns = FairQueue::default();
        for (lane, run, event) in [(9, 1, "a1"), (9, 2, "b1"), (9, 1, "a2"), (3, 3, "c1")] {
            turns.push(lane, run, event);
        }
        assert_eq!(turns.pop(), Some((1, "a1")));
        turns.hold(1);
        assert_eq!(all(&mut turns), ["c1", "b1"]);
        assert!(turns.is_empty());
        turns.push(9, 2, "b2");
        assert!(turns.is_empty());
        turns.resume(1);
        assert_eq!(all(&mut turns), ["a2", "b2"]);
        turns.hold(2);
        turns.push(9, 2, "b3");
        turns.push(9, 1, "a3");
        assert_eq!(turns.take(9, 2), ["b3"]);
        assert_eq!(all(&mut turns), ["a3"]);
    }
}
