//! Tools that belong to no service: those of one run, or of many.
//!
//! In: tools, as for a service. Out: imports for code, the calls of executions, types.

use std::{collections::BTreeMap, sync::Arc};

use isolane::{Error, Inputs, NativeRun};
use tokio::runtime::Handle;

use super::{
    ToolCalls, ToolDescription, ToolHandler, ToolInfo,
    imports::{self, Finder},
    table::ToolTable,
    types::tool_types,
};

/// Tools for code that runs without a process service. Clone: cheap, and a copy of its own.
#[derive(Clone, Debug, Default)]
pub struct ToolSet {
    table: Arc<ToolTable>,
}

impl ToolSet {
    /// Adds tools: the service, the name, the description, and the handler of each.
    ///
    /// # Errors
    /// A name that is none or is taken, a schema that is none; nothing is added then.
    pub fn add(
        &mut self,
        tools: impl IntoIterator<Item = (String, String, ToolDescription, Arc<dyn ToolHandler>)>,
    ) -> Result<(), Error> {
        self.table = Arc::new(self.table.with_all(tools)?);
        Ok(())
    }

    /// The descriptions of the tools, those of a service together.
    #[must_use]
    pub fn infos(&self) -> &[ToolInfo] {
        self.table.infos()
    }

    /// The `.d.ts` of all tools: a module for each service.
    #[must_use]
    pub fn types(&self) -> String {
        tool_types(self.infos())
    }

    /// The calls of an execution with that number. The handlers answer in the tokio runtime of the handle.
    #[must_use]
    pub fn calls(&self, eid: u64, handle: Handle) -> Arc<ToolCalls> {
        Arc::new(ToolCalls::new(eid, Arc::clone(&self.table), handle, None))
    }

    /// Adds the tools to what code may import, a module for each service. `find` tells the execution of a run, or of its
    /// present cell; a call without one throws.
    pub fn insert_imports(
        &self,
        imports: &mut BTreeMap<String, Inputs>,
        find: impl Fn(&NativeRun) -> Option<Arc<ToolCalls>> + Send + Sync + 'static,
    ) {
        imports::insert(imports, self.infos(), &Finder(Arc::new(find)));
    }
}
