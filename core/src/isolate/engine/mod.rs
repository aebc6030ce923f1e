//! The engine's C interface, as far as this crate uses it.
//!
//! In: raw values and contexts of the engine. Out: [`Local`]s, which give their reference back when dropped, and
//! [`Thrown`] where an exception is pending. This is the one place that knows which calls take a reference and which do
//! not; the files beside it contain no reference counting.
//!
//! Every function here must be called on the thread that has entered the isolate, and every `Local` must be gone before
//! the isolate's memory is.

#![expect(unsafe_code, reason = "calls the engine's C functions")]

pub(super) mod realm;
pub(super) mod sys;

use std::{
    ffi::{CStr, CString, c_int, c_void},
    ptr,
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

    /// Gives the reference to the engine.
    pub(super) fn into_raw(self) -> Raw {
        let raw = self.raw;
        std::mem::forget(self);
        raw
    }
}

/// A property key of the engine that holds one reference.
#[derive(Debug)]
pub(super) struct Atom {
    cx: Cx,
    pub(super) id: sys::JSAtom,
}

impl Drop for Atom {
    fn drop(&mut self) {
        if !has_left() {
            // SAFETY: this atom owns one reference.
            unsafe { sys::JS_FreeAtom(self.cx.0, self.id) }
        }
    }
}

/// The content of an own property.
pub(super) enum Property {
    Data(Local),
    /// With its getter, which may be `undefined`.
    Accessor(Local),
}

/// The result of a search for a property.
enum Found {
    Property(Property),
    /// No object of the chain has it.
    Nothing,
    /// There is a Proxy among the prototypes, or there are too many.
    Unknown,
}

/// The own enumerable string keys of an object, in order.
#[derive(Debug)]
pub(super) struct Keys {
    cx: Cx,
    table: *mut sys::JSPropertyEnum,
    count: u32,
}

impl Drop for Keys {
    fn drop(&mut self) {
        if !has_left() {
            // SAFETY: the engine made this table with that count.
            unsafe { sys::JS_FreePropertyEnum(self.cx.0, self.table, self.count) }
        }
    }
}

impl Keys {
    pub(super) fn len(&self) -> usize {
        self.count as usize
    }

    pub(super) fn atom(&self, index: usize) -> Option<sys::JSAtom> {
        if index >= self.len() {
            return None;
        }
        // SAFETY: within the table that the engine made.
        Some(unsafe { (*self.table.add(index)).atom })
    }
}

/// Text of the engine, in the form in which the engine offers it.
#[derive(Debug)]
pub(super) enum Text {
    Utf8(String),
    Utf16(Vec<u16>),
}

impl Text {
    pub(super) fn into_lossy(self) -> String {
        match self {
            Self::Utf8(text) => text,
            Self::Utf16(units) => String::from_utf16_lossy(&units),
        }
    }
}

/// Text of the engine, borrowed from it.
#[derive(Clone, Copy, Debug)]
pub(super) enum Seen<'t> {
    Utf8(&'t str),
    /// With a lone surrogate.
    Utf16(&'t [u16]),
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

    pub(super) fn string(self, text: &str) -> Outcome<Local> {
        self.string_of_bytes(text.as_bytes())
    }

    /// A string of bytes that the engine reads as UTF-8.
    pub(super) fn string_of_bytes(self, text: &[u8]) -> Outcome<Local> {
        // SAFETY: pointer and length of a live slice.
        self.own(unsafe { sys::JS_NewStringLen(self.0, text.as_ptr().cast(), text.len() as _) })
    }

    pub(super) fn string16(self, units: &[u16]) -> Outcome<Local> {
        // SAFETY: pointer and length of a live slice.
        self.own(unsafe { sys::JS_NewStringUTF16(self.0, units.as_ptr(), units.len() as _) })
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

    pub(super) fn date(self, epoch_ms: f64) -> Outcome<Local> {
        // SAFETY: makes a fresh object.
        self.own(unsafe { sys::JS_NewDate(self.0, epoch_ms) })
    }

    pub(super) fn global(self) -> Outcome<Local> {
        // SAFETY: a live context.
        self.own(unsafe { sys::JS_GetGlobalObject(self.0) })
    }

    pub(super) fn atom(self, text: &str) -> Outcome<Atom> {
        // SAFETY: pointer and length of a live string.
        let id = unsafe { sys::JS_NewAtomLen(self.0, text.as_ptr().cast(), text.len() as _) };
        if id == sys::JS_ATOM_NULL { Err(Thrown) } else { Ok(Atom { cx: self, id }) }
    }

    /// The property key that a string value is.
    pub(super) fn atom_of(self, value: Raw) -> Outcome<Atom> {
        // SAFETY: a live value.
        let id = unsafe { sys::JS_ValueToAtom(self.0, value) };
        if id == sys::JS_ATOM_NULL { Err(Thrown) } else { Ok(Atom { cx: self, id }) }
    }

    /// The property key that an array index is.
    pub(super) fn index_atom(self, index: u32) -> Outcome<Atom> {
        // SAFETY: a live context.
        let id = unsafe { sys::JS_NewAtomUInt32(self.0, index) };
        if id == sys::JS_ATOM_NULL { Err(Thrown) } else { Ok(Atom { cx: self, id }) }
    }

    pub(super) fn dup_atom(self, atom: sys::JSAtom) -> Atom {
        // SAFETY: a live atom.
        Atom { cx: self, id: unsafe { sys::JS_DupAtom(self.0, atom) } }
    }

    /// The array index that a property key is. The engine keeps indices below 2^31 in the key itself.
    pub(super) fn array_index(self, atom: sys::JSAtom) -> Option<u32> {
        const TAGGED: u32 = 1 << 31;
        const LONGEST: usize = "4294967294".len();
        if atom & TAGGED != 0 {
            return Some(atom & !TAGGED);
        }
        let text = self.atom_string(atom).ok()?;
        let index = self.with_bytes(text.raw, |text| {
            let text = str::from_utf8(text).ok().filter(|text| text.len() <= LONGEST)?;
            let index: u32 = text.parse().ok()?;
            ((TAGGED..u32::MAX).contains(&index) && index.to_string() == text).then_some(index)
        });
        index.ok().flatten()
    }

    /// The text of a property key, which the engine does not copy.
    pub(super) fn atom_string(self, atom: sys::JSAtom) -> Outcome<Local> {
        // SAFETY: a live atom.
        self.own(unsafe { sys::JS_AtomToString(self.0, atom) })
    }

    /// A copy of the text of a key. For short ones: nothing is charged for it.
    pub(super) fn atom_text(self, atom: sys::JSAtom) -> Outcome<Text> {
        self.text(self.atom_string(atom)?.raw)
    }

    /// A value as a string, which may run sandbox code.
    pub(super) fn to_string(self, value: Raw) -> Outcome<Local> {
        // SAFETY: a live value.
        self.own(unsafe { sys::JS_ToString(self.0, value) })
    }

    /// A copy of the text of a string value; anything else is converted, which may run sandbox code. For
    /// short ones: nothing is charged for it.
    pub(super) fn text(self, value: Raw) -> Outcome<Text> {
        self.with_text(value, |text| match text {
            Seen::Utf8(text) => Text::Utf8(text.to_owned()),
            Seen::Utf16(units) => Text::Utf16(units.to_vec()),
        })
    }

    /// Looks at a string, which stays in the engine.
    #[inline]
    pub(super) fn with_text<T>(self, value: Raw, look: impl FnOnce(Seen<'_>) -> T) -> Outcome<T> {
        let mut look = Some(look);
        let seen = self.with_bytes(value, |text| {
            let text = str::from_utf8(text).ok()?;
            look.take().map(|look| look(Seen::Utf8(text)))
        })?;
        match (seen, look) {
            (Some(seen), _) => Ok(seen),
            (None, Some(look)) => self.with_units(value, |units| look(Seen::Utf16(units))),
            (None, None) => Err(Thrown),
        }
    }

    /// Looks at a string's UTF-8; where it has lone surrogates, at bytes that are not UTF-8.
    #[inline]
    pub(super) fn with_bytes<T>(self, value: Raw, look: impl FnOnce(&[u8]) -> T) -> Outcome<T> {
        let mut length = 0;
        // SAFETY: a live value and a place for the length.
        let bytes = unsafe { sys::JS_ToCStringLen2(self.0, &raw mut length, value, false) };
        if bytes.is_null() {
            return Err(Thrown);
        }
        // SAFETY: the engine keeps that many bytes until they are freed below.
        let slice = unsafe { std::slice::from_raw_parts(bytes.cast::<u8>(), size(length)) };
        let seen = look(slice);
        // SAFETY: given by the call above, freed once.
        unsafe { sys::JS_FreeCString(self.0, bytes) };
        Ok(seen)
    }

    fn with_units<T>(self, value: Raw, look: impl FnOnce(&[u16]) -> T) -> Outcome<T> {
        let mut length = 0;
        // SAFETY: a live value and a place for the length.
        let units = unsafe { sys::JS_ToCStringLenUTF16(self.0, &raw mut length, value) };
        if units.is_null() {
            return Err(Thrown);
        }
        // SAFETY: the engine keeps that many units until they are freed below.
        let seen = look(unsafe { std::slice::from_raw_parts(units, size(length)) });
        // SAFETY: given by the call above, freed once.
        unsafe { sys::JS_FreeCStringUTF16(self.0, units) };
        Ok(seen)
    }

    pub(super) fn get(self, object: Raw, key: sys::JSAtom) -> Outcome<Local> {
        // SAFETY: live value and atom.
        self.own(unsafe { sys::JS_GetProperty(self.0, object, key) })
    }

    pub(super) fn get_str(self, object: Raw, key: &CStr) -> Outcome<Local> {
        // SAFETY: live value and text.
        self.own(unsafe { sys::JS_GetPropertyStr(self.0, object, key.as_ptr()) })
    }

    pub(super) fn get_index(self, object: Raw, index: u32) -> Outcome<Local> {
        // SAFETY: a live value.
        self.own(unsafe { sys::JS_GetPropertyUint32(self.0, object, index) })
    }

    /// An own property that is plain data; runs no getter and looks at no prototype.
    pub(super) fn own_data(self, object: Raw, key: &CStr) -> Option<Local> {
        let key = self.atom(key.to_str().ok()?).ok()?;
        match self.own_property(object, key.id) {
            Ok(Some(Property::Data(value))) => Some(value),
            Ok(_) => None,
            Err(Thrown) => {
                drop(self.exception());
                None
            }
        }
    }

    /// A property that is plain data, of an object or of one of its prototypes; runs no code.
    pub(super) fn data(self, object: Raw, key: &CStr) -> Option<Local> {
        match self.lookup(object, key, &[]) {
            Ok(Some(Property::Data(value))) => Some(value),
            Ok(_) => None,
            Err(Thrown) => {
                drop(self.exception());
                None
            }
        }
    }

    /// A property of an object or of one of its prototypes, `undefined` without one. Runs a getter. A Proxy among the
    /// prototypes ends the search, and none of its traps runs.
    pub(super) fn inherited(self, object: Raw, key: &CStr) -> Outcome<Local> {
        self.inherited_below(object, key, &[])
    }

    /// The same, but the search ends before these prototypes.
    pub(super) fn inherited_below(self, object: Raw, key: &CStr, ends: &[Raw]) -> Outcome<Local> {
        match self.lookup(object, key, ends)? {
            Some(Property::Data(value)) => Ok(value),
            Some(Property::Accessor(getter)) => self.run_getter(&getter, object),
            None => Ok(self.dup(undefined())),
        }
    }

    /// The first place of a property in the chain; runs no code.
    fn lookup(self, object: Raw, key: &CStr, ends: &[Raw]) -> Outcome<Option<Property>> {
        Ok(match self.search(object, key, ends)? {
            Found::Property(property) => Some(property),
            Found::Nothing | Found::Unknown => None,
        })
    }

    fn search(self, object: Raw, key: &CStr, ends: &[Raw]) -> Outcome<Found> {
        const LONGEST_CHAIN: usize = 1_000;
        let key = self.atom(key.to_str().map_err(|_| Thrown)?)?;
        let mut at = self.dup(object);
        for _ in 0..LONGEST_CHAIN {
            let ended = ends.iter().any(|end| address_of(*end) == address_of(at.raw));
            if !is_object(at.raw) || ended {
                return Ok(Found::Nothing);
            }
            if is_proxy(at.raw) {
                break;
            }
            match self.own_property(at.raw, key.id)? {
                None => at = self.prototype(at.raw)?,
                Some(property) => return Ok(Found::Property(property)),
            }
        }
        Ok(Found::Unknown)
    }

    /// The result of a getter on an object; `undefined` where there is only a setter.
    pub(super) fn run_getter(self, getter: &Local, object: Raw) -> Outcome<Local> {
        if tag_of(getter.raw) == sys::JS_TAG_UNDEFINED {
            return Ok(self.dup(undefined()));
        }
        self.call(getter.raw, object, &[])
    }

    /// An own property of an object that is no proxy; runs no code. Throws for a binding of a
    /// module that has no value yet.
    pub(super) fn own_property(self, object: Raw, key: sys::JSAtom) -> Outcome<Option<Property>> {
        let mut found = sys::JSPropertyDescriptor {
            flags: 0,
            value: undefined(),
            getter: undefined(),
            setter: undefined(),
        };
        // SAFETY: live value and atom, and a place for the descriptor.
        let code = unsafe { sys::JS_GetOwnProperty(self.0, &raw mut found, object, key) };
        if !done(code)? {
            return Ok(None);
        }
        let local = |raw| Local { cx: self, raw };
        if found.flags & sys::JS_PROP_GETSET.cast_signed() == 0 {
            // The other two fields are `undefined`, and hold nothing.
            return Ok(Some(Property::Data(local(found.value))));
        }
        drop(local(found.setter));
        Ok(Some(Property::Accessor(local(found.getter))))
    }

    /// The getter of an own accessor property.
    pub(super) fn own_getter(self, object: Raw, key: &CStr) -> Outcome<Local> {
        let key = self.atom(key.to_str().map_err(|_| Thrown)?)?;
        let mut found = sys::JSPropertyDescriptor {
            flags: 0,
            value: undefined(),
            getter: undefined(),
            setter: undefined(),
        };
        // SAFETY: live value and atom, and a place for the descriptor.
        let code = unsafe { sys::JS_GetOwnProperty(self.0, &raw mut found, object, key.id) };
        if code <= 0 {
            return Err(Thrown);
        }
        drop([found.value, found.setter].map(|raw| Local { cx: self, raw }));
        Ok(Local { cx: self, raw: found.getter })
    }

    /// Replaces the getter of an own accessor by one of ours, and keeps its setter.
    pub(super) fn set_getter(self, object: Raw, key: &CStr, getter: &Local) -> Outcome<()> {
        let key = self.atom(key.to_str().map_err(|_| Thrown)?)?;
        let flags = (sys::JS_PROP_HAS_GET
            | sys::JS_PROP_HAS_CONFIGURABLE
            | sys::JS_PROP_HAS_ENUMERABLE
            | sys::JS_PROP_CONFIGURABLE)
            .cast_signed();
        // SAFETY: live values and a live atom.
        let code = unsafe {
            sys::JS_DefineProperty(
                self.0,
                object,
                key.id,
                undefined(),
                getter.raw,
                undefined(),
                flags,
            )
        };
        done(code).map(drop)
    }

    pub(super) fn has(self, object: Raw, key: sys::JSAtom) -> Outcome<bool> {
        // SAFETY: live value and atom.
        done(unsafe { sys::JS_HasProperty(self.0, object, key) })
    }

    /// Defines an own property, whatever the prototype chain has. Takes the value.
    pub(super) fn define(
        self,
        object: Raw,
        key: sys::JSAtom,
        value: Local,
        flags: u32,
    ) -> Outcome<()> {
        #[expect(clippy::cast_possible_wrap, reason = "flags are small")]
        // SAFETY: live value and atom; the call takes the reference of `value`.
        let code = unsafe {
            sys::JS_DefinePropertyValue(self.0, object, key, value.into_raw(), flags as c_int)
        };
        done(code).map(drop)
    }

    pub(super) fn define_str(
        self,
        object: Raw,
        key: &str,
        value: Local,
        flags: u32,
    ) -> Outcome<()> {
        let key = self.atom(key)?;
        self.define(object, key.id, value, flags)
    }

    pub(super) fn define_index(self, object: Raw, index: u32, value: Local) -> Outcome<()> {
        // SAFETY: a live value; the call takes the reference of `value`.
        let code = unsafe {
            sys::JS_DefinePropertyValueUint32(
                self.0,
                object,
                index,
                value.into_raw(),
                sys::JS_PROP_C_W_E.cast_signed(),
            )
        };
        done(code).map(drop)
    }

    pub(super) fn delete(self, object: Raw, key: &str) -> Outcome<()> {
        let key = self.atom(key)?;
        // SAFETY: live value and atom.
        done(unsafe { sys::JS_DeleteProperty(self.0, object, key.id, 0) }).map(drop)
    }

    pub(super) fn set_prototype(self, object: Raw, prototype: Raw) -> Outcome<()> {
        // SAFETY: live values.
        done(unsafe { sys::JS_SetPrototype(self.0, object, prototype) }).map(drop)
    }

    /// The own enumerable string keys. The object must not be a proxy.
    pub(super) fn keys(self, object: Raw) -> Outcome<Keys> {
        let mut table = ptr::null_mut();
        let mut count = 0;
        let flags = (sys::JS_GPN_STRING_MASK | sys::JS_GPN_ENUM_ONLY).cast_signed();
        // SAFETY: a live object and places for the table and its count.
        let code = unsafe {
            sys::JS_GetOwnPropertyNames(self.0, &raw mut table, &raw mut count, object, flags)
        };
        done(code)?;
        Ok(Keys { cx: self, table, count })
    }

    /// The prototype of an object that is no proxy; `null` comes out as `null`.
    pub(super) fn prototype(self, object: Raw) -> Outcome<Local> {
        // SAFETY: a live value.
        self.own(unsafe { sys::JS_GetPrototype(self.0, object) })
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

    /// Whether awaiting a value is known to give that value: it has no `then` that could be called, and this check runs
    /// no code.
    pub(super) fn is_its_own_outcome(self, value: Raw) -> Outcome<bool> {
        if !is_object(value) {
            return Ok(true);
        }
        Ok(match self.search(value, c"then", &[])? {
            Found::Property(Property::Data(then)) => !self.is_function(then.raw),
            Found::Property(Property::Accessor(_)) | Found::Unknown => false,
            Found::Nothing => true,
        })
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
        let flags = (flags | sys::JS_EVAL_FLAG_COMPILE_ONLY).cast_signed();
        let ended = [text.as_bytes(), b"\0"].concat();
        // SAFETY: the text ends with a zero byte, as the engine asks for, and its length is that without it.
        let compiled = self.own(unsafe {
            sys::JS_Eval(self.0, ended.as_ptr().cast(), text.len() as _, name.as_ptr(), flags)
        })?;
        drop(ended);
        let mut length = 0;
        let write = sys::JS_WRITE_OBJ_BYTECODE.cast_signed();
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

    /// Runs loaded code; a module comes back as the promise of its evaluation.
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

    /// The name under which the engine knows a class.
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
