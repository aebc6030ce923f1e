//! The bridge between one JavaScript thread and the core.
//!
//! In: requests. Out: numbers for the runs, and batches of events. A bridge belongs to one
//! environment (the main thread's, or a worker's). The end of the environment terminates its runs.

use std::{
    cell::{Cell, RefCell},
    collections::{HashMap, HashSet},
    rc::Rc,
    sync::Arc,
    time::{Duration, Instant},
};

use isolane::{ExecutionResult, HostCall, NativeFunctions, Request, RunHandle, Runtime};
use napi::{Either, Env, Result, bindgen_prelude::Uint8ArraySlice};
use napi_derive::napi;
use tokio::sync::oneshot;

use crate::{
    answers::Answers,
    error::{Misuse, broken_frame},
    host::{NodeHost, NodeLimits, NodeMailbox, NodeWaker, Receive},
    large::Large,
    native::NativeTable,
    options::read_request,
    outcome::Output,
    runtime::NativeRuntime,
    session::LiveSession,
    value::{Cursor, Frame, into_javascript},
    wire::STOP_POLLING,
};

/// JavaScript's own buffer for events, lent to us for the length of a call.
type Inbox<'call> = &'call mut [u8];

/// About the time of an idle turn of the event loop.
const TURN: Duration = Duration::from_micros(15);

/// A run that has not settled.
pub(crate) struct LiveRun {
    pub(crate) handle: RunHandle,
    /// Its functions that are answered in Rust.
    pub(crate) native: NativeFunctions,
    /// Whether it is a cell. Functions and promises of its session outlive it.
    pub(crate) is_cell: bool,
    /// JavaScript has terminated it. Of a run that is no cell only its end is delivered then.
    pub(crate) terminated: bool,
    /// Whether it is a call that lasts as long as its system. The event loop does not wait for it.
    pub(crate) is_background: bool,
    /// The receiver of its result, if that is not JavaScript.
    pub(crate) end: Option<oneshot::Sender<ExecutionResult>>,
}

/// The state of one JavaScript environment beside the core. Only its own thread uses it, except for the
/// mailbox.
pub(crate) struct Bridge {
    pub(crate) mailbox: Arc<NodeMailbox>,
    pub(crate) runs: RefCell<HashMap<u32, LiveRun>>,
    /// The sessions that JavaScript holds; `None` for a copy that is being made. They share the numbers of runs.
    pub(crate) sessions: RefCell<HashMap<u32, Option<LiveSession>>>,
    /// The runs among the events of the last drain that somebody or a limit has ended.
    pub(crate) ended: RefCell<HashSet<u32>>,
    pub(crate) answers: Answers,
    /// Host calls handed to JavaScript and not answered yet, by number.
    calls: RefCell<HashMap<u32, HostCall>>,
    /// The blobs of the last frame, until JavaScript fetches them.
    blobs: RefCell<Vec<Vec<u8>>>,
    /// Large messages that JavaScript has not read yet, by number.
    pub(crate) larges: RefCell<HashMap<u32, Large>>,
    next_large: Cell<u32>,
    /// The reports and logs of settled runs that JavaScript has not fetched yet.
    pub(crate) outputs: RefCell<HashMap<u32, Output>>,
    /// The number of live runs and of requests without an answer. JavaScript's event loop waits for them.
    pending: Cell<usize>,
    last_run: Cell<u32>,
    last_call: Cell<u32>,
}

thread_local! {
    /// The bridges of this thread, by number. A thread has one, unless the program has several
    /// environments on it. A plain function with a number costs less than half of a method call.
    static BRIDGES: RefCell<HashMap<u32, Rc<Bridge>>> = RefCell::default();
}

/// Calls `act` with the bridge of that number.
pub(crate) fn with_bridge<T>(bridge: u32, act: impl FnOnce(&Bridge) -> T) -> Result<T> {
    let found = BRIDGES.with_borrow(|bridges| bridges.get(&bridge).cloned());
    found.map(|bridge| act(&bridge)).ok_or_else(broken_frame)
}

/// Opens this environment's bridge and returns its number; `receive` is called when there are events to
/// drain.
///
/// # Errors
/// When the environment is ending already.
#[napi(catch_unwind)]
pub fn open_bridge(env: Env, receive: Receive) -> Result<u32> {
    let mailbox = Arc::new(NodeMailbox::default());
    mailbox.set_waker(NodeWaker::new(receive));
    let bridge = Rc::new(Bridge {
        answers: Answers::new(Arc::clone(&mailbox)),
        mailbox,
        runs: RefCell::default(),
        sessions: RefCell::default(),
        ended: RefCell::default(),
        calls: RefCell::default(),
        blobs: RefCell::default(),
        larges: RefCell::default(),
        next_large: Cell::new(0),
        outputs: RefCell::default(),
        pending: Cell::new(0),
        last_run: Cell::new(0),
        last_call: Cell::new(0),
    });
    let number = BRIDGES.with_borrow_mut(|bridges| {
        let number = (0..=u32::MAX).find(|number| !bridges.contains_key(number));
        let number = number.unwrap_or_default();
        bridges.insert(number, Rc::clone(&bridge));
        number
    });
    env.add_env_cleanup_hook((number, bridge), |(number, bridge)| {
        bridge.end();
        BRIDGES.with_borrow_mut(|bridges| bridges.remove(&number));
    })?;
    Ok(number)
}

/// Starts a run, in the default runtime when none is given, and returns its number.
///
/// # Errors
/// When the frame is not one of `lib/run/options.ts`.
#[napi(catch_unwind)]
pub fn start(
    env: Env,
    bridge: u32,
    runtime: Option<&NativeRuntime>,
    frame: &[u8],
    length: u32,
    blobs: Option<Vec<&[u8]>>,
    native: Option<&NativeTable>,
) -> Result<Either<u32, Misuse>> {
    let native = native.map(|table| table.functions.clone()).unwrap_or_default();
    let request = read_request(Cursor::new(frame, length)?, blobs, native.clone())?;
    with_bridge(bridge, |bridge| match runtime {
        Some(runtime) => bridge.start(env, &runtime.runtime, request, native),
        None => bridge.start(env, &Runtime::shared(), request, native),
    })
}

/// Writes the next events into `inbox` and returns the number of bytes; returns the events themselves if they
/// do not fit. Without events it returns 0, or [`STOP_POLLING`] if polling does not pay off any more. `expected`
/// announces an event that JavaScript polls for from now on.
///
/// # Errors
/// When JavaScript has no memory for them.
#[napi(catch_unwind)]
pub fn drain<'env>(
    env: &'env Env,
    bridge: u32,
    inbox: Inbox<'_>,
    expected: bool,
) -> Result<Either<i32, Uint8ArraySlice<'env>>> {
    let (frame, pays_off) = with_bridge(bridge, |bridge| {
        if expected {
            bridge.mailbox.expect();
        }
        bridge.poll_processes();
        let frame = bridge.drain(*env);
        let pays_off = frame.is_some() || bridge.mailbox.lasts();
        (frame, pays_off)
    })?;
    let Some(frame) = frame else {
        // The thread that computes the answer may be waiting for this processor.
        std::thread::yield_now();
        return Ok(Either::A(if pays_off { 0 } else { STOP_POLLING }));
    };
    if let (Some(room), Ok(length)) = (inbox.get_mut(..frame.len()), i32::try_from(frame.len())) {
        room.copy_from_slice(&frame);
        return Ok(Either::A(length));
    }
    into_javascript(env, frame).map(Either::B)
}

/// Starts (`true`) or stops polling: while JavaScript polls, it drains by itself, and nothing wakes it.
/// Returns whether events are waiting.
///
/// # Errors
/// For a bridge that is not open.
#[napi(catch_unwind)]
pub fn poll(bridge: u32, polls: bool) -> Result<bool> {
    with_bridge(bridge, |bridge| {
        bridge.mailbox.poll(polls);
        bridge.mailbox.has_events()
    })
}

/// The blobs of the last frame, in order; they can be taken once.
///
/// # Errors
/// When JavaScript has no memory for them.
#[napi(catch_unwind)]
pub fn blobs(env: &Env, bridge: u32) -> Result<Vec<Uint8ArraySlice<'_>>> {
    let blobs = with_bridge(bridge, |bridge| bridge.blobs.take())?;
    blobs.into_iter().map(|blob| into_javascript(env, blob)).collect()
}

/// Closes a runtime. The answer with that number reports its end.
///
/// # Errors
/// For a bridge that is not open.
#[napi(catch_unwind)]
pub fn close(env: Env, bridge: u32, runtime: &NativeRuntime, number: u32) -> Result<()> {
    with_bridge(bridge, |bridge| {
        bridge.hold(env);
        let answers = bridge.answers.clone();
        runtime.runtime.close(move || answers.push_empty(number));
    })
}

impl Bridge {
    /// Starts a run, and returns its number.
    pub(crate) fn start(
        &self,
        env: Env,
        runtime: &Runtime,
        request: Request,
        native: NativeFunctions,
    ) -> Either<u32, Misuse> {
        let run = self.free_run_number();
        let mailbox = Arc::clone(&self.mailbox);
        let host = Arc::new(NodeHost::new(mailbox, run.into(), NodeLimits));
        match runtime.start(request, host) {
            Ok(handle) => {
                self.mailbox.listen(&handle);
                let live = LiveRun {
                    handle,
                    native,
                    is_cell: false,
                    terminated: false,
                    is_background: false,
                    end: None,
                };
                self.runs.borrow_mut().insert(run, live);
                self.hold(env);
                self.mailbox.expect();
                Either::A(run)
            }
            Err(error) => Either::B(error.into()),
        }
    }

    /// Ends the runs of an environment that has ended, and drops their events.
    fn end(&self) {
        self.mailbox.close();
        for (_, run) in self.runs.take() {
            run.handle.terminate(Some("the thread that started the run has ended"));
        }
        for session in self.sessions.take().into_values().flatten() {
            session.handle.close(|| {});
        }
        self.calls.take();
        self.larges.take();
        self.outputs.take();
    }

    /// A frame with room for the number of its blobs, which [`Bridge::leave_blobs`] writes.
    pub(crate) fn frame(&self) -> Frame {
        let mut frame = Frame::new(self.next_large.get());
        frame.u32(0);
        frame
    }

    /// Keeps the blobs and large messages of a frame until JavaScript fetches them, and writes the number of
    /// blobs at the beginning of the frame.
    pub(crate) fn leave_blobs(&self, frame: &mut Frame) {
        let count = u32::try_from(frame.blobs.len()).unwrap_or(u32::MAX);
        frame.bytes[..4].copy_from_slice(&count.to_le_bytes());
        self.blobs.replace(std::mem::take(&mut frame.blobs));
        for large in frame.larges.drain(..) {
            let number = self.next_large.get();
            self.next_large.set(number.wrapping_add(1));
            self.larges.borrow_mut().insert(number, large);
        }
    }

    /// Keeps a host call until JavaScript answers it, and returns its number.
    pub(crate) fn keep_call(&self, call: HostCall) -> u32 {
        let mut calls = self.calls.borrow_mut();
        let number = free_number(&self.last_call, |number| calls.contains_key(&number));
        calls.insert(number, call);
        number
    }

    /// Takes out a host call, to answer it.
    pub(crate) fn take_call(&self, number: u32) -> Option<HostCall> {
        self.calls.borrow_mut().remove(&number)
    }

    /// Whether a run has not settled, or a session is open.
    pub(crate) fn runs_now(&self, number: u32) -> bool {
        let run = self.runs.borrow().get(&number).map(|run| run.handle.running());
        let is_open = || self.session(number).is_some_and(|session| !session.handle.is_closed());
        run.unwrap_or_else(is_open)
    }

    /// A number for a run or a session.
    pub(crate) fn free_run_number(&self) -> u32 {
        let (runs, sessions) = (self.runs.borrow(), self.sessions.borrow());
        free_number(&self.last_run, |number| {
            runs.contains_key(&number) || sessions.contains_key(&number)
        })
    }

    /// There is one run or request more. The event loop waits until all are over.
    pub(crate) fn hold(&self, env: Env) {
        if self.pending.replace(self.pending.get() + 1) == 0 {
            self.mailbox.with_waker(|waker| waker.hold_event_loop(env, true));
        }
    }

    /// One run or request is over. After the last one the event loop may end.
    pub(crate) fn release(&self, env: Env) {
        self.pending.set(self.pending.get().saturating_sub(1));
        if self.pending.get() == 0 {
            self.mailbox.with_waker(|waker| waker.hold_event_loop(env, false));
        }
    }

    /// While JavaScript polls, receives events of runs in other processes for up to the time of an idle turn.
    fn poll_processes(&self) {
        if !self.mailbox.is_polled() {
            return;
        }
        let started = Instant::now();
        while self.mailbox.hear() && !self.mailbox.has_events() && started.elapsed() < TURN {
            std::hint::spin_loop();
        }
    }
}

/// The next number that is not in use. Numbers wrap around at 2^32.
fn free_number(last: &Cell<u32>, is_used: impl Fn(u32) -> bool) -> u32 {
    loop {
        let number = last.get().wrapping_add(1);
        last.set(number);
        if !is_used(number) {
            return number;
        }
    }
}
