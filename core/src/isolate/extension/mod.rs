//! The extension of a realm, and its part in a run.
//!
//! In: the input and the names of a run. Out: the names and properties in the realm's image, of which a run loses those
//! that it does not ask for; the outcome of a run whose entry is a body, and more work for one that is idle. The
//! extension's functions are the sandbox's as far as limits go: a throw of theirs is a throw of the run. Their bytecode has
//! no places and no text, so that stacks and `toString` show them as the language's own.
//!
//! `build` makes the extension of a new realm, `parts` is the data that realms and runs have of it, and `functions` tells
//! host functions of the extension by their numbers.

pub(super) mod build;
pub(super) mod functions;
pub(super) mod parts;

use std::sync::Arc;

use self::parts::{Built, CONSTANT, HIDDEN, Opened};
use super::{
    engine::{Local, Outcome, Thrown, is_object, sys, tag_of, undefined},
    state::State,
};
use crate::{data::extension::installed, modules::request::ExtensionRequest, value::ErrorClass};

/// Opens the extension for a run that asks for it, and takes from any other what the realm's image has of it.
pub(super) fn open_for_run(state: &State) -> Outcome<()> {
    let Some(built) = state.realm().extension else { return Ok(()) };
    let Some(request) = state.task.borrow_mut().extension.take() else {
        return withdraw(state, built, &ExtensionRequest::default());
    };
    withdraw(state, built, &request)?;
    let mut inputs = state.inputs.take();
    if inputs.is_empty() {
        return Err(Thrown);
    }
    let input = inputs.remove(0);
    state.inputs.replace(inputs);
    let cx = state.realm().cx;
    if let Some(given) = open(state, built, &input)? {
        let keys = cx.keys(given.raw())?;
        for key in (0..keys.len()).filter_map(|index| keys.atom(index)) {
            let name = cx.atom_text(key)?.into_lossy();
            if request.names.contains(&name) {
                cx.define(built.entries, key, cx.get(given.raw(), key)?, CONSTANT)?;
            }
        }
    }
    state.extension.replace(Opened { request: Some(request) });
    Ok(())
}

/// Takes from a session all that the realm's image has of the extension.
pub(super) fn withdraw_all(state: &State) -> Outcome<()> {
    match state.realm().extension {
        Some(built) => withdraw(state, built, &ExtensionRequest::default()),
        None => Ok(()),
    }
}

/// Opens the extension for a session, whose input is the first of these values. Returns the values with those of its
/// names in the place of the first: the session declares them as those of its host.
pub(super) fn open_for_session(
    state: &State,
    request: &Arc<ExtensionRequest>,
    inputs: Vec<Local>,
) -> Outcome<Vec<Local>> {
    let cx = state.realm().cx;
    let built = state.realm().extension.ok_or(Thrown)?;
    let input = inputs.first().ok_or(Thrown)?;
    let given = open(state, built, input)?;
    let value = |name: &String| -> Outcome<Local> {
        let key = cx.atom(name)?;
        match &given {
            Some(given) if cx.own_property(given.raw(), key.id)?.is_some() => {
                cx.get(given.raw(), key.id)
            }
            _ => cx.get(built.names, key.id),
        }
    };
    let mut values = request.names.iter().map(value).collect::<Outcome<Vec<_>>>()?;
    let global = cx.global()?;
    for name in &request.properties {
        let key = cx.atom(name)?;
        cx.define(global.raw(), key.id, cx.get(built.properties, key.id)?, HIDDEN)?;
    }
    state.extension.replace(Opened { request: Some(Arc::clone(request)) });
    values.extend(inputs.into_iter().skip(1));
    Ok(values)
}

/// Takes away the names and properties of the realm's image that are not asked for.
fn withdraw(state: &State, built: Built, request: &ExtensionRequest) -> Outcome<()> {
    let Some(extension) = installed() else { return Ok(()) };
    let cx = state.realm().cx;
    let absent = |asked: &[String], name: &str| !asked.iter().any(|asked| asked == name);
    for name in extension.names.iter().filter(|name| absent(&request.names, name)) {
        cx.delete(built.entries, name)?;
    }
    let global = cx.global()?;
    for name in extension.properties.iter().filter(|name| absent(&request.properties, name)) {
        cx.delete(global.raw(), name)?;
    }
    Ok(())
}

/// Has the extension read its input; returns the object of values that it gives, if there is one.
fn open(state: &State, built: Built, input: &Local) -> Outcome<Option<Local>> {
    let cx = state.realm().cx;
    if tag_of(input.raw()) == sys::JS_TAG_UNDEFINED || !cx.is_function(built.open) {
        return Ok(None);
    }
    let given = cx.call(built.open, undefined(), &[input.raw()])?;
    Ok(is_object(given.raw()).then_some(given))
}

/// The native function of the extension at that place.
pub(super) fn native(state: &State, place: usize) -> Outcome<Local> {
    let cx = state.realm().cx;
    let place = u32::try_from(place).map_err(|_| Thrown)?;
    let found = match state.realm().extension {
        Some(built) => cx.get_index(built.natives, place)?,
        None => cx.dup(undefined()),
    };
    if cx.is_function(found.raw()) {
        return Ok(found);
    }
    Err(state.throw_serialization_error("an unknown function cannot be cloned"))
}

/// The names of the extension that a run sees.
pub(super) fn names(state: &State) -> Vec<String> {
    let opened = state.extension.borrow();
    opened.request.as_ref().map(|request| request.names.clone()).unwrap_or_default()
}

/// The value of a name of the extension that a run sees.
pub(super) fn value(state: &State, name: &str) -> Option<Local> {
    let opened = state.extension.try_borrow().ok()?;
    opened.request.as_ref()?.names.iter().find(|known| *known == name)?;
    let (cx, built) = (state.realm().cx, state.realm().extension?);
    let key = cx.atom(name).ok()?;
    cx.get(built.entries, key.id).ok()
}

/// The extension, if the run has opened it.
fn opened(state: &State) -> Option<Built> {
    let is_open = state.extension.borrow().request.is_some();
    state.realm().extension.filter(|_| is_open)
}

/// Has the extension run a body. Returns what it gives, which is usually a promise.
pub(super) fn run(state: &State, body: &Local) -> Outcome<Local> {
    let cx = state.realm().cx;
    match opened(state).filter(|built| cx.is_function(built.run)) {
        Some(built) => cx.call(built.run, undefined(), &[body.raw()]),
        None => {
            let message = "the extension runs no bodies";
            Err(state.throw_error(ErrorClass::TypeError, "TypeError", message))
        }
    }
}

/// Tells the extension that nothing can resume the run. Returns whether it has made something to do.
pub(super) fn idle(state: &State) -> Outcome<bool> {
    let cx = state.realm().cx;
    let Some(built) = opened(state).filter(|built| cx.is_function(built.idle)) else {
        return Ok(false);
    };
    let made = cx.call(built.idle, undefined(), &[])?;
    cx.truthy(made.raw())
}
