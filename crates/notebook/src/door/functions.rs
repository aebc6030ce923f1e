//! Tools, `llm` and `agent` whose functions are those of the caller's language.
//!
//! In: options of a face: functions, and objects with a function `call`. Out: tools of the notebook. A function gets the
//! number of its call last; another function of the face is told of the numbers whose answers nobody waits for any more.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use isolane::{Callback, HostError, Spelling, Value, value::Event};
use isolane_door::Given;
use serde_json::Value as Json;

use crate::{
    Agent, AgentOptions, CellTool, ChildFunction, ChildOptions, HostAnswer, Llm, LlmOptions,
    Misuse, NotebookOptions,
    door::{data, fields, handles::Handle, message, message_of, name_of, take},
    given::spelled,
    host::value::refuse_links,
};

/// The option in which a face hands over the function that it is told of aborted calls by.
const ABORT: &str = "$abort";

/// The functions among the options of a notebook.
pub(crate) struct Functions {
    tools: Option<Vec<CellTool>>,
    llm: ChildFunction<Llm>,
    agent: ChildFunction<Agent>,
}

impl Functions {
    /// Takes them out of the options. `false` is none for a child.
    pub(crate) fn take(
        options: &mut Given,
        spelling: Spelling,
        is_child: bool,
    ) -> Result<Self, Misuse> {
        let abort = match take(options, ABORT) {
            Given::Function(callback) => Some(callback),
            _ => None,
        };
        let foreign = Foreign { abort, calls: Arc::default(), spelling };
        let tools = match take(options, "tools") {
            given if given.is_absent() => None,
            Given::Bool(false) if is_child => Some(Vec::new()),
            given => {
                let tools = fields(&given, "tools")?.iter();
                Some(
                    tools
                        .map(|(name, given)| foreign.tool(name, given))
                        .collect::<Result<_, _>>()?,
                )
            }
        };
        let mut function = |key: &str| match take(options, key) {
            Given::Function(callback) => Ok(ChildFunction::Own(callback)),
            given if given.is_absent() => Ok(ChildFunction::Inherited),
            Given::Bool(false) if is_child => Ok(ChildFunction::Absent),
            other => Err(no_function(key, &other)),
        };
        let llm = function("llm")?.map(|callback| foreign.llm(callback));
        let agent = function("agent")?.map(|callback| foreign.agent(callback));
        Ok(Self { tools, llm, agent })
    }

    pub(crate) fn put(self, options: &mut NotebookOptions) {
        options.tools = self.tools.unwrap_or_default();
        (options.llm, options.agent) = (self.llm.or(None), self.agent.or(None));
    }

    pub(crate) fn put_into_child(self, options: &mut ChildOptions) {
        (options.tools, options.llm, options.agent) = (self.tools, self.llm, self.agent);
    }
}

fn no_function(path: &str, given: &Given) -> Misuse {
    Misuse::new(path, &format!(" must be a function, got {}", given.kind()))
}

/// Calls functions of the face.
#[derive(Clone)]
struct Foreign {
    abort: Option<Callback>,
    /// The number of the next call.
    calls: Arc<AtomicU64>,
    /// How the face's language spells options.
    spelling: Spelling,
}

/// Tells the face that nobody waits for an answer, unless it came.
struct Abort<'f> {
    foreign: &'f Foreign,
    number: Value,
    is_answered: bool,
}

impl Drop for Abort<'_> {
    fn drop(&mut self) {
        if let Some(abort) = &self.foreign.abort
            && !self.is_answered
        {
            abort.notify(std::slice::from_ref(&self.number));
        }
    }
}

impl Foreign {
    fn tool(&self, name: &str, given: &Given) -> Result<CellTool, Misuse> {
        let path = format!("tools.{name}");
        let function = match given {
            Given::Function(_) => given,
            Given::Object(_) => given.get("call"),
            other => {
                let rest = format!(" must be a function or an object, got {}", other.kind());
                return Err(Misuse::new(path, &rest));
            }
        };
        let Given::Function(callback) = function else {
            return Err(no_function(&format!("{path}.call"), function));
        };
        let (callback, foreign) = (callback.clone(), self.clone());
        let root = name.to_owned();
        let mut tool = CellTool::new(name, move |args, _signal| {
            let (foreign, callback, root) = (foreign.clone(), callback.clone(), root.clone());
            async move { foreign.call(&callback, vec![args], &root).await }
        });
        let Given::Object(given_fields) = given else { return Ok(tool) };
        let stops_clock = spelled("stops_clock", self.spelling);
        let names = ["call", "description", "input", &stops_clock].map(str::to_owned);
        if let Some((key, _)) = given_fields.iter().find(|(key, _)| !names.contains(key)) {
            let text = isolane::unknown_name("", key, &names);
            return Err(Misuse::new(format!("{path}.{key}"), &format!(": {}", text.message())));
        }
        tool.description = match given.get("description") {
            Given::Text(text) | Given::Torn(text) => Some(text.clone()),
            given if given.is_absent() => None,
            other => {
                let rest = format!(" must be a string, got {}", other.kind());
                return Err(Misuse::new(format!("{path}.description"), &rest));
            }
        };
        tool.input = match given.get("input") {
            given if given.is_absent() => None,
            given => Some(data(given, &format!("{path}.input"))?),
        };
        tool.stops_clock = match given.get(&stops_clock) {
            Given::Bool(stops) => *stops,
            given if given.is_absent() => false,
            other => {
                let rest = format!(" must be true or false, got {}", other.kind());
                return Err(Misuse::new(format!("{path}.{stops_clock}"), &rest));
            }
        };
        Ok(tool)
    }

    fn llm(&self, callback: Callback) -> Llm {
        let foreign = self.clone();
        Llm::new(move |prompt, options| {
            let (foreign, callback) = (foreign.clone(), callback.clone());
            async move {
                let args = vec![message(&prompt.into()), message(&llm_options(options))];
                foreign.call(&callback, args, "llm").await
            }
        })
    }

    fn agent(&self, callback: Callback) -> Agent {
        let foreign = self.clone();
        Agent::new(move |prompt, options| {
            let (foreign, callback) = (foreign.clone(), callback.clone());
            async move {
                let (options, handle) = foreign.agent_options(options);
                let args = vec![message(&prompt.into()), message(&options)];
                let answer = foreign.call(&callback, args, "agent").await;
                // The face has opened the notebook, or does not need it.
                drop(handle);
                answer
            }
        })
    }

    /// The options as a face gets them, with the key of the notebook.
    fn agent_options(&self, options: AgentOptions) -> (Json, Handle) {
        let AgentOptions { agent_type, model, context, label, schema, depth, .. } = options;
        let handle = Handle::new(&Arc::new(options.notebook));
        let mut fields = serde_json::Map::new();
        let mut put = |key: &str, value: Option<Json>| {
            fields.extend(value.map(|value| (spelled(key, self.spelling), value)));
        };
        put("agent_type", Some(agent_type.into()));
        put("model", model.map(Json::from));
        put("context", context);
        put("label", label.map(Json::from));
        put("schema", schema);
        put("depth", Some(depth.into()));
        put("session_id", Some(options.session_id.into()));
        put("notebook", Some(handle.key().into()));
        (Json::Object(fields), handle)
    }

    /// Calls a function with the arguments and the number of the call.
    async fn call(&self, callback: &Callback, mut args: Vec<Value>, root: &str) -> HostAnswer {
        let number = message(&self.calls.fetch_add(1, Ordering::Relaxed).into());
        args.push(number.clone());
        let mut abort = Abort { foreign: self, number, is_answered: false };
        let answer = callback.call(&args).await;
        abort.is_answered = true;
        let value = answer.map_err(|thrown| error_of(&thrown))?;
        refuse_links(&value, &isolane::answer_of(root))?;
        Ok(value)
    }
}

fn llm_options(options: LlmOptions) -> Json {
    let LlmOptions { model, system, schema, .. } = options;
    let mut fields = serde_json::Map::new();
    fields.insert("model".to_owned(), model.into());
    fields.extend(system.map(|system| ("system".to_owned(), system.into())));
    fields.extend(schema.map(|schema| ("schema".to_owned(), schema)));
    Json::Object(fields)
}

/// The error for a cell: the name and the message of something that was thrown.
fn error_of(thrown: &Value) -> HostError {
    let name = match thrown.reader().event() {
        Ok(Event::Error(_)) => name_of(thrown).unwrap_or_default(),
        _ => "Error".to_owned(),
    };
    HostError::new(name, message_of(thrown))
}
