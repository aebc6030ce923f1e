//! Interceptors: code of the host between a run and its caller.
//!
//! In: a run's reports and its result, and its end. Out: the same as the interceptor changes them. A kit of capabilities
//! takes secrets out of all that leaves a run, and has its calls end before its caller learns of the end. Bindings do not
//! notice: their handles and hosts are the same as for any run.
//!
//! The interceptor may take long for a report or a result. So it changes a report where the run makes it, and a result
//! before the caller is told of the end: never on the thread of a caller that reads them.

use std::{
    any::Any,
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use super::{
    executor,
    handle::{Poller, Recipient, RunControl, RunHandle},
    host::Completion,
    inbound::Inbound,
};
use crate::{
    data::{
        cell::SessionState,
        outcome::{ExecutionError, ExecutionLog, ExecutionResult, Status},
        text::termination,
    },
    os::sync::Mutex,
    value::{Charge, Value},
};

/// Stands between one run, or one cell, and its caller. Its methods are called on any thread and must return soon.
pub trait RunInterceptor: Any + fmt::Debug + Send + Sync {
    /// The run has a handle. Its code may be running already.
    fn started(&self, run: &RunHandle) {
        let _ = run;
    }

    /// The run has ended. `by_itself`: its code ran to its end, and nobody ended it. Its native functions are still at
    /// work, and its caller is not told of the end, until all clones of `rest` are dropped; if somebody terminates the
    /// run, at once, and the run is `terminated` then. A cell ends without waiting, because its native functions outlive it.
    fn ended(&self, by_itself: bool, rest: Rest) {
        let _ = (by_itself, rest);
    }

    /// The cell is over, with that effect on its session. Called before [`RunInterceptor::ended`], and for a call that the
    /// host made between cells in its place.
    fn concluded(&self, state: SessionState) {
        let _ = state;
    }

    /// The run calls its console. The log will be in its result, too. Called in the order of the calls, on the thread
    /// that computes the run or reads from its worker, so it must return soon.
    fn logged(&self, log: &ExecutionLog) {
        let _ = log;
    }

    /// Changes a report; `None` if it stays as it is. Called once, before anybody sees the report, on the thread
    /// that computes the run, or that takes large messages of its worker. May take long for a large one.
    fn report(&self, report: &Value) -> Option<Value> {
        let _ = report;
        None
    }

    /// Whether [`RunInterceptor::result`] takes long for a result of so many bytes. It is called on a thread for long work
    /// then.
    fn takes_long(&self, bytes: usize) -> bool {
        let _ = bytes;
        false
    }

    /// Changes the result. Called once, before the caller is told of the end. The reports in it are left out: they
    /// were changed before.
    fn result(&self, result: ExecutionResult) -> ExecutionResult {
        result
    }

    /// Somebody has terminated the run after its end, and before the caller was told: its value is not needed any more,
    /// and [`RunInterceptor::result`] should return soon. Not called for a cell, whose effects are in its session.
    fn terminated(&self) {}

    /// The interceptor to which this one passes on all that it is told, if there is one: [`Interception::find`] finds it.
    fn inner(&self) -> Option<&Arc<dyn RunInterceptor>> {
        None
    }

    /// A part of its own that it adds to the result: plain data, once, after the result was taken.
    fn extra(&self) -> Option<Value> {
        None
    }

    /// Has it tell the thread of the run's caller of its news, by that function, which returns at once on any thread: for
    /// things of the caller that belong to that thread.
    fn announce_with(&self, announce: Arc<dyn Fn() + Send + Sync>) {
        drop(announce);
    }
}

/// The rest of a run that has ended: the work of its native functions. It ends when the last clone is dropped.
#[derive(Clone)]
pub struct Rest {
    _end: Arc<End>,
}

impl fmt::Debug for Rest {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Rest").finish_non_exhaustive()
    }
}

/// Ends the rest of a run, once.
struct End(Mutex<Option<Box<dyn FnOnce() + Send>>>);

impl End {
    fn end(&self) {
        let end = self.0.lock().take();
        if let Some(end) = end {
            end();
        }
    }
}

impl Drop for End {
    fn drop(&mut self) {
        self.end();
    }
}

/// The interception of one run or cell. All clones are one.
#[derive(Clone)]
pub struct Interception(Arc<Intercepted>);

struct Intercepted {
    interceptor: Arc<dyn RunInterceptor>,
    /// Whether the caller may know that the run has ended.
    is_over: AtomicBool,
    end: Mutex<Weak<End>>,
    inside: Mutex<Inside>,
}

#[derive(Default)]
struct Inside {
    /// The run, as soon as it has a handle.
    run: Option<Weak<dyn RunControl>>,
    /// Tells the caller of the end of a run that has ended before it had a handle.
    tell: Option<Tell>,
    /// Why the run was terminated between its end and the moment when its caller is told.
    reason: Option<String>,
}

type Tell = Box<dyn FnOnce() + Send>;

impl Interception {
    /// The interception of a run by that interceptor.
    #[must_use]
    pub fn new(interceptor: Arc<dyn RunInterceptor>) -> Self {
        let is_over = AtomicBool::new(false);
        let (end, inside) = (Mutex::new(Weak::new()), Mutex::default());
        Self(Arc::new(Intercepted { interceptor, is_over, end, inside }))
    }

    /// The interceptor.
    #[must_use]
    pub fn interceptor(&self) -> &Arc<dyn RunInterceptor> {
        &self.0.interceptor
    }

    /// The interceptor of that type: this one, or one inside.
    #[must_use]
    pub fn find<T: RunInterceptor>(&self) -> Option<Arc<T>> {
        let mut interceptor = self.interceptor();
        loop {
            let any: Arc<dyn Any + Send + Sync> = Arc::clone(interceptor) as _;
            match any.downcast() {
                Ok(found) => return Some(found),
                Err(_) => interceptor = interceptor.inner()?,
            }
        }
    }

    /// The run has a handle, and the interceptor knows it.
    pub(crate) fn belongs_to(&self, run: &Arc<dyn RunControl>) {
        let tell = {
            let mut inside = self.0.inside.lock();
            inside.run = Some(Arc::downgrade(run));
            inside.tell.take()
        };
        if let Some(tell) = tell {
            // This is the caller's thread, which may hold locks that `tell` takes.
            let (this, run) = (self.clone(), Arc::clone(run));
            apart(move || this.conclude(&run, tell));
        }
    }

    /// The run has ended; calls `rested` at the end of its rest, and then `tell` when the caller may know.
    pub(crate) fn ended(
        &self,
        by_itself: bool,
        rested: impl FnOnce() + Send + 'static,
        tell: impl FnOnce() + Send + 'static,
    ) {
        let this = self.clone();
        let end = move || {
            rested();
            let mut inside = this.0.inside.lock();
            match inside.run.as_ref().map(Weak::upgrade) {
                None => inside.tell = Some(Box::new(tell)),
                Some(run) => {
                    drop(inside);
                    match run {
                        Some(run) => this.prepare(run, Box::new(tell)),
                        // Nobody can ask for its result.
                        None => tell(),
                    }
                }
            }
        };
        let end = Arc::new(End(Mutex::new(Some(Box::new(end)))));
        *self.0.end.lock() = Arc::downgrade(&end);
        self.0.interceptor.ended(by_itself, Rest { _end: end });
    }

    /// Has the interceptor change the result, and tells the caller.
    fn prepare(&self, run: Arc<dyn RunControl>, tell: Tell) {
        if self.0.interceptor.takes_long(run.result_bytes()) {
            let this = self.clone();
            apart(move || this.conclude(&run, tell));
        } else {
            self.conclude(&run, tell);
        }
    }

    fn conclude(&self, run: &Arc<dyn RunControl>, tell: Tell) {
        let changed = run.lend_result().map(|result| {
            let result = terminated(result, self.0.inside.lock().reason.as_deref());
            let (duration_ms, cell) = (result.duration_ms, result.cell.clone());
            let change = || self.0.interceptor.result(result);
            let changed = catch_unwind(AssertUnwindSafe(change)).ok();
            changed.unwrap_or_else(|| ExecutionResult { duration_ms, cell, ..broken() })
        });
        {
            let inside = self.0.inside.lock();
            if let Some(result) = changed {
                run.return_result(terminated(result, inside.reason.as_deref()));
            }
            self.0.is_over.store(true, Ordering::Release);
        }
        tell();
    }

    /// Somebody terminates the run, which has ended.
    fn end_rest(&self, reason: Option<&str>) {
        {
            let mut inside = self.0.inside.lock();
            if self.is_over() {
                return;
            }
            inside.reason.get_or_insert_with(|| termination(reason));
        }
        let end = self.0.end.lock().upgrade();
        if let Some(end) = end {
            end.end();
        }
        self.0.interceptor.terminated();
    }

    fn is_over(&self) -> bool {
        self.0.is_over.load(Ordering::Acquire)
    }

    /// A report of the run, as the interceptor changes it.
    pub(crate) fn report(&self, report: Value) -> Value {
        self.0.interceptor.report(&report).unwrap_or(report)
    }
}

/// The result of a run that was terminated after its end for that reason. The effects of a cell are in its session, so
/// it has ended as it did.
fn terminated(mut result: ExecutionResult, reason: Option<&str>) -> ExecutionResult {
    if let Some(message) =
        reason.filter(|_| result.status == Status::Success && result.cell.is_none())
    {
        result.status = Status::Terminated;
        result.result = None;
        let (name, message) = ("Terminated".to_owned(), message.to_owned());
        result.error = Some(ExecutionError { name, message, ..ExecutionError::default() });
    }
    result
}

/// The result of a run whose interceptor has panicked: nothing of the run leaves.
fn broken() -> ExecutionResult {
    let message = "the interceptor of the run panicked".to_owned();
    let name = "InternalError".to_owned();
    ExecutionResult {
        status: Status::Error,
        result: None,
        reports: Vec::new(),
        logs: Vec::new(),
        error: Some(ExecutionError {
            name,
            message,
            is_failure: true,
            ..ExecutionError::default()
        }),
        duration_ms: 0.0,
        memory_used_bytes: None,
        cell: None,
    }
}

/// Does the work on a thread for long work, or here if the system has none.
fn apart(work: impl FnOnce() + Send + 'static) {
    match executor::own() {
        Some(executor) => drop(executor.spawn_blocking(work)),
        None => work(),
    }
}

impl fmt::Debug for Interception {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_tuple("Interception").field(&self.0.interceptor).finish()
    }
}

/// The control over a run that is intercepted.
#[derive(Debug)]
pub(crate) struct InterceptedRun {
    run: Arc<dyn RunControl>,
    interception: Interception,
}

impl InterceptedRun {
    pub(crate) fn new(run: Arc<dyn RunControl>, interception: Interception) -> Self {
        Self { run, interception }
    }
}

impl Recipient for InterceptedRun {
    fn deliver(self: Arc<Self>, inbound: Inbound) {
        Arc::clone(&self.run).deliver(inbound);
    }

    fn charge(self: Arc<Self>, bytes: usize) -> Option<Charge> {
        Arc::clone(&self.run).charge(bytes)
    }
}

impl RunControl for InterceptedRun {
    fn is_here(&self) -> bool {
        self.run.is_here()
    }

    fn running(&self) -> bool {
        !self.interception.is_over()
    }

    fn was_ended(&self) -> bool {
        self.run.was_ended()
    }

    fn computed(&self) -> Duration {
        self.run.computed()
    }

    fn terminate(self: Arc<Self>, reason: Option<&str>) {
        if self.run.running() {
            Arc::clone(&self.run).terminate(reason);
        } else {
            self.interception.end_rest(reason);
        }
    }

    fn reply(self: Arc<Self>, call: u64, completion: Completion) {
        Arc::clone(&self.run).reply(call, completion);
    }

    fn reports_since(&self, index: usize) -> Vec<Arc<Value>> {
        self.run.reports_since(index)
    }

    fn take_report(&self) -> Option<Value> {
        self.run.take_report()
    }

    fn result_bytes(&self) -> usize {
        self.run.result_bytes()
    }

    fn lend_result(&self) -> Option<ExecutionResult> {
        self.run.lend_result()
    }

    fn return_result(&self, result: ExecutionResult) {
        self.run.return_result(result);
    }

    fn take_result(&self) -> Option<ExecutionResult> {
        if self.interception.is_over() { self.run.take_result() } else { None }
    }

    fn interception(&self) -> Option<&Interception> {
        Some(&self.interception)
    }

    fn poller(&self) -> Option<Weak<dyn Poller>> {
        self.run.poller()
    }
}
