//! The accounts of a host with one worker, which all cells of a session in that worker share.
//!
//! In: messages that the host sends unasked. Out: their count, and the ledger.

use super::ledger::Ledger;
use crate::binding::inbound::Inbound;

/// The accounts with one worker.
#[derive(Debug)]
pub(crate) struct Dealings {
    pub(crate) ledger: Ledger,
    /// How many messages the host has sent of its own accord.
    pub(crate) sent: u64,
    /// The least number of them that the worker must have taken when it waits the next time.
    pub(crate) next_parked: u64,
}

impl Dealings {
    /// Those of a run that may hold so much.
    pub(crate) fn of_run(most_bytes: usize) -> Self {
        Self { ledger: Ledger::new(most_bytes), sent: 0, next_parked: 0 }
    }

    /// Those of a session with that ledger.
    pub(crate) fn of_session(ledger: Ledger) -> Self {
        Self { ledger, sent: 0, next_parked: 0 }
    }

    /// Notes a message of the host; returns its number.
    pub(crate) fn send(&mut self, inbound: &Inbound) -> u64 {
        self.sent += 1;
        match inbound {
            Inbound::PromiseSettled { promise, .. } => self.ledger.settle(*promise),
            Inbound::FunctionCall { call, .. } => self.ledger.call(*call),
            Inbound::FunctionReleased { function, times } => self.ledger.release(*function, *times),
        }
        self.sent
    }
}
