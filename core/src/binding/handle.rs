//! Handles on a run, for its caller or a binding on the caller's behalf.

use std::{
    fmt,
    sync::{Arc, Weak},
    time::Duration,
};

use super::{
    host::Completion,
    interception::{InterceptedRun, Interception},
};
use crate::{
    binding::inbound::Inbound,
    data::outcome::ExecutionResult,
    value::{Charge, Value},
};

/// A run or a session, as a sender of the host's messages sees it.
pub(crate) trait Recipient: Send + Sync {
    /// Delivers a message of the host.
    fn deliver(self: Arc<Self>, inbound: Inbound);

    /// Charges bytes that somebody holds for it. If there is no room for them, it ends the run and returns `None`.
    fn charge(self: Arc<Self>, bytes: usize) -> Option<Charge>;

    /// Whether it is a run that has settled without anybody ending it, and within its memory limit.
    fn ended_by_itself(&self) -> bool {
        false
    }
}

/// Control over a run, wherever its isolate is.
///
/// In a process that was forked from the run's own, only `is_here` and `running` may be called: they wait for no lock.
pub(crate) trait RunControl: Recipient + fmt::Debug {
    /// Whether it belongs to this process.
    fn is_here(&self) -> bool;

    /// Whether it has not settled.
    fn running(&self) -> bool;

    /// Whether it has settled because somebody or its memory limit ended it.
    fn was_ended(&self) -> bool;

    /// The time for which it has computed: see [`RunHandle::computed`].
    fn computed(&self) -> Duration {
        Duration::ZERO
    }

    /// Terminates it for its caller.
    fn terminate(self: Arc<Self>, reason: Option<&str>);

    /// No thread of the host takes its events any more, or one does again: see [`RunHandle::lose_host`].
    fn lose_host(&self, is_lost: bool) {
        let _ = is_lost;
    }

    /// Answers its call of that number; an answer that comes too late is dropped.
    fn reply(self: Arc<Self>, call: u64, completion: Completion);

    /// The reports from that index on that the host has not taken out.
    fn reports_since(&self, index: usize) -> Vec<Arc<Value>>;

    /// The oldest report that the host has not taken out.
    fn take_report(&self) -> Option<Value>;

    /// The bytes of its result without the reports.
    fn result_bytes(&self) -> usize;

    /// Takes its result out, to change it; the reports stay, and are not in it.
    fn lend_result(&self) -> Option<ExecutionResult>;

    /// Puts the changed result back, to which the reports are added.
    fn return_result(&self, result: ExecutionResult);

    /// Its result, once.
    fn take_result(&self) -> Option<ExecutionResult>;

    /// Its interception, if it is intercepted.
    fn interception(&self) -> Option<&Interception> {
        None
    }

    /// The poller for its events on the caller's thread, if it is in another process.
    fn poller(&self) -> Option<Weak<dyn Poller>> {
        None
    }
}

/// Reads events of runs in other processes on a thread of the caller.
pub(crate) trait Poller: fmt::Debug + Send + Sync {
    /// Reads a few of the events that have arrived. Returns whether reading again pays off.
    fn hear(&self) -> bool;

    /// Says that the caller will not read again soon.
    fn rest(&self);
}

/// Reads events of runs in other processes on the caller's own thread, so that no other thread has to be woken for
/// them. It is for a binding that polls for events for a moment, and would otherwise only compete for a processor with
/// the thread that brings them.
///
/// Cheap to clone, and keeps nothing alive. Does nothing in a process that was forked from its own.
#[derive(Clone, Debug)]
pub struct EventPoller {
    poller: Weak<dyn Poller>,
}

impl EventPoller {
    /// Reads the events that have arrived, up to some 4 KiB of each of a few runs, and calls their hosts on this
    /// thread. Costs a system call, and a lock that it does not wait for. Call it again within half a millisecond, or
    /// call [`EventPoller::rest`]: no other thread is woken meanwhile. Returns whether reading again pays off: not if a
    /// run sends a lot, nor if runs wait for processes, which need the processors more.
    #[must_use]
    pub fn hear(&self) -> bool {
        self.poller.upgrade().is_some_and(|poller| poller.hear())
    }

    /// Stops polling: the runtime's own thread reads events again.
    pub fn rest(&self) {
        if let Some(poller) = self.poller.upgrade() {
            poller.rest();
        }
    }
}

/// A binding's handle on a run: everything that the host's side may do to the run, by number.
///
/// Cheap to clone; dropping it does nothing to the run. Every method returns at once, may be called from any thread,
/// and does nothing once the run has settled, nor in a process that was forked from the one that started it.
#[derive(Clone, Debug)]
pub struct RunHandle {
    pub(crate) run: Arc<dyn RunControl>,
}

impl RunHandle {
    pub(crate) fn new(run: Arc<dyn RunControl>) -> Self {
        Self { run }
    }

    /// The handle on a run that may be intercepted, and tells its interceptor.
    pub(crate) fn of(run: Arc<dyn RunControl>, interception: Option<Interception>) -> Self {
        let Some(interception) = interception else { return Self::new(run) };
        let intercepted = InterceptedRun::new(Arc::clone(&run), interception.clone());
        let handle = Self::new(Arc::new(intercepted));
        interception.interceptor().started(&handle);
        interception.belongs_to(&run);
        handle
    }

    /// Whether the run belongs to this process, and not to one that this was forked from. In a forked child the run
    /// does nothing: not even its settlement is reported there.
    #[must_use]
    pub fn is_here(&self) -> bool {
        self.run.is_here()
    }

    /// Ends the run; the first reason wins. It settles as `terminated` within 250 ms.
    pub fn terminate(&self, reason: Option<&str>) {
        // The flag is checked first, at no cost: most handles are dropped after the end.
        if self.run.running()
            && let Some(run) = self.here()
        {
            Arc::clone(run).terminate(reason);
        }
    }

    /// The interception of the run, if it is intercepted.
    #[must_use]
    pub fn interception(&self) -> Option<Interception> {
        self.run.interception().cloned()
    }

    /// The part that the interceptor of the run adds to its result, once, after the result was taken: see
    /// [`RunInterceptor::extra`](crate::RunInterceptor::extra).
    #[must_use]
    pub fn take_extra(&self) -> Option<Value> {
        self.run.interception()?.interceptor().extra()
    }

    /// Whether the run has not settled yet.
    #[must_use]
    pub fn running(&self) -> bool {
        self.run.running() && self.is_here()
    }

    /// Whether the run has settled because somebody ended it, or at a limit. A host starts none of its calls that are left
    /// then ([`Host::start`](crate::Host::start)). A run that ended by itself has made them, and they start.
    #[must_use]
    pub fn was_ended(&self) -> bool {
        !self.run.running() && self.here().is_some_and(|run| run.was_ended())
    }

    /// The time for which the code of the run has computed so far, about: without the time in which it waits for its host,
    /// or for its turn. Zero for a call of a system.
    #[must_use]
    pub fn computed(&self) -> Duration {
        self.here().map(|run| run.computed()).unwrap_or_default()
    }

    /// Says that nobody takes the events of a call of a system (`true`), because the event loop of its caller has closed, or
    /// that another loop takes them (`false`). Meanwhile the functions of the call throw, those that were called before
    /// too: their system would wait for ever. Does nothing for runs and cells.
    pub fn lose_host(&self, is_lost: bool) {
        if let Some(run) = self.here() {
            run.lose_host(is_lost);
        }
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

    /// The oldest report that has not been taken yet. The caller owns it from now on, and [`ExecutionResult::reports`]
    /// does not have it. For a binding that keeps the reports that it has shown to the sink, so that nothing is held
    /// twice.
    #[must_use]
    pub fn take_report(&self) -> Option<Value> {
        self.here()?.take_report()
    }

    /// Settles a promise of the host that crossed as `HOST_PROMISE`.
    pub fn settle_promise(&self, promise: u32, completion: Completion) {
        self.deliver(Inbound::PromiseSettled { promise, completion });
    }

    /// Calls a function of the sandbox that crossed as `SANDBOX_FUNCTION`; `args` is an array. The outcome is reported
    /// through [`Host::function_settled`] with the number `call`, unless the run settles first.
    ///
    /// [`Host::function_settled`]: crate::Host::function_settled
    pub fn call_function(&self, function: u32, args: Value, call: u32) {
        self.deliver(Inbound::FunctionCall { function, args, call });
    }

    /// Releases a function of the sandbox, which the host received `times` times.
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

    /// The poller for the run's events on the caller's own thread; `None` if the run is in this process.
    #[must_use]
    pub fn event_poller(&self) -> Option<EventPoller> {
        self.here()?.poller().map(|poller| EventPoller { poller })
    }

    fn deliver(&self, inbound: Inbound) {
        if let Some(run) = self.here() {
            Arc::clone(run).deliver(inbound);
        }
    }

    /// The run, if its locks may be waited for.
    fn here(&self) -> Option<&Arc<dyn RunControl>> {
        Some(&self.run).filter(|run| run.is_here())
    }
}
