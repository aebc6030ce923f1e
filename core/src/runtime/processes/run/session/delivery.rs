//! Messages of the host to a session, in a cell and between cells.
//!
//! In: answers, calls of functions that the host holds, and releases. Out: messages for the cell that runs, or for the
//! next one; and a cell of its own for a call that is made between cells. Calls keep their order: one that comes while
//! others wait for a cell of their own goes into that cell, behind them.

use std::sync::{Arc, atomic::Ordering};

use super::{InSession, Options, Received, Session, Shared, Waiting, interleave::Passed};
use crate::{
    binding::{
        handle::{Recipient, RunControl},
        host::Completion,
        inbound::{Inbound, TOO_LARGE, thrown},
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
        } else if let Some(current) = shared.current.clone() {
            let received = current.hand_in(inbound);
            if let (Received::Yes | Received::Woken, Some(call)) = (&received, call) {
                shared.calls.place(call, Placed::In(Arc::downgrade(&current)));
            }
            match received {
                Received::No(refused) => inbound = refused,
                Received::Yes => return,
                Received::Woken => {
                    drop(shared);
                    return self.workers.wake(current);
                }
                Received::TooLarge => {
                    drop(shared);
                    self.workers.kill(&current, &Lost::TooLarge);
                    return rejected("MemoryLimit", TOO_LARGE);
                }
            }
        }
        if !inbound.count(&self.in_flight, self.limit_bytes) {
            if let Inbound::PromiseSettled { promise, .. } = inbound {
                let completion: Completion = Err(thrown("MemoryLimit", TOO_LARGE));
                shared.inbox.push(Inbound::PromiseSettled { promise, completion });
                return;
            }
            drop(shared);
            return rejected("MemoryLimit", TOO_LARGE);
        }
        let Inbound::FunctionCall { function, args, call } = inbound else {
            return shared.inbox.push(inbound);
        };
        let work = CellWork::Held { function, args, call };
        let run = self.held(&mut shared, call, work, Kind::Held);
        shared.queue.push_back(run);
        let next = self.schedule(&mut shared);
        drop(shared);
        self.start(next);
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
    /// Puts calls that came too late for their cell in front of all others, in their order. Those that the worker has are
    /// one cell: they were made in one. If the worker is lost, they are too.
    pub(super) fn put_back(&self, shared: &mut Shared, Waiting { late, followers }: Waiting) {
        for inbound in followers.into_iter().rev() {
            if let Inbound::FunctionCall { function, args, call } = inbound {
                let work = CellWork::Held { function, args, call };
                let held = self.held(shared, call, work, Kind::Held);
                shared.queue.push_front(held);
            }
        }
        if shared.worker.is_none() {
            return;
        }
        // Some were refused, or rejected with all others.
        let late: Vec<u32> =
            late.into_iter().filter(|call| shared.calls.is_pending(*call)).collect();
        let Some(&last) = late.last() else { return };
        let work = CellWork::Left { calls: late.clone() };
        let left = self.held(shared, last, work, Kind::Left);
        for &call in late.iter().rev().skip(1) {
            shared.calls.place(call, Placed::In(Arc::downgrade(&left)));
        }
        shared.queue.push_front(left);
    }

    /// The run of a call that the host makes between cells.
    pub(super) fn held(
        &self,
        shared: &mut Shared,
        call: u32,
        work: CellWork,
        kind: Kind,
    ) -> Arc<Run> {
        let interceptor = self.request.interceptor.as_ref();
        let native = interceptor.map_or_else(
            || Arc::clone(&self.host),
            |it| Arc::new(self.host.cell(self.host.bare(), Some(Interception::new(it.held())))),
        );
        let number = self.next_number(kind);
        let part = InSession::new(self.me(), Arc::clone(&native), kind, number, None);
        let (report, validated_kinds) = (self.request.report, self.validated_kinds);
        let cell = Cell { number, work, report, validated_kinds };
        let options = Options { host: native, validated_kinds, report };
        let run = self.make(Work::Cell(Box::new(cell)), part, options);
        shared.calls.place(call, Placed::Own(Arc::downgrade(&run)));
        run
    }
}
