//! Runtimes, and the bridge that each JavaScript thread has with the core.
//!
//! In: requests. Out: numbers for the runs, and batches of events. A bridge belongs to one
//! environment (the main thread's, or a worker's); when that ends, its runs are terminated.

use std::{
    cell::{Cell, RefCell},
    collections::HashMap,
    path::PathBuf,
    rc::Rc,
    sync::Arc,
    time::{Duration, Instant},
};

use isolane::{
    Completion, Confinement, EventPoller, FairQueue, HostCall, Isolation, NativeFunctions,
    REPORT_SINK, RunHandle, Runtime, RuntimeOptions, Spelling, Stats, value::Value,
};
use napi::{Either, Env, Result, bindgen_prelude::Uint8ArraySlice};
use napi_derive::napi;

use crate::{
    error::{Misuse, broken_frame},
    host::{Event, Mailbox, NodeHost, Wake},
    large::Large,
    native::NativeTable,
    options::read_request,
    outcome::{Told, write_outcome},
    value::{Cursor, Frame, into_javascript},
};

/// JavaScript's own buffer for events, lent to us for the length of a call.
type Inbox<'call> = &'call mut [u8];

/// Events that JavaScript gets at once. Beyond that its event loop has other things to do first: no
/// sandbox keeps it from those by telling a lot.
const MOST_EVENTS: u32 = 256;

/// Bytes of events after which no more are added, for the same reason.
const MOST_BYTES: usize = 64 << 10;

/// About as long as a turn of the event loop takes in which nothing happens.
const TURN: Duration = Duration::from_micros(15);

/// In the count of a frame's events: there are more to come.
const MORE: u32 = 1 << 31;

/// A runtime of the core.
#[napi]
pub struct NativeRuntime {
    runtime: Runtime,
}

/// The options of a runtime, of the right types already.
#[napi(object)]
pub struct NativeRuntimeOptions {
    pub isolation: Option<String>,
    pub safety_cap_ms: Option<f64>,
    pub max_concurrent_runs: Option<f64>,
    pub max_queued_runs: Option<f64>,
    pub max_stuck_threads: Option<f64>,
    pub ready_isolates: Option<f64>,
    pub compile_cache_bytes: Option<f64>,
    pub worker: Option<String>,
    /// Where the addon is.
    pub worker_folder: Option<String>,
    pub runs_per_worker: Option<f64>,
    pub worker_idle_ms: Option<f64>,
}

/// Counts of a runtime, as of now.
#[napi(object)]
pub struct NativeStats {
    pub computing: f64,
    pub parked: f64,
    pub queued: f64,
    pub settled: NativeSettled,
    pub ready_isolates: f64,
    pub threads: f64,
    pub stuck_threads: f64,
    pub compile_cache_bytes: f64,
    pub workers: f64,
    pub confinement: Option<NativeConfinement>,
}

/// What workers are kept from.
#[napi(object)]
#[expect(clippy::struct_excessive_bools, reason = "as the core has them")]
pub struct NativeConfinement {
    pub environment: bool,
    pub descriptors: bool,
    pub privileges: bool,
    pub user: bool,
    pub capabilities: bool,
    pub network: bool,
    pub file_system: bool,
    pub processes: bool,
    pub ipc: bool,
    pub landlock: bool,
    pub system_calls: bool,
    pub resources: bool,
}

/// Runs that have settled, by status.
#[napi(object)]
pub struct NativeSettled {
    pub success: f64,
    pub error: f64,
    pub memory: f64,
    pub terminated: f64,
    #[napi(js_name = "link_error")]
    pub link_error: f64,
}

#[expect(clippy::cast_precision_loss, reason = "counts stay below 2^53")]
impl From<Stats> for NativeStats {
    fn from(stats: Stats) -> Self {
        Self {
            computing: stats.computing as f64,
            parked: stats.parked as f64,
            queued: stats.queued as f64,
            settled: NativeSettled {
                success: stats.success as f64,
                error: stats.error as f64,
                memory: stats.memory as f64,
                terminated: stats.terminated as f64,
                link_error: stats.link_error as f64,
            },
            ready_isolates: stats.ready_isolates as f64,
            threads: stats.threads as f64,
            stuck_threads: stats.stuck_threads as f64,
            compile_cache_bytes: stats.compile_cache_bytes as f64,
            workers: stats.workers as f64,
            confinement: stats.confinement.map(NativeConfinement::from),
        }
    }
}

impl From<Confinement> for NativeConfinement {
    fn from(confinement: Confinement) -> Self {
        Self {
            environment: confinement.environment,
            descriptors: confinement.descriptors,
            privileges: confinement.privileges,
            user: confinement.user,
            capabilities: confinement.capabilities,
            network: confinement.network,
            file_system: confinement.file_system,
            processes: confinement.processes,
            ipc: confinement.ipc,
            landlock: confinement.landlock,
            system_calls: confinement.system_calls,
            resources: confinement.resources,
        }
    }
}

/// Makes a runtime, or says what is wrong with its options.
#[napi(catch_unwind)]
pub fn open_runtime(options: NativeRuntimeOptions) -> Either<NativeRuntime, Misuse> {
    let options = RuntimeOptions {
        isolation: match options.isolation.as_deref() {
            Some("process") => Isolation::Process,
            _ => Isolation::Thread,
        },
        safety_cap_ms: options.safety_cap_ms,
        max_concurrent_runs: options.max_concurrent_runs,
        max_queued_runs: options.max_queued_runs,
        max_stuck_threads: options.max_stuck_threads,
        ready_isolates: options.ready_isolates,
        compile_cache_bytes: options.compile_cache_bytes,
        worker: options.worker.map(PathBuf::from),
        worker_folder: options.worker_folder.map(PathBuf::from),
        runs_per_worker: options.runs_per_worker,
        worker_idle_ms: options.worker_idle_ms,
        spelling: Spelling::Camel,
    };
    match Runtime::new(&options) {
        Ok(runtime) => Either::A(NativeRuntime { runtime }),
        Err(error) => Either::B(error.into()),
    }
}

#[napi]
impl NativeRuntime {
    /// The core's counts, as of now.
    #[napi(catch_unwind)]
    #[must_use]
    pub fn stats(&self) -> NativeStats {
        NativeStats::from(self.runtime.stats())
    }
}

/// A run that has not settled.
pub(crate) struct Live {
    pub(crate) remote: RunHandle,
    /// Its functions that are answered in Rust.
    pub(crate) native: NativeFunctions,
    /// JavaScript has asked it to end, and wants to hear of nothing but that.
    pub(crate) terminated: bool,
}

/// What one JavaScript environment says to the core and hears from it. Touched by its own thread
/// alone, but for the mailbox.
pub(crate) struct State {
    mailbox: Arc<Mailbox>,
    /// Events from the mailbox that JavaScript did not get yet.
    waiting: RefCell<FairQueue<Event>>,
    pub(crate) runs: RefCell<HashMap<u32, Live>>,
    /// Host calls handed to JavaScript and not answered yet, by number.
    pub(crate) calls: RefCell<HashMap<u32, HostCall>>,
    /// The blobs of the frame handed over last, until JavaScript fetches them.
    pub(crate) blobs: RefCell<Vec<Vec<u8>>>,
    /// Large messages that JavaScript has not read yet, by number.
    pub(crate) larges: RefCell<HashMap<u32, Large>>,
    next_large: Cell<u32>,
    /// What runs that have settled told, as far as JavaScript has not fetched it.
    pub(crate) told: RefCell<HashMap<u32, Told>>,
    /// Where to hear the run that was started last, if it is in another process.
    listener: RefCell<Option<EventPoller>>,
    /// What JavaScript's event loop waits for: live runs and closing runtimes.
    pending: Cell<usize>,
    last_run: Cell<u32>,
    last_call: Cell<u32>,
}

thread_local! {
    /// The bridges of this thread, by number: one, unless the program has several environments on a
    /// thread. Plain functions with a number cost less than half of what methods of a class cost.
    static BRIDGES: RefCell<HashMap<u32, Rc<State>>> = RefCell::default();
}

/// Does something with a bridge.
pub(crate) fn with_bridge<T>(bridge: u32, act: impl FnOnce(&State) -> T) -> Result<T> {
    let state = BRIDGES.with_borrow(|bridges| bridges.get(&bridge).cloned());
    state.map(|state| act(&state)).ok_or_else(broken_frame)
}

/// Opens this environment's bridge and returns its number; `wake` is called when there are events to
/// drain.
///
/// # Errors
/// When the environment is ending already.
#[napi(catch_unwind)]
pub fn open_bridge(env: Env, wake: Wake) -> Result<u32> {
    let state = Rc::new(State {
        mailbox: Mailbox::new(wake),
        waiting: RefCell::default(),
        runs: RefCell::default(),
        calls: RefCell::default(),
        blobs: RefCell::default(),
        larges: RefCell::default(),
        next_large: Cell::new(0),
        told: RefCell::default(),
        listener: RefCell::default(),
        pending: Cell::new(0),
        last_run: Cell::new(0),
        last_call: Cell::new(0),
    });
    let number = BRIDGES.with_borrow_mut(|bridges| {
        let number = (0..=u32::MAX).find(|number| !bridges.contains_key(number));
        let number = number.unwrap_or_default();
        bridges.insert(number, Rc::clone(&state));
        number
    });
    env.add_env_cleanup_hook((number, state), |(number, state)| {
        state.end();
        BRIDGES.with_borrow_mut(|bridges| bridges.remove(&number));
    })?;
    Ok(number)
}

/// Starts a run, in the default runtime when none is given, and returns its number.
///
/// # Errors
/// When the frame is not one of `lib/options.ts`.
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
    with_bridge(bridge, |state| {
        let run = free_number(&state.last_run, &state.runs.borrow());
        let host = Arc::new(NodeHost { run, mailbox: Arc::clone(&state.mailbox) });
        let started = match runtime {
            Some(runtime) => runtime.runtime.start(request, host),
            None => Runtime::shared().start(request, host),
        };
        match started {
            Ok(remote) => {
                if let Some(listener) = remote.listener() {
                    state.listener.replace(Some(listener));
                }
                state.runs.borrow_mut().insert(run, Live { remote, native, terminated: false });
                state.hold(env);
                Either::A(run)
            }
            Err(error) => Either::B(error.into()),
        }
    })
}

/// Writes the next events into `inbox`, or returns them when they do not fit.
///
/// # Errors
/// When JavaScript has no memory for them.
#[napi(catch_unwind)]
pub fn drain<'env>(
    env: &'env Env,
    bridge: u32,
    inbox: Inbox<'_>,
) -> Result<Either<u32, Uint8ArraySlice<'env>>> {
    let frame = with_bridge(bridge, |state| {
        state.look();
        state.drain(*env)
    })?;
    let Some(frame) = frame else {
        // Whom this thread waits for may be waiting for its processor.
        std::thread::yield_now();
        return Ok(Either::A(0));
    };
    if let Some(room) = inbox.get_mut(..frame.len()) {
        room.copy_from_slice(&frame);
        return Ok(Either::A(u32::try_from(frame.len()).unwrap_or_default()));
    }
    into_javascript(env, frame).map(Either::B)
}

/// Says that JavaScript will drain again shortly by itself (`true`), so that no one has to wake it,
/// or that it will not; then returns whether events came meanwhile.
///
/// # Errors
/// For a bridge that is not open.
#[napi(catch_unwind)]
pub fn poll(bridge: u32, polls: bool) -> Result<bool> {
    with_bridge(bridge, |state| {
        if !polls {
            state.listen(EventPoller::rest);
        }
        state.mailbox.poll(polls)
    })
}

/// The blobs of the frame handed over last, in order, once.
///
/// # Errors
/// When JavaScript has no memory for them.
#[napi(catch_unwind)]
pub fn blobs(env: &Env, bridge: u32) -> Result<Vec<Uint8ArraySlice<'_>>> {
    let blobs = with_bridge(bridge, |state| state.blobs.take())?;
    blobs.into_iter().map(|blob| into_javascript(env, blob)).collect()
}

/// Closes a runtime; the end of it comes as an event with that number.
///
/// # Errors
/// For a bridge that is not open.
#[napi(catch_unwind)]
pub fn close(env: Env, bridge: u32, runtime: &NativeRuntime, number: u32) -> Result<()> {
    with_bridge(bridge, |state| {
        state.hold(env);
        let mailbox = Arc::clone(&state.mailbox);
        runtime.runtime.close(move || mailbox.push(Event::Closed { number }));
    })
}

impl State {
    /// The environment has ended: its runs end too, and nothing of them is heard any more.
    fn end(&self) {
        self.mailbox.close();
        for (_, live) in self.runs.take() {
            live.remote.terminate(Some("the thread that started the run has ended"));
        }
        self.calls.take();
        self.waiting.take();
        self.larges.take();
        self.told.take();
    }

    /// A frame that begins with the number of its blobs, which [`State::leave_blobs`] writes.
    pub(crate) fn frame(&self) -> Frame {
        let mut frame = Frame::new(self.next_large.get());
        frame.u32(0);
        frame
    }

    /// Keeps what goes beside a frame until JavaScript fetches it, and writes how many blobs there are where
    /// the frame begins.
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

    /// The events of a run go on: JavaScript has read its large message.
    pub(crate) fn resume(&self, run: u32) {
        self.waiting.borrow_mut().resume(u64::from(run));
    }

    fn hold(&self, env: Env) {
        if self.pending.replace(self.pending.get() + 1) == 0 {
            self.mailbox.hold_event_loop(env, true);
        }
    }

    fn release(&self, env: Env) {
        self.pending.set(self.pending.get().saturating_sub(1));
        if self.pending.get() == 0 {
            self.mailbox.hold_event_loop(env, false);
        }
    }

    /// Where the thread looks by itself, and for what comes from another process, it looks for as long as a
    /// turn of the event loop takes.
    fn look(&self) {
        if !self.mailbox.is_polled() {
            return;
        }
        self.listen(|listener| {
            let started = Instant::now();
            while listener.hear() && !self.mailbox.has_events() && started.elapsed() < TURN {
                std::hint::spin_loop();
            }
        });
    }

    /// Does that with what hears runs in other processes. No borrow is held meanwhile.
    fn listen(&self, act: impl FnOnce(&EventPoller)) {
        let listener = self.listener.borrow().clone();
        if let Some(listener) = listener {
            act(&listener);
        }
    }

    /// A frame of events, of each run in turn; none if there are none.
    fn drain(&self, env: Env) -> Option<Vec<u8>> {
        let mut waiting = self.waiting.borrow_mut();
        for event in self.mailbox.take() {
            match event {
                Event::Closed { number } => waiting.push_last(u64::from(number), event),
                Event::Call { run, .. }
                | Event::Start { run, .. }
                | Event::FunctionSettled { run, .. }
                | Event::PromiseSettled { run, .. }
                | Event::Settled { run } => waiting.push(u64::from(run), event),
            }
        }
        if waiting.is_empty() {
            return None;
        }
        let mut frame = self.frame();
        frame.u32(0);
        let mut count = 0_u32;
        while count < MOST_EVENTS && !frame.is_full(MOST_BYTES) {
            let Some((run, event)) = waiting.pop() else { break };
            let larges = frame.larges.len();
            let is_last = matches!(event, Event::Settled { .. });
            count += u32::from(self.write_event(env, &mut frame, event));
            if frame.larges.len() > larges && !is_last {
                // Its next events come after what JavaScript reads bit by bit.
                waiting.hold(run);
            }
        }
        if !waiting.is_empty() {
            count |= MORE;
        }
        frame.bytes[4..8].copy_from_slice(&count.to_le_bytes());
        self.leave_blobs(&mut frame);
        Some(frame.bytes)
    }

    /// Writes an event: its kind, the run it is about, and after the length of it the rest. Says
    /// whether it did.
    fn write_event(&self, env: Env, frame: &mut Frame, event: Event) -> bool {
        match event {
            Event::Call { run, function, args, call } => {
                let mut runs = self.runs.borrow_mut();
                // No host call starts after its run has settled.
                let Some(live) = runs.get_mut(&run).filter(|live| live.remote.running()) else {
                    return false;
                };
                let args = if function == REPORT_SINK {
                    live.remote.take_report().unwrap_or_else(Value::undefined)
                } else {
                    args
                };
                let mut calls = self.calls.borrow_mut();
                let number = free_number(&self.last_call, &calls);
                calls.insert(number, call);
                head(frame, 0, run);
                frame.measured(|frame| {
                    frame.u32(function);
                    frame.u32(number);
                    frame.message(args);
                });
            }
            Event::Start { run, .. }
            | Event::FunctionSettled { run, .. }
            | Event::PromiseSettled { run, .. }
                if self.runs.borrow().get(&run).is_none_or(|live| live.terminated) =>
            {
                return false;
            }
            // Made before the run ended, of which JavaScript has not heard.
            Event::Start { run, function, args, promise } => {
                head(frame, 5, run);
                frame.measured(|frame| {
                    frame.u32(function);
                    frame.u32(promise);
                    frame.message(args);
                });
            }
            Event::FunctionSettled { run, call, completion } => {
                head(frame, 1, run);
                frame.measured(|frame| completed(frame, call, completion));
            }
            Event::PromiseSettled { run, promise, completion } => {
                head(frame, 2, run);
                frame.measured(|frame| completed(frame, promise, completion));
            }
            Event::Settled { run } => {
                let Some(live) = self.runs.borrow_mut().remove(&run) else { return false };
                self.release(env);
                let Some(outcome) = live.remote.take_result() else { return false };
                head(frame, 3, run);
                frame.measured(|frame| {
                    if let Some(told) = write_outcome(frame, outcome) {
                        self.told.borrow_mut().insert(run, told);
                    }
                });
            }
            Event::Closed { number } => {
                self.release(env);
                head(frame, 4, number);
            }
        }
        true
    }
}

/// The next number that is not in use: they come round after 2^32.
fn free_number<T>(last: &Cell<u32>, used: &HashMap<u32, T>) -> u32 {
    loop {
        let number = last.get().wrapping_add(1);
        last.set(number);
        if !used.contains_key(&number) {
            return number;
        }
    }
}

fn head(frame: &mut Frame, kind: u8, number: u32) {
    frame.u8(kind);
    frame.u32(number);
}

fn completed(frame: &mut Frame, number: u32, completion: Completion) {
    frame.u32(number);
    frame.u8(u8::from(completion.is_ok()));
    frame.message(completion.unwrap_or_else(|thrown| thrown));
}
