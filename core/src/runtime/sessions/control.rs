//! The requests of a session's caller.
//!
//! In: cells, calls, updates, questions, and the end. Out: runs in the queue, and answers.

use std::sync::{Arc, atomic::Ordering};

use super::{
    Kind,
    place::Place,
    question::Question,
    run::SessionRun,
    session::{Job, Options, Session},
};
use crate::{
    binding::{handle::RunControl, host::Host, interception::Interception},
    data::cell::Name,
    error::Error,
    isolate::session::Work,
    modules::{
        request::timeout,
        session_request::{CallRequest, CellRequest, UpdateRequest},
    },
    runtime::{
        record::{CLOSED, RESET, Reason, TERMINATED},
        registry::{self, Runs},
        session::{Done, Forked, Outside, SessionControl},
    },
};

impl<P: Place> SessionControl for Session<P> {
    fn is_here(&self) -> bool {
        self.place.registry().process().is_current()
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
        let work = Work::Source {
            source: request.source,
            filename: request.filename.unwrap_or_else(|| format!("<cell {number}>")),
            language: request.language.unwrap_or(self.request.language),
        };
        let CellRequest { report, timeout_ms, ended, interception, .. } = request;
        self.add(work, (host, interception), (report, timeout_ms), ended)
    }

    fn call(
        self: Arc<Self>,
        request: CallRequest,
        host: Arc<dyn Host>,
    ) -> Result<Arc<dyn RunControl>, Error> {
        self.count_cell();
        let work = Work::Call { name: request.name, args: request.args };
        let CallRequest { report, timeout_ms, ended, interception, .. } = request;
        self.add(work, (host, interception), (report, timeout_ms), ended)
    }

    fn update(&self, request: UpdateRequest) -> Result<(), Error> {
        let mut shared = self.shared.lock();
        shared.settlements.add(&request.inputs);
        shared.updates.add(request);
        Ok(())
    }

    fn names(self: Arc<Self>, done: Done<Result<Vec<Name>, Error>>) {
        self.ask(Question::Names(done));
    }

    fn reset(self: Arc<Self>, done: Done<Result<(), Error>>) {
        self.end_all(&Reason::Reset, RESET);
        P::reset(&self, done);
    }

    fn fork(self: Arc<Self>, outside: Outside, done: Done<Forked>) {
        self.ask(Question::Fork(outside, done));
    }

    fn close(self: Arc<Self>, done: Done<()>) {
        {
            let mut shared = self.shared.lock();
            self.closed.store(true, Ordering::Release);
            shared.machine.close(done);
        }
        let is_runtimes = self.place.registry().is_closed();
        let error = if is_runtimes { (TERMINATED, registry::CLOSED) } else { CLOSED };
        self.end_all(&Reason::Closed, error);
    }

    fn abandon(self: Arc<Self>) {
        self.shared.lock().machine.abandon();
        self.free_when_idle();
    }
}

impl<P: Place> Session<P> {
    fn count_cell(&self) -> u64 {
        let mut shared = self.shared.lock();
        shared.cells += 1;
        shared.cells
    }

    /// Queues a run of the caller. `ended`: why the caller has ended it.
    fn add(
        &self,
        work: Work,
        (host, interception): (Arc<dyn Host>, Option<Interception>),
        (report, timeout_ms): (Option<bool>, Option<f64>),
        ended: Option<String>,
    ) -> Result<Arc<dyn RunControl>, Error> {
        self.place.ensure_threads()?;
        let host = Arc::new(self.host.cell(host, interception));
        let options = Options {
            // Called before anything is locked, because it calls the host.
            validated_kinds: host.validated_kinds(),
            host,
            report: report.unwrap_or(self.request.report),
            timeout: timeout(timeout_ms),
        };
        let number = self.shared.lock().machine.number();
        let run = self.make(number, Job::Cell(work.into()), options);
        match ended {
            Some(reason) => run.end(Reason::of_caller(Some(&reason))),
            None => self.queue(&run, Kind::Cell),
        }
        Ok(run)
    }

    /// Queues a question to the isolate.
    pub(crate) fn ask(&self, question: Question) {
        if let Err(error) = self.place.ensure_threads() {
            return question.refuse(error);
        }
        let kind = question.kind();
        let number = self.shared.lock().machine.number();
        let run = self.make(number, Job::Question(question), self.outside());
        self.queue(&run, kind);
    }
}
