//! The cells that live in a kernel, and the resets that end them.
//!
//! In: cells of any notebook that shares the kernel, and resets. Out: cells that wait while a reset goes on, and a reset that
//! waits until no cell lives. Resets at the same time are one.

use std::{future::Future, sync::Arc, time::Duration};

use tokio::{sync::watch, time::Instant};

use super::{Cause, End};

/// The cells that live in a kernel.
#[derive(Debug)]
pub(crate) struct Lives(watch::Sender<State>);

#[derive(Debug)]
struct State {
    is_resetting: bool,
    cells: Vec<End>,
    /// When the last cell ended.
    used: Instant,
}

/// The life of a cell, until it is dropped.
#[derive(Debug)]
pub(crate) struct Life<'l> {
    lives: &'l Lives,
    end: End,
}

/// A reset, until it is dropped.
#[derive(Debug)]
pub(crate) struct Reset {
    lives: Arc<Lives>,
    /// Whether no other one was going on.
    is_first: bool,
}

impl Lives {
    pub(crate) fn new() -> Arc<Self> {
        let state = State { is_resetting: false, cells: Vec::new(), used: Instant::now() };
        Arc::new(Self(watch::Sender::new(state)))
    }

    /// A cell begins to live, once no reset goes on.
    pub(crate) async fn enter(&self, end: &End) -> Life<'_> {
        let mut states = self.0.subscribe();
        loop {
            let has_entered = self.0.send_if_modified(|state| {
                if !state.is_resetting {
                    state.cells.push(end.clone());
                }
                !state.is_resetting
            });
            if has_entered {
                return Life { lives: self, end: end.clone() };
            }
            // The sender is here.
            let _ = states.wait_for(|state| !state.is_resetting).await;
        }
    }

    /// Ends all cells by that cause. Cells that come wait until the reset is dropped.
    pub(crate) fn reset(self: &Arc<Self>, cause: &Cause) -> Reset {
        let mut ends = Vec::new();
        let is_first = self.0.send_if_modified(|state| {
            ends.clone_from(&state.cells);
            !std::mem::replace(&mut state.is_resetting, true)
        });
        for end in ends {
            end.end(cause.clone());
        }
        Reset { lives: Arc::clone(self), is_first }
    }

    /// A reset, if no cell has lived for that time; `None` if one has, or if another reset goes on.
    pub(crate) fn reset_if_idle(self: &Arc<Self>, idle: Duration) -> Option<Reset> {
        let is_idle = self.0.send_if_modified(|state| {
            let is_idle =
                state.cells.is_empty() && !state.is_resetting && state.used.elapsed() >= idle;
            state.is_resetting |= is_idle;
            is_idle
        });
        is_idle.then(|| Reset { lives: Arc::clone(self), is_first: true })
    }

    /// Whether a cell lives.
    pub(crate) fn is_busy(&self) -> bool {
        !self.0.borrow().cells.is_empty()
    }

    /// When the last cell ended.
    pub(crate) fn used(&self) -> Instant {
        self.0.borrow().used
    }
}

impl Drop for Life<'_> {
    fn drop(&mut self) {
        self.lives.0.send_modify(|state| {
            state.cells.retain(|known| !known.is(&self.end));
            state.used = Instant::now();
        });
    }
}

impl Reset {
    /// Does `act` once no cell lives; a reset that has joined another one waits for the end of that.
    pub(crate) async fn finish(self, act: impl Future<Output = ()>) {
        let mut states = self.lives.0.subscribe();
        // The sender is here.
        if self.is_first {
            let _ = states.wait_for(|state| state.cells.is_empty()).await;
            act.await;
        } else {
            let _ = states.wait_for(|state| !state.is_resetting).await;
        }
    }
}

impl Drop for Reset {
    fn drop(&mut self) {
        if self.is_first {
            self.lives.0.send_modify(|state| state.is_resetting = false);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::{FutureExt as _, join};

    use super::*;

    #[tokio::test]
    async fn a_reset_ends_cells_and_holds_up_those_that_come() {
        let lives = Lives::new();
        let (end, later) = (End::new(), End::new());
        let life = lives.enter(&end).await;
        assert!(lives.is_busy());
        let (first, second) = (lives.reset(&Cause::Reset), lives.reset(&Cause::Closed));
        assert_eq!(end.cause(), Some(Cause::Reset));
        assert!(lives.enter(&later).now_or_never().is_none());
        let mut acts = Vec::new();
        let done = async {
            join!(first.finish(async { acts.push("first") }), second.finish(async {}));
        };
        join!(done, async { drop(life) });
        assert_eq!((acts, later.cause()), (vec!["first"], None));
        drop(lives.enter(&later).await);
        assert!(!lives.is_busy());
    }

    #[tokio::test(start_paused = true)]
    async fn a_kernel_is_idle_once_its_last_cell_is_long_gone() {
        let lives = Lives::new();
        let second = Duration::from_secs(1);
        let life = lives.enter(&End::new()).await;
        tokio::time::advance(second).await;
        assert!(lives.reset_if_idle(Duration::ZERO).is_none());
        drop(life);
        assert!(lives.reset_if_idle(second).is_none());
        tokio::time::advance(second).await;
        let reset = lives.reset_if_idle(second).expect("nothing lives");
        assert!(lives.reset_if_idle(second).is_none());
        assert!(lives.enter(&End::new()).now_or_never().is_none());
        drop(reset);
        drop(lives.enter(&End::new()).await);
    }

    #[tokio::test]
    async fn a_reset_that_is_given_up_lets_cells_live() {
        let lives = Lives::new();
        let end = End::new();
        let life = lives.enter(&end).await;
        drop(lives.reset(&Cause::Reset));
        drop(lives.enter(&End::new()).await);
        drop(life);
    }
}
