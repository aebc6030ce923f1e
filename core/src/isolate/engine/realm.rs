//! The realm of a run: the ECMAScript intrinsics, and nothing of the host.
//!
//! In: a fresh runtime of the engine. Out: a [`Realm`] of two contexts, together with the intrinsics that this crate
//! needs and that no sandbox code has touched yet. Code runs in one context, which has no Eval intrinsic, so that no
//! string ever becomes code there. The other one, a bare context, only compiles. Keeps the contract's part on
//! `globalThis`.
//!
//! A realm is plain data. It is built once and restored from an image, and its pointers and values stay true, because
//! an image belongs to one address.

#![expect(unsafe_code, reason = "builds contexts with the engine's C functions")]

use std::{
    ffi::{CStr, c_void},
    ptr,
};

use super::{
    Cx, Local, Outcome, Raw, Text, Thrown, class_of, frames, int, reactions, sys, undefined,
};

use crate::isolate::{
    State, backtrace, console,
    crossing::{bridge, structured_clone},
    dates, extension, function_text,
    globals::Defaults,
    intl, locale,
    session::names,
};

/// Bytes of a thread's stack that the engine may use.
pub(crate) const STACK_LIMIT_BYTES: usize = 4 << 20;

/// Every name that a realm's global object may have; all others are removed.
pub(in crate::isolate) const GLOBALS: &[&str] = &[
    "AggregateError",
    "Array",
    "ArrayBuffer",
    "AsyncDisposableStack",
    "BigInt",
    "BigInt64Array",
    "BigUint64Array",
    "Boolean",
    "DataView",
    "Date",
    "DisposableStack",
    "Error",
    "EvalError",
    "FinalizationRegistry",
    "Float16Array",
    "Float32Array",
    "Float64Array",
    "Function",
    "Infinity",
    "Int16Array",
    "Int32Array",
    "Int8Array",
    "Intl",
    "Iterator",
    "JSON",
    "Map",
    "Math",
    "NaN",
    "Number",
    "Object",
    "Promise",
    "Proxy",
    "RangeError",
    "ReferenceError",
    "Reflect",
    "RegExp",
    "Set",
    "String",
    "SuppressedError",
    "Symbol",
    "SyntaxError",
    "TypeError",
    "URIError",
    "Uint16Array",
    "Uint32Array",
    "Uint8Array",
    "Uint8ClampedArray",
    "WeakMap",
    "WeakRef",
    "WeakSet",
    "decodeURI",
    "decodeURIComponent",
    "encodeURI",
    "encodeURIComponent",
    "escape",
    "globalThis",
    "isFinite",
    "isNaN",
    "parseFloat",
    "parseInt",
    "queueMicrotask",
    "structuredClone",
    "undefined",
    "unescape",
];

/// Properties of the engine's functions that tell their place. They are no part of the language, and the file has a
/// mark that no sandbox may see (`backtrace.rs`).
const FUNCTION_PLACES: [&str; 3] = ["fileName", "lineNumber", "columnNumber"];

/// Properties of `Error` that would let sandbox code shape the stacks shown to the host.
const ERROR_HOOKS: &[&str] = &["captureStackTrace", "stackTraceLimit", "prepareStackTrace"];

/// Intrinsics that `instanceof` and cloning need, captured before any code of a run.
#[derive(Clone, Copy)]
pub(in crate::isolate) struct Intrinsics {
    pub(in crate::isolate) object_prototype: Raw,
    pub(in crate::isolate) function_prototype: Raw,
    /// Prototypes of the error classes, in the order of `ErrorClass`.
    pub(in crate::isolate) error_prototypes: [Raw; 7],
    pub(in crate::isolate) aggregate_error_prototype: Raw,
    /// The engine's own getter of `stack`, whose text has marks: see [`backtrace`].
    pub(in crate::isolate) error_stack: Raw,
    /// The engine's own functions for the text of a function: see [`function_text`].
    pub(in crate::isolate) function_text: function_text::Originals,
    pub(in crate::isolate) map: Raw,
    pub(in crate::isolate) map_set: Raw,
    pub(in crate::isolate) map_for_each: Raw,
    pub(in crate::isolate) map_size: Raw,
    pub(in crate::isolate) set: Raw,
    pub(in crate::isolate) set_add: Raw,
    pub(in crate::isolate) set_for_each: Raw,
    pub(in crate::isolate) set_size: Raw,
    pub(in crate::isolate) date_get_time: Raw,
    /// The engine's own constructor of dates: see [`dates`].
    pub(in crate::isolate) dates: dates::Originals,
    pub(in crate::isolate) promise: Raw,
    pub(in crate::isolate) promise_resolve: Raw,
    pub(in crate::isolate) regexp: Raw,
    pub(in crate::isolate) regexp_source: Raw,
    /// The getters of a RegExp's flags, each with its letter.
    pub(in crate::isolate) regexp_flags: [(char, Raw); 8],
    pub(in crate::isolate) bigint: Raw,
    pub(in crate::isolate) bigint_as_int_n: Raw,
    pub(in crate::isolate) bigint_to_string: Raw,
    pub(in crate::isolate) string_concat: Raw,
    pub(in crate::isolate) string_slice: Raw,
    /// Called for each entry of a Map or Set that is being read.
    pub(in crate::isolate) collector: Raw,
    pub(in crate::isolate) data_view: Raw,
    pub(in crate::isolate) data_view_buffer: Raw,
    pub(in crate::isolate) data_view_byte_offset: Raw,
    pub(in crate::isolate) data_view_byte_length: Raw,
    pub(in crate::isolate) typed_array_byte_length: Raw,
    pub(in crate::isolate) typed_array_length: Raw,
    /// The prototypes of [`intl`].
    pub(in crate::isolate) intl: intl::Intrinsics,
    /// The engine's own locale methods: see [`locale`].
    pub(in crate::isolate) locale_methods: [Raw; locale::METHOD_COUNT],
    /// `valueOf` of Number, String, Boolean and BigInt, each with the class of its boxed values.
    pub(in crate::isolate) value_of: [(u32, Raw); 4],
    /// The classes whose objects are plain if their prototype is: plain ones, `arguments` and module namespaces.
    pub(in crate::isolate) plain_classes: [u32; 4],
    pub(in crate::isolate) console: Raw,
    pub(in crate::isolate) report: Raw,
    pub(in crate::isolate) defaults: Defaults,
}

impl Intrinsics {
    /// Every value that is held.
    fn all(&self) -> Vec<Raw> {
        let mut all = vec![
            self.object_prototype,
            self.function_prototype,
            self.aggregate_error_prototype,
            self.error_stack,
            self.map,
            self.map_set,
            self.map_for_each,
            self.map_size,
            self.set,
            self.set_add,
            self.set_for_each,
            self.set_size,
            self.date_get_time,
            self.promise,
            self.promise_resolve,
            self.regexp,
            self.regexp_source,
            self.bigint,
            self.bigint_as_int_n,
            self.collector,
            self.bigint_to_string,
            self.string_concat,
            self.string_slice,
            self.data_view,
            self.data_view_buffer,
            self.data_view_byte_offset,
            self.data_view_byte_length,
            self.typed_array_byte_length,
            self.typed_array_length,
            self.console,
            self.report,
        ];
        all.extend(self.error_prototypes);
        all.extend(self.function_text.all());
        all.extend(self.dates.all());
        all.extend(self.intl.all());
        all.extend(self.locale_methods);
        all.extend(self.regexp_flags.map(|(_, getter)| getter));
        all.extend(self.value_of.map(|(_, function)| function));
        all.extend(self.defaults.all());
        all
    }
}

/// Two contexts of one runtime, ready for a run.
#[derive(Clone, Copy)]
pub(crate) struct Realm {
    /// The context in which code runs.
    pub(in crate::isolate) cx: Cx,
    /// The context in which text is compiled; nothing ever runs there.
    pub(in crate::isolate) compiler: Cx,
    /// The class of the functions that call the host.
    pub(in crate::isolate) host_function_class: u32,
    pub(in crate::isolate) intrinsics: Intrinsics,
    /// The extension, in an extended realm.
    pub(in crate::isolate) extension: Option<extension::Built>,
    /// The parts that sessions need; `None` if the engine is not known well enough for them.
    pub(in crate::isolate) session: Option<names::Parts>,
}

// SAFETY: one thread at a time enters a realm, the one that holds its isolate.
unsafe impl Send for Realm {}

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
            crate::isolate::loader::install(runtime);
            crate::isolate::rejections::install(runtime);
            let cx = Cx(cx);
            let intrinsics = furnish(cx, Cx(compiler), runtime).ok()?;
            let compiler = Cx(compiler);
            let mut realm = Self {
                cx,
                compiler,
                host_function_class,
                intrinsics,
                extension: None,
                session: names::Parts::build(cx, runtime),
            };
            if is_extended {
                realm.extension = Some(extension::build(&realm)?);
            }
            Some(realm)
        }
    }
}

impl crate::isolate::memory::instance::Realm for Realm {
    fn context(&self) -> *mut sys::JSContext {
        self.cx.0
    }

    fn second_context(&self) -> *mut sys::JSContext {
        self.session.map_or(ptr::null_mut(), |parts| parts.modules().0)
    }

    unsafe fn free(self, _runtime: *mut sys::JSRuntime) {
        // SAFETY: the realm is pristine, and nobody uses it any more.
        unsafe {
            if let Some(parts) = self.session {
                sys::JS_FreeContext(parts.modules().0);
            }
            let of_extension = self.extension.iter().flat_map(extension::Built::all);
            for value in self.intrinsics.all().into_iter().chain(of_extension) {
                sys::JS_FreeValue(self.cx.0, value);
            }
            sys::JS_FreeContext(self.compiler.0);
            sys::JS_FreeContext(self.cx.0);
        }
    }
}

impl Realm {
    /// Lets the functions of this crate find the run's state.
    pub(in crate::isolate) fn attach(&self, state: &State) {
        self.set_opaque(ptr::from_ref(state).cast_mut().cast());
    }

    /// After this the functions of this crate find no run.
    pub(in crate::isolate) fn detach(&self) {
        self.set_opaque(ptr::null_mut());
    }

    fn set_opaque(&self, state: *mut c_void) {
        self.cx.set_opaque(state);
        if let Some(parts) = self.session {
            parts.modules().set_opaque(state);
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
    function_text: function_text::Originals,
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
        collector: bridge::collector(cx)?.into_raw(),
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
            boxed(c"Boolean", super::bool(true))?,
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
