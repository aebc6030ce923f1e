//! The tools of a service.
//!
//! In: descriptions and handlers. Out: tools by name, and what is known of them. A table never changes: adding a tool
//! makes another one, so an execution keeps those of its start.

use std::{collections::BTreeMap, fmt, sync::Arc};

use isolane::{Error, ErrorKind};

use super::{
    ToolDescription, ToolHandler, ToolInfo,
    arguments::Arguments,
    names::{identifier, is_name},
};

/// A tool.
pub(crate) struct Tool {
    pub(crate) info: ToolInfo,
    /// The check of its arguments, if it has a schema.
    pub(crate) arguments: Option<Arguments>,
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
        let wrong = |message: String| Error::new(ErrorKind::Type, message);
        for (kind, name) in [("a service", service), ("a tool", name)] {
            if !is_name(name) {
                let shown: String = name.chars().take(100).collect();
                return Err(wrong(format!("'{shown}' is no name of {kind}")));
            }
        }
        let info = ToolInfo {
            service: service.to_owned(),
            name: name.to_owned(),
            identifier: identifier(name),
            description,
        };
        let full = info.full_name();
        if self.tools.contains_key(&full) {
            return Err(wrong(format!("there is a tool {full} already")));
        }
        let is_same = |other: &&ToolInfo| {
            other.service == info.service && other.identifier == info.identifier
        };
        if let Some(other) = self.infos.iter().find(is_same) {
            let [full, other, shown] = [full, other.full_name(), info.shown_name()];
            return Err(wrong(format!("{full} and {other} would both be {shown}")));
        }
        let arguments = match &info.description.input_schema {
            None => None,
            Some(schema) => Some(Arguments::new(schema).map_err(|fault| {
                wrong(format!("the inputSchema of {full} is no JSON schema: {fault}"))
            })?),
        };
        let mut tools = self.tools.clone();
        tools.insert(full, Arc::new(Tool { info, arguments, handler }));
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
