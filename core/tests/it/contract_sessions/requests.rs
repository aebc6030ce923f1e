//! Options of a case as requests.
//!
//! In: tagged options of a session, a cell, a call or an update. Out: requests, or the misuse that a language without
//! types would find. Errors have the words of the core, with options spelled as in JavaScript.

use isolane::{
    CallRequest, CellRequest, Error, ErrorKind, Language, OptionSet, SessionRequest, SourceText,
    Spelling, UpdateRequest, unknown_option, value::Value, wrong_type,
};
use serde_json::{Map, Value as Json};

use super::{
    functions::{Function, Tables},
    js::{Js, Outgoing, key_step},
    parse::{Case, Cell},
    tagged::{Values, entries, tag},
};

/// A request, and the sink for its reports.
type WithSink<T> = Result<(T, Option<Function>), Error>;

pub(crate) fn session(case: &Case, tables: &mut Tables) -> WithSink<SessionRequest> {
    let mut request = SessionRequest { spelling: Spelling::Camel, ..SessionRequest::default() };
    let mut inputs = Inputs::default();
    let mut sink = None;
    for (key, said) in given(&case.options) {
        let mut option = Given { key, said, tables };
        match key.as_str() {
            "language" => request.language = option.language()?,
            "memoryLimitBytes" => request.memory_limit_bytes = Some(option.number()?),
            "checkpointBytes" => request.checkpoint_bytes = Some(option.number()?),
            "report" => (request.report, sink) = (true, option.sink()?),
            "cells" => {
                const CELLS: &str = "'queue' or 'interleave'";
                request.interleave = match option.string(CELLS)?.as_str() {
                    "queue" => false,
                    "interleave" => true,
                    other => return Err(wrong_type(key, CELLS, &format!("'{other}'"))),
                };
            }
            "globals" | "imports" | "modules" => inputs.add(key, said)?,
            _ => return Err(unknown_option(OptionSet::Session, key, Spelling::Camel)),
        }
    }
    request.modules.clone_from(&inputs.sources);
    let modules =
        case.modules.iter().map(|(key, text)| (key.clone(), SourceText::from_utf16(text)));
    request.modules.extend(modules);
    request.globals = names(&inputs.globals);
    request.imports = inputs.bridges();
    // The core checks the names before any value is read.
    request.check()?;
    request.inputs = inputs.message(tables)?;
    Ok((request, sink))
}

pub(crate) fn cell(
    cell: &Cell,
    text: &[u16],
    typescript: bool,
    tables: &mut Tables,
) -> WithSink<CellRequest> {
    let mut request = CellRequest::new(SourceText::from_utf16(text));
    request.spelling = Spelling::Camel;
    request.language = (!typescript).then_some(Language::JavaScript);
    let mut sink = None;
    for (key, said) in given(&cell.options) {
        let mut option = Given { key, said, tables };
        match key.as_str() {
            "as" | "in" => {}
            "filename" => request.filename = Some(option.string("a string")?),
            "language" => request.language = Some(option.language()?),
            "timeoutMs" => request.timeout_ms = Some(option.number()?),
            "report" => (request.report, sink) = (Some(true), option.sink()?),
            _ => return Err(unknown_option(OptionSet::Cell, key, Spelling::Camel)),
        }
    }
    Ok((request, sink))
}

pub(crate) fn call(
    cell: &Cell,
    name: &Json,
    args: &[Json],
    tables: &mut Tables,
) -> WithSink<CallRequest> {
    let Json::String(name) = name else { return Err(wrong_type("name", "a string", kind(name))) };
    let mut request = CallRequest::new(name.clone());
    request.spelling = Spelling::Camel;
    let mut sink = None;
    for (key, said) in given(&cell.options) {
        let mut option = Given { key, said, tables };
        match key.as_str() {
            "as" | "in" => {}
            "timeoutMs" => request.timeout_ms = Some(option.number()?),
            "report" => (request.report, sink) = (Some(true), option.sink()?),
            _ => return Err(unknown_option(OptionSet::Call, key, Spelling::Camel)),
        }
    }
    let mut values = Values::new(tables);
    let args = Js::list(args.iter().map(|arg| values.value(arg)).collect::<Vec<_>>());
    request.args = Outgoing::message(&args, "args").map_err(refused)?;
    Ok((request, sink))
}

pub(crate) fn update(said: &Json, tables: &mut Tables) -> Result<UpdateRequest, Error> {
    let mut inputs = Inputs::default();
    for (key, said) in record("update", said)? {
        match key.as_str() {
            "globals" | "imports" | "modules" => inputs.add(&key, said)?,
            _ => return Err(unknown_option(OptionSet::Update, &key, Spelling::Camel)),
        }
    }
    let [removed_globals, removed_imports, removed_modules] = inputs.removed.clone();
    let mut request = UpdateRequest {
        modules: inputs.sources.clone(),
        globals: names(&inputs.globals),
        imports: inputs.bridges(),
        removed_modules,
        removed_globals,
        removed_imports,
        ..UpdateRequest::default()
    };
    request.check()?;
    request.inputs = inputs.message(tables)?;
    Ok(request)
}

/// The options that are not undefined.
fn given(options: &Map<String, Json>) -> impl Iterator<Item = (&String, &Json)> {
    options.iter().filter(|(_, said)| !matches!(tag(said), Some(("$undefined", _))))
}

/// One option as the case has it.
struct Given<'g> {
    key: &'g str,
    said: &'g Json,
    tables: &'g mut Tables,
}

impl Given<'_> {
    fn string(&mut self, expected: &str) -> Result<String, Error> {
        let text = Values::new(self.tables).value(self.said).as_text();
        text.ok_or_else(|| wrong_type(self.key, expected, kind(self.said)))
    }

    fn number(&mut self) -> Result<f64, Error> {
        match Values::new(self.tables).value(self.said) {
            Js::Number(number) => Ok(number),
            _ => Err(wrong_type(self.key, "a number", kind(self.said))),
        }
    }

    fn language(&mut self) -> Result<Language, Error> {
        const LANGUAGES: &str = "'javascript' or 'typescript'";
        match self.string(LANGUAGES)?.as_str() {
            "javascript" => Ok(Language::JavaScript),
            "typescript" => Ok(Language::TypeScript),
            other => Err(wrong_type(self.key, LANGUAGES, &format!("'{other}'"))),
        }
    }

    /// The named function, or one that returns undefined for `true`.
    fn sink(&mut self) -> Result<Option<Function>, Error> {
        let name = match (tag(self.said), self.said) {
            (Some(("$fn", name)), _) => name.as_str().unwrap_or_default(),
            (None, Json::Bool(true)) => "undefined",
            _ => return Err(wrong_type(self.key, "a function", kind(self.said))),
        };
        Ok(Some(Function::Named(name.to_owned())))
    }
}

type Entries<'j> = Vec<(String, &'j Json)>;

/// The capabilities that are handed over. Their values form one message.
#[derive(Default)]
struct Inputs<'j> {
    globals: Entries<'j>,
    imports: Vec<(String, Entries<'j>)>,
    sources: Vec<(String, SourceText)>,
    /// Names that are taken away: of globals, of imports and of modules.
    removed: [Vec<String>; 3],
}

impl<'j> Inputs<'j> {
    fn add(&mut self, part: &str, said: &'j Json) -> Result<(), Error> {
        let places = ["globals", "imports", "modules"];
        let place = places.iter().position(|known| *known == part).expect("a part");
        for (name, said) in record(part, said)? {
            if said.get("$remove").is_some() {
                self.removed[place].push(name);
                continue;
            }
            match part {
                "globals" => self.globals.push((name, said)),
                "imports" => {
                    let exports = record(&format!("imports[{name:?}]"), said)?;
                    self.imports.push((name, exports));
                }
                _ => {
                    let Json::String(source) = said else {
                        let option = format!("modules[{name:?}]");
                        return Err(wrong_type(&option, "a string", kind(said)));
                    };
                    self.sources.push((name, source.clone().into()));
                }
            }
        }
        Ok(())
    }

    fn bridges(&self) -> Vec<(String, Vec<String>)> {
        let imports = self.imports.iter();
        imports.map(|(specifier, exports)| (specifier.clone(), names(exports))).collect()
    }

    fn message(&self, tables: &mut Tables) -> Result<Value, Error> {
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
        let mut out = Outgoing::new();
        out.array(named.len());
        for (path, name, value) in &named {
            out.value(value, path, name).map_err(refused)?;
        }
        Ok(out.finish())
    }
}

fn names(entries: &Entries<'_>) -> Vec<String> {
    entries.iter().map(|(name, _)| name.clone()).collect()
}

fn refused(message: String) -> Error {
    Error::new(ErrorKind::Serialization, message)
}

/// The entries of an option that has to be a plain object.
fn record<'j>(option: &str, said: &'j Json) -> Result<Entries<'j>, Error> {
    entries(said).ok_or_else(|| wrong_type(option, "an object", kind(said)))
}

fn kind(said: &Json) -> &'static str {
    match (tag(said), said) {
        (Some(("$number", _)), _) | (None, Json::Number(_)) => "a number",
        (Some(("$fn", _)), _) => "a function",
        (Some(_), _) | (None, Json::Object(_)) => "an object",
        (None, Json::Null) => "null",
        (None, Json::Bool(_)) => "a boolean",
        (None, Json::String(_)) => "a string",
        (None, Json::Array(_)) => "an array",
    }
}
