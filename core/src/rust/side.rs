//! The host's side of one run, which answers its isolate.
//!
//! In: the numbers that the sandbox calls. Out: closures called, futures spawned, their outcomes delivered. Everything
//! that the host lent to a run is in one table here, which is emptied when the run settles. So neither side keeps the
//! other alive.
//!
//! A session has a side of its own, and so has each cell. A cell's side has its reports and its end, and uses the
//! tables of the session's.

mod remote;
mod session;

use std::{
    collections::{HashMap, VecDeque},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    task::{Context, Waker},
    time::Instant,
};

use rustc_hash::FxHashMap;
use tokio::{runtime::Handle, task::AbortHandle};

pub(super) use self::remote::Remote;
use super::{
    HostError, Report, Returned,
    function::{Call, Function, Pending, Promised},
    reports::Feed,
    sandbox::{Borrowed, Received, Waiter},
};
use crate::{
    ASYNC_FUNCTION, Cause, Completion, ExecutionResult, Host, HostCall, KEPT_THROWS,
    LARGE_THROW_BYTES, NativeFunctions, REPORT_SINK, RunHandle, SessionState, Value,
    binding::{adaptive_spin::AdaptiveSpin, executor},
    error::Source,
    os::{
        process::Process,
        sync::{Condvar, Mutex},
    },
    value::{Event, Fault, LOCAL, Message, Writer, copy_message, serde::host_object::HostObject},
};

/// For the ends of runs, for which callers without an executor wait.
static END_SPIN: AdaptiveSpin = AdaptiveSpin::new();

pub(super) struct HostSide {
    /// The session's side, if this is a cell's.
    session: Option<Arc<HostSide>>,
    /// For tasks, which must keep the side alive.
    me: Weak<HostSide>,
    stage: Mutex<Stage>,
    /// Notified when `stage` changes.
    staged: Condvar,
    /// Whether it is [`Stage::Over`], readable without the lock.
    over: AtomicBool,
    tables: Mutex<Tables>,
    /// Functions that are answered before a call gets here.
    pub(super) native: NativeFunctions,
    /// How many calls the sandbox has waited for.
    called: AtomicU64,
    /// The errors that were thrown last, until the result is taken, which may name one.
    thrown: Mutex<VecDeque<(Cause, Source)>>,
    /// Whether the sandbox has sent a large message. From then on only the latest error is kept, and only until the
    /// sandbox calls again.
    has_large: AtomicBool,
    /// The readers of reports.
    pub(super) feed: Feed,
    /// The process of the run. In a child of that process no lock here may be waited for.
    process: Process,
    /// The runtime in which the run was started.
    tokio: Option<Handle>,
}

enum Stage {
    /// `Runtime::start` has not returned yet; promises that have settled meanwhile.
    Starting(Vec<(u32, Completion)>),
    Running(Remote, Option<Waker>),
    Over,
}

/// Everything that was lent to the run, by number.
#[derive(Clone, Default)]
struct Tables {
    over: bool,
    report: Option<Arc<Function>>,
    /// How many reports there were.
    reported: usize,
    functions: Vec<Arc<Function>>,
    /// Native functions that were handed over, by their numbers.
    native: FxHashMap<u32, Arc<Function>>,
    /// The numbers of functions and promises by their addresses, which the tables keep alive.
    numbers: FxHashMap<usize, u32>,
    promises: Vec<Arc<Promised>>,
    next_promise: u32,
    /// The task that settles each pending promise, once it is spawned; aborted with the run.
    tasks: FxHashMap<u32, Option<AbortHandle>>,
    next_call: u32,
    calls: FxHashMap<u32, Arc<Waiter>>,
    /// Promises of the sandbox that have not settled.
    sandbox_promises: HashMap<u32, Arc<Waiter>>,
    /// Those of them that arrived since a cell was last kept, in a session.
    fresh_promises: Vec<u32>,
}

impl HostSide {
    pub(super) fn new(process: Process, report: &Report) -> Arc<Self> {
        let native = NativeFunctions::new();
        Self::with(process, report, None, (native, Handle::try_current().ok()))
    }

    fn with(
        process: Process,
        report: &Report,
        session: Option<Arc<Self>>,
        (native, tokio): (NativeFunctions, Option<Handle>),
    ) -> Arc<Self> {
        let report = match report {
            Report::To(function) => Some(Arc::clone(&function.0)),
            Report::Off | Report::On => None,
        };
        Arc::new_cyclic(|me| Self {
            me: Weak::clone(me),
            session,
            stage: Mutex::new(Stage::Starting(Vec::new())),
            staged: Condvar::new(),
            over: AtomicBool::new(false),
            native,
            tables: Mutex::new(Tables { report, ..Tables::default() }),
            called: AtomicU64::new(0),
            thrown: Mutex::default(),
            has_large: AtomicBool::new(false),
            feed: Feed::default(),
            process,
            tokio,
        })
    }

    /// The run has started, and may have ended already.
    pub(super) fn started(&self, remote: impl Into<Remote>) {
        let remote = remote.into();
        let mut stage = self.stage.lock();
        if let Stage::Starting(early) = &mut *stage {
            for (promise, completion) in early.drain(..) {
                remote.settle_promise(promise, completion);
            }
            *stage = Stage::Running(remote, None);
            self.staged.notify_all();
        }
    }

    /// The run has ended, or was never started: wakes everyone who waits, and drops everything that was lent to it.
    pub(super) fn end(&self) {
        let mut tables =
            std::mem::replace(&mut *self.tables.lock(), Tables { over: true, ..Tables::default() });
        tables.tasks.drain().filter_map(|(_, task)| task).for_each(|task| task.abort());
        for waiter in tables.calls.values().chain(tables.sandbox_promises.values()) {
            waiter.close();
        }
        // Dropped before anyone learns that the run has ended.
        drop(tables);
        let stage = std::mem::replace(&mut *self.stage.lock(), Stage::Over);
        END_SPIN.sent();
        self.over.store(true, Ordering::Release);
        self.staged.notify_all();
        self.feed.wake_readers();
        if let Stage::Running(_, Some(waker)) = stage {
            waker.wake();
        }
    }

    /// Whether the run belongs to this process, and not to one that this was forked from.
    pub(super) fn is_here(&self) -> bool {
        self.process.is_current()
    }

    /// Whether the run has ended; if it has not, wakes that task when it has.
    pub(super) fn poll_over(&self, context: &Context<'_>) -> bool {
        match &mut *self.stage.lock() {
            Stage::Running(_, waker) => {
                *waker = Some(context.waker().clone());
                false
            }
            Stage::Starting(_) => false,
            Stage::Over => true,
        }
    }

    /// Whether the run has ended and everything that was lent to it is dropped.
    pub(super) fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }

    /// Waits until the run has ended. Spins before it sleeps.
    pub(super) fn wait_over(&self) {
        let started = Instant::now();
        let found = END_SPIN.spin(started, || self.is_over());
        if !found {
            let mut stage = self.stage.lock();
            while !matches!(*stage, Stage::Over) {
                stage = self.staged.wait(stage);
            }
        }
        END_SPIN.learn(started.elapsed(), found);
    }

    /// The run; `None` if it has ended, and in a forked child. Waits for `Runtime::start` to return, which it does at
    /// once; so the thread that starts the run must not call this.
    pub(super) fn remote(&self) -> Option<Remote> {
        if !self.is_here() {
            return None;
        }
        let mut stage = self.stage.lock();
        loop {
            match &*stage {
                Stage::Starting(_) => stage = self.staged.wait(stage),
                Stage::Running(remote, _) => return Some(remote.clone()),
                Stage::Over => return None,
            }
        }
    }

    /// Appends a message for this run, and gives numbers to its functions and promises.
    pub(super) fn write(
        &self,
        message: &Message,
        writer: &mut Writer,
        name: &str,
    ) -> Result<(), Fault> {
        copy_message(&message.value, writer, name, &mut |writer, event, name| {
            match event {
                Event::HostFunction(number) if number >= LOCAL => {
                    let link = message.links.get((number - LOCAL) as usize);
                    let link = link.ok_or_else(|| Fault::new("a function is missing"))?;
                    return self.write_link(link, writer, name);
                }
                _ if matches!(*self.stage.lock(), Stage::Starting(_)) => {
                    return Err(Fault::new("a function or a promise of another run cannot cross"));
                }
                Event::HostFunction(number) => {
                    writer.host_function(number);
                    writer.string(name);
                }
                Event::SandboxFunction(number) => {
                    writer.sandbox_function(number);
                    writer.string(name);
                }
                Event::HostPromise(number) => writer.host_promise(number),
                Event::SandboxPromise(number) => writer.sandbox_promise(number),
                _ => {}
            }
            Ok(())
        })
    }

    fn write_link(&self, link: &HostObject, writer: &mut Writer, name: &str) -> Result<(), Fault> {
        if let Ok(function) = Arc::clone(link).downcast::<Function>() {
            writer.host_function(self.function_number(function));
            writer.string(name);
            return Ok(());
        }
        if let Ok(promise) = Arc::clone(link).downcast::<Promised>() {
            writer.host_promise(self.promise_number(&promise));
            return Ok(());
        }
        match Arc::clone(link).downcast::<Borrowed>() {
            Ok(lent) if lent.is_of(self) => {
                if let Some(waiter) = lent.waiter() {
                    writer.host_promise(self.relay(waiter));
                } else {
                    writer.sandbox_function(lent.number);
                    writer.string(name);
                }
                Ok(())
            }
            _ => Err(Fault::new("a function or a promise of another run cannot cross")),
        }
    }

    fn function_number(&self, function: Arc<Function>) -> u32 {
        let mut tables = self.tables.lock();
        if let Function::Native(native) = &*function {
            let number = self.native.number(native);
            if !tables.over {
                tables.native.insert(number & !ASYNC_FUNCTION, function);
            }
            return number;
        }
        let next = u32::try_from(tables.functions.len()).unwrap_or(LOCAL - 1);
        let number = *tables.numbers.entry(Arc::as_ptr(&function).addr()).or_insert(next);
        // A run that has ended keeps nothing alive.
        if number == next && !tables.over {
            tables.functions.push(function);
        }
        number
    }

    fn promise_number(&self, promise: &Arc<Promised>) -> u32 {
        let address = Arc::as_ptr(promise).addr();
        let known = self.tables.lock().numbers.get(&address).copied();
        known.unwrap_or_else(|| {
            let future = promise.0.lock().take();
            let number = self.spawn(async move |_| match future {
                Some(future) => future.await,
                None => Returned::refused(&HostError::new(
                    "Error",
                    "the promise belongs to another run",
                )),
            });
            let mut tables = self.tables.lock();
            tables.numbers.insert(address, number);
            tables.promises.push(Arc::clone(promise));
            number
        })
    }

    /// The number of a promise of the host with the outcome of a promise of the sandbox. The number of the latter may
    /// be dead by the time that this one arrives.
    fn relay(&self, waiter: &Arc<Waiter>) -> u32 {
        let waiter = Arc::clone(waiter);
        self.spawn(async move |_| waiter.outcome().await)
    }

    /// The function of that number.
    pub(super) fn function(&self, number: u32) -> Option<Arc<Function>> {
        let tables = self.tables.lock();
        if NativeFunctions::is_native(number) {
            return tables.native.get(&number).cloned();
        }
        tables.functions.get(number as usize).cloned()
    }

    /// The result of the run, once, with the host's own error if one of those ended it.
    pub(super) fn take_result(&self, remote: &RunHandle) -> Option<ExecutionResult> {
        let mut result = self.feed.take_result(remote)?;
        let root = self.session.as_deref().unwrap_or(self);
        let thrown = std::mem::take(&mut *root.thrown.lock());
        if let Some(error) = &mut result.error {
            error.cause = error.cause.take().and_then(|cause| match cause {
                Cause::Error(_) => Some(cause),
                // Errors that the library itself threw were not kept.
                Cause::Call(_) | Cause::Promise(_) => {
                    let found = thrown.into_iter().rfind(|(known, _)| *known == cause);
                    found.map(|(_, error)| Cause::Error(error))
                }
            });
        }
        Some(result)
    }

    /// Keeps an error that is about to be thrown in the sandbox.
    fn keep_thrown(&self, cause: Cause, error: Option<Source>) {
        let Some(error) = error.filter(|_| !self.is_over()) else { return };
        let most = if self.has_large.load(Ordering::Relaxed) { 1 } else { KEPT_THROWS };
        self.thrown.lock().push_back((cause, error));
        self.forget_thrown_but(most);
    }

    /// Forgets the errors that may hold values of the sandbox, which count against no limit any more.
    fn forget_thrown(&self) {
        if self.has_large.load(Ordering::Relaxed) {
            self.forget_thrown_but(0);
        }
    }

    /// Forgets all errors but so many of the latest.
    fn forget_thrown_but(&self, most: usize) {
        let mut thrown = self.thrown.lock();
        let surplus = thrown.len().saturating_sub(most);
        let oldest: Vec<_> = thrown.drain(..surplus).collect();
        drop(thrown);
        // Dropped without the lock: the error's type may do anything when it is dropped.
        drop(oldest);
    }

    /// The message for this run of a value that was returned or thrown; `cause` identifies a throw.
    fn completion(&self, returned: Returned, cause: Cause) -> Completion {
        let adopt = |message: Message| {
            if message.links.is_empty() {
                return Ok(message.value);
            }
            let mut writer = Writer::new();
            match self.write(&message, &mut writer, "") {
                Ok(()) => Ok(writer.finish()),
                Err(fault) => Err(HostError::serialization(fault, "result").to_value()),
            }
        };
        self.keep_thrown(cause, returned.cause);
        match returned.outcome {
            Ok(message) => adopt(message),
            Err(message) => Err(adopt(message).unwrap_or_else(|error| error)),
        }
    }

    /// Runs a future that settles a promise, and returns the promise's number.
    fn spawn<F>(&self, future: impl FnOnce(Arc<HostSide>) -> F) -> u32
    where
        F: Future<Output = Returned> + Send + 'static,
    {
        let me = self.me.upgrade();
        let promise = {
            let mut tables = self.tables.lock();
            tables.next_promise = tables.next_promise.wrapping_add(1);
            let promise = tables.next_promise;
            tables.tasks.insert(promise, None);
            promise
        };
        let Some(me) = me else { return promise };
        let settling = Settling { side: Arc::clone(&me), promise, done: false };
        // Without a thread for the future, the promise is settled because `settling` is dropped.
        let Some(handle) = self.tokio.clone().or_else(executor::own) else { return promise };
        let future = future(me);
        let task = handle.spawn(async move {
            let returned = future.await;
            settling.settle(returned);
        });
        match self.tables.lock().tasks.get_mut(&promise) {
            Some(entry) => *entry = Some(task.abort_handle()),
            // The future is done already, or the run has ended.
            None => task.abort(),
        }
        promise
    }

    fn settle(&self, promise: u32, completion: Completion) {
        self.tables.lock().tasks.remove(&promise);
        let remote = match &mut *self.stage.lock() {
            Stage::Starting(early) => return early.push((promise, completion)),
            Stage::Running(remote, _) => remote.clone(),
            Stage::Over => return,
        };
        remote.settle_promise(promise, completion);
    }

    /// Calls a function of the sandbox. The waiter gets the outcome.
    pub(super) fn call_sandbox(&self, function: u32, args: &Message) -> Result<Arc<Waiter>, Fault> {
        let waiter = Arc::<Waiter>::default();
        let Some(remote) = self.remote() else {
            waiter.close();
            return Ok(waiter);
        };
        let mut writer = Writer::new();
        self.write(args, &mut writer, "")?;
        let call = {
            let mut tables = self.tables.lock();
            if tables.over {
                waiter.close();
                return Ok(waiter);
            }
            tables.next_call = tables.next_call.wrapping_add(1);
            let call = tables.next_call;
            tables.calls.insert(call, Arc::clone(&waiter));
            call
        };
        remote.call_function(function, writer.finish(), call);
        Ok(waiter)
    }

    /// The waiter for a promise of the sandbox, from when it first arrived until it settles.
    pub(super) fn sandbox_promise(&self, number: u32) -> Arc<Waiter> {
        let mut tables = self.tables.lock();
        let Tables { sandbox_promises, fresh_promises, .. } = &mut *tables;
        let waiter = Arc::clone(sandbox_promises.entry(number).or_insert_with(|| {
            fresh_promises.push(number);
            Arc::default()
        }));
        if tables.over {
            waiter.close();
        }
        waiter
    }

    /// Notes the size of a message of the sandbox. After a large one, of the errors that were kept before only the
    /// latest is.
    fn note_size(&self, message: &Value) {
        if message.held_bytes() <= LARGE_THROW_BYTES {
            return;
        }
        self.has_large.store(true, Ordering::Relaxed);
        self.forget_thrown_but(1);
    }

    fn received(&self, message: &Value, outcome_of: Option<u32>) -> Arc<Received> {
        self.note_size(message);
        Arc::new(match self.me.upgrade() {
            Some(me) => Received::new(&me, message, outcome_of),
            None => Received::default(),
        })
    }

    fn run_function(&self, function: &Arc<Function>, args: Value, call: HostCall, number: u64) {
        let received = self.received(&args, None);
        match &**function {
            Function::Sync(body) => {
                let _entered = self.tokio.as_ref().map(Handle::enter);
                let invoke = || body(Call { args, links: &*received });
                let returned = catch_unwind(AssertUnwindSafe(invoke));
                let returned = returned.unwrap_or_else(|_panic| panicked());
                let completion = self.completion(returned, Cause::Call(number));
                call.reply(completion);
            }
            Function::Future(_) => {
                let function = Arc::clone(function);
                let promise = self.spawn(move |_| async move {
                    let Function::Future(body) = &*function else { return panicked() };
                    let future: Pending = body(Call { args, links: &*received });
                    let returned = future.await;
                    drop(received);
                    returned
                });
                let mut writer = Writer::new();
                writer.host_promise(promise);
                call.reply(Ok(writer.finish()));
            }
            // Its calls do not come here, and a sink is never native.
            Function::Native(_) => {
                let error = HostError::new("TypeError", "the host does not know this function");
                call.reply(Err(error.to_value()));
            }
        }
    }
}

fn panicked() -> Returned {
    Returned::refused(&HostError::new("Error", "the host function panicked"))
}

impl Host for HostSide {
    fn call(&self, function: u32, args: Value, call: HostCall) {
        // The side with the tables.
        let root = self.session.as_deref().unwrap_or(self);
        root.note_size(&args);
        root.forget_thrown();
        let number = root.called.fetch_add(1, Ordering::Relaxed) + 1;
        if function != REPORT_SINK {
            match root.function(function) {
                Some(function) => root.run_function(&function, args, call, number),
                None => {
                    let error = HostError::new("TypeError", "the host does not know this function");
                    call.reply(Err(error.to_value()));
                }
            }
            return;
        }
        let (sink, index) = {
            let mut tables = self.tables.lock();
            tables.reported += 1;
            (tables.report.clone(), tables.reported - 1)
        };
        self.feed.wake_readers();
        let Some(sink) = sink else { return call.reply(Ok(Value::undefined())) };
        let newest = match self.remote() {
            Some(Remote::Run(run)) => run.reports_since(index).pop(),
            // A report of a call between cells: nobody else sees it.
            Some(Remote::Session(_)) => call.take_report(),
            None => None,
        };
        let Some(newest) = newest else { return };
        let mut writer = Writer::new();
        writer.array(1);
        let message = Message { value: newest, links: Vec::new() };
        match root.write(&message, &mut writer, "") {
            Ok(()) => root.run_function(&sink, writer.finish(), call, number),
            Err(fault) => {
                call.reply(Err(HostError::serialization(fault, "report").to_value()));
            }
        }
    }

    fn function_settled(&self, call: u32, completion: Completion) {
        if let Some(session) = &self.session {
            return session.function_settled(call, completion);
        }
        let (Ok(value) | Err(value)) = &completion;
        let received = self.received(value, None);
        let waiter = self.tables.lock().calls.remove(&call);
        if let Some(waiter) = waiter {
            waiter.settle(completion, received);
        }
    }

    fn promise_settled(&self, promise: u32, completion: Completion) {
        if let Some(session) = &self.session {
            return session.promise_settled(promise, completion);
        }
        let (Ok(value) | Err(value)) = &completion;
        let received = self.received(value, Some(promise));
        let waiter = self.tables.lock().sandbox_promises.remove(&promise);
        if let Some(waiter) = waiter {
            waiter.settle(completion, received);
        }
    }

    fn concluded(&self, state: SessionState) {
        self.session.as_deref().unwrap_or(self).conclude(state);
    }

    fn settled(&self) {
        self.end();
    }
}

/// Settles a promise however its future ends.
struct Settling {
    side: Arc<HostSide>,
    promise: u32,
    done: bool,
}

impl Settling {
    fn settle(mut self, returned: Returned) {
        let completion = self.side.completion(returned, Cause::Promise(self.promise));
        self.done = true;
        self.side.settle(self.promise, completion);
    }
}

impl Drop for Settling {
    fn drop(&mut self) {
        if !self.done {
            let returned = if std::thread::panicking() {
                panicked()
            } else {
                Returned::refused(&HostError::new("Error", "the host dropped the promise's future"))
            };
            let completion = self.side.completion(returned, Cause::Promise(self.promise));
            self.side.settle(self.promise, completion);
        }
    }
}
