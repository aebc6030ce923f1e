//! The steps from evaluation to the result of a run, and every way in which they fail.
//!
//! In: a loaded entry. Out: an [`End`], determined by structure and never by a text: the latch of the heap, the flag of
//! the caller, the promise that was rejected, the export that is missing. Keeps the contract's "Outcome": first
//! evaluate, then look the export up, call it if it is a function, await the result, clone it.

#![expect(unsafe_code, reason = "runs jobs with the engine's C functions")]

use std::ptr;

use super::{
    awaiting::{await_promise, await_value},
    crossing::{
        clone_in::clone_args_in,
        clone_out::{Crossing, clone_out},
    },
    end::{End, NotStarted, Stopped, Turn},
    engine::{Local, Outcome, Raw, Thrown, is_proxy, sys, undefined},
    exception, extension, globals, loader,
    session::{cell, seating},
    signal::{EVALUATED, RESOLVED, Signal},
    state::State,
};

use crate::{
    data::{
        outcome::{ExecutionError, Status},
        text::{MESSAGE_LIMIT, bounded},
    },
    modules::{program::Ending, request::Shape},
    testing::step_timer::{Step, lap},
    value::ErrorClass,
};

/// The most exports that a message about a missing one names.
const NAMED_EXPORTS: usize = 20;

/// Brings the caller's values in, loads the module graph and evaluates the entry.
pub(super) fn start(state: &State) -> Turn {
    go_on_from(state, evaluate(state))
}

/// Goes on from the start of the evaluation.
pub(super) fn go_on_from(state: &State, started: Result<(), NotStarted>) -> Turn {
    match started {
        Ok(()) => go_on(state),
        Err(NotStarted::Unlinked(error)) => {
            Turn::Ended(finish(state, End::Failed(Status::LinkError, error)))
        }
        Err(NotStarted::Thrown) => Turn::Ended(failure(state)),
    }
}

/// Runs jobs until the run is over or nothing is left to do.
pub(super) fn go_on(state: &State) -> Turn {
    loop {
        if state.must_end() {
            return Turn::Ended(forced(state));
        }
        let signal = state.signal.borrow_mut().take();
        if let Some(signal) = signal {
            match take_signal(state, signal) {
                Ok(None) => {}
                Ok(Some(end)) => return Turn::Ended(finish(state, end)),
                Err(Thrown) => return Turn::Ended(failure_of_export(state)),
            }
        } else if seating::is_anothers_turn(state) {
            return Turn::Idle { waits_for_host: state.waits_for_host() };
        } else if !run_job(state) {
            if state.waits_for_host() {
                return Turn::Idle { waits_for_host: true };
            }
            match extension::idle(state) {
                Ok(true) => {}
                Ok(false) => return Turn::Idle { waits_for_host: false },
                Err(Thrown) => return Turn::Ended(failure(state)),
            }
        }
    }
}

fn evaluate(state: &State) -> Result<(), NotStarted> {
    let cx = state.realm().cx;
    let inputs = std::mem::take(&mut state.task.borrow_mut().inputs);
    let inputs = clone_args_in(state, &inputs)?;
    state.inputs.replace(inputs);
    lap(Step::ClonedIn);
    state.charge_compiled(0);
    extension::open_for_run(state)?;
    globals::declare(state)?;
    lap(Step::Bound);
    let module = loader::load_entry(state).map_err(NotStarted::Unlinked)?;
    state.module.replace(Some(module.clone()));
    lap(Step::Loaded);
    if state.task.borrow().shape == Shape::Linked {
        let value = cx.dup(undefined());
        state.signal.replace(Some(Signal::of(RESOLVED, value)));
        return Ok(());
    }
    state.note_job();
    let promise = cx.evaluate(module)?;
    lap(Step::Evaluated);
    Ok(await_promise(state, promise.raw(), EVALUATED)?)
}

fn take_signal(state: &State, signal: Signal) -> Outcome<Option<End>> {
    if state.session.is_some() {
        return cell::take_signal(state, signal);
    }
    let Signal { what, value, .. } = signal;
    match what {
        EVALUATED => select(state),
        RESOLVED => {
            lap(Step::Awaited);
            let result = clone_out(state, value.raw(), Crossing::Final, "result")?;
            lap(Step::ClonedOut);
            Ok(Some(End::Success(result)))
        }
        _ => {
            let error = exception::execution_error(state, value.raw());
            Ok(Some(End::Failed(Status::Error, Box::new(error))))
        }
    }
}

/// Looks the export up, calls it if it is a function, and awaits the result.
fn select(state: &State) -> Outcome<Option<End>> {
    let cx = state.realm().cx;
    let module = state.module.borrow().as_ref().map(|module| cx.dup(module.raw())).ok_or(Thrown)?;
    let namespace = loader::namespace(state, module.raw())?;
    let name = state.task.borrow().export.clone();
    let key = cx.atom(&name)?;
    if !cx.has(namespace.raw(), key.id)? {
        if state.task.borrow().shape == Shape::Program {
            return clone_out(state, undefined(), Crossing::Final, "result")
                .map(End::Success)
                .map(Some);
        }
        return missing_export(state, &namespace, &name).map(Some);
    }
    let export = cx.get(namespace.raw(), key.id)?;
    if state.task.borrow().shape == Shape::Body {
        // The name that it got from its export would be in stacks.
        cx.delete(export.raw(), "name")?;
        await_value(state, extension::run(state, &export)?)?;
        return Ok(None);
    }
    let args = arguments(state)?;
    let candidate = if cx.is_function(export.raw()) {
        let raws: Vec<Raw> = args.iter().map(Local::raw).collect();
        cx.call(export.raw(), undefined(), &raws)?
    } else if args.is_empty() {
        export
    } else {
        let message = format!("execute.args were given, but the export '{name}' is not a function");
        return Err(state.throw_error(ErrorClass::TypeError, "TypeError", &message));
    };
    if is_proxy(candidate.raw()) {
        // Awaiting it would run one of its traps, and it cannot be the result.
        clone_out(state, candidate.raw(), Crossing::Final, "result")?;
    }
    await_value(state, candidate)?;
    Ok(None)
}

fn arguments(state: &State) -> Outcome<Vec<Local>> {
    let cx = state.realm().cx;
    let Some(array) = state.inputs.borrow().last().cloned() else { return Ok(Vec::new()) };
    let length = u32::try_from(cx.length(array.raw())?).map_err(|_| Thrown)?;
    (0..length).map(|index| cx.get_index(array.raw(), index)).collect()
}

fn missing_export(state: &State, namespace: &Local, name: &str) -> Outcome<End> {
    let cx = state.realm().cx;
    let keys = cx.keys(namespace.raw())?;
    let names: Vec<String> = (0..keys.len().min(NAMED_EXPORTS))
        .filter_map(|index| keys.atom(index))
        .map(|atom| format!("'{}'", state.key_excerpt(atom, MESSAGE_LIMIT)))
        .collect();
    let listed = match keys.len() {
        0 => "nothing".to_owned(),
        count if count > NAMED_EXPORTS => format!("{}, …", names.join(", ")),
        _ => names.join(", "),
    };
    let ending = ending(state, name);
    let remedy = match ending.written {
        _ if ending.declared.is_some() => "; write export before its declaration".to_owned(),
        Some(written) if keys.len() == 0 && name == "default" => format!("; end with: {written}"),
        _ if name == "default" && keys.len() == 1 => {
            let only = names.join("");
            let only = only.trim_matches('\'');
            let is_name = only.chars().all(|it| it.is_alphanumeric() || matches!(it, '_' | '$'));
            if is_name { format!("; end with: export default {only}") } else { String::new() }
        }
        _ => String::new(),
    };
    let place = ending.declared.or(ending.last);
    let message = format!("The module has no export '{name}'; it exports {listed}{remedy}");
    let error = ExecutionError {
        name: "SyntaxError".to_owned(),
        message: bounded(message, MESSAGE_LIMIT),
        filename: Some(state.linker.borrow().entry().to_owned()),
        line: place.map(|place| place.line),
        column: place.map(|place| place.column),
        ..ExecutionError::default()
    };
    Ok(End::Failed(Status::LinkError, Box::new(error)))
}

/// The end of the entry, of which the run selects that export.
fn ending(state: &State, export: &str) -> Ending {
    let (_, room_bytes) = state.held_and_room_bytes();
    state.linker.borrow().ending(export, room_bytes)
}

/// Runs one job; false when there is none.
fn run_job(state: &State) -> bool {
    let cx = state.realm().cx;
    state.note_job();
    let mut context = ptr::null_mut();
    // SAFETY: a live runtime, entered on this thread.
    let done = unsafe { sys::JS_ExecutePendingJob(sys::JS_GetRuntime(cx.0), &raw mut context) };
    if done < 0 {
        let thrown = cx.exception();
        if !state.must_end() {
            state.log_uncaught("Uncaught", &thrown);
        }
    }
    state.note_job_done();
    done != 0
}

/// The end that an exception on the run's own path means.
fn failure(state: &State) -> End {
    let cx = state.realm().cx;
    let thrown = cx.exception();
    if state.must_end() {
        return forced(state);
    }
    let error = exception::execution_error(state, thrown.raw());
    finish(state, End::Failed(Status::Error, Box::new(error)))
}

/// The same, on the way of the selected export. An error that no code made has the place of that export.
fn failure_of_export(state: &State) -> End {
    let mut end = failure(state);
    if let End::Failed(_, error) = &mut end
        && error.line.is_none()
        && state.session.is_none()
    {
        let export = state.task.borrow().export.clone();
        if let Some(place) = ending(state, &export).export {
            error.filename = Some(state.linker.borrow().entry().to_owned());
            (error.line, error.column) = (Some(place.line), Some(place.column));
        }
    }
    end
}

/// The end of a run that came to `end` by itself; even now the limit may have been hit.
fn finish(state: &State, end: End) -> End {
    state.log_unhandled();
    if matches!(end, End::Success(_) | End::Cell(_)) {
        state.warn_of_lost_calls();
    }
    if state.must_end() { forced(state) } else { end }
}

/// The end of a run that must end.
pub(super) fn forced(state: &State) -> End {
    let is_memory = state.exhausted();
    if state.failed() {
        End::Broken
    } else if let Some(module) = is_memory.then(|| state.take_oversized()).flatten() {
        End::Oversized(Box::new(module))
    } else if let Some(place) = state.scene.take() {
        End::Stopped(Box::new(Stopped { is_memory, place }))
    } else if is_memory {
        End::Memory
    } else {
        End::Asked
    }
}
