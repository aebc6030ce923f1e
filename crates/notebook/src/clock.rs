//! The clock of a cell: the time that it works, without the time in which it waits for others.
//!
//! In: the beginning of waits and their end, and the time for which the cell computes meanwhile, where its kernel tells that.
//! Out: the moment when the cell has used its time. Wall time has a bound of its own.

use std::{
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::{
    sync::Notify,
    time::{Instant, sleep},
};

/// The least time after which a clock that stands still looks whether its cell has computed.
const LOOK: Duration = Duration::from_millis(100);

/// Why a cell has no more time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Expired {
    /// The limit, in seconds.
    pub(crate) limit: u64,
    /// The time for which the clock stood still, in whole seconds.
    pub(crate) waited: u64,
}

/// The clock of a cell that has begun. Clones are one clock.
#[derive(Clone, Debug)]
pub(crate) struct Clock(Arc<Inner>);

struct Inner {
    began: Instant,
    limit: Duration,
    wall_limit: Duration,
    /// Tells how long the cell has computed. Without it, a cell that waits computes nothing.
    computed: OnceLock<Box<dyn Fn() -> Duration + Send + Sync>>,
    /// The longest that it told, in nanoseconds: a cell that has ended is not told of any more.
    told: AtomicU64,
    waits: Mutex<Waits>,
    /// Told when the clock stops or goes on.
    changed: Notify,
}

impl fmt::Debug for Inner {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Inner").field("began", &self.began).finish_non_exhaustive()
    }
}

/// The waits that stop a clock.
#[derive(Debug, Default)]
struct Waits {
    /// How many there are now, and since when there is any.
    open: usize,
    since: Option<Since>,
    /// The time of those that are over.
    total: Duration,
}

/// The beginning of a time with waits.
#[derive(Clone, Copy, Debug)]
struct Since {
    at: Instant,
    /// How long the cell had computed by then.
    computed: Duration,
}

/// A wait: the clock stands still until it is dropped.
#[derive(Debug)]
pub(crate) struct Still(Clock);

impl Clock {
    /// A clock that runs from now on.
    pub(crate) fn start(limit_seconds: u64, wall_seconds: u64) -> Self {
        Self(Arc::new(Inner {
            began: Instant::now(),
            limit: Duration::from_secs(limit_seconds),
            wall_limit: Duration::from_secs(wall_seconds),
            computed: OnceLock::new(),
            told: AtomicU64::new(0),
            waits: Mutex::default(),
            changed: Notify::new(),
        }))
    }

    /// From now on the clock goes on in a wait while the cell computes. `computed` tells for how long it has, in all.
    pub(crate) fn measure(&self, computed: impl Fn() -> Duration + Send + Sync + 'static) {
        // A cell has one kernel.
        drop(self.0.computed.set(Box::new(computed)));
    }

    /// The time on the clock.
    pub(crate) fn worked(&self) -> Duration {
        self.0.began.elapsed().saturating_sub(self.waited())
    }

    /// The clock stands still.
    pub(crate) fn stop(&self) -> Still {
        let mut waits = self.waits();
        waits.open += 1;
        waits.since.get_or_insert_with(|| self.since());
        drop(waits);
        self.0.changed.notify_one();
        Still(self.clone())
    }

    /// Waits until the time is used.
    pub(crate) async fn expired(&self) -> Expired {
        loop {
            let wall_left = self.0.wall_limit.saturating_sub(self.0.began.elapsed());
            if wall_left.is_zero() {
                // Waiting counts there.
                return Expired { limit: self.0.wall_limit.as_secs(), waited: 0 };
            }
            let work_left = self.0.limit.saturating_sub(self.worked());
            if work_left.is_zero() {
                let waited = self.waited().as_secs();
                return Expired { limit: self.0.limit.as_secs(), waited };
            }
            let is_still = self.waits().open > 0;
            let left = match self.0.computed.get() {
                _ if !is_still => work_left,
                // The cell may compute all the time.
                Some(_) => work_left.max(LOOK),
                None => wall_left,
            };
            let left = left.min(wall_left);
            tokio::select! {
                () = sleep(left) => {}
                () = self.0.changed.notified() => {}
            }
        }
    }

    fn waited(&self) -> Duration {
        let waits = self.waits();
        waits.total + waits.since.map(|since| self.still(since)).unwrap_or_default()
    }

    fn since(&self) -> Since {
        Since { at: Instant::now(), computed: self.computed() }
    }

    /// For how long the clock has stood still since then.
    fn still(&self, since: Since) -> Duration {
        let computed = self.computed().saturating_sub(since.computed);
        since.at.elapsed().saturating_sub(computed)
    }

    fn computed(&self) -> Duration {
        let Some(computed) = self.0.computed.get() else { return Duration::ZERO };
        let nanos = u64::try_from(computed().as_nanos()).unwrap_or(u64::MAX);
        Duration::from_nanos(self.0.told.fetch_max(nanos, Ordering::Relaxed).max(nanos))
    }

    fn waits(&self) -> MutexGuard<'_, Waits> {
        self.0.waits.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Still {
    fn drop(&mut self) {
        let mut waits = self.0.waits();
        waits.open -= 1;
        if waits.open == 0
            && let Some(since) = waits.since.take()
        {
            waits.total += self.0.still(since);
        }
        drop(waits);
        self.0.0.changed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_smaller_limit_ends_a_cell() {
        let clock = Clock::start(30, 3600);
        assert_eq!(clock.expired().await, Expired { limit: 30, waited: 0 });
        assert_eq!(clock.worked().as_secs(), 30);
        let clock = Clock::start(30, 5);
        assert_eq!(clock.expired().await.limit, 5);
    }

    #[tokio::test(start_paused = true)]
    async fn the_clock_stands_still_while_there_is_a_wait() {
        let clock = Clock::start(30, 3600);
        let began = Instant::now();
        let waits = async {
            sleep(Duration::from_secs(10)).await;
            let (first, second) = (clock.stop(), clock.stop());
            sleep(Duration::from_secs(40)).await;
            drop(first);
            sleep(Duration::from_secs(5)).await;
            drop(second);
            std::future::pending::<()>().await;
        };
        let expired = tokio::select! {
            expired = clock.expired() => expired,
            () = waits => unreachable!(),
        };
        assert_eq!(expired, Expired { limit: 30, waited: 45 });
        assert_eq!(began.elapsed().as_secs(), 75);
        assert_eq!(clock.worked().as_secs(), 30);
    }

    #[tokio::test(start_paused = true)]
    async fn the_clock_goes_on_while_a_cell_that_waits_computes() {
        let (clock, began) = (Clock::start(30, 3600), Instant::now());
        // It computes from the fiftieth second on.
        clock.measure(move || began.elapsed().saturating_sub(Duration::from_secs(50)));
        sleep(Duration::from_secs(10)).await;
        let still = clock.stop();
        assert_eq!(clock.expired().await, Expired { limit: 30, waited: 40 });
        drop(still);
        assert_eq!((began.elapsed().as_secs(), clock.worked().as_secs()), (70, 30));
    }

    #[tokio::test(start_paused = true)]
    async fn wall_time_ends_a_wait() {
        let clock = Clock::start(30, 100);
        let _still = clock.stop();
        assert_eq!(clock.expired().await, Expired { limit: 100, waited: 0 });
    }
}
