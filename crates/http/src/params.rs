//! The parameters of a request: in its path and in its query.
//!
//! In: texts of a client. Out: numbers and times, or the problem that names the parameter.

use std::time::Duration;

use axum::extract::{Path, rejection::PathRejection};
use isolane::unknown_name;

use crate::problem::Problem;

/// The longest `wait` of a client, in milliseconds.
pub(crate) const MOST_WAIT_MS: u64 = 60_000;

/// A pid in a path.
pub(crate) type PidParam = Result<Path<String>, PathRejection>;

/// Reads a pid.
///
/// # Errors
/// `not-found`: there is no process with such a pid.
pub(crate) fn pid(path: PidParam) -> Result<u64, Problem> {
    let Ok(Path(text)) = path else { return Err(Problem::not_found("there is no such process")) };
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit()) && !text.starts_with('0');
    let pid = text.parse().ok().filter(|_| is_plain);
    pid.ok_or_else(|| {
        let shown: String = text.chars().take(100).collect();
        Problem::not_found(format!("there is no process '{shown}'"))
    })
}

/// The pairs of a query.
pub(crate) fn pairs(query: Option<&str>) -> Vec<(String, String)> {
    form_urlencoded::parse(query.unwrap_or_default().as_bytes()).into_owned().collect()
}

/// Refuses all parameters.
///
/// # Errors
/// `bad-request`: there is one.
pub(crate) fn none(query: Option<&str>) -> Result<(), Problem> {
    match pairs(query).first() {
        None => Ok(()),
        Some((name, _)) => {
            let shown: String = name.chars().take(100).collect();
            let detail = format!("unknown option '{shown}'; this request has no options");
            Err(Problem::bad_request(detail))
        }
    }
}

/// Reads `?wait=MS`.
///
/// # Errors
/// `bad-request`: no number, more than 60,000, another parameter.
pub(crate) fn wait(query: Option<&str>) -> Result<Option<Duration>, Problem> {
    let text = only(query, "wait")?;
    let ms = text.map(|text| whole("wait", &text, MOST_WAIT_MS)).transpose()?;
    Ok(ms.map(Duration::from_millis))
}

/// Reads `?after=ID`.
///
/// # Errors
/// `bad-request`: no number, another parameter.
pub(crate) fn after(query: Option<&str>) -> Result<Option<u64>, Problem> {
    only(query, "after")?.map(|text| event_id("after", &text)).transpose()
}

/// Reads the id of an event.
///
/// # Errors
/// `bad-request`: no number.
pub(crate) fn event_id(name: &str, text: &str) -> Result<u64, Problem> {
    whole(name, text, u64::MAX)
}

/// The value of the only parameter that a query may have.
fn only(query: Option<&str>, name: &str) -> Result<Option<String>, Problem> {
    let mut value = None;
    for (given, text) in pairs(query) {
        if given != name {
            let error = unknown_name("", &given, &[name.to_owned()]);
            return Err(Problem::bad_request(error.message()));
        }
        if value.replace(text).is_some() {
            return Err(Problem::bad_request(format!("{name} is given twice")));
        }
    }
    Ok(value)
}

fn whole(name: &str, text: &str, most: u64) -> Result<u64, Problem> {
    let number = text.parse().ok().filter(|_| text.bytes().all(|byte| byte.is_ascii_digit()));
    number.filter(|number| *number <= most).ok_or_else(|| {
        let shown: String = text.chars().take(100).collect();
        let detail = match most {
            u64::MAX => format!("{name} must be a whole number, got '{shown}'"),
            _ => format!("{name} must be a whole number from 0 to {most}, got '{shown}'"),
        };
        Problem::bad_request(detail)
    })
}
