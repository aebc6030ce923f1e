//! Executors and the loop.
//!
//! In: options, inputs and answers of JavaScript. Out: calls and runs that go on without JavaScript, and their news. Each
//! is a work with a number; an event with that number says that it has news, which JavaScript then takes. `inbox` is the
//! queue of news, `call` is a call, `data` has inputs and results, `options` those of programs, and `isolate` opens the
//! sessions of isolates. `code_loop` is a run of the loop, `questions` its questions to JavaScript, `answers` the answers to
//! them, and `parties` the model and the executor that ask.

#![expect(clippy::needless_pass_by_value, reason = "arguments from JavaScript come by value")]
#![expect(clippy::too_many_arguments, reason = "one call into the addon is cheaper than two")]

mod answers;
mod call;
mod code_loop;
mod data;
mod inbox;
mod isolate;
mod options;
mod parties;
mod questions;

use std::{
    collections::HashMap,
    path::Path,
    sync::Arc,
    task::{Context, Poll, Waker},
};

use isolane::{Error, ErrorKind, Spelling, Value};
use isolane_executors::{
    CodeExecutionInput, CodeExecutor, ConfinedCodeExecutor, ContainerCodeExecutor,
    ExecutorErrorKind, HostRuntime, InvocationContext, IsolateCodeExecutor, LocalCodeExecutor,
};
use napi::{Either, Result};
use napi_derive::napi;

pub(crate) use self::call::Work;
use self::{
    call::start,
    data::{confinement_message, json_options, misuse},
    isolate::NodeIsolateHost,
    options::ProgramOptions,
};
use crate::{
    error::Misuse,
    native::NativeTable,
    runtime::{NativeRuntime, read_options},
    session_options::read_session,
    value::Cursor,
};

/// An executor of the library.
#[napi]
pub struct NativeExecutor(Kind);

enum Kind {
    Local(LocalCodeExecutor),
    Container(Box<ContainerCodeExecutor>),
    Confined(ConfinedCodeExecutor),
    Isolate(IsolateCodeExecutor, Arc<NodeIsolateHost>),
}

impl NativeExecutor {
    pub(super) fn executor(&self) -> Arc<dyn CodeExecutor> {
        match &self.0 {
            Kind::Local(executor) => Arc::new(executor.clone()),
            Kind::Container(executor) => Arc::new((**executor).clone()),
            Kind::Confined(executor) => Arc::new(executor.clone()),
            Kind::Isolate(executor, _) => Arc::new(executor.clone()),
        }
    }

    /// The same, unless an option is not valid.
    fn checked(self) -> Either<Self, Misuse> {
        // A call that is cancelled before it begins checks the options, and does nothing.
        let context = InvocationContext::default();
        context.cancellation.cancel();
        let executor = self.executor();
        let mut call = executor.execute_code(&context, CodeExecutionInput::default());
        match call.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(Err(error)) if error.kind() == ExecutorErrorKind::BadInput => {
                Either::B(misuse(&error))
            }
            _ => Either::A(self),
        }
    }

    fn made(kind: std::result::Result<Kind, Error>) -> Either<Self, Misuse> {
        match kind {
            Ok(kind) => Self(kind).checked(),
            Err(error) => Either::B(error.into()),
        }
    }
}

/// The properties of an executor that the loop asks for.
#[napi(object)]
pub struct NativeTraits {
    pub stateful: bool,
    pub attempts: u32,
    /// `None`: no limit.
    pub timeout_ms: Option<f64>,
    /// Whether it ends its calls itself when that time is over.
    pub keeps_time: bool,
    /// Pairs of an opening and a closing text.
    pub delimiters: Vec<Vec<String>>,
}

/// Makes an executor of subprocesses.
#[napi(catch_unwind)]
#[must_use]
pub fn open_local_executor(options: ProgramOptions) -> Either<NativeExecutor, Misuse> {
    NativeExecutor::made(options.local().map(Kind::Local))
}

/// Makes an executor of containers.
#[napi(catch_unwind)]
#[must_use]
pub fn open_container_executor(options: ProgramOptions) -> Either<NativeExecutor, Misuse> {
    NativeExecutor::made(options.container().map(|made| Kind::Container(Box::new(made))))
}

/// Makes an executor of confined subprocesses. `worker` is the executable of the package.
#[napi(catch_unwind)]
#[must_use]
pub fn open_confined_executor(
    worker: String,
    options: ProgramOptions,
) -> Either<NativeExecutor, Misuse> {
    NativeExecutor::made(options.confined(worker.into()).map(Kind::Confined))
}

/// Makes an executor of isolates. `options` are JSON; the frame is the request for its sessions. `own` are the options of
/// a runtime of its own, as those of `open_runtime`.
///
/// # Errors
/// When the frame is not one of `lib/session-options.ts`.
#[napi(catch_unwind)]
pub fn open_isolate_executor(
    bridge: u32,
    runtime: Option<&NativeRuntime>,
    own: Option<HashMap<String, Either<f64, String>>>,
    worker_folder: String,
    options: String,
    frame: &[u8],
    length: u32,
    blobs: Option<Vec<&[u8]>>,
    native: Option<&NativeTable>,
) -> Result<Either<NativeExecutor, Misuse>> {
    let native = native.map(|table| table.functions.clone()).unwrap_or_default();
    let request = read_session(Cursor::new(frame, length)?, blobs, native)?;
    let made = || {
        request.check()?;
        let options = json_options(&options)?;
        let executor = IsolateCodeExecutor::new().json_options(&options, Spelling::Camel)?;
        let runtime = match (runtime, own) {
            (Some(given), _) => HostRuntime::Given(given.runtime.clone()),
            (None, None) => HostRuntime::Shared,
            (None, Some(own)) => HostRuntime::own(read_options(own, worker_folder)?)?,
        };
        let host = Arc::new(NodeIsolateHost::new(bridge, runtime, request));
        Ok(Kind::Isolate(executor.with_host(host.clone()), host))
    };
    Ok(NativeExecutor::made(made()))
}

/// The properties of an executor that the loop asks for.
#[napi(catch_unwind)]
#[must_use]
pub fn executor_traits(executor: &NativeExecutor) -> NativeTraits {
    let executor = executor.executor();
    NativeTraits {
        stateful: executor.stateful(),
        attempts: executor.error_retry_attempts(),
        timeout_ms: executor.timeout().map(|timeout| timeout.as_secs_f64() * 1e3),
        keeps_time: executor.keeps_time(),
        delimiters: executor
            .code_block_delimiters()
            .into_iter()
            .map(|(opening, closing)| vec![opening, closing])
            .collect(),
    }
}

/// The arguments of the engine for a container of that name, with that working folder if it has one.
///
/// # Errors
/// For an executor of another kind.
#[napi(catch_unwind)]
pub fn build_run_args(
    executor: &NativeExecutor,
    name: String,
    folder: Option<String>,
) -> Result<Vec<String>> {
    let Kind::Container(executor) = &executor.0 else { return Err(wrong_kind()) };
    Ok(match folder {
        None => executor.build_run_args(&name),
        Some(folder) => executor.build_run_args_staged(&name, Path::new(&folder)),
    })
}

/// Makes an executor of containers ready. The news with the number that is returned has the end.
///
/// # Errors
/// For an executor of another kind.
#[napi(catch_unwind)]
pub fn prepare_executor(bridge: u32, executor: &NativeExecutor) -> Result<u32> {
    let Kind::Container(executor) = &executor.0 else { return Err(wrong_kind()) };
    let executor = executor.clone();
    start(bridge, async move { executor.prepare().await.map(|()| Value::undefined()) })
}

/// Closes the sessions of an executor of isolates, as [`prepare_executor`].
///
/// # Errors
/// For an executor of another kind.
#[napi(catch_unwind)]
pub fn close_executor(bridge: u32, executor: &NativeExecutor) -> Result<u32> {
    let Kind::Isolate(executor, _) = &executor.0 else { return Err(wrong_kind()) };
    let executor = executor.clone();
    start(bridge, async move {
        executor.close().await;
        Ok(Value::undefined())
    })
}

/// Asks for the confinement of programs, as [`prepare_executor`].
///
/// # Errors
/// For an executor of another kind.
#[napi(catch_unwind)]
pub fn executor_confinement(bridge: u32, executor: &NativeExecutor) -> Result<u32> {
    let Kind::Confined(executor) = &executor.0 else { return Err(wrong_kind()) };
    let executor = executor.clone();
    start(bridge, async move { executor.confinement().await.map(|had| confinement_message(&had)) })
}

/// The error for a call outside of the thread of its executor.
fn wrong_thread() -> Error {
    Error::new(ErrorKind::Unavailable, "the thread that made the executor has ended")
}

fn wrong_kind() -> napi::Error {
    napi::Error::from_reason("this executor has no such method")
}
