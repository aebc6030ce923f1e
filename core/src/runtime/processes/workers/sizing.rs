//! The number of workers.
//!
//! In: workers that start and end, and refusals of the zygote, from the driver; runs that wait. Out: commands to the
//! zygote, and workers that are ready. As many workers are ready as the runtime keeps, some more while runs wait, and
//! none after a long time without runs. After a refusal none is ordered for a moment.

use std::{
    collections::VecDeque,
    sync::Arc,
    time::{Duration, Instant},
};

use isolane_confine::Confinement;
use rustix::io::Errno;

use super::{Job, Ready, State, Workers};
use crate::{
    protocol::control::{Control, Untold, ZygoteCommand},
    runtime::{
        processes::{
            lost::Lost,
            timer::{Timer, What},
            worker_socket::WorkerSocket,
        },
        registry::Runs,
    },
};

/// The shortest time after which a worker counts as idle.
const SHORTEST_IDLE: Duration = Duration::from_millis(10);

/// How long no worker is ordered after one was refused or ended unused.
const PAUSE: Duration = Duration::from_millis(100);

/// How many workers in a row may end before they have had a run.
const MOST_UNUSED: u32 = 32;

/// Ready workers are replaced when this part of them is missing: one in so many.
const SOME: usize = 4;

/// Workers that are started beyond the ready ones while runs wait.
const AHEAD: usize = 16;

impl<J: Job> Workers<J> {
    pub(crate) fn order(&self, order: ZygoteCommand) {
        let mut state = self.state.lock();
        state.orders.push_back(order);
        self.send_orders(&mut state);
    }

    /// The zygote has said hello.
    pub(crate) fn hello(&self, control: &Arc<Control>, confinement: Confinement) {
        {
            let mut state = self.state.lock();
            state.control = Some(Arc::clone(control));
            state.confinement = Some(confinement);
        }
        self.dispatch();
    }

    /// The zygote is gone, with all its workers.
    pub(crate) fn zygote_lost(&self) {
        let gone = {
            let mut state = self.state.lock();
            state.control = None;
            state.orders.clear();
            state.coming = 0;
            state.alive.clear();
            std::mem::take(&mut state.ready)
        };
        drop(gone);
    }

    /// Whether a zygote has said hello.
    pub(crate) fn has_zygote(&self) -> bool {
        self.state.lock().control.is_some()
    }

    /// Whether a run needs a zygote, if there is none.
    pub(crate) fn wait_for_zygote(&self) -> bool {
        !self.state.lock().fresh.is_empty()
    }

    /// No worker can be started: ends every run that waits for one. The next run tries again.
    pub(crate) fn unavailable(&self, lost: &Lost) {
        let waiting = std::mem::take(&mut self.state.lock().fresh);
        for run in waiting {
            run.lost(lost);
        }
    }

    /// A worker has started, or has ended a run and takes another.
    pub(crate) fn ready(&self, link: Arc<WorkerSocket>, is_new: bool) {
        {
            let mut state = self.state.lock();
            if is_new {
                state.coming = state.coming.saturating_sub(1);
                state.alive.insert(link.worker);
            }
            state.ready.push(Ready { link, since: Instant::now(), is_new });
        }
        self.dispatch();
    }

    /// A worker has ended a run.
    pub(crate) fn served(&self) {
        self.state.lock().died_unused = 0;
    }

    /// A worker is gone.
    pub(crate) fn gone(&self, worker: u32) {
        let (gone, give_up) = {
            let mut state = self.state.lock();
            state.alive.remove(&worker);
            let place = state.ready.iter().position(|ready| ready.link.worker == worker);
            let gone = place.map(|place| state.ready.remove(place));
            if gone.as_ref().is_some_and(|ready| ready.is_new) && state.warm {
                state.died_unused += 1;
                self.pause(&mut state);
            }
            let give_up = state.died_unused >= MOST_UNUSED;
            if give_up {
                // The next run tries again.
                (state.died_unused, state.warm) = (0, false);
            }
            (gone, give_up)
        };
        drop(gone);
        if give_up {
            let why = "workers end as soon as they are started".to_owned();
            self.unavailable(&Lost::Unavailable { why, cause: None });
        }
        self.dispatch();
    }

    /// Orders no workers for a moment.
    fn pause(&self, state: &mut State<J>) {
        let until = Instant::now() + PAUSE;
        state.pause = Some(until);
        state.timers.push(Timer { at: until, what: What::Orders });
        self.driver.ring();
    }

    /// The system refused a worker. Runs wait for other workers, if there are any; otherwise they end.
    pub(crate) fn refused(&self, error: Errno) {
        let waiting = {
            let mut state = self.state.lock();
            state.coming = state.coming.saturating_sub(1);
            self.pause(&mut state);
            let none = state.alive.is_empty() && state.coming == 0;
            if none { std::mem::take(&mut state.fresh) } else { VecDeque::new() }
        };
        let lost = Lost::refused(error.to_string(), error.into());
        for run in waiting {
            run.lost(&lost);
        }
    }

    /// Ends all ready workers once none of them has been used for long. If only some ended, others would be ordered in
    /// their place.
    pub(super) fn let_idle_go(&self, now: Instant) {
        let mut state = self.state.lock();
        let idle = self.worker.idle.max(SHORTEST_IDLE);
        let used = |ready: &Ready| now.saturating_duration_since(ready.since) < idle;
        let no_runs = self.registry.live() == 0 && state.fresh.is_empty();
        if no_runs && state.coming == 0 && !state.ready.iter().any(used) {
            state.warm = false;
            for ready in std::mem::take(&mut state.ready) {
                ready.link.close();
                state.orders.push_back(ZygoteCommand::Kill(ready.link.worker));
            }
            self.send_orders(&mut state);
        }
        state.idling = state.warm;
        if state.warm {
            state.timers.push(Timer { at: now + idle, what: What::Idle });
        }
    }

    /// Orders the workers that are missing, and sets the timer that checks for idle ones.
    pub(super) fn order_workers(&self, state: &mut State<J>) {
        if state.control.is_none() || !state.warm || self.registry.is_closed() {
            return;
        }
        if state.pause.is_some_and(|until| until > Instant::now()) {
            return;
        }
        if !std::mem::replace(&mut state.idling, true) {
            let at = Instant::now() + self.worker.idle.max(SHORTEST_IDLE);
            state.timers.push(Timer { at, what: What::Idle });
            self.driver.ring();
        }
        let wanted = self.settings.ready_isolates + state.fresh.len().min(AHEAD);
        let needs_new = state.fresh.front().is_some_and(|run| run.needs_new_worker());
        let ready = state.ready.iter().filter(|ready| ready.is_new || !needs_new).count();
        let missing = wanted.saturating_sub(ready + state.coming);
        // Several are ordered at once: each time the zygote wakes it takes a processor from somebody.
        if missing == 0 || (missing < wanted / SOME && state.fresh.is_empty()) {
            return;
        }
        state.coming += missing;
        state.orders.push_back(ZygoteCommand::Start(u32::try_from(missing).unwrap_or(u32::MAX)));
        self.send_orders(state);
    }

    /// Sends the zygote the commands that it accepts now; the driver sends the rest.
    pub(super) fn send_orders(&self, state: &mut State<J>) {
        let Some(control) = state.control.clone().filter(|_| !state.stuck) else { return };
        while let Some(order) = state.orders.front() {
            match order.send(&control) {
                // Sent, or the zygote is gone.
                Ok(()) | Err(Untold::Gone) => {
                    state.orders.pop_front();
                }
                Err(Untold::Full) => {
                    state.stuck = true;
                    let at = Instant::now() + Duration::from_millis(1);
                    state.timers.push(Timer { at, what: What::Orders });
                    self.driver.ring();
                    return;
                }
            }
        }
    }
}
