//! Messages of the host to a session, in a cell and between cells.
//!
//! In: answers, calls of functions that the host holds, and releases. Out: messages for the cell that runs, or for the
//! next one; and a cell of its own for a call that is made between cells.

use std::sync::{Arc, atomic::Ordering};

use super::{CallsTurn, InSession, Options, Received, Session, Shared, interleave::Passed};
use crate::{
    binding::{
        handle::{Recipient, RunControl},
        inbound::{Inbound, TOO_LARGE},
        interception::Interception,
    },
    protocol::messages::session::{Cell, CellWork},
    runtime::{
        calls::Placed,
        processes::{
            lost::Lost,
            run::{Run, Work, cell::Kind},
        },
        record::CLOSED,
        registry::Runs,
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
        let rejected = |name: &str, message: &str| {
            self.reject(call.into_iter().collect(), (name, message));
        };
        if self.closed.load(Ordering::Acquire) {
            drop(shared);
            return rejected(CLOSED.0, CLOSED.1);
        }
        shared.settlements.note(&inbound);
        if self.interleaves() {
            match self.pass_on(&mut shared, inbound) {
                Passed::No(refused) => inbound = refused,
                Passed::On(woken) => {
                    drop(shared);
                    if let Some(run) = woken {
                        self.workers.wake(run);
                    }
                    return;
                }
                Passed::TooLarge(run) => {
                    drop(shared);
                    if let Some(run) = run {
                        self.workers.kill(&run, &Lost::TooLarge);
                    }
                    return rejected("MemoryLimit", TOO_LARGE);
                }
            }
        }
        let current = shared.current.clone().filter(|run| !self.interleaves() && run.listens());
        // A message does not overtake calls that wait.
        if let Some(current) = current.as_ref().filter(|_| call.is_none())
            && !shared.queue.has_messages()
        {
            match current.hand_in(inbound) {
                Received::No(refused) => inbound = refused,
                Received::Yes => return,
                Received::Woken => {
                    drop(shared);
                    return self.workers.wake(Arc::clone(current));
                }
                Received::TooLarge => {
                    drop(shared);
                    return self.workers.kill(current, &Lost::TooLarge);
                }
            }
        }
        if !inbound.count(&self.in_flight, self.limit_bytes) {
            if call.is_some() {
                drop(shared);
                return rejected("MemoryLimit", TOO_LARGE);
            }
            inbound.refuse();
        }
        if let Some(call) = call {
            shared.calls.place(call, Placed::Waiting);
            shared.queue.push_call(call);
        }
        match current {
            Some(current) if call.is_some() || shared.queue.has_messages() => {
                shared.queue.keep(inbound);
                let wakes = shared.hand_over(&current);
                drop(shared);
                if wakes {
                    self.workers.wake(current);
                }
            }
            None if call.is_some() => {
                shared.queue.keep(inbound);
                let next = self.schedule(&mut shared);
                drop(shared);
                self.start(next);
            }
            _ => shared.inbox.push(inbound),
        }
    }

    fn charge(self: Arc<Self>, bytes: usize) -> Option<Charge> {
        let charge = self.in_flight.charge(bytes, self.limit_bytes);
        if charge.is_none() {
            let current = {
                let shared = self.shared.lock();
                shared.current.as_ref().or(shared.flights.last()).cloned()
            };
            if let Some(current) = current.filter(|current| current.running()) {
                self.workers.kill(&current, &Lost::TooLarge);
            }
        }
        charge
    }
}

impl Session {
    /// Makes a run of a call whose turn it is.
    pub(super) fn turn_of(&self, shared: &mut Shared, call: u32) -> CallsTurn {
        if self.workers.registry().is_closed() {
            // The end of the session rejects it, which comes right away.
            return CallsTurn::Untold;
        }
        let work = match shared.calls.place_of(call) {
            Some(Placed::Sent) => return CallsTurn::Untold,
            Some(Placed::Left) => CellWork::Left { call },
            Some(Placed::Waiting) => match shared.queue.take_call(call) {
                Some(Inbound::FunctionCall { function, args, call }) => {
                    CellWork::Held { function, args, call }
                }
                _ => return CallsTurn::Never,
            },
            Some(Placed::In(_) | Placed::Own) | None => return CallsTurn::Never,
        };
        CallsTurn::Comes(self.held(shared, call, work))
    }

    /// The run of a call that the host makes between cells.
    fn held(&self, shared: &mut Shared, call: u32, work: CellWork) -> Arc<Run> {
        let interceptor = self.request.interceptor.as_ref();
        let native = interceptor.map_or_else(
            || Arc::clone(&self.host),
            |it| Arc::new(self.host.cell(self.host.bare(), Some(Interception::new(it.held())))),
        );
        let number = self.next_number(Kind::Held);
        let part = InSession::held(self.me(), Arc::clone(&native), number, call);
        let (report, validated_kinds) = (self.request.report, self.validated_kinds);
        let cell = Cell { number, work, report, validated_kinds };
        let options = Options { host: native, validated_kinds, report };
        let run = self.make(Work::Cell(Box::new(cell)), part, options);
        shared.calls.place(call, Placed::Own);
        run
    }
}
