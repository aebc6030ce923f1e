//! Handles on a run: what a caller, or a binding on its behalf, holds while it goes on.

use std::sync::Arc;

use crate::{
    host::Completion,
    outcome::ExecutionResult,
    run::{Inbound, Run},
    value::Value,
};

/// A run as a binding holds it: everything that the host's side may do to it, by number.
///
/// Cheap to clone; dropping it does nothing to the run. Every method returns at once, may be
/// called from any thread, and does nothing once the run has settled.
#[derive(Clone, Debug)]
pub struct Remote {
    run: Arc<Run>,
}

impl Remote {
    pub(crate) fn new(run: Arc<Run>) -> Self {
        Self { run }
    }

    /// Ends the run; the first reason wins. It settles as `terminated` within 250 ms.
    pub fn terminate(&self, reason: Option<&str>) {
        self.run.terminate(reason);
    }

    /// Whether the run has not settled yet.
    #[must_use]
    pub fn running(&self) -> bool {
        self.run.running()
    }

    /// The reports from that index on, each a message of its own. Costs a copy of each.
    #[must_use]
    pub fn reports_since(&self, index: usize) -> Vec<Value> {
        self.run.reports_since(index)
    }

    /// Settles a promise of the host that crossed as `HOST_PROMISE`.
    pub fn settle_promise(&self, promise: u32, completion: Completion) {
        self.run.deliver(Inbound::PromiseSettled { promise, completion });
    }

    /// Calls a function of the sandbox that crossed as `SANDBOX_FUNCTION`; `args` is an array. What
    /// comes of it is told through [`Host::function_settled`] with the number `call`, unless the
    /// run settles first.
    ///
    /// [`Host::function_settled`]: crate::Host::function_settled
    pub fn call_function(&self, function: u32, args: Value, call: u32) {
        self.run.deliver(Inbound::FunctionCall { function, args, call });
    }

    /// Says that the host no longer holds a function of the sandbox, which it received `times`
    /// times.
    pub fn release_function(&self, function: u32, times: u32) {
        self.run.deliver(Inbound::FunctionReleased { function, times });
    }

    /// The result, once, after [`Host::settled`].
    ///
    /// [`Host::settled`]: crate::Host::settled
    #[must_use]
    pub fn take_result(&self) -> Option<ExecutionResult> {
        self.run.take_result()
    }
}
