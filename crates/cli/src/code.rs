//! Code and all that is handed to it.
//!
//! In: flags. Out: sources and the options of a run, whose checks are the core's.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use isolane::{
    Error, Execute, ExecutionOptions, Input, Inputs, Report, Runtime, RuntimeOptions, Step,
    wrong_type,
};
use isolane_remote_tools::Config;
use serde_json::{Map, Number, Value as Json};

use crate::{
    arguments::{CodeArguments, GivenArguments, Place},
    exit::Ended,
    remote,
    sources::{self, Sources},
};

/// Where this program is installed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Installation {
    /// The folder of the executable `isolane-worker`; that of the running program by default.
    pub(crate) worker_folder: Option<PathBuf>,
}

impl Installation {
    /// A runtime for a few runs.
    pub(crate) fn runtime(&self, place: Place) -> Result<Runtime, Ended> {
        let options = RuntimeOptions {
            isolation: place.into(),
            ready_isolates: Some(1),
            worker_folder: self.worker_folder.clone(),
            ..RuntimeOptions::default()
        };
        Ok(Runtime::new(&options)?)
    }
}

/// The values and sources of code, whichever command runs it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Given {
    pub(crate) globals: Inputs,
    pub(crate) imports: BTreeMap<String, Inputs>,
    /// By relative specifier.
    pub(crate) modules: BTreeMap<String, String>,
}

impl Given {
    /// Reads files, and so blocks.
    pub(crate) fn read(arguments: &GivenArguments) -> Result<Self, Ended> {
        Self::default().with(arguments)
    }

    /// The same and what these flags hand over, which replaces values of the same name. Reads files, and so blocks.
    pub(crate) fn with(self, arguments: &GivenArguments) -> Result<Self, Ended> {
        let mut given = self;
        let (globals, imports) = handed(arguments)?;
        for (name, value) in globals {
            given.globals.insert(name, input(value));
        }
        for (name, exports) in imports {
            let exports = exports.as_object().cloned().unwrap_or_default();
            let exports = exports.into_iter().map(|(name, value)| (name, input(value)));
            given.imports.insert(name, exports.collect());
        }
        if let Some(folder) = &arguments.modules {
            given.modules.extend(sources::folder(folder)?);
        }
        Ok(given)
    }

    /// Reads the fields `globals`, `imports` and `modules` of a configuration.
    pub(crate) fn of_fields(fields: &Map<String, Json>) -> Result<Self, Error> {
        let mut given = Self::default();
        for (name, json) in object(fields.get("globals"), "globals")? {
            given.globals.insert(name, input(json.clone()));
        }
        for (name, exports) in object(fields.get("imports"), "imports")? {
            let path = Step::Key(name.clone()).after("imports");
            let exports = object(Some(exports), &path)?;
            let exports = exports.into_iter().map(|(name, json)| (name, input(json.clone())));
            given.imports.insert(name.clone(), exports.collect());
        }
        for (specifier, source) in object(fields.get("modules"), "modules")? {
            let Json::String(source) = source else {
                let path = Step::Key(specifier.clone()).after("modules");
                return Err(wrong_type(&path, "a string", kind(source)));
            };
            given.modules.insert(specifier.clone(), source.clone());
        }
        Ok(given)
    }
}

/// Values by their names.
pub(crate) type Named = Map<String, Json>;

/// The values of globals, and the exports of modules, each an object. Reads files, and so blocks.
pub(crate) fn handed(arguments: &GivenArguments) -> Result<(Named, Named), Ended> {
    let (mut globals, mut imports) = (Map::new(), Map::new());
    for text in &arguments.globals {
        let (name, json) = named("--global", "NAME=JSON", text)?;
        globals.insert(name.to_owned(), parsed(&format!("--global {name}"), json)?);
    }
    for text in &arguments.imports {
        let (name, file) = named("--import", "NAME=FILE.json", text)?;
        let exports = parsed(file, &sources::read(Path::new(file))?)?;
        if !exports.is_object() {
            return Err(Ended::misuse(format!("--import {name}: {file} is no JSON object")));
        }
        imports.insert(name.to_owned(), exports);
    }
    Ok((globals, imports))
}

/// A run that is about to start.
#[derive(Debug)]
pub(crate) struct Code {
    pub(crate) sources: Sources,
    pub(crate) options: ExecutionOptions,
    pub(crate) timeout_ms: Option<u64>,
    /// The tools that it may import.
    pub(crate) config: Option<Config>,
}

impl Code {
    /// Reads files, or stdin, and so blocks.
    pub(crate) fn read(arguments: &CodeArguments) -> Result<Self, Ended> {
        let Given { globals, imports, modules } = Given::read(&arguments.given)?;
        let sources = Sources::read(&arguments.file, arguments.given.modules.as_deref(), modules)?;
        let args = match arguments.args.as_deref().map(|args| parsed("--args", args)).transpose()? {
            None => Vec::new(),
            Some(Json::Array(args)) => args.into_iter().map(input).collect(),
            Some(_) => return Err(Ended::misuse("--args must be a JSON array")),
        };
        let options = ExecutionOptions {
            execute: Execute { function: arguments.function.clone(), args },
            imports,
            modules: sources.modules.clone(),
            globals,
            language: sources.language,
            memory_limit_bytes: arguments.given.memory,
            filename: Some(sources.filename.clone()),
            report: Report::On,
        };
        let config = arguments.mcp.as_deref().map(remote::read).transpose()?;
        Ok(Self { sources, options, timeout_ms: arguments.timeout, config })
    }
}

/// The fields of an object that may be missing.
fn object<'j>(json: Option<&'j Json>, path: &str) -> Result<Vec<(&'j String, &'j Json)>, Error> {
    match json {
        None => Ok(Vec::new()),
        Some(Json::Object(fields)) => Ok(fields.iter().collect()),
        Some(other) => Err(wrong_type(path, "an object", kind(other))),
    }
}

fn kind(json: &Json) -> &'static str {
    match json {
        Json::Null => "null",
        Json::Bool(_) => "a boolean",
        Json::Number(_) => "a number",
        Json::String(_) => "a string",
        Json::Array(_) => "an array",
        Json::Object(_) => "an object",
    }
}

fn named<'g>(flag: &str, form: &str, given: &'g str) -> Result<(&'g str, &'g str), Ended> {
    given.split_once('=').ok_or_else(|| Ended::misuse(format!("{flag} {given}: write {form}")))
}

fn parsed(place: &str, text: &str) -> Result<Json, Ended> {
    serde_json::from_str(text).map_err(|error| Ended::misuse(format!("{place}: no JSON: {error}")))
}

/// JSON as the code would parse it: each number is a double.
fn input(mut json: Json) -> Input {
    doubles(&mut json);
    Input::new(json)
}

/// Recurses as deep as the parser allows, 128 levels.
fn doubles(json: &mut Json) {
    match json {
        Json::Number(number) => {
            let double = number.as_f64().and_then(Number::from_f64);
            if let (false, Some(double)) = (is_safe(number), double) {
                *number = double;
            }
        }
        Json::Array(elements) => elements.iter_mut().for_each(doubles),
        Json::Object(entries) => entries.values_mut().for_each(doubles),
        _ => {}
    }
}

fn is_safe(number: &Number) -> bool {
    const MOST: i64 = (1 << 53) - 1;
    number.as_i64().is_some_and(|number| (-MOST..=MOST).contains(&number))
}
