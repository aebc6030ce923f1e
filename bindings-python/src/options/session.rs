//! The arguments of sessions, as the core's requests.
//!
//! In: the arguments of `Session` and of its methods by name, as Python objects. Out: requests, or an exception. As for
//! runs, the core checks the options, and this module only their Python types.

use isolane::{CallRequest, CellRequest, OptionSet, SessionRequest, Spelling, UpdateRequest};
use pyo3::{exceptions::PyKeyError, prelude::*, types::PyDict};

use super::{
    Entries, Given, Imports, check_hook, entries, import_names, names, optional_number,
    optional_text, read_declared, read_import, read_language, read_module, read_report,
    read_source, write_inputs,
};
use crate::{
    error::exception,
    value::{self, Functions},
};

/// Reads the options of a session. If this fails, nothing has started.
pub(crate) fn read_session(
    given: &Bound<'_, PyDict>,
    functions: &Functions,
    owner: &Bound<'_, PyAny>,
) -> PyResult<SessionRequest> {
    let py = given.py();
    let given = Given(given);
    let mut request = SessionRequest {
        native: functions.native(),
        spelling: Spelling::Snake,
        ..SessionRequest::default()
    };
    check_hook(given.option("default")?.as_ref())?;
    request.language = read_language(given.option("language")?.as_ref())?;
    request.memory_limit_bytes = number(&given, "memory_limit_bytes")?;
    request.checkpoint_bytes = number(&given, "checkpoint_bytes")?;
    request.report = read_report(given.option("report")?.as_ref())?;
    let cells = read_declared(OptionSet::Session, "cells", given.option("cells")?.as_ref())?;
    request.interleave = cells == Some("interleave");
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
    request.inputs = write_inputs(&globals, &imports, None, functions, owner)?;
    if request.report {
        functions.count_reach();
    }
    Ok(request)
}

/// Reads the options of a cell.
pub(crate) fn read_cell(given: &Bound<'_, PyDict>, functions: &Functions) -> PyResult<CellRequest> {
    let py = given.py();
    let given = Given(given);
    let source = required(&given, "source")?;
    let mut request = CellRequest::new(read_source("source", &source)?);
    request.spelling = Spelling::Snake;
    request.filename = optional_text("filename", given.option("filename")?.as_ref())?;
    let language = given.option("language")?;
    request.language = language.map(|language| read_language(Some(&language))).transpose()?;
    request.report = read_own_report(&given, functions)?;
    request.timeout_ms = number(&given, "timeout_ms")?;
    request.check().map_err(|error| exception(py, &error))?;
    Ok(request)
}

/// Reads the name, the arguments and the options of a call.
pub(crate) fn read_call(
    given: &Bound<'_, PyDict>,
    functions: &Functions,
    owner: &Bound<'_, PyAny>,
) -> PyResult<CallRequest> {
    let py = given.py();
    let given = Given(given);
    let name = read_source("name", &required(&given, "name")?)?.text;
    let mut request = CallRequest::new(name);
    request.spelling = Spelling::Snake;
    request.report = read_own_report(&given, functions)?;
    request.timeout_ms = number(&given, "timeout_ms")?;
    request.check().map_err(|error| exception(py, &error))?;
    request.args = value::write(functions, &required(&given, "args")?, owner, "args")?;
    Ok(request)
}

/// Reads an update. A name with the value `None` is taken away.
pub(crate) fn read_update(
    given: &Bound<'_, PyDict>,
    functions: &Functions,
    owner: &Bound<'_, PyAny>,
) -> PyResult<UpdateRequest> {
    let py = given.py();
    let given = Given(given);
    let mut request = UpdateRequest::default();
    let (modules, removed) = divided(&given, "modules")?;
    request.removed_modules = removed;
    for (key, text) in modules {
        request.modules.push(read_module(key, &text)?);
    }
    let (globals, removed) = divided(&given, "globals")?;
    request.removed_globals = removed;
    let (given_imports, removed) = divided(&given, "imports")?;
    request.removed_imports = removed;
    let mut imports = Imports::new();
    for (specifier, exports) in given_imports {
        imports.push(read_import(specifier, &exports)?);
    }
    request.globals = names(&globals);
    request.imports = import_names(&imports);
    request.check().map_err(|error| exception(py, &error))?;
    request.inputs = write_inputs(&globals, &imports, None, functions, owner)?;
    Ok(request)
}

fn required<'py>(given: &Given<'_, 'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    given.0.get_item(name)?.ok_or_else(|| PyKeyError::new_err(name.to_owned()))
}

fn number(given: &Given<'_, '_>, name: &str) -> PyResult<Option<f64>> {
    optional_number(name, given.option(name)?.as_ref())
}

/// Whether the cell has a sink of its own; `None` leaves it to the session.
fn read_own_report(given: &Given<'_, '_>, functions: &Functions) -> PyResult<Option<bool>> {
    let has_sink = read_report(given.option("report")?.as_ref())?;
    if has_sink {
        functions.count_reach();
    }
    Ok(has_sink.then_some(true))
}

/// The entries of an option, and the keys of those that are `None`.
fn divided<'py>(given: &Given<'_, 'py>, option: &str) -> PyResult<(Entries<'py>, Vec<String>)> {
    let all = entries(option, given.option(option)?.as_ref())?;
    let (removed, kept): (Entries<'_>, Entries<'_>) =
        all.into_iter().partition(|(_, value)| value.is_none());
    Ok((kept, removed.into_iter().map(|(key, _)| key).collect()))
}
