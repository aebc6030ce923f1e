//! The building of a realm.
//!
//! In: a fresh runtime of the engine. Out: a [`Realm`]: the ECMAScript intrinsics and nothing of the host, together with
//! the intrinsics that this crate needs and that no sandbox code has touched yet. The context in which code runs gets no
//! Eval intrinsic. Keeps the contract's part on `globalThis`.

#![expect(unsafe_code, reason = "builds contexts with the engine's C functions")]

use std::{ffi::CStr, ptr};

use super::{
    backtrace, console,
    crossing::{bridge, collecting, structured_clone},
    dates,
    engine::{
        self, Cx, Local, Outcome, Raw, Text, Thrown, class_of, frames, int, reactions, sys,
        undefined,
    },
    extension, function_text,
    globals::defaults::Defaults,
    intl, loader, locale,
    realm::{GLOBALS, Realm, intrinsics::Intrinsics, originals},
    rejections,
    session::parts::Parts,
};

/// Properties of the engine's functions that tell their place. They are no part of the language, and the file has a
/// mark that no sandbox may see (`marks.rs`).
const FUNCTION_PLACES: [&str; 3] = ["fileName", "lineNumber", "columnNumber"];

/// Properties of `Error` that would let sandbox code shape the stacks shown to the host.
const ERROR_HOOKS: &[&str] = &["captureStackTrace", "stackTraceLimit", "prepareStackTrace"];

/// Bytes of a thread's stack that the engine may use.
pub(crate) const STACK_LIMIT_BYTES: usize = 4 << 20;

impl Realm {
    /// Builds the realm in a fresh runtime; `None` if the memory does not suffice.
    pub(crate) fn build(runtime: *mut sys::JSRuntime) -> Option<Self> {
        Self::build_kind(runtime, false)
    }

    /// Builds a realm with the extension of the process. `None` too if there is none, or if it fails.
    pub(crate) fn build_extended(runtime: *mut sys::JSRuntime) -> Option<Self> {
        Self::build_kind(runtime, true)
    }

    fn build_kind(runtime: *mut sys::JSRuntime, is_extended: bool) -> Option<Self> {
        // SAFETY: the caller gives a live runtime, entered on this thread.
        unsafe {
            sys::JS_SetMaxStackSize(runtime, STACK_LIMIT_BYTES as sys::size_t);
            let cx = sys::JS_NewContextRaw(runtime);
            let compiler = sys::JS_NewContextRaw(runtime);
            if cx.is_null() || compiler.is_null() {
                return None;
            }
            let intrinsics = [
                sys::JS_AddIntrinsicBaseObjects,
                sys::JS_AddIntrinsicDate,
                sys::JS_AddIntrinsicRegExp,
                sys::JS_AddIntrinsicJSON,
                sys::JS_AddIntrinsicProxy,
                sys::JS_AddIntrinsicMapSet,
                sys::JS_AddIntrinsicTypedArrays,
                sys::JS_AddIntrinsicPromise,
                sys::JS_AddIntrinsicWeakRef,
            ];
            if intrinsics.iter().any(|add| add(cx) != 0) || sys::JS_AddIntrinsicEval(compiler) != 0
            {
                return None;
            }
            sys::JS_AddIntrinsicRegExpCompiler(compiler);
            let host_function_class = bridge::register_class(runtime)?;
            loader::install(runtime);
            rejections::install(runtime);
            let cx = Cx(cx);
            let intrinsics = furnish(cx, Cx(compiler), runtime).ok()?;
            let compiler = Cx(compiler);
            let mut realm = Self {
                cx,
                compiler,
                host_function_class,
                intrinsics,
                extension: None,
                session: Parts::build(cx, runtime),
            };
            if is_extended {
                realm.extension = Some(extension::build::build(&realm)?);
            }
            Some(realm)
        }
    }
}

/// Removes the names that the sandbox must not have, adds ours, and captures the intrinsics.
fn furnish(cx: Cx, compiler: Cx, runtime: *mut sys::JSRuntime) -> Outcome<Intrinsics> {
    let global = cx.global()?;
    hide_internal_errors(cx, global.raw())?;
    for name in own_names(cx, global.raw())? {
        if !GLOBALS.contains(&name.as_str()) {
            cx.delete(global.raw(), &name)?;
        }
    }
    let error = cx.get_str(global.raw(), c"Error")?;
    // Without it the engine writes the stacks itself, and its errors keep its messages.
    if frames::probe::layout().is_some() {
        frames::install(cx, runtime, error.raw(), backtrace::write_stack).ok_or(Thrown)?;
    }
    // Found out here, so that no run has to.
    reactions::layout();
    for name in ERROR_HOOKS {
        cx.delete(error.raw(), name)?;
    }
    let function = cx.get_str(global.raw(), c"Function")?;
    let prototype = cx.get_str(function.raw(), c"prototype")?;
    let function_text = function_text::install(cx, prototype.raw())?;
    for name in FUNCTION_PLACES {
        cx.delete(prototype.raw(), name)?;
    }
    structured_clone::install(cx, global.raw())?;
    let intl_class = intl::register_class(runtime).ok_or(Thrown)?;
    let intrinsics = capture(cx, compiler, global.raw(), function_text, intl_class)?;
    backtrace::install(cx, intrinsics.error_prototypes[0])?;
    Ok(intrinsics)
}

/// The engine has a class of its own for the error of a string that would be too long, where the language says
/// `RangeError`. Its errors now inherit every visible property from `RangeError`; the class itself is out of reach.
fn hide_internal_errors(cx: Cx, global: Raw) -> Outcome<()> {
    let prototype = |class: &CStr| -> Outcome<Local> {
        cx.get_str(cx.get_str(global, class)?.raw(), c"prototype")
    };
    let internal = prototype(c"InternalError")?;
    for name in ["constructor", "name", "message"] {
        cx.delete(internal.raw(), name)?;
    }
    cx.set_prototype(internal.raw(), prototype(c"RangeError")?.raw())
}

fn own_names(cx: Cx, object: Raw) -> Outcome<Vec<String>> {
    let (mut table, mut count) = (ptr::null_mut(), 0);
    #[expect(clippy::cast_possible_wrap, reason = "a flag")]
    let flags = sys::JS_GPN_STRING_MASK as i32;
    // SAFETY: a live object and places for the table and its count.
    unsafe {
        if sys::JS_GetOwnPropertyNames(cx.0, &raw mut table, &raw mut count, object, flags) < 0 {
            return Err(Thrown);
        }
        let names = (0..count as usize)
            .map(|index| cx.atom_text((*table.add(index)).atom).map(Text::into_lossy))
            .collect();
        sys::JS_FreePropertyEnum(cx.0, table, count);
        names
    }
}

fn capture(
    cx: Cx,
    compiler: Cx,
    global: Raw,
    function_text: originals::FunctionText,
    intl_class: u32,
) -> Outcome<Intrinsics> {
    let constructor = |name: &CStr| cx.get_str(global, name);
    let method = |class: &CStr, name: &CStr| -> Outcome<Raw> {
        let prototype = cx.get_str(constructor(class)?.raw(), c"prototype")?;
        Ok(cx.get_str(prototype.raw(), name)?.into_raw())
    };
    let getter = |class: &CStr, name: &CStr| -> Outcome<Raw> {
        let prototype = cx.get_str(constructor(class)?.raw(), c"prototype")?;
        cx.own_getter(prototype.raw(), name).map(Local::into_raw)
    };
    let prototype = |class: &CStr| -> Outcome<Raw> {
        Ok(cx.get_str(constructor(class)?.raw(), c"prototype")?.into_raw())
    };
    let boxed = |class: &CStr, value: Raw| -> Outcome<(u32, Raw)> {
        let object = constructor(c"Object")?;
        let boxed = cx.call(object.raw(), undefined(), &[value])?;
        Ok((class_of(boxed.raw()), method(class, c"valueOf")?))
    };
    let bigint = constructor(c"BigInt")?;
    let one = cx.call(bigint.raw(), undefined(), &[int(1)])?;
    let text = cx.string("")?;
    let console = console::build(cx)?;
    let report = bridge::report_function(cx)?;
    Ok(Intrinsics {
        object_prototype: prototype(c"Object")?,
        function_prototype: prototype(c"Function")?,
        error_prototypes: [
            prototype(c"Error")?,
            prototype(c"RangeError")?,
            prototype(c"ReferenceError")?,
            prototype(c"SyntaxError")?,
            prototype(c"TypeError")?,
            prototype(c"URIError")?,
            prototype(c"EvalError")?,
        ],
        aggregate_error_prototype: prototype(c"AggregateError")?,
        error_stack: getter(c"Error", c"stack")?,
        function_text,
        map: constructor(c"Map")?.into_raw(),
        map_set: method(c"Map", c"set")?,
        map_for_each: method(c"Map", c"forEach")?,
        map_size: getter(c"Map", c"size")?,
        set: constructor(c"Set")?.into_raw(),
        set_add: method(c"Set", c"add")?,
        set_for_each: method(c"Set", c"forEach")?,
        set_size: getter(c"Set", c"size")?,
        date_get_time: method(c"Date", c"getTime")?,
        dates: dates::install(cx, global)?,
        promise: constructor(c"Promise")?.into_raw(),
        promise_resolve: cx.get_str(constructor(c"Promise")?.raw(), c"resolve")?.into_raw(),
        regexp: constructor(c"RegExp")?.into_raw(),
        regexp_source: getter(c"RegExp", c"source")?,
        regexp_flags: [
            ('d', getter(c"RegExp", c"hasIndices")?),
            ('g', getter(c"RegExp", c"global")?),
            ('i', getter(c"RegExp", c"ignoreCase")?),
            ('m', getter(c"RegExp", c"multiline")?),
            ('s', getter(c"RegExp", c"dotAll")?),
            ('u', getter(c"RegExp", c"unicode")?),
            ('v', getter(c"RegExp", c"unicodeSets")?),
            ('y', getter(c"RegExp", c"sticky")?),
        ],
        bigint_as_int_n: cx.get_str(bigint.raw(), c"asIntN")?.into_raw(),
        collector: collecting::collector(cx)?.into_raw(),
        bigint_to_string: method(c"BigInt", c"toString")?,
        string_concat: method(c"String", c"concat")?,
        string_slice: method(c"String", c"slice")?,
        data_view: constructor(c"DataView")?.into_raw(),
        data_view_buffer: getter(c"DataView", c"buffer")?,
        data_view_byte_offset: getter(c"DataView", c"byteOffset")?,
        data_view_byte_length: getter(c"DataView", c"byteLength")?,
        typed_array_byte_length: typed_array_getter(cx, global, c"byteLength")?,
        typed_array_length: typed_array_getter(cx, global, c"length")?,
        intl: intl::install(cx, global, intl_class)?,
        locale_methods: locale::install(cx, global)?,
        value_of: [
            boxed(c"Number", int(1))?,
            boxed(c"String", text.raw())?,
            boxed(c"Boolean", engine::bool(true))?,
            boxed(c"BigInt", one.raw())?,
        ],
        plain_classes: plain_classes(cx),
        bigint: bigint.into_raw(),
        defaults: Defaults::build(cx, compiler, console.raw(), report.raw())?,
        console: console.into_raw(),
        report: report.into_raw(),
    })
}

/// A getter that all typed arrays inherit from a prototype without a name.
fn typed_array_getter(cx: Cx, global: Raw, name: &CStr) -> Outcome<Raw> {
    let class = cx.get_str(global, c"Uint8Array")?;
    let typed_array = cx.prototype(class.raw())?;
    let prototype = cx.get_str(typed_array.raw(), c"prototype")?;
    cx.own_getter(prototype.raw(), name).map(Local::into_raw)
}

/// The engine's classes with the names `Object` and `Arguments`.
fn plain_classes(cx: Cx) -> [u32; 4] {
    const STANDARD_CLASSES: std::ops::Range<u32> = 1..64;
    let mut found = [0; 4];
    let plain = STANDARD_CLASSES
        .filter(|&class| matches!(cx.class_name(class).as_deref(), Some("Object" | "Arguments")));
    for (place, class) in found.iter_mut().zip(plain) {
        *place = class;
    }
    found
}
