//! How long to look for what is about to come before sleeping over it.
//!
//! In: how long things took to come. Out: for how long to look for the next one. Waking a thread that
//! sleeps costs more than most runs, on either side; and two threads that each go to sleep just before the
//! other one answers never stop doing so. So who waits looks for as long as what it waits for was
//! seen to take, where that is less than a wake-up or two, and hardly at all where it is more.

use std::{
    sync::atomic::{AtomicU32, Ordering},
    time::{Duration, Instant},
};

/// What takes longer is slept over: looking that long costs more than being woken.
const LONGEST: Duration = Duration::from_micros(250);
const SHORTEST: Duration = Duration::from_micros(10);
const AT_FIRST: Duration = Duration::from_micros(60);
/// What took this long was near enough to be looked for, had the one that waits not had to be woken.
const NEAR: Duration = Duration::from_micros(350);

/// How long to look for things of one kind, as those before them taught. Shared by all threads that wait for
/// such; a lost lesson is no harm. For bindings.
#[derive(Debug)]
pub struct Patience {
    nanos: AtomicU32,
}

impl Default for Patience {
    fn default() -> Self {
        Self { nanos: AtomicU32::new(nanos(AT_FIRST)) }
    }
}

impl Patience {
    /// Looks until it is there, or for as long as is worth it, since `started`.
    pub fn look(&self, started: Instant, is_there: impl Fn() -> bool) {
        while !is_there() && self.lasts(started) {
            std::hint::spin_loop();
        }
    }

    /// Whether it is still worth looking, having begun at `started`.
    #[must_use]
    pub fn lasts(&self, started: Instant) -> bool {
        started.elapsed() < Duration::from_nanos(self.nanos.load(Ordering::Relaxed).into())
    }

    /// It took that long to come, the time that waking took included.
    pub fn learn(&self, took: Duration) {
        let window = self.nanos.load(Ordering::Relaxed);
        let wanted = if took < NEAR { (took * 2).clamp(SHORTEST, LONGEST) } else { SHORTEST };
        // Quick to learn that looking pays, and slow to learn that it does not.
        let wanted = nanos(wanted);
        let step = if wanted > window { (wanted - window) / 2 } else { 0 };
        let back = if wanted < window { (window - wanted) / 16 } else { 0 };
        self.nanos.store(window + step - back, Ordering::Relaxed);
    }
}

fn nanos(window: Duration) -> u32 {
    window.subsec_nanos()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(patience: &Patience) -> Duration {
        Duration::from_nanos(patience.nanos.load(Ordering::Relaxed).into())
    }

    #[test]
    fn what_comes_soon_is_looked_for_and_what_does_not_is_not() {
        let patience = Patience::default();
        for _ in 0..8 {
            patience.learn(Duration::from_micros(120));
        }
        assert!(window(&patience) > Duration::from_micros(200));
        for _ in 0..200 {
            patience.learn(Duration::from_secs(10));
        }
        assert!(window(&patience) < Duration::from_micros(12));
        for _ in 0..200 {
            patience.learn(Duration::ZERO);
        }
        assert!(window(&patience) + Duration::from_nanos(16) >= SHORTEST);
    }

    #[test]
    fn it_looks_no_longer_than_that() {
        let patience = Patience::default();
        let started = Instant::now();
        patience.look(started, || false);
        assert!(started.elapsed() >= AT_FIRST);
        let started = Instant::now();
        patience.look(started, || true);
        assert!(started.elapsed() < Duration::from_secs(1));
    }
}
