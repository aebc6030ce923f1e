//! One case, from its options to its result.
//!
//! In: a [`Case`]. Out: nothing, or the difference from the expected result. The options are read as in a binding of a
//! language without types: errors have the words of the core, with options spelled as in JavaScript.

use std::{rc::Rc, sync::mpsc::Receiver};

use isolane::{
    Error, ErrorKind, ExecutionResult, Language, OptionSet, Request, RunHandle, Runtime,
    SourceText, Spelling, unknown_option, wrong_type,
};
use serde_json::{Map, Value as Json};

use super::{
    compare::compare_some,
    event_loop::{Event, EventLoop, line},
    functions::Tables,
    js::{Js, Outgoing, key_step, read},
    parse::{Case, Expected},
    remote::Remote,
    tagged::{Values, entries, tag},
};

/// Runs a case against a runtime.
pub(crate) fn check(case: &Case, runtime: &Runtime) -> Result<(), String> {
    let mut tables = Tables::default();
    let (host, events) = line();
    let started = request(case, &mut tables).and_then(|request| runtime.start(request, host));
    match (&case.expected, started) {
        (Expected::Misuse(expected), Err(error)) => misuse(expected, &error),
        (Expected::Misuse(expected), Ok(_)) => {
            Err(format!("expected misuse {expected}, but it started"))
        }
        (Expected::Result(_), Err(error)) => Err(format!("it did not start: {error}")),
        (Expected::Result(expected), Ok(remote)) => {
            let (got, remote) = run(case, events, tables, remote)?;
            result(expected, &got, &remote)
        }
    }
}

/// Plays the host of a started run until the run has settled.
pub(crate) fn run(
    case: &Case,
    events: Receiver<Event>,
    tables: Tables,
    remote: RunHandle,
) -> Result<(ExecutionResult, RunHandle), String> {
    EventLoop::new(events, tables, remote, &case.handle).run()
}

/// The name of the exception that JavaScript would throw.
pub(crate) fn error_name(error: &Error) -> &'static str {
    match error.kind() {
        ErrorKind::Type => "TypeError",
        ErrorKind::Range => "RangeError",
        ErrorKind::Serialization => "SerializationError",
        _ => "Error",
    }
}

fn misuse(expected: &Json, error: &Error) -> Result<(), String> {
    let name = error_name(error);
    let expected = expected.as_object().ok_or("the misuse is no object")?;
    let got = [("name", Some(Js::text(name))), ("message", Some(Js::text(error.message())))];
    compare_some(expected, &got, "misuse")
}

fn result(expected: &Json, got: &ExecutionResult, remote: &RunHandle) -> Result<(), String> {
    let remote: Rc<dyn Remote> = Rc::new(remote.clone());
    let value = |message| read(message, &remote).map_err(|malformed| malformed.to_string());
    let expected = expected.as_object().ok_or("the result is no object")?;
    let mut logs = Vec::new();
    for log in &got.logs {
        logs.push(Js::record([
            ("level", Js::text(log.level.as_str())),
            ("args", value(&log.args)?),
            ("timestamp", Js::Number(log.timestamp)),
        ]));
    }
    let reports = got.reports.iter().map(value).collect::<Result<Vec<_>, _>>()?;
    // The fields that explain a failure best come first.
    error(expected.get("error"), got)?;
    let present = [
        ("status", Some(Js::text(got.status.as_str()))),
        ("result", got.result.as_ref().map(value).transpose()?),
        ("reports", Some(Js::list(reports))),
        ("logs", Some(Js::list(logs))),
        ("durationMs", Some(Js::Number(got.duration_ms))),
        #[expect(clippy::cast_precision_loss, reason = "a size")]
        ("memoryUsedBytes", got.memory_used_bytes.map(|bytes| Js::Number(bytes as f64))),
    ];
    let others = expected.iter().filter(|(key, _)| *key != "error");
    let others: Map<String, Json> =
        others.map(|(key, value)| (key.clone(), value.clone())).collect();
    compare_some(&others, &present, "result").map_err(|why| match &got.error {
        Some(error) => format!("{why}\n      with error {error:?}"),
        None => why,
    })
}

fn error(expected: Option<&Json>, got: &ExecutionResult) -> Result<(), String> {
    let absent = expected.is_some_and(|expected| matches!(tag(expected), Some(("$absent", _))));
    let (Some(expected), false) = (expected, absent) else {
        return match &got.error {
            Some(error) if absent => Err(format!("error: expected none, got {error:?}")),
            _ => Ok(()),
        };
    };
    let Some(error) = &got.error else {
        return Err(format!("error: expected {expected}, got none; result {:?}", got.result));
    };
    let text = |text: &Option<String>| text.as_deref().map(Js::text);
    let number = |number: Option<u32>| number.map(|number| Js::Number(f64::from(number)));
    let present = [
        ("name", Some(Js::text(&error.name))),
        ("message", Some(Js::text(&error.message))),
        ("stack", text(&error.stack)),
        ("specifier", text(&error.specifier)),
        ("filename", text(&error.filename)),
        ("line", number(error.line)),
        ("column", number(error.column)),
    ];
    let expected = expected.as_object().ok_or("the error is no object")?;
    compare_some(expected, &present, "error")
        .map_err(|why| format!("{why}\n      of {} {error:?}", got.status.as_str()))
}

/// Options in the form for the core. Wrong types are reported here, all other errors there.
pub(crate) fn request(case: &Case, tables: &mut Tables) -> Result<Request, Error> {
    let mut request = Request {
        language: if case.typescript { Language::TypeScript } else { Language::JavaScript },
        inputs: isolane::value::Value::undefined(),
        spelling: Spelling::Camel,
        ..Request::new(SourceText::from_utf16(&case.source))
    };
    let modules =
        case.modules.iter().map(|(key, text)| (key.clone(), SourceText::from_utf16(text)));
    request.modules.extend(modules);
    let mut inputs = Inputs::default();
    for (key, said) in &case.options {
        if matches!(tag(said), Some(("$undefined", _))) {
            continue;
        }
        let mut values = Values::new(tables);
        let mut string = |expected| match values.value(said).as_text() {
            Some(text) => Ok(text),
            None => Err(wrong_type(key, expected, kind(said))),
        };
        match key.as_str() {
            "filename" => request.filename = Some(string("a string")?),
            "language" => {
                const LANGUAGES: &str = "'javascript' or 'typescript'";
                request.language = match string(LANGUAGES)?.as_str() {
                    "javascript" => Language::JavaScript,
                    "typescript" => Language::TypeScript,
                    other => return Err(wrong_type(key, LANGUAGES, &format!("'{other}'"))),
                };
            }
            "memoryLimitBytes" => match values.value(said) {
                Js::Number(limit) => request.memory_limit_bytes = Some(limit),
                _ => return Err(wrong_type(key, "a number", kind(said))),
            },
            "report" => {
                request.report = true;
                match (tag(said), said) {
                    (Some(("$fn", name)), _) => tables.report_to(name.as_str().unwrap_or_default()),
                    (None, Json::Bool(true)) => {}
                    _ => return Err(wrong_type(key, "a function", kind(said))),
                }
            }
            "execute" => request.function = execute(said, &mut inputs)?,
            "globals" => inputs.globals = record("globals", said)?,
            "modules" => {
                for (path, source) in record("modules", said)? {
                    let option = format!("modules[{path:?}]");
                    let Json::String(source) = source else {
                        return Err(wrong_type(&option, "a string", kind(source)));
                    };
                    request.modules.push((path, source.clone().into()));
                }
            }
            "imports" => {
                for (specifier, exports) in record("imports", said)? {
                    let exports = record(&format!("imports[{specifier:?}]"), exports)?;
                    inputs.imports.push((specifier, exports));
                }
            }
            _ => return Err(unknown_option(OptionSet::Run, key, Spelling::Camel)),
        }
    }
    // The core checks the names before any value is read.
    request.globals = names(&inputs.globals);
    request.imports = inputs
        .imports
        .iter()
        .map(|(specifier, exports)| (specifier.clone(), names(exports)))
        .collect();
    request.check()?;
    request.inputs = inputs.message(tables)?;
    Ok(request)
}

type Entries<'j> = Vec<(String, &'j Json)>;

fn names(entries: &Entries<'_>) -> Vec<String> {
    entries.iter().map(|(name, _)| name.clone()).collect()
}

/// The values of a run, which form one message.
#[derive(Default)]
struct Inputs<'j> {
    globals: Entries<'j>,
    imports: Vec<(String, Entries<'j>)>,
    args: &'j [Json],
}

impl Inputs<'_> {
    fn message(&self, tables: &mut Tables) -> Result<isolane::value::Value, Error> {
        let mut values = Values::new(tables);
        let mut named: Vec<(String, &str, Js)> = Vec::new();
        for (name, value) in &self.globals {
            named.push((format!("globals{}", key_step(name)), name, values.value(value)));
        }
        for (specifier, exports) in &self.imports {
            for (name, value) in exports {
                let path = format!("imports{}{}", key_step(specifier), key_step(name));
                named.push((path, name, values.value(value)));
            }
        }
        let args = Js::list(self.args.iter().map(|arg| values.value(arg)).collect::<Vec<_>>());
        let refused = |message: String| Error::new(ErrorKind::Serialization, message);
        let mut out = Outgoing::new();
        out.array(named.len() + 1);
        for (path, name, value) in &named {
            out.value(value, path, name).map_err(refused)?;
        }
        out.value(&args, "execute.args", "").map_err(refused)?;
        Ok(out.finish())
    }
}

fn execute<'j>(said: &'j Json, inputs: &mut Inputs<'j>) -> Result<Option<String>, Error> {
    let mut function = None;
    for (key, said) in record("execute", said)? {
        match (key.as_str(), said) {
            ("fn" | "args", said) if matches!(tag(said), Some(("$undefined", _))) => {}
            ("fn", Json::String(name)) => function = Some(name.clone()),
            ("fn", _) => return Err(wrong_type("execute.fn", "a string", kind(said))),
            ("args", Json::Array(args)) => inputs.args = args,
            ("args", _) => return Err(wrong_type("execute.args", "an array", kind(said))),
            _ => return Err(unknown_option(OptionSet::Execute, &key, Spelling::Camel)),
        }
    }
    Ok(function)
}

/// The entries of an option that has to be a plain object.
fn record<'j>(option: &str, said: &'j Json) -> Result<Entries<'j>, Error> {
    entries(said).ok_or_else(|| wrong_type(option, "an object", kind(said)))
}

fn kind(said: &Json) -> &'static str {
    match (tag(said), said) {
        (Some(("$bigint", _)), _) => "a bigint",
        (Some(("$fn", _)), _) => "a function",
        (Some(_), _) | (None, Json::Object(_)) => "an object",
        (None, Json::Null) => "null",
        (None, Json::Bool(_)) => "a boolean",
        (None, Json::Number(_)) => "a number",
        (None, Json::String(_)) => "a string",
        (None, Json::Array(_)) => "an array",
    }
}
