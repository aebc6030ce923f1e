//! Stacks, as text.
//!
//! In: an error that the engine makes; later the text of its stack. Out: the text, and what `error.stack` gives.
//!
//! A stack is one text, `    at name (file:line:column)` a line. The engine asks [`write_stack`] for it. Inside of the
//! sandbox `error.stack` is read through a getter of ours, which leaves the marks of files out (`marks.rs`).

#![expect(unsafe_code, reason = "the engine calls this function with raw pointers")]

use std::ffi::c_int;

use super::{
    engine::{
        Cx, Local, Outcome, Raw, Thrown,
        frames::{self, CallSite, Caller, Stack},
        is_error, is_object, is_string, sys,
    },
    exception,
    explain::{self, Correction},
    marks::{CORRECTED, FIRST, label_of, marked, without_marks},
    scene,
    state::State,
    trampoline,
};

use crate::data::outcome::Position;

/// Called by the engine for the stack of each error that it makes: with the error, and the list of its call sites.
pub(super) unsafe extern "C-unwind" fn write_stack(
    ctx: *mut sys::JSContext,
    _function: Raw,
    _this: Raw,
    argc: c_int,
    argv: *mut Raw,
    _flags: c_int,
) -> Raw {
    trampoline::enter(ctx, |state| {
        let cx = Cx(ctx);
        let (Some(layout), [error, list, ..]) =
            (frames::probe::layout(), trampoline::args(argc, argv))
        else {
            return cx.string("");
        };
        let elements = cx.call_sites(layout, *list);
        let sites = elements.iter().filter_map(|element| frames::call_site(layout, element));
        // A parser lists the text that it reads, too, as a site without a function.
        let sites: Vec<CallSite<'_>> = sites.filter(|site| is_object(site.function())).collect();
        if state.must_end() {
            let interrupted = is_interruption(cx, *error);
            let innermost = sites.first().filter(|site| interrupted && !site.native());
            scene::note(state, innermost.map(CallSite::function));
            state.still_running();
        }
        let Some(first) = sites.first() else { return cx.string_of_bytes(&import_text(state)) };
        // SAFETY: the engine calls this function while it makes the error.
        let stack = unsafe { Stack::of(cx, layout, first) };
        let correction =
            stack.and_then(|stack| explain::explain(state, layout, *error, stack, &sites));
        let (text, written) = text_of(state, stack, &sites, correction)?;
        if !is_error(*error) {
            state.note_throw(*error, &text);
        }
        Ok(written)
    })
}

/// Whether it is the error of an interruption, which is not of the code. Whoever makes one alike has a less exact place.
fn is_interruption(cx: Cx, error: Raw) -> bool {
    let message = cx.own_data(error, c"message").filter(|message| is_string(message.raw()));
    message.is_some_and(|text| {
        cx.with_bytes(text.raw(), |text| text == b"interrupted").is_ok_and(|is_it| is_it)
    })
}

/// The stack of an error that no function makes: the `import()` that failed, which the engine runs on its own.
fn import_text(state: &State) -> Vec<u8> {
    let Some((file, Position { line, column })) = state.failed_import.take() else {
        return Vec::new();
    };
    let mut file = marked(&file).into_bytes();
    file[0] = CORRECTED;
    let place = format!(":{line}:{column})\n");
    [&b"    at <anonymous> ("[..], &file, place.as_bytes()].concat()
}

/// Gives an error of the host the stack of the call that it answers.
pub(super) fn set_call(state: &State, error: &Local, function: Raw, callers: &[Caller]) {
    let Some(layout) = frames::probe::layout() else { return };
    let cx = state.realm().cx;
    let mut text = format!("    at {} (native)\n", state.function_name(function)).into_bytes();
    for caller in callers {
        let (Some((line, column)), Ok(file)) = (caller.place(), cx.atom_text(caller.file())) else {
            continue;
        };
        let name = match state.function_name(caller.function()) {
            name if name.is_empty() => "<anonymous>".to_owned(),
            name => name,
        };
        let file = file.into_lossy();
        state.linker.borrow().note_error(label_of(&file));
        text.extend_from_slice(format!("    at {name} ({file}:{line}:{column})\n").as_bytes());
    }
    match cx.string_of_bytes(&text) {
        Ok(stack) => frames::set_stack(layout, error, stack),
        Err(Thrown) => drop(cx.exception()),
    }
}

/// The stack as text, and as a string of the engine.
fn text_of(
    state: &State,
    stack: Option<Stack>,
    sites: &[CallSite<'_>],
    correction: Option<Correction>,
) -> Outcome<(Vec<u8>, Local)> {
    let cx = state.realm().cx;
    let mut text = Vec::new();
    let mut charged = 0;
    let mut push = |text: &mut Vec<u8>, string: Raw| {
        cx.with_bytes(string, |bytes| {
            state.charge(bytes.len());
            charged += bytes.len();
            text.extend_from_slice(bytes);
        })
    };
    let frame_of = |index: usize| {
        let site = sites.get(index)?;
        stack.and_then(|stack| stack.frame(index, site))
    };
    let is_trusted = |index| frame_of(index).is_some_and(|frame| frame.is_trusted());
    for (index, site) in sites.iter().enumerate() {
        let is_native = site.native() || is_trusted(index);
        if is_native && is_trusted(index + 1) {
            // Of the extension's functions, the one that the sandbox called stands for all.
            continue;
        }
        let corrected = correction.filter(|correction| correction.site == index);
        if correction.is_some_and(|correction| index < correction.site) && !is_native {
            continue;
        }
        text.extend_from_slice(b"    at ");
        if is_string(site.name()) {
            push(&mut text, site.name())?;
        } else {
            text.extend_from_slice(b"<anonymous>");
        }
        let place = match (corrected, frame_of(index)) {
            (Some(correction), _) => Some((correction.position.line, correction.position.column)),
            (None, Some(frame)) if frame.has_place() => site.place(),
            (None, _) => None,
        };
        match place {
            Some((line, column)) => {
                note_error(state, site.file())?;
                text.extend_from_slice(b" (");
                let start = text.len();
                push(&mut text, site.file())?;
                if corrected.is_some() && text.get(start) == Some(&FIRST) {
                    text[start] = CORRECTED;
                }
                text.extend_from_slice(format!(":{line}:{column})\n").as_bytes());
            }
            None if is_native => text.extend_from_slice(b" (native)\n"),
            None => text.extend_from_slice(b" (missing)\n"),
        }
    }
    let written = cx.string_of_bytes(&text);
    state.discharge(charged);
    Ok((text, written?))
}

/// Notes that a stack names a place in a file, for a session must not forget that file's text at once.
fn note_error(state: &State, file: Raw) -> Outcome<()> {
    if state.session.is_none() {
        return Ok(());
    }
    state.realm().cx.with_bytes(file, |name| {
        if let (Ok(name), Ok(linker)) = (str::from_utf8(name), state.linker.try_borrow()) {
            linker.note_error(label_of(name));
        }
    })
}

/// Replaces the engine's own getter of `stack`.
pub(super) fn install(cx: Cx, error_prototype: Raw) -> Outcome<()> {
    let getter = cx.c_function(read_stack, c"get stack", 0, 0)?;
    cx.set_getter(error_prototype, c"stack", &getter)
}

/// The getter of `error.stack`: the error's name and message as they are by now, and below them the engine's text, without
/// marks, in positions of the original.
unsafe extern "C-unwind" fn read_stack(
    ctx: *mut sys::JSContext,
    this: Raw,
    _argc: c_int,
    _argv: *mut Raw,
    _magic: c_int,
) -> Raw {
    trampoline::enter(ctx, |state| {
        let cx = Cx(ctx);
        let stack = cx.call(state.realm().intrinsics.error_stack, this, &[])?;
        if !is_error(this) {
            return Ok(stack);
        }
        let head = exception::headline(state, this);
        if !is_string(stack.raw()) {
            return cx.string(&head);
        }
        cx.with_bytes(stack.raw(), |text| {
            state.charge(text.len());
            let linker = state.linker.try_borrow().ok();
            let is_file = |file: &str| linker.as_ref().is_some_and(|linker| linker.knows(file));
            let original = |file: &str, line, column| linker.as_ref()?.original(file, line, column);
            let bare = without_marks(text, is_file, original);
            let frames = bare.as_deref().unwrap_or(text);
            let frames = frames.strip_suffix(b"\n").unwrap_or(frames);
            let mut whole = head.into_bytes();
            if !frames.is_empty() {
                whole.push(b'\n');
                whole.extend_from_slice(frames);
            }
            let whole = cx.string_of_bytes(&whole);
            state.discharge(text.len());
            whole
        })?
    })
}
