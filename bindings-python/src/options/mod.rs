//! The arguments of `run_code`, as the core's request, and those of `Runtime`. `session` has those of sessions.
//!
//! In: Python objects. Out: names, sources and one message of all values; or an exception. The core checks the
//! options and words the errors. This module only checks their Python types.

pub(crate) mod session;

use std::path::PathBuf;

use isolane::{
    Language, OptionDeclaration, OptionKind, OptionSet, OptionValue, Request, RuntimeOptions,
    SourceText, Spelling, Step, Value, inspect_limit, unknown_keyword as keyword, unknown_option,
    wrong_type,
};
use pyo3::{
    exceptions::{PyKeyError, PyTypeError},
    prelude::*,
    types::{PyBool, PyDict, PyInt, PyList, PyMapping, PyString, PyTuple},
};

use crate::{
    error::exception,
    value::{Encoder, Functions, source_text},
};

/// The arguments of `run_code`, by name; `None` takes the default.
struct Given<'a, 'py>(&'a Bound<'py, PyDict>);

impl<'py> Given<'_, 'py> {
    fn option(&self, name: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
        Ok(self.0.get_item(name)?.filter(|value| !value.is_none()))
    }
}

/// The names of a set of options, such as `run` or `runtime`.
#[pyfunction]
pub(crate) fn option_names(set: &str) -> PyResult<Vec<&'static str>> {
    let set = OptionSet::named(set).ok_or_else(|| PyKeyError::new_err(set.to_owned()))?;
    Ok(set.declarations().iter().map(|option| option.name).collect())
}

/// The exception for a keyword that a call does not take: of a set of options, or else of these names.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "as Python hands it over")]
pub(crate) fn unknown_keyword(
    py: Python<'_>,
    call: &str,
    key: &str,
    set: &str,
    names: Vec<String>,
) -> PyErr {
    exception(py, &keyword(call, key, OptionSet::named(set), &names))
}

/// Reads the declared options of a runtime, by name; `None` takes the default.
pub(crate) fn read_runtime_options(
    given: &Bound<'_, PyDict>,
    worker_folder: PathBuf,
) -> PyResult<RuntimeOptions> {
    let py = given.py();
    let mut options = RuntimeOptions {
        worker_folder: Some(worker_folder),
        spelling: Spelling::Snake,
        ..RuntimeOptions::default()
    };
    check_hook(Given(given).option("default")?.as_ref())?;
    for option in OptionSet::Runtime.declarations() {
        let Some(value) = given.get_item(option.name)? else { continue };
        let value = match option.kind {
            OptionKind::Choice(_) => OptionValue::Text(read_choice(option, &value)?.to_owned()),
            _ if value.is_none() => continue,
            OptionKind::Count { .. } => OptionValue::Number(read_number(option.name, &value)?),
            OptionKind::Path => OptionValue::Path(read_path(option.name, &value)?),
            OptionKind::Text | OptionKind::Other => {
                OptionValue::Text(read_source(option.name, &value)?.text)
            }
        };
        options.set(option.name, value).map_err(|error| exception(py, &error))?;
    }
    Ok(options)
}

type Entries<'py> = Vec<(String, Bound<'py, PyAny>)>;

/// Reads a request. If this fails, nothing has started.
pub(crate) fn read_request(
    given: &Bound<'_, PyDict>,
    functions: &Functions,
    owner: &Bound<'_, PyAny>,
) -> PyResult<Request> {
    let py = given.py();
    let given = Given(given);
    check_hook(given.option("default")?.as_ref())?;
    let source = given.0.get_item("source")?.ok_or_else(|| PyKeyError::new_err("source"))?;
    let (function, args) = read_execute(py, given.option("execute")?.as_ref())?;
    let tool_args = given.option("args")?;
    let args = tool_args.as_ref().map_or(Args::Run(&args), Args::Tool);
    let mut request = Request::new(read_source("source", &source)?);
    request.native = functions.native();
    request.spelling = Spelling::Snake;
    request.function = function;
    request.language = read_language(given.option("language")?.as_ref())?;
    request.memory_limit_bytes =
        optional_number("memory_limit_bytes", given.option("memory_limit_bytes")?.as_ref())?;
    request.timeout_ms = optional_number("timeout_ms", given.option("timeout_ms")?.as_ref())?;
    request.filename = optional_text("filename", given.option("filename")?.as_ref())?;
    request.report = read_report(given.option("report")?.as_ref())?;
    for (key, text) in entries("modules", given.option("modules")?.as_ref())? {
        request.modules.push(read_module(key, &text)?);
    }
    let globals = entries("globals", given.option("globals")?.as_ref())?;
    let mut imports = Imports::new();
    for (specifier, exports) in entries("imports", given.option("imports")?.as_ref())? {
        imports.push(read_import(specifier, &exports)?);
    }
    request.globals = names(&globals);
    request.imports = import_names(&imports);
    // The names are checked first: a request with a wrong name reads no value.
    request.check().map_err(|error| exception(py, &error))?;
    request.inputs = write_inputs(&globals, &imports, Some(args), functions, owner)?;
    if request.report {
        functions.count_reach();
    }
    Ok(request)
}

fn read_module(key: String, text: &Bound<'_, PyAny>) -> PyResult<(String, SourceText)> {
    let text = read_source(&at("modules", &key), text)?;
    Ok((key, text))
}

/// The exports of bridged modules, by specifier.
type Imports<'py> = Vec<(String, Entries<'py>)>;

fn read_import<'py>(
    specifier: String,
    exports: &Bound<'py, PyAny>,
) -> PyResult<(String, Entries<'py>)> {
    let exports = entries(&at("imports", &specifier), Some(exports))?;
    Ok((specifier, exports))
}

fn import_names(imports: &Imports<'_>) -> Vec<(String, Vec<String>)> {
    imports.iter().map(|(specifier, exports)| (specifier.clone(), names(exports))).collect()
}

/// The arguments of a run: a list of them, or the only one of a tool.
#[derive(Clone, Copy)]
enum Args<'a, 'py> {
    Run(&'a Bound<'py, PyAny>),
    Tool(&'a Bound<'py, PyAny>),
}

/// Writes one message: the globals, the exports of the imports, the array of arguments of a run.
fn write_inputs<'py>(
    globals: &Entries<'py>,
    imports: &Imports<'py>,
    args: Option<Args<'_, 'py>>,
    functions: &Functions,
    owner: &Bound<'py, PyAny>,
) -> PyResult<Value> {
    let mut encoder = Encoder::new(functions, owner);
    let exports = imports.iter().map(|(_, exports)| exports.len()).sum::<usize>();
    encoder.array_of(globals.len() + exports + usize::from(args.is_some()));
    for (name, value) in globals {
        encoder.named(value, "globals", name)?;
    }
    for (specifier, exports) in imports {
        let root = at("imports", specifier);
        for (name, value) in exports {
            encoder.named(value, &root, name)?;
        }
    }
    match args {
        None => {}
        Some(Args::Run(args)) => encoder.value(args, "execute.args")?,
        Some(Args::Tool(args)) => {
            encoder.array_of(1);
            encoder.value(args, "args")?;
        }
    }
    Ok(encoder.finish())
}

fn read_execute<'py>(
    py: Python<'py>,
    execute: Option<&Bound<'py, PyAny>>,
) -> PyResult<(Option<String>, Bound<'py, PyAny>)> {
    let (mut function, mut args) = (None, PyTuple::empty(py).into_any());
    for (key, value) in entries("execute", execute)? {
        match key.as_str() {
            "fn" | "args" if value.is_none() => {}
            "fn" => function = optional_text("execute.fn", Some(&value))?,
            "args" if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() => {
                args = value;
            }
            "args" => return Err(wrong(&value, "execute.args", "a list")),
            _ => {
                let error = unknown_option(OptionSet::Execute, &key, Spelling::Snake);
                return Err(exception(py, &error));
            }
        }
    }
    Ok((function, args))
}

fn read_language(language: Option<&Bound<'_, PyAny>>) -> PyResult<Language> {
    let choice = read_declared(OptionSet::Run, "language", language)?;
    Ok(if choice == Some("javascript") { Language::JavaScript } else { Language::TypeScript })
}

/// Reads an option that has choices, if it is given.
fn read_declared(
    set: OptionSet,
    name: &str,
    given: Option<&Bound<'_, PyAny>>,
) -> PyResult<Option<&'static str>> {
    let declared = set.declarations().iter().find(|option| option.name == name);
    declared.zip(given).map(|(option, given)| read_choice(option, given)).transpose()
}

/// Reads one of the choices of an option.
fn read_choice(option: &OptionDeclaration, value: &Bound<'_, PyAny>) -> PyResult<&'static str> {
    let OptionKind::Choice(choices) = option.kind else { return Ok("") };
    let text = value.extract::<String>().ok();
    let known = choices.iter().find(|choice| text.as_deref() == Some(**choice));
    known.copied().ok_or_else(|| wrong(value, option.name, &option.kind.choices()))
}

fn read_path(option: &str, path: &Bound<'_, PyAny>) -> PyResult<PathBuf> {
    path.extract().map_err(|failure: PyErr| {
        if !failure.is_instance_of::<PyTypeError>(path.py()) {
            return failure;
        }
        let misuse = wrong(path, option, "a path");
        misuse.set_cause(path.py(), Some(failure));
        misuse
    })
}

fn read_source(option: &str, text: &Bound<'_, PyAny>) -> PyResult<SourceText> {
    match text.cast::<PyString>() {
        Ok(text) => source_text(text),
        Err(_) => Err(wrong(text, option, "a str")),
    }
}

fn read_report(report: Option<&Bound<'_, PyAny>>) -> PyResult<bool> {
    match report {
        Some(report) if !report.is_callable() => Err(wrong(report, "report", "a callable")),
        report => Ok(report.is_some()),
    }
}

/// Checks the hook that converts values, which only Python has.
fn check_hook(hook: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
    match hook {
        Some(hook) if !hook.is_callable() => Err(wrong(hook, "default", "a callable")),
        _ => Ok(()),
    }
}

fn optional_text(option: &str, text: Option<&Bound<'_, PyAny>>) -> PyResult<Option<String>> {
    let read = |text: &Bound<'_, PyAny>| read_source(option, text).map(|source| source.text);
    text.map(read).transpose()
}

fn optional_number(option: &str, number: Option<&Bound<'_, PyAny>>) -> PyResult<Option<f64>> {
    number.map(|number| read_number(option, number)).transpose()
}

/// Reads an integer. One beyond the range of `f64` becomes infinite, and every check refuses that.
fn read_number(option: &str, number: &Bound<'_, PyAny>) -> PyResult<f64> {
    if !number.is_instance_of::<PyInt>() || number.is_instance_of::<PyBool>() {
        return Err(wrong(number, option, "an int"));
    }
    let infinite = || if number.lt(0).unwrap_or(false) { -f64::INFINITY } else { f64::INFINITY };
    Ok(number.extract::<f64>().unwrap_or_else(|_| infinite()))
}

/// Reads the limit of a text.
pub(crate) fn read_limit(limit: Option<&Bound<'_, PyAny>>, py: Python<'_>) -> PyResult<usize> {
    let limit = optional_number("limit", limit)?;
    inspect_limit(limit).map_err(|error| exception(py, &error))
}

/// The entries of a mapping, in order. Its keys must be strings.
fn entries<'py>(option: &str, mapping: Option<&Bound<'py, PyAny>>) -> PyResult<Entries<'py>> {
    let Some(mapping) = mapping else { return Ok(Vec::new()) };
    let items = match mapping.cast::<PyDict>() {
        Ok(dict) => dict.items(),
        Err(_) => match mapping.cast::<PyMapping>() {
            Ok(mapping) => mapping.items()?,
            Err(_) => return Err(wrong(mapping, option, "a dict")),
        },
    };
    let entry = |item: Bound<'py, PyAny>| {
        let (key, value) = item.extract::<(Bound<'py, PyAny>, Bound<'py, PyAny>)>()?;
        match key.cast::<PyString>() {
            Ok(text) => Ok((source_text(text)?.text, value)),
            Err(_) => Err(wrong(&key, &format!("a key of {option}"), "a str")),
        }
    };
    items.iter().map(entry).collect()
}

fn names(entries: &Entries<'_>) -> Vec<String> {
    entries.iter().map(|(name, _)| name.clone()).collect()
}

/// The path of an entry of an option: `modules["./a.js"]`.
fn at(option: &str, key: &str) -> String {
    Step::Key(key.to_owned()).after(option)
}

fn wrong(got: &Bound<'_, PyAny>, option: &str, expected: &str) -> PyErr {
    match shown(got) {
        Ok(got_text) => exception(got.py(), &wrong_type(option, expected, &got_text)),
        Err(failure) => failure,
    }
}

/// A wrong value for an error message: a short string itself, the class of any other value.
fn shown(got: &Bound<'_, PyAny>) -> PyResult<String> {
    const LONGEST: usize = 32;
    if let Ok(text) = got.cast::<PyString>()
        && text.len()? <= LONGEST
    {
        return Ok(text.repr()?.to_string_lossy().into_owned());
    }
    Ok(got.get_type().name()?.to_string_lossy().into_owned())
}
