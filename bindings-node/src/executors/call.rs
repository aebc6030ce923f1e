//! Calls of executors that go on, and the news of these and of runs of the loop.
//!
//! In: a call, with its context. Out: the number of its work, whose news JavaScript takes as they come: output, and the
//! end.

use std::{
    future::Future,
    sync::Arc,
    task::{Context, Poll, Waker},
};

use isolane::Value;
use isolane_executors::{
    CancellationToken, CodeExecutionInput, ExecutorError, ExecutorErrorKind, InvocationContext,
};
use napi::{Env, Result, bindgen_prelude::Uint8ArraySlice};
use napi_derive::napi;

use super::{
    Kind, NativeExecutor,
    data::{NativeInput, error_message, pair, result_message},
    inbox::Inbox,
    questions::Questions,
};
use crate::{
    bridge::{Bridge, with_bridge},
    value::into_javascript,
    wire::{MORE, news_kind},
};

/// The most news in one frame. Between frames the event loop does its other work.
const MOST_NEWS: u32 = 256;

/// A frame of that many bytes takes no more news, for the same reason.
const MOST_BYTES: usize = 64 << 10;

/// A call of an executor, or a run of the loop, that goes on.
pub(crate) struct Work {
    pub(super) inbox: Arc<Inbox>,
    pub(super) cancellation: CancellationToken,
    /// The questions of a run of the loop.
    pub(super) questions: Option<Arc<Questions>>,
}

impl Work {
    pub(crate) fn cancel(&self) {
        self.cancellation.cancel();
    }
}

/// The context of a call.
#[napi(object, object_to_js = false)]
pub struct NativeContext {
    pub invocation_id: String,
    pub turn: u32,
    pub attempt: u32,
    /// Whether JavaScript wants the standard output as it comes.
    pub wants_stdout: bool,
    /// The same for the standard error.
    pub wants_stderr: bool,
    /// Whether the call was cancelled before it began.
    pub is_cancelled: bool,
}

/// A call that has begun.
#[napi(object, object_from_js = false)]
pub struct Begun {
    pub work: u32,
    /// The session that was opened for it.
    pub opened: Option<u32>,
    /// Its cell, and the session of that.
    pub cell: Option<u32>,
    pub session: Option<u32>,
}

/// Starts a call.
///
/// # Errors
/// For a bridge that is not open.
#[napi(catch_unwind)]
pub fn start_execution(
    env: Env,
    bridge: u32,
    executor: &NativeExecutor,
    context: NativeContext,
    input: NativeInput,
) -> Result<Begun> {
    let (work, inbox, cancellation) = with_bridge(bridge, new_work)?;
    let context = call_context(context, &inbox, cancellation);
    let (called, input) = (executor.executor(), CodeExecutionInput::from(input));
    let mut done =
        Box::pin(async move { called.execute_code(&context, input).await.map(result_message) });
    let Kind::Isolate(_, host) = &executor.0 else {
        spawn(inbox, done);
        return Ok(Begun { work, opened: None, cell: None, session: None });
    };
    // Its first step opens the session and queues the cell, which takes this thread's tables.
    match done.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(ended) => end(&inbox, ended),
        Poll::Pending => spawn(inbox, done),
    }
    let (opened, queued) = host.take_begun();
    let (session, cell) = queued.unzip();
    if cell.is_some() {
        with_bridge(bridge, |bridge| bridge.hold(env))?;
    }
    Ok(Begun { work, opened, cell, session })
}

/// Takes the next news of a work: their number, with [`MORE`] if there may be others, then of each the kind, the number
/// and a message. At most one message is large, the last.
///
/// # Errors
/// When JavaScript has no memory for them.
#[napi(catch_unwind)]
pub fn take_news(env: &Env, bridge: u32, work: u32) -> Result<Uint8ArraySlice<'_>> {
    let bytes = with_bridge(bridge, |bridge| {
        let mut frame = bridge.frame();
        frame.u32(0);
        let inbox = bridge.works.borrow().get(&work).map(|work| Arc::clone(&work.inbox));
        let mut count = 0_u32;
        while let Some(news) = inbox.as_ref().and_then(|inbox| inbox.next()) {
            if news.is_last {
                let ended = bridge.works.borrow_mut().remove(&work);
                // Without a borrow.
                drop(ended);
            }
            let larges = frame.larges.len();
            frame.u8(news.kind);
            frame.u32(news.number);
            frame.message(news.message());
            count += 1;
            if frame.larges.len() > larges || count == MOST_NEWS || frame.is_full(MOST_BYTES) {
                count |= MORE;
                break;
            }
        }
        frame.bytes[4..8].copy_from_slice(&count.to_le_bytes());
        bridge.leave_blobs(&mut frame);
        frame.bytes
    })?;
    into_javascript(env, bytes)
}

/// Ends a work: a call has an error of the kind `cancelled` then, and a run that reason.
///
/// # Errors
/// For a bridge that is not open.
#[napi(catch_unwind)]
pub fn cancel_work(bridge: u32, work: u32) -> Result<()> {
    with_bridge(bridge, |bridge| {
        let cancellation = bridge.works.borrow().get(&work).map(|work| work.cancellation.clone());
        // Without a borrow.
        if let Some(cancellation) = cancellation {
            cancellation.cancel();
        }
    })
}

/// A new work, its news and its cancellation.
fn new_work(bridge: &Bridge) -> (u32, Arc<Inbox>, CancellationToken) {
    let number = bridge.free_work_number();
    let inbox = Arc::new(Inbox::new(Arc::clone(&bridge.mailbox), number));
    let cancellation = CancellationToken::new();
    let work =
        Work { inbox: Arc::clone(&inbox), cancellation: cancellation.clone(), questions: None };
    bridge.works.borrow_mut().insert(number, work);
    (number, inbox, cancellation)
}

/// The context of a call, which delivers the streams that JavaScript wants.
fn call_context(
    given: NativeContext,
    inbox: &Arc<Inbox>,
    cancellation: CancellationToken,
) -> InvocationContext {
    let mut context = InvocationContext::default();
    let NativeContext { invocation_id, turn, attempt, .. } = given;
    if given.is_cancelled {
        cancellation.cancel();
    }
    (context.invocation_id, context.turn, context.attempt) = (invocation_id, turn, attempt);
    context.cancellation = cancellation;
    if given.wants_stdout {
        let inbox = Arc::clone(inbox);
        context = context.with_stdout(move |bytes| inbox.push_output(true, bytes));
    }
    if given.wants_stderr {
        let inbox = Arc::clone(inbox);
        context = context.with_stderr(move |bytes| inbox.push_output(false, bytes));
    }
    context
}

type Ended = std::result::Result<Value, ExecutorError>;

/// Starts a work that is no call of code.
pub(super) fn start(
    bridge: u32,
    done: impl Future<Output = Ended> + Send + 'static,
) -> Result<u32> {
    let (work, inbox, cancellation) = with_bridge(bridge, new_work)?;
    spawn(inbox, async move {
        tokio::select! {
            ended = done => ended,
            () = cancellation.cancelled() => {
                Err(ExecutorError::new(ExecutorErrorKind::Cancelled, "the call was cancelled"))
            }
        }
    });
    Ok(work)
}

fn spawn(inbox: Arc<Inbox>, done: impl Future<Output = Ended> + Send + 'static) {
    drop(isolane::spawn(async move {
        let guard = EndGuard(inbox);
        let ended = done.await;
        end(&guard.0, ended);
    }));
}

fn end(inbox: &Inbox, ended: Ended) {
    match ended {
        Ok(message) => inbox.push_last(news_kind::ENDED, 0, message),
        Err(error) => inbox.push_last(news_kind::FAILED, 0, error_message(&error)),
    }
}

/// Ends a call whose future panics.
struct EndGuard(Arc<Inbox>);

impl Drop for EndGuard {
    fn drop(&mut self) {
        let kind = ExecutorErrorKind::Other.as_str();
        self.0.push_last(news_kind::FAILED, 0, pair(kind, "the executor panicked"));
    }
}
