//! Tools: functions of the host with a name, for cells of both languages.
//!
//! In: a name, a function, and what describes it. Out: tools under safe names, or misuse: two tools with one safe name, a
//! schema that is none.

use std::{fmt, future::Future, pin::Pin, sync::Arc};

use isolane::{HostError, Value};
use serde_json::Value as Json;
use tokio_util::sync::CancellationToken;

use super::schema::Schema;
use crate::{Misuse, given::wrong_type};

/// The answer of a function of the host: a value, without functions and promises, or the error that its cell sees.
pub type HostAnswer = Result<Value, HostError>;

/// The future of an answer.
pub type HostFuture = Pin<Box<dyn Future<Output = HostAnswer> + Send>>;

type Function = dyn Fn(Value, CancellationToken) -> HostFuture + Send + Sync;

/// A tool of cells, called as `tool.<name>(args)`.
#[derive(Clone)]
pub struct CellTool {
    /// Any text. In cells, runs of characters that no identifier may have are `_`.
    pub name: String,
    /// For the model.
    pub description: Option<String>,
    /// The JSON Schema of the arguments, by which they are checked.
    pub input: Option<Json>,
    /// Whether the clock of a cell stands still while a call is unanswered.
    pub stops_clock: bool,
    call: Arc<Function>,
}

impl CellTool {
    /// A tool of a function. The function gets the arguments, an object, as the cell gave them ([`Value::deserialize`] reads
    /// them), and a signal that is cancelled when nobody waits for the answer any more, such as at the end of the cell from
    /// outside. It must not block.
    pub fn new<F>(
        name: impl Into<String>,
        call: impl Fn(Value, CancellationToken) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = HostAnswer> + Send + 'static,
    {
        let call = move |args, signal| Box::pin(call(args, signal)) as HostFuture;
        Self {
            name: name.into(),
            description: None,
            input: None,
            stops_clock: false,
            call: Arc::new(call),
        }
    }
}

impl fmt::Debug for CellTool {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("CellTool")
            .field("name", &self.name)
            .field("stops_clock", &self.stops_clock)
            .finish_non_exhaustive()
    }
}

/// The tools of a notebook, in their order.
#[derive(Debug, Default)]
pub(crate) struct HostTools(Vec<HostTool>);

/// A tool under its name in cells.
#[derive(Debug)]
pub(crate) struct HostTool {
    pub(crate) name: String,
    pub(crate) schema: Option<Arc<Schema>>,
    pub(crate) tool: CellTool,
}

impl HostTools {
    /// Checks tools.
    pub(crate) fn new(tools: &[CellTool]) -> Result<Self, Misuse> {
        let mut known: Vec<HostTool> = Vec::new();
        for tool in tools {
            let path = format!("tools.{}", tool.name);
            let name = safe_name(&tool.name);
            if let Some(other) = known.iter().find(|other| other.name == name) {
                let rest = format!(" and tools.{} have one name in cells: '{name}'", tool.name);
                return Err(Misuse::new(format!("tools.{}", other.tool.name), &rest));
            }
            let schema = match &tool.input {
                None => None,
                Some(input @ Json::Object(_)) => {
                    let schema = Schema::new(input).map_err(|fault| {
                        Misuse::new(
                            format!("{path}.input"),
                            &format!(" is no JSON Schema: {fault}"),
                        )
                    })?;
                    Some(Arc::new(schema))
                }
                Some(other) => {
                    return Err(wrong_type(&format!("{path}.input"), "an object", other));
                }
            };
            known.push(HostTool { name, schema, tool: tool.clone() });
        }
        Ok(Self(known))
    }

    pub(crate) fn names(&self) -> Vec<&str> {
        self.0.iter().map(|tool| tool.name.as_str()).collect()
    }

    /// The tool of that name.
    ///
    /// # Errors
    /// For a cell: there is none. The names that there are.
    pub(crate) fn find(&self, name: &str) -> Result<&HostTool, HostError> {
        self.0.iter().find(|tool| tool.name == name).ok_or_else(|| {
            let name: String = name.chars().take(100).collect();
            let there = match self.names().as_slice() {
                [] => "this notebook has no tools".to_owned(),
                names => format!("there are {}", names.join(", ")),
            };
            HostError::new("TypeError", format!("there is no tool '{name}'; {there}"))
        })
    }

    /// A line for the model for each tool.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.0.iter().map(HostTool::line).collect()
    }
}

impl HostTool {
    /// Calls its function.
    pub(crate) fn call(&self, args: Value, signal: CancellationToken) -> HostFuture {
        (self.tool.call)(args, signal)
    }

    /// `- tool.search({ query: string, limit?: integer }): Finds pages.`
    fn line(&self) -> String {
        let args = self.schema.as_ref().map(|schema| schema.signature()).unwrap_or_default();
        let about = self.tool.description.as_deref().unwrap_or_default();
        let about = about.split_whitespace().collect::<Vec<_>>().join(" ");
        let name = &self.name;
        if about.is_empty() {
            format!("- tool.{name}({args})")
        } else {
            format!("- tool.{name}({args}): {about}")
        }
    }
}

/// The words that JavaScript or Python keep for themselves.
const RESERVED: &str = "False None True and as assert async await break case catch class const continue debugger def \
    default del delete do elif else enum except export extends false finally for from function global if implements \
    import in instanceof interface is lambda let new nonlocal not null or package pass private protected public raise \
    return static super switch this throw true try typeof var void while with yield";

/// A name that is an identifier in both languages.
fn safe_name(name: &str) -> String {
    let mut safe = String::new();
    let mut is_run = false;
    for letter in name.chars() {
        // All that Python permits, JavaScript does too.
        let fits = unicode_ident::is_xid_continue(letter);
        if fits {
            safe.push(letter);
        } else if !is_run {
            safe.push('_');
        }
        is_run = !fits;
    }
    let begins = |first: char| first == '_' || unicode_ident::is_xid_start(first);
    if !safe.starts_with(begins) {
        safe.insert(0, '_');
    }
    if RESERVED.split_whitespace().any(|word| word == safe) {
        safe.push('_');
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_identifiers() {
        let names =
            ["search", "get-the  page", "2x", "import", "", "Größe", "天气 查询", "\u{301}", "$a"];
        let safe = [
            "search",
            "get_the_page",
            "_2x",
            "import_",
            "_",
            "Größe",
            "天气_查询",
            "_\u{301}",
            "_a",
        ];
        assert_eq!(names.map(safe_name), safe);
    }
}
