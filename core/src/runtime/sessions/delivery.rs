//! Messages of the host to a session, in a cell and between cells.
//!
//! In: answers, calls of functions that the host holds, and releases. Out: messages for the cell that runs, or for the
//! next one; and a cell of its own for a call that is made between cells.

use std::sync::Arc;

use super::{
    Message,
    place::{Place, Received},
    run::SessionRun,
    session::Session,
};
use crate::{
    binding::{
        handle::Recipient,
        inbound::{Inbound, TOO_LARGE},
    },
    runtime::{record::CLOSED, session::SessionControl},
    value::Charge,
};

impl<P: Place> Recipient for Session<P> {
    fn deliver(self: Arc<Self>, inbound: Inbound) {
        let call = inbound.call();
        let reject = |error| self.reject(call.into_iter().collect(), error);
        let mut shared = self.shared.lock();
        if self.is_closed() {
            drop(shared);
            return reject(CLOSED);
        }
        shared.settlements.note(&inbound);
        if call.is_some() && self.place.ensure_threads().is_err() {
            drop(shared);
            return reject(CLOSED);
        }
        let interleaves = self.request.interleave;
        let current = shared.machine.current();
        let current = current.filter(|run| !interleaves && run.listens()).cloned();
        // A message does not overtake calls that wait.
        let overtakes = call.is_some() || shared.machine.has_messages();
        let received = match &current {
            _ if interleaves => P::pass_on(&self, &mut shared, inbound),
            Some(current) if !overtakes => current.receive(inbound),
            _ => Received::No(inbound),
        };
        let mut inbound = match received {
            Received::No(inbound) => inbound,
            Received::Yes => return,
            Received::Woken(run) => {
                drop(shared);
                return self.place.wake(run);
            }
            Received::TooLarge(run) => {
                drop(shared);
                if let Some(run) = run {
                    self.place.overdraw(&run);
                }
                return reject(("MemoryLimit", TOO_LARGE));
            }
        };
        if !inbound.count(&self.in_flight, self.limit_bytes) {
            if let Some(current) = &current {
                self.place.refused(current);
            }
            if call.is_some() {
                drop(shared);
                return reject(("MemoryLimit", TOO_LARGE));
            }
            inbound.refuse();
        }
        let wakes = P::keep(&mut shared, inbound, current.as_ref());
        self.go_on(shared);
        if let Some(current) = current.filter(|_| wakes) {
            self.place.wake(current);
        }
    }

    fn charge(self: Arc<Self>, bytes: usize) -> Option<Charge> {
        let charge = self.in_flight.charge(bytes, self.limit_bytes);
        if charge.is_none() {
            let run = {
                let shared = self.shared.lock();
                shared.machine.current().or(shared.machine.begun().next_back()).cloned()
            };
            if let Some(run) = run {
                self.place.overdraw(&run);
            }
        }
        charge
    }
}
