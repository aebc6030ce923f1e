//! The names of all options, and the errors for a wrong one.
//!
//! In: what a caller wrote. Out: the [`Error`] that names the option as the caller's language spells it. The lists of
//! names stand here and nowhere else.

use super::nearest::nearest;
use crate::error::{Error, ErrorKind};

/// How a language spells its options, for the messages of its errors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Spelling {
    /// `memoryLimitBytes`
    Camel,
    /// `memory_limit_bytes`
    #[default]
    Snake,
}

/// A set of option names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptionSet {
    /// The options of a run.
    Run,
    /// The fields of `execute`.
    Execute,
    /// The options of a `Runtime`.
    Runtime,
}

impl OptionSet {
    fn names(self) -> &'static [&'static str] {
        match self {
            Self::Run => &[
                "execute",
                "imports",
                "modules",
                "globals",
                "language",
                "memory_limit_bytes",
                "filename",
                "report",
            ],
            Self::Execute => &["fn", "args"],
            Self::Runtime => &[
                "isolation",
                "safety_cap_ms",
                "max_concurrent_runs",
                "max_queued_runs",
                "max_stuck_threads",
                "ready_isolates",
                "compile_cache_bytes",
                "worker",
                "runs_per_worker",
                "worker_idle_ms",
            ],
        }
    }
}

/// The error for an option that does not exist, naming the nearest one that does.
#[must_use]
pub fn unknown_option(set: OptionSet, key: &str, spelling: Spelling) -> Error {
    let names: Vec<String> = set.names().iter().map(|name| spell(name, spelling)).collect();
    let place = if set == OptionSet::Execute { "execute." } else { "" };
    let nearest = nearest(key, names.iter().map(String::as_str));
    let hint = match nearest {
        Some(name) => format!("did you mean '{place}{name}'?"),
        None => format!("valid options are {}", names.join(", ")),
    };
    type_error(format!("unknown option '{place}{}'; {hint}", shown(key)))
}

/// The error for an option of the wrong type: what it must be, and what it was.
#[must_use]
pub fn wrong_type(option: &str, expected: &str, got: &str) -> Error {
    type_error(format!("{option} must be {expected}, got {got}"))
}

/// A whole number of at least that.
pub(crate) fn count(
    name: &str,
    value: Option<f64>,
    least: u32,
    spelling: Spelling,
) -> Result<Option<usize>, Error> {
    match value {
        None => Ok(None),
        Some(value) if value.fract() == 0.0 && (f64::from(least)..=1e9).contains(&value) =>
        {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "in range")]
            Ok(Some(value as usize))
        }
        Some(value) => Err(Error::new(
            ErrorKind::Range,
            format!(
                "{} must be a whole number from {least} to 1000000000, got {value}",
                spell(name, spelling)
            ),
        )),
    }
}

pub(crate) fn spell(name: &str, spelling: Spelling) -> String {
    if spelling == Spelling::Snake {
        return name.to_owned();
    }
    let mut words = name.split('_');
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |spelled, word| {
        let (head, tail) = word.split_at(1);
        spelled + &head.to_uppercase() + tail
    })
}

/// As much of a caller's text as an error repeats.
pub(crate) fn shown(text: &str) -> String {
    text.chars().take(100).collect()
}

pub(crate) fn type_error(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Type, message)
}
