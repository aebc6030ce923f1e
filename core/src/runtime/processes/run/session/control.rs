//! The requests of a session's caller.
//!
//! In: cells, calls, updates, questions, and the end. Out: runs in the queue, and answers.

use std::sync::{Arc, atomic::Ordering};

use super::{InSession, Kind, Options, Origin, Session, Shared, Work};
use crate::{
    binding::{
        handle::RunControl, host::Host, inbound::Inbound, interception::Interception,
        native::NativeHost,
    },
    data::cell::Name,
    error::Error,
    modules::{
        request::timeout,
        session_request::{CallRequest, CellRequest, SessionRequest, UpdateRequest},
    },
    protocol::messages::session::{Cell, CellWork},
    runtime::{
        processes::run::cell::Question,
        record::{CLOSED, RESET, Reason, TERMINATED},
        registry::{self, Runs},
        session::{Done, Forked, Outside, SessionControl, closed_meanwhile},
    },
    value::Kinds,
};

impl SessionControl for Session {
    fn is_here(&self) -> bool {
        self.workers.is_here()
    }

    fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    fn run(
        self: Arc<Self>,
        request: CellRequest,
        host: Arc<dyn Host>,
    ) -> Result<Arc<dyn RunControl>, Error> {
        let number = self.count_cell();
        let work = CellWork::Source {
            source: request.source,
            filename: request.filename.unwrap_or_else(|| format!("<cell {number}>")),
            language: request.language.unwrap_or(self.request.language),
        };
        let CellRequest { report, timeout_ms, ended, interception, .. } = request;
        Ok(self.add(work, (host, interception), (report, timeout_ms), ended))
    }

    fn call(
        self: Arc<Self>,
        request: CallRequest,
        host: Arc<dyn Host>,
    ) -> Result<Arc<dyn RunControl>, Error> {
        self.count_cell();
        let work = CellWork::Call { name: request.name, args: request.args };
        let CallRequest { report, timeout_ms, ended, interception, .. } = request;
        Ok(self.add(work, (host, interception), (report, timeout_ms), ended))
    }

    fn update(&self, request: UpdateRequest) -> Result<(), Error> {
        let mut shared = self.shared.lock();
        shared.settlements.add(&request.inputs);
        shared.updates.add(request);
        Ok(())
    }

    fn names(self: Arc<Self>, done: Done<Result<Vec<Name>, Error>>) {
        self.queue_question(Work::Names, Question::Names(done));
    }

    fn reset(self: Arc<Self>, done: Done<Result<(), Error>>) {
        self.end_all(&Reason::Reset, RESET);
        done(Ok(()));
    }

    fn fork(self: Arc<Self>, outside: Outside, done: Done<Forked>) {
        let session = Arc::clone(&self);
        let answered = move |origin: Result<Origin, Error>| {
            done(origin.and_then(|origin| session.copy(origin, outside)));
        };
        self.queue_question(Work::Copy, Question::Copy(Box::new(answered)));
    }

    fn close(self: Arc<Self>, done: Done<()>) {
        {
            let mut shared = self.shared.lock();
            self.closed.store(true, Ordering::Release);
            shared.machine.close(done);
        }
        let is_runtimes = self.workers.registry().is_closed();
        let error = if is_runtimes { (TERMINATED, registry::CLOSED) } else { CLOSED };
        self.end_all(&Reason::Closed, error);
    }

    fn abandon(self: Arc<Self>) {
        self.shared.lock().machine.abandon();
        self.free_when_idle();
    }
}

impl Session {
    /// A second session with that origin, and all that this one's host has.
    fn copy(&self, origin: Origin, outside: Outside) -> Forked {
        let copy = {
            let shared = self.shared.lock();
            if self.is_closed() {
                return Err(closed_meanwhile());
            }
            Shared {
                machine: shared.machine.copy(Inbound::copy),
                worker: None,
                held: origin.state,
                lost: None,
                lost_workers: shared.lost_workers,
                updates: shared.updates.of_copy(origin.pending),
                settlements: shared.settlements.copy(),
                cells: shared.cells,
            }
        };
        let Outside { host, interceptor } = outside;
        let request = SessionRequest { interceptor, ..self.request.clone() };
        let copy = Self::with(Arc::clone(&self.workers), request, host, copy);
        copy.host.repeat(&self.host, origin.under_way);
        Ok(copy)
    }

    /// Puts a question at the end of the queue.
    fn queue_question(&self, work: Work, question: Question) {
        let native = Arc::clone(&self.host);
        let number = self.shared.lock().machine.number();
        let part = InSession::question(self.me(), Arc::clone(&native), number, question);
        let kind = part.kind;
        let options = Options { host: native, validated_kinds: Kinds::NONE, report: false };
        let run = self.make(work, part, options);
        self.queue(&run, kind);
    }

    fn count_cell(&self) -> u64 {
        let mut shared = self.shared.lock();
        shared.cells += 1;
        shared.cells
    }

    /// Queues a run of the caller. `ended`: why the caller has ended it.
    fn add(
        &self,
        work: CellWork,
        (host, interception): (Arc<dyn Host>, Option<Interception>),
        (report, timeout_ms): (Option<bool>, Option<f64>),
        ended: Option<String>,
    ) -> Arc<dyn RunControl> {
        let native: Arc<NativeHost> = Arc::new(self.host.cell(host, interception));
        // Called before anything is locked, because it calls the host.
        let validated_kinds = native.validated_kinds();
        let report = report.unwrap_or(self.request.report);
        let (number, timeout) = (self.shared.lock().machine.number(), timeout(timeout_ms));
        let part = InSession::cell(self.me(), Arc::clone(&native), &work, number, timeout);
        let cell = Cell { number: part.number(), work, report, validated_kinds };
        let options = Options { host: native, validated_kinds, report };
        let run = self.make(Work::Cell(Box::new(cell)), part, options);
        match ended {
            Some(reason) => run.end(Reason::of_caller(Some(&reason))),
            None => self.queue(&run, Kind::Cell),
        }
        run
    }
}
