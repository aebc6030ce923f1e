//! The realm of a run: the ECMAScript intrinsics, and nothing of the host.
//!
//! In: contexts and values that `realm_builder` has made. Out: a [`Realm`] of two contexts, together with the intrinsics
//! that this crate needs. Code runs in one context, which has no Eval intrinsic, so that no string ever becomes code
//! there. The other one, a bare context, only compiles.
//!
//! A realm is plain data. It is built once and restored from an image, and its pointers and values stay true, because
//! an image belongs to one address. `intrinsics` has the values, `originals` those that functions of this crate replace.

#![expect(unsafe_code, reason = "frees contexts with the engine's C functions")]

pub(super) mod intrinsics;
pub(super) mod originals;

use std::ptr;

use self::intrinsics::Intrinsics;
use super::{
    engine::{Cx, sys},
    extension::parts::Built,
    session::parts::Parts,
};

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
    pub(in crate::isolate) extension: Option<Built>,
    /// The parts that sessions need; `None` if the engine is not known well enough for them.
    pub(in crate::isolate) session: Option<Parts>,
}

// SAFETY: one thread at a time enters a realm, the one that holds its isolate.
unsafe impl Send for Realm {}

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
            let of_extension = self.extension.iter().flat_map(Built::all);
            for value in self.intrinsics.all().into_iter().chain(of_extension) {
                sys::JS_FreeValue(self.cx.0, value);
            }
            sys::JS_FreeContext(self.compiler.0);
            sys::JS_FreeContext(self.cx.0);
        }
    }
}
