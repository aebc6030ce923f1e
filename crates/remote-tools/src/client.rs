//! The client of HTTP: one for all requests of a process.
//!
//! In: nothing. Out: a client that follows no redirect, which could carry headers to another server. It trusts Mozilla's
//! certification authorities and those of the machine. A proxy that the environment names is used.

use std::{sync::Arc, time::Duration};

use isolane::{Error, ErrorKind};
use reqwest::{Client, redirect::Policy};
use rustls::{ClientConfig, RootCertStore, crypto::ring};

/// The time that a connection may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// A client. Reads the certificates of the machine.
///
/// # Errors
/// The library cannot work on this machine.
pub(crate) fn new() -> Result<Client, Error> {
    let failed = |message: String| Error::new(ErrorKind::Internal, message);
    let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    // A machine without certificates, or with some that nobody can read, has those of Mozilla.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let tls = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| failed(error.to_string()))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Client::builder()
        .tls_backend_preconfigured(tls)
        .redirect(Policy::none())
        .referer(false)
        .connect_timeout(CONNECT_TIMEOUT)
        .user_agent(concat!("isolane/", env!("CARGO_PKG_VERSION")))
        .build()
        .map_err(|error| failed(error.to_string()))
}

/// Why a request failed, without its address: the innermost cause.
pub(crate) fn cause(error: &(dyn std::error::Error + 'static)) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}
