//! The notebook behind the door: the same for every language.
//!
//! In: options, arguments and callbacks of a face. Out: calls that settle with results in the keys of its language. Nothing
//! here decides anything.

mod functions;
mod handles;
mod registries;
mod renderers;

use std::{
    collections::BTreeMap,
    sync::{Arc, OnceLock},
};

use isolane::{Answer, Caller, Error, Input, Inputs, Spelling, Value, unknown_name, value::Event};
use isolane_confine::program::{ProgramConfinement, launcher_in};
use isolane_door::{Callback, Called, Context, Given, System, no_method};
use isolane_kit::Kit;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value as Json, json};

use self::{functions::Functions, handles::Handle};
pub use self::{registries::open_registry, renderers::open_renderers};
use crate::{
    Args, Backend, CallResult, ChildOptions, ExecuteOptions, Language, Misuse, Notebook,
    NotebookOptions, OnUpdate, call::Announce, given::spelled, kernels::Cause,
};

/// The option in which a face names the notebook that it wants a child of.
const PARENT: &str = "$parent";

/// The option in which a face names the registry.
const REGISTRY: &str = "$registry";

/// The option of JavaScript in which a face names the kit.
const KIT: &str = "$kit";

/// The option in which a face names the notebook of an agent.
const SAME: &str = "$same";

/// Opens a notebook for a face. The functions among the options are those of `js.globals`, `js.imports`, `tools`, `llm` and
/// `agent`.
///
/// # Errors
/// Misuse of an option.
pub fn open(options: Given, context: Context) -> Result<Arc<dyn System>, Error> {
    let spelling = context.spelling;
    let mut options = options;
    if let Given::Text(key) = take(&mut options, SAME) {
        return Ok(Door::of(handles::find(&key)?, spelling));
    }
    if let Given::Text(key) = take(&mut options, PARENT) {
        let parent = handles::find(&key)?;
        let functions = Functions::take(&mut options, spelling, true)?;
        let given = data(&options, "options")?;
        let mut read = ChildOptions::from_json(&given, spelling, parent.limits())?;
        functions.put_into_child(&mut read);
        return Ok(Door::of(Arc::new(parent.child(read)?), spelling));
    }
    refuse_torn(&options, "session_id", spelling)?;
    let kit = match take_of(&mut options, "js", KIT) {
        Given::Text(key) => {
            Some(Kit::with_key(&key).ok_or_else(|| Misuse::new("js.kit", " is closed"))?)
        }
        _ => None,
    };
    let registry = match take(&mut options, REGISTRY) {
        Given::Text(key) => Some(handles::find_registry(&key)?),
        _ => None,
    };
    let (globals, imports) = capabilities(&mut options)?;
    let functions = Functions::take(&mut options, spelling, false)?;
    let mut read = NotebookOptions::from_json(&data(&options, "options")?, spelling)?;
    if let Some(js) = &mut read.js {
        (js.runtime, js.kit) = (context.runtime, kit);
        (js.globals, js.imports) = (globals, imports);
    }
    if let Some(py) = &mut read.py {
        py.worker = Some(launcher_in(&context.worker_folder));
    }
    functions.put(&mut read);
    read.registry = registry;
    Ok(Door::of(Arc::new(Notebook::new(read)?), spelling))
}

struct Door {
    notebook: Arc<Notebook>,
    /// From the first child on.
    handle: OnceLock<Handle>,
    spelling: Spelling,
}

impl System for Door {
    fn call(&self, method: &str, args: Vec<Given>, caller: &Caller) -> Result<Called, Error> {
        let spelling = self.spelling;
        let mut args = args.into_iter();
        let mut next = || args.next().unwrap_or_default();
        match method {
            "execute" => {
                let cells = Args::from_json(&data(&next(), "args")?)?;
                let (options, cause) = self::options(&next(), caller, spelling)?;
                let announce = announce(next());
                let execution = self.notebook.begin(cells, options, (cause, announce))?;
                let (terminator, ended) = (execution.terminator(), caller.terminated());
                Ok(Called::new(async move {
                    tokio::pin!(execution);
                    let result = tokio::select! {
                        result = &mut execution => result,
                        reason = ended => {
                            terminator.terminate(reason.as_deref());
                            execution.await
                        }
                    };
                    Ok(message(&result.to_json(spelling, false)))
                }))
            }
            "reset" => {
                let language = language(&next())?;
                Ok(answered(self.notebook.reset(language)?, |()| Json::Null))
            }
            "available" => Ok(answered(
                self.notebook.available(),
                |available| json!({ "js": backend(&available.js), "py": backend(&available.py) }),
            )),
            "close" => Ok(answered(self.notebook.close(), |()| Json::Null)),
            _ => Err(no_method(method)),
        }
    }

    fn ask(&self, method: &str, _args: Vec<Given>) -> Result<Value, Error> {
        match method {
            "tool" => {
                let tool = self.notebook.tool();
                let mut fields = Map::new();
                fields.insert("name".to_owned(), tool.name.into());
                fields.insert("description".to_owned(), tool.description.into());
                fields.insert(spelled("input_schema", self.spelling), tool.input_schema);
                Ok(message(&Json::Object(fields)))
            }
            "stats" => Ok(message(&self.stats())),
            "kit" => Ok(message(&self.notebook.kit().map(Kit::key).into())),
            "key" => {
                self.notebook.check_open()?;
                let handle = self.handle.get_or_init(|| Handle::new(&self.notebook));
                Ok(message(&handle.key().into()))
            }
            _ => Err(no_method(method)),
        }
    }
}

impl Door {
    fn of(notebook: Arc<Notebook>, spelling: Spelling) -> Arc<dyn System> {
        Arc::new(Self { notebook, handle: OnceLock::new(), spelling })
    }

    fn stats(&self) -> Json {
        let stats = self.notebook.stats();
        let kernels = stats.kernels.into_iter().map(|kernel| {
            let mut fields = Map::new();
            let mut put = |key, value: Json| fields.insert(spelled(key, self.spelling), value);
            put("session_id", kernel.session_id.into());
            put("language", kernel.language.as_str().into());
            put("busy", kernel.busy.into());
            put("idle_ms", kernel.idle_ms.into());
            put("rss_bytes", kernel.rss_bytes.into());
            put("restarts", kernel.restarts.into());
            Json::Object(fields)
        });
        let confinement = stats.confinement.map(|had| confinement(&had, self.spelling));
        json!({ "confinement": confinement, "kernels": kernels.collect::<Vec<_>>() })
    }
}

/// A call that settles with an answer. The answer comes on the thread of all calls, so it is awaited.
fn answered<T: Send + 'static>(
    answer: Answer<T>,
    show: impl FnOnce(T) -> Json + Send + 'static,
) -> Called {
    Called::new(async move {
        match answer.await {
            Ok(value) => Ok(message(&show(value))),
            Err(error) => Err(message(&error.message().into())),
        }
    })
}

/// A value that is JSON; misuse names the place of what is none.
pub(crate) fn data(given: &Given, path: &str) -> Result<Json, Misuse> {
    if let Some(json) = given.json() {
        return Ok(if given.is_absent() && path == "options" { json!({}) } else { json });
    }
    let inner = |path: String, given: &Given| data(given, &path).err();
    let found = match given {
        Given::Object(fields) => {
            let is_top = path == "options" || path == "args";
            let place = |key: &str| if is_top { key.to_owned() } else { format!("{path}.{key}") };
            fields.iter().find_map(|(key, value)| inner(place(key), value))
        }
        Given::List(items) => {
            let items = items.iter().enumerate();
            items.into_iter().find_map(|(index, item)| inner(format!("{path}[{index}]"), item))
        }
        _ => None,
    };
    Err(found.unwrap_or_else(|| match given {
        Given::Number(number) => {
            let name = if number.is_nan() {
                "NaN"
            } else if *number < 0.0 {
                "-Infinity"
            } else {
                "Infinity"
            };
            Misuse::range(path, &format!(" must be a finite number, got {name}"))
        }
        _ => Misuse::new(path, &format!(" must be data, got {}", given.kind())),
    }))
}

/// Takes an option out of all.
fn take(options: &mut Given, key: &str) -> Given {
    let Given::Object(fields) = options else { return Given::Undefined };
    let at = fields.iter().position(|(known, _)| known == key);
    at.map_or(Given::Undefined, |at| fields.remove(at).1)
}

/// Takes an option out of a group of options.
fn take_of(options: &mut Given, group: &str, key: &str) -> Given {
    let Given::Object(fields) = options else { return Given::Undefined };
    let group = fields.iter_mut().find(|(known, _)| known == group);
    group.map_or(Given::Undefined, |(_, group)| take(group, key))
}

/// # Errors
/// Misuse: the option is a text with a lone surrogate. Two such texts would be one.
fn refuse_torn(options: &Given, key: &str, spelling: Spelling) -> Result<(), Misuse> {
    let key = spelled(key, spelling);
    match options.get(&key) {
        Given::Torn(_) => Err(Misuse::new(key, " has a lone surrogate")),
        _ => Ok(()),
    }
}

/// Takes what is handed to JavaScript cells out of the options: values of any kind, with functions.
fn capabilities(options: &mut Given) -> Result<(Inputs, BTreeMap<String, Inputs>), Misuse> {
    let [globals, imports] = ["globals", "imports"].map(|key| take_of(options, "js", key));
    let globals = inputs(&globals, "js.globals")?;
    let imports = fields(&imports, "js.imports")?;
    let module = |(specifier, exports): &(String, Given)| {
        Ok((specifier.clone(), inputs(exports, &format!("js.imports.{specifier}"))?))
    };
    Ok((globals, imports.iter().map(module).collect::<Result<_, Misuse>>()?))
}

fn fields<'g>(given: &'g Given, path: &str) -> Result<&'g [(String, Given)], Misuse> {
    match given {
        Given::Object(fields) => Ok(fields),
        given if given.is_absent() => Ok(&[]),
        other => Err(Misuse::new(path, &format!(" must be an object, got {}", other.kind()))),
    }
}

fn inputs(given: &Given, path: &str) -> Result<Inputs, Misuse> {
    let mut inputs = Inputs::new();
    for (name, value) in fields(given, path)? {
        inputs.insert(name, input(value, &format!("{path}.{name}"))?);
    }
    Ok(inputs)
}

fn input(given: &Given, path: &str) -> Result<Input, Misuse> {
    Ok(match given {
        Given::Function(callback) => Input::new(callback.host_function()),
        Given::Bytes(bytes) => Input::bytes(bytes.clone()),
        Given::Date(epoch_ms) => Input::date(*epoch_ms),
        Given::Undefined => Input::new(Value::undefined()),
        Given::Object(_) => Input::new(inputs(given, path)?),
        Given::List(items) => {
            let items = items.iter().enumerate();
            let items = items.map(|(index, item)| input(item, &format!("{path}[{index}]")));
            Input::new(items.collect::<Result<Vec<Input>, _>>()?)
        }
        Given::Other(kind) => {
            return Err(Misuse::new(path, &format!(" must be data or a function, got {kind}")));
        }
        Given::Null
        | Given::Bool(_)
        | Given::Number(_)
        | Given::BigInt(_)
        | Given::Text(_)
        | Given::Torn(_) => Input::new(given.clone()),
    })
}

fn language(given: &Given) -> Result<Language, Misuse> {
    match given {
        Given::Text(text) if text == "py" => Ok(Language::Py),
        Given::Text(text) if text == "js" => Ok(Language::Js),
        other => {
            let got = if let Given::Text(text) = other {
                format!("'{text}'")
            } else {
                other.kind().to_owned()
            };
            Err(Misuse::new("language", &format!(" must be 'py' or 'js', got {got}")))
        }
    }
}

/// The option in which a face hands over the reason of a signal that is aborted before the call.
const ABORTED: &str = "$aborted";

/// The options of a call, and why it has ended already. A face has seen to `signal`.
fn options(
    given: &Given,
    caller: &Caller,
    spelling: Spelling,
) -> Result<(ExecuteOptions, Option<Cause>), Misuse> {
    let key = spelled("on_update", spelling);
    let mut names = vec![key.clone()];
    if spelling == Spelling::Camel {
        names.push("signal".to_owned());
    }
    let given = fields(given, "options")?;
    if let Some((unknown, _)) = given.iter().find(|(name, _)| *name != key && name != ABORTED) {
        let text = unknown_name("", unknown, &names);
        return Err(Misuse::new(unknown, &format!(": {}", text.message())));
    }
    let value = |key: &str| given.iter().find(|(name, _)| name == key).map(|(_, value)| value);
    let on_update = value(&key).map_or(Ok(None), |value| on_update(value, caller, spelling))?;
    let cause = match value(ABORTED) {
        Some(Given::Text(reason)) => Some(Cause::Caller(Some(reason.clone()))),
        _ => None,
    };
    Ok((ExecuteOptions { on_update }, cause))
}

/// The function of a face that does the commands for a page of a kit.
fn announce(given: Given) -> Option<Announce> {
    let Given::Function(callback) = given else { return None };
    Some(Arc::new(move || callback.notify(&[])))
}

/// The receiver of updates, which a face gives as a function.
fn on_update(
    given: &Given,
    caller: &Caller,
    spelling: Spelling,
) -> Result<Option<OnUpdate>, Misuse> {
    let callback = match given {
        Given::Function(callback) => callback.clone(),
        given if given.is_absent() => return Ok(None),
        other => {
            let rest = format!(" must be a function, got {}", other.kind());
            return Err(Misuse::new(spelled("on_update", spelling), &rest));
        }
    };
    let caller = caller.clone();
    Ok(Some(Arc::new(move |update: CallResult| {
        // No function of a call that its caller has ended is called any more.
        if caller.is_terminated() {
            return Box::pin(async { Ok(()) });
        }
        let terminated = caller.terminated();
        let update = message(&update.to_json(spelling, true));
        let callback: Callback = callback.clone();
        Box::pin(async move {
            tokio::select! {
                outcome = callback.call(&[update]) => {
                    outcome.map(drop).map_err(|thrown| message_of(&thrown))
                }
                _ = terminated => Ok(()),
            }
        })
    })))
}

/// The name of an error that was thrown.
fn name_of(thrown: &Value) -> Option<String> {
    let mut reader = thrown.reader();
    reader.event().ok()?;
    Some(reader.text().ok()?.to_string_lossy())
}

/// The message of something that was thrown.
fn message_of(thrown: &Value) -> String {
    let mut reader = thrown.reader();
    match reader.event() {
        Ok(Event::Error(_)) => {
            let texts = [reader.text(), reader.text()];
            let [_, message] = texts.map(|text| text.map(|text| text.to_string_lossy()));
            message.unwrap_or_default()
        }
        _ => isolane::inspect(thrown, 1000),
    }
}

/// A confinement: each item by its name, and the memory that the limit counts.
fn confinement(had: &ProgramConfinement, spelling: Spelling) -> Json {
    let items = had.items.items().into_iter();
    let items = items.map(|(name, item)| (spelled(name, spelling), item.into()));
    items.chain([("memory".to_owned(), had.memory.as_str().into())]).collect::<Map<_, _>>().into()
}

fn backend(backend: &Backend) -> Json {
    let mut fields = Map::new();
    fields.insert("ok".to_owned(), backend.ok.into());
    let texts =
        [("version", &backend.version), ("path", &backend.path), ("reason", &backend.reason)];
    for (key, text) in texts {
        if let Some(text) = text {
            fields.insert(key.to_owned(), text.as_str().into());
        }
    }
    Json::Object(fields)
}

/// JSON as a message.
pub(crate) fn message(json: &Json) -> Value {
    // JSON is a message, whatever it holds.
    Value::serialize(&AsMessage(json)).unwrap_or_default()
}

/// JSON whose null is null: serde has it as a unit, which is `undefined` in a message.
struct AsMessage<'j>(&'j Json);

impl Serialize for AsMessage<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Json::Null => serializer.serialize_none(),
            Json::Array(items) => serializer.collect_seq(items.iter().map(AsMessage)),
            Json::Object(fields) => {
                serializer.collect_map(fields.iter().map(|(key, value)| (key, AsMessage(value))))
            }
            other => other.serialize(serializer),
        }
    }
}
