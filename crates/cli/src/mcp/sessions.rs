//! The sessions of a server, by the names that a model gives them.
//!
//! In: names. Out: sessions, made on first use. One that is not used for 30 minutes ends; there are at most 32.

use std::{
    collections::BTreeMap,
    convert::Infallible,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use isolane::{Error, Runtime, Session, SessionInterceptor, SessionOptions};
use tokio::time::{Instant, sleep_until};

/// The most sessions.
const MOST: usize = 32;

/// The time after which a session that nobody uses ends.
const UNUSED: Duration = Duration::from_mins(30);

/// The sessions. Clone: all clones are the same.
#[derive(Clone)]
pub(super) struct Sessions {
    runtime: Runtime,
    options: SessionOptions,
    /// Of all sessions.
    interceptor: Option<Arc<dyn SessionInterceptor>>,
    open: Arc<Mutex<BTreeMap<String, Open>>>,
}

struct Open {
    session: Arc<Session>,
    /// The calls that use it now.
    calls: usize,
    /// The end of the last use.
    used: Instant,
}

/// A session in use.
pub(super) struct Use {
    session: Arc<Session>,
    name: String,
    open: Arc<Mutex<BTreeMap<String, Open>>>,
}

impl Sessions {
    /// # Errors
    /// Misuse of an option: a global that no code could name.
    pub(super) fn new(
        runtime: Runtime,
        options: SessionOptions,
        interceptor: Option<Arc<dyn SessionInterceptor>>,
    ) -> Result<Self, Error> {
        let sessions = Self { runtime, options, interceptor, open: Arc::default() };
        // The values handed over are checked here, and not by the first call of a model.
        drop(sessions.session(sessions.options.clone())?);
        Ok(sessions)
    }

    fn session(&self, options: SessionOptions) -> Result<Session, Error> {
        self.runtime.session_with(options, |mut request| {
            request.interceptor.clone_from(&self.interceptor);
            Ok(request)
        })
    }

    /// A session that no name has, for one cell. No state of it is kept for rolling back.
    ///
    /// # Errors
    /// The refusal of the runtime.
    pub(super) fn once(&self) -> Result<Session, Error> {
        self.session(SessionOptions { checkpoint_bytes: Some(0), ..self.options.clone() })
    }

    /// The session of that name, made if there is none.
    ///
    /// # Errors
    /// The text for a model, if there are too many.
    pub(super) fn take(&self, name: &str) -> Result<Use, String> {
        let mut open = lock(&self.open);
        if !open.contains_key(name) {
            end_unused(&mut open);
            if open.len() >= MOST {
                let names = open.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
                return Err(format!(
                    "there are {MOST} sessions already: use one of them, or reset one that you no longer need ({names})"
                ));
            }
            let session = self.session(self.options.clone());
            let session = session.map_err(|error| error.message().to_owned())?;
            let used = Instant::now();
            open.insert(name.to_owned(), Open { session: Arc::new(session), calls: 0, used });
        }
        drop(open);
        self.find(name)
    }

    /// The session of that name.
    ///
    /// # Errors
    /// The text for a model, if there is none.
    pub(super) fn find(&self, name: &str) -> Result<Use, String> {
        let mut open = lock(&self.open);
        end_unused(&mut open);
        let Some(found) = open.get_mut(name) else { return Err(unknown(name, &open)) };
        found.calls += 1;
        let session = Arc::clone(&found.session);
        Ok(Use { session, name: name.to_owned(), open: Arc::clone(&self.open) })
    }

    /// Takes the session of that name away; its name is free.
    ///
    /// # Errors
    /// The text for a model, if there is none.
    pub(super) fn remove(&self, name: &str) -> Result<Arc<Session>, String> {
        let mut open = lock(&self.open);
        match open.remove(name) {
            Some(Open { session, .. }) => Ok(session),
            None => Err(unknown(name, &open)),
        }
    }

    /// Ends sessions that nobody uses, for ever.
    pub(super) async fn expire(&self) -> Infallible {
        loop {
            let next = {
                let mut open = lock(&self.open);
                end_unused(&mut open);
                open.values().filter(|open| open.calls == 0).map(|open| open.used + UNUSED).min()
            };
            // One that is made or left from now on ends no earlier than a whole time from now.
            sleep_until(next.unwrap_or_else(|| Instant::now() + UNUSED)).await;
        }
    }
}

fn unknown(name: &str, open: &BTreeMap<String, Open>) -> String {
    let names = open.keys().map(|name| format!("'{name}'")).collect::<Vec<_>>().join(", ");
    let there_are = if names.is_empty() { "none yet".to_owned() } else { names };
    format!("there is no session '{name}'; sessions: {there_are}")
}

fn end_unused(open: &mut BTreeMap<String, Open>) {
    open.retain(|_, open| open.calls > 0 || open.used.elapsed() < UNUSED);
}

fn lock(open: &Mutex<BTreeMap<String, Open>>) -> MutexGuard<'_, BTreeMap<String, Open>> {
    open.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Use {
    pub(super) fn session(&self) -> &Session {
        &self.session
    }

    /// Whether the session was taken away meanwhile.
    pub(super) fn is_reset(&self) -> bool {
        let open = lock(&self.open);
        open.get(&self.name).is_none_or(|open| !Arc::ptr_eq(&open.session, &self.session))
    }
}

impl Drop for Use {
    fn drop(&mut self) {
        // A session that was taken away, and another one that has the name since, have no part in it.
        if let Some(open) = lock(&self.open).get_mut(&self.name)
            && Arc::ptr_eq(&open.session, &self.session)
        {
            open.calls -= 1;
            open.used = Instant::now();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_mins(1);

    fn sessions() -> Sessions {
        Sessions::new(Runtime::shared(), SessionOptions::default(), None).expect("valid options")
    }

    #[tokio::test(start_paused = true)]
    async fn a_session_ends_30_minutes_after_its_last_use() {
        let sessions = sessions();
        let used = sessions.take("a").expect("there is room");
        tokio::time::advance(40 * MINUTE).await;
        drop(used);
        tokio::time::advance(29 * MINUTE).await;
        drop(sessions.find("a").expect("it was used 29 minutes ago"));
        tokio::time::advance(30 * MINUTE).await;
        let refused = sessions.find("a").err();
        assert_eq!(refused.as_deref(), Some("there is no session 'a'; sessions: none yet"));
    }

    #[tokio::test(start_paused = true)]
    async fn sessions_end_without_a_call() {
        let sessions = sessions();
        drop(sessions.take("a").expect("there is room"));
        tokio::select! {
            biased;
            never = sessions.expire() => match never {},
            () = tokio::time::sleep(31 * MINUTE) => {}
        }
        assert_eq!(lock(&sessions.open).len(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn there_are_at_most_32() {
        let sessions = sessions();
        for number in 0..MOST {
            drop(sessions.take(&format!("s{number}")).expect("there is room"));
        }
        let refused = sessions.take("one more").err().expect("there is no room");
        assert!(refused.starts_with("there are 32 sessions already: "), "{refused}");
        sessions.remove("s7").expect("it is there");
        drop(sessions.take("one more").expect("there is room"));
    }
}
