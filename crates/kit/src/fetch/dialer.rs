//! Sockets to addresses that were judged.
//!
//! In: a URL. Out: a socket to its host. The name is looked up once; every address is judged, and only those that pass are
//! dialled, in their order, each with a share of the time that is left.

use std::{net::IpAddr, sync::Arc};

use tokio::{
    net::TcpStream,
    time::{Instant, timeout_at},
};
use url::Url;

use super::{
    address::{Addresses, written_address},
    failure,
    resolver::Resolver,
};
use crate::error::KitError;

/// Dials the hosts of URLs.
#[derive(Clone)]
pub(crate) struct Dialer {
    pub(crate) addresses: Addresses,
    pub(crate) resolver: Arc<dyn Resolver>,
}

impl Dialer {
    /// Connects to the host of a URL.
    ///
    /// # Errors
    /// `FetchBlocked` if no address may be dialled, `FetchFailed` if none answers.
    pub(crate) async fn dial(&self, url: &Url, deadline: Instant) -> Result<TcpStream, KitError> {
        let addresses = self.addresses(url).await?;
        dial_each(url, &addresses, deadline).await
    }

    /// The addresses of the host that may be dialled.
    async fn addresses(&self, url: &Url) -> Result<Vec<IpAddr>, KitError> {
        let found = match (written_address(url), url.host_str()) {
            (Some(address), _) => vec![address],
            (None, Some(name)) => {
                let found = self.resolver.resolve(name).await.unwrap_or_default();
                if found.is_empty() {
                    return Err(failure::cannot_find(url));
                }
                found
            }
            (None, None) => return Err(failure::cannot_find(url)),
        };
        // Without the list of the interfaces one of them might be dialled.
        let own = if_addrs::get_if_addrs().map_err(|_| failure::refused_connection(url))?;
        let own = own.into_iter().map(|interface| interface.ip());
        self.addresses.clone().without(own).dialled(url, found)
    }
}

/// Dials the addresses in their order, each with its share of the time.
async fn dial_each(
    url: &Url,
    addresses: &[IpAddr],
    deadline: Instant,
) -> Result<TcpStream, KitError> {
    let port = url.port_or_known_default().unwrap_or_default();
    for (index, address) in addresses.iter().enumerate() {
        let now = Instant::now();
        let left = deadline.saturating_duration_since(now);
        // The last one has until the deadline, which the caller keeps.
        let share = match u32::try_from(addresses.len() - index) {
            Ok(1) => left + left,
            Ok(others) => left / others,
            Err(_) => left,
        };
        let dialled = timeout_at(now + share, TcpStream::connect((*address, port))).await;
        // Requests are written whole.
        if let Ok(Ok(socket)) = dialled
            && socket.set_nodelay(true).is_ok()
        {
            return Ok(socket);
        }
    }
    Err(failure::refused_connection(url))
}
