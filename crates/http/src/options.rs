//! The options of a server.
//!
//! In: fields, or JSON of a face. Out: checked options, or the error that names the wrong one.

use std::fmt;

use isolane::{
    Error, ErrorKind, OptionDeclaration, OptionKind, Spelling, unknown_name, wrong_type,
};
use isolane_environment::{Log, whole_number};
use serde_json::{Map, Value};

/// The fewest characters of a token.
const LEAST_TOKEN: usize = 16;

/// The most bytes of a body that an option may allow: 1 GiB.
const MOST_BODY: u64 = 1 << 30;

/// The options of [`Server::listen`](crate::Server::listen).
#[derive(Clone)]
pub struct ListenOptions {
    /// The address: an IP address or a name; 127.0.0.1 by default.
    pub host: String,
    /// The port; 4765 by default. 0: a free one.
    pub port: u16,
    /// The token that clients must send, of at least 16 characters. Without one, the address must be a loopback address.
    pub token: Option<String>,
    /// The most bytes of a request's body; 1 MiB by default.
    pub max_body_bytes: usize,
    /// The most POSTs for a token or, without one, an address; 50 a second, 200 at once, by default. `None`: any number.
    pub rate_limit: Option<RateLimit>,
    /// Connections at once; 1,000 by default. A further one takes the place of the one that has been idle longest.
    pub max_connections: usize,
    /// Receives lines about failures that clients know only by an id; by default they go to the standard error.
    pub log: Option<Log>,
    /// How to spell options in errors.
    pub spelling: Spelling,
    /// The tokio runtime of the server; by default the library's own thread for futures. Its timers must be enabled, and
    /// its network.
    pub handle: Option<tokio::runtime::Handle>,
}

impl Default for ListenOptions {
    fn default() -> Self {
        Self {
            host: "127.0.0.1".to_owned(),
            port: 4765,
            token: None,
            max_body_bytes: 1 << 20,
            rate_limit: Some(RateLimit::default()),
            max_connections: 1000,
            log: None,
            spelling: Spelling::default(),
            handle: None,
        }
    }
}

/// How many POSTs a client may send.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateLimit {
    /// For how many a second there is room again.
    pub per_second: f64,
    /// How many may come at once.
    pub burst: u32,
}

impl Default for RateLimit {
    fn default() -> Self {
        Self { per_second: 50.0, burst: 200 }
    }
}

impl ListenOptions {
    /// The names of the options that are values, in the order in which errors list them.
    pub const NAMES: &[&str] = &["host", "port", "token", "max_body_bytes", "rate_limit"];

    /// Reads `{ host?, port?, token?, maxBodyBytes?, rateLimit? }`, as a language spells them. A field that is `null` is
    /// as if not given, but `rateLimit: null` is no limit.
    ///
    /// # Errors
    /// An unknown option, with the nearest one that exists; a wrong type; a number out of range.
    pub fn from_json(options: &Value, spelling: Spelling) -> Result<Self, Error> {
        let mut read = Self { spelling, ..Self::default() };
        let fields = object("options", options)?;
        let names: Vec<String> = Self::NAMES.iter().map(|name| spelled(name, spelling)).collect();
        for (key, value) in fields {
            let known = names.iter().position(|name| name == key);
            let Some(name) = known.and_then(|at| Self::NAMES.get(at)) else {
                return Err(unknown_name("", key, &names));
            };
            match *name {
                "rate_limit" => read.rate_limit = rate_limit(key, value, spelling)?,
                _ if value.is_null() => {}
                "host" => read.host = text(key, value)?,
                "token" => read.token = Some(text(key, value)?),
                "port" => read.port = whole(key, value, 0, u16::MAX.into())?,
                _ => read.max_body_bytes = whole(key, value, 1, MOST_BODY)?,
            }
        }
        read.check()?;
        Ok(read)
    }

    /// # Errors
    /// An option out of range; a token that is none.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let named = |name| spelled(name, self.spelling);
        if self.host.is_empty() {
            return Err(Error::new(ErrorKind::Type, "host must not be empty"));
        }
        let counts = [
            ("max_body_bytes", self.max_body_bytes as u64, MOST_BODY),
            ("max_connections", self.max_connections as u64, 1_000_000),
        ];
        for (name, value, most) in counts {
            if !(1..=most).contains(&value) {
                return Err(out_of_range(&named(name), 1, most, &value.to_string()));
            }
        }
        if let Some(RateLimit { per_second, burst }) = self.rate_limit {
            let place = named("rate_limit");
            if !(per_second > 0.0 && per_second <= 1e6) {
                let name = format!("{place}.{}", named("per_second"));
                let message =
                    format!("{name} must be more than 0 and at most 1000000, got {per_second}");
                return Err(Error::new(ErrorKind::Range, message));
            }
            if !(1..=1_000_000).contains(&burst) {
                let name = format!("{place}.{}", named("burst"));
                return Err(out_of_range(&name, 1, 1_000_000, &burst.to_string()));
            }
        }
        self.token.as_deref().map_or(Ok(()), check_token)
    }
}

fn check_token(token: &str) -> Result<(), Error> {
    let length = token.chars().count();
    if length < LEAST_TOKEN {
        let message = format!("token must have at least {LEAST_TOKEN} characters, got {length}");
        return Err(Error::new(ErrorKind::Range, message));
    }
    // A header has no others.
    if !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        let message = "token must consist of visible ASCII characters";
        return Err(Error::new(ErrorKind::Type, message));
    }
    Ok(())
}

fn rate_limit(name: &str, value: &Value, spelling: Spelling) -> Result<Option<RateLimit>, Error> {
    if value.is_null() {
        return Ok(None);
    }
    let mut limit = RateLimit::default();
    let names = ["per_second", "burst"].map(|name| spelled(name, spelling));
    for (key, value) in object(name, value)?.iter().filter(|(_, value)| !value.is_null()) {
        let place = format!("{name}.{key}");
        match names.iter().position(|known| known == key) {
            Some(0) => {
                let number = value.as_f64();
                limit.per_second =
                    number.ok_or_else(|| wrong_type(&place, "a number", kind(value)))?;
            }
            Some(_) => limit.burst = whole(&place, value, 1, 1_000_000)?,
            None => return Err(unknown_name(&format!("{name}."), key, &names)),
        }
    }
    Ok(Some(limit))
}

fn object<'v>(name: &str, value: &'v Value) -> Result<&'v Map<String, Value>, Error> {
    value.as_object().ok_or_else(|| wrong_type(name, "an object", kind(value)))
}

fn text(name: &str, value: &Value) -> Result<String, Error> {
    value.as_str().map(str::to_owned).ok_or_else(|| wrong_type(name, "a string", kind(value)))
}

fn whole<N: TryFrom<u64>>(name: &str, value: &Value, least: u64, most: u64) -> Result<N, Error> {
    let Value::Number(number) = value else {
        return Err(wrong_type(name, "a number", kind(value)));
    };
    let whole = whole_number(number).filter(|whole| (least..=most).contains(whole));
    let whole = whole.and_then(|whole| N::try_from(whole).ok());
    whole.ok_or_else(|| out_of_range(name, least, most, &number.to_string()))
}

fn out_of_range(name: &str, least: u64, most: u64, got: &str) -> Error {
    let message = format!("{name} must be a whole number from {least} to {most}, got {got}");
    Error::new(ErrorKind::Range, message)
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// The name of an option as a language spells it.
fn spelled(name: &'static str, spelling: Spelling) -> String {
    OptionDeclaration { name, kind: OptionKind::Other }.spelled(spelling)
}

impl fmt::Debug for ListenOptions {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("ListenOptions")
            .field("host", &self.host)
            .field("port", &self.port)
            .field("has_token", &self.token.is_some())
            .field("max_body_bytes", &self.max_body_bytes)
            .field("rate_limit", &self.rate_limit)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn refused(options: &Value) -> String {
        let read = ListenOptions::from_json(options, Spelling::Camel);
        read.expect_err("refused").message().to_owned()
    }

    #[test]
    fn options_are_read_and_mistakes_named() {
        let read = ListenOptions::from_json(
            &json!({ "host": "::1", "port": 0.0, "token": null, "maxBodyBytes": 5, "rateLimit": null }),
            Spelling::Camel,
        );
        let read = read.expect("options");
        assert_eq!((read.host.as_str(), read.port, read.max_body_bytes), ("::1", 0, 5));
        assert_eq!((read.token, read.rate_limit), (None, None));
        let limit = ListenOptions::from_json(
            &json!({ "rate_limit": { "per_second": 2 } }),
            Spelling::Snake,
        );
        let limit = limit.expect("options").rate_limit;
        assert_eq!(limit, Some(RateLimit { per_second: 2.0, burst: 200 }));

        assert_eq!(refused(&json!([])), "options must be an object, got an array");
        assert_eq!(refused(&json!({ "Port": 1 })), "unknown option 'Port'; did you mean 'port'?");
        assert_eq!(
            refused(&json!({ "rateLimit": { "persecond": 1 } })),
            "unknown option 'rateLimit.persecond'; did you mean 'rateLimit.perSecond'?"
        );
        assert_eq!(
            refused(&json!({ "port": 65_536 })),
            "port must be a whole number from 0 to 65535, got 65536"
        );
        assert_eq!(refused(&json!({ "port": "1" })), "port must be a number, got a string");
        assert_eq!(
            refused(&json!({ "maxBodyBytes": 0 })),
            "maxBodyBytes must be a whole number from 1 to 1073741824, got 0"
        );
        assert_eq!(
            refused(&json!({ "rateLimit": { "perSecond": 0 } })),
            "rateLimit.perSecond must be more than 0 and at most 1000000, got 0"
        );
        assert_eq!(
            refused(&json!({ "rateLimit": { "burst": 0 } })),
            "rateLimit.burst must be a whole number from 1 to 1000000, got 0"
        );
    }

    #[test]
    fn a_token_has_sixteen_visible_characters() {
        assert_eq!(
            refused(&json!({ "token": "0123456789abcde" })),
            "token must have at least 16 characters, got 15"
        );
        assert_eq!(
            refused(&json!({ "token": "0123456789 abcdef" })),
            "token must consist of visible ASCII characters"
        );
        let read =
            ListenOptions::from_json(&json!({ "token": "0123456789abcdef" }), Spelling::Camel);
        let shown = format!("{:?}", read.expect("options"));
        assert!(!shown.contains("0123456789abcdef"), "{shown}");
    }
}
