//! Code mode: the tools of other servers, for the cells of this one.
//!
//! In: open tools. Out: imports of all sessions; the calls of each cell, which may ask the user of the host.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use isolane::{Execution, Inputs, SessionInterceptor};
use isolane_environment::ToolSet;
use rmcp::{RoleServer, service::RequestContext};
use tokio::runtime::Handle;

use super::{
    approvals::{Approvals, Asking},
    arguments::DEFAULT_TIMEOUT_MS,
    cells::{Cells, calls_of},
};

/// The time limit of a call that asks for none, where a user may be asked meanwhile, in milliseconds.
const ASKING_TIMEOUT_MS: u64 = 300_000;

/// The tools of other servers.
pub(super) struct CodeMode {
    tools: ToolSet,
    cells: Arc<Cells>,
    approvals: Approvals,
    /// Whether the policy asks about a tool.
    asks: bool,
    executions: AtomicU64,
}

impl CodeMode {
    pub(super) fn new(tools: ToolSet, approvals: Approvals, asks: bool) -> Self {
        Self { tools, cells: Arc::default(), approvals, asks, executions: AtomicU64::new(0) }
    }

    pub(super) fn tools(&self) -> &ToolSet {
        &self.tools
    }

    /// Adds the tools to what cells may import.
    pub(super) fn insert_imports(&self, imports: &mut BTreeMap<String, Inputs>) {
        self.tools.insert_imports(imports, calls_of);
    }

    /// The parts that all sessions need, so that their cells have calls.
    pub(super) fn interceptor(&self) -> Arc<dyn SessionInterceptor> {
        Arc::clone(&self.cells) as Arc<dyn SessionInterceptor>
    }

    pub(super) fn default_timeout_ms(&self) -> u64 {
        if self.asks { ASKING_TIMEOUT_MS } else { DEFAULT_TIMEOUT_MS }
    }

    /// Begins the cell of a request.
    pub(super) fn begin(
        &self,
        context: &RequestContext<RoleServer>,
        begin: impl FnOnce() -> Execution,
    ) -> (Execution, Asking) {
        let eid = self.executions.fetch_add(1, Ordering::Relaxed) + 1;
        let asking = self.approvals.begin(eid, context);
        let calls = self.tools.calls(eid, Handle::current());
        (self.cells.begin(Some(calls), begin), asking)
    }
}
