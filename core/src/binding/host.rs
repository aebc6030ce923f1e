//! The host's side of a run: the trait that a language binding implements.
//!
//! In: requests of the sandbox. Out: answers, by number. A binding keeps its own tables from numbers to functions and
//! promises. The core sees only numbers, so an isolate can be on another thread or in another process.

use std::sync::Arc;

use super::handle::RunControl;
use crate::data::{cell::SessionState, outcome::ExecutionLog};
use crate::value::{
    ErrorClass, Kinds, Value, Writer,
    path::{self, Step},
};

/// The outcome of a function or a promise: a value, or a thrown value.
pub type Completion = Result<Value, Value>;

/// The number of the sink under the option `report`. A binding gives out all other numbers.
pub const REPORT_SINK: u32 = u32::MAX;

/// Set in the number of a host function that always answers with a promise, so that the sandbox need not wait for the
/// host to say so. See [`Host::start`].
pub const ASYNC_FUNCTION: u32 = 1 << 31;

/// Receives the requests of a run.
///
/// Every method is called on a thread that computes the run, or on the one that ends it, and must return at once: queue
/// the event for the caller's thread, and wake that thread. Under isolation by process one thread calls all methods,
/// for all runs of the runtime.
pub trait Host: Send + Sync + 'static {
    /// The sandbox called the host function with that number. `args` is an array, one message. For [`REPORT_SINK`] it
    /// is `undefined`: the reported value is the newest of [`RunHandle::reports_since`], and [`RunHandle::take_report`]
    /// hands it over. The sandbox waits until `call` is answered. To answer later, answer at once with a message that
    /// is a promise of the host (`HOST_PROMISE`), and settle that promise through [`RunHandle::settle_promise`].
    ///
    /// [`RunHandle::settle_promise`]: crate::RunHandle::settle_promise
    /// [`RunHandle::reports_since`]: crate::RunHandle::reports_since
    /// [`RunHandle::take_report`]: crate::RunHandle::take_report
    fn call(&self, function: u32, args: Value, call: HostCall);

    /// The sandbox called an asynchronous host function: one that crossed with [`ASYNC_FUNCTION`] in its number. Here
    /// the number is without it. The sandbox has a promise already and does not wait; settle `promise` with the
    /// function's outcome through [`RunHandle::settle_promise`]. Now and then, and with large arguments, such a
    /// function is called through [`Host::call`] instead, so that the sandbox does not get far ahead of the host.
    ///
    /// If the run ended by itself, start the calls that it made before, and only then notify its caller of the end. A
    /// host that gives out no such numbers gets no such calls.
    ///
    /// [`RunHandle::settle_promise`]: crate::RunHandle::settle_promise
    fn start(&self, function: u32, args: Value, promise: u32) {
        let _ = (function, args, promise);
    }

    /// As [`Host::start`], of a host that may have the outcome at once: it returns the outcome, and does not settle the
    /// promise. Not called under isolation by process.
    fn start_or_answer(&self, function: u32, args: Value, promise: u32) -> Option<Completion> {
        self.start(function, args, promise);
        None
    }

    /// A report before it is kept: returns the value that is kept, and that everybody sees. Called on the thread that
    /// computes the run, or that takes large messages of its worker.
    fn reported(&self, report: Value) -> Value {
        report
    }

    /// The outcome of a call that the host made through [`RunHandle::call_function`].
    ///
    /// [`RunHandle::call_function`]: crate::RunHandle::call_function
    fn function_settled(&self, call: u32, completion: Completion);

    /// The promise of the sandbox with that number (`SANDBOX_PROMISE`) settled. This message may name the number, but
    /// no later one does: if the promise crosses again it has another number. So only the answer to a [`Host::call`],
    /// for which the sandbox waits, can give such a number back. Anything that is sent later carries a promise of the
    /// host with the same outcome.
    fn promise_settled(&self, promise: u32, completion: Completion);

    /// The run calls its console. The log will be in its result, too; the calls come in order.
    fn logged(&self, log: &ExecutionLog) {
        let _ = log;
    }

    /// The cell whose events this host receives is over, with that effect on its session; or a cell of the session's own
    /// is. Called right before [`Host::settled`]. If the session was rolled back, promises of the sandbox that arrived
    /// since the last cell that was kept never settle; if it was reset, none that arrived before does.
    fn concluded(&self, state: SessionState) {
        let _ = state;
    }

    /// The run has settled; its result can be taken. This is the last call of a run, except for one that was under way
    /// when somebody else ended the run: drop such late calls.
    fn settled(&self);

    /// The kinds of values for which [`Host::refusal`] is called.
    fn validated_kinds(&self) -> Kinds {
        Kinds::NONE
    }

    /// Finds a part of a message that the host's language cannot hold. Such a message does not cross, like one that
    /// cannot be cloned. Called only for messages whose [`Value::kinds`] are among [`Host::validated_kinds`], before
    /// the host receives them. The caller is the thread that computes the run, while the host's own thread is running.
    fn refusal(&self, message: &Value) -> Option<Refusal> {
        let _ = message;
        None
    }
}

/// A part of a value that cannot cross.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The way to it, from the outermost step inward.
    pub path: Vec<Step>,
    /// Its kind, with the article: `an instance of Pool`.
    pub what: String,
}

impl Refusal {
    /// The message of the `SerializationError`; `root` says where the value stands: `globals.db`.
    #[must_use]
    pub fn text(self, root: &str) -> String {
        format!("{}: {} cannot be cloned", path::join(root, self.path.into_iter()), self.what)
    }
}

/// A call of a host function, for which the sandbox waits. Answer it once. If it is dropped without an answer, the call
/// throws in the sandbox.
#[derive(Debug)]
pub struct HostCall {
    run: Arc<dyn RunControl>,
    number: u64,
    answered: bool,
}

impl HostCall {
    pub(crate) fn new(run: Arc<dyn RunControl>, number: u64) -> Self {
        Self { run, number, answered: false }
    }

    /// The oldest report of the caller that nobody has taken, for a call of [`REPORT_SINK`]; as
    /// [`RunHandle::take_report`], for a host that has no handle on the run: the host of a session.
    ///
    /// [`RunHandle::take_report`]: crate::RunHandle::take_report
    #[must_use]
    pub fn take_report(&self) -> Option<Value> {
        if self.run.is_here() { self.run.take_report() } else { None }
    }

    /// Answers: the call returns the value, or throws it. Late answers are dropped, and so are those of a forked child,
    /// where nobody waits for them.
    pub fn reply(mut self, completion: Completion) {
        self.answered = true;
        if self.run.is_here() {
            Arc::clone(&self.run).reply(self.number, completion);
        }
    }
}

impl Drop for HostCall {
    fn drop(&mut self) {
        // In a forked child nobody waits for the answer.
        if !self.answered && self.run.is_here() {
            let mut writer = Writer::new();
            writer.error(ErrorClass::Error);
            writer.string("Error");
            writer.string("the host did not answer the call");
            writer.undefined();
            writer.undefined();
            Arc::clone(&self.run).reply(self.number, Err(writer.finish()));
        }
    }
}
