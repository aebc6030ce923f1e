//! Properties of the engine's objects.
//!
//! In: an object and a key. Out: the value, the getter or the keys; or the object, changed. A comment says where a call
//! may run code of the sandbox.

#![expect(unsafe_code, reason = "calls the engine's C functions")]

use std::{
    ffi::{CStr, c_int},
    ptr,
};

use super::{
    Cx, Local, Outcome, Raw, Thrown, address_of, done, is_object, is_proxy, sys, tag_of, undefined,
};
use crate::isolate::memory::escape::has_left;

/// The content of an own property.
pub(in crate::isolate) enum Property {
    Data(Local),
    /// With its getter, which may be `undefined`.
    Accessor(Local),
}

/// The parts of an own property that are asked for. Those that it does not have are `undefined`.
struct Descriptor {
    flags: c_int,
    value: Local,
    getter: Local,
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
pub(in crate::isolate) struct Keys {
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
    pub(in crate::isolate) fn len(&self) -> usize {
        self.count as usize
    }

    pub(in crate::isolate) fn atom(&self, index: usize) -> Option<sys::JSAtom> {
        if index >= self.len() {
            return None;
        }
        // SAFETY: within the table that the engine made.
        Some(unsafe { (*self.table.add(index)).atom })
    }
}

impl Cx {
    pub(in crate::isolate) fn get(self, object: Raw, key: sys::JSAtom) -> Outcome<Local> {
        // SAFETY: live value and atom.
        self.own(unsafe { sys::JS_GetProperty(self.0, object, key) })
    }

    pub(in crate::isolate) fn get_str(self, object: Raw, key: &CStr) -> Outcome<Local> {
        // SAFETY: live value and text.
        self.own(unsafe { sys::JS_GetPropertyStr(self.0, object, key.as_ptr()) })
    }

    pub(in crate::isolate) fn get_index(self, object: Raw, index: u32) -> Outcome<Local> {
        // SAFETY: a live value.
        self.own(unsafe { sys::JS_GetPropertyUint32(self.0, object, index) })
    }

    /// An own property that is plain data; runs no getter and reads no prototype.
    pub(in crate::isolate) fn own_data(self, object: Raw, key: &CStr) -> Option<Local> {
        // A Proxy would run a trap.
        if is_proxy(object) {
            return None;
        }
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
    pub(in crate::isolate) fn data(self, object: Raw, key: &CStr) -> Option<Local> {
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
    pub(in crate::isolate) fn inherited(self, object: Raw, key: &CStr) -> Outcome<Local> {
        self.inherited_below(object, key, &[])
    }

    /// The same, but the search ends before these prototypes.
    pub(in crate::isolate) fn inherited_below(
        self,
        object: Raw,
        key: &CStr,
        ends: &[Raw],
    ) -> Outcome<Local> {
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
    pub(in crate::isolate) fn run_getter(self, getter: &Local, object: Raw) -> Outcome<Local> {
        if tag_of(getter.raw) == sys::JS_TAG_UNDEFINED {
            return Ok(self.dup(undefined()));
        }
        self.call(getter.raw, object, &[])
    }

    /// An own property of an object that is no proxy; runs no code. Throws for a binding of a
    /// module that has no value yet.
    pub(in crate::isolate) fn own_property(
        self,
        object: Raw,
        key: sys::JSAtom,
    ) -> Outcome<Option<Property>> {
        let Some(Descriptor { flags, value, getter }) = self.descriptor(object, key)? else {
            return Ok(None);
        };
        let is_data = flags & sys::JS_PROP_GETSET.cast_signed() == 0;
        Ok(Some(if is_data { Property::Data(value) } else { Property::Accessor(getter) }))
    }

    /// Whether an object has an own property of that key that is written without a setter.
    pub(in crate::isolate) fn is_writable(self, object: Raw, key: sys::JSAtom) -> Outcome<bool> {
        let kind = (sys::JS_PROP_GETSET | sys::JS_PROP_WRITABLE).cast_signed();
        let found = self.descriptor(object, key)?;
        Ok(found.is_some_and(|it| it.flags & kind == sys::JS_PROP_WRITABLE.cast_signed()))
    }

    /// The getter of an own accessor property.
    pub(in crate::isolate) fn own_getter(self, object: Raw, key: &CStr) -> Outcome<Local> {
        let key = self.atom(key.to_str().map_err(|_| Thrown)?)?;
        self.descriptor(object, key.id)?.map(|found| found.getter).ok_or(Thrown)
    }

    /// The descriptor of an own property, as [`Cx::own_property`].
    fn descriptor(self, object: Raw, key: sys::JSAtom) -> Outcome<Option<Descriptor>> {
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
        let [value, getter, _setter] =
            [found.value, found.getter, found.setter].map(|raw| Local { cx: self, raw });
        Ok(Some(Descriptor { flags: found.flags, value, getter }))
    }

    /// Replaces the getter of an own accessor by one of ours, and keeps its setter.
    pub(in crate::isolate) fn set_getter(
        self,
        object: Raw,
        key: &CStr,
        getter: &Local,
    ) -> Outcome<()> {
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

    /// Defines an own accessor without a setter, as those of the language are.
    pub(in crate::isolate) fn define_getter(
        self,
        object: Raw,
        key: &str,
        getter: &Local,
    ) -> Outcome<()> {
        let key = self.atom(key)?;
        let flags = (sys::JS_PROP_HAS_GET
            | sys::JS_PROP_HAS_SET
            | sys::JS_PROP_HAS_CONFIGURABLE
            | sys::JS_PROP_HAS_ENUMERABLE
            | sys::JS_PROP_CONFIGURABLE)
            .cast_signed();
        let (none, getter) = (undefined(), getter.raw);
        // SAFETY: live values and a live atom.
        let code =
            unsafe { sys::JS_DefineProperty(self.0, object, key.id, none, getter, none, flags) };
        done(code).map(drop)
    }

    pub(in crate::isolate) fn has(self, object: Raw, key: sys::JSAtom) -> Outcome<bool> {
        // SAFETY: live value and atom.
        done(unsafe { sys::JS_HasProperty(self.0, object, key) })
    }

    /// Defines an own property, whatever the prototype chain has. Takes the value.
    pub(in crate::isolate) fn define(
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

    pub(in crate::isolate) fn define_str(
        self,
        object: Raw,
        key: &str,
        value: Local,
        flags: u32,
    ) -> Outcome<()> {
        let key = self.atom(key)?;
        self.define(object, key.id, value, flags)
    }

    pub(in crate::isolate) fn define_index(
        self,
        object: Raw,
        index: u32,
        value: Local,
    ) -> Outcome<()> {
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

    pub(in crate::isolate) fn delete(self, object: Raw, key: &str) -> Outcome<()> {
        let key = self.atom(key)?;
        // SAFETY: live value and atom.
        done(unsafe { sys::JS_DeleteProperty(self.0, object, key.id, 0) }).map(drop)
    }

    /// Gives an own property that may be reconfigured another value; the rest of it stays.
    pub(in crate::isolate) fn redefine(
        self,
        object: Raw,
        key: sys::JSAtom,
        value: Raw,
    ) -> Outcome<()> {
        let flags = sys::JS_PROP_HAS_VALUE.cast_signed();
        let none = undefined();
        // SAFETY: live values and a live atom.
        let code = unsafe { sys::JS_DefineProperty(self.0, object, key, value, none, none, flags) };
        done(code).map(drop)
    }

    /// Deletes an own property.
    pub(in crate::isolate) fn delete_key(self, object: Raw, key: sys::JSAtom) -> Outcome<()> {
        // SAFETY: live value and atom.
        done(unsafe { sys::JS_DeleteProperty(self.0, object, key, 0) }).map(drop)
    }

    /// Forbids new properties.
    pub(in crate::isolate) fn prevent_extensions(self, object: Raw) -> Outcome<()> {
        // SAFETY: a live object.
        done(unsafe { sys::JS_PreventExtensions(self.0, object) }).map(drop)
    }

    pub(in crate::isolate) fn set_prototype(self, object: Raw, prototype: Raw) -> Outcome<()> {
        // SAFETY: live values.
        done(unsafe { sys::JS_SetPrototype(self.0, object, prototype) }).map(drop)
    }

    /// The own enumerable string keys. The object must not be a proxy.
    pub(in crate::isolate) fn keys(self, object: Raw) -> Outcome<Keys> {
        self.own_keys(object, sys::JS_GPN_STRING_MASK | sys::JS_GPN_ENUM_ONLY)
    }

    /// The own string keys, enumerable or not. The object must not be a proxy.
    pub(in crate::isolate) fn all_keys(self, object: Raw) -> Outcome<Keys> {
        self.own_keys(object, sys::JS_GPN_STRING_MASK)
    }

    fn own_keys(self, object: Raw, flags: u32) -> Outcome<Keys> {
        let mut table = ptr::null_mut();
        let mut count = 0;
        let flags = flags.cast_signed();
        // SAFETY: a live object and places for the table and its count.
        let code = unsafe {
            sys::JS_GetOwnPropertyNames(self.0, &raw mut table, &raw mut count, object, flags)
        };
        done(code)?;
        Ok(Keys { cx: self, table, count })
    }

    /// The prototype of an object that is no proxy; `null` comes out as `null`.
    pub(in crate::isolate) fn prototype(self, object: Raw) -> Outcome<Local> {
        // SAFETY: a live value.
        self.own(unsafe { sys::JS_GetPrototype(self.0, object) })
    }

    /// Whether awaiting a value is known to give that value: it has no `then` that could be called, and this check runs
    /// no code.
    pub(in crate::isolate) fn is_its_own_outcome(self, value: Raw) -> Outcome<bool> {
        if !is_object(value) {
            return Ok(true);
        }
        Ok(match self.search(value, c"then", &[])? {
            Found::Property(Property::Data(then)) => !self.is_function(then.raw),
            Found::Property(Property::Accessor(_)) | Found::Unknown => false,
            Found::Nothing => true,
        })
    }
}
