//! Sessions of systems, with the values and functions of JavaScript.
//!
//! In: requests of a system. Out: sessions, and cells whose events go to the thread that opened the system. All sessions of
//! a system have the same request, whose values were written when the system was opened. A system opens sessions and
//! queues cells in the first step of a call, on the thread of JavaScript, which then learns their numbers.

use std::{
    fmt, mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use isolane::{
    CellRequest, Error, ErrorKind, HostEvent, RunHandle, Runtime, SessionRequest, Spelling,
};
use isolane_door::{Amend, CellFuture, CloseFuture, HostCell, HostSession, SessionHost};
use napi::Result;
use napi_derive::napi;
use tokio::sync::oneshot;

use crate::{
    bridge::with_bridge, host::NodeMailbox, native::NativeTable, session::LiveSession,
    session_options::read_session, value::Cursor,
};

/// The request for the sessions of a system.
#[napi]
pub struct NativeHostSessions {
    pub(crate) request: SessionRequest,
}

/// Reads the request for the sessions of a system.
///
/// # Errors
/// When the frame is not one of `lib/session/options.ts`.
#[napi(catch_unwind)]
pub fn host_sessions(
    frame: &[u8],
    length: u32,
    blobs: Option<Vec<&[u8]>>,
    native: Option<&NativeTable>,
) -> Result<NativeHostSessions> {
    let native = native.map(|table| table.functions.clone()).unwrap_or_default();
    let request = read_session(Cursor::new(frame, length)?, blobs, native)?;
    Ok(NativeHostSessions { request })
}

/// The opener of the sessions of one system.
pub(crate) struct NodeSessionHost {
    bridge: u32,
    request: SessionRequest,
    begun: Arc<Mutex<Begun>>,
}

/// The numbers that JavaScript has not learned.
#[derive(Default)]
pub(crate) struct Begun {
    /// That of a session that was opened.
    pub(crate) opened: Option<u32>,
    /// That of the session of a cell that was queued, and that of the cell.
    pub(crate) queued: Option<(u32, u32)>,
}

impl NodeSessionHost {
    pub(crate) fn new(bridge: u32, request: SessionRequest) -> Self {
        Self { bridge, request, begun: Arc::default() }
    }

    /// The session that the first step of a call has opened, and the cell that it has queued in a session.
    pub(crate) fn take_begun(&self) -> Begun {
        mem::take(&mut *lock(&self.begun))
    }
}

impl fmt::Debug for NodeSessionHost {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("NodeSessionHost").finish_non_exhaustive()
    }
}

impl SessionHost for NodeSessionHost {
    fn open(
        &self,
        runtime: &Runtime,
        amend: Amend<'_>,
    ) -> std::result::Result<Arc<dyn HostSession>, Error> {
        let request = amend(self.request.clone())?;
        let native = request.native.clone();
        let opened = with_bridge(self.bridge, |bridge| {
            let (number, handle) = bridge.open_session(runtime, request, native.clone())?;
            let session = LiveSession { number, handle, native };
            Ok((session, Arc::clone(&bridge.mailbox)))
        });
        let (session, mailbox) = opened.unwrap_or_else(|_| Err(wrong_thread()))?;
        lock(&self.begun).opened = Some(session.number);
        let (bridge, begun) = (self.bridge, Arc::clone(&self.begun));
        Ok(Arc::new(NodeSession { bridge, session, mailbox, begun }))
    }
}

struct NodeSession {
    bridge: u32,
    session: LiveSession,
    mailbox: Arc<NodeMailbox>,
    begun: Arc<Mutex<Begun>>,
}

impl HostSession for NodeSession {
    fn run(&self, code: String, options: HostCell) -> CellFuture {
        let HostCell { language, timeout_ms } = options;
        let mut request = CellRequest::new(code.into());
        #[expect(clippy::cast_precision_loss, reason = "a time limit is no exact number")]
        let timeout_ms = timeout_ms.map(|ms| ms as f64);
        (request.language, request.timeout_ms) = (language, timeout_ms);
        request.spelling = Spelling::Camel;
        let (sender, ended) = oneshot::channel();
        let queued = with_bridge(self.bridge, |bridge| {
            let start = |handle: &isolane::SessionHandle, host| handle.run(request, host);
            bridge.queue_cell(&self.session, Some(sender), start)
        });
        let started = queued.unwrap_or_else(|_| Err(wrong_thread()));
        if let Ok((cell, _)) = &started {
            lock(&self.begun).queued = Some((self.session.number, *cell));
        }
        Box::pin(async move {
            let _running = Running(started?.1);
            ended
                .await
                .map_err(|_| Error::new(ErrorKind::Unavailable, "the thread of the call has ended"))
        })
    }

    fn close(&self) -> CloseFuture {
        let (sender, closed) = oneshot::channel();
        self.end(move || {
            // The system may wait no more.
            let _ = sender.send(());
        });
        Box::pin(async move {
            // An error would mean that it was closed already.
            let _ = closed.await;
        })
    }
}

impl NodeSession {
    /// Ends the session, and tells JavaScript, which has a handle on it, too.
    fn end(&self, done: impl FnOnce() + Send + 'static) {
        let (mailbox, number) = (Arc::clone(&self.mailbox), self.session.number);
        self.session.handle.close(move || {
            mailbox.push(number.into(), HostEvent::Settled);
            done();
        });
    }
}

impl Drop for NodeSession {
    fn drop(&mut self) {
        self.end(|| ());
    }
}

/// A cell that runs. Dropping it ends the cell.
struct Running(RunHandle);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.terminate(None);
    }
}

/// The error for a call outside of the thread of its system.
fn wrong_thread() -> Error {
    Error::new(ErrorKind::Unavailable, "the thread that opened the system has ended")
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic under the lock leaves nothing half done.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
