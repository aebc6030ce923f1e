//! Connections: sockets to addresses that were judged.
//!
//! In: a URL. Out: a connection to its host, by HTTP/1.1, over TLS for `https`. Proxies that the environment names are not
//! used.

use std::{net::IpAddr, sync::Arc};

use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::http1::{Builder, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    task::JoinHandle,
    time::Instant,
};
use tokio_rustls::{
    TlsConnector,
    rustls::{
        ClientConfig, RootCertStore,
        crypto::ring,
        pki_types::{CertificateDer, ServerName, pem::PemObject},
    },
};
use url::{Host, Url};

use super::{dialer::Dialer, failure};
use crate::error::KitError;

/// The most bytes that are read at a time.
pub(crate) const READ_BYTES: usize = 64 << 10;

/// The most bytes of an answer's head. At its own bound, that of what is read at a time, hyper would wait for more.
pub(crate) const HEAD_BYTES: usize = 32 << 10;

/// The most headers of an answer.
pub(crate) const MOST_HEADERS: usize = 128;

/// A socket, with or without TLS.
trait Socket: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Socket for S {}

/// A connection to a host. Dropping it closes its socket at once.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) sender: SendRequest<Full<Bytes>>,
    task: JoinHandle<()>,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Makes connections.
pub(super) struct Connector {
    dialer: Dialer,
    tls: TlsConnector,
}

impl Connector {
    /// A connector that trusts Mozilla's authorities and those of `ca`, in PEM.
    ///
    /// # Errors
    /// The fault of `ca`.
    pub(super) fn new(dialer: Dialer, ca: Option<&str>) -> Result<Self, String> {
        let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
        if let Some(ca) = ca {
            let mut is_empty = true;
            for certificate in CertificateDer::pem_slice_iter(ca.as_bytes()) {
                let certificate = certificate.map_err(|_| "it is no PEM")?;
                roots.add(certificate).map_err(|_| "a certificate in it is not valid")?;
                is_empty = false;
            }
            if is_empty {
                return Err("it has no certificate".into());
            }
        }
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
        let builder = builder.with_safe_default_protocol_versions().map_err(|e| e.to_string())?;
        let mut config = builder.with_root_certificates(roots).with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self { dialer, tls: TlsConnector::from(Arc::new(config)) })
    }

    /// Connects to the host of a URL.
    ///
    /// # Errors
    /// `FetchBlocked` if no address may be dialled, `FetchFailed` if none answers as it should.
    pub(super) async fn connect(
        &self,
        url: &Url,
        deadline: Instant,
    ) -> Result<Connection, KitError> {
        let socket = self.dialer.dial(url, deadline).await?;
        let socket: Box<dyn Socket> = if url.scheme() == "https" {
            let name = server_name(url).ok_or_else(|| failure::cannot_find(url))?;
            let tls = self.tls.connect(name, socket).await;
            Box::new(tls.map_err(|error| failure::of_handshake(&error, url))?)
        } else {
            Box::new(socket)
        };
        let mut builder = Builder::new();
        builder.max_buf_size(READ_BYTES).max_header_size(HEAD_BYTES).max_headers(MOST_HEADERS);
        let (sender, connection) = builder
            .handshake(TokioIo::new(socket))
            .await
            .map_err(|error| failure::of_exchange(&error, url))?;
        let task = tokio::spawn(async move {
            // The user of the connection is told of its failure.
            let _ = connection.await;
        });
        Ok(Connection { sender, task })
    }
}

/// The name that the certificate must have.
fn server_name(url: &Url) -> Option<ServerName<'static>> {
    match url.host()? {
        Host::Domain(name) => ServerName::try_from(name.trim_end_matches('.').to_owned()).ok(),
        Host::Ipv4(address) => Some(ServerName::from(IpAddr::from(address))),
        Host::Ipv6(address) => Some(ServerName::from(IpAddr::from(address))),
    }
}
