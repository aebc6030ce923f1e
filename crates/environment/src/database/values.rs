//! Values as SQLite has them.
//!
//! In: counts, times, kinds. Out: whole numbers of 64 bits, and back.

use crate::EventKind;

/// A count.
#[expect(clippy::cast_possible_wrap, reason = "no count comes near 2^63")]
pub(super) const fn number(number: u64) -> i64 {
    number as i64
}

/// A count that was written; one that nobody wrote is 0.
pub(super) fn count(number: i64) -> u64 {
    u64::try_from(number).unwrap_or_default()
}

/// Milliseconds since the epoch, which are whole.
#[expect(clippy::cast_possible_truncation, reason = "below 2^53")]
pub(super) fn time(ms: f64) -> i64 {
    ms as i64
}

/// The milliseconds since the epoch of a time that was written.
#[expect(clippy::cast_precision_loss, reason = "below 2^53")]
pub(super) fn ms(time: i64) -> f64 {
    time as f64
}

/// The kinds of events of one process, each at its number.
const KINDS: [EventKind; 5] =
    [EventKind::State, EventKind::Stdout, EventKind::Stderr, EventKind::Output, EventKind::Exit];

/// The number of a kind of events.
pub(super) fn kind_number(kind: EventKind) -> i64 {
    // A change of all processes is no event of one.
    let place = KINDS.iter().position(|known| *known == kind).unwrap_or(KINDS.len());
    number(place as u64)
}

/// The kind with that number.
pub(super) fn kind(number: i64) -> EventKind {
    let place = usize::try_from(number).unwrap_or(usize::MAX);
    KINDS.get(place).copied().unwrap_or(EventKind::Process)
}
