//! Host functions that are answered in Rust.
//!
//! In: a [`NativeFunction`], from any crate, which a binding hands over beside its own functions; calls of the sandbox.
//! Out: answers, which no other language sees. [`NativeHost`] stands before the binding's own [`Host`] and takes the
//! calls that are for native functions; all others pass through. Both executors speak to it as to any host, so a
//! native function works the same on threads and in processes, and always runs in the host's process.

use std::{
    collections::HashMap,
    fmt,
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::{
        Arc, OnceLock, Weak,
        atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::task::AbortHandle;

use super::{
    executor,
    handle::RunControl,
    host::{ASYNC_FUNCTION, Completion, Host, HostCall, Refusal},
    inbound::Inbound,
};
use crate::{
    os::sync::Mutex,
    value::{Charge, ErrorClass, Kinds, Value, Writer},
};

/// In the numbers of native functions, and of the promises that they answer with. A binding gives out none with it.
const NATIVE: u32 = 1 << 30;

/// A host function that is answered in Rust, without a turn of the caller's language.
///
/// Implement it for a capability: something that code in a sandbox may do, such as a request or a query. One object
/// may serve many runs at once. A panic in it is an error in the sandbox.
pub trait NativeFunction: Send + Sync + 'static {
    /// The name in [`NativeRecord`]s and in errors, such as `fetch`. Inside, the function has the name under which it
    /// is handed over.
    fn name(&self) -> &str;

    /// On which thread it is called, and whether the sandbox waits.
    fn mode(&self) -> NativeMode {
        NativeMode::Inline
    }

    /// Answers a call.
    fn call(&self, call: NativeCall) -> NativeAnswer;
}

/// On which thread a [`NativeFunction`] is called, and whether the sandbox waits for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum NativeMode {
    /// On the thread that computes the run, or in processes on the one thread that listens to all of them: for what
    /// takes microseconds. The sandbox waits. A round trip costs about a microsecond on threads.
    #[default]
    Inline,
    /// On a thread for things that take long. The sandbox waits, other runs go on. When the run ends nobody waits any
    /// more, but the call goes on: end it from [`NativeRun::on_end`].
    Blocking,
    /// On a thread of this library, as [`NativeMode::Inline`], but the sandbox does not wait: it always gets a promise.
    Async,
}

/// What a [`NativeFunction`] answers with.
pub enum NativeAnswer {
    /// A value, which the call returns, or an error, which it throws.
    Now(Completion),
    /// A promise of what the future comes to. The future runs in a tokio runtime of this library and is dropped when
    /// the run settles before it is done.
    Later(Pin<Box<dyn Future<Output = Completion> + Send>>),
}

impl NativeAnswer {
    /// A promise of what the future comes to.
    pub fn later(future: impl Future<Output = Completion> + Send + 'static) -> Self {
        Self::Later(Box::pin(future))
    }
}

impl From<Completion> for NativeAnswer {
    fn from(completion: Completion) -> Self {
        Self::Now(completion)
    }
}

impl fmt::Debug for NativeAnswer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Now(completion) => out.debug_tuple("Now").field(completion).finish(),
            Self::Later(_) => out.debug_struct("Later").finish_non_exhaustive(),
        }
    }
}

/// A call of a [`NativeFunction`].
#[derive(Debug)]
pub struct NativeCall {
    /// All arguments in one array. They count against the run's memory limit for as long as the value lives.
    pub args: Value,
    /// The run that calls.
    pub run: NativeRun,
}

impl NativeCall {
    /// The arguments as a tuple or a sequence; missing ones are only allowed where their type is an `Option` at the
    /// end of a struct that says so.
    ///
    /// # Errors
    /// The TypeError that the call should throw.
    pub fn arguments<T: serde::de::DeserializeOwned>(&self) -> Result<T, Value> {
        self.args
            .deserialize()
            .map_err(|error| error_value(ErrorClass::TypeError, &error.to_string()))
    }
}

/// The run that calls a [`NativeFunction`]. Cheap to clone; keeps nothing of the run alive.
#[derive(Clone)]
pub struct NativeRun(Arc<RunState>);

impl NativeRun {
    /// A number that no other run of this process has: the key of what a function keeps for each run.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.0.number
    }

    /// Whether the run has settled: nobody waits for an answer.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.0.over.load(Ordering::Acquire)
    }

    /// Has that called, on the thread that ends the run, as soon as it has settled: to interrupt a blocking call. It
    /// must return at once. It is called right here if the run has settled, and never once the guard is dropped.
    #[must_use]
    pub fn on_end(&self, hook: impl FnOnce() + Send + 'static) -> EndHook {
        let key = self.0.next_hook.fetch_add(1, Ordering::Relaxed);
        let mut ends = self.0.ends.lock();
        if self.is_over() {
            drop(ends);
            hook();
        } else {
            ends.insert(key, Box::new(hook));
        }
        EndHook { run: Arc::downgrade(&self.0), key }
    }

    /// Counts so many bytes, which the function holds for the run, against its memory limit until the [`Charge`] is
    /// dropped. `None` if there is no room: the run ends as `memory`.
    #[must_use]
    pub fn charge(&self, bytes: usize) -> Option<Charge> {
        self.0.control()?.charge(bytes)
    }
}

impl fmt::Debug for NativeRun {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("NativeRun").field("number", &self.0.number).finish_non_exhaustive()
    }
}

/// Keeps a hook of [`NativeRun::on_end`] in place.
#[derive(Debug)]
pub struct EndHook {
    run: Weak<RunState>,
    key: u64,
}

impl Drop for EndHook {
    fn drop(&mut self) {
        if let Some(run) = self.run.upgrade() {
            let hook = run.ends.lock().remove(&self.key);
            drop(hook);
        }
    }
}

/// One call of a [`NativeFunction`], for an audit.
#[derive(Debug)]
#[non_exhaustive]
pub struct NativeRecord<'a> {
    /// [`NativeFunction::name`].
    pub name: &'a str,
    /// [`NativeRun::number`].
    pub run: u64,
    /// When it was called.
    pub started: Instant,
    /// How long it took to the answer; for a promise, until that settled. Calls that end with their run have none.
    pub duration: Duration,
    /// The bytes of the arguments' message.
    pub input_bytes: usize,
    /// The bytes of the answer's message.
    pub output_bytes: usize,
    /// Whether it returned, or its promise was fulfilled.
    pub ok: bool,
}

type Observer = Arc<dyn Fn(&NativeRecord<'_>) + Send + Sync>;

/// The native functions of one run, by the numbers under which they cross. Cheap to clone; all clones are one table.
#[derive(Clone, Default)]
pub struct NativeFunctions(Arc<Table>);

#[derive(Default)]
struct Table {
    known: Mutex<Known>,
    observer: OnceLock<Observer>,
}

#[derive(Default)]
struct Known {
    functions: Vec<Arc<dyn NativeFunction>>,
    /// By their addresses, which the table keeps alive.
    numbers: HashMap<usize, u32>,
}

impl NativeFunctions {
    /// An empty table.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The number under which a function crosses, as `HOST_FUNCTION`: the same one each time. May be asked for while
    /// the run goes on.
    #[must_use]
    pub fn number(&self, function: &Arc<dyn NativeFunction>) -> u32 {
        let mut known = self.0.known.lock();
        let next = u32::try_from(known.functions.len()).unwrap_or(NATIVE - 1) & (NATIVE - 1);
        let address = Arc::as_ptr(function).cast::<()>().addr();
        let number = *known.numbers.entry(address).or_insert(next);
        if number == next {
            known.functions.push(Arc::clone(function));
        }
        let is_async = function.mode() == NativeMode::Async;
        number | NATIVE | if is_async { ASYNC_FUNCTION } else { 0 }
    }

    /// The function of a number that came back from the sandbox; `None` for one of the binding's own.
    #[must_use]
    pub fn get(&self, number: u32) -> Option<Arc<dyn NativeFunction>> {
        let index = Self::is_native(number).then_some(number & (NATIVE - 1))?;
        self.0.known.lock().functions.get(index as usize).cloned()
    }

    /// Whether a host function's number is one of a native function.
    #[must_use]
    pub fn is_native(number: u32) -> bool {
        number & NATIVE != 0 && number != super::host::REPORT_SINK
    }

    /// Has each call told when it is answered, on the thread that answers it. Only the first observer counts.
    pub fn observe(&self, observer: impl Fn(&NativeRecord<'_>) + Send + Sync + 'static) {
        // A second one is dropped, as documented.
        let _ = self.0.observer.set(Arc::new(observer));
    }
}

impl fmt::Debug for NativeFunctions {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = self.0.known.lock();
        out.debug_set().entries(known.functions.iter().map(|function| function.name())).finish()
    }
}

/// What native functions know of their run.
struct RunState {
    number: u64,
    over: AtomicBool,
    control: OnceLock<Weak<dyn RunControl>>,
    next_promise: AtomicU32,
    next_hook: AtomicU64,
    ends: Mutex<HashMap<u64, Box<dyn FnOnce() + Send>>>,
    /// The futures that go on, by their promises; `None` for one that is about to be spawned.
    tasks: Mutex<HashMap<u32, Option<AbortHandle>>>,
}

impl RunState {
    /// The run; `None` when it is gone. Waits for the moment in which the run is started.
    fn control(&self) -> Option<Arc<dyn RunControl>> {
        self.control.wait().upgrade()
    }
}

impl fmt::Debug for RunState {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("RunState").field("number", &self.number).finish_non_exhaustive()
    }
}

/// The host of a run that has native functions: it answers their calls, and hands all others on.
pub(crate) struct NativeHost {
    host: Arc<dyn Host>,
    functions: NativeFunctions,
    run: NativeRun,
}

impl NativeHost {
    pub(crate) fn new(host: Arc<dyn Host>, functions: NativeFunctions) -> Self {
        static RUNS: AtomicU64 = AtomicU64::new(0);
        let state = RunState {
            number: RUNS.fetch_add(1, Ordering::Relaxed),
            over: AtomicBool::new(false),
            control: OnceLock::new(),
            next_promise: AtomicU32::new(0),
            next_hook: AtomicU64::new(0),
            ends: Mutex::default(),
            tasks: Mutex::default(),
        };
        Self { host, functions, run: NativeRun(Arc::new(state)) }
    }

    /// The run has started.
    pub(crate) fn started(&self, run: &Arc<dyn RunControl>) {
        let _ = self.run.0.control.set(Arc::downgrade(run));
    }

    fn answer(&self, function: Arc<dyn NativeFunction>, args: Value, call: HostCall) {
        let audit = self.audit(&function, &args);
        let call_of = NativeCall { args, run: self.run.clone() };
        if function.mode() == NativeMode::Blocking {
            let run = Arc::clone(&self.run.0);
            let answer = move || reply(&run, called(&*function, call_of), audit, call);
            match executor::own() {
                Some(executor) => drop(executor.spawn_blocking(answer)),
                // Nobody answers: the sandbox is told so when the call is dropped.
                None => drop(answer),
            }
            return;
        }
        reply(&self.run.0, called(&*function, call_of), audit, call);
    }

    fn audit(&self, function: &Arc<dyn NativeFunction>, args: &Value) -> Option<Audit> {
        let observer = Arc::clone(self.functions.0.observer.get()?);
        Some(Audit {
            observer,
            function: Arc::clone(function),
            run: self.run.number(),
            started: Instant::now(),
            input_bytes: args.held_bytes(),
        })
    }
}

impl Host for NativeHost {
    fn call(&self, function: u32, args: Value, call: HostCall) {
        if !NativeFunctions::is_native(function) {
            return self.host.call(function, args, call);
        }
        match self.functions.get(function) {
            Some(native) => self.answer(native, args, call),
            None => call.reply(Err(unknown())),
        }
    }

    fn start(&self, function: u32, args: Value, promise: u32) {
        if !NativeFunctions::is_native(function) {
            return self.host.start(function, args, promise);
        }
        let Some(native) = self.functions.get(function) else {
            return settle(&self.run.0, promise, Err(unknown()));
        };
        let audit = self.audit(&native, &args);
        match called(&*native, NativeCall { args, run: self.run.clone() }) {
            NativeAnswer::Now(completion) => {
                tell(audit, &completion);
                settle(&self.run.0, promise, completion);
            }
            NativeAnswer::Later(future) => spawn(&self.run.0, promise, future, audit),
        }
    }

    fn function_settled(&self, call: u32, completion: Completion) {
        self.host.function_settled(call, completion);
    }

    fn promise_settled(&self, promise: u32, completion: Completion) {
        self.host.promise_settled(promise, completion);
    }

    fn settled(&self) {
        let run = &self.run.0;
        let hooks = {
            let mut ends = run.ends.lock();
            run.over.store(true, Ordering::Release);
            std::mem::take(&mut *ends)
        };
        let tasks = std::mem::take(&mut *run.tasks.lock());
        tasks.into_values().flatten().for_each(|task| task.abort());
        for hook in hooks.into_values() {
            // A bug of the function's: the run has settled all the same.
            let _ = catch_unwind(AssertUnwindSafe(hook));
        }
        self.host.settled();
    }

    fn validated_kinds(&self) -> Kinds {
        self.host.validated_kinds()
    }

    fn refusal(&self, message: &Value) -> Option<Refusal> {
        self.host.refusal(message)
    }
}

/// One call that is to be told to an observer.
struct Audit {
    observer: Observer,
    function: Arc<dyn NativeFunction>,
    run: u64,
    started: Instant,
    input_bytes: usize,
}

fn tell(audit: Option<Audit>, completion: &Completion) {
    let Some(audit) = audit else { return };
    let (Ok(value) | Err(value)) = completion;
    (audit.observer)(&NativeRecord {
        name: audit.function.name(),
        run: audit.run,
        started: audit.started,
        duration: audit.started.elapsed(),
        input_bytes: audit.input_bytes,
        output_bytes: value.held_bytes(),
        ok: completion.is_ok(),
    });
}

fn called(function: &dyn NativeFunction, call: NativeCall) -> NativeAnswer {
    catch_unwind(AssertUnwindSafe(|| function.call(call))).unwrap_or_else(|_panic| {
        let text = format!("the native function '{}' panicked", function.name());
        NativeAnswer::Now(Err(error_value(ErrorClass::Error, &text)))
    })
}

fn reply(run: &Arc<RunState>, answer: NativeAnswer, audit: Option<Audit>, call: HostCall) {
    match answer {
        NativeAnswer::Now(completion) => {
            tell(audit, &completion);
            call.reply(completion);
        }
        NativeAnswer::Later(future) => {
            let promise = NATIVE | run.next_promise.fetch_add(1, Ordering::Relaxed) & (NATIVE - 1);
            let mut writer = Writer::new();
            writer.host_promise(promise);
            // The promise first: what settles it comes after it.
            call.reply(Ok(writer.finish()));
            spawn(run, promise, future, audit);
        }
    }
}

/// Lets a future go on, which settles that promise.
fn spawn(
    run: &Arc<RunState>,
    promise: u32,
    future: Pin<Box<dyn Future<Output = Completion> + Send>>,
    audit: Option<Audit>,
) {
    let Some(executor) = executor::own() else {
        let text = "the system has no thread left for native functions";
        return settle(run, promise, Err(error_value(ErrorClass::Error, text)));
    };
    {
        let mut tasks = run.tasks.lock();
        if run.over.load(Ordering::Acquire) {
            return;
        }
        tasks.insert(promise, None);
    }
    let settling = Settling { run: Arc::clone(run), promise, completion: None };
    let task = executor.spawn(async move {
        let mut settling = settling;
        let completion = future.await;
        tell(audit, &completion);
        settling.completion = Some(completion);
    });
    let mut tasks = run.tasks.lock();
    match tasks.get_mut(&promise) {
        Some(handle) => *handle = Some(task.abort_handle()),
        // It is done already, or the run is over, which ended no task that it did not know.
        None if run.over.load(Ordering::Acquire) => task.abort(),
        None => {}
    }
}

/// Settles a promise however its future ends: an error where it was dropped or panicked.
struct Settling {
    run: Arc<RunState>,
    promise: u32,
    completion: Option<Completion>,
}

impl Drop for Settling {
    fn drop(&mut self) {
        self.run.tasks.lock().remove(&self.promise);
        let completion = self.completion.take().unwrap_or_else(|| {
            Err(error_value(ErrorClass::Error, "the native function did not answer the call"))
        });
        settle(&self.run, self.promise, completion);
    }
}

fn settle(run: &RunState, promise: u32, completion: Completion) {
    if !run.over.load(Ordering::Acquire)
        && let Some(control) = run.control()
    {
        control.deliver(Inbound::PromiseSettled { promise, completion });
    }
}

fn unknown() -> Value {
    error_value(ErrorClass::TypeError, "the host does not know this function")
}

fn error_value(class: ErrorClass, message: &str) -> Value {
    let mut writer = Writer::new();
    writer.error(class);
    writer.string(class.name());
    writer.string(message);
    writer.undefined();
    writer.undefined();
    writer.finish()
}
