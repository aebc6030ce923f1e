//! Messages of the host to a session, in a cell and between cells.
//!
//! In: answers, calls of functions that the host holds, and releases. Out: messages for the cell that runs, or for the
//! next one; and a cell of its own for a call that is made between cells.

use std::sync::{Arc, atomic::Ordering};

use super::{Options, Session, Shared};
use crate::{
    binding::{
        handle::Recipient,
        inbound::{Inbound, TOO_LARGE},
        interception::Interception,
    },
    isolate::session::Work as CellWork,
    runtime::{
        calls::Placed,
        record::CLOSED,
        threads::run::{Run, Work, cell::Kind},
    },
    value::Charge,
};

impl Recipient for Session {
    fn deliver(self: Arc<Self>, inbound: Inbound) {
        let mut inbound = inbound;
        let mut shared = self.shared.lock();
        let call = match &inbound {
            Inbound::FunctionCall { call, .. } => Some(*call),
            _ => None,
        };
        if self.closed.load(Ordering::Acquire) {
            drop(shared);
            return self.reject(call.into_iter().collect(), CLOSED);
        }
        shared.settlements.note(&inbound);
        if call.is_some() && self.resources.ensure_threads().is_err() {
            drop(shared);
            return self.reject(call.into_iter().collect(), CLOSED);
        }
        let current =
            shared.current.clone().filter(|run| !self.request.interleave && run.listens());
        // A message does not overtake calls that wait.
        if let Some(current) = current.as_ref().filter(|_| call.is_none())
            && !shared.queue.has_messages()
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
        if let Some(call) = call {
            shared.calls.place(call, Placed::Waiting);
            shared.queue.push_call(call);
        }
        if self.request.interleave {
            shared.inbox.push(inbound);
            let next = self.schedule(&mut shared);
            drop(shared);
            return self.start(next);
        }
        if call.is_none() && !shared.queue.has_messages() {
            return shared.inbox.push(inbound);
        }
        match current {
            Some(current) => {
                shared.queue.keep(inbound);
                shared.hand_over(&current);
            }
            None if call.is_none() => shared.inbox.push(inbound),
            None => {
                shared.queue.keep(inbound);
                let next = self.advance(&mut shared);
                drop(shared);
                self.start(next);
            }
        }
    }

    fn charge(self: Arc<Self>, bytes: usize) -> Option<Charge> {
        let current = self.shared.lock().current.clone().filter(|run| run.number() == 0);
        match current {
            Some(run) => run.charge(bytes),
            None => self.in_flight.charge(bytes, self.limit_bytes),
        }
    }
}

impl Shared {
    /// Keeps messages that a cell has not been handed, or that it is to be handed again, in front of those that came
    /// since. Calls have the first turns; those that were rejected meanwhile are dropped.
    pub(super) fn keep_for_later(&mut self, mut inbox: Vec<Inbound>) {
        inbox.retain(|inbound| self.calls.is_due(inbound));
        let (calls, messages): (Vec<_>, Vec<_>) =
            inbox.into_iter().partition(|it| matches!(it, Inbound::FunctionCall { .. }));
        self.inbox.splice(..0, messages);
        for inbound in &calls {
            if let Inbound::FunctionCall { call, .. } = inbound {
                self.calls.place(*call, Placed::Waiting);
            }
        }
        self.queue.put_calls_back(calls);
    }
}

impl Session {
    /// The run of a call that the host makes between cells. `None` if there can be none.
    pub(super) fn held(&self, shared: &mut Shared, inbound: Inbound) -> Option<Arc<Run>> {
        let Inbound::FunctionCall { function, args, call } = inbound else { return None };
        let work = Work::Cell(CellWork::Held { function, args, call });
        let interceptor = self.request.interceptor.as_ref();
        let interception = interceptor.map(|interceptor| Interception::new(interceptor.held()));
        let host = interception.is_some().then(|| self.host.bare());
        let options = Options { host, interception, ..Options::default() };
        let run = self.make(work, Kind::Held, options);
        shared.calls.place(call, Placed::Own);
        Some(run)
    }
}
