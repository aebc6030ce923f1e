//! The outcomes of promises that the host has handed to a session as capabilities.
//!
//! In: messages with capabilities, and the host's outcomes. Out: the outcomes again, for a session that is reset or
//! rolled back: it has its capabilities anew, and the host settles a promise once.

use std::collections::HashSet;

use crate::{
    binding::inbound::Inbound,
    value::{Event, Value, walk},
};

/// The promises among the capabilities of one session, and the outcomes of those that have settled.
#[derive(Debug, Default)]
pub(crate) struct Settlements {
    promises: HashSet<u32>,
    outcomes: Vec<Inbound>,
}

impl Settlements {
    /// Those of a session with these capabilities.
    pub(crate) fn of(inputs: &Value) -> Self {
        let mut settlements = Self::default();
        settlements.add(inputs);
        settlements
    }

    /// Adds the promises in a message with capabilities.
    pub(crate) fn add(&mut self, inputs: &Value) {
        // A message that cannot be read is refused where it is taken in.
        let _ = walk(inputs, |event| {
            if let Event::HostPromise(number) = event {
                self.promises.insert(*number);
            }
        });
    }

    /// Keeps an outcome, if it is that of such a promise.
    pub(crate) fn note(&mut self, inbound: &Inbound) {
        if inbound.settles().is_some_and(|promise| self.promises.remove(&promise)) {
            self.promises.extend(inbound.brings());
            self.outcomes.push(inbound.copy());
        }
    }

    /// All outcomes so far, in their order. The session drops those that nothing awaits.
    pub(crate) fn again(&self) -> impl Iterator<Item = Inbound> {
        self.outcomes.iter().map(Inbound::copy)
    }

    /// The same for a copy of the session.
    pub(crate) fn copy(&self) -> Self {
        Self { promises: self.promises.clone(), outcomes: self.again().collect() }
    }
}
