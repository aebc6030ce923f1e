//! A binding's handle on a session: its cells, its updates, its copies and its end.
//!
//! In: requests that a binding made of its caller's options. Out: handles on cells, and answers that arrive later on a
//! thread of the runtime. An executor has the session itself.

use std::{
    fmt,
    sync::{Arc, Weak},
};

use super::{Runtime, record::CLOSED};
use crate::{
    binding::{
        handle::{Recipient, RunControl, RunHandle},
        host::{Completion, Host},
        inbound::Inbound,
        interception::Interception,
    },
    data::cell::Name,
    error::{Error, ErrorKind},
    modules::{
        session_interceptor::SessionInterceptor,
        session_request::{CallRequest, CellRequest, UpdateRequest},
    },
    value::Value,
};

/// Receives an answer, on any thread.
pub(crate) type Done<T> = Box<dyn FnOnce(T) + Send>;

/// The answer to [`SessionHandle::fork`].
pub(crate) type Forked = Result<Arc<dyn SessionControl>, Error>;

/// The parts that a copy of a session has of its own.
pub(crate) struct Outside {
    /// For events outside of cells.
    pub(crate) host: Arc<dyn Host>,
    pub(crate) interceptor: Option<Arc<dyn SessionInterceptor>>,
}

/// Control over a session, wherever its isolate is. Requests have been checked.
///
/// In a process that was forked from the session's own, only `is_here` and `is_closed` may be called: they wait for no
/// lock.
pub(crate) trait SessionControl: Recipient + fmt::Debug {
    /// Whether it belongs to this process.
    fn is_here(&self) -> bool;

    /// Whether it was closed.
    fn is_closed(&self) -> bool;

    /// Queues a cell.
    fn run(
        self: Arc<Self>,
        request: CellRequest,
        host: Arc<dyn Host>,
    ) -> Result<Arc<dyn RunControl>, Error>;

    /// Queues a call.
    fn call(
        self: Arc<Self>,
        request: CallRequest,
        host: Arc<dyn Host>,
    ) -> Result<Arc<dyn RunControl>, Error>;

    /// Hands more over from the next cell on.
    fn update(&self, request: UpdateRequest) -> Result<(), Error>;

    /// Queues the question for the names.
    fn names(self: Arc<Self>, done: Done<Result<Vec<Name>, Error>>);

    /// Ends all cells and forgets all state.
    fn reset(self: Arc<Self>, done: Done<Result<(), Error>>);

    /// Queues the making of a copy, whose events outside of cells go to that host.
    fn fork(self: Arc<Self>, outside: Outside, done: Done<Forked>);

    /// Ends all cells, and frees everything.
    fn close(self: Arc<Self>, done: Done<()>);

    /// Nobody has a handle any more: frees everything as soon as the cells are done.
    fn abandon(self: Arc<Self>);
}

/// A binding's handle on a session.
///
/// Cheap to clone. When the last clone is dropped, the session is freed as soon as its cells are done; so a function of
/// the sandbox that the host holds should hold a clone, and the session's own [`Host`] must not. Every method returns
/// at once, and may be called from any thread. In a process that was forked from the session's own, methods refuse or do
/// nothing.
///
/// The numbers of functions, promises and calls are numbers of the session: any of its hosts may receive those that
/// another one has given out, and a number is not used again. A promise of the sandbox that the host received in a cell
/// that was rolled back never settles; nor does any after a reset, and after the close.
#[derive(Clone, Debug)]
pub struct SessionHandle {
    owner: Arc<Owner>,
}

/// A handle that keeps nothing alive: for the host of the session, and for what the session holds.
#[derive(Clone, Debug)]
pub struct WeakSessionHandle {
    owner: Weak<Owner>,
    /// Longer there than its handles while a cell is in flight.
    session: Weak<dyn SessionControl>,
}

impl WeakSessionHandle {
    /// The handle, if there is another one still.
    #[must_use]
    pub fn upgrade(&self) -> Option<SessionHandle> {
        self.owner.upgrade().map(|owner| SessionHandle { owner })
    }

    /// As [`SessionHandle::settle_promise`]; also for a session without handles whose last cell is in flight.
    pub fn settle_promise(&self, promise: u32, completion: Completion) {
        self.deliver(Inbound::PromiseSettled { promise, completion });
    }

    /// As [`SessionHandle::call_function`], with the same addition.
    pub fn call_function(&self, function: u32, args: Value, call: u32) {
        self.deliver(Inbound::FunctionCall { function, args, call });
    }

    /// As [`SessionHandle::release_function`], with the same addition.
    pub fn release_function(&self, function: u32, times: u32) {
        self.deliver(Inbound::FunctionReleased { function, times });
    }

    fn deliver(&self, inbound: Inbound) {
        if let Some(session) = self.session.upgrade().filter(|session| session.is_here()) {
            session.deliver(inbound);
        }
    }
}

/// All handles on one session.
#[derive(Debug)]
struct Owner {
    runtime: Runtime,
    session: Arc<dyn SessionControl>,
    interceptor: Option<Arc<dyn SessionInterceptor>>,
}

impl Drop for Owner {
    fn drop(&mut self) {
        if self.session.is_here() {
            Arc::clone(&self.session).abandon();
        }
    }
}

impl SessionHandle {
    /// A handle on a session, which may be intercepted.
    pub(crate) fn new(
        runtime: Runtime,
        session: Arc<dyn SessionControl>,
        interceptor: Option<Arc<dyn SessionInterceptor>>,
    ) -> Self {
        let handle = Self { owner: Arc::new(Owner { runtime, session, interceptor }) };
        if let Some(interceptor) = &handle.owner.interceptor {
            let session = Arc::downgrade(&handle.owner.session);
            interceptor.opened(Box::new(move || {
                if let Some(session) = session.upgrade().filter(|session| session.is_here()) {
                    session.close(Box::new(|()| {}));
                }
            }));
        }
        handle
    }

    /// A handle that does not keep the session open.
    #[must_use]
    pub fn downgrade(&self) -> WeakSessionHandle {
        let session = Arc::downgrade(&self.owner.session);
        WeakSessionHandle { owner: Arc::downgrade(&self.owner), session }
    }

    /// Whether the session belongs to this process, and not to one that this was forked from.
    #[must_use]
    pub fn is_here(&self) -> bool {
        self.owner.session.is_here()
    }

    /// Whether the session was closed.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.owner.session.is_closed()
    }

    /// Queues a cell. Its events go to that host, also those of code that earlier cells have left and that runs during
    /// this one. Returns at once: everything that happens later is in the result, with
    /// [`ExecutionResult::cell`](crate::ExecutionResult::cell). The handle forwards to the session when the cell has
    /// settled, as far as the session can use that.
    ///
    /// # Errors
    /// Misuse of an option; a session that is closed; a runtime whose queue is full.
    pub fn run(&self, mut request: CellRequest, host: Arc<dyn Host>) -> Result<RunHandle, Error> {
        request.check()?;
        let session = self.open()?;
        self.owner.runtime.admit()?;
        if let Some(interceptor) = &self.owner.interceptor {
            request.interception = Some(Interception::new(interceptor.cell(&mut request)?));
        }
        let interception = request.interception.clone();
        session.run(request, host).map(|run| RunHandle::of(run, interception))
    }

    /// Queues a call of something that a cell declared, which is a cell of its own.
    ///
    /// # Errors
    /// As [`SessionHandle::run`].
    pub fn call(&self, mut request: CallRequest, host: Arc<dyn Host>) -> Result<RunHandle, Error> {
        request.check()?;
        let session = self.open()?;
        self.owner.runtime.admit()?;
        if let Some(interceptor) = &self.owner.interceptor {
            request.interception = Some(Interception::new(interceptor.call(&mut request)?));
        }
        let interception = request.interception.clone();
        session.call(request, host).map(|run| RunHandle::of(run, interception))
    }

    /// Hands more over, or takes something away, from the next cell on that starts.
    ///
    /// # Errors
    /// Misuse of an option; a session that is closed.
    pub fn update(&self, request: UpdateRequest) -> Result<(), Error> {
        request.check()?;
        let session = self.open()?;
        if let Some(interceptor) = &self.owner.interceptor {
            interceptor.update(&request)?;
        }
        session.update(request)
    }

    /// Asks for the names that cells have declared, as soon as the cells before are done. The answer is an error if the
    /// session is closed or reset first.
    pub fn names(&self, done: impl FnOnce(Result<Vec<Name>, Error>) + Send + 'static) {
        match self.open() {
            Ok(session) => {
                let interceptor = self.owner.interceptor.clone();
                session.names(Box::new(move |mut names| {
                    if let (Some(interceptor), Ok(names)) = (interceptor, &mut names) {
                        interceptor.names(names);
                    }
                    done(names);
                }));
            }
            Err(error) => done(Err(error)),
        }
    }

    /// Ends what runs and what waits in the queue, as `terminated` with the name `SessionReset`, and forgets all state.
    /// Capabilities and updates stay.
    pub fn reset(&self, done: impl FnOnce(Result<(), Error>) + Send + 'static) {
        match self.open() {
            Ok(session) => session.reset(Box::new(done)),
            Err(error) => done(Err(error)),
        }
    }

    /// Makes a second session with the state that there is when the cells before are done. `host` is its own host for
    /// events outside of cells. Functions and promises have the same numbers in it: the binding copies its tables when
    /// `done` is called. The answer is an error if calls to the host are unanswered then.
    pub fn fork(
        &self,
        host: Arc<dyn Host>,
        done: impl FnOnce(Result<SessionHandle, Error>) + Send + 'static,
    ) {
        match self.open() {
            Ok(session) => {
                let runtime = self.owner.runtime.clone();
                let interceptor = self.owner.interceptor.as_ref();
                let interceptor = interceptor.map(|it| it.fork().unwrap_or_else(|| Arc::clone(it)));
                let outside = Outside { host, interceptor: interceptor.clone() };
                let handle = |session| Self::new(runtime, session, interceptor);
                session.fork(outside, Box::new(|forked| done(forked.map(handle))));
            }
            Err(error) => done(Err(error)),
        }
    }

    /// Ends what runs and what waits in the queue, as `terminated` with the name `SessionClosed`, and frees everything;
    /// then calls `done`. May be called again.
    pub fn close(&self, done: impl FnOnce() + Send + 'static) {
        if self.is_here() {
            Arc::clone(&self.owner.session).close(Box::new(|()| done()));
        } else {
            done();
        }
    }

    /// Settles a promise of the host that crossed as `HOST_PROMISE`, or for [`Host::start`], in any cell. Between cells
    /// the outcome is kept for the next one.
    pub fn settle_promise(&self, promise: u32, completion: Completion) {
        self.deliver(Inbound::PromiseSettled { promise, completion });
    }

    /// Calls a function of the sandbox that crossed as `SANDBOX_FUNCTION` in any cell. During a cell it is a part of
    /// that cell. Between cells it is a cell of its own, in the queue, with the session's host. The outcome is reported
    /// through [`Host::function_settled`], to any of the hosts, exactly once: also if the cell is rolled back, and if
    /// the session is reset or closed.
    pub fn call_function(&self, function: u32, args: Value, call: u32) {
        self.deliver(Inbound::FunctionCall { function, args, call });
    }

    /// Releases a function of the sandbox, which the host received `times` times.
    pub fn release_function(&self, function: u32, times: u32) {
        self.deliver(Inbound::FunctionReleased { function, times });
    }

    fn deliver(&self, inbound: Inbound) {
        if self.is_here() {
            Arc::clone(&self.owner.session).deliver(inbound);
        }
    }

    /// The session, if it takes requests.
    fn open(&self) -> Result<Arc<dyn SessionControl>, Error> {
        let session = &self.owner.session;
        if !session.is_here() {
            let why = "the session was opened before this process was forked, which sessions do not survive";
            return Err(Error::new(ErrorKind::Unavailable, why));
        }
        if session.is_closed() {
            return Err(closed());
        }
        Ok(Arc::clone(session))
    }
}

/// The error of requests to a session that was closed.
pub(crate) fn closed() -> Error {
    Error::new(ErrorKind::Unavailable, "the session is closed")
}

/// The error of a copy of a session that was closed meanwhile.
pub(crate) fn closed_meanwhile() -> Error {
    Error::new(ErrorKind::SessionClosed, CLOSED.1)
}

/// The error of a copy while so many calls to the host have no answer.
pub(crate) fn unanswered(count: usize) -> Error {
    let (calls, are) = if count == 1 { ("call", "is") } else { ("calls", "are") };
    let message = format!(
        "{count} {calls} to the host {are} unanswered: a session can be forked when all calls are answered"
    );
    Error::new(ErrorKind::Unavailable, message)
}

/// The error of a copy that cannot be made.
pub(crate) fn uncopied() -> Error {
    Error::new(ErrorKind::Unavailable, "the state of this session cannot be copied")
}
