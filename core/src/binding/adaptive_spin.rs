//! The time for which a thread spins for an event before it sleeps.
//!
//! In: how long events took to arrive, and whether spinning was enough. Out: how long to spin for the next one. To wake
//! a sleeping thread costs more than most runs, on either side. Two threads that each go to sleep just before the other
//! one answers never stop doing so. So after a near miss we spin longer, as long as that pays off. It does not where
//! others take the processors: there spinning only delays the other side. Where both threads are on one processor, the
//! waiting thread yields at once, so that the other one can send.

use std::{
    sync::atomic::{AtomicI32, AtomicU32, Ordering},
    thread,
    time::{Duration, Instant},
};

use crate::os::thread::processor;

/// The time that most answers take on an idle machine.
const SHORT: Duration = Duration::from_micros(50);
/// The time that such an answer takes from a thread that has to be woken for it.
const LONG: Duration = Duration::from_micros(250);
/// An event that took less is a near miss: part of that time went into waking the thread that waited.
const NEAR: Duration = Duration::from_micros(350);
/// After this long the spinning thread yields, because others may need the processor more.
const ALONE: Duration = Duration::from_micros(10);

/// How many long spins may fail before spins are short again.
const TRIES: i32 = 4;
/// The most failures that successful long spins can make up for.
const MOST_TRUST: i32 = 16;
/// How many near misses it takes to try long spins again, at first and at most.
const FIRST_DOUBT: i32 = 4;
const MOST_DOUBT: i32 = 1024;

/// How long to spin for events of one kind, learned from earlier ones. Shared by all threads that wait for such events;
/// a lost update does no harm.
#[derive(Debug)]
pub(crate) struct AdaptiveSpin {
    /// Above zero, spins are long, and so many may fail until they are short. Otherwise, so many near misses make them
    /// long.
    trust: AtomicI32,
    doubt: AtomicI32,
    /// The processor from which the last event was sent.
    sender: AtomicU32,
}

/// Stands for a processor that is not known.
const UNKNOWN: u32 = u32::MAX;

impl Default for AdaptiveSpin {
    fn default() -> Self {
        Self::new()
    }
}

impl AdaptiveSpin {
    /// A spin that has learned nothing.
    #[must_use]
    pub(crate) const fn new() -> Self {
        Self {
            trust: AtomicI32::new(0),
            doubt: AtomicI32::new(FIRST_DOUBT),
            sender: AtomicU32::new(UNKNOWN),
        }
    }

    /// Says that the calling thread sends an event.
    pub(crate) fn sent(&self) {
        self.sender.store(processor().unwrap_or(UNKNOWN), Ordering::Relaxed);
    }

    /// Spins from `started` on until `is_there`, or for as long as that pays off. Returns whether it is there.
    pub(crate) fn spin(&self, started: Instant, is_there: impl Fn() -> bool) -> bool {
        loop {
            if is_there() {
                return true;
            }
            let spun = started.elapsed();
            if spun > self.window() {
                return false;
            }
            if spun < ALONE && !self.shares_processor() {
                std::hint::spin_loop();
            } else {
                thread::yield_now();
            }
        }
    }

    /// Whether a spin that began at `started` still pays off.
    #[must_use]
    pub(crate) fn lasts(&self, started: Instant) -> bool {
        started.elapsed() < self.window()
    }

    /// Learns that an event took that long, and whether spinning `found` it or the thread had to be woken.
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

    /// Whether the calling thread is on the processor of the sender.
    fn shares_processor(&self) -> bool {
        let sender = self.sender.load(Ordering::Relaxed);
        sender != UNKNOWN && processor() == Some(sender)
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
    fn a_near_miss_makes_spins_longer() {
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
        assert!(!spin.spin(started, || false));
        assert!(started.elapsed() >= SHORT);
        assert!(spin.spin(Instant::now(), || true));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn it_knows_when_the_sender_is_on_its_processor() {
        let spin = AdaptiveSpin::default();
        assert!(!spin.shares_processor(), "nothing was sent");
        let sends_here = || {
            spin.sent();
            spin.shares_processor()
        };
        // The system may move this thread between the two.
        assert!((0..1_000).any(|_| sends_here()));
    }
}
