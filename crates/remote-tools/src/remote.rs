//! The tools of a configuration.
//!
//! In: a configuration, and somebody to ask. Out: tools with handlers; servers that run until the end.

use std::sync::Arc;

use futures_util::future::join_all;
use isolane::{Error, ErrorKind};
use isolane_environment::{Log, ToolDescription, ToolHandler, is_tool_name, tool_identifier};
use isolane_schema::Schema;
use rmcp::model::Tool;
use serde_json::{Map, Value as Json};
use tokio::{runtime::Handle, task::spawn_blocking};

use crate::{
    client,
    config::Config,
    http::Requests,
    mcp::{Calls, Connection},
    policed::{Approver, Asked, AtHome},
    policy::{Decision, Names, Policy},
};

/// A tool as a service or a set takes it: its service, its name, its description, its handler.
type Given = (String, String, ToolDescription, Arc<dyn ToolHandler>);

/// The most patterns in the schemas of one server: each takes memory and time to compile.
const MOST_PATTERNS: usize = 200;

/// The options of opening beside the configuration.
#[derive(Clone, Default)]
pub struct Opening {
    /// Is asked about calls of tools for which the policy says `ask`. Without it they throw.
    pub approver: Option<Arc<dyn Approver>>,
    /// Receives the lines that servers write to their standard error, and lines about tools that are left out. It must not
    /// block. By default nobody does.
    pub log: Option<Log>,
}

/// Tools that are open.
pub struct RemoteTools {
    connections: Vec<Arc<Connection>>,
    tools: Vec<Given>,
    /// The names of all tools that there are, those that the policy denies among them.
    names: Vec<Names>,
    asks: bool,
    /// The runtime in which the servers live.
    home: Handle,
}

impl RemoteTools {
    /// Starts all servers, at the same time, and asks for their tools. Those of them that the policy denies are left out.
    /// Call it in a tokio runtime that lives as long as the tools are used.
    ///
    /// # Errors
    /// A server that does not start within a minute; two tools of a server with the same name inside.
    pub async fn open(config: &Config, opening: Opening) -> Result<Self, Error> {
        let client = client::new()?;
        let log = opening.log.clone().unwrap_or_else(|| Arc::new(|_| ()));
        let home = Handle::current();
        let (connections, tools, names) = Default::default();
        let mut remote = Self { connections, tools, names, asks: false, home };
        for server in &config.servers {
            let connection = Connection::new(server.clone(), client.clone(), log.clone());
            remote.connections.push(Arc::new(connection));
        }
        let opened = join_all(remote.connections.iter().map(|connection| connection.open())).await;
        let mut listed = Vec::new();
        for (connection, tools) in remote.connections.clone().into_iter().zip(opened) {
            match tools {
                Ok(tools) => listed.push((connection, tools)),
                Err(error) => {
                    remote.shutdown().await;
                    return Err(error);
                }
            }
        }
        for (connection, tools) in listed {
            let tools = match checked(tools).await {
                Ok(tools) => tools,
                Err(error) => {
                    remote.shutdown().await;
                    return Err(error);
                }
            };
            for (tool, fault) in tools {
                remote.add_tool(&connection, tool, fault, &config.policy, &opening, &log);
            }
        }
        for service in &config.services {
            let service = Arc::new(service.clone());
            for tool in service.tools.clone() {
                let name = tool.name.clone();
                let description = tool.description.clone();
                let names = Names::new(&service.name, &name);
                let handler = Requests {
                    client: client.clone(),
                    service: Arc::clone(&service),
                    tool,
                    shown_name: names.shown.clone(),
                };
                let decision = config.policy.decide(&names, false);
                let given = (service.name.clone(), name, description, Arc::new(handler) as _);
                remote.add(given, names, decision, &opening);
            }
        }
        let checked =
            remote.check_names().and_then(|()| config.check_patterns(&remote.names, &log));
        if let Err(error) = checked {
            remote.shutdown().await;
            return Err(error);
        }
        Ok(remote)
    }

    /// The tools, for a process service or a set.
    #[must_use]
    pub fn tools(&self) -> Vec<(String, String, ToolDescription, Arc<dyn ToolHandler>)> {
        self.tools.clone()
    }

    /// Whether somebody is asked about the calls of a tool.
    #[must_use]
    pub fn asks(&self) -> bool {
        self.asks
    }

    /// Ends all servers: each is told, has two seconds, and is killed then with all that it has started.
    pub async fn shutdown(&self) {
        join_all(self.connections.iter().map(|connection| connection.shutdown())).await;
    }

    /// Adds a tool of a server, unless code could not use it.
    fn add_tool(
        &mut self,
        connection: &Arc<Connection>,
        tool: Tool,
        fault: Option<String>,
        policy: &Policy,
        opening: &Opening,
        log: &Log,
    ) {
        let service = connection.server.name.clone();
        let name = tool.name.to_string();
        if !is_tool_name(&name) {
            let shown: String = name.chars().take(100).collect();
            log(&format!("{service}: a tool is left out, because '{shown}' is no name of a tool"));
            return;
        }
        let names = Names::new(&service, &name);
        if self.names.iter().any(|other| other.full == names.full) {
            log(&format!("{service}: a second tool {name} is left out"));
            return;
        }
        let mut input_schema = Some(Json::Object((*tool.input_schema).clone()));
        if let Some(fault) = fault {
            log(&format!("{service}: the arguments of {name} are not checked: {fault}"));
            input_schema = None;
        }
        let description = ToolDescription {
            description: tool
                .description
                .as_deref()
                .or(tool.title.as_deref())
                .unwrap_or_default()
                .to_owned(),
            input_schema,
            output_schema: tool.output_schema.map(|schema| Json::Object((*schema).clone())),
        };
        let hints = tool.annotations.unwrap_or_default();
        let decision = policy.decide(&names, hints.destructive_hint == Some(true));
        let handler = Calls {
            connection: Arc::clone(connection),
            tool: name.clone(),
            shown_name: names.shown.clone(),
        };
        self.add((service, name, description, Arc::new(handler)), names, decision, opening);
    }

    fn add(&mut self, tool: Given, names: Names, decision: Decision, opening: &Opening) {
        let (service, name, description, mut handler) = tool;
        self.names.push(names.clone());
        match decision {
            Decision::Deny => return,
            Decision::Allow => {}
            Decision::Ask => {
                self.asks = true;
                handler = Arc::new(Asked {
                    tool: names.full,
                    shown_name: names.shown.clone(),
                    approver: opening.approver.clone(),
                    handler,
                });
            }
        }
        let handler = AtHome { home: self.home.clone(), shown_name: names.shown, handler };
        self.tools.push((service, name, description, Arc::new(handler)));
    }

    /// Refuses tools that code could not tell apart.
    fn check_names(&self) -> Result<(), Error> {
        let mut shown = std::collections::BTreeMap::new();
        for (service, name, ..) in &self.tools {
            let key = format!("{service}.{}", tool_identifier(name));
            if let Some(other) = shown.insert(key.clone(), name) {
                let message = format!(
                    "{service}.{other} and {service}.{name} would both be {key}; the policy can deny one of them"
                );
                return Err(Error::new(ErrorKind::Type, message));
            }
        }
        Ok(())
    }
}

/// The tools of a server, each with the reason for which its arguments are not checked, if there is one.
type Checked = Vec<(Tool, Option<String>)>;

/// Looks at the schemas of tools, on a thread for work that blocks: many schemas take seconds, and the caller may have
/// to answer signals meanwhile.
async fn checked(tools: Vec<Tool>) -> Result<Checked, Error> {
    let checking = spawn_blocking(move || with_faults(tools));
    checking.await.map_err(|error| Error::new(ErrorKind::Internal, error.to_string()))
}

fn with_faults(tools: Vec<Tool>) -> Checked {
    let mut patterns = 0;
    let with_fault = |tool: Tool| {
        let schema = Json::Object((*tool.input_schema).clone());
        patterns += patterns_of(&schema);
        let fault = if patterns <= MOST_PATTERNS {
            Schema::new(&schema).err()
        } else {
            Some(format!("the server's tools have more than {MOST_PATTERNS} patterns"))
        };
        (tool, fault)
    };
    tools.into_iter().map(with_fault).collect()
}

/// The patterns in a schema.
fn patterns_of(schema: &Json) -> usize {
    let mut patterns = 0;
    let mut open = vec![schema];
    while let Some(value) = open.pop() {
        match value {
            Json::Array(list) => open.extend(list),
            Json::Object(fields) => {
                patterns += usize::from(fields.get("pattern").is_some_and(Json::is_string));
                let keys = fields.get("patternProperties").and_then(Json::as_object);
                patterns += keys.map_or(0, Map::len);
                open.extend(fields.values());
            }
            _ => {}
        }
    }
    patterns
}

#[cfg(test)]
mod tests {
    use std::{
        pin::pin,
        sync::mpsc::channel,
        task::{Context, Waker},
    };

    use serde_json::json;

    use super::*;

    #[test]
    fn schemas_are_looked_at_on_another_thread() {
        let runtime = tokio::runtime::Builder::new_current_thread().max_blocking_threads(1).build();
        runtime.expect("a runtime").block_on(async {
            let (release, held) = channel::<()>();
            let holding = spawn_blocking(move || held.recv());
            let schema = json!({ "type": "object", "properties": { "a": { "pattern": "(" } } });
            let schema = schema.as_object().expect("an object").clone();
            let mut checking = pin!(checked(vec![Tool::new("say", "Says it.", Arc::new(schema))]));
            // The only thread for it is held.
            assert!(checking.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
            release.send(()).expect("it is held");
            let tools = checking.await.expect("looked at");
            let fault = tools[0].1.as_deref().expect("a fault");
            assert!(fault.contains("are not supported"), "{fault}");
            holding.await.expect("no panic").expect("released");
        });
    }

    #[test]
    fn patterns_are_counted_wherever_they_stand() {
        let schema = json!({
            "properties": { "pattern": { "pattern": "a" }, "b": { "items": [{ "pattern": "b" }] } },
            "patternProperties": { "^x": {}, "^y": { "pattern": "c" } },
        });
        assert_eq!(patterns_of(&schema), 5);
    }
}
