//! Idle connections, for the next request to the same origin.
//!
//! In: connections whose answer was read to its end. Out: the latest one of an origin. An idle connection is closed after
//! a few seconds, or with its kit; no thread waits for that.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use url::Url;

use super::connection::Connection;

/// How long a connection stays idle: less than the usual five seconds of servers.
const IDLE: Duration = Duration::from_secs(4);

/// Idle connections of one kit.
const MOST_IDLE: usize = 32;

/// How long a connection may take until it can send again.
const READY: Duration = Duration::from_millis(20);

/// Scheme, host and port.
type Origin = (String, String, u16);

/// The idle connections of a kit. All clones are one pool.
#[derive(Clone, Debug, Default)]
pub(super) struct Pool(Arc<Mutex<Idle>>);

#[derive(Debug, Default)]
struct Idle {
    next: u64,
    connections: HashMap<Origin, Vec<(u64, Connection)>>,
    count: usize,
}

impl Idle {
    fn remove(&mut self, origin: &Origin, test: impl Fn(u64) -> bool) -> Option<Connection> {
        let connections = self.connections.get_mut(origin)?;
        let index = connections.iter().rposition(|(number, _)| test(*number))?;
        let (_, connection) = connections.remove(index);
        if connections.is_empty() {
            self.connections.remove(origin);
        }
        self.count -= 1;
        Some(connection)
    }
}

impl Pool {
    /// The latest idle connection to the origin of a URL that is still open.
    pub(super) fn take(&self, url: &Url) -> Option<Connection> {
        let origin = origin(url);
        loop {
            let connection = locked(&self.0).remove(&origin, |_| true)?;
            if connection.sender.is_ready() {
                return Some(connection);
            }
        }
    }

    /// Keeps a connection, if it can send again and there are not too many.
    pub(super) async fn keep(&self, url: &Url, mut connection: Connection) {
        // A server that answers before it has read the request leaves the connection busy.
        if !matches!(tokio::time::timeout(READY, connection.sender.ready()).await, Ok(Ok(()))) {
            return;
        }
        let origin = origin(url);
        let number = {
            let mut idle = locked(&self.0);
            if idle.count >= MOST_IDLE {
                return;
            }
            let number = idle.next;
            idle.next += 1;
            idle.count += 1;
            idle.connections.entry(origin.clone()).or_default().push((number, connection));
            number
        };
        let pool: Weak<Mutex<Idle>> = Arc::downgrade(&self.0);
        tokio::spawn(async move {
            tokio::time::sleep(IDLE).await;
            if let Some(pool) = pool.upgrade() {
                let closed = locked(&pool).remove(&origin, |other| other == number);
                drop(closed);
            }
        });
    }

    /// Closes all idle connections.
    pub(super) fn close(&self) {
        let mut idle = locked(&self.0);
        idle.count = 0;
        let closed = std::mem::take(&mut idle.connections);
        drop(idle);
        drop(closed);
    }
}

fn origin(url: &Url) -> Origin {
    let host = url.host_str().unwrap_or_default().to_owned();
    (url.scheme().to_owned(), host, url.port_or_known_default().unwrap_or_default())
}

fn locked(idle: &Mutex<Idle>) -> MutexGuard<'_, Idle> {
    idle.lock().unwrap_or_else(PoisonError::into_inner)
}
