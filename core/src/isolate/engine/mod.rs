//! The engine's C interface, as far as this crate uses it.
//!
//! In: raw values and contexts of the engine. Out: [`Local`]s, which give their reference back when dropped, and
//! [`Thrown`] where an exception is pending. Only this folder depends on which calls take a reference and which do not:
//! `strings` has text and property keys, `properties` the properties of objects, `frames` the functions that run,
//! `jobs` the jobs that wait, `reactions` the promises that wait for promises, `lexical` the object of global
//! declarations, `second` makes a context with global declarations of its own, `exotic` makes classes of objects with
//! properties of ours, `portable` writes references as bytes, and `trial` tries the engine out in a context of its own.
//!
//! Every function here must be called on the thread that has entered the isolate, and every `Local` must be gone before
//! the isolate's memory is.

#![expect(unsafe_code, reason = "calls the engine's C functions")]

pub(super) mod exotic;
pub(super) mod frames;
pub(super) mod jobs;
pub(super) mod lexical;
mod portable;
mod properties;
pub(super) mod reactions;
pub(super) mod second;
mod strings;
pub(super) mod sys;
pub(super) mod trial;

use std::{
    ffi::{CStr, CString, c_int, c_void},
    ptr,
};

pub(super) use self::{
    properties::{Keys, Property},
    strings::{Atom, Seen, Text},
};
use super::memory::escape::has_left;

/// A value of the engine whose reference another owner holds.
pub(super) type Raw = sys::JSValue;

/// An exception is pending in the context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Thrown;

pub(super) type Outcome<T> = Result<T, Thrown>;

/// A context of the engine: the realm that values are made in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cx(pub(super) *mut sys::JSContext);

/// A value of the engine that holds one reference.
pub(super) struct Local {
    cx: Cx,
    raw: Raw,
}

impl Drop for Local {
    fn drop(&mut self) {
        if !has_left() {
            // SAFETY: this value owns one reference, and the isolate outlives its locals.
            unsafe { sys::JS_FreeValue(self.cx.0, self.raw) }
        }
    }
}

impl Clone for Local {
    fn clone(&self) -> Self {
        self.cx.dup(self.raw)
    }
}

impl Local {
    pub(super) fn raw(&self) -> Raw {
        self.raw
    }

    /// The same reference once more, uncounted: for an image of the tables that refer to an image of the heap.
    pub(super) fn image(&self) -> Self {
        Self { cx: self.cx, raw: self.raw }
    }

    /// Whether both are the same object.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        tag_of(self.raw) == tag_of(other.raw) && address_of(self.raw) == address_of(other.raw)
    }

    /// Gives the reference to the engine.
    pub(super) fn into_raw(self) -> Raw {
        let raw = self.raw;
        std::mem::forget(self);
        raw
    }
}

/// Values that become the elements of an array at once.
pub(super) struct Elements {
    cx: Cx,
    raws: Vec<Raw>,
}

impl Elements {
    pub(super) fn new(cx: Cx) -> Self {
        Self { cx, raws: Vec::new() }
    }

    pub(super) fn len(&self) -> usize {
        self.raws.len()
    }

    pub(super) fn push(&mut self, value: Local) {
        self.raws.push(value.into_raw());
    }

    /// A fresh array of the values, of which none is left here.
    pub(super) fn take_array(&mut self) -> Outcome<Local> {
        let count = c_int::try_from(self.raws.len()).map_err(|_| Thrown)?;
        // SAFETY: that many live values, whose references the call takes, also where it fails.
        let raw = unsafe { sys::JS_NewArrayFrom(self.cx.0, count, self.raws.as_ptr()) };
        self.raws.clear();
        self.cx.own(raw)
    }
}

impl Drop for Elements {
    fn drop(&mut self) {
        if !has_left() {
            for raw in self.raws.drain(..) {
                // SAFETY: one reference of each is held here.
                unsafe { sys::JS_FreeValue(self.cx.0, raw) }
            }
        }
    }
}

pub(super) fn undefined() -> Raw {
    sys::JS_UNDEFINED
}

pub(super) fn int(value: i32) -> Raw {
    sys::JS_MKVAL(sys::JS_TAG_INT, value)
}

pub(super) fn bool(value: bool) -> Raw {
    sys::JS_MKVAL(sys::JS_TAG_BOOL, i32::from(value))
}

pub(super) fn tag_of(value: Raw) -> c_int {
    // SAFETY: reads the tag of a plain value.
    unsafe { sys::JS_VALUE_GET_NORM_TAG(value) }
}

pub(super) fn int_of(value: Raw) -> i32 {
    // SAFETY: reads the payload of a plain value.
    unsafe { sys::JS_VALUE_GET_INT(value) }
}

pub(super) fn double_of(value: Raw) -> f64 {
    // SAFETY: reads the payload of a plain value.
    unsafe { sys::JS_VALUE_GET_FLOAT64(value) }
}

pub(super) fn address_of(value: Raw) -> usize {
    // SAFETY: reads the payload of a plain value.
    unsafe { sys::JS_VALUE_GET_PTR(value) as usize }
}

pub(super) fn is_object(value: Raw) -> bool {
    tag_of(value) == sys::JS_TAG_OBJECT
}

pub(super) fn is_string(value: Raw) -> bool {
    matches!(tag_of(value), sys::JS_TAG_STRING | sys::JS_TAG_STRING_ROPE)
}

pub(super) fn class_of(value: Raw) -> u32 {
    // SAFETY: any value may be asked.
    unsafe { sys::JS_GetClassID(value) }
}

/// Queries of a value that run no code of the sandbox.
macro_rules! questions {
    ($($name:ident => $function:ident),* $(,)?) => {$(
        pub(super) fn $name(value: Raw) -> bool {
            // SAFETY: any value may be asked.
            unsafe { sys::$function(value) }
        }
    )*};
}

questions! {
    is_array => JS_IsArray,
    is_array_buffer => JS_IsArrayBuffer,
    is_data_view => JS_IsDataView,
    is_date => JS_IsDate,
    is_error => JS_IsError,
    is_map => JS_IsMap,
    is_promise => JS_IsPromise,
    is_proxy => JS_IsProxy,
    is_regexp => JS_IsRegExp,
    is_set => JS_IsSet,
}

/// The kind of a typed array as the engine numbers it, if it is one.
pub(super) fn typed_array_type(value: Raw) -> Option<u32> {
    // SAFETY: any value may be asked.
    u32::try_from(unsafe { sys::JS_GetTypedArrayType(value) }).ok()
}

impl Cx {
    /// Takes over a reference that the engine gave.
    pub(super) fn own(self, raw: Raw) -> Outcome<Local> {
        if tag_of(raw) == sys::JS_TAG_EXCEPTION { Err(Thrown) } else { Ok(Local { cx: self, raw }) }
    }

    /// Another reference to a value.
    pub(super) fn dup(self, raw: Raw) -> Local {
        // SAFETY: the caller holds a reference for as long as this call lasts.
        Local { cx: self, raw: unsafe { sys::JS_DupValue(self.0, raw) } }
    }

    pub(super) fn is_function(self, value: Raw) -> bool {
        // SAFETY: any value may be asked.
        unsafe { sys::JS_IsFunction(self.0, value) }
    }

    pub(super) fn number(self, value: f64) -> Local {
        Local { cx: self, raw: sys::JS_NewFloat64(value) }
    }

    pub(super) fn object(self) -> Outcome<Local> {
        // SAFETY: makes a fresh object.
        self.own(unsafe { sys::JS_NewObject(self.0) })
    }

    pub(super) fn array(self) -> Outcome<Local> {
        // SAFETY: makes a fresh array.
        self.own(unsafe { sys::JS_NewArray(self.0) })
    }

    /// A value as a number, which may run sandbox code.
    pub(super) fn to_number(self, value: Raw) -> Outcome<f64> {
        let mut number = 0.0;
        // SAFETY: a live value and a place for the number.
        done(unsafe { sys::JS_ToFloat64(self.0, &raw mut number, value) })?;
        Ok(number)
    }

    /// Whether a value counts as true; runs no code.
    pub(super) fn truthy(self, value: Raw) -> Outcome<bool> {
        // SAFETY: a live value.
        done(unsafe { sys::JS_ToBool(self.0, value) })
    }

    pub(super) fn set_length(self, array: Raw, length: u32) -> Outcome<()> {
        // SAFETY: a live array.
        done(unsafe { sys::JS_SetLength(self.0, array, i64::from(length)) }).map(drop)
    }

    pub(super) fn length(self, array: Raw) -> Outcome<i64> {
        let mut length = 0;
        // SAFETY: a live array and a place for its length.
        done(unsafe { sys::JS_GetLength(self.0, array, &raw mut length) })?;
        Ok(length)
    }

    /// An object of a class of ours.
    pub(super) fn object_of(self, class: u32, prototype: Raw) -> Outcome<Local> {
        // SAFETY: a live prototype, or null, and a registered class.
        self.own(unsafe { sys::JS_NewObjectProtoClass(self.0, prototype, class) })
    }

    pub(super) fn date(self, epoch_ms: f64) -> Outcome<Local> {
        // SAFETY: makes a fresh object.
        self.own(unsafe { sys::JS_NewDate(self.0, epoch_ms) })
    }

    pub(super) fn global(self) -> Outcome<Local> {
        // SAFETY: a live context.
        self.own(unsafe { sys::JS_GetGlobalObject(self.0) })
    }

    pub(super) fn call(self, function: Raw, this: Raw, args: &[Raw]) -> Outcome<Local> {
        let count = c_int::try_from(args.len()).map_err(|_| Thrown)?;
        // SAFETY: live values; the engine reads the arguments and keeps references of its own.
        self.own(unsafe { sys::JS_Call(self.0, function, this, count, args.as_ptr().cast_mut()) })
    }

    pub(super) fn construct(self, constructor: Raw, args: &[Raw]) -> Outcome<Local> {
        let count = c_int::try_from(args.len()).map_err(|_| Thrown)?;
        // SAFETY: as for `call`.
        self.own(unsafe {
            sys::JS_CallConstructor(self.0, constructor, count, args.as_ptr().cast_mut())
        })
    }

    /// An object of a constructor that inherits from the prototype of another one.
    pub(super) fn construct_for(
        self,
        constructor: Raw,
        new_target: Raw,
        args: &[Raw],
    ) -> Outcome<Local> {
        let count = c_int::try_from(args.len()).map_err(|_| Thrown)?;
        let args = args.as_ptr().cast_mut();
        // SAFETY: as for `call`.
        self.own(unsafe { sys::JS_CallConstructor2(self.0, constructor, new_target, count, args) })
    }

    /// A promise with its resolve and reject functions, made by the engine itself.
    pub(super) fn promise(self) -> Outcome<(Local, [Local; 2])> {
        let mut functions = [undefined(); 2];
        // SAFETY: a place for two values.
        let raw = unsafe { sys::JS_NewPromiseCapability(self.0, functions.as_mut_ptr()) };
        let promise = self.own(raw)?;
        Ok((promise, functions.map(|raw| Local { cx: self, raw })))
    }

    /// The value that a promise was fulfilled with, if it was.
    pub(super) fn fulfilled(self, promise: Raw) -> Option<Local> {
        // SAFETY: a live value; one that is no promise has another state.
        unsafe {
            (sys::JS_PromiseState(self.0, promise) == sys::JSPromiseStateEnum_JS_PROMISE_FULFILLED)
                .then(|| Local { cx: self, raw: sys::JS_PromiseResult(self.0, promise) })
        }
    }

    /// Whether a promise is neither fulfilled nor rejected.
    pub(super) fn is_pending(self, promise: Raw) -> bool {
        // SAFETY: a live value.
        let state = unsafe { sys::JS_PromiseState(self.0, promise) };
        state == sys::JSPromiseStateEnum_JS_PROMISE_PENDING
    }

    /// Attaches reactions without reading anything that the sandbox could have changed.
    pub(super) fn then(self, promise: Raw, fulfilled: Raw, rejected: Raw) -> Outcome<()> {
        // SAFETY: live values.
        self.own(unsafe { sys::JS_PromiseThen(self.0, promise, fulfilled, rejected) }).map(drop)
    }

    pub(super) fn buffer(self, bytes: &[u8]) -> Outcome<Local> {
        // SAFETY: pointer and length of a live slice, which the engine copies.
        self.own(unsafe { sys::JS_NewArrayBufferCopy(self.0, bytes.as_ptr(), bytes.len() as _) })
    }

    /// The bytes of an ArrayBuffer, which the caller must copy; throws where it is detached.
    pub(super) fn buffer_bytes(self, buffer: Raw) -> Outcome<&'static [u8]> {
        let mut length = 0;
        // SAFETY: a live value and a place for the length.
        let bytes = unsafe { sys::JS_GetArrayBuffer(self.0, &raw mut length, buffer) };
        if length == 0 && !self.has_exception() {
            return Ok(&[]);
        }
        if bytes.is_null() {
            return Err(Thrown);
        }
        // SAFETY: the buffer's bytes; the callers copy them before the engine runs again.
        Ok(unsafe { std::slice::from_raw_parts(bytes, size(length)) })
    }

    pub(super) fn typed_array(self, args: &[Raw; 3], kind: u32) -> Outcome<Local> {
        // SAFETY: three live values.
        self.own(unsafe { sys::JS_NewTypedArray(self.0, 3, args.as_ptr().cast_mut(), kind) })
    }

    /// The buffer of a typed array and the offset into it; throws where it is out of bounds.
    pub(super) fn typed_array_buffer(self, view: Raw) -> Outcome<(Local, usize)> {
        let (mut offset, none) = (0, ptr::null_mut());
        // SAFETY: a live typed array and a place for the offset; the others may be null.
        let raw = unsafe { sys::JS_GetTypedArrayBuffer(self.0, view, &raw mut offset, none, none) };
        Ok((self.own(raw)?, usize::try_from(offset).map_err(|_| Thrown)?))
    }

    pub(super) fn throw(self, value: Local) -> Thrown {
        // SAFETY: the call takes the reference.
        unsafe { sys::JS_Throw(self.0, value.into_raw()) };
        Thrown
    }

    /// Takes the pending exception.
    pub(super) fn exception(self) -> Local {
        // SAFETY: a live context; without an exception this is `undefined`-like and harmless.
        Local { cx: self, raw: unsafe { sys::JS_GetException(self.0) } }
    }

    pub(super) fn has_exception(self) -> bool {
        // SAFETY: a live context.
        unsafe { sys::JS_HasException(self.0) }
    }

    /// Compiles a text to bytecode; zero bytes in it are characters as any other. The context must have a
    /// compiler.
    pub(super) fn compile(self, text: &str, name: &CStr, flags: u32) -> Outcome<Vec<u8>> {
        self.compile_as(text, name, flags, 0)
    }

    /// The same, without the text of functions and without places.
    pub(super) fn compile_stripped(self, text: &str, name: &CStr, flags: u32) -> Outcome<Vec<u8>> {
        self.compile_as(text, name, flags, sys::JS_WRITE_OBJ_STRIP_DEBUG)
    }

    fn compile_as(self, text: &str, name: &CStr, flags: u32, written: u32) -> Outcome<Vec<u8>> {
        let flags = (flags | sys::JS_EVAL_FLAG_COMPILE_ONLY).cast_signed();
        let ended = [text.as_bytes(), b"\0"].concat();
        // SAFETY: the text ends with a zero byte, as the engine asks for, and its length is that without it.
        let compiled = self.own(unsafe {
            sys::JS_Eval(self.0, ended.as_ptr().cast(), text.len() as _, name.as_ptr(), flags)
        })?;
        drop(ended);
        let mut length = 0;
        let write = (sys::JS_WRITE_OBJ_BYTECODE | written).cast_signed();
        // SAFETY: compiled code and a place for the length.
        let bytes = unsafe { sys::JS_WriteObject(self.0, &raw mut length, compiled.raw, write) };
        if bytes.is_null() {
            return Err(Thrown);
        }
        // SAFETY: that many bytes, freed right after.
        let bytecode = unsafe { std::slice::from_raw_parts(bytes, size(length)) }.to_vec();
        // SAFETY: the engine's own memory, freed once.
        unsafe { sys::js_free(self.0, bytes.cast()) };
        Ok(bytecode)
    }

    /// Loads bytecode that this process wrote itself.
    pub(super) fn load(self, bytecode: &[u8]) -> Outcome<Local> {
        let flags = sys::JS_READ_OBJ_BYTECODE.cast_signed();
        // SAFETY: pointer and length of a live slice, written by `compile`.
        self.own(unsafe {
            sys::JS_ReadObject(self.0, bytecode.as_ptr(), bytecode.len() as _, flags)
        })
    }

    /// Runs loaded code; a module gives the promise of its evaluation.
    pub(super) fn evaluate(self, code: Local) -> Outcome<Local> {
        // SAFETY: the call takes the reference.
        self.own(unsafe { sys::JS_EvalFunction(self.0, code.into_raw()) })
    }

    /// Loads everything that a module imports, without running anything.
    pub(super) fn resolve(self, module: Raw) -> Outcome<()> {
        // SAFETY: a loaded module.
        done(unsafe { sys::JS_ResolveModule(self.0, module) }).map(drop)
    }

    /// A function of the host or of ours, by C pointer and two small numbers.
    pub(super) fn c_function(
        self,
        function: sys::CFunctionMagic,
        name: &CStr,
        length: c_int,
        magic: c_int,
    ) -> Outcome<Local> {
        // SAFETY: the engine calls the pointer back with the signature that `magic` asks for.
        unsafe {
            let kind = sys::JSCFunctionEnum_JS_CFUNC_generic_magic;
            self.own(sys::JS_NewCFunction2(self.0, function, name.as_ptr(), length, kind, magic))
        }
    }

    /// A function of ours that is a constructor too. It gets the new target in place of `this`, `undefined` in a call.
    pub(super) fn c_constructor(
        self,
        function: sys::CFunctionMagic,
        name: &CStr,
        length: c_int,
        magic: c_int,
    ) -> Outcome<Local> {
        let kind = sys::JSCFunctionEnum_JS_CFUNC_constructor_or_func_magic;
        // SAFETY: the engine calls the pointer back with the signature that `magic` asks for.
        self.own(unsafe {
            sys::JS_NewCFunction2(self.0, function, name.as_ptr(), length, kind, magic)
        })
    }

    /// Makes a constructor and a prototype refer to each other.
    pub(super) fn set_constructor(self, constructor: Raw, prototype: Raw) -> Outcome<()> {
        // SAFETY: live objects.
        done(unsafe { sys::JS_SetConstructor(self.0, constructor, prototype) }).map(drop)
    }

    /// A nameless function that carries a number.
    pub(super) fn numbered_function(
        self,
        function: sys::CFunctionData,
        magic: c_int,
        number: u32,
    ) -> Outcome<Local> {
        let mut data = [int(number.cast_signed())];
        // SAFETY: the engine copies the data.
        self.own(unsafe {
            sys::JS_NewCFunctionData(self.0, function, 0, magic, 1, data.as_mut_ptr())
        })
    }

    /// A nameless function that carries a value.
    pub(super) fn bound_function(
        self,
        function: sys::CFunctionData,
        length: c_int,
        magic: c_int,
        value: Raw,
    ) -> Outcome<Local> {
        let mut data = [value];
        // SAFETY: the engine copies the data, with a reference of its own.
        self.own(unsafe {
            sys::JS_NewCFunctionData(self.0, function, length, magic, 1, data.as_mut_ptr())
        })
    }

    /// The engine's name of a class.
    pub(super) fn class_name(self, class: u32) -> Option<String> {
        // SAFETY: a live runtime; an unknown class has no name.
        let atom = unsafe { sys::JS_GetClassName(sys::JS_GetRuntime(self.0), class) };
        if atom == sys::JS_ATOM_NULL {
            return None;
        }
        let atom = Atom { cx: self, id: atom };
        self.atom_text(atom.id).ok().map(Text::into_lossy)
    }

    pub(super) fn opaque(self) -> *mut c_void {
        // SAFETY: a live context.
        unsafe { sys::JS_GetContextOpaque(self.0) }
    }

    pub(super) fn set_opaque(self, opaque: *mut c_void) {
        // SAFETY: a live context; the pointer is only ever read back by `opaque`.
        unsafe { sys::JS_SetContextOpaque(self.0, opaque) }
    }
}

/// Registers a class of functions that are no constructors: a call of its objects is a call of `function`.
pub(super) fn callable_class(
    runtime: *mut sys::JSRuntime,
    function: sys::ClassCall,
) -> Option<u32> {
    let mut class = 0;
    // SAFETY: the same function; the engine may be unwound through.
    let call = unsafe { std::mem::transmute::<sys::ClassCall, sys::JSClassCall>(function) };
    let definition = sys::JSClassDef {
        class_name: c"Function".as_ptr(),
        finalizer: None,
        gc_mark: None,
        call,
        exotic: ptr::null_mut(),
    };
    // SAFETY: a live runtime; the engine copies the parts of the definition that it needs.
    unsafe {
        sys::JS_NewClassID(runtime, &raw mut class);
        (sys::JS_NewClass(runtime, class, &raw const definition) == 0).then_some(class)
    }
}

fn done(code: c_int) -> Outcome<bool> {
    if code < 0 { Err(Thrown) } else { Ok(code != 0) }
}

/// The engine's sizes are C's.
fn size(size: sys::size_t) -> usize {
    usize::try_from(size).unwrap_or(usize::MAX)
}

/// A C string of that text, cut at a zero byte if there is one.
pub(super) fn c_string(text: &str) -> CString {
    let end = text.find('\0').unwrap_or(text.len());
    CString::new(&text[..end]).unwrap_or_default()
}
