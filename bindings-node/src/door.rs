//! Systems and their calls.
//!
//! In: messages of JavaScript. Out: systems; calls, which are runs for JavaScript; answers that are there at once. The
//! systems read all options and arguments.

#![expect(clippy::needless_pass_by_value, reason = "arguments from JavaScript come by value")]
#![expect(clippy::too_many_arguments, reason = "one call into the addon is cheaper than two")]

use std::{cell::RefCell, path::PathBuf, sync::Arc};

use isolane::{Error, NativeFunctions, RunHandle, SessionRequest, Spelling, Value};
use isolane_door::{self as door, Context, SessionHost, System};
use napi::{Either, Env, Result, bindgen_prelude::Uint8ArraySlice};
use napi_derive::napi;
use tokio::sync::oneshot;

use crate::{
    answers::Answer,
    bridge::{Bridge, LiveRun, with_bridge},
    error::Misuse,
    host::{NodeHost, NodeLimits},
    host_sessions::{Begun, NativeHostSessions, NodeSessionHost},
    native::NativeTable,
    options::read_request,
    runtime::NativeRuntime,
    session_options::read_session,
    value::{Cursor, into_javascript},
};

/// A system that JavaScript has opened.
#[napi]
pub struct NativeSystem {
    open: RefCell<Option<Open>>,
    run: u32,
    /// The opener of its sessions, if it has any.
    sessions: Option<Arc<NodeSessionHost>>,
}

struct Open {
    system: Arc<dyn System>,
    /// Dropped when the system is closed: the run of its options settles then.
    _is_open: oneshot::Sender<()>,
}

#[napi]
impl NativeSystem {
    /// The number of the run that lasts as long as the system. Functions among the options belong to that run.
    #[napi(getter)]
    #[must_use]
    pub fn run(&self) -> u32 {
        self.run
    }
}

impl NativeSystem {
    fn system(&self) -> std::result::Result<Arc<dyn System>, Error> {
        let open = self.open.borrow();
        let system = open.as_ref().map(|open| Arc::clone(&open.system));
        system.ok_or_else(|| Error::new(isolane::ErrorKind::Unavailable, "it is closed"))
    }
}

/// A call that has begun.
#[napi(object, object_from_js = false)]
pub struct BegunCall {
    /// The number of its run.
    pub run: u32,
    /// Whether it lasts as long as its system, and no event loop waits for it.
    pub is_background: bool,
    /// The session that was opened for it.
    pub opened: Option<u32>,
    /// Its cell, and the session of that.
    pub cell: Option<u32>,
    pub session: Option<u32>,
}

/// Opens a system; the options are a message. `sessions` is the request for its sessions, if it has any.
///
/// # Errors
/// When `length` is beyond the frame.
#[napi(catch_unwind)]
pub fn open_system(
    env: Env,
    bridge: u32,
    name: String,
    runtime: Option<&NativeRuntime>,
    worker_folder: String,
    frame: &[u8],
    length: u32,
    blobs: Option<Vec<&[u8]>>,
    sessions: Option<&NativeHostSessions>,
) -> Result<Either<NativeSystem, Misuse>> {
    let options = Cursor::new(frame, length)?.message(blobs);
    let request = sessions.map(|sessions| sessions.request.clone());
    if let Some(Err(error)) = request.as_ref().map(SessionRequest::check) {
        return Ok(Either::B(error.into()));
    }
    let sessions = request.map(|request| Arc::new(NodeSessionHost::new(bridge, request)));
    let runtime = runtime.map(|runtime| runtime.runtime.clone());
    with_bridge(bridge, |bridge| {
        let (is_open, closed) = oneshot::channel::<()>();
        let begin = |host: Arc<NodeHost>| {
            let open = |caller| {
                let worker_folder = PathBuf::from(&worker_folder);
                let sessions = sessions.clone().map(|host| host as Arc<dyn SessionHost>);
                let spelling = Spelling::Camel;
                let context = Context { spelling, runtime, sessions, worker_folder, caller };
                isolane_systems::open(&name, &options, context)
            };
            let closed = async move {
                // The sender is dropped, and never used.
                let _ = closed.await;
            };
            let (system, handle) = door::open(host, open, closed)?;
            Ok((handle, true, system))
        };
        match bridge.begin(env, begin) {
            Ok((run, _, system)) => {
                let open = Open { system, _is_open: is_open };
                Either::A(NativeSystem { open: RefCell::new(Some(open)), run, sessions })
            }
            Err(error) => Either::B(error.into()),
        }
    })
}

/// Closes a system, once no call of it goes on.
#[napi(catch_unwind)]
pub fn close_system(system: &NativeSystem) {
    let open = system.open.take();
    // Without a borrow.
    drop(open);
}

/// Begins a call of a system; the arguments are a message. It is a run for JavaScript.
///
/// # Errors
/// When `length` is beyond the frame.
#[napi(catch_unwind)]
pub fn call_system(
    env: Env,
    bridge: u32,
    system: &NativeSystem,
    method: String,
    frame: &[u8],
    length: u32,
    blobs: Option<Vec<&[u8]>>,
) -> Result<Either<BegunCall, Misuse>> {
    let args = Cursor::new(frame, length)?.message(blobs);
    with_bridge(bridge, |bridge| {
        let begin = |host: Arc<NodeHost>| {
            let begun = door::begin(&*system.system()?, host, &method, args)?;
            Ok((begun.handle, begun.is_background, ()))
        };
        match bridge.begin(env, begin) {
            Ok((run, is_background, ())) => {
                let begun = system.sessions.as_ref().map(|sessions| sessions.take_begun());
                let Begun { opened, queued } = begun.unwrap_or_default();
                let (session, cell) = queued.unzip();
                if cell.is_some() {
                    bridge.hold(env);
                }
                Either::A(BegunCall { run, is_background, opened, cell, session })
            }
            Err(error) => Either::B(error.into()),
        }
    })
}

/// Has a system answer later, to a call without functions; the arguments are a message. The answer with that number has the
/// outcome, unless the call is refused.
///
/// # Errors
/// When `length` is beyond the frame.
#[napi(catch_unwind)]
pub fn answer_of_system(
    env: Env,
    bridge: u32,
    system: &NativeSystem,
    request: u32,
    method: String,
    frame: &[u8],
    length: u32,
    blobs: Option<Vec<&[u8]>>,
) -> Result<Option<Misuse>> {
    let args = Cursor::new(frame, length)?.message(blobs);
    with_bridge(bridge, |bridge| {
        let answers = bridge.answers.clone();
        let done = move |completion| answers.push(request, Answer::Called(completion));
        let begin = || door::answer(&*system.system()?, &method, args, done).map(drop);
        match begin() {
            Ok(()) => {
                bridge.hold(env);
                None
            }
            Err(error) => Some(error.into()),
        }
    })
}

/// Has a system answer at once: a frame with one message.
///
/// # Errors
/// When `length` is beyond the frame, or JavaScript has no memory for the answer.
#[napi(catch_unwind)]
pub fn ask_system<'env>(
    env: &'env Env,
    bridge: u32,
    system: &NativeSystem,
    method: String,
    frame: &[u8],
    length: u32,
    blobs: Option<Vec<&[u8]>>,
) -> Result<Either<Uint8ArraySlice<'env>, Misuse>> {
    let args = Cursor::new(frame, length)?.message(blobs);
    let asked =
        || -> std::result::Result<Value, Error> { door::ask(&*system.system()?, &method, args) };
    let answer = match asked() {
        Ok(answer) => answer,
        Err(error) => return Ok(Either::B(error.into())),
    };
    let bytes = with_bridge(bridge, |bridge| {
        let mut frame = bridge.frame();
        frame.whole_message(answer);
        bridge.leave_blobs(&mut frame);
        frame.bytes
    })?;
    into_javascript(env, bytes).map(Either::A)
}

/// Starts a run of that kind, whose request the system amends, as [`start`](crate::bridge::start).
///
/// # Errors
/// When the frame is not one of `lib/run/options.ts`.
#[napi(catch_unwind)]
pub fn start_in_system(
    env: Env,
    bridge: u32,
    system: &NativeSystem,
    kind: String,
    frame: &[u8],
    length: u32,
    blobs: Option<Vec<&[u8]>>,
    native: Option<&NativeTable>,
) -> Result<Either<u32, Misuse>> {
    let native = native.map(|table| table.functions.clone()).unwrap_or_default();
    let request = read_request(Cursor::new(frame, length)?, blobs, native.clone())?;
    match system.system().and_then(|system| system.amend_run(&kind, request)) {
        Ok((runtime, request)) => {
            with_bridge(bridge, |bridge| bridge.start(env, &runtime, request, native))
        }
        Err(error) => Ok(Either::B(error.into())),
    }
}

/// Opens a session whose request the system amends, as [`open_session`](crate::session::open_session).
///
/// # Errors
/// When the frame is not one of `lib/session/options.ts`.
#[napi(catch_unwind)]
pub fn open_session_in_system(
    bridge: u32,
    system: &NativeSystem,
    frame: &[u8],
    length: u32,
    blobs: Option<Vec<&[u8]>>,
    native: Option<&NativeTable>,
) -> Result<Either<u32, Misuse>> {
    let native = native.map(|table| table.functions.clone()).unwrap_or_default();
    let request = read_session(Cursor::new(frame, length)?, blobs, native.clone())?;
    match system.system().and_then(|system| system.amend_session(request)) {
        Ok((runtime, request)) => {
            with_bridge(bridge, |bridge| bridge.open(&runtime, request, native))
        }
        Err(error) => Ok(Either::B(error.into())),
    }
}

/// The handle of a call, whether it is in the background, and what else came of its start.
type Started<T> = std::result::Result<(RunHandle, bool, T), Error>;

impl Bridge {
    /// Starts a call, and returns its number.
    fn begin<T>(
        &self,
        env: Env,
        begin: impl FnOnce(Arc<NodeHost>) -> Started<T>,
    ) -> std::result::Result<(u32, bool, T), Error> {
        let run = self.free_run_number();
        let host = Arc::new(NodeHost::new(Arc::clone(&self.mailbox), run.into(), NodeLimits));
        let (handle, is_background, rest) = begin(host)?;
        let live = LiveRun {
            handle,
            native: NativeFunctions::new(),
            is_cell: false,
            terminated: false,
            is_background,
            end: None,
        };
        self.runs.borrow_mut().insert(run, live);
        if !is_background {
            self.hold(env);
        }
        Ok((run, is_background, rest))
    }
}
