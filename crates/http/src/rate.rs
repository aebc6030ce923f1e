//! The limit of requests: a bucket of tokens for each client.
//!
//! In: a client and the time. Out: leave to go on, or how long to wait. The number of buckets is bounded.

use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use crate::RateLimit;

/// The most buckets. Further clients share one.
const MOST_CLIENTS: usize = 4096;

/// Whose requests are counted together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Client {
    /// Those who have the token.
    Token,
    /// An address.
    Address(IpAddr),
    /// All addresses for which there was no bucket left.
    Others,
}

/// Counts the requests of all clients.
#[derive(Debug)]
pub(crate) struct RateLimiter {
    limit: RateLimit,
    buckets: Mutex<HashMap<Client, Bucket>>,
}

#[derive(Clone, Copy, Debug)]
struct Bucket {
    /// The requests for which there was room.
    room: f64,
    /// When that was.
    at: Duration,
}

impl RateLimiter {
    pub(crate) fn new(limit: RateLimit) -> Self {
        Self { limit, buckets: Mutex::default() }
    }

    /// Takes a request's place. `now` is the time since the server began.
    ///
    /// # Errors
    /// There is no place; the whole seconds until there is one.
    pub(crate) fn take(&self, client: Client, now: Duration) -> Result<(), u64> {
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        if buckets.len() >= MOST_CLIENTS && !buckets.contains_key(&client) {
            // A full bucket is as good as none.
            let most = f64::from(self.limit.burst);
            buckets.retain(|_, bucket| self.room(bucket, now) < most);
        }
        let has_bucket = buckets.len() < MOST_CLIENTS || buckets.contains_key(&client);
        let client = if has_bucket { client } else { Client::Others };
        let full = Bucket { room: f64::from(self.limit.burst), at: now };
        let bucket = buckets.entry(client).or_insert(full);
        let room = self.room(bucket, now);
        *bucket = Bucket { room, at: bucket.at.max(now) };
        if room >= 1.0 {
            bucket.room -= 1.0;
            return Ok(());
        }
        let seconds = ((1.0 - room) / self.limit.per_second).ceil();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
        Err((seconds as u64).max(1))
    }

    fn room(&self, bucket: &Bucket, now: Duration) -> f64 {
        let passed = now.saturating_sub(bucket.at).as_secs_f64();
        (bucket.room + passed * self.limit.per_second).min(f64::from(self.limit.burst))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AFTER: fn(u64) -> Duration = Duration::from_millis;

    #[test]
    fn a_burst_and_then_so_many_a_second() {
        let limiter = RateLimiter::new(RateLimit { per_second: 2.0, burst: 3 });
        let take = |ms| limiter.take(Client::Token, AFTER(ms));
        assert_eq!([take(0), take(0), take(0)], [Ok(()); 3]);
        assert_eq!(take(0), Err(1));
        assert_eq!(take(499), Err(1));
        assert_eq!(take(500), Ok(()));
        assert_eq!(take(500), Err(1));
        // The bucket never holds more than the burst.
        assert_eq!([take(60_000), take(60_000), take(60_000)], [Ok(()); 3]);
        assert_eq!(take(60_000), Err(1));
    }

    #[test]
    fn the_wait_is_told_in_whole_seconds() {
        let limiter = RateLimiter::new(RateLimit { per_second: 0.1, burst: 1 });
        let take = |ms| limiter.take(Client::Token, AFTER(ms));
        assert_eq!((take(0), take(0), take(2500)), (Ok(()), Err(10), Err(8)));
    }

    #[test]
    fn clients_do_not_share_until_there_are_too_many() {
        let limiter = RateLimiter::new(RateLimit { per_second: 0.001, burst: 1 });
        let take = |n: u32, ms| limiter.take(Client::Address(IpAddr::V4(n.into())), AFTER(ms));
        let most = u32::try_from(MOST_CLIENTS).expect("a small number");
        assert!((0..most).all(|n| take(n, 0).is_ok()));
        assert_eq!(take(0, 0), Err(1000));
        assert_eq!(take(most, 0), Ok(()));
        assert_eq!(take(most + 1, 0), Err(1000));
        assert!(limiter.buckets.lock().expect("whole").len() <= MOST_CLIENTS + 1);
        // When the buckets are full again, they make room.
        assert_eq!(take(most + 1, 1_000_000), Ok(()));
        assert_eq!(limiter.buckets.lock().expect("whole").len(), 1);
    }
}
