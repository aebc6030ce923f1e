//! The extension of a realm, and its part in a run.
//!
//! In: the source that the process has installed; later the input and the names of a run. Out: all names and properties
//! in the realm's image, of which a run loses those that it does not ask for; the outcome of a run whose entry is a body,
//! and more work for one that is idle. The extension's functions are the sandbox's as far as limits go: a throw of theirs is a throw of the run. Their
//! bytecode has no places and no text, so that stacks and `toString` show them as the language's own.

#![expect(unsafe_code, reason = "the engine calls this function with raw pointers")]

use std::{
    ffi::{CStr, c_int},
    sync::{Arc, OnceLock},
};

use super::{
    State,
    crossing::bridge,
    engine::{
        Cx, Local, Outcome, Raw, Text, Thrown, c_string, int, is_object, is_string, lexical,
        realm::Realm, sys, tag_of, trial::try_out, undefined,
    },
    library,
};
use crate::{
    binding::native::{extension_number, extension_place},
    data::{
        extension::{Extension, ExtensionFunction, ExtensionReturns, installed},
        outcome::LogLevel,
        portable::portable,
    },
    modules::request::ExtensionRequest,
    os::process::PerProcess,
    value::ErrorClass,
};

/// Units of a text that the extension logs.
const LONGEST_LOG: usize = 16 << 10;

/// A constant among the engine's declarations, as a script makes it.
const CONSTANT: u32 = sys::JS_PROP_CONFIGURABLE | sys::JS_PROP_ENUMERABLE;
/// A property of `globalThis`.
const HIDDEN: u32 = sys::JS_PROP_WRITABLE | sys::JS_PROP_CONFIGURABLE;

/// The functions of the extension's host; the place of each is the number that the engine calls it by.
const FUNCTIONS: [(&CStr, c_int, Function); 4] = [
    (c"compile", 4, Function::Compile),
    (c"pending", 0, Function::Pending),
    (c"uncaught", 1, Function::Uncaught),
    (c"warn", 1, Function::Warn),
];

#[derive(Clone, Copy)]
enum Function {
    Compile,
    Pending,
    Uncaught,
    Warn,
}

/// The extension of a realm, which is in the realm's image.
#[derive(Clone, Copy)]
pub(super) struct Built {
    /// The functions `open`, `run` and `idle`, as far as they are there.
    open: Raw,
    run: Raw,
    idle: Raw,
    /// The object of the names' values.
    names: Raw,
    /// The object of the properties' values.
    properties: Raw,
    /// The array of the native functions.
    natives: Raw,
    /// The engine's object of declarations, which has the names.
    entries: Raw,
}

impl Built {
    /// Every value that is held.
    pub(super) fn all(&self) -> [Raw; 6] {
        [self.open, self.run, self.idle, self.names, self.properties, self.natives]
    }
}

/// The use that a run, or a session, makes of the extension, once it is open.
#[derive(Default)]
pub(super) struct Opened {
    request: Option<Arc<ExtensionRequest>>,
}

portable!(struct Opened { request });

impl Opened {
    /// As [`Local::image`].
    pub(super) fn image(&self) -> Self {
        Self { request: self.request.clone() }
    }
}

/// Evaluates the extension of the process in a new realm, and declares all its names and properties there. The values
/// have one reference each.
pub(super) fn build(realm: &Realm) -> Option<Built> {
    let extension = installed()?;
    let (cx, compiler) = (realm.cx, realm.compiler);
    let built = evaluate(extension, realm);
    if built.is_err() {
        let thrown = [cx, compiler].map(Cx::exception);
        let text = thrown.iter().find(|thrown| tag_of(thrown.raw()) == sys::JS_TAG_OBJECT);
        let text = text.and_then(|thrown| cx.to_string(thrown.raw()).ok());
        let text = text.and_then(|text| cx.text(text.raw()).ok()).map(Text::into_lossy);
        FAULT.get_or_init(OnceLock::new).get_or_init(|| text.unwrap_or_default());
    }
    built.ok()
}

static FAULT: PerProcess<OnceLock<String>> = PerProcess::new();

/// Why no realm can have the extension, if one could not be built.
pub(crate) fn fault() -> Option<String> {
    let Some(Extension { name, .. }) = installed() else {
        return Some("the process has no extension".to_owned());
    };
    let fault = FAULT.get_or_init(OnceLock::new).get()?;
    Some(format!("the extension '{name}' fails: {fault}"))
}

fn evaluate(extension: &Extension, realm: &Realm) -> Outcome<Built> {
    let cx = realm.cx;
    // Without the engine's object of declarations no run could be kept from a name.
    let entries = lexical::of(cx).ok_or(Thrown)?;
    let script = cx.load(bytecode(extension, realm.compiler)?)?;
    let function = cx.evaluate(script)?;
    let natives = cx.array()?;
    let host = host(extension, realm, &natives)?;
    let made = cx.call(function.raw(), undefined(), &[host.raw()])?;
    let part = |name: &CStr| cx.get_str(made.raw(), name);
    let (names, properties, global) = (part(c"names")?, part(c"properties")?, cx.global()?);
    for name in extension.names {
        let key = cx.atom(name)?;
        cx.define(entries, key.id, cx.get(names.raw(), key.id)?, CONSTANT)?;
    }
    for name in extension.properties {
        let key = cx.atom(name)?;
        cx.define(global.raw(), key.id, cx.get(properties.raw(), key.id)?, HIDDEN)?;
    }
    let (open, run, idle) = (part(c"open")?, part(c"run")?, part(c"idle")?);
    Ok(Built {
        open: open.into_raw(),
        run: run.into_raw(),
        idle: idle.into_raw(),
        names: names.into_raw(),
        properties: properties.into_raw(),
        natives: natives.into_raw(),
        entries,
    })
}

/// The extension's bytecode, made for the first realm of the process that has it. It is made in another heap, because the
/// image of a heap is as long as that has ever been.
fn bytecode(extension: &Extension, compiler: Cx) -> Outcome<&'static [u8]> {
    static MADE: PerProcess<OnceLock<Vec<u8>>> = PerProcess::new();
    let known = MADE.get_or_init(OnceLock::new);
    if let Some(made) = known.get() {
        return Ok(made);
    }
    let text = format!("({}\n)", extension.source);
    let name = c_string(&format!("<extension {}>", extension.name));
    let flags = sys::JS_EVAL_TYPE_GLOBAL | sys::JS_EVAL_FLAG_STRICT;
    let made = match try_out(|cx, _| cx.compile_stripped(&text, &name, flags).ok()) {
        Some(made) => made,
        // It fails here, too, where the error is read.
        None => compiler.compile_stripped(&text, &name, flags)?,
    };
    Ok(known.get_or_init(|| made))
}

/// The object `host`. Fills the array of the native functions.
fn host(extension: &Extension, realm: &Realm, natives: &Local) -> Outcome<Local> {
    let cx = realm.cx;
    let host = cx.object()?;
    for (number, (name, length, _)) in (0..).zip(FUNCTIONS) {
        let function = cx.c_function(call, name, length, number)?;
        let key = name.to_str().map_err(|_| Thrown)?;
        cx.define_str(host.raw(), key, function, sys::JS_PROP_ENUMERABLE)?;
    }
    let by_name = cx.object()?;
    let (class, prototype) = (realm.host_function_class, realm.intrinsics.function_prototype);
    for (place, native) in (0..).zip(extension.natives) {
        let is_async = native.returns != ExtensionReturns::Value;
        let number = extension_number(place as usize, is_async);
        let name = native.name.rsplit('.').next().unwrap_or_default();
        let function = bridge::host_function_object(cx, class, prototype, number, name)?;
        cx.define_index(natives.raw(), place, function.clone())?;
        cx.define_str(by_name.raw(), native.name, function, sys::JS_PROP_ENUMERABLE)?;
    }
    cx.prevent_extensions(by_name.raw())?;
    cx.define_str(host.raw(), "natives", by_name, sys::JS_PROP_ENUMERABLE)?;
    cx.prevent_extensions(host.raw())?;
    Ok(host)
}

unsafe extern "C-unwind" fn call(
    ctx: *mut sys::JSContext,
    _this: Raw,
    argc: c_int,
    argv: *mut Raw,
    magic: c_int,
) -> Raw {
    bridge::enter(ctx, |state| {
        state.still_running();
        let cx = Cx(ctx);
        let function = usize::try_from(magic).ok().and_then(|number| FUNCTIONS.get(number));
        let (_, _, function) = function.ok_or(Thrown)?;
        let args = bridge::args(argc, argv);
        let arg = cx.dup(args.first().copied().unwrap_or(undefined()));
        match function {
            Function::Compile => return library::compile(state, args),
            Function::Pending => {
                let pending = state.host_promises.borrow().len();
                return Ok(cx.dup(int(i32::try_from(pending).unwrap_or(i32::MAX))));
            }
            Function::Uncaught => state.log_uncaught("Uncaught", &arg),
            Function::Warn if state.own_console.get() || !is_string(arg.raw()) => {}
            Function::Warn => {
                state.log_text(LogLevel::Warn, &state.excerpt(arg.raw(), LONGEST_LOG));
            }
        }
        Ok(cx.dup(undefined()))
    })
}

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

/// Whether a host function may return a value in the place of a promise.
pub(super) fn may_return_value(number: u32) -> bool {
    returns(number) == Some(ExtensionReturns::Either)
}

/// Whether a host function gives values as texts in JSON.
pub(super) fn gives_json(number: u32) -> bool {
    returns(number) == Some(ExtensionReturns::Json)
}

/// Whether the run is told of lost calls of a host function of the extension.
pub(super) fn is_told(number: u32) -> bool {
    function(number).is_some_and(|native| native.is_told)
}

/// The name of a host function of the extension.
pub(super) fn name_of(number: u32) -> Option<&'static str> {
    function(number).map(|native| native.name)
}

fn returns(number: u32) -> Option<ExtensionReturns> {
    function(number).map(|native| native.returns)
}

fn function(number: u32) -> Option<&'static ExtensionFunction> {
    installed()?.natives.get(extension_place(number)?)
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
