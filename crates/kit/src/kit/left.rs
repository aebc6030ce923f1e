//! Calls whose records wait for a later cell.
//!
//! In: the cells of a session that are over. Out: the records of their calls, each once, in the result of a cell. A call
//! that a cell did not await is told when it has ended; one that the host made between cells has no result of its own. The
//! commands of such calls for a page are announced to the caller of the newest cell.

use std::sync::{Arc, Mutex, PoisonError};

use super::{
    calls::{CallRecord, Calls},
    run::RunState,
};

/// The calls of a session whose records nobody has been told: they had no answer when their cell was over, or their cell
/// had no result.
#[derive(Default)]
pub(super) struct Left {
    untold: Mutex<Untold>,
    /// Announces commands for the page to the caller of the newest cell.
    newest: Mutex<Option<Announcer>>,
}

type Announcer = Arc<dyn Fn() + Send + Sync>;

#[derive(Default)]
struct Untold {
    cells: Vec<Arc<RunState>>,
    /// How many calls these have.
    calls: u64,
    /// How many calls of others have no record.
    dropped: u64,
}

impl Left {
    /// Adds the calls of a cell. Those that have ended have records while there are no more than `most` of them.
    pub(super) fn add(&self, cell: Arc<RunState>, most: u64) {
        self.locked(|untold| {
            let calls = cell.with_calls(|calls| {
                if untold.calls.saturating_add(calls.untold()) > most {
                    calls.drop_ended();
                }
                calls.untold()
            });
            if calls > 0 {
                untold.calls += calls;
                untold.cells.push(cell);
            } else {
                untold.dropped += cell.with_calls(Calls::take_records).1;
            }
        });
    }

    /// The records of those that have ended, cell after cell, and how many have none.
    pub(super) fn take_records(&self) -> (Vec<CallRecord>, u64) {
        self.locked(|untold| {
            let (mut records, mut dropped) = (Vec::new(), std::mem::take(&mut untold.dropped));
            untold.calls = 0;
            untold.cells.retain(|cell| {
                let calls = cell.with_calls(|calls| {
                    let (ended, more) = calls.take_records();
                    records.extend(ended);
                    dropped += more;
                    calls.untold()
                });
                untold.calls += calls;
                calls > 0
            });
            (records, dropped)
        })
    }

    /// The announcer of the newest cell that has one.
    pub(super) fn newest(&self) -> Option<Announcer> {
        self.newest.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn set_newest(&self, announce: Announcer) {
        let before = self.newest.lock().unwrap_or_else(PoisonError::into_inner).replace(announce);
        drop(before);
    }

    fn locked<T>(&self, act: impl FnOnce(&mut Untold) -> T) -> T {
        act(&mut self.untold.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
