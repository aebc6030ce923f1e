//! Handles on a run: what a caller, or a binding on its behalf, holds while it goes on.

use std::{fmt, sync::Arc};

use crate::{host::Completion, isolate::Inbound, outcome::ExecutionResult, value::Value};

/// A run, wherever its isolate lives, as those see it who do something to it.
///
/// But for `is_here` and `running`, which wait for no lock, nothing of it may be asked in a process that
/// was forked from its own.
pub(crate) trait Live: fmt::Debug + Send + Sync {
    /// Whether it belongs to this process.
    fn is_here(&self) -> bool;

    /// Whether it has not settled.
    fn running(&self) -> bool;

    /// Ends it because its caller says so.
    fn terminate(self: Arc<Self>, reason: Option<&str>);

    /// Hands something of the host's to it.
    fn deliver(self: Arc<Self>, inbound: Inbound);

    /// Answers its call of that number; one that comes too late is dropped.
    fn reply(self: Arc<Self>, call: u64, completion: Completion);

    /// The reports from that index on, each copied.
    fn reports_since(&self, index: usize) -> Vec<Value>;

    /// What it came to, once.
    fn take_result(&self) -> Option<ExecutionResult>;
}

/// A run as a binding holds it: everything that the host's side may do to it, by number.
///
/// Cheap to clone; dropping it does nothing to the run. Every method returns at once, may be
/// called from any thread, and does nothing once the run has settled, nor in a process that was
/// forked from the one that started it.
#[derive(Clone, Debug)]
pub struct Remote {
    run: Arc<dyn Live>,
}

impl Remote {
    pub(crate) fn new(run: Arc<dyn Live>) -> Self {
        Self { run }
    }

    /// Whether the run belongs to this process, and not to one that this was forked from. Nothing
    /// comes of it in a fork: not even its settlement is told there.
    #[must_use]
    pub fn is_here(&self) -> bool {
        self.run.is_here()
    }

    /// Ends the run; the first reason wins. It settles as `terminated` within 250 ms.
    pub fn terminate(&self, reason: Option<&str>) {
        // The flag first: most handles are dropped after the end, and it costs nothing.
        if self.run.running()
            && let Some(run) = self.here()
        {
            Arc::clone(run).terminate(reason);
        }
    }

    /// Whether the run has not settled yet.
    #[must_use]
    pub fn running(&self) -> bool {
        self.run.running() && self.is_here()
    }

    /// The reports from that index on, each a message of its own. Costs a copy of each.
    #[must_use]
    pub fn reports_since(&self, index: usize) -> Vec<Value> {
        self.here().map(|run| run.reports_since(index)).unwrap_or_default()
    }

    /// Settles a promise of the host that crossed as `HOST_PROMISE`.
    pub fn settle_promise(&self, promise: u32, completion: Completion) {
        self.deliver(Inbound::PromiseSettled { promise, completion });
    }

    /// Calls a function of the sandbox that crossed as `SANDBOX_FUNCTION`; `args` is an array. What
    /// comes of it is told through [`Host::function_settled`] with the number `call`, unless the
    /// run settles first.
    ///
    /// [`Host::function_settled`]: crate::Host::function_settled
    pub fn call_function(&self, function: u32, args: Value, call: u32) {
        self.deliver(Inbound::FunctionCall { function, args, call });
    }

    /// Says that the host no longer holds a function of the sandbox, which it received `times`
    /// times.
    pub fn release_function(&self, function: u32, times: u32) {
        self.deliver(Inbound::FunctionReleased { function, times });
    }

    /// The result, once, after [`Host::settled`].
    ///
    /// [`Host::settled`]: crate::Host::settled
    #[must_use]
    pub fn take_result(&self) -> Option<ExecutionResult> {
        self.here()?.take_result()
    }

    fn deliver(&self, inbound: Inbound) {
        if let Some(run) = self.here() {
            Arc::clone(run).deliver(inbound);
        }
    }

    /// The run, where its locks may be waited for.
    fn here(&self) -> Option<&Arc<dyn Live>> {
        Some(&self.run).filter(|run| run.is_here())
    }
}
