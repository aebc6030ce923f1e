//! Handles on a run: what a caller, or a binding on its behalf, holds while it goes on.

use std::{
    fmt,
    sync::{Arc, Weak},
};

use super::host::Completion;
use crate::{
    binding::inbound::Inbound,
    data::outcome::ExecutionResult,
    value::{Charge, Value},
};

/// A run, wherever its isolate lives, as those see it who do something to it.
///
/// But for `is_here` and `running`, which wait for no lock, nothing of it may be asked in a process that
/// was forked from its own.
pub(crate) trait RunControl: fmt::Debug + Send + Sync {
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

    /// Counts so many bytes that somebody holds for it; `None`, and its end, if there is no room for them.
    fn charge(self: Arc<Self>, bytes: usize) -> Option<Charge>;

    /// The reports from that index on that the host has not taken out.
    fn reports_since(&self, index: usize) -> Vec<Arc<Value>>;

    /// The oldest report that the host has not taken out.
    fn take_report(&self) -> Option<Value>;

    /// What it came to, once.
    fn take_result(&self) -> Option<ExecutionResult>;

    /// Where it can be heard on the caller's thread, if it has to be heard from somewhere.
    fn poller(&self) -> Option<Weak<dyn Poller>> {
        None
    }
}

/// What hears what runs in other processes say.
pub(crate) trait Poller: fmt::Debug + Send + Sync {
    /// Hears a little of what was said by now; false if that is better left to others.
    fn hear(&self) -> bool;

    /// The caller will not hear more shortly.
    fn rest(&self);
}

/// Hears runs in other processes on the caller's own thread, so that no other one has to be woken for
/// what they say: for a binding that looks for events by itself for a moment, and would otherwise only
/// compete for a processor with the thread that brings them.
///
/// Cheap to clone, and keeps nothing alive. Does nothing in a process that was forked from its own.
#[derive(Clone, Debug)]
pub struct EventPoller {
    poller: Weak<dyn Poller>,
}

impl EventPoller {
    /// Hears what runs have said by now, up to some 4 KiB of each of a few: their hosts are called on
    /// this thread. Costs a call of the system, and a lock that it does not wait for. To be called again
    /// within half a millisecond, or followed by [`EventPoller::rest`]: no other thread is woken meanwhile.
    /// Returns whether looking again is worth it; not where somebody says a lot, nor where runs wait for
    /// processes, which need the processors more.
    #[must_use]
    pub fn hear(&self) -> bool {
        self.poller.upgrade().is_some_and(|poller| poller.hear())
    }

    /// Leaves it to others again.
    pub fn rest(&self) {
        if let Some(poller) = self.poller.upgrade() {
            poller.rest();
        }
    }
}

/// A run as a binding holds it: everything that the host's side may do to it, by number.
///
/// Cheap to clone; dropping it does nothing to the run. Every method returns at once, may be
/// called from any thread, and does nothing once the run has settled, nor in a process that was
/// forked from the one that started it.
#[derive(Clone, Debug)]
pub struct RunHandle {
    pub(crate) run: Arc<dyn RunControl>,
}

impl RunHandle {
    pub(crate) fn new(run: Arc<dyn RunControl>) -> Self {
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
        self.shared_reports_since(index).into_iter().map(Arc::unwrap_or_clone).collect()
    }

    /// As [`RunHandle::reports_since`], for a reader that needs no copies.
    #[must_use]
    pub fn shared_reports_since(&self, index: usize) -> Vec<Arc<Value>> {
        self.here().map(|run| run.reports_since(index)).unwrap_or_default()
    }

    /// The oldest report that has not been taken yet: it is the caller's own from now on, and in no
    /// [`ExecutionResult::reports`]. For a binding that keeps what it has shown to the sink, so that
    /// nothing is held twice.
    #[must_use]
    pub fn take_report(&self) -> Option<Value> {
        self.here()?.take_report()
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

    /// Where to hear the run on the caller's own thread; `None` where it is in this process, and speaks
    /// for itself.
    #[must_use]
    pub fn event_poller(&self) -> Option<EventPoller> {
        self.here()?.poller().map(|poller| EventPoller { poller })
    }

    fn deliver(&self, inbound: Inbound) {
        if let Some(run) = self.here() {
            Arc::clone(run).deliver(inbound);
        }
    }

    /// The run, where its locks may be waited for.
    fn here(&self) -> Option<&Arc<dyn RunControl>> {
        Some(&self.run).filter(|run| run.is_here())
    }
}
