//! The end of the wait for a command.
//!
//! In: the run that has the command. Out: the moment from which nobody waits for it: the run has ended, or its cell was
//! given up. A command that begins later than that, such as one that leaves a page, has its time alone.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use isolane::{EndHook, NativeRun};
use tokio::sync::Notify;

use crate::kit::{Hook, KitRun};

/// Says when a command is given up.
pub(super) struct Abandonment {
    said: Arc<Said>,
    /// They are in place for as long as this is.
    _hooks: Option<(EndHook, Arc<Hook>)>,
}

struct Said {
    is_abandoned: AtomicBool,
    notify: Notify,
}

impl Abandonment {
    /// That of a command of the run. `tell` is called once it is given up, on the thread that gives it up.
    pub(super) fn of(run: &NativeRun, tell: impl Fn() + Send + Sync + 'static) -> Self {
        let said = Arc::new(Said { is_abandoned: AtomicBool::new(false), notify: Notify::new() });
        let saying = Arc::clone(&said);
        let hook: Arc<Hook> = Arc::new(move || {
            if !saying.is_abandoned.swap(true, Ordering::AcqRel) {
                tell();
                saying.notify.notify_one();
            }
        });
        let cell = run.interception().and_then(KitRun::of);
        let is_late = run.is_over() || cell.is_some_and(|cell| !cell.on_loss(&hook));
        let hooks = (!is_late).then(|| {
            let of_run = Arc::clone(&hook);
            (run.on_end(move || of_run()), hook)
        });
        Self { said, _hooks: hooks }
    }

    /// Waits for the end of the wait. At most one future waits.
    pub(super) async fn reached(&self) {
        self.said.notify.notified().await;
    }
}

impl fmt::Debug for Abandonment {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_abandoned = self.said.is_abandoned.load(Ordering::Relaxed);
        out.debug_struct("Abandonment").field("is_abandoned", &is_abandoned).finish_non_exhaustive()
    }
}
