//! The proxy for a browser: every request of its pages is judged.
//!
//! In: requests of a browser that knows the password. Out: the same, to origins that are allowed, at addresses that may be
//! reached; or an answer that says why not. Requests over http are read; tunnels for https are judged by their origin. It
//! listens on loopback alone, and ends with its kit. Begin to read at `serve.rs`.

mod forward;
mod serve;

use std::{fmt, io, net::Ipv4Addr};

use base64::{Engine, engine::general_purpose::STANDARD};
use tokio::{net::TcpListener, sync::watch};

use crate::{
    fetch::{Dialer, allow::Allow},
    random::random_hex,
};

/// The name of the user.
const USER: &str = "isolane";

/// The form in which Playwright takes a proxy.
#[derive(Clone, PartialEq, Eq)]
pub struct ProxySettings {
    /// `http://127.0.0.1:PORT`.
    pub server: String,
    /// The user.
    pub username: String,
    /// The password, which is random.
    pub password: String,
}

/// Switches that keep a Chromium behind the proxy at that URL, beside the proxy itself.
pub(crate) fn chromium_switches(server: &str) -> [String; 5] {
    let host = server.split_once("://").map_or(server, |(_, rest)| rest);
    let host = host.rsplit_once(':').map_or(host, |(host, _)| host);
    [
        // Without this Chromium reaches loopback directly.
        "--proxy-bypass-list=<-loopback>".to_owned(),
        // The proxy looks names up. A connection past it finds no address.
        format!("--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE {host}"),
        // WebRTC sends datagrams, which no proxy of HTTP carries.
        "--webrtc-ip-handling-policy=disable_non_proxied_udp".to_owned(),
        "--force-webrtc-ip-handling-policy=disable_non_proxied_udp".to_owned(),
        "--disable-quic".to_owned(),
    ]
}

impl fmt::Debug for ProxySettings {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("ProxySettings").field("server", &self.server).finish_non_exhaustive()
    }
}

/// The requests that a proxy lets through.
pub(crate) struct ProxyRules {
    pub(crate) allow: Allow,
    pub(crate) dialer: Dialer,
}

/// A proxy. It ends when it is dropped.
pub(crate) struct Proxy {
    settings: ProxySettings,
    /// Its receivers end with it, and with `true`.
    end: watch::Sender<bool>,
}

impl Proxy {
    /// Opens a proxy, in tokio.
    ///
    /// # Errors
    /// No port of loopback can be opened, or the system has no random numbers.
    pub(crate) async fn open(rules: ProxyRules) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let server = format!("http://{}", listener.local_addr()?);
        let password = random_hex()?;
        let settings = ProxySettings { server, username: USER.to_owned(), password };
        let basic = STANDARD.encode(format!("{USER}:{}", settings.password));
        let (end, ended) = watch::channel(false);
        tokio::spawn(serve::serve(listener, rules, format!("Basic {basic}"), ended));
        Ok(Self { settings, end })
    }

    pub(crate) fn settings(&self) -> &ProxySettings {
        &self.settings
    }

    /// Ends it, with all its connections.
    pub(crate) fn close(&self) {
        self.end.send_replace(true);
    }
}
