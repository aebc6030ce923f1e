//! The declarations of all options, and the errors for a wrong one.
//!
//! In: options as a caller wrote them. Out: the [`Error`] that names the option as the caller's language spells it. The
//! options of a run are declared here, those of a runtime in `runtime_options.rs`, and nowhere else.

use std::fmt::Display;

use super::{option_hints, runtime_options::RuntimeOptions};
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

/// An option: its name, and the kind of the values that a caller may give it. Everything that reads, lists or checks
/// options follows from these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OptionDeclaration {
    /// Its name in [`Spelling::Snake`].
    pub name: &'static str,
    /// The kind of its values.
    pub kind: OptionKind,
}

impl OptionDeclaration {
    /// Its name as a language spells it.
    #[must_use]
    pub fn spelled(&self, spelling: Spelling) -> String {
        spell(self.name, spelling)
    }
}

/// The kind of an option's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptionKind {
    /// A whole number of at least that.
    Count {
        /// The least that is valid.
        least: u32,
    },
    /// One of these texts.
    Choice(&'static [&'static str]),
    /// A text that is not empty.
    Text,
    /// The path of a file.
    Path,
    /// Values by name, sources by name, functions or lists, which the reader of that option checks.
    Other,
}

impl OptionKind {
    /// The words for a choice: `'thread' or 'process'`. Empty for all else, whose types each language names itself.
    #[must_use]
    pub fn choices(self) -> String {
        let Self::Choice(choices) = self else { return String::new() };
        let quoted: Vec<String> = choices.iter().map(|choice| format!("'{choice}'")).collect();
        quoted.join(" or ")
    }
}

/// A set of options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptionSet {
    /// The options of a run.
    Run,
    /// The fields of `execute`.
    Execute,
    /// The options of a `Runtime`.
    Runtime,
    /// The options of a session.
    Session,
    /// The options of a cell.
    Cell,
    /// The first argument of a session's `call`, if it is not just a name.
    Call,
    /// The parts of a session's update.
    Update,
}

impl OptionSet {
    /// The set with that name: `run`, `execute`, `runtime`, `session`, `cell`, `call` or `update`.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "run" => Some(Self::Run),
            "execute" => Some(Self::Execute),
            "runtime" => Some(Self::Runtime),
            "session" => Some(Self::Session),
            "cell" => Some(Self::Cell),
            "call" => Some(Self::Call),
            "update" => Some(Self::Update),
            _ => None,
        }
    }

    /// All options of the set, in the order in which errors list them.
    #[must_use]
    pub fn declarations(self) -> &'static [OptionDeclaration] {
        match self {
            Self::Run => RUN,
            Self::Execute => EXECUTE,
            Self::Runtime => RuntimeOptions::DECLARATIONS,
            Self::Session => SESSION,
            Self::Cell => CELL,
            Self::Call => CALL,
            Self::Update => UPDATE,
        }
    }
}

/// The values of `language`.
const LANGUAGE: OptionKind = OptionKind::Choice(&["javascript", "typescript"]);

const fn option(name: &'static str, kind: OptionKind) -> OptionDeclaration {
    OptionDeclaration { name, kind }
}

/// The options of a run; [`Request`](crate::Request) has their values, and describes their meaning.
const RUN: &[OptionDeclaration] = &[
    option("execute", OptionKind::Other),
    option("imports", OptionKind::Other),
    option("modules", OptionKind::Other),
    option("globals", OptionKind::Other),
    option("language", LANGUAGE),
    option("memory_limit_bytes", OptionKind::Count { least: 1 }),
    option("filename", OptionKind::Text),
    option("report", OptionKind::Other),
];

/// The options of a session; [`SessionRequest`](crate::SessionRequest) has their values.
const SESSION: &[OptionDeclaration] = &[
    option("imports", OptionKind::Other),
    option("modules", OptionKind::Other),
    option("globals", OptionKind::Other),
    option("language", LANGUAGE),
    option("memory_limit_bytes", OptionKind::Count { least: 1 }),
    option("report", OptionKind::Other),
    option("cells", OptionKind::Choice(&["queue", "interleave"])),
    option("checkpoint_bytes", OptionKind::Count { least: 0 }),
];

/// The options of a cell; [`CellRequest`](crate::CellRequest) has their values. `signal` is for Node alone.
const CELL: &[OptionDeclaration] = &[
    option("filename", OptionKind::Text),
    option("language", LANGUAGE),
    option("report", OptionKind::Other),
    option("timeout_ms", OptionKind::Count { least: 1 }),
    option("signal", OptionKind::Other),
];

/// The options of a call; [`CallRequest`](crate::CallRequest) has their values. `signal` is for Node alone.
const CALL: &[OptionDeclaration] = &[
    option("name", OptionKind::Text),
    option("timeout_ms", OptionKind::Count { least: 1 }),
    option("signal", OptionKind::Other),
    option("report", OptionKind::Other),
];

/// The parts of an update; [`UpdateRequest`](crate::UpdateRequest) has their values.
const UPDATE: &[OptionDeclaration] = &[
    option("globals", OptionKind::Other),
    option("imports", OptionKind::Other),
    option("modules", OptionKind::Other),
];

const EXECUTE: &[OptionDeclaration] =
    &[option("fn", OptionKind::Text), option("args", OptionKind::Other)];

/// The error for an option that does not exist, naming the nearest one that does, or another way.
#[must_use]
pub fn unknown_option(set: OptionSet, key: &str, spelling: Spelling) -> Error {
    let place = if set == OptionSet::Execute { "execute." } else { "" };
    unknown(place, key, &option_hints::of_set(set, key, spelling))
}

/// The error for a name that is none of those that a group of options has, naming the nearest one. `place` is the group
/// with a dot, or empty.
#[must_use]
pub fn unknown_name(place: &str, key: &str, names: &[String]) -> Error {
    unknown(place, key, &option_hints::of(place, key, names))
}

fn unknown(place: &str, key: &str, hint: &str) -> Error {
    type_error(format!("unknown option '{place}{}'; {hint}", shown(key)))
}

/// The error for a keyword that a call of Python does not take, in Python's words and with the hint of
/// [`unknown_name`], or of [`unknown_option`] if the call takes the options of a set.
#[must_use]
pub fn unknown_keyword(call: &str, key: &str, set: Option<OptionSet>, names: &[String]) -> Error {
    let remedy = set.and_then(|set| option_hints::remedy_of(set, key, Spelling::Snake));
    let hint = remedy.unwrap_or_else(|| option_hints::of("", key, names));
    type_error(format!("{call}() got an unexpected keyword argument '{}'; {hint}", shown(key)))
}

/// The error for an option of the wrong type, with the expected type and the given one.
#[must_use]
pub fn wrong_type(option: &str, expected: &str, got: &str) -> Error {
    type_error(format!("{option} must be {expected}, got {got}"))
}

/// The most that a count can be.
const MOST_COUNT: u32 = 1_000_000_000;

/// Checks a count: a number of at least that.
pub(crate) fn count(
    name: &str,
    value: Option<u64>,
    least: u32,
    spelling: Spelling,
) -> Result<Option<usize>, Error> {
    let Some(value) = value else { return Ok(None) };
    let valid = u64::from(least)..=u64::from(MOST_COUNT);
    match usize::try_from(value) {
        Ok(count) if valid.contains(&value) => Ok(Some(count)),
        _ => Err(no_count(name, value, least, spelling)),
    }
}

/// The count that a number of a language without integers is.
pub(super) fn read_count(
    name: &str,
    number: f64,
    least: u32,
    spelling: Spelling,
) -> Result<u64, Error> {
    let valid = f64::from(least)..=f64::from(MOST_COUNT);
    if number.fract() != 0.0 || !valid.contains(&number) {
        return Err(no_count(name, number, least, spelling));
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "in range")]
    Ok(number as u64)
}

fn no_count(name: &str, got: impl Display, least: u32, spelling: Spelling) -> Error {
    let name = spell(name, spelling);
    let message = format!("{name} must be a whole number from {least} to {MOST_COUNT}, got {got}");
    Error::new(ErrorKind::Range, message)
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
