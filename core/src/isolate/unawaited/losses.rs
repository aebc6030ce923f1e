//! Calls that are watched, and calls that are lost.
//!
//! In: each call with its place, and the way in which it was lost. Out: the places that lost calls, each with the number
//! of its calls.

use crate::isolate::engine::{Local, Raw, address_of, frames::Caller};

/// The places that a run tells of.
const MOST_TOLD: usize = 10;

/// The place of a call in the text of its author.
#[derive(Clone)]
pub(in crate::isolate) struct Site {
    /// The host function that was called.
    pub(super) function: Local,
    pub(super) caller: Caller,
}

/// The way in which a call was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Loss {
    /// It had no answer when the run ended.
    Unanswered,
    /// Nothing was ever attached to its promise.
    Unawaited,
    /// An async function awaited it, and nothing was ever attached to the promise of that.
    FunctionUnawaited,
    /// An async function awaited it, and was not done when the run ended.
    FunctionUnfinished,
}

/// Calls of one place that were lost in one way.
pub(super) struct Lost {
    pub(super) site: Site,
    pub(super) loss: Loss,
    pub(super) calls: usize,
    /// The async function whose value was lost, where it waited last.
    pub(super) function: Option<Caller>,
    /// The number of the first call.
    pub(super) made: u32,
    /// The number of the cell that lost it.
    pub(super) cell: u32,
}

/// A promise with an answer to which nothing is attached yet.
pub(super) struct Watched {
    pub(super) promise: Local,
    pub(super) site: Site,
    /// Whether it is the promise of a function that awaited the call.
    pub(super) is_of_function: bool,
    /// That function, where it waited last.
    pub(super) function: Option<Caller>,
    pub(super) made: u32,
    /// The number of the cell that computes.
    pub(super) cell: u32,
}

/// The promises of calls that have an answer.
#[derive(Default)]
pub(in crate::isolate) struct Unawaited {
    pub(super) watched: Vec<Watched>,
    /// Lost already: nothing refers to their promises any more.
    pub(super) lost: Losses,
    /// Whether there were more promises than are watched.
    pub(super) is_cut: bool,
    /// Whether a promise is watched that no job has run since.
    pub(super) is_fresh: bool,
}

impl Unawaited {
    pub(super) fn is_empty(&self) -> bool {
        self.watched.is_empty() && self.lost.places.is_empty()
    }
}

/// The places that have lost calls, as many as are told of.
#[derive(Default)]
pub(super) struct Losses {
    pub(super) places: Vec<Lost>,
    /// The calls of other places.
    pub(super) more: usize,
}

impl Losses {
    pub(super) fn add(&mut self, lost: Lost) {
        if let Some(known) = self.places.iter_mut().find(|known| known.is_alike(&lost)) {
            known.calls += lost.calls;
            known.made = known.made.min(lost.made);
        } else if self.places.len() < MOST_TOLD {
            self.places.push(lost);
        } else {
            self.more += lost.calls;
        }
    }
}

impl Lost {
    fn is_alike(&self, other: &Self) -> bool {
        let places = [&self.function, &other.function];
        let waits_alike = match places {
            [Some(one), Some(other)] => one.is_at(other),
            _ => places.iter().all(|place| place.is_none()),
        };
        self.loss == other.loss
            && self.cell == other.cell
            && self.site.caller.is_at(&other.site.caller)
            && is_same(self.site.function.raw(), other.site.function.raw())
            && waits_alike
    }
}

impl Watched {
    pub(super) fn lost(self) -> Lost {
        self.lost_by(false)
    }

    pub(super) fn lost_by(self, is_pending: bool) -> Lost {
        let loss = match (self.is_of_function, is_pending) {
            (false, _) => Loss::Unawaited,
            (true, false) => Loss::FunctionUnawaited,
            (true, true) => Loss::FunctionUnfinished,
        };
        let Self { site, function, made, cell, .. } = self;
        Lost { site, loss, calls: 1, function, made, cell }
    }
}

pub(super) fn is_same(one: Raw, other: Raw) -> bool {
    address_of(one) == address_of(other)
}
