//! Patterns of URLs: `[scheme://]host[:port][/path]`.
//!
//! In: a pattern as the host writes it. Out: whether a URL matches. The parts of a pattern are read as the URL standard
//! reads those of a URL, so that both compare as they are requested: case is folded, names are punycode, paths have no
//! dot segments, and each way to write an IPv4 address is one.
//!
//! | part | matches |
//! |---|---|
//! | no scheme | `https`; `http` only where the pattern says so |
//! | `x.org`, `10.0.0.1`, `[2001:db8::1]` | that host |
//! | `*.x.org` | all hosts below it, but not it |
//! | no port | the port of the scheme |
//! | `:8443`, `:*` | that port; any |
//! | no path | any path |
//! | `/`, `/a` | exactly that path |
//! | `/a/*` | with any text for each `*`, in which no slash, backslash or NUL is encoded |

use std::fmt;

use isolane::{Error, ErrorKind};
use url::{Host, Url};

/// A pattern of URLs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    scheme: Scheme,
    host: HostPattern,
    port: PortPattern,
    path: Option<PathPattern>,
}

/// Which parts of a URL match a pattern whose host does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Matches {
    pub(super) scheme: bool,
    pub(super) port: bool,
    pub(super) path: bool,
}

impl Matches {
    pub(super) fn all(self) -> bool {
        self.scheme && self.port && self.path
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scheme {
    Http,
    Https,
}

impl Scheme {
    fn name(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }

    fn port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum HostPattern {
    Exactly(Host),
    /// The end of all names below it, with its dot: `.x.org`.
    Below(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PortPattern {
    Number(u16),
    Any,
}

impl Pattern {
    /// Reads a pattern. `place` is its option, for the error: `fetch.allow[0]`.
    ///
    /// # Errors
    /// Misuse: a text that is no pattern, of kind [`ErrorKind::Type`]. The message says which part is wrong.
    pub fn parse(text: &str, place: &str) -> Result<Self, Error> {
        Self::read(text).map_err(|why| {
            Error::new(ErrorKind::Type, format!("{place}: '{text}' is not a valid pattern: {why}"))
        })
    }

    fn read(text: &str) -> Result<Self, String> {
        if text.chars().any(|c| c.is_control() || c.is_whitespace()) {
            return Err("it has white space or control characters".into());
        }
        let (scheme, rest) = match text.split_once("://") {
            None => (Scheme::Https, text),
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("https") => (Scheme::Https, rest),
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => (Scheme::Http, rest),
            Some(_) => return Err("the scheme is 'https://' or 'http://'".into()),
        };
        for (part, name) in [('?', "a query"), ('#', "a fragment"), ('\\', "a backslash")] {
            if rest.contains(part) {
                return Err(format!("it has {name}"));
            }
        }
        let (authority, path) = match rest.find('/') {
            Some(slash) => (&rest[..slash], Some(&rest[slash..])),
            None => (rest, None),
        };
        if authority.contains('@') {
            return Err("it has a user".into());
        }
        let (host, port) = split_port(authority)?;
        let port = match port {
            None => PortPattern::Number(scheme.port()),
            Some("*") => PortPattern::Any,
            Some(port) => PortPattern::Number(read_port(port)?),
        };
        let host = HostPattern::read(host)?;
        let path = path.map(PathPattern::read).transpose()?;
        Ok(Self { scheme, host, port, path })
    }

    /// Whether the URL matches: its scheme, host, port and path. Takes time in proportion to both.
    #[must_use]
    pub fn matches(&self, url: &Url) -> bool {
        self.compare(url).is_some_and(Matches::all)
    }

    /// Whether the URL's origin matches: its scheme, host and port.
    #[must_use]
    pub fn matches_origin(&self, url: &Url) -> bool {
        self.compare(url).is_some_and(|matches| matches.scheme && matches.port)
    }

    /// Compares the parts of a URL; `None` if its host does not match.
    pub(super) fn compare(&self, url: &Url) -> Option<Matches> {
        let port = url.port_or_known_default();
        self.host.matches(url).then(|| Matches {
            scheme: url.scheme() == self.scheme.name(),
            port: match self.port {
                PortPattern::Number(number) => port == Some(number),
                PortPattern::Any => port.is_some(),
            },
            path: self.path.as_ref().is_none_or(|path| path.matches(url.path())),
        })
    }
}

/// The pattern in full: `https://*.x.org:8443/api/*`.
impl fmt::Display for Pattern {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}://", self.scheme.name())?;
        match &self.host {
            HostPattern::Exactly(host) => write!(out, "{host}")?,
            HostPattern::Below(end) => write!(out, "*{end}")?,
        }
        match self.port {
            PortPattern::Number(number) if number == self.scheme.port() => {}
            PortPattern::Number(number) => write!(out, ":{number}")?,
            PortPattern::Any => out.write_str(":*")?,
        }
        match &self.path {
            Some(path) => out.write_str(&path.0),
            None => Ok(()),
        }
    }
}

/// Parts a host and its port. The colons of an IPv6 address are between brackets.
fn split_port(authority: &str) -> Result<(&str, Option<&str>), String> {
    let end = match authority.strip_prefix('[') {
        Some(_) => authority.find(']').ok_or("a bracket is not closed")? + 1,
        None => authority.find(':').unwrap_or(authority.len()),
    };
    let (host, rest) = authority.split_at(end);
    match rest.strip_prefix(':') {
        Some(port) => Ok((host, Some(port))),
        None if rest.is_empty() => Ok((host, None)),
        None => Err("something stands between host and port".into()),
    }
}

fn read_port(text: &str) -> Result<u16, String> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let port = text.parse().ok().filter(|port| is_number && *port > 0);
    port.ok_or_else(|| "a port is '*' or a number from 1 to 65535".into())
}

impl HostPattern {
    fn read(text: &str) -> Result<Self, String> {
        let (name, is_below) = match text.strip_prefix("*.") {
            Some(name) => (name, true),
            None => (text, false),
        };
        if name.contains('*') {
            return Err("a '*' stands for whole labels at the start of a host: '*.x.org'".into());
        }
        // A percent sign would be decoded.
        if name.is_empty() || name.contains('%') {
            return Err("it has no valid host".into());
        }
        let host = Host::parse(name).map_err(|error| error.to_string())?;
        match host {
            Host::Domain(name) if is_below => Ok(Self::Below(format!(".{name}"))),
            _ if is_below => Err("no host is below an address".into()),
            host => Ok(Self::Exactly(host)),
        }
    }

    fn matches(&self, url: &Url) -> bool {
        match (self, url.host()) {
            (Self::Exactly(Host::Domain(name)), Some(Host::Domain(host))) => name == host,
            (Self::Exactly(Host::Ipv4(address)), Some(Host::Ipv4(host))) => *address == host,
            (Self::Exactly(Host::Ipv6(address)), Some(Host::Ipv6(host))) => *address == host,
            (Self::Below(end), Some(Host::Domain(host))) => {
                host.len() > end.len() && host.ends_with(end)
            }
            _ => false,
        }
    }
}

/// A path in which each `*` is any text.
#[derive(Clone, Debug, PartialEq, Eq)]
struct PathPattern(String);

impl PathPattern {
    fn read(text: &str) -> Result<Self, String> {
        let bytes = text.as_bytes();
        let is_encoded = |at: usize| {
            bytes.get(at + 1..at + 3).is_some_and(|hex| hex.iter().all(u8::is_ascii_hexdigit))
        };
        if bytes.iter().enumerate().any(|(at, &byte)| byte == b'%' && !is_encoded(at)) {
            return Err("a '%' in a path is followed by two hexadecimal digits".into());
        }
        // The standard's own reading of the path. It leaves each '*' as it is.
        let url = Url::parse(&format!("https://host{text}")).map_err(|error| error.to_string())?;
        Ok(Self(url.path().to_owned()))
    }

    /// Linear: the pieces between the stars are found one after the other, each as early as possible.
    fn matches(&self, path: &str) -> bool {
        let Some((first, rest)) = self.0.split_once('*') else { return self.0 == path };
        let (middle, last) = rest.rsplit_once('*').unwrap_or(("", rest));
        let Some(inner) = path.strip_prefix(first).and_then(|path| path.strip_suffix(last)) else {
            return false;
        };
        let mut left = inner.as_bytes();
        for piece in middle.split('*') {
            match memchr::memmem::find(left, piece.as_bytes()) {
                Some(at) => left = &left[at + piece.len()..],
                None => return false,
            }
        }
        // All of them stand in the pieces, so none is in the text of a star.
        hidden_separators(path) == hidden_separators(&self.0)
    }
}

/// How many slashes, backslashes and NULs are encoded in a path. A server may decode them and see another path.
fn hidden_separators(path: &str) -> usize {
    let is_hidden = |window: &&[u8]| {
        matches!(window, [b'%', b'2', b'f' | b'F'] | [b'%', b'5', b'c' | b'C'] | [b'%', b'0', b'0'])
    };
    path.as_bytes().windows(3).filter(is_hidden).count()
}
