//! Messages of the host to a session, in a cell and between cells.
//!
//! In: answers, calls of functions that the host holds, and releases. Out: messages for the cell that runs, or for the
//! next one; and a cell of its own for a call that is made between cells.

use std::sync::{Arc, atomic::Ordering};

use super::{InSession, Options, Received, Session, Shared, interleave::Passed};
use crate::{
    binding::{
        handle::{Recipient, RunControl},
        inbound::{Inbound, TOO_LARGE},
        interception::Interception,
    },
    protocol::messages::session::{Cell, CellWork},
    runtime::{
        processes::{
            lost::Lost,
            run::{Run, Work},
        },
        record::CLOSED,
        sessions::Message,
    },
    value::Charge,
};

impl Recipient for Session {
    fn deliver(self: Arc<Self>, inbound: Inbound) {
        let mut inbound = inbound;
        let mut shared = self.shared.lock();
        let call = inbound.call();
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
        let current = shared.machine.current();
        let current = current.filter(|run| !self.interleaves() && run.listens()).cloned();
        // A message does not overtake calls that wait.
        if let Some(current) = current.as_ref().filter(|_| call.is_none())
            && !shared.machine.has_messages()
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
        if shared.machine.keep(inbound, current.is_some())
            && let Some(current) = current
            && shared.hand_over(&current)
        {
            drop(shared);
            return self.workers.wake(current);
        }
        self.go_on(shared);
    }

    fn charge(self: Arc<Self>, bytes: usize) -> Option<Charge> {
        let charge = self.in_flight.charge(bytes, self.limit_bytes);
        if charge.is_none() {
            let current = {
                let shared = self.shared.lock();
                shared.machine.current().or(shared.machine.begun().next_back()).cloned()
            };
            if let Some(current) = current.filter(|current| current.running()) {
                self.workers.kill(&current, &Lost::TooLarge);
            }
        }
        charge
    }
}

impl Session {
    /// The run of a call that the host makes between cells. The worker has the message if there is none.
    pub(super) fn held(
        &self,
        shared: &mut Shared,
        call: u32,
        message: Option<Inbound>,
    ) -> Arc<Run> {
        let work = match message {
            Some(Inbound::FunctionCall { function, args, call }) => {
                CellWork::Held { function, args, call }
            }
            _ => CellWork::Left { call },
        };
        let interceptor = self.request.interceptor.as_ref();
        let native = interceptor.map_or_else(
            || Arc::clone(&self.host),
            |it| Arc::new(self.host.cell(self.host.bare(), Some(Interception::new(it.held())))),
        );
        let number = shared.machine.number();
        let part = InSession::held(self.me(), Arc::clone(&native), number, call);
        let (report, validated_kinds) = (self.request.report, self.validated_kinds);
        let cell = Cell { number: part.number(), work, report, validated_kinds };
        let options = Options { host: native, validated_kinds, report };
        let run = self.make(Work::Cell(Box::new(cell)), part, options);
        shared.machine.hold(number, call, Arc::clone(&run));
        run
    }
}
