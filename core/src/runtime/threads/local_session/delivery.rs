//! Messages of the host to a session, in a cell and between cells.
//!
//! In: answers, calls of functions that the host holds, and releases. Out: messages for the cell that runs, or for the
//! next one; and a cell of its own for a call that is made between cells.

use std::sync::{Arc, atomic::Ordering};

use super::Session;
use crate::{
    binding::{
        handle::Recipient,
        inbound::{Inbound, TOO_LARGE},
    },
    runtime::{record::CLOSED, sessions::Message},
    value::Charge,
};

impl Recipient for Session {
    fn deliver(self: Arc<Self>, inbound: Inbound) {
        let mut inbound = inbound;
        let mut shared = self.shared.lock();
        let call = inbound.call();
        if self.closed.load(Ordering::Acquire) {
            drop(shared);
            return self.reject(call.into_iter().collect(), CLOSED);
        }
        shared.settlements.note(&inbound);
        if call.is_some() && self.resources.ensure_threads().is_err() {
            drop(shared);
            return self.reject(call.into_iter().collect(), CLOSED);
        }
        let current = shared.machine.current();
        let current = current.filter(|run| !self.request.interleave && run.listens()).cloned();
        // A message does not overtake calls that wait.
        if let Some(current) = current.as_ref().filter(|_| call.is_none())
            && !shared.machine.has_messages()
        {
            match current.receive(inbound) {
                Ok(()) => return,
                Err(refused) => inbound = refused,
            }
        }
        if !inbound.count(&self.in_flight, self.limit_bytes) {
            if let Some(current) = &current {
                current.overdraw();
            }
            if call.is_some() {
                drop(shared);
                return self.reject(call.into_iter().collect(), ("MemoryLimit", TOO_LARGE));
            }
            inbound.refuse();
        }
        if self.request.interleave {
            shared.machine.keep_new(inbound);
        } else if shared.machine.keep(inbound, current.is_some())
            && let Some(current) = &current
        {
            shared.hand_over(current);
        }
        self.go_on(shared);
    }

    fn charge(self: Arc<Self>, bytes: usize) -> Option<Charge> {
        let current = self.shared.lock().machine.current().filter(|run| run.number() == 0).cloned();
        match current {
            Some(run) => run.charge(bytes),
            None => self.in_flight.charge(bytes, self.limit_bytes),
        }
    }
}
