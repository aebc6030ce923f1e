//! The errors of texts and of imports.
//!
//! In: the error of a text that does not compile, or of an import that does not link. Out: an exception in the realm of
//! the run, which is the link error if something is being linked.

use super::{
    engine::Thrown,
    exception, explain,
    state::{Linking, State},
};
use crate::{
    data::outcome::{ExecutionError, Position},
    value::ErrorClass,
};

/// Throws the engine's parse error of a text that passed the checks before. The error belongs to the compiler's realm,
/// so the run gets one of its own.
pub(super) fn throw_compile_error(state: &State, name: &str) -> Thrown {
    let compiler = state.realm().compiler;
    let thrown = compiler.exception();
    let described = exception::compile_error(state, compiler, thrown.raw(), name);
    drop(thrown);
    let request = state.requested.borrow().clone();
    // The request may be that of a static import.
    let place =
        request.and_then(|(importer, specifier)| import_place(state, &importer, &specifier, true));
    throw_link_error(state, &described, place)
}

/// The file and the place of the `import()` that failed.
pub(super) fn import_place(
    state: &State,
    importer: &str,
    specifier: &str,
    written: bool,
) -> Option<(String, Position)> {
    if !matches!(*state.linking.borrow(), Linking::Idle) {
        return None;
    }
    let place = explain::place_of_import(state, importer, specifier, written)?;
    Some((importer.to_owned(), place))
}

/// Throws the error of a text or an import. It is the link error, if something is being linked.
pub(super) fn throw_link_error(
    state: &State,
    error: &ExecutionError,
    import: Option<(String, Position)>,
) -> Thrown {
    let place = match (&error.filename, error.line, error.column) {
        (Some(file), Some(line), Some(column)) => format!(" ({file}:{line}:{column})"),
        _ => String::new(),
    };
    let class = match error.name.as_str() {
        "SyntaxError" => ErrorClass::SyntaxError,
        "TypeError" => ErrorClass::TypeError,
        "RangeError" => ErrorClass::RangeError,
        _ => ErrorClass::Error,
    };
    // A dynamic import only throws: the sandbox's code decides how to handle it.
    let mut linking = state.linking.borrow_mut();
    if !matches!(*linking, Linking::Idle) {
        *linking = Linking::Failed(Box::new(error.clone()));
    }
    drop(linking);
    state.failed_import.replace(import);
    let thrown = state.throw_error(class, &error.name, &format!("{}{place}", error.message));
    state.failed_import.take();
    thrown
}
