//! The way of a cell, from its linked module to its end.
//!
//! In: a linked cell, or the call of something that cells have made. Out: an [`End`], with the value, its text, and the
//! part of the cell that it is from. A value that cannot leave is no failure. Keeps the promises of sessions on values.

use std::{
    cell::{Cell, RefCell},
    collections::HashSet,
    sync::Arc,
};

use super::{declared::Slots, present::Present};
use crate::{
    data::{
        cell::ValueFrom,
        inspect::inspect_with,
        outcome::{ExecutionError, Status},
        text::{MESSAGE_LIMIT, bounded},
    },
    isolate::{
        awaiting::{await_numbered, await_promise, await_value},
        crossing::{clone_in::clone_args_in, clone_out::clone_cell_value},
        end::{CellEnd, End, NotStarted},
        engine::{Local, Outcome, Raw, Thrown, is_proxy, sys, tag_of, undefined},
        exception,
        loader::Body,
        marks::marked,
        signal::{HELD, IMPORTED, RESOLVED, RETURNED, Signal},
        state::State,
    },
    modules::{compile::cell::CellValue, session_program::LinkedCell},
    value::{ErrorClass, Value},
};

/// Bytes of the text of a value.
const TEXT_LIMIT: usize = 16 << 10;

/// The most names that a message about a missing one lists.
const LISTED_NAMES: usize = 20;

/// The work of a cell, ready to begin.
pub(super) enum Ready {
    /// A cell and its code, which is loaded with everything that it imports.
    Source(LinkedCell, Body),
    Call {
        name: String,
        args: Value,
    },
    Held {
        function: u32,
        args: Value,
        call: u32,
    },
}

/// Begins a cell. The names of a source are declared when its imports have been evaluated.
pub(super) fn begin(state: &State, ready: Ready) -> Result<(), NotStarted> {
    let cx = state.realm().cx;
    match ready {
        Ready::Source(cell, Body { function, imports }) => {
            if evaluate(state, imports)? {
                return Ok(run(state, &cell, &function)?);
            }
            state.session()?.linked.replace(Some((cell, function)));
            Ok(())
        }
        Ready::Call { name, args } => {
            state.arrive(Slots::default(), CellValue::None, None)?;
            call(state, &name, &args)
        }
        Ready::Held { function, args, call } => {
            state.arrive(Slots::default(), CellValue::None, Some(call))?;
            if let Err(Thrown) = state.call_exported(function, &args, call) {
                let thrown = cx.exception();
                state.settle_call(call, Err(thrown.raw()));
                settled(state, call);
            }
            Ok(())
        }
    }
}

/// Notes that a call of the host has its outcome.
pub(in crate::isolate) fn settled(state: &State, call: u32) {
    let Ok(session) = state.session() else { return };
    let present = session.present.borrow();
    let held = present.as_ref().and_then(|cell| cell.held.as_ref()).map(RefCell::borrow_mut);
    let is_last = held.is_some_and(|mut held| held.remove(&call) && held.is_empty());
    drop(present);
    if is_last {
        let value = state.realm().cx.dup(undefined());
        state.signal.replace(Some(Signal::of(HELD, value)));
    }
}

/// Notes one more call of the host. A cell that is a call goes on until all have their outcomes.
pub(in crate::isolate) fn called(state: &State, call: u32) {
    let Ok(session) = state.session() else { return };
    if let Some(held) = session.present.borrow().as_ref().and_then(|cell| cell.held.as_ref()) {
        held.borrow_mut().insert(call);
    }
}

/// Whether the present cell has given its value.
pub(super) fn has_value(state: &State) -> bool {
    let Some(session) = &state.session else { return false };
    session.present.borrow().as_ref().is_some_and(|cell| cell.has_value.get())
}

/// Whether the present cell is a call of a function that the host holds.
pub(in crate::isolate) fn is_held(state: &State) -> bool {
    let Some(session) = &state.session else { return false };
    session.present.borrow().as_ref().is_some_and(|cell| cell.held.is_some())
}

/// Goes on after a promise that the cell waited for has settled.
pub(in crate::isolate) fn take_signal(
    state: &State,
    Signal { what, number, value }: Signal,
) -> Outcome<Option<End>> {
    match what {
        IMPORTED => evaluated(state, number).map(|()| None),
        HELD => Ok(Some(End::Cell(Box::default()))),
        RETURNED => {
            let present = state.session()?.present.borrow();
            let value = present.as_ref().and_then(|present| present.value.take());
            drop(present);
            await_result(state, value.ok_or(Thrown)?).map(|()| None)
        }
        RESOLVED => end(state, value.raw()).map(Some),
        _ => {
            let error = exception::execution_error(state, value.raw());
            Ok(Some(End::Failed(Status::Error, Box::new(error))))
        }
    }
}

/// Evaluates the modules that a cell imports, one after another. True if that is done; a module that awaits something
/// goes on beside the others.
fn evaluate(state: &State, modules: Vec<Local>) -> Outcome<bool> {
    let (cx, session) = (state.realm().cx, state.session()?);
    let mut waits = 0;
    for module in modules {
        state.note_job();
        let promise = cx.evaluate(module)?;
        if cx.fulfilled(promise.raw()).is_some() {
            continue;
        }
        waits += 1;
        await_numbered(state, promise.raw(), IMPORTED, session.round.get())?;
        if !cx.is_pending(promise.raw()) {
            // It has thrown.
            break;
        }
    }
    session.evaluating.set(waits);
    Ok(waits == 0)
}

/// Goes on when one more of the modules has been evaluated, unless a cell that has ended had imported it.
fn evaluated(state: &State, round: u32) -> Outcome<()> {
    let session = state.session()?;
    if round != session.round.get() {
        return Ok(());
    }
    session.evaluating.set(session.evaluating.get().saturating_sub(1));
    if session.evaluating.get() > 0 {
        return Ok(());
    }
    let (cell, body) = session.linked.take().ok_or(Thrown)?;
    run(state, &cell, &body)
}

/// Declares the names of a cell, and calls the function that is its code.
fn run(state: &State, cell: &LinkedCell, body: &Local) -> Outcome<()> {
    let cx = state.realm().cx;
    let slots = state.declare(cell)?;
    state.bind_imports(cell, &slots)?;
    state.arrive(slots, cell.compiled.plan.value, None)?;
    let binder = state.binder()?;
    let promise = cx.call(body.raw(), undefined(), &[binder.raw()])?;
    await_promise(state, promise.raw(), RETURNED)
}

/// Calls what a cell has declared.
fn call(state: &State, name: &str, args: &Value) -> Result<(), NotStarted> {
    let cx = state.realm().cx;
    let Some(function) = state.name_value(name)? else {
        return Err(NotStarted::Unlinked(Box::new(unknown_name(state, name))));
    };
    if tag_of(function.raw()) == sys::JS_TAG_UNINITIALIZED {
        let message = format!("{name} is not initialized");
        return Err(state
            .throw_error(ErrorClass::ReferenceError, "ReferenceError", &message)
            .into());
    }
    if !cx.is_function(function.raw()) {
        let message = format!("'{name}' is not a function");
        return Err(state.throw_error(ErrorClass::TypeError, "TypeError", &message).into());
    }
    let args = clone_args_in(state, args)?;
    let raws: Vec<Raw> = args.iter().map(Local::raw).collect();
    let value = cx.call(function.raw(), undefined(), &raws)?;
    Ok(await_result(state, value)?)
}

/// Awaits what a cell gives. A Proxy is the value itself: awaiting it would run one of its traps.
fn await_result(state: &State, value: Local) -> Outcome<()> {
    if is_proxy(value.raw()) {
        state.signal.replace(Some(Signal::of(RESOLVED, value)));
        return Ok(());
    }
    await_value(state, value)
}

/// The error of a call of a name that no cell declared.
fn unknown_name(state: &State, name: &str) -> ExecutionError {
    let declared = state.session().map(|session| Arc::clone(&session.declared.borrow()));
    let names: Vec<String> = declared
        .iter()
        .flat_map(|declared| declared.iter())
        .take(LISTED_NAMES + 1)
        .map(|(name, _)| format!("'{}'", bounded(name.to_owned(), 200)))
        .collect();
    let listed = match names.len() {
        0 => "nothing".to_owned(),
        count if count > LISTED_NAMES => format!("{}, …", names[..LISTED_NAMES].join(", ")),
        _ => names.join(", "),
    };
    let message = format!("No cell has declared '{name}'; the session has {listed}");
    ExecutionError {
        name: "SyntaxError".to_owned(),
        message: bounded(message, MESSAGE_LIMIT),
        ..ExecutionError::default()
    }
}

/// The end of a cell with that value.
fn end(state: &State, value: Raw) -> Outcome<End> {
    let session = state.session()?;
    let value_from = match &*session.present.borrow() {
        Some(Present { came_to_end, source, .. }) if came_to_end.get() => match source {
            CellValue::None => None,
            CellValue::Default => Some(ValueFrom::Default),
            CellValue::Expression => Some(ValueFrom::Expression),
            CellValue::Completion => Some(ValueFrom::Completion),
        },
        _ => Some(ValueFrom::Return),
    };
    let is_undefined = tag_of(value) == sys::JS_TAG_UNDEFINED;
    let (value, uncloned) = clone_cell_value(state, value)?;
    let names = |number| state.host_function_name(number);
    let text = (!is_undefined).then(|| inspect_with(&value, TEXT_LIMIT, &marked(""), &names));
    let value = match &uncloned {
        None => Some(value),
        Some(_) => {
            state.discharge(value.held_bytes());
            None
        }
    };
    Ok(End::Cell(Box::new(CellEnd { value, text, uncloned, value_from })))
}

impl State {
    fn arrive(&self, slots: Slots, source: CellValue, held: Option<u32>) -> Outcome<()> {
        let held = held.map(|call| RefCell::new(HashSet::from([call])));
        self.session()?.present.replace(Some(Present {
            slots,
            came_to_end: Cell::new(false),
            has_value: Cell::new(false),
            value: RefCell::default(),
            source,
            held,
        }));
        Ok(())
    }
}
