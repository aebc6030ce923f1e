//! The host's side of a run: what a language binding implements.
//!
//! In: what the sandbox asks for. Out: answers, by number. A binding keeps its own tables from
//! numbers to functions and promises; the core sees numbers alone, which is what lets an isolate
//! live on another thread or in another process.

use std::sync::Arc;

use super::handle::RunControl;
use crate::value::{
    ErrorClass, Kinds, Value, Writer,
    path::{self, Step},
};

/// What a function or a promise came to: a value, or what was thrown.
pub type Completion = Result<Value, Value>;

/// The number of the sink under the option `report`; all others are the binding's to give out.
pub const REPORT_SINK: u32 = u32::MAX;

/// In the number of a host function that crosses to the sandbox: it always answers with a promise, so
/// the sandbox need not wait for the host to say so. See [`Host::start`].
pub const ASYNC_FUNCTION: u32 = 1 << 31;

/// Receives what a run asks of its host.
///
/// Every method is called on a thread that computes the run, or on the one that ends it, and must
/// return at once: queue the event for the thread where the caller lives, and wake it. Under isolation by
/// process that is one thread for all runs of the runtime.
pub trait Host: Send + Sync + 'static {
    /// The sandbox called the host function with that number. `args` is an array, one message. For
    /// [`REPORT_SINK`] it is `undefined`: the reported value is the newest of
    /// [`RunHandle::reports_since`], which [`RunHandle::take_report`] hands over. The sandbox waits until `call` is answered; to answer later, answer at once with a message that is a
    /// promise of the host (`HOST_PROMISE`) and settle that one through [`RunHandle::settle_promise`].
    ///
    /// [`RunHandle::settle_promise`]: crate::RunHandle::settle_promise
    /// [`RunHandle::reports_since`]: crate::RunHandle::reports_since
    /// [`RunHandle::take_report`]: crate::RunHandle::take_report
    fn call(&self, function: u32, args: Value, call: HostCall);

    /// The sandbox called an asynchronous host function: one that crossed with [`ASYNC_FUNCTION`] in its
    /// number, which is told here without. It has a promise already and goes on; what the function
    /// comes to settles `promise` through [`RunHandle::settle_promise`]. Now and then, and with
    /// large arguments, such a function comes through [`Host::call`] all the same, so that the
    /// sandbox does not get far ahead of the host.
    ///
    /// A call that was made before the run ended by itself is to be started before the host's caller
    /// hears of that end. A host that gives out no such numbers is never asked.
    ///
    /// [`RunHandle::settle_promise`]: crate::RunHandle::settle_promise
    fn start(&self, function: u32, args: Value, promise: u32) {
        let _ = (function, args, promise);
    }

    /// The call that the host made through [`RunHandle::call_function`] came to this.
    ///
    /// [`RunHandle::call_function`]: crate::RunHandle::call_function
    fn function_settled(&self, call: u32, completion: Completion);

    /// The promise of the sandbox with that number (`SANDBOX_PROMISE`) settled. Nothing speaks of the number
    /// after this message, which may itself: if the promise crosses again it has another one. So only the answer
    /// to a [`Host::call`], for which the sandbox waits, can give such a number back; anything that is sent
    /// later carries a promise of the host that comes to the same.
    fn promise_settled(&self, promise: u32, completion: Completion);

    /// The run has settled; its result can be taken. The last call that a run makes, but for one that was
    /// on its way when somebody else ended the run: what comes later is to be dropped.
    fn settled(&self);

    /// The kinds of values that [`Host::refusal`] is to be asked about.
    fn validated_kinds(&self) -> Kinds {
        Kinds::NONE
    }

    /// What of a message the host's language cannot hold, if anything: the value does not cross
    /// then, as one that cannot be cloned. Asked only of messages with [`Value::kinds`] that it is
    /// [`Host::validated_kinds`], before the host is told of them, on the thread that computes the run, while the host's own thread
    /// goes on.
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
    /// What it is, with its article: `an instance of Pool`.
    pub what: String,
}

impl Refusal {
    /// The message of the `SerializationError`; `root` says where the value stands: `globals.db`.
    #[must_use]
    pub fn text(self, root: &str) -> String {
        format!("{}: {} cannot be cloned", path::join(root, self.path.into_iter()), self.what)
    }
}

/// The sandbox waiting for one host function. Answer it once; dropped without an answer, the call
/// throws inside the sandbox.
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

    /// Answers: the call returns the value, or throws it. Late answers are dropped, and so are those
    /// of a forked child, where nobody waits for them.
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
