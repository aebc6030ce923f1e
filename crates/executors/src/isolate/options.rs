//! The options of the executor that are no options of its sessions, as JSON.
//!
//! In: all options of a caller of another language. Out: the executor with those that are decided here. The others are for
//! the [`SessionHost`](isolane_door::SessionHost) of the binding, which opens the sessions.

use std::time::Duration;

use isolane::{
    Error, ErrorKind, OptionDeclaration, OptionKind, Spelling, unknown_name, wrong_type,
};
use serde_json::{Map, Value as Json};

use super::IsolateCodeExecutor;
use crate::content::kind_of;

/// The options that are read here.
const OWN: [&str; 5] =
    ["timeout_ms", "stateful", "show_value", "retry_attempts", "output_limit_bytes"];

/// The options of sessions, and of the runtime.
const HOST: [&str; 8] = [
    "language",
    "globals",
    "imports",
    "modules",
    "memory_limit_bytes",
    "runtime",
    "isolation",
    "report",
];

impl IsolateCodeExecutor {
    /// Takes the options of a caller from JSON, for a binding: those that are not the options of its sessions. Of the
    /// others only the names are checked, and that no two exclude each other. A `timeout_ms` that is `null` is no limit.
    ///
    /// # Errors
    /// An unknown option, with the nearest one that exists; a value of the wrong type or out of range.
    pub fn json_options(
        mut self,
        options: &Map<String, Json>,
        spelling: Spelling,
    ) -> Result<Self, Error> {
        let spelled = |name| OptionDeclaration { name, kind: OptionKind::Other }.spelled(spelling);
        let names: Vec<String> = OWN.into_iter().chain(HOST).map(spelled).collect();
        for (key, value) in options {
            let Some(known) = names.iter().position(|name| name == key) else {
                return Err(unknown_name("", key, &names));
            };
            let Some(name) = OWN.get(known) else { continue };
            match *name {
                "timeout_ms" if value.is_null() => self = self.without_timeout(),
                _ if value.is_null() => {}
                "timeout_ms" => {
                    self = self.with_timeout(Duration::from_millis(count(key, value, 1)?));
                }
                "stateful" => self = self.with_stateful(flag(key, value)?),
                "show_value" => self = self.with_show_value(flag(key, value)?),
                "retry_attempts" => {
                    let attempts = u32::try_from(count(key, value, 0)?).unwrap_or(u32::MAX);
                    self = self.with_retry_attempts(attempts);
                }
                _ => {
                    let bytes = usize::try_from(count(key, value, 1)?).unwrap_or(usize::MAX);
                    self = self.with_output_limit(bytes);
                }
            }
        }
        let is_given = |name: &str| options.get(name).is_some_and(|value| !value.is_null());
        if is_given("runtime") && is_given("isolation") {
            return Err(Error::new(ErrorKind::Type, super::host::BOTH));
        }
        Ok(self)
    }
}

fn flag(key: &str, value: &Json) -> Result<bool, Error> {
    value.as_bool().ok_or_else(|| wrong_type(key, "a boolean", kind_of(value)))
}

fn count(key: &str, value: &Json, least: u32) -> Result<u64, Error> {
    let Some(number) = value.as_f64() else {
        return Err(wrong_type(key, "a number", kind_of(value)));
    };
    if number.fract() != 0.0 || !(f64::from(least)..=9_007_199_254_740_991.0).contains(&number) {
        let message = format!("{key} must be a whole number of at least {least}, got {value}");
        return Err(Error::new(ErrorKind::Range, message));
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "in range")]
    Ok(number as u64)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::CodeExecutor;

    fn made(options: &Json) -> Result<IsolateCodeExecutor, Error> {
        let options = options.as_object().expect("an object");
        IsolateCodeExecutor::new().json_options(options, Spelling::Camel)
    }

    #[test]
    fn options_are_read() {
        let options =
            json!({ "timeoutMs": 1500, "stateful": true, "retryAttempts": 0, "globals": 1 });
        let executor = made(&options).expect("valid options");
        assert_eq!(executor.timeout(), Some(Duration::from_millis(1500)));
        assert_eq!((executor.stateful(), executor.error_retry_attempts()), (true, 0));
        let without = made(&json!({ "timeoutMs": null, "stateful": null })).expect("valid options");
        assert_eq!((without.timeout(), without.stateful()), (None, false));
    }

    #[test]
    fn wrong_options_are_refused() {
        let message = |options| made(&options).expect_err("misuse").message().to_owned();
        assert_eq!(
            message(json!({ "timeout": 1 })),
            "unknown option 'timeout'; did you mean 'timeoutMs'?"
        );
        assert_eq!(
            message(json!({ "timeoutMs": 0 })),
            "timeoutMs must be a whole number of at least 1, got 0"
        );
        assert_eq!(
            message(json!({ "timeoutMs": 0.5 })),
            "timeoutMs must be a whole number of at least 1, got 0.5"
        );
        assert_eq!(
            message(json!({ "stateful": "yes" })),
            "stateful must be a boolean, got a string"
        );
        assert_eq!(
            message(json!({ "runtime": {}, "isolation": "process" })),
            "runtime and isolation exclude each other"
        );
    }
}
