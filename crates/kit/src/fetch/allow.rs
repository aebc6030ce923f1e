//! Permission: which requests the host allows.
//!
//! In: the host's patterns, or `'public'`; the method and the URL of a request. Out: nothing, or the `FetchBlocked` that
//! says which part is not allowed. Each hop of a redirect is judged anew.

use isolane::{Error, ErrorKind};
use url::Url;

use super::{
    pattern::{Matches, Pattern},
    target::shown_host,
};
use crate::error::KitError;

/// The methods that `fetch` has.
pub const METHODS: [&str; 6] = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"];

/// The most patterns that an error lists.
const SHOWN_PATTERNS: usize = 10;

/// The ports that the Fetch standard blocks, because a server there may take a request for another protocol.
const BLOCKED_PORTS: [u16; 83] = [
    0, 1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101,
    102, 103, 104, 109, 110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427,
    465, 512, 513, 514, 515, 526, 530, 531, 532, 540, 548, 554, 556, 563, 587, 601, 636, 989, 990,
    993, 995, 1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061, 6000, 6566, 6665, 6666, 6667,
    6668, 6669, 6679, 6697, 10080,
];

/// An entry of the option `allow`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AllowEntry {
    /// The pattern.
    pub url: String,
    /// The methods that it allows, in either case; all if it is `None`.
    pub methods: Option<Vec<String>>,
}

impl From<&str> for AllowEntry {
    fn from(pattern: &str) -> Self {
        Self { url: pattern.to_owned(), methods: None }
    }
}

/// The requests that the host allows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allow(Rules);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Rules {
    Public,
    List(Vec<Rule>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Rule {
    pattern: Pattern,
    /// A part of [`METHODS`].
    methods: Option<Vec<&'static str>>,
}

impl Rule {
    fn allows_method(&self, method: Option<&str>) -> bool {
        match (&self.methods, method) {
            (Some(methods), Some(method)) => methods.contains(&method),
            _ => true,
        }
    }
}

impl Allow {
    /// `'public'`: `http` and `https` to any host, but for the ports that the Fetch standard blocks.
    #[must_use]
    pub fn public() -> Self {
        Self(Rules::Public)
    }

    /// The requests that these entries allow. `place` is the option, for the error: `fetch.allow`.
    ///
    /// # Errors
    /// Misuse: an entry with a bad pattern, without methods, or with a method that `fetch` does not have.
    pub fn list(entries: impl IntoIterator<Item = AllowEntry>, place: &str) -> Result<Self, Error> {
        let rules = entries.into_iter().enumerate();
        let rules = rules.map(|(index, entry)| rule(&entry, &format!("{place}[{index}]")));
        rules.collect::<Result<_, _>>().map(|rules| Self(Rules::List(rules)))
    }

    /// Judges the origin of a URL alone, for connections whose requests nobody reads.
    ///
    /// # Errors
    /// As [`Allow::judge`].
    pub fn judge_origin(&self, url: &Url) -> Result<(), KitError> {
        let of_origin =
            |rule: &Rule| rule.pattern.compare(url).is_some_and(|parts| parts.scheme && parts.port);
        match &self.0 {
            Rules::List(rules) if rules.iter().any(of_origin) => Ok(()),
            _ => self.judge(None, url),
        }
    }

    /// Judges a request: its method, as [`method`] has it, and its URL. A browser navigates without a method.
    ///
    /// # Errors
    /// `FetchBlocked`. The message names the first part of the request that no entry for this host allows.
    pub fn judge(&self, method: Option<&str>, url: &Url) -> Result<(), KitError> {
        let scheme = || Err(blocked(&format!("scheme '{}:'", cut(url.scheme()))));
        if !matches!(url.scheme(), "http" | "https") {
            return scheme();
        }
        let port = || {
            let number = url.port_or_known_default().unwrap_or_default();
            Err(blocked(&format!("port {number}")))
        };
        let rules = match &self.0 {
            Rules::List(rules) => rules,
            Rules::Public => {
                let is_blocked = url.port().is_some_and(|port| BLOCKED_PORTS.contains(&port));
                return if is_blocked { port() } else { Ok(()) };
            }
        };
        let of_host: Vec<_> = rules
            .iter()
            .filter_map(|rule| rule.pattern.compare(url).map(|parts| (rule, parts)))
            .collect();
        let any = |test: fn(&Matches) -> bool| of_host.iter().any(|(_, parts)| test(parts));
        if of_host.iter().any(|(rule, parts)| parts.all() && rule.allows_method(method)) {
            Ok(())
        } else if any(|parts| parts.all()) {
            Err(blocked(&format!("method '{}'", cut(method.unwrap_or_default()))))
        } else if of_host.is_empty() || any(|parts| parts.scheme && parts.port) {
            Err(KitError::fetch_blocked(not_among(url, rules)))
        } else if any(|parts| parts.scheme) {
            port()
        } else {
            scheme()
        }
    }
}

/// The method of a request as the Fetch standard writes it.
///
/// # Errors
/// The TypeError of a method that `fetch` does not have.
pub fn method(text: &str) -> Result<&'static str, KitError> {
    let known = METHODS.into_iter().find(|method| method.eq_ignore_ascii_case(text));
    let wrong = || KitError::wrong_arguments(format!("method '{}' is not supported", cut(text)));
    known.ok_or_else(wrong)
}

fn rule(entry: &AllowEntry, place: &str) -> Result<Rule, Error> {
    let pattern = Pattern::parse(&entry.url, place)?;
    let read = |text: &String| method(text).map_err(|error| misuse(place, error.message()));
    let methods = entry.methods.as_ref();
    let methods = methods.map(|methods| methods.iter().map(read).collect::<Result<Vec<_>, _>>());
    match methods.transpose()? {
        Some(none) if none.is_empty() => Err(misuse(place, "it allows no method")),
        methods => Ok(Rule { pattern, methods }),
    }
}

fn misuse(place: &str, message: &str) -> Error {
    Error::new(ErrorKind::Type, format!("{place}: {message}"))
}

fn blocked(part: &str) -> KitError {
    KitError::fetch_blocked(format!("{part} is not allowed"))
}

fn not_among(url: &Url, rules: &[Rule]) -> String {
    let mut message = format!("{} is not allowed", shown_host(url));
    for (index, rule) in rules.iter().take(SHOWN_PATTERNS).enumerate() {
        message.push_str(if index == 0 { "; allowed: " } else { ", " });
        message.push_str(&format!("'{}'", rule.pattern));
    }
    if rules.len() > SHOWN_PATTERNS {
        message.push_str(", …");
    }
    message
}

/// As much of the sandbox's own text as an error repeats.
fn cut(text: &str) -> &str {
    const MOST_BYTES: usize = 40;
    &text[..text.floor_char_boundary(MOST_BYTES)]
}
