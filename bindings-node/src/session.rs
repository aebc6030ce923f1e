//! Sessions, by their numbers.
//!
//! In: requests of JavaScript. Out: numbers of sessions and of cells, which are runs with a session; answers that arrive
//! later, by the numbers of their requests.

use std::sync::Arc;

use isolane::{
    Error, ExecutionResult, Host, NativeFunctions, RunHandle, Runtime, SessionHandle,
    SessionRequest,
};
use napi::{Either, Env, Result};
use napi_derive::napi;
use tokio::sync::oneshot;

use crate::{
    answers::{Answer, Answers},
    bridge::{Bridge, LiveRun, with_bridge},
    error::Misuse,
    host::{NodeHost, NodeLimits},
    native::NativeTable,
    runtime::NativeRuntime,
    session_options::{read_call, read_cell, read_session, read_update},
    value::Cursor,
};

/// A session that JavaScript holds.
#[derive(Clone)]
pub(crate) struct LiveSession {
    pub(crate) number: u32,
    pub(crate) handle: SessionHandle,
    /// Its functions that are answered in Rust.
    pub(crate) native: NativeFunctions,
}

/// Opens a session, in the default runtime when none is given, and returns its number.
///
/// # Errors
/// When the frame is not one of `lib/session/options.ts`.
#[napi(catch_unwind)]
pub fn open_session(
    bridge: u32,
    runtime: Option<&NativeRuntime>,
    frame: &[u8],
    length: u32,
    blobs: Option<Vec<&[u8]>>,
    native: Option<&NativeTable>,
) -> Result<Either<u32, Misuse>> {
    let native = native.map(|table| table.functions.clone()).unwrap_or_default();
    let request = read_session(Cursor::new(frame, length)?, blobs, native.clone())?;
    with_bridge(bridge, |bridge| match runtime {
        Some(runtime) => bridge.open(&runtime.runtime, request, native),
        None => bridge.open(&Runtime::shared(), request, native),
    })
}

/// Queues a cell of a session, and returns its number as a run.
///
/// # Errors
/// When the frame is not one of `lib/session/options.ts`.
#[napi(catch_unwind)]
pub fn run_cell(
    env: Env,
    bridge: u32,
    session: u32,
    frame: &[u8],
    length: u32,
    _blobs: Option<Vec<&[u8]>>,
) -> Result<Either<u32, Misuse>> {
    let request = read_cell(Cursor::new(frame, length)?)?;
    with_bridge(bridge, |bridge| {
        bridge.start_cell(env, session, |handle, host| handle.run(request, host))
    })
}

/// Queues a call of something that a cell declared, as [`run_cell`].
///
/// # Errors
/// When the frame is not one of `lib/session/options.ts`.
#[napi(catch_unwind)]
pub fn call_cell(
    env: Env,
    bridge: u32,
    session: u32,
    frame: &[u8],
    length: u32,
    blobs: Option<Vec<&[u8]>>,
) -> Result<Either<u32, Misuse>> {
    let request = read_call(Cursor::new(frame, length)?, blobs)?;
    with_bridge(bridge, |bridge| {
        bridge.start_cell(env, session, |handle, host| handle.call(request, host))
    })
}

/// Hands more over to a session.
///
/// # Errors
/// When the frame is not one of `lib/session/options.ts`.
#[napi(catch_unwind)]
pub fn update_session(
    bridge: u32,
    session: u32,
    frame: &[u8],
    length: u32,
    blobs: Option<Vec<&[u8]>>,
) -> Result<Option<Misuse>> {
    let request = read_update(Cursor::new(frame, length)?, blobs)?;
    let session = with_bridge(bridge, |bridge| bridge.session(session))?;
    Ok(session.and_then(|session| session.handle.update(request).err()).map(Misuse::from))
}

/// Asks for the names of a session.
///
/// # Errors
/// For a bridge that is not open.
#[napi(catch_unwind)]
pub fn session_names(env: Env, bridge: u32, session: u32, request: u32) -> Result<()> {
    with_bridge(bridge, |bridge| {
        let Some((session, answers)) = bridge.ask(env, session, request) else { return };
        session.handle.names(move |names| answers.push(request, Answer::Names(names)));
    })
}

/// Resets a session.
///
/// # Errors
/// For a bridge that is not open.
#[napi(catch_unwind)]
pub fn reset_session(env: Env, bridge: u32, session: u32, request: u32) -> Result<()> {
    with_bridge(bridge, |bridge| {
        let Some((session, answers)) = bridge.ask(env, session, request) else { return };
        session.handle.reset(move |done| answers.push(request, Answer::Done(done)));
    })
}

/// Copies a session, and returns the number that the copy will have.
///
/// # Errors
/// For a bridge that is not open.
#[napi(catch_unwind)]
pub fn fork_session(env: Env, bridge: u32, session: u32, request: u32) -> Result<u32> {
    with_bridge(bridge, |bridge| {
        let (number, host) = bridge.address();
        let Some((session, answers)) = bridge.ask(env, session, request) else { return number };
        // The number is in use from now on.
        bridge.sessions.borrow_mut().insert(number, None);
        let native = session.native;
        session.handle.fork(Arc::new(host), move |forked| {
            answers.push(request, Answer::Forked(number, native, forked));
        });
        number
    })
}

/// Closes a session.
///
/// # Errors
/// For a bridge that is not open.
#[napi(catch_unwind)]
pub fn close_session(env: Env, bridge: u32, session: u32, request: u32) -> Result<()> {
    with_bridge(bridge, |bridge| {
        let Some((session, answers)) = bridge.ask(env, session, request) else { return };
        session.handle.close(move || answers.push_empty(request));
    })
}

/// Drops the handle on a session.
///
/// # Errors
/// For a bridge that is not open.
#[napi(catch_unwind)]
pub fn drop_session(bridge: u32, session: u32) -> Result<()> {
    let dropped = with_bridge(bridge, |bridge| bridge.sessions.borrow_mut().remove(&session))?;
    // Without a borrow: the session may end here.
    drop(dropped);
    Ok(())
}

/// Has the event loop wait for one thing more (`true`) or less.
///
/// # Errors
/// For a bridge that is not open.
#[napi(catch_unwind)]
pub fn hold_event_loop(env: Env, bridge: u32, hold: bool) -> Result<()> {
    with_bridge(bridge, |bridge| if hold { bridge.hold(env) } else { bridge.release(env) })
}

impl Bridge {
    /// Opens a session, and returns its number.
    pub(crate) fn open(
        &self,
        runtime: &Runtime,
        request: SessionRequest,
        native: NativeFunctions,
    ) -> Either<u32, Misuse> {
        match self.open_session(runtime, request, native) {
            Ok((number, _)) => Either::A(number),
            Err(error) => Either::B(error.into()),
        }
    }

    /// Opens a session, and returns its number and a handle.
    pub(crate) fn open_session(
        &self,
        runtime: &Runtime,
        request: SessionRequest,
        native: NativeFunctions,
    ) -> std::result::Result<(u32, SessionHandle), Error> {
        let (number, host) = self.address();
        let handle = runtime.open_session(request, Arc::new(host))?;
        let session = LiveSession { number, handle: handle.clone(), native };
        self.sessions.borrow_mut().insert(number, Some(session));
        Ok((number, handle))
    }

    /// The session with that number.
    pub(crate) fn session(&self, number: u32) -> Option<LiveSession> {
        self.sessions.borrow().get(&number).cloned().flatten()
    }

    /// A free number, and the host whose events have it.
    fn address(&self) -> (u32, NodeHost) {
        let number = self.free_run_number();
        (number, NodeHost::new(Arc::clone(&self.mailbox), number.into(), NodeLimits))
    }

    /// Queues a cell. It is a run whose event loop waits for it.
    fn start_cell(
        &self,
        env: Env,
        session: u32,
        start: impl FnOnce(&SessionHandle, Arc<dyn Host>) -> std::result::Result<RunHandle, Error>,
    ) -> Either<u32, Misuse> {
        let Some(session) = self.session(session) else {
            return Either::B(Misuse::closed_session());
        };
        match self.queue_cell(&session, None, start) {
            Ok((number, _)) => {
                self.hold(env);
                Either::A(number)
            }
            Err(error) => Either::B(error.into()),
        }
    }

    /// Queues a cell, and returns its number and a handle. The event loop has to be held for it. Its result goes to
    /// `end`, or else to JavaScript.
    pub(crate) fn queue_cell(
        &self,
        session: &LiveSession,
        end: Option<oneshot::Sender<ExecutionResult>>,
        start: impl FnOnce(&SessionHandle, Arc<dyn Host>) -> std::result::Result<RunHandle, Error>,
    ) -> std::result::Result<(u32, RunHandle), Error> {
        let (number, host) = self.address();
        // Cells of one session settle in their order.
        let host = Arc::new(host.in_lane(session.number.into()));
        let handle = start(&session.handle, host)?;
        self.mailbox.listen(&handle);
        let native = session.native.clone();
        let run = LiveRun {
            handle: handle.clone(),
            native,
            is_cell: true,
            terminated: false,
            is_background: false,
            end,
        };
        self.runs.borrow_mut().insert(number, run);
        self.mailbox.expect();
        Ok((number, handle))
    }

    /// Prepares a request to a session: the event loop waits for the answer. A session that is not there has ended,
    /// and its answer says so.
    fn ask(&self, env: Env, session: u32, request: u32) -> Option<(LiveSession, Answers)> {
        self.hold(env);
        let found = self.session(session);
        if found.is_none() {
            self.answers.push(request, Answer::Gone);
        }
        found.map(|session| (session, self.answers.clone()))
    }
}
