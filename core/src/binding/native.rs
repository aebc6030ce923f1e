//! Host functions that are answered in Rust.
//!
//! In: a [`NativeFunction`], from any crate, which a binding hands over beside its own functions; calls of the sandbox.
//! Out: answers, which no other language sees. [`NativeHost`] wraps the binding's own [`Host`]: it answers calls of
//! native functions and passes all others on. Both executors call it like any host, so a native function works the same
//! on threads and in processes, and always runs in the host's process.

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
    handle::Recipient,
    host::{ASYNC_FUNCTION, Completion, Host, HostCall, REPORT_SINK, Refusal},
    inbound::Inbound,
    interception::Interception,
};
use crate::{
    data::{cell::SessionState, outcome::ExecutionLog},
    os::sync::Mutex,
    value::{Charge, ErrorClass, Kinds, Value, Writer},
};

/// Set in the numbers of native functions, and of the promises that they answer with. A binding never sets it.
const NATIVE: u32 = 1 << 30;

/// Set, too, in the numbers of the native functions of the process's extension, which are the same in every run.
const OF_EXTENSION: u32 = 1 << 29;

/// The number of a native function of the extension, by its place.
pub(crate) fn extension_number(place: usize, is_async: bool) -> u32 {
    let place = u32::try_from(place).unwrap_or(u32::MAX) & (OF_EXTENSION - 1);
    place | NATIVE | OF_EXTENSION | if is_async { ASYNC_FUNCTION } else { 0 }
}

/// The place of a native function of the extension, if the number is one of those.
pub(crate) fn extension_place(number: u32) -> Option<usize> {
    let is_one = NativeFunctions::is_native(number) && number & OF_EXTENSION != 0;
    is_one.then_some((number & (OF_EXTENSION - 1)) as usize)
}

/// A host function that is answered in Rust, without running code of the caller's language.
///
/// Implement it for a capability: an action that code in a sandbox may take, such as a request or a query. One object
/// may serve many runs at once. A panic in it throws an error in the sandbox.
pub trait NativeFunction: Send + Sync + 'static {
    /// The name in [`NativeRecord`]s and in errors, such as `fetch`. In the sandbox the function has the name under
    /// which it is handed over.
    fn name(&self) -> &str;

    /// Whether the sandbox waits.
    fn mode(&self) -> NativeMode {
        NativeMode::Sync
    }

    /// Answers a call. It is called on the thread that computes the run, and under isolation by process on the one
    /// thread that reads from all workers. So it must return within microseconds, for any arguments. Work that grows
    /// with them belongs in [`NativeAnswer::Blocking`] or [`NativeAnswer::Later`]. Copies of the arguments count
    /// against the run only if [`NativeRun::charge`] charges them.
    fn call(&self, call: NativeCall) -> NativeAnswer;
}

/// Whether the sandbox waits for a [`NativeFunction`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum NativeMode {
    /// The sandbox waits for the answer. A round trip costs about a microsecond on threads.
    #[default]
    Sync,
    /// The sandbox does not wait: it always gets a promise.
    Async,
}

/// The answer of a [`NativeFunction`].
pub enum NativeAnswer {
    /// A value, which the call returns, or an error, which it throws.
    Now(Completion),
    /// The outcome of this work, which runs on a thread for long work. The sandbox waits, unless the function is
    /// [`NativeMode::Async`]; other runs do not wait. If the run ends first, nobody waits for the work any more, but it
    /// continues: interrupt it from [`NativeRun::on_end`].
    Blocking(Box<dyn FnOnce() -> Completion + Send>),
    /// A promise of the future's output. The future runs in a tokio runtime of this library, and is dropped if the run
    /// settles first.
    Later(Answering),
    /// A promise of the output of a future that can be made again, because it only waits. A session can be copied while
    /// such a future is under way: the copy has one of its own, for which the function is called with the copy.
    Repeatable(MakeAnswer),
}

/// The future of an answer.
pub type Answering = Pin<Box<dyn Future<Output = Completion> + Send>>;

/// Makes the future of an answer for a run.
pub type MakeAnswer = Arc<dyn Fn(&NativeRun) -> Answering + Send + Sync>;

impl NativeAnswer {
    /// The outcome of work that takes long.
    pub fn blocking(work: impl FnOnce() -> Completion + Send + 'static) -> Self {
        Self::Blocking(Box::new(work))
    }

    /// A promise of the future's output.
    pub fn later(future: impl Future<Output = Completion> + Send + 'static) -> Self {
        Self::Later(Box::pin(future))
    }

    /// A promise of the output of a future that only waits. `make` must return at once.
    pub fn repeatable<F>(make: impl Fn(&NativeRun) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Completion> + Send + 'static,
    {
        Self::Repeatable(Arc::new(move |run| Box::pin(make(run))))
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
            Self::Blocking(_) => out.debug_struct("Blocking").finish_non_exhaustive(),
            Self::Later(_) => out.debug_struct("Later").finish_non_exhaustive(),
            Self::Repeatable(_) => out.debug_struct("Repeatable").finish_non_exhaustive(),
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
    /// The arguments as a tuple or a sequence. Arguments may be missing only if `T` is a struct that allows it: at its
    /// end, with the type `Option`.
    ///
    /// # Errors
    /// The TypeError that the call should throw.
    pub fn arguments<T: serde::de::DeserializeOwned>(&self) -> Result<T, Value> {
        self.args
            .deserialize()
            .map_err(|error| error_value(ErrorClass::TypeError, &error.to_string()))
    }
}

/// The run that calls a [`NativeFunction`]; all cells of a session are one. Cheap to clone; keeps nothing of the run
/// alive.
#[derive(Clone)]
pub struct NativeRun(Arc<RunState>, Option<Interception>);

impl NativeRun {
    /// A number that no other run of this process has, under which a function can keep data for each run.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.0.number
    }

    /// The interception of the run, or of the cell that calls. Outside of cells it is that of their session.
    #[must_use]
    pub fn interception(&self) -> Option<&Interception> {
        self.1.as_ref()
    }

    /// Whether the run has settled: nobody waits for an answer.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.0.is_over()
    }

    /// Calls the hook as soon as the run has settled, on the thread that settled it, for example to interrupt a
    /// blocking call. The hook must return at once. It is called right here if the run has settled already, and never
    /// once the guard is dropped.
    #[must_use]
    pub fn on_end(&self, hook: impl FnOnce() + Send + 'static) -> EndHook {
        let key = self.0.key();
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
    /// dropped. If all that is charged or under way would exceed the limit, it returns `None` and the run ends as
    /// `memory`. The run also ends so if the sandbox allocates while its heap and all of that exceed the limit.
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

/// One answered call of a [`NativeFunction`], for an audit. Calls that end with their run have no record.
#[derive(Debug)]
#[non_exhaustive]
pub struct NativeRecord<'a> {
    /// [`NativeFunction::name`].
    pub name: &'a str,
    /// [`NativeRun::number`].
    pub run: u64,
    /// When it was called.
    pub started: Instant,
    /// The time from the call to the answer, or until the promise that it answered with has settled.
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

/// Native functions by their places; `None` for those that a run has not.
type ExtensionFunctions = Arc<[Option<Arc<dyn NativeFunction>>]>;

#[derive(Default)]
struct Table {
    known: Mutex<Known>,
    /// Those of the extension, by their places.
    of_extension: OnceLock<ExtensionFunctions>,
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

    /// The number under which a function crosses, as `HOST_FUNCTION`: the same one each time. May be called while the
    /// run is running.
    #[must_use]
    pub fn number(&self, function: &Arc<dyn NativeFunction>) -> u32 {
        let is_it = |known: &Option<Arc<dyn NativeFunction>>| {
            known.as_ref().is_some_and(|known| Arc::ptr_eq(known, function))
        };
        let of_extension = self.0.of_extension.get();
        if let Some(place) = of_extension.and_then(|known| known.iter().position(is_it)) {
            return extension_number(place, function.mode() == NativeMode::Async);
        }
        let mut known = self.0.known.lock();
        let next = u32::try_from(known.functions.len()).unwrap_or(u32::MAX) & (OF_EXTENSION - 1);
        let address = Arc::as_ptr(function).cast::<()>().addr();
        let number = *known.numbers.entry(address).or_insert(next);
        if number == next {
            known.functions.push(Arc::clone(function));
        }
        let is_async = function.mode() == NativeMode::Async;
        number | NATIVE | if is_async { ASYNC_FUNCTION } else { 0 }
    }

    /// The function with a number that the sandbox sent back; `None` for one of the binding's own.
    #[must_use]
    pub fn get(&self, number: u32) -> Option<Arc<dyn NativeFunction>> {
        if let Some(place) = extension_place(number) {
            return self.0.of_extension.get()?.get(place)?.clone();
        }
        let index = Self::is_native(number).then_some(number & (OF_EXTENSION - 1))?;
        self.0.known.lock().functions.get(index as usize).cloned()
    }

    /// Gives the runs of this table those native functions of the extension, by their places in
    /// [`Extension::natives`](crate::Extension::natives). The first call counts.
    pub fn extend(&self, functions: &ExtensionFunctions) {
        // A second one is dropped, as documented.
        let _ = self.0.of_extension.set(Arc::clone(functions));
    }

    /// Whether a host function's number is one of a native function.
    #[must_use]
    pub fn is_native(number: u32) -> bool {
        number & NATIVE != 0 && number != REPORT_SINK
    }

    /// Calls the observer with each answered call, on the thread that answers it. Only the first observer counts.
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

/// The state that the native functions of a run, or of a session, share.
struct RunState {
    number: u64,
    over: AtomicBool,
    control: OnceLock<Weak<dyn Recipient>>,
    next_promise: AtomicU32,
    /// Keys of hooks and tasks.
    next_key: AtomicU64,
    ends: Mutex<HashMap<u64, Box<dyn FnOnce() + Send>>>,
    /// The futures that are running. Their keys are not their promises: a worker that was taken over may use a number
    /// twice, and both futures must end with the run.
    tasks: Mutex<HashMap<u64, Task>>,
}

/// A future under way.
#[derive(Default)]
struct Task {
    /// `None` while it is about to be spawned.
    handle: Option<AbortHandle>,
    /// For a copy of the session.
    again: Option<Repeatable>,
}

impl Task {
    fn abort(self) {
        if let Some(handle) = self.handle {
            handle.abort();
        }
    }
}

/// A future under way that a copy of the session makes again.
#[derive(Clone)]
pub(crate) struct Repeatable {
    /// The number of its promise, in the copy, too.
    pub(crate) promise: u32,
    make: MakeAnswer,
}

impl fmt::Debug for Repeatable {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Repeatable").field("promise", &self.promise).finish_non_exhaustive()
    }
}

impl RunState {
    /// The run; `None` when it is gone. It is known before its first call.
    fn control(&self) -> Option<Arc<dyn Recipient>> {
        self.control.get()?.upgrade()
    }

    fn key(&self) -> u64 {
        self.next_key.fetch_add(1, Ordering::Relaxed)
    }

    fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }

    /// Ends all work of the run, which has settled.
    fn end(&self) {
        let hooks = {
            let mut ends = self.ends.lock();
            self.over.store(true, Ordering::Release);
            std::mem::take(&mut *ends)
        };
        let tasks = std::mem::take(&mut *self.tasks.lock());
        tasks.into_values().for_each(Task::abort);
        for hook in hooks.into_values() {
            // A panic here is a bug of the function; the run has settled all the same.
            let _ = catch_unwind(AssertUnwindSafe(hook));
        }
    }
}

impl fmt::Debug for RunState {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("RunState").field("number", &self.number).finish_non_exhaustive()
    }
}

/// The host of a run that has native functions: it answers their calls and passes all others on.
///
/// All cells of a session share the state of one such host: to a native function, they are one run.
pub(crate) struct NativeHost {
    host: Arc<dyn Host>,
    functions: NativeFunctions,
    run: NativeRun,
    /// Whether it is that of a cell, whose end is not the end of the session.
    is_cell: bool,
}

impl NativeHost {
    pub(crate) fn new(
        host: Arc<dyn Host>,
        functions: NativeFunctions,
        interception: Option<Interception>,
    ) -> Self {
        static RUNS: AtomicU64 = AtomicU64::new(0);
        let state = RunState {
            number: RUNS.fetch_add(1, Ordering::Relaxed),
            over: AtomicBool::new(false),
            control: OnceLock::new(),
            next_promise: AtomicU32::new(0),
            next_key: AtomicU64::new(0),
            ends: Mutex::default(),
            tasks: Mutex::default(),
        };
        Self { host, functions, run: NativeRun(Arc::new(state), interception), is_cell: false }
    }

    /// The host of a cell of this one's session.
    pub(crate) fn cell(&self, host: Arc<dyn Host>, interception: Option<Interception>) -> Self {
        let run = NativeRun(Arc::clone(&self.run.0), interception);
        Self { host, functions: self.functions.clone(), run, is_cell: true }
    }

    /// The binding's own host.
    pub(crate) fn bare(&self) -> Arc<dyn Host> {
        Arc::clone(&self.host)
    }

    /// This moment, for [`NativeHost::undo`].
    pub(crate) fn now(&self) -> u64 {
        self.run.0.key()
    }

    /// Ends all work that has begun since that moment: the cell that it is for was rolled back.
    pub(crate) fn undo(&self, since: u64) {
        let run = &self.run.0;
        let hooks: Vec<_> = run.ends.lock().extract_if(|key, _| *key >= since).collect();
        let tasks: Vec<_> = run.tasks.lock().extract_if(|key, _| *key >= since).collect();
        for (_, task) in tasks {
            task.abort();
        }
        for (_, hook) in hooks {
            // A panic here is a bug of the function; the cell is over all the same.
            let _ = catch_unwind(AssertUnwindSafe(hook));
        }
    }

    /// Receives the run before it begins, and so before its first call.
    pub(crate) fn started(&self, run: &Arc<dyn Recipient>) {
        let _ = self.run.0.control.set(Arc::downgrade(run));
    }

    /// The futures under way that a copy of the session makes again. One of them may end before the copy is made.
    pub(crate) fn repeatable(&self) -> Vec<Repeatable> {
        self.run.0.tasks.lock().values().filter_map(|task| task.again.clone()).collect()
    }

    /// Makes the futures again that the session had of which this one's is a copy. Its outcomes may come a second time:
    /// those have no effect.
    pub(crate) fn repeat(&self, of: &Self, under_way: Vec<Repeatable>) {
        let run = &self.run.0;
        // Promises that wait in the copy keep their numbers.
        run.next_promise.store(of.run.0.next_promise.load(Ordering::Relaxed), Ordering::Relaxed);
        for again in under_way {
            self.spawn_again(again, None);
        }
    }

    fn spawn_again(&self, again: Repeatable, audit: Option<Audit>) {
        let make = || (again.make)(&self.run);
        let promise = again.promise;
        match catch_unwind(AssertUnwindSafe(make)) {
            Ok(future) => spawn(&self.run.0, promise, future, (Some(again), audit)),
            Err(_panic) => {
                let text = "the native function panicked";
                settle(&self.run.0, promise, Err(error_value(ErrorClass::Error, text)));
            }
        }
    }

    /// Answers with a promise of the host, and returns its number. It is sent first, because its outcome must come after
    /// it.
    fn promise(&self, call: HostCall) -> u32 {
        let next = self.run.0.next_promise.fetch_add(1, Ordering::Relaxed);
        let promise = NATIVE | next & (NATIVE - 1);
        let mut writer = Writer::new();
        writer.host_promise(promise);
        call.reply(Ok(writer.finish()));
        promise
    }

    fn answer(&self, function: &Arc<dyn NativeFunction>, args: Value, call: HostCall) {
        let audit = self.audit(function, &args);
        let run = &self.run.0;
        match called(&**function, NativeCall { args, run: self.run.clone() }) {
            NativeAnswer::Now(completion) => {
                report(audit, &completion);
                call.reply(completion);
            }
            NativeAnswer::Blocking(work) => {
                // Without a thread the call is dropped, which throws an error in the sandbox.
                run_blocking(run, work, audit, move |completion| call.reply(completion));
            }
            NativeAnswer::Later(future) => {
                let promise = self.promise(call);
                spawn(run, promise, future, (None, audit));
            }
            NativeAnswer::Repeatable(make) => {
                let promise = self.promise(call);
                self.spawn_again(Repeatable { promise, make }, audit);
            }
        }
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
            Some(native) => self.answer(&native, args, call),
            None => call.reply(Err(unknown())),
        }
    }

    fn start(&self, function: u32, args: Value, promise: u32) {
        if let Some(completion) = self.start_or_answer(function, args, promise) {
            settle(&self.run.0, promise, completion);
        }
    }

    fn start_or_answer(&self, function: u32, args: Value, promise: u32) -> Option<Completion> {
        if !NativeFunctions::is_native(function) {
            return self.host.start_or_answer(function, args, promise);
        }
        let Some(native) = self.functions.get(function) else { return Some(Err(unknown())) };
        let audit = self.audit(&native, &args);
        match called(&*native, NativeCall { args, run: self.run.clone() }) {
            NativeAnswer::Now(completion) => {
                report(audit, &completion);
                return Some(completion);
            }
            NativeAnswer::Blocking(work) => {
                let settling = Settling::new(&self.run.0, promise);
                run_blocking(&self.run.0, work, audit, |completion| settling.settle(completion));
            }
            NativeAnswer::Later(future) => spawn(&self.run.0, promise, future, (None, audit)),
            NativeAnswer::Repeatable(make) => {
                self.spawn_again(Repeatable { promise, make }, audit);
            }
        }
        None
    }

    fn reported(&self, report: Value) -> Value {
        match &self.run.1 {
            Some(interception) => interception.report(report),
            None => self.host.reported(report),
        }
    }

    fn function_settled(&self, call: u32, completion: Completion) {
        self.host.function_settled(call, completion);
    }

    fn promise_settled(&self, promise: u32, completion: Completion) {
        self.host.promise_settled(promise, completion);
    }

    fn settled(&self) {
        let Some(interception) = &self.run.1 else {
            if !self.is_cell {
                self.run.0.end();
            }
            return self.host.settled();
        };
        let (host, run) = (Arc::clone(&self.host), Arc::clone(&self.run.0));
        if self.is_cell {
            return interception.ended(false, || {}, move || host.settled());
        }
        let by_itself = run.control().is_some_and(|control| control.ended_by_itself());
        interception.ended(by_itself, move || run.end(), move || host.settled());
    }

    fn concluded(&self, state: SessionState) {
        if let Some(interception) = &self.run.1 {
            interception.interceptor().concluded(state);
        }
        self.host.concluded(state);
    }

    fn logged(&self, log: &ExecutionLog) {
        if let Some(interception) = &self.run.1 {
            interception.interceptor().logged(log);
        }
        self.host.logged(log);
    }

    fn validated_kinds(&self) -> Kinds {
        self.host.validated_kinds()
    }

    fn refusal(&self, message: &Value) -> Option<Refusal> {
        self.host.refusal(message)
    }
}

/// A call that is to be reported to an observer.
struct Audit {
    observer: Observer,
    function: Arc<dyn NativeFunction>,
    run: u64,
    started: Instant,
    input_bytes: usize,
}

fn report(audit: Option<Audit>, completion: &Completion) {
    let Some(audit) = audit else { return };
    let (Ok(value) | Err(value)) = completion;
    let record = NativeRecord {
        name: audit.function.name(),
        run: audit.run,
        started: audit.started,
        duration: audit.started.elapsed(),
        input_bytes: audit.input_bytes,
        output_bytes: value.held_bytes(),
        ok: completion.is_ok(),
    };
    // A panic of the observer must not end this thread, which may be the one that reads from all workers.
    let _ = catch_unwind(AssertUnwindSafe(|| (audit.observer)(&record)));
}

fn called(function: &dyn NativeFunction, call: NativeCall) -> NativeAnswer {
    catch_unwind(AssertUnwindSafe(|| function.call(call))).unwrap_or_else(|_panic| {
        let text = format!("the native function '{}' panicked", function.name());
        NativeAnswer::Now(Err(error_value(ErrorClass::Error, &text)))
    })
}

/// Does the work on a thread for long work, unless the run has ended by then.
fn run_blocking(
    run: &Arc<RunState>,
    work: Box<dyn FnOnce() -> Completion + Send>,
    audit: Option<Audit>,
    answer: impl FnOnce(Completion) + Send + 'static,
) {
    let Some(executor) = executor::own() else { return };
    let run = Arc::clone(run);
    drop(executor.spawn_blocking(move || {
        if run.is_over() {
            return;
        }
        let completion = catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_panic| {
            Err(error_value(ErrorClass::Error, "the native function panicked"))
        });
        report(audit, &completion);
        answer(completion);
    }));
}

/// Spawns a future, which settles that promise.
fn spawn(
    run: &Arc<RunState>,
    promise: u32,
    future: Answering,
    (again, audit): (Option<Repeatable>, Option<Audit>),
) {
    let settling = Settling::new(run, promise);
    // Without a thread the promise is settled with an error, because `settling` is dropped.
    let Some(executor) = executor::own() else { return };
    let key = settling.key;
    {
        let mut tasks = run.tasks.lock();
        if run.is_over() {
            return;
        }
        tasks.insert(key, Task { handle: None, again });
    }
    let task = executor.spawn(async move {
        let completion = future.await;
        report(audit, &completion);
        settling.settle(completion);
    });
    let mut tasks = run.tasks.lock();
    match tasks.get_mut(&key) {
        Some(known) => known.handle = Some(task.abort_handle()),
        // The future is done already, or the end of the run has not seen its handle.
        None => task.abort(),
    }
}

/// Settles a promise however its answer ends: with an error if the answer was dropped or panicked.
struct Settling {
    run: Arc<RunState>,
    promise: u32,
    key: u64,
    completion: Option<Completion>,
}

impl Settling {
    fn new(run: &Arc<RunState>, promise: u32) -> Self {
        Self { run: Arc::clone(run), promise, key: run.key(), completion: None }
    }

    fn settle(mut self, completion: Completion) {
        self.completion = Some(completion);
    }
}

impl Drop for Settling {
    fn drop(&mut self) {
        let completion = self.completion.take().unwrap_or_else(|| {
            Err(error_value(ErrorClass::Error, "the native function did not answer the call"))
        });
        // Before it is taken out: whoever copies the session finds one or the other.
        settle(&self.run, self.promise, completion);
        self.run.tasks.lock().remove(&self.key);
    }
}

fn settle(run: &RunState, promise: u32, completion: Completion) {
    if !run.is_over()
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

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Sender, channel};

    use super::*;

    /// Notifies a test when it is dropped.
    struct Dropped(Sender<()>);

    impl Drop for Dropped {
        fn drop(&mut self) {
            let _ = self.0.send(());
        }
    }

    struct Forever(Mutex<Sender<()>>);

    impl NativeFunction for Forever {
        fn name(&self) -> &'static str {
            "forever"
        }

        fn call(&self, _: NativeCall) -> NativeAnswer {
            let dropped = Dropped(self.0.lock().clone());
            NativeAnswer::later(async move {
                let _dropped = dropped;
                std::future::pending().await
            })
        }
    }

    struct Nobody;

    impl Host for Nobody {
        fn call(&self, _: u32, _: Value, _: HostCall) {}

        fn function_settled(&self, _: u32, _: Completion) {}

        fn promise_settled(&self, _: u32, _: Completion) {}

        fn settled(&self) {}
    }

    /// A worker that was taken over chooses the numbers of its promises.
    #[test]
    fn futures_under_one_number_all_end_with_the_run() {
        let (sender, dropped) = channel();
        let functions = NativeFunctions::new();
        let forever: Arc<dyn NativeFunction> = Arc::new(Forever(Mutex::new(sender)));
        let number = functions.number(&forever);
        let host = NativeHost::new(Arc::new(Nobody), functions, None);
        for _ in 0..3 {
            host.start(number, Value::undefined(), ASYNC_FUNCTION | 1);
        }
        host.settled();
        for _ in 0..3 {
            dropped.recv_timeout(Duration::from_mins(2)).expect("it is dropped");
        }
        assert!(host.run.0.tasks.lock().is_empty());
    }
}
