//! The sessions of a stateful executor, by their ids.
//!
//! In: ids of calls. Out: the session of each, opened if need be. At most so many stay, and none that nobody uses.

use std::{
    collections::{HashMap, HashSet, VecDeque, hash_map::RandomState},
    hash::BuildHasher as _,
    sync::Arc,
    time::{Duration, Instant},
};

use isolane::Error;

use super::session::Opened;

/// The most sessions.
pub(super) const MOST_SESSIONS: usize = 100;

/// How long a session stays that nobody uses.
pub(super) const IDLE: Duration = Duration::from_mins(30);

/// The most ids of sessions that are gone, to be told to later calls.
const MOST_GONE: usize = 100_000;

/// The sessions of an executor.
#[derive(Default)]
pub(super) struct Sessions {
    open: HashMap<String, Entry>,
    /// Hashes of the ids of sessions that are gone, oldest first: an id may be long.
    gone: HashSet<u64>,
    gone_in_order: VecDeque<u64>,
    hasher: RandomState,
}

struct Entry {
    session: Arc<Opened>,
    used: Instant,
}

/// The session of a call.
pub(super) struct Found {
    pub(super) session: Arc<Opened>,
    /// Whether an earlier one of this id is gone.
    pub(super) is_anew: bool,
}

impl Sessions {
    /// The session with that id.
    pub(super) fn find(
        &mut self,
        id: &str,
        now: Instant,
        open: impl FnOnce() -> Result<Opened, Error>,
    ) -> Result<Found, Error> {
        self.drop_idle(now);
        if let Some(entry) = self.open.get_mut(id) {
            entry.used = now;
            return Ok(Found { session: Arc::clone(&entry.session), is_anew: false });
        }
        let session = Arc::new(open()?);
        while self.open.len() >= MOST_SESSIONS {
            let oldest = self.open.iter().min_by_key(|(_, entry)| entry.used);
            let Some(oldest) = oldest.map(|(id, _)| id.clone()) else { break };
            self.forget(&oldest);
        }
        self.open.insert(id.to_owned(), Entry { session: Arc::clone(&session), used: now });
        let is_anew = self.gone.remove(&self.hasher.hash_one(id));
        Ok(Found { session, is_anew })
    }

    /// A call of that session is over. `is_lost`: the session has lost its state, and the next call begins anew.
    pub(super) fn used(&mut self, id: &str, session: &Arc<Opened>, is_lost: bool, now: Instant) {
        let Some(entry) = self.open.get_mut(id) else { return };
        if !Arc::ptr_eq(&entry.session, session) {
            return;
        }
        entry.used = now;
        if is_lost {
            self.forget(id);
        }
    }

    /// Drops the sessions that nobody has used for long. Returns when there will be another one.
    pub(super) fn drop_idle(&mut self, now: Instant) -> Option<Instant> {
        let is_idle = |entry: &Entry| now.saturating_duration_since(entry.used) >= IDLE;
        let idle: Vec<String> = self
            .open
            .iter()
            .filter(|(_, entry)| is_idle(entry))
            .map(|(id, _)| id.clone())
            .collect();
        for id in &idle {
            self.forget(id);
        }
        self.open.values().map(|entry| entry.used + IDLE).min()
    }

    /// Takes all sessions out.
    pub(super) fn take_all(&mut self) -> Vec<Arc<Opened>> {
        let ids: Vec<String> = self.open.keys().cloned().collect();
        let sessions = self.open.values().map(|entry| Arc::clone(&entry.session)).collect();
        for id in &ids {
            self.forget(id);
        }
        sessions
    }

    fn forget(&mut self, id: &str) {
        if self.open.remove(id).is_none() {
            return;
        }
        let hash = self.hasher.hash_one(id);
        if self.gone.insert(hash) {
            self.gone_in_order.push_back(hash);
        }
        while self.gone_in_order.len() > MOST_GONE {
            if let Some(oldest) = self.gone_in_order.pop_front() {
                self.gone.remove(&oldest);
            }
        }
    }
}

impl std::fmt::Debug for Sessions {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_set().entries(self.open.keys()).finish()
    }
}

#[cfg(test)]
mod tests {
    use isolane::Runtime;

    use super::*;
    use crate::isolate::host::RustHost;

    fn find(sessions: &mut Sessions, id: &str, now: Instant) -> Found {
        sessions
            .find(id, now, || Opened::new(&RustHost::default(), &Runtime::shared(), true))
            .expect("valid options")
    }

    #[test]
    fn the_least_recently_used_goes_first() {
        let (mut sessions, start) = (Sessions::default(), Instant::now());
        let at = |second: usize| start + Duration::from_secs(second as u64);
        for number in 0..MOST_SESSIONS {
            find(&mut sessions, &number.to_string(), at(number));
        }
        assert!(!find(&mut sessions, "0", at(200)).is_anew);
        assert!(!find(&mut sessions, "one more", at(201)).is_anew);
        assert_eq!(sessions.open.len(), MOST_SESSIONS);
        assert!(find(&mut sessions, "1", at(202)).is_anew);
        assert!(!find(&mut sessions, "0", at(203)).is_anew);
        assert!(find(&mut sessions, "2", at(204)).is_anew);
    }

    #[test]
    fn a_session_goes_when_nobody_uses_it_for_half_an_hour() {
        let (mut sessions, start) = (Sessions::default(), Instant::now());
        let first = find(&mut sessions, "a", start).session;
        find(&mut sessions, "b", start + IDLE / 2);
        sessions.used("a", &first, false, start + Duration::from_secs(1));
        assert!(!find(&mut sessions, "a", start + IDLE).is_anew);
        assert_eq!(sessions.drop_idle(start + IDLE), Some(start + IDLE / 2 + IDLE));
        assert!(find(&mut sessions, "b", start + IDLE * 2).is_anew);
        assert!(find(&mut sessions, "a", start + IDLE * 2).is_anew);
        assert!(!find(&mut sessions, "a", start + IDLE * 2).is_anew);
    }

    #[test]
    fn a_session_that_lost_its_state_begins_anew_once() {
        let (mut sessions, now) = (Sessions::default(), Instant::now());
        let lost = find(&mut sessions, "a", now).session;
        sessions.used("a", &lost, true, now);
        let next = find(&mut sessions, "a", now);
        assert!(next.is_anew);
        // The end of an earlier call does not concern the new session.
        sessions.used("a", &lost, true, now);
        assert!(Arc::ptr_eq(&find(&mut sessions, "a", now).session, &next.session));
    }
}
