//! Sessions of the executor of isolates, with the functions of JavaScript.
//!
//! In: requests of the executor. Out: sessions, and cells whose events go to the thread that made the executor. All
//! sessions of an executor have the same request, whose values were written when the executor was made. The executor opens
//! sessions and queues cells in the first step of a call, on the thread of JavaScript, which then learns their numbers.

use std::{
    fmt, mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use isolane::{CellRequest, Error, ErrorKind, HostEvent, RunHandle, SessionRequest, Spelling};
use isolane_executors::{
    Amend, CellFuture, CloseFuture, HostRuntime, IsolateCell, IsolateHost, IsolateSession,
};
use tokio::sync::oneshot;

use super::wrong_thread;
use crate::{bridge::with_bridge, host::NodeMailbox, session::LiveSession};

/// The opener of the sessions of one executor.
pub(super) struct NodeIsolateHost {
    bridge: u32,
    runtime: HostRuntime,
    request: SessionRequest,
    begun: Arc<Mutex<Begun>>,
}

/// The numbers that JavaScript has not learned.
#[derive(Default)]
struct Begun {
    /// That of a session that was opened.
    opened: Option<u32>,
    /// That of the session of a cell that was queued, and that of the cell.
    queued: Option<(u32, u32)>,
}

impl NodeIsolateHost {
    pub(super) fn new(bridge: u32, runtime: HostRuntime, request: SessionRequest) -> Self {
        Self { bridge, runtime, request, begun: Arc::default() }
    }

    /// The session that the first step of a call has opened, and the cell that it has queued in a session.
    pub(super) fn take_begun(&self) -> (Option<u32>, Option<(u32, u32)>) {
        let Begun { opened, queued } = mem::take(&mut *lock(&self.begun));
        (opened, queued)
    }
}

impl fmt::Debug for NodeIsolateHost {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("NodeIsolateHost").finish_non_exhaustive()
    }
}

impl IsolateHost for NodeIsolateHost {
    fn open(&self, amend: Amend<'_>) -> Result<Arc<dyn IsolateSession>, Error> {
        let request = amend(self.request.clone())?;
        let native = request.native.clone();
        let runtime = self.runtime.runtime()?;
        let opened = with_bridge(self.bridge, |bridge| {
            let (number, handle) = bridge.open_session(&runtime, request, native.clone())?;
            let session = LiveSession { handle, native };
            Ok((number, session, Arc::clone(&bridge.mailbox)))
        });
        let (number, session, mailbox) = opened.unwrap_or_else(|_| Err(wrong_thread()))?;
        lock(&self.begun).opened = Some(number);
        let (bridge, begun) = (self.bridge, Arc::clone(&self.begun));
        Ok(Arc::new(NodeIsolateSession { bridge, number, session, mailbox, begun }))
    }

    fn close(&self) -> CloseFuture {
        self.runtime.close()
    }
}

struct NodeIsolateSession {
    bridge: u32,
    number: u32,
    session: LiveSession,
    mailbox: Arc<NodeMailbox>,
    begun: Arc<Mutex<Begun>>,
}

impl IsolateSession for NodeIsolateSession {
    fn run(&self, code: String, options: IsolateCell) -> CellFuture {
        let IsolateCell { language, timeout_ms } = options;
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
            lock(&self.begun).queued = Some((self.number, *cell));
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
            // The executor may wait no more.
            let _ = sender.send(());
        });
        Box::pin(async move {
            // An error would mean that it was closed already.
            let _ = closed.await;
        })
    }
}

impl NodeIsolateSession {
    /// Ends the session, and tells JavaScript, which has a handle on it, too.
    fn end(&self, done: impl FnOnce() + Send + 'static) {
        let (mailbox, number) = (Arc::clone(&self.mailbox), self.number);
        self.session.handle.close(move || {
            mailbox.push(number.into(), HostEvent::Settled);
            done();
        });
    }
}

impl Drop for NodeIsolateSession {
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

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic under the lock leaves nothing half done.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
