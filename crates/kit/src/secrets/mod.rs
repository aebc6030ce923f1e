//! Secrets: values that code may use and, unless they are revealed, cannot read.
//!
//! In: names with values and rules, set by the host alone. Out: the texts that the code sees instead; [`request`]s in
//! which the values stand; [`Redactor`]s that take the values out of responses and of everything that leaves a run.
//!
//! A sealed secret is a placeholder, `sealed_NAME_` and 32 hexadecimal digits, which stays the same for the kit's life.
//! Values are in memory only, and overwritten when they are freed, but for the automata that find them.

mod escape;
pub mod request;

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard},
};

use isolane::{Error, ErrorKind};
use url::Url;
use zeroize::Zeroizing;

use self::request::RequestSecrets;
use crate::{fetch::pattern::Pattern, random::random_hex, redaction::Redactor};

/// The bytes that a value may have.
const VALUE_BYTES: std::ops::RangeInclusive<usize> = 8..=8192;

/// The most characters of a name.
const NAME_CHARS: usize = 64;

/// The most sets of secrets whose redactors are kept.
const MOST_REDACTORS: usize = 64;

/// The options of a secret.
#[derive(Clone, Default)]
pub struct SecretOptions {
    /// Its value: 8 to 8,192 bytes without CR, LF and NUL.
    pub value: Zeroizing<String>,
    /// The requests in which it becomes its value, as patterns.
    pub hosts: Vec<String>,
    /// The option `in`: the parts of such a request in which it may stand, of `url`, `header` and `body`; all if it is
    /// `None`.
    pub parts: Option<Vec<String>>,
    /// Whether the code sees the value itself.
    pub reveal: bool,
}

/// Shows no value.
impl fmt::Debug for SecretOptions {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = out.debug_struct("SecretOptions");
        out.field("hosts", &self.hosts).field("parts", &self.parts).field("reveal", &self.reveal);
        out.finish_non_exhaustive()
    }
}

/// A part of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Path and query.
    Url,
    /// The value of a header.
    Header,
    /// The body.
    Body,
}

impl Part {
    const ALL: [Self; 3] = [Self::Url, Self::Header, Self::Body];

    /// Its name in the option `in`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Url => "url",
            Self::Header => "header",
            Self::Body => "body",
        }
    }
}

/// A value and its rules.
struct Secret {
    value: Zeroizing<String>,
    hosts: Vec<Pattern>,
    parts: Vec<Part>,
    is_revealed: bool,
}

/// The secrets of a kit. Any thread may use them.
#[derive(Default)]
pub struct Secrets {
    state: RwLock<State>,
}

#[derive(Default)]
struct State {
    given: BTreeMap<String, Arc<Secret>>,
    /// The placeholders of all names that there ever were.
    placeholders: HashMap<String, String>,
    /// All values that there ever were, with their names, the latest last.
    values: Vec<(String, Arc<Secret>)>,
    current: Arc<Snapshot>,
}

/// The secrets at one moment, for one request or for the outputs of a run.
#[derive(Debug)]
pub struct Snapshot {
    /// Puts the values into requests.
    pub request: RequestSecrets,
    /// Puts placeholders into what the browser gives.
    pub responses: Arc<Redactor>,
    /// Puts placeholders into the responses of each secret's own hosts.
    own: OwnResponses,
    /// Puts `[secret NAME]` into the outputs of a run, for revealed secrets too.
    pub outputs: Arc<Redactor>,
}

impl Default for Snapshot {
    fn default() -> Self {
        let none = || Arc::new(Redactor::new([]));
        let own = OwnResponses::default();
        Self { request: RequestSecrets::default(), responses: none(), own, outputs: none() }
    }
}

impl Snapshot {
    /// Puts placeholders into a response from that URL: for the sealed secrets that may go to its origin, and for no
    /// others. No other host has a value unless it guesses; a placeholder would tell it that the guess is right.
    ///
    /// Takes time in proportion to the values for the first response from such an origin.
    #[must_use]
    pub fn responses_of(&self, url: &Url) -> Arc<Redactor> {
        let is_own = |(secret, _): &(Arc<Secret>, String)| {
            secret.hosts.iter().any(|pattern| pattern.matches_origin(url))
        };
        let own: Vec<bool> = self.own.sealed.iter().map(is_own).collect();
        if own.iter().all(|own| *own) {
            return Arc::clone(&self.responses);
        }
        let mut made = self.own.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(redactor) = made.get(&own) {
            return Arc::clone(redactor);
        }
        let chosen = self.own.sealed.iter().zip(&own).filter(|(_, own)| **own);
        let chosen = chosen.map(|((secret, name), _)| (secret.value.as_str(), name.clone()));
        let redactor = Arc::new(Redactor::new(chosen));
        if made.len() < MOST_REDACTORS {
            made.insert(own, Arc::clone(&redactor));
        }
        redactor
    }
}

/// The sealed secrets with their placeholders, the latest first, and the redactors that were made of some of them.
#[derive(Default)]
struct OwnResponses {
    sealed: Vec<(Arc<Secret>, String)>,
    made: Mutex<HashMap<Vec<bool>, Arc<Redactor>>>,
}

/// Shows no value.
impl fmt::Debug for OwnResponses {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("OwnResponses").field("sealed", &self.sealed.len()).finish_non_exhaustive()
    }
}

impl Secrets {
    /// No secrets.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Gives a secret, or gives it anew. Its earlier value is still redacted. Takes time in proportion to all values.
    ///
    /// # Errors
    /// Misuse: a bad name, value, pattern or part, or a secret with neither hosts nor `reveal`. The message has no part
    /// of the value. [`ErrorKind::Internal`] if the system has no random bytes.
    pub fn set(&self, name: &str, options: SecretOptions) -> Result<(), Error> {
        self.set_all([(name, options)])
    }

    /// Gives secrets, in the time of one.
    ///
    /// # Errors
    /// As [`Secrets::set`], for the first that is wrong; none is given then.
    pub fn set_all<'n>(
        &self,
        secrets: impl IntoIterator<Item = (&'n str, SecretOptions)>,
    ) -> Result<(), Error> {
        let read = secrets
            .into_iter()
            .map(|(name, options)| Ok((name, Arc::new(read(name, options)?), placeholder(name)?)));
        let read = read.collect::<Result<Vec<_>, Error>>()?;
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        for (name, secret, placeholder) in read {
            state.give(name, secret, placeholder);
        }
        state.renew();
        Ok(())
    }

    /// Takes a secret away; says whether it was there. Its value is still redacted.
    pub fn delete(&self, name: &str) -> bool {
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        let was_given = state.given.remove(name).is_some();
        if was_given {
            state.renew();
        }
        was_given
    }

    /// The names of the secrets, in order.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        self.read().given.keys().cloned().collect()
    }

    /// The names with the texts that code sees: placeholders or, for revealed secrets, values.
    #[must_use]
    pub fn seen(&self) -> Vec<(String, Zeroizing<String>)> {
        let state = self.read();
        let seen = |(name, secret): (&String, &Arc<Secret>)| {
            let placeholder = || Zeroizing::new(state.placeholder(name));
            let text = if secret.is_revealed { secret.value.clone() } else { placeholder() };
            (name.clone(), text)
        };
        state.given.iter().map(seen).collect()
    }

    /// The secrets at this moment.
    #[must_use]
    pub fn snapshot(&self) -> Arc<Snapshot> {
        Arc::clone(&self.read().current)
    }

    fn read(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Shows names only.
impl fmt::Debug for Secrets {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_set().entries(self.read().given.keys()).finish()
    }
}

impl State {
    fn placeholder(&self, name: &str) -> String {
        self.placeholders.get(name).cloned().unwrap_or_default()
    }

    fn give(&mut self, name: &str, secret: Arc<Secret>, placeholder: String) {
        self.placeholders.entry(name.to_owned()).or_insert(placeholder);
        self.given.insert(name.to_owned(), Arc::clone(&secret));
        // The same value of the same name counts once, unless it was sealed before and is not any more.
        let is_same = |known: &str, other: &Secret| {
            known == name && other.value == secret.value && other.is_revealed == secret.is_revealed
        };
        self.values.retain(|(known, other)| !is_same(known, other));
        self.values.push((name.to_owned(), secret));
    }

    fn renew(&mut self) {
        let latest = || self.values.iter().rev().map(|(name, secret)| (name, secret));
        let sealed: Vec<_> = latest()
            .filter(|(_, secret)| !secret.is_revealed)
            .map(|(name, secret)| (Arc::clone(secret), self.placeholder(name)))
            .collect();
        let texts = sealed.iter().map(|(secret, name)| (secret.value.as_str(), name.clone()));
        let all =
            latest().map(|(name, secret)| (secret.value.as_str(), format!("[secret {name}]")));
        let named = self.placeholders.iter().map(|(name, placeholder)| {
            let sealed = self.given.get(name).filter(|secret| !secret.is_revealed);
            (name.clone(), placeholder.clone(), sealed.cloned())
        });
        self.current = Arc::new(Snapshot {
            responses: Arc::new(Redactor::new(texts)),
            own: OwnResponses { sealed, made: Mutex::default() },
            outputs: Arc::new(Redactor::new(all)),
            request: RequestSecrets::new(named),
        });
    }
}

/// Checks a secret's name and options.
fn read(name: &str, options: SecretOptions) -> Result<Secret, Error> {
    let misuse = |place: &str, why: &str| {
        Error::new(ErrorKind::Type, format!("secrets.{name}{place}: {why}"))
    };
    check_name(name)?;
    let SecretOptions { value, hosts, parts, reveal } = options;
    if !VALUE_BYTES.contains(&value.len()) {
        let why = format!("it has {} bytes; a value has 8 to 8192", value.len());
        return Err(misuse(".value", &why));
    }
    if value.contains(['\r', '\n', '\0']) {
        return Err(misuse(".value", "it has a line end or a NUL"));
    }
    if hosts.is_empty() && !reveal {
        return Err(misuse("", "it needs hosts, or reveal"));
    }
    let pattern = |(index, text): (usize, &String)| {
        Pattern::parse(text, &format!("secrets.{name}.hosts[{index}]"))
    };
    let hosts = hosts.iter().enumerate().map(pattern).collect::<Result<_, _>>()?;
    let part = |text: &String| {
        let known = Part::ALL.into_iter().find(|part| part.name() == text);
        known.ok_or_else(|| misuse(".in", "a part of a request is 'url', 'header' or 'body'"))
    };
    let parts: Vec<Part> = match parts {
        None => Part::ALL.to_vec(),
        Some(names) => names.iter().map(part).collect::<Result<_, _>>()?,
    };
    if parts.is_empty() {
        return Err(misuse(".in", "it names no part of a request"));
    }
    Ok(Secret { value, hosts, parts, is_revealed: reveal })
}

fn check_name(name: &str) -> Result<(), Error> {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let begins_well = name.bytes().next().is_some_and(|first| !first.is_ascii_digit());
    if begins_well && name.len() <= NAME_CHARS && name.bytes().all(is_word) {
        return Ok(());
    }
    let why = "a name has 1 to 64 letters, digits and '_', and begins with no digit";
    Err(Error::new(ErrorKind::Type, format!("secrets: '{name}' is not a valid name: {why}")))
}

fn placeholder(name: &str) -> Result<String, Error> {
    let random =
        random_hex().map_err(|error| Error::new(ErrorKind::Internal, error.to_string()))?;
    Ok(format!("sealed_{name}_{random}"))
}
