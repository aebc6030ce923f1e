//! Resolvers: from the name of a host to its addresses.
//!
//! In: a name. Out: all its addresses, unjudged. A connection is made to an address that was judged after this, and the
//! name is not looked up again in between.

use std::{
    future::Future,
    io,
    net::{IpAddr, ToSocketAddrs},
    pin::Pin,
    sync::Arc,
};

use tokio::sync::Semaphore;

/// The addresses that a [`Resolver`] finds.
pub type Resolved = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>>;

/// Looks up names.
pub trait Resolver: Send + Sync + 'static {
    /// The addresses of that name, in the order in which they should be tried.
    ///
    /// # Errors
    /// The name has none, or cannot be looked up.
    fn resolve(&self, host: &str) -> Resolved;
}

/// Lookups at a time. The system's lookup cannot be stopped, so slow names would otherwise hold ever more threads.
const MOST_LOOKUPS: usize = 16;

/// The system's resolver, which may read `/etc/hosts` and ask the name servers of the host.
#[derive(Clone, Debug)]
pub struct SystemResolver {
    turns: Arc<Semaphore>,
}

impl Default for SystemResolver {
    fn default() -> Self {
        Self { turns: Arc::new(Semaphore::new(MOST_LOOKUPS)) }
    }
}

impl Resolver for SystemResolver {
    fn resolve(&self, host: &str) -> Resolved {
        let turns = Arc::clone(&self.turns);
        let host = host.to_owned();
        Box::pin(async move {
            let turn = turns.acquire_owned().await.map_err(io::Error::other)?;
            let lookup = tokio::task::spawn_blocking(move || {
                // The turn lasts as long as the lookup, even if nobody waits for it any more.
                let _turn = turn;
                let found = (host.as_str(), 0).to_socket_addrs()?;
                Ok(found.map(|address| address.ip()).collect())
            });
            lookup.await.map_err(io::Error::other)?
        })
    }
}
