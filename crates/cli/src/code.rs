//! Code and all that is handed to it.
//!
//! In: flags. Out: sources and the options of a run, whose checks are the core's.

use std::{collections::BTreeMap, path::Path};

use isolane::{Execute, ExecutionOptions, Input, Inputs, Runtime, RuntimeOptions};
use serde_json::{Number, Value as Json};

use crate::{
    arguments::{CodeArguments, Place},
    exit::Ended,
    sources::{self, Sources},
};

/// A run that is about to start.
#[derive(Debug)]
pub(crate) struct Code {
    pub(crate) sources: Sources,
    pub(crate) options: ExecutionOptions,
    pub(crate) timeout_ms: Option<u64>,
}

impl Code {
    pub(crate) fn read(arguments: &CodeArguments) -> Result<Self, Ended> {
        let sources = Sources::read(&arguments.file, arguments.modules.as_deref())?;
        let mut globals = Inputs::new();
        for given in &arguments.globals {
            let (name, json) = named("--global", "NAME=JSON", given)?;
            globals.insert(name, input(parsed(&format!("--global {name}"), json)?));
        }
        let mut imports = BTreeMap::new();
        for given in &arguments.imports {
            let (name, file) = named("--import", "NAME=FILE.json", given)?;
            let text = sources::read(Path::new(file))?;
            let Json::Object(exports) = parsed(file, &text)? else {
                return Err(Ended::misuse(format!("--import {name}: {file} is no JSON object")));
            };
            let exports = exports.into_iter().map(|(name, value)| (name, input(value)));
            imports.insert(name.to_owned(), exports.collect());
        }
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
            memory_limit_bytes: arguments.memory,
            filename: Some(sources.filename.clone()),
            ..ExecutionOptions::default()
        };
        Ok(Self { sources, options, timeout_ms: arguments.timeout })
    }
}

/// A runtime for a few runs.
pub(crate) fn runtime(place: Place) -> Result<Runtime, Ended> {
    let options = RuntimeOptions {
        isolation: place.into(),
        ready_isolates: Some(1.0),
        ..RuntimeOptions::default()
    };
    Ok(Runtime::new(&options)?)
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
