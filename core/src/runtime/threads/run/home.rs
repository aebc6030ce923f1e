//! A run's use of the home of its session.
//!
//! In: grants of the home. Out: a thread that computes with one, or that lends the home to others while it waits. A
//! thread that waits for the home has no permit, and one with a permit never waits for the home; so one of them can
//! always go on.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use super::{Phase, Run};
use crate::{
    data::cell::SessionState,
    isolate::End,
    os::sync::{Condvar, Mutex},
    runtime::{
        record::Reason,
        threads::homes::{Grant, Guest, Site},
    },
};

/// The right to use a home, from when a run can compute until it waits or is over.
#[derive(Default)]
pub(crate) struct AtHome {
    state: Mutex<State>,
    granted: Condvar,
    /// Whether the run's thread waits to go on.
    waits: AtomicBool,
}

#[derive(Default)]
enum State {
    #[default]
    Away,
    /// The run's thread waits, in the middle of its code.
    Awaited,
    There(Grant<Run>),
}

impl AtHome {
    /// Gives the home to others.
    pub(super) fn leave(&self) {
        let former = std::mem::take(&mut *self.state.lock());
        drop(former);
    }

    /// Whether the run's thread waits for the home, so that it does not come back from its code.
    pub(super) fn waits(&self) -> bool {
        self.waits.load(Ordering::Relaxed)
    }

    fn site(&self) -> Option<Arc<Site<Run>>> {
        match &*self.state.lock() {
            State::There(grant) => grant.site().cloned(),
            State::Away | State::Awaited => None,
        }
    }

    fn is_there(&self) -> bool {
        matches!(*self.state.lock(), State::There(_))
    }
}

impl Run {
    /// Lends the home of the session to others while `wait` waits for anything but the engine. The isolate has left the
    /// home, and occupies it again afterwards.
    pub(super) fn lend_home<T>(self: &Arc<Self>, wait: impl FnOnce() -> T) -> T {
        let site = self.cell.as_ref().and_then(|part| Some((part, part.own.site()?)));
        let Some((part, site)) = site else { return wait() };
        part.own.leave();
        let waited = wait();
        *part.own.state.lock() = State::Awaited;
        site.request(self);
        if !part.own.is_there() {
            part.own.waits.store(true, Ordering::Relaxed);
            let computed = self.end_slice();
            self.shared.lock().computed += computed;
            self.resources.scheduler.release_permit(self);
            let mut state = part.own.state.lock();
            while !matches!(*state, State::There(_)) {
                state = part.own.granted.wait(state);
            }
            drop(state);
            self.resources.scheduler.take_permit(self);
            self.begin_slice();
            part.own.waits.store(false, Ordering::Relaxed);
        }
        waited
    }

    /// Whether another run waits for the home of this one's session.
    pub(super) fn home_is_wanted(&self) -> bool {
        let site = self.cell.as_ref().and_then(|part| part.own.site());
        site.is_some_and(|site| site.is_wanted())
    }
}

impl Guest for Run {
    fn granted(self: &Arc<Self>, grant: Grant<Self>) -> Option<Grant<Self>> {
        let Some(part) = &self.cell else { return Some(grant) };
        let mut state = part.own.state.lock();
        if matches!(*state, State::Awaited) {
            // Also after the run has settled: its code has to be left.
            *state = State::There(grant);
            drop(state);
            part.own.granted.notify_all();
            return None;
        }
        if self.is_settled() {
            return Some(grant);
        }
        *state = State::There(grant);
        drop(state);
        self.resources.scheduler.enqueue(Arc::clone(self));
        None
    }

    fn evicted(self: &Arc<Self>) {
        let Some(part) = &self.cell else { return };
        let former = {
            let mut shared = self.shared.lock();
            if shared.claimed || self.is_settled() {
                return;
            }
            shared.claimed = true;
            shared.record.ask(Reason::Reset);
            self.termination.raise();
            match std::mem::replace(&mut shared.phase, Phase::Over) {
                Phase::Computing => {
                    // Its thread waits in the middle of its code, which it leaves when it is back.
                    shared.phase = Phase::Computing;
                    None
                }
                former => Some(former),
            }
        };
        drop(former);
        let error = self.settle(End::Asked, None, SessionState::Reset);
        self.lose(part, error);
    }
}
