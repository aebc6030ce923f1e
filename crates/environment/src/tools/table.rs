//! The tools of a service.
//!
//! In: descriptions and handlers. Out: tools by name, and what is known of them. A table never changes: adding a tool
//! makes another one, so an execution keeps those of its start.

use std::{collections::BTreeMap, fmt, sync::Arc};

use isolane::{Error, ErrorKind};
use isolane_schema::Schema;

use super::{
    ToolDescription, ToolHandler, ToolInfo,
    names::{identifier, is_name},
};

/// A tool.
pub(crate) struct Tool {
    pub(crate) info: ToolInfo,
    /// The schema of its arguments, if it has one.
    pub(crate) schema: Option<Arc<Schema>>,
    pub(crate) handler: Arc<dyn ToolHandler>,
}

impl fmt::Debug for Tool {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Tool").field("info", &self.info).finish_non_exhaustive()
    }
}

impl ToolInfo {
    /// The name by which an environment calls it: `github.list-issues`.
    #[must_use]
    pub fn full_name(&self) -> String {
        format!("{}.{}", self.service, self.name)
    }

    /// The name in the code: `github.listIssues`.
    #[must_use]
    pub fn shown_name(&self) -> String {
        format!("{}.{}", self.service, self.identifier)
    }
}

/// Tools by their full names.
#[derive(Debug, Default)]
pub(crate) struct ToolTable {
    tools: BTreeMap<String, Arc<Tool>>,
    infos: Arc<[ToolInfo]>,
}

impl ToolTable {
    /// The same with one tool more.
    ///
    /// # Errors
    /// A name that is none or is taken, a schema that is none.
    pub(crate) fn with(
        &self,
        service: &str,
        name: &str,
        description: ToolDescription,
        handler: Arc<dyn ToolHandler>,
    ) -> Result<Self, Error> {
        self.with_all([(service.to_owned(), name.to_owned(), description, handler)])
    }

    /// The same with more tools.
    ///
    /// # Errors
    /// As [`with`](Self::with), of the first that is wrong.
    pub(crate) fn with_all(
        &self,
        added: impl IntoIterator<Item = (String, String, ToolDescription, Arc<dyn ToolHandler>)>,
    ) -> Result<Self, Error> {
        let mut tools = self.tools.clone();
        let mut shown: BTreeMap<String, String> =
            self.infos.iter().map(|info| (info.shown_name(), info.full_name())).collect();
        for (service, name, description, handler) in added {
            let info = ToolInfo { identifier: identifier(&name), service, name, description };
            let schema = check(&info)?;
            let full = info.full_name();
            if tools.contains_key(&full) {
                return Err(wrong(format!("there is a tool {full} already")));
            }
            if let Some(other) = shown.insert(info.shown_name(), full.clone()) {
                let shown = info.shown_name();
                return Err(wrong(format!("{full} and {other} would both be {shown}")));
            }
            tools.insert(full, Arc::new(Tool { info, schema, handler }));
        }
        Ok(Self::of(tools))
    }

    /// The same without one tool.
    pub(crate) fn without(&self, full_name: &str) -> Self {
        let mut tools = self.tools.clone();
        tools.remove(full_name);
        Self::of(tools)
    }

    fn of(tools: BTreeMap<String, Arc<Tool>>) -> Self {
        let mut infos: Vec<_> = tools.values().map(|tool| tool.info.clone()).collect();
        // A service is one module, so its tools stand together.
        infos.sort_by(|a, b| (&a.service, &a.name).cmp(&(&b.service, &b.name)));
        Self { tools, infos: infos.into() }
    }

    pub(crate) fn get(&self, full_name: &str) -> Option<&Arc<Tool>> {
        self.tools.get(full_name)
    }

    pub(crate) fn infos(&self) -> &Arc<[ToolInfo]> {
        &self.infos
    }
}

/// The schema of a tool's arguments, if it has one.
fn check(info: &ToolInfo) -> Result<Option<Arc<Schema>>, Error> {
    for (kind, name) in [("a service", &info.service), ("a tool", &info.name)] {
        if !is_name(name) {
            let shown: String = name.chars().take(100).collect();
            return Err(wrong(format!("'{shown}' is no name of {kind}")));
        }
    }
    let schema = info.description.input_schema.as_ref();
    schema.map(Schema::new).transpose().map(|schema| schema.map(Arc::new)).map_err(|fault| {
        wrong(format!("the inputSchema of {} is no JSON schema: {fault}", info.full_name()))
    })
}

fn wrong(message: String) -> Error {
    Error::new(ErrorKind::Type, message)
}
