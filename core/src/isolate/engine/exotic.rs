//! Objects whose properties this crate has.
//!
//! In: functions that are called for each access. Out: classes of the engine. Objects of the first have properties that
//! can only be set; those of the second, properties that can only be read.

use std::{ffi::c_int, ptr};

use super::{Local, Raw, sys, undefined};

/// Sets a property of an object: `value` is borrowed. Less than zero when an exception is pending.
pub(in crate::isolate) type Set =
    unsafe extern "C-unwind" fn(*mut sys::JSContext, Raw, sys::JSAtom, Raw, Raw, c_int) -> c_int;

/// Describes a property of an object, where there is a place for the description: 1 if it has the property, 0 if not.
/// Less than zero when an exception is pending.
pub(in crate::isolate) type Describe = unsafe extern "C-unwind" fn(
    *mut sys::JSContext,
    *mut sys::JSPropertyDescriptor,
    Raw,
    sys::JSAtom,
) -> c_int;

type PlainSet =
    unsafe extern "C" fn(*mut sys::JSContext, Raw, sys::JSAtom, Raw, Raw, c_int) -> c_int;
type PlainDescribe = unsafe extern "C" fn(
    *mut sys::JSContext,
    *mut sys::JSPropertyDescriptor,
    Raw,
    sys::JSAtom,
) -> c_int;

/// The methods of a class, which the engine keeps the address of.
#[derive(Clone, Copy)]
pub(in crate::isolate) struct Methods(sys::JSClassExoticMethods);

// SAFETY: they are pointers to functions.
unsafe impl Sync for Methods {}

const NONE: sys::JSClassExoticMethods = sys::JSClassExoticMethods {
    get_own_property: None,
    get_own_property_names: None,
    delete_property: None,
    define_own_property: None,
    has_property: None,
    get_property: None,
    set_property: None,
};

impl Methods {
    /// Of objects that can only be written to.
    pub(in crate::isolate) const fn set(set: Set) -> Self {
        // SAFETY: the same function; the engine may be unwound through.
        let set = unsafe { std::mem::transmute::<Set, PlainSet>(set) };
        Self(sys::JSClassExoticMethods { set_property: Some(set), ..NONE })
    }

    /// Of objects that can only be read.
    pub(in crate::isolate) const fn describe(describe: Describe) -> Self {
        // SAFETY: the same function; the engine may be unwound through.
        let describe = unsafe { std::mem::transmute::<Describe, PlainDescribe>(describe) };
        Self(sys::JSClassExoticMethods { get_own_property: Some(describe), ..NONE })
    }
}

/// Registers a class with those methods.
pub(in crate::isolate) fn class(
    runtime: *mut sys::JSRuntime,
    methods: &'static Methods,
) -> Option<u32> {
    let mut class = 0;
    let definition = sys::JSClassDef {
        class_name: c"Object".as_ptr(),
        finalizer: None,
        gc_mark: None,
        call: None,
        exotic: ptr::from_ref(&methods.0).cast_mut(),
    };
    // SAFETY: a live runtime; the engine copies the definition, and the methods are static and never written to.
    unsafe {
        sys::JS_NewClassID(runtime, &raw mut class);
        (sys::JS_NewClass(runtime, class, &raw const definition) == 0).then_some(class)
    }
}

/// Describes a property that has a value and cannot be changed.
///
/// # Safety
/// The engine gave the place, which may be null.
pub(in crate::isolate) unsafe fn describe_constant(
    place: *mut sys::JSPropertyDescriptor,
    value: Local,
) -> c_int {
    if !place.is_null() {
        let none = undefined();
        let described = sys::JSPropertyDescriptor {
            flags: 0,
            value: value.into_raw(),
            getter: none,
            setter: none,
        };
        // SAFETY: as the caller promises; the engine takes the reference.
        unsafe { place.write(described) };
    }
    1
}
