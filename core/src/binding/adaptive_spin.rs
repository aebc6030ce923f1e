//! How long to look for what is about to come before sleeping over it.
//!
//! In: how long things took to come, and whether looking for them was enough. Out: for how long to look
//! for the next one. Waking a thread that sleeps costs more than most runs, on either side; and two
//! threads that each go to sleep just before the other one answers never stop doing so. So who was woken
//! for what nearly came in time looks for longer, and goes on doing so for as long as that helps: where
//! the processors are taken by others it does not, and only keeps the other side from answering.

use std::{
    sync::atomic::{AtomicI32, Ordering},
    thread,
    time::{Duration, Instant},
};

/// As long as most answers take on a machine that has nothing else to do.
const SHORT: Duration = Duration::from_micros(50);
/// As long as such an answer takes from one who has to be woken for it.
const LONG: Duration = Duration::from_micros(250);
/// What took this long nearly came in time, had the one who waited not had to be woken.
const NEAR: Duration = Duration::from_micros(350);
/// From here on others may need the processor more.
const ALONE: Duration = Duration::from_micros(10);

/// How many looks in vain end the long ones.
const TRIES: i32 = 4;
/// How much trust long looks can earn.
const MOST_TRUST: i32 = 16;
/// How many near misses it takes to try long looks again, at first and at most.
const FIRST_DOUBT: i32 = 4;
const MOST_DOUBT: i32 = 1024;

/// How long to look for things of one kind, as those before them taught. Shared by all threads that wait for
/// such; a lost lesson is no harm.
#[derive(Debug)]
pub(crate) struct AdaptiveSpin {
    /// Above zero looks are long: how many in vain it takes until they are not. Otherwise how many near
    /// misses it takes until they are.
    trust: AtomicI32,
    doubt: AtomicI32,
}

impl Default for AdaptiveSpin {
    fn default() -> Self {
        Self::new()
    }
}

impl AdaptiveSpin {
    /// Nothing learned yet.
    #[must_use]
    pub(crate) const fn new() -> Self {
        Self { trust: AtomicI32::new(0), doubt: AtomicI32::new(FIRST_DOUBT) }
    }

    /// Looks until it is there, or for as long as is worth it, since `started`. Returns whether it is.
    pub(crate) fn look(&self, started: Instant, is_there: impl Fn() -> bool) -> bool {
        loop {
            if is_there() {
                return true;
            }
            let looked = started.elapsed();
            if looked > self.window() {
                return false;
            }
            if looked < ALONE { std::hint::spin_loop() } else { thread::yield_now() }
        }
    }

    /// Whether it is still worth looking, having begun at `started`.
    #[must_use]
    pub(crate) fn lasts(&self, started: Instant) -> bool {
        started.elapsed() < self.window()
    }

    /// It took that long to come, and was found by looking, or else by being woken.
    pub(crate) fn learn(&self, took: Duration, found: bool) {
        let trust = self.trust.load(Ordering::Relaxed);
        if trust <= 0 {
            if !found && took < NEAR {
                let next = if trust == 0 { TRIES } else { trust + 1 };
                self.trust.store(next, Ordering::Relaxed);
            }
        } else if found {
            self.trust.store((trust + 1).min(MOST_TRUST), Ordering::Relaxed);
            if took > SHORT {
                self.doubt.store(FIRST_DOUBT, Ordering::Relaxed);
            }
        } else if trust > 1 {
            self.trust.store(trust - 1, Ordering::Relaxed);
        } else {
            let doubt = self.doubt.load(Ordering::Relaxed);
            self.trust.store(-doubt, Ordering::Relaxed);
            self.doubt.store((doubt * 2).min(MOST_DOUBT), Ordering::Relaxed);
        }
    }

    fn window(&self) -> Duration {
        if self.trust.load(Ordering::Relaxed) > 0 { LONG } else { SHORT }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEARLY: Duration = Duration::from_micros(150);

    #[test]
    fn what_nearly_came_in_time_is_looked_for_for_longer() {
        let spin = AdaptiveSpin::default();
        assert_eq!(spin.window(), SHORT);
        spin.learn(Duration::from_secs(1), false);
        assert_eq!(spin.window(), SHORT, "that was not near");
        spin.learn(NEARLY, false);
        assert_eq!(spin.window(), LONG);
        (0..100).for_each(|_| spin.learn(NEARLY, true));
        (0..TRIES).for_each(|_| spin.learn(NEARLY, false));
        assert_eq!(spin.window(), LONG, "a few in vain are forgiven");
    }

    #[test]
    fn looks_in_vain_are_given_up_and_tried_ever_less_often() {
        let spin = AdaptiveSpin::default();
        let mut misses = Vec::new();
        for _ in 0..4 {
            let mut missed = 0;
            while spin.window() == SHORT {
                spin.learn(NEARLY, false);
                missed += 1;
            }
            misses.push(missed);
            while spin.window() == LONG {
                spin.learn(NEARLY, false);
            }
        }
        assert_eq!(misses, [1, 5, 9, 17]);
    }

    #[test]
    fn it_looks_no_longer_than_that() {
        let spin = AdaptiveSpin::default();
        let started = Instant::now();
        assert!(!spin.look(started, || false));
        assert!(started.elapsed() >= SHORT);
        assert!(spin.look(Instant::now(), || true));
    }
}
