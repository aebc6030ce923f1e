//! The extension in a new realm.
//!
//! In: the source that the process has installed. Out: all names and properties of the extension in the realm's image, and
//! the object `host` through which its functions reach this crate.

#![expect(unsafe_code, reason = "the engine calls this function with raw pointers")]

use std::{
    ffi::{CStr, c_int},
    sync::OnceLock,
};

use super::parts::{Built, CONSTANT, HIDDEN};
use crate::{
    binding::native::extension_number,
    data::{
        extension::{Extension, ExtensionReturns, installed},
        outcome::LogLevel,
    },
    isolate::{
        crossing::host_function::host_function_object,
        engine::{
            Cx, Local, Outcome, Raw, Text, Thrown, c_string, int, is_string, lexical, sys, tag_of,
            trial::try_out, undefined,
        },
        library,
        realm::Realm,
        trampoline,
    },
    os::process::PerProcess,
};

/// Units of a text that the extension logs.
const LONGEST_LOG: usize = 16 << 10;

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

/// Evaluates the extension of the process in a new realm, and declares all its names and properties there. The values
/// have one reference each.
pub(in crate::isolate) fn build(realm: &Realm) -> Option<Built> {
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
        let function = host_function_object(cx, class, prototype, number, name)?;
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
    trampoline::enter(ctx, |state| {
        state.still_running();
        let cx = Cx(ctx);
        let function = usize::try_from(magic).ok().and_then(|number| FUNCTIONS.get(number));
        let (_, _, function) = function.ok_or(Thrown)?;
        let args = trampoline::args(argc, argv);
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
