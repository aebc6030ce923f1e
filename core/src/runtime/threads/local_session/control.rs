//! The requests of a session's caller.
//!
//! In: cells, calls, updates, questions, and the end. Out: runs in the queue, and answers.

use std::sync::{Arc, atomic::Ordering};

use super::{Options, Session, Shared};
use crate::{
    binding::{handle::RunControl, host::Host, inbound::Inbound},
    data::cell::Name,
    error::{Error, ErrorKind},
    isolate::session::{SessionIsolate, Work as CellWork},
    modules::session_request::{CallRequest, CellRequest, SessionRequest, UpdateRequest},
    runtime::{
        record::{CLOSED, RESET, Reason, TERMINATED},
        registry::{self, Runs},
        session::{Done, Forked, Outside, SessionControl, closed_meanwhile, unanswered, uncopied},
        sessions::Kind,
        threads::run::{Work, cell::Task},
    },
};

impl SessionControl for Session {
    fn is_here(&self) -> bool {
        self.resources.is_here()
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
        let options = Options { host: Some(host), interception, report, timeout_ms };
        self.add(work, options, ended)
    }

    fn call(
        self: Arc<Self>,
        request: CallRequest,
        host: Arc<dyn Host>,
    ) -> Result<Arc<dyn RunControl>, Error> {
        self.count_cell();
        let work = CellWork::Call { name: request.name, args: request.args };
        let CallRequest { report, timeout_ms, ended, interception, .. } = request;
        let options = Options { host: Some(host), interception, report, timeout_ms };
        self.add(work, options, ended)
    }

    fn update(&self, request: UpdateRequest) -> Result<(), Error> {
        let mut shared = self.shared.lock();
        shared.settlements.add(&request.inputs);
        shared.updates.add(request);
        Ok(())
    }

    fn names(self: Arc<Self>, done: Done<Result<Vec<Name>, Error>>) {
        self.ask(
            Kind::Question,
            Box::new(move |isolate| {
                let names = |isolate: &mut Box<SessionIsolate>| {
                    let unread = "the names of the session cannot be read; reset it";
                    isolate.names().ok_or_else(|| Error::new(ErrorKind::Internal, unread))
                };
                done(isolate.and_then(|isolate| isolate.as_mut().map_or(Ok(Vec::new()), names)));
            }),
        );
    }

    fn reset(self: Arc<Self>, done: Done<Result<(), Error>>) {
        self.end_all(&Reason::Reset, RESET);
        self.ask(
            Kind::Reset,
            Box::new(move |isolate| {
                done(isolate.map(|isolate| {
                    if let Some(isolate) = isolate {
                        isolate.reset();
                    }
                }));
            }),
        );
    }

    fn fork(self: Arc<Self>, outside: Outside, done: Done<Forked>) {
        let session = Arc::clone(&self);
        self.ask(
            Kind::Fork,
            Box::new(move |isolate| {
                done(isolate.and_then(|isolate| session.copy(isolate, outside)));
            }),
        );
    }

    fn close(self: Arc<Self>, done: Done<()>) {
        {
            let mut shared = self.shared.lock();
            self.closed.store(true, Ordering::Release);
            shared.machine.close(done);
        }
        let is_runtimes = self.resources.registry.is_closed();
        let error = if is_runtimes { (TERMINATED, registry::CLOSED) } else { CLOSED };
        self.end_all(&Reason::Closed, error);
    }

    fn abandon(self: Arc<Self>) {
        self.shared.lock().machine.abandon();
        self.free_when_idle();
    }
}

impl Session {
    fn count_cell(&self) -> u64 {
        let mut shared = self.shared.lock();
        shared.cells += 1;
        shared.cells
    }

    /// Queues a run of the caller. `ended`: why the caller has ended it.
    fn add(
        &self,
        work: CellWork,
        options: Options,
        ended: Option<String>,
    ) -> Result<Arc<dyn RunControl>, Error> {
        self.resources.ensure_threads()?;
        let number = self.shared.lock().machine.number();
        let run = self.make(number, Work::Cell(work), Kind::Cell, options);
        match ended {
            Some(reason) => run.end(Reason::of_caller(Some(&reason))),
            None => self.queue(&run, Kind::Cell),
        }
        Ok(run)
    }

    /// Queues a question to the isolate.
    fn ask(&self, kind: Kind, task: Task) {
        if let Err(error) = self.resources.ensure_threads() {
            return task(Err(error));
        }
        let number = self.shared.lock().machine.number();
        let run = self.make(number, Work::Task(task), kind, Options::default());
        self.queue(&run, kind);
    }

    /// A second session with the state of this one, whose isolate that is.
    fn copy(&self, isolate: &mut Option<Box<SessionIsolate>>, outside: Outside) -> Forked {
        // Before the inbox: one that ends meanwhile is in both.
        let under_way = self.host.repeatable();
        let (mut state, stay) = {
            let shared = self.shared.lock();
            if self.is_closed() {
                return Err(closed_meanwhile());
            }
            let state = Shared {
                machine: shared.machine.copy(Inbound::copy),
                isolate: None,
                lost: shared.lost,
                updates: shared.updates.clone(),
                settlements: shared.settlements.copy(),
                cells: shared.cells,
            };
            (state, self.stay.lock().clone())
        };
        let mut place = None;
        if let Some(isolate) = isolate {
            let repeated = under_way.iter().map(|again| again.promise);
            let settled = state.machine.inbox().filter_map(Inbound::settles);
            let answered: Vec<u32> = settled.chain(repeated).collect();
            let waiting = isolate.unanswered(&answered);
            if waiting > 0 {
                return Err(unanswered(waiting));
            }
            let fork = isolate.fork().ok_or_else(uncopied)?;
            state.isolate = Some(fork);
            place = stay.map(|stay| Arc::new(stay.another()));
        }
        let resources = Arc::clone(&self.resources);
        let Outside { host, interceptor } = outside;
        let request = SessionRequest { interceptor, ..self.request.clone() };
        let copy = Self::with(resources, request, host, state, place);
        copy.host.repeat(&self.host, under_way);
        Ok(copy)
    }
}
