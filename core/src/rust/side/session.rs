//! The sides of a session and of its cells.
//!
//! In: a session's side, and the effects of its cells. Out: sides for cells and for copies, and waiters closed that
//! nothing settles any more.

use std::sync::Arc;

use super::{HostSide, Remote, Stage, Tables};
use crate::{Report, SessionHandle, SessionState};

impl HostSide {
    /// The side of a cell of this session. `report`: the cell's own option, in place of the session's.
    pub(in crate::rust) fn cell(self: &Arc<Self>, report: Option<&Report>) -> Arc<Self> {
        let lent = (self.native.clone(), self.tokio.clone());
        let sink = report.unwrap_or(&Report::Off);
        let side = Self::with(self.process, sink, Some(Arc::clone(self)), lent);
        if report.is_none() {
            let sink = self.tables.lock().report.clone();
            side.tables.lock().report = sink;
        }
        side
    }

    /// The side of a copy of this session, to which nothing is lent yet.
    pub(in crate::rust) fn copy(&self) -> Arc<Self> {
        Self::with(self.process, &Report::Off, None, (self.native.clone(), self.tokio.clone()))
    }

    /// Gives a copy all that was lent to this session by now.
    pub(in crate::rust) fn copy_tables(&self, copy: &Self) {
        let tables = self.tables.lock();
        let copied = Tables {
            report: tables.report.clone(),
            functions: tables.functions.clone(),
            names: tables.names.clone(),
            native: tables.native.clone(),
            numbers: tables.numbers.clone(),
            promises: tables.promises.clone(),
            next_promise: tables.next_promise,
            next_call: tables.next_call,
            ..Tables::default()
        };
        drop(tables);
        *copy.tables.lock() = copied;
    }

    /// The handle of the session, which keeps it open; `None` for a run, and once nobody has one.
    pub(in crate::rust) fn session_handle(&self) -> Option<SessionHandle> {
        match &*self.stage.lock() {
            Stage::Running(Remote::Session(session), _) => session.upgrade(),
            _ => None,
        }
    }

    /// The side with the tables: that of the session, if this is a cell's.
    pub(super) fn root(&self) -> &Self {
        self.session.as_deref().unwrap_or(self)
    }

    /// A number for this side, for as long as it lives.
    pub(super) fn address(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    /// Closes the waiters for promises of the sandbox that are undone with a cell.
    pub(super) fn conclude(&self, cell: &Self, state: SessionState) {
        let mut tables = self.tables.lock();
        let Tables { sandbox_promises, fresh_promises, .. } = &mut *tables;
        let is_its = |(address, _): &mut (usize, u32)| *address == cell.address();
        let fresh: Vec<_> = fresh_promises.extract_if(.., is_its).collect();
        let gone: Vec<_> = match state {
            SessionState::Kept => Vec::new(),
            SessionState::RolledBack => {
                fresh.iter().filter_map(|(_, number)| sandbox_promises.remove(number)).collect()
            }
            SessionState::Reset => sandbox_promises.drain().map(|(_, it)| it).collect(),
        };
        drop(tables);
        for waiter in gone {
            waiter.close();
        }
    }
}
