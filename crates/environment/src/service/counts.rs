//! The counts of a service.
//!
//! In: what happens. Out: [`ServiceStats`](crate::ServiceStats).

use std::{collections::BTreeMap, time::Duration};

use crate::{ExecutionExitState, Histogram, ToolCount};

/// The bounds of times, in seconds.
const BOUNDS: [f64; 13] =
    [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0, 300.0, 3600.0];

/// Counts since the service began.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    exits: [u64; ExecutionExitState::ALL.len()],
    pub(crate) duration: Times,
    pub(crate) queue: Times,
    tools: BTreeMap<(String, &'static str), u64>,
    pub(crate) given_up: u64,
}

impl Counts {
    pub(crate) fn exit(&mut self, state: ExecutionExitState) {
        let place = ExecutionExitState::ALL.iter().position(|other| *other == state);
        if let Some(count) = place.and_then(|place| self.exits.get_mut(place)) {
            *count += 1;
        }
    }

    pub(crate) fn tool(&mut self, name: &str, outcome: &'static str) {
        *self.tools.entry((name.to_owned(), outcome)).or_default() += 1;
    }

    pub(crate) fn exits(&self) -> Vec<(ExecutionExitState, u64)> {
        ExecutionExitState::ALL.into_iter().zip(self.exits).collect()
    }

    pub(crate) fn tools(&self) -> Vec<ToolCount> {
        let count = |((tool, outcome), count): (&(String, &'static str), &u64)| ToolCount {
            tool: tool.clone(),
            outcome,
            count: *count,
        };
        self.tools.iter().map(count).collect()
    }
}

/// Counts of times.
#[derive(Debug, Default)]
pub(crate) struct Times {
    /// How many were at most as long as that bound, and longer than the bound before it.
    counts: [u64; BOUNDS.len()],
    sum: f64,
    count: u64,
}

impl Times {
    pub(crate) fn add(&mut self, time: Duration) {
        let seconds = time.as_secs_f64();
        let place = BOUNDS.partition_point(|bound| *bound < seconds);
        if let Some(count) = self.counts.get_mut(place) {
            *count += 1;
        }
        self.sum += seconds;
        self.count += 1;
    }

    pub(crate) fn histogram(&self) -> Histogram {
        let mut below = 0;
        let buckets = BOUNDS.into_iter().zip(self.counts).map(|(bound, count)| {
            below += count;
            (bound, below)
        });
        Histogram { buckets: buckets.collect(), sum: self.sum, count: self.count }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_count_all_times_up_to_their_bound() {
        let mut times = Times::default();
        for ms in [1, 1, 7, 20_000, 7_200_000] {
            times.add(Duration::from_millis(ms));
        }
        let histogram = times.histogram();
        assert_eq!(histogram.count, 5);
        assert_eq!(histogram.buckets.first(), Some(&(0.001, 2)));
        assert_eq!(histogram.buckets.get(2), Some(&(0.01, 3)));
        assert_eq!(histogram.buckets.last(), Some(&(3600.0, 4)));
    }
}
