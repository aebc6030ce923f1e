//! The one way from a language's face into a system: environments, notebooks, executors and those that follow.
//!
//! A face opens a system with options, calls its methods and drops it. A call is a run whose code is Rust: it starts with
//! one message of values, functions of the host among them, can be terminated, and settles with one value. So the
//! bindings need no code of their own for a system, and a face checks no option and words no message.
//!
//! In: a [`System`], which the system's crate implements. Out: [`begin`], [`answer()`] and [`ask`], which the bindings call. [`Given`]
//! is a value that a face handed over. A [`SessionHost`] opens sessions with the values and functions of a caller. A system
//! may also amend runs and sessions that its caller starts: [`System::amend_run`].

mod answer;
mod given;
mod sessions;

use std::{
    fmt, future,
    future::Future,
    path::PathBuf,
    pin::Pin,
    sync::Arc,
    task::{self, Poll, Waker},
};

use isolane::{
    Caller, Completion, Error, ErrorKind, Host, Request, RunHandle, Runtime, SessionRequest,
    Spelling, Value, start_call,
};

pub use self::{
    answer::answer,
    given::Given,
    sessions::{Amend, CellFuture, CloseFuture, HostCell, HostSession, SessionHost},
};
pub use isolane::Callback;

/// A system that a face has opened. To drop it closes it.
pub trait System: Send + Sync + 'static {
    /// Begins a call. It must return at once; the future runs on this library's thread for futures and must not block.
    ///
    /// # Errors
    /// Misuse, which the face throws before it returns.
    fn call(&self, method: &str, args: Vec<Given>, caller: &Caller) -> Result<Called, Error>;

    /// Answers at once, on the caller's thread. Functions among the arguments cannot be called.
    ///
    /// # Errors
    /// Misuse, which the face throws.
    fn ask(&self, method: &str, args: Vec<Given>) -> Result<Value, Error>;

    /// Whether it gets texts with a lone surrogate as [`Given::Torn`].
    fn tells_torn(&self) -> bool {
        false
    }

    /// As [`System::call`], with the arguments as they came: one message, an array. For a system that has a form of its
    /// own for values.
    ///
    /// # Errors
    /// As [`System::call`].
    fn call_with(&self, method: &str, args: Value, caller: &Caller) -> Result<Called, Error> {
        self.call(method, arguments(&args, Some(caller), self.tells_torn())?, caller)
    }

    /// As [`System::ask`], with the arguments as they came.
    ///
    /// # Errors
    /// As [`System::ask`].
    fn ask_with(&self, method: &str, args: Value) -> Result<Value, Error> {
        self.ask(method, arguments(&args, None, self.tells_torn())?)
    }

    /// Amends the request of a run of that kind, which a face has made as any other, and gives the runtime to start it on.
    /// [`RunInterceptor::extra`](isolane::RunInterceptor::extra) is the system's part of its result.
    ///
    /// # Errors
    /// Misuse, which the face throws before anything has started.
    fn amend_run(&self, kind: &str, request: Request) -> Result<(Runtime, Request), Error> {
        drop(request);
        Err(no_method(kind))
    }

    /// The same for a session.
    ///
    /// # Errors
    /// Misuse, which the face throws.
    fn amend_session(&self, request: SessionRequest) -> Result<(Runtime, SessionRequest), Error> {
        drop(request);
        Err(no_method("session"))
    }
}

/// Everything besides options that a system is opened with.
#[derive(Clone, Debug)]
pub struct Context {
    /// How the caller's language spells options.
    pub spelling: Spelling,
    /// The runtime that the caller gave.
    pub runtime: Option<Runtime>,
    /// The opener of sessions with the values and functions that the caller gave for them.
    pub sessions: Option<Arc<dyn SessionHost>>,
    /// The folder of the package, which has the executable `isolane-worker`.
    pub worker_folder: PathBuf,
    /// The caller; functions among the options work until the system has been dropped.
    pub caller: Caller,
}

/// A call that has begun.
pub struct Called {
    future: Pin<Box<dyn Future<Output = Completion> + Send>>,
    is_background: bool,
}

impl Called {
    /// A call that settles with the future's output. The caller's event loop waits for it.
    pub fn new(future: impl Future<Output = Completion> + Send + 'static) -> Self {
        Self { future: Box::pin(future), is_background: false }
    }

    /// The same for a call whose first step is done here, on the caller's thread: it opens a session of the caller's, or
    /// queues a cell.
    pub fn begun(future: impl Future<Output = Completion> + Send + 'static) -> Self {
        let mut future: Pin<Box<dyn Future<Output = Completion> + Send>> = Box::pin(future);
        match future.as_mut().poll(&mut task::Context::from_waker(Waker::noop())) {
            Poll::Ready(ended) => Self::new(future::ready(ended)),
            Poll::Pending => Self { future, is_background: false },
        }
    }

    /// The same for a call that lasts as long as the system, such as a tool that is registered: no event loop waits.
    pub fn background(future: impl Future<Output = Completion> + Send + 'static) -> Self {
        Self { is_background: true, ..Self::new(future) }
    }
}

impl fmt::Debug for Called {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Called")
            .field("is_background", &self.is_background)
            .finish_non_exhaustive()
    }
}

/// A call of a system, for its binding.
#[derive(Debug)]
pub struct Begun {
    /// The handle on the call, as on a run: see [`start_call`].
    pub handle: RunHandle,
    /// Whether no event loop waits for it.
    pub is_background: bool,
}

/// Opens a system: calls `open`, and keeps functions among its options callable until `closed` is ready.
///
/// # Errors
/// Those of `open`.
pub fn open<T>(
    host: Arc<dyn Host>,
    open: impl FnOnce(Caller) -> Result<T, Error>,
    closed: impl Future<Output = ()> + Send + 'static,
) -> Result<(T, RunHandle), Error> {
    let mut opened = None;
    let handle = start_call(
        host,
        |caller| {
            opened = Some(open(caller.clone())?);
            Ok(async move {
                closed.await;
                Ok(Value::undefined())
            })
        },
        no_thread,
    )?;
    let opened = opened.ok_or_else(|| no_thread("the system did not open"))?;
    Ok((opened, handle))
}

/// Reads the options of a system. Texts with a lone surrogate are [`Given::Torn`] if `tells_torn`.
///
/// # Errors
/// Options that nest too deeply, or are too large.
pub fn read_options(options: &Value, caller: &Caller, tells_torn: bool) -> Result<Given, Error> {
    placed("options", Given::read_as(options, Some(caller), tells_torn))
}

/// Begins a call of a method; `args` is an array, one message.
///
/// # Errors
/// Misuse, as [`System::call`] words it.
pub fn begin(
    system: &dyn System,
    host: Arc<dyn Host>,
    method: &str,
    args: Value,
) -> Result<Begun, Error> {
    let mut is_background = false;
    let handle = start_call(
        host,
        |caller| {
            let called = system.call_with(method, args, caller)?;
            is_background = called.is_background;
            Ok(called.future)
        },
        no_thread,
    )?;
    Ok(Begun { handle, is_background })
}

/// Has a method answer at once; `args` is an array, one message.
///
/// # Errors
/// Misuse, as [`System::ask`] words it.
pub fn ask(system: &dyn System, method: &str, args: Value) -> Result<Value, Error> {
    system.ask_with(method, args)
}

fn arguments(args: &Value, caller: Option<&Caller>, tells_torn: bool) -> Result<Vec<Given>, Error> {
    placed("arguments", Given::read_as(args, caller, tells_torn)).map(list)
}

/// The value that was read; an error names the place of one that cannot be.
fn placed(place: &str, read: Result<Given, Error>) -> Result<Given, Error> {
    read.map_err(|error| Error::new(error.kind(), format!("{place}: {}", error.message())))
}

/// The error for a method that a system does not have. A face calls no such method.
#[must_use]
pub fn no_method(method: &str) -> Error {
    Error::new(ErrorKind::Type, format!("there is no method '{method}'"))
}

fn list(given: Given) -> Vec<Given> {
    match given {
        Given::List(items) => items,
        other => vec![other],
    }
}

fn no_thread(message: &'static str) -> Error {
    Error::new(ErrorKind::Internal, message)
}
