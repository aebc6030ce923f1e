//! Requests of clients to a process service, and their checks.
//!
//! In: JSON, or the pairs of a query. Out: typed requests, or a problem `bad-request` that names the field. HTTP and the
//! languages' faces read with the same functions.

use std::num::IntErrorKind;

use isolane::{Spelling, unknown_name};
use serde_json::{Map, Number, Value};

use crate::{
    EXECUTION_EXIT_STATES, ExecutionExitState, ProcessError, ProcessState, options::spelled,
};

/// A process to be created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewProcess {
    /// Its code.
    pub code: String,
    /// Its time limit; by default the service's.
    pub timeout_ms: Option<u64>,
    /// Whether it is queued at once.
    pub autorun: bool,
}

impl NewProcess {
    /// A process that is queued at once, with the service's time limit.
    pub fn new(code: impl Into<String>) -> Self {
        Self { code: code.into(), timeout_ms: None, autorun: true }
    }

    /// Reads `{ code, timeoutMs?, autorun? }`.
    ///
    /// # Errors
    /// `bad-request`: a wrong type or range, an unknown field.
    pub fn from_json(body: &Value) -> Result<Self, ProcessError> {
        Self::from_spelled(body, Spelling::Camel)
    }

    /// The same, with names as a language spells them.
    pub(crate) fn from_spelled(body: &Value, spelling: Spelling) -> Result<Self, ProcessError> {
        let timeout = spelled("timeout_ms", spelling);
        let fields = object(Some(body), &["code", &timeout, "autorun"])?;
        let code = match fields.get("code") {
            Some(Value::String(code)) => code.clone(),
            Some(other) => return Err(wrong("code", "a string", other)),
            None => return Err(ProcessError::bad_request("code is missing")),
        };
        let timeout_ms = whole(&fields, &timeout)?;
        let autorun = flag(&fields, "autorun")?.unwrap_or(true);
        Ok(Self { code, timeout_ms, autorun })
    }

    /// # Errors
    /// `bad-request`: a time limit that is longer than that, or none.
    pub(crate) fn check(&self, most_ms: u64, spelling: Spelling) -> Result<(), ProcessError> {
        match self.timeout_ms.filter(|asked| !(1..=most_ms).contains(asked)) {
            None => Ok(()),
            Some(asked) => {
                let name = spelled("timeout_ms", spelling);
                let message =
                    format!("{name} must be a whole number from 1 to {most_ms}, got {asked}");
                Err(ProcessError::bad_request(message))
            }
        }
    }
}

/// How a process is run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunQuery {
    /// Whether the results of an earlier execution are cleared.
    pub force: bool,
}

impl RunQuery {
    /// Reads `{ force? }`; `None` for an empty body.
    ///
    /// # Errors
    /// `bad-request`: a wrong type, an unknown field.
    pub fn from_json(body: Option<&Value>) -> Result<Self, ProcessError> {
        let fields = object(body, &["force"])?;
        Ok(Self { force: flag(&fields, "force")?.unwrap_or(false) })
    }
}

/// A selection of processes, newest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListQuery {
    /// Only those in that state.
    pub state: Option<ProcessState>,
    /// Only those with that end.
    pub exit_state: Option<ExecutionExitState>,
    /// How many: 1 to 200, 50 by default.
    pub limit: usize,
    /// Only those with a smaller pid.
    pub before: Option<u64>,
}

impl Default for ListQuery {
    fn default() -> Self {
        Self { state: None, exit_state: None, limit: 50, before: None }
    }
}

impl ListQuery {
    /// Reads the pairs of a query: `state`, `exitState`, `limit`, `before`.
    ///
    /// # Errors
    /// `bad-request`: a wrong value, an unknown name.
    pub fn from_pairs<'q>(
        pairs: impl IntoIterator<Item = (&'q str, &'q str)>,
    ) -> Result<Self, ProcessError> {
        let mut fields = Map::new();
        for (name, text) in pairs {
            let value = match name {
                // A text that is no number is refused as a text.
                "limit" | "before" => match text.parse::<u64>() {
                    Ok(number) => number.into(),
                    // No process has so large a number.
                    Err(error) if *error.kind() == IntErrorKind::PosOverflow => u64::MAX.into(),
                    Err(_) => text.into(),
                },
                _ => text.into(),
            };
            if fields.insert(name.to_owned(), value).is_some() {
                let name: String = name.chars().take(100).collect();
                return Err(ProcessError::bad_request(format!("{name} is given twice")));
            }
        }
        Self::from_json(&Value::Object(fields))
    }

    /// Reads `{ state?, exitState?, limit?, before? }`.
    ///
    /// # Errors
    /// As [`from_pairs`](Self::from_pairs).
    pub fn from_json(query: &Value) -> Result<Self, ProcessError> {
        Self::from_spelled(query, Spelling::Camel)
    }

    /// The same, with names as a language spells them.
    pub(crate) fn from_spelled(query: &Value, spelling: Spelling) -> Result<Self, ProcessError> {
        let exit = spelled("exit_state", spelling);
        let fields = object(Some(query), &["state", &exit, "limit", "before"])?;
        let state = word(&fields, "state", &ProcessState::ALL.map(ProcessState::as_str))?;
        let exit_state = word(&fields, &exit, &EXECUTION_EXIT_STATES)?;
        let limit = whole(&fields, "limit")?.unwrap_or(50);
        let query = Self {
            state: state.and_then(ProcessState::named),
            exit_state: exit_state.and_then(ExecutionExitState::named),
            limit: usize::try_from(limit).unwrap_or(usize::MAX),
            before: whole(&fields, "before")?,
        };
        query.check()?;
        Ok(query)
    }

    pub(crate) fn check(&self) -> Result<(), ProcessError> {
        if (1..=MOST_LISTED).contains(&self.limit) {
            return Ok(());
        }
        let message =
            format!("limit must be a whole number from 1 to {MOST_LISTED}, got {}", self.limit);
        Err(ProcessError::bad_request(message))
    }
}

/// The most processes of a page.
const MOST_LISTED: usize = 200;

/// The fields of an object that are not null, of those that it may have.
fn object(value: Option<&Value>, names: &[&str]) -> Result<Map<String, Value>, ProcessError> {
    let fields = match value {
        None => return Ok(Map::new()),
        Some(Value::Object(fields)) => fields,
        Some(other) => {
            let message = format!("the request must be an object, got {}", kind(other));
            return Err(ProcessError::bad_request(message));
        }
    };
    if let Some(name) = fields.keys().find(|name| !names.contains(&name.as_str())) {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let message = unknown_name("", name, &names).message().to_owned();
        return Err(ProcessError::bad_request(message));
    }
    let given = fields.iter().filter(|(_, value)| !value.is_null());
    Ok(given.map(|(name, value)| (name.clone(), value.clone())).collect())
}

fn flag(fields: &Map<String, Value>, name: &str) -> Result<Option<bool>, ProcessError> {
    match fields.get(name) {
        None => Ok(None),
        Some(Value::Bool(is)) => Ok(Some(*is)),
        Some(other) => Err(wrong(name, "a boolean", other)),
    }
}

fn whole(fields: &Map<String, Value>, name: &str) -> Result<Option<u64>, ProcessError> {
    let Some(value) = fields.get(name) else { return Ok(None) };
    let Value::Number(number) = value else {
        return Err(wrong(name, "a whole number", value));
    };
    whole_number(number).map(Some).ok_or_else(|| {
        ProcessError::bad_request(format!("{name} must be a whole number, got {number}"))
    })
}

/// A number of JSON that is whole and not negative. Those of JavaScript come as floating-point numbers, and count up to
/// 10^15.
#[must_use]
pub fn whole_number(number: &Number) -> Option<u64> {
    let float = number.as_f64().filter(|float| float.fract() == 0.0 && (0.0..1e15).contains(float));
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "whole, in range")]
    number.as_u64().or(float.map(|float| float as u64))
}

fn word<'f>(
    fields: &'f Map<String, Value>,
    name: &str,
    words: &[&str],
) -> Result<Option<&'f str>, ProcessError> {
    let Some(value) = fields.get(name) else { return Ok(None) };
    match value.as_str() {
        Some(word) if words.contains(&word) => Ok(Some(word)),
        _ => {
            let words: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
            let shown: String = match value {
                Value::String(text) => format!("'{}'", text.chars().take(100).collect::<String>()),
                other => kind(other).to_owned(),
            };
            let message = format!("{name} must be one of {}, got {shown}", words.join(", "));
            Err(ProcessError::bad_request(message))
        }
    }
}

fn wrong(name: &str, expected: &str, got: &Value) -> ProcessError {
    ProcessError::bad_request(format!("{name} must be {expected}, got {}", kind(got)))
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn refused<T: std::fmt::Debug>(read: Result<T, ProcessError>) -> String {
        let error = read.expect_err("refused");
        assert_eq!(error.code, crate::ProblemType::BadRequest);
        error.message
    }

    #[test]
    fn bodies_are_read_and_mistakes_named() {
        let new =
            NewProcess::from_json(&json!({ "code": "1", "timeoutMs": 5.0, "autorun": false }));
        let expected = NewProcess { code: "1".to_owned(), timeout_ms: Some(5), autorun: false };
        assert_eq!(new, Ok(expected));
        let absent = NewProcess::from_json(&json!({ "code": "1", "timeoutMs": null }));
        assert_eq!(absent, Ok(NewProcess::new("1")));
        let refused = |body| refused(NewProcess::from_json(&body));
        assert_eq!(refused(json!([])), "the request must be an object, got an array");
        assert_eq!(refused(json!({})), "code is missing");
        assert_eq!(refused(json!({ "code": 1 })), "code must be a string, got a number");
        assert_eq!(
            refused(json!({ "code": "", "timeoutms": 1 })),
            "unknown option 'timeoutms'; did you mean 'timeoutMs'?"
        );
        assert_eq!(
            refused(json!({ "code": "", "timeoutMs": 1.5 })),
            "timeoutMs must be a whole number, got 1.5"
        );
        assert_eq!(
            refused(json!({ "code": "", "timeoutMs": -1 })),
            "timeoutMs must be a whole number, got -1"
        );
        assert_eq!(
            refused(json!({ "code": "", "autorun": "no" })),
            "autorun must be a boolean, got a string"
        );
    }

    #[test]
    fn queries_are_read_and_mistakes_named() {
        let pairs = [("state", "idle"), ("exitState", "failed"), ("limit", "5"), ("before", "9")];
        let expected = ListQuery {
            state: Some(ProcessState::Idle),
            exit_state: Some(ExecutionExitState::Failed),
            limit: 5,
            before: Some(9),
        };
        assert_eq!(ListQuery::from_pairs(pairs), Ok(expected));
        assert_eq!(ListQuery::from_pairs([]), Ok(ListQuery::default()));
        let beyond = ListQuery::from_pairs([("before", "7779724737320985821184")]);
        assert_eq!(beyond.map(|query| query.before), Ok(Some(u64::MAX)));
        let refused = |name, value| refused(ListQuery::from_pairs([(name, value)]));
        assert_eq!(refused("limit", "201"), "limit must be a whole number from 1 to 200, got 201");
        assert_eq!(refused("limit", "x"), "limit must be a whole number, got a string");
        assert_eq!(
            refused("state", "done"),
            "state must be one of 'idle', 'queued', 'running', 'terminating', got 'done'"
        );
        assert_eq!(refused("Limit", "1"), "unknown option 'Limit'; did you mean 'limit'?");
    }
}
